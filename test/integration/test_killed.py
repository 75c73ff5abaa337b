"""gabion killed with SIGKILL at any moment: nothing of its sandbox stays."""
import os
import random
import signal
import subprocess
import time

import harness
import pytest
from harness import GABION, descendants, find_below, started, until

ROUNDS = 40 * int(os.environ.get("GABION_SOAK", "1"))


def left(mounts):
    return harness.wait_clean(mounts)


def test_killed_at_random_moments_of_its_start(shared):
    chance = random.Random(4711)
    mounts = harness.mounts()
    before_release = 0
    for i in range(ROUNDS):
        with started("-v", f"{shared}:/mnt/d:rw", "--", "sleep", "30", stdin=subprocess.DEVNULL) as p:
            delay = chance.uniform(0, 0.006)
            end = time.monotonic() + delay
            while time.monotonic() < end:  # sleep() would round the moments
                pass
            before_release += not any(name == "sleep" for name in descendants(p.pid).values())
            p.kill()
            p.wait()
        found = left(mounts)
        assert not found, f"round {i}, after {delay * 1000:.1f} ms: {found}"
    assert before_release > 0, "no kill fell into the set-up: the moments are too late"


@pytest.mark.parametrize("limits", ["cgroup", "rlimit"])
@pytest.mark.parametrize("script", ["sleep 30", "while :; do :; done", "sleep 30 & setsid sleep 30 & sleep 30",
                                    "trap '' TERM INT HUP; sleep 30", "yes"])
def test_killed_while_the_command_runs(script, limits):
    mounts = harness.mounts()
    with started("--limits", limits, "--", "sh", "-c", f"echo ready >&2; {script}", stdout=subprocess.DEVNULL) as p:
        assert p.stderr.readline() == b"ready\n"
        time.sleep(0.05)
        family = descendants(p.pid)
        assert len(family) >= 3  # janitor, agent, command
        p.kill()
        p.wait()
    assert not left(mounts)
    assert until(lambda: harness.reap_adopted() or not set(family) & set(harness.parents()), 2)


def test_killed_during_a_fork_bomb():
    mounts = harness.mounts()
    with started("--pids", "64", "--", "bash", "-c", "b() { b | b & }; b; sleep 30", stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL) as p:
        until(lambda: len(descendants(p.pid)) > 20)
        p.kill()
        p.wait()
    assert not left(mounts)


def kill_with_janitor():
    """A sandbox whose supervisor and janitor were killed at once. Returns its slot; its processes are gone."""
    with started("--", "sleep", "30") as p:
        find_below(p.pid, "sleep")
        agent = harness.find_agent(p.pid)
        family = descendants(p.pid)
        janitors = [pid for pid, name in family.items() if name == os.path.basename(GABION) and pid != agent]
        assert len(janitors) == 1, family
        slot = harness.slot_of(agent)
        assert harness.slots()[slot]  # held
        p.send_signal(signal.SIGSTOP)
        os.kill(janitors[0], signal.SIGKILL)
        p.kill()
        p.wait()
    assert until(lambda: harness.reap_adopted() or not set(family) & set(harness.parents()), 2)
    return slot


def test_killed_with_its_janitor_the_next_run_sweeps():
    """Nobody is left to clean up: processes die with the supervisor, and the next run removes the rest."""
    mounts = harness.mounts()
    for _ in range(20):  # another gabion on this machine may sweep before us
        slot = kill_with_janitor()
        groups = [path for path in harness.control_groups() if path.endswith(slot)]
        if groups and slot in harness.slots():
            break
    else:
        pytest.fail("nothing was left to sweep: the test shows nothing")
    assert harness.run("--", "true").code == 0
    assert slot not in harness.slots()
    assert not [path for path in groups if os.path.exists(path)]
    assert not left(mounts)


@pytest.mark.parametrize("round_", range(4))
def test_a_killed_agent_ends_the_run_as_lost(round_):
    with started("--json", "--", "sleep", "30") as p:
        find_below(p.pid, "sleep")
        os.kill(harness.find_agent(p.pid), signal.SIGKILL)
        out, err = p.communicate(timeout=5)
        assert p.returncode == 125
        assert b'"reason":"lost"' in out, (out, err)


def ended(pid):
    """A signal is sent at once, and obeyed a moment later."""
    return harness.status_of(pid)["State"].split()[0] == "Z"


def test_a_killed_janitor_harms_nobody():
    with started("--", "sh", "-c", "echo ready; read x; exit 4") as p:
        assert p.stdout.readline() == b"ready\n"
        agent = harness.find_agent(p.pid)
        for pid, name in descendants(p.pid).items():
            if name == os.path.basename(GABION) and pid != agent:
                os.kill(pid, signal.SIGKILL)
                assert harness.until(lambda dead=pid: descendants(p.pid).get(dead) is None or ended(dead))
        p.stdin.write(b"\n")
        p.stdin.close()
        assert p.wait(5) == 4


WAITED = r"""
"$0" run -- true || exit 1
for f in /proc/[0-9]*/stat; do
        { read -r pid name state parent rest < "$f"; } 2> /dev/null && [ "$parent" = 1 ] && echo "$name $state"
done
exit 0
"""


def test_a_pid_1_that_may_reap_nobody_gets_no_orphans():
    """In a container everything is gone when gabion ends: pid 1, here a shell, may be a program that never waits."""
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", WAITED, GABION], capture_output=True,
                          text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_many_ends_in_a_row_leave_nothing():
    """Where pid 1 reaps, a run without mounts does not wait for its janitor: the fixture looks a moment later."""
    for code in range(20):
        assert harness.run("--", "sh", "-c", f"sleep 30 & exit {code}").code == code


def test_a_stopped_supervisor_does_not_leave_the_sandbox_beyond_reach():
    """SIGSTOP to gabion, then SIGKILL: PDEATHSIG and the janitor do not need it to run."""
    mounts = harness.mounts()
    with started("--", "sleep", "30") as p:
        find_below(p.pid, "sleep")
        p.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        p.kill()
        p.wait()
    assert not left(mounts)
