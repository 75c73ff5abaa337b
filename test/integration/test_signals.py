"""Signals to gabion reach the command; stopping gabion stops the sandbox; ending it ends everything."""
import os
import signal
import time

import pytest
from harness import descendants, find_below, started, status_of, until

TRAP = "trap 'echo got; exit 42' {}; echo ready; while :; do sleep 0.05; done"
STUBBORN = "trap '' INT TERM HUP QUIT; echo ready; while :; do sleep 0.05; done"


def ready(p):
    assert p.stdout.readline() == b"ready\n"


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
def test_a_signal_reaches_the_commands_handler(name):
    with started("--", "sh", "-c", TRAP.format(name)) as p:
        ready(p)
        p.send_signal(getattr(signal, f"SIG{name}"))
        assert p.stdout.readline() == b"got\n"
        assert p.wait(5) == 42


def test_a_command_without_a_handler_dies_of_the_signal():
    with started("--json", "--", "sleep", "30") as p:
        find_below(p.pid, "sleep")
        p.terminate()
        assert p.wait(5) == 128 + signal.SIGTERM


def test_three_requests_end_a_command_that_ignores_them():
    with started("--json", "--", "sh", "-c", STUBBORN) as p:
        ready(p)
        for _ in range(2):
            p.send_signal(signal.SIGINT)
            time.sleep(0.1)
        assert p.poll() is None
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=5)
        assert p.returncode == 137
        assert b'"reason":"killed_by_user"' in out


def test_a_signal_before_the_command_runs_is_not_lost():
    for delay_ms in (0, 1, 2, 4):
        with started("--", "sleep", "30") as p:
            time.sleep(delay_ms / 1000)
            p.terminate()
            assert p.wait(5) in (128 + signal.SIGTERM, -signal.SIGTERM), delay_ms


def test_stop_freezes_the_sandbox_and_continue_thaws_it(shared):
    """The counter is a file of the host: it would go on if only gabion's own loop had stopped."""
    count = shared / "count"
    loop = "import time\ni=0\nwhile True:\n  i+=1; open('/mnt/d/count','w').write(str(i)); time.sleep(0.01)"
    with started("-v", f"{shared}:/mnt/d:rw", "--", "/usr/bin/python3", "-c", loop) as p:
        assert until(lambda: count.exists() and count.read_text() not in ("", "0"))
        p.send_signal(signal.SIGTSTP)
        assert until(lambda: status_of(p.pid)["State"].split()[0] == "T")
        time.sleep(0.1)
        before = count.read_text()
        time.sleep(0.5)
        assert count.read_text() == before
        p.send_signal(signal.SIGCONT)
        assert until(lambda: count.read_text() not in ("", before))
        p.terminate()
        assert p.wait(5) == 128 + signal.SIGTERM


def test_a_frozen_sandbox_can_be_killed():
    with started("--", "sleep", "30") as p:
        pid = find_below(p.pid, "sleep")
        p.send_signal(signal.SIGTSTP)
        assert until(lambda: status_of(p.pid)["State"].split()[0] == "T")
        p.kill()
        assert p.wait(5) == -signal.SIGKILL
        assert until(lambda: not os.path.exists(f"/proc/{pid}"), 2)


def test_time_spent_stopped_does_not_hide_the_end_of_the_command():
    with started("--", "sh", "-c", "echo ready; sleep 0.3; exit 9") as p:
        ready(p)
        p.send_signal(signal.SIGTSTP)
        assert until(lambda: status_of(p.pid)["State"].split()[0] == "T")
        time.sleep(0.5)
        p.send_signal(signal.SIGCONT)
        assert p.wait(5) == 9


def test_signals_do_not_end_the_supervisor_without_its_sandbox():
    """After the end of gabion, however it was asked for, no process of it lives."""
    for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        with started("--", "sleep", "30") as p:
            find_below(p.pid, "sleep")
            family = descendants(p.pid)
            p.send_signal(signo)
            p.wait(5)
            assert until(lambda: not [f for f in family if os.path.exists(f"/proc/{f}") and
                                      status_of(f)["State"].split()[0] != "Z"], 2), (signo, family)


def test_the_command_cannot_signal_outside():
    """kill(-1) reaches the sandbox alone: gabion and its neighbours on the host live on."""
    with started("--", "sleep", "30") as neighbour:
        find_below(neighbour.pid, "sleep")
        with started("--", "/usr/bin/python3", "-c", "import os\nos.kill(-1, 9)") as p:
            assert p.wait(5) in (0, 1, 137)
        assert neighbour.poll() is None and find_below(neighbour.pid, "sleep")


def test_pid_1_cannot_be_hurt_from_inside():
    with started("--", "sh", "-c", "kill -9 1; kill -STOP 1; sleep 0.2; echo alive") as p:
        out, _ = p.communicate(timeout=5)
        assert out == b"alive\n" and p.returncode == 0
