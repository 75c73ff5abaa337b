"""A running sandbox that is changed from outside stands still within two seconds; one that is not, runs on. And the rules
of `monitor`, each with its action."""
import contextlib
import glob
import inspect
import os
import pathlib
import re
import signal
import subprocess
import time

import harness
import pytest
from audit_log import assert_whole, audit, fields, find
from harness import find_agent, run, started, until

FOREVER = ["--", "sh", "-c", "while :; do sleep 0.05; done"]
SOON_S = 2.0


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def policy(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\n" + text)
    return path


def group_of(pid):
    """The control-group directories of the sandbox of the gabion `pid`."""
    agent = find_agent(pid)
    name = re.search(r"gabion/(sbx-\d+)", pathlib.Path(f"/proc/{agent}/cgroup").read_text())[1]
    return glob.glob(f"/sys/fs/cgroup/gabion/{name}") + glob.glob(f"/sys/fs/cgroup/*/gabion/{name}")


def lift_memory(pid):
    for folder in group_of(pid):
        for name in ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes", "memory.max"):
            path = pathlib.Path(folder, name)
            if path.exists():
                path.write_text(str(800 << 20))


def lift_pids(pid):
    for folder in group_of(pid):
        path = pathlib.Path(folder, "pids.max")
        if path.exists():
            path.write_text("max")


def remount(pid):
    subprocess.run(["nsenter", "-t", str(find_agent(pid)), "-m", "mount", "-o", "remount,bind,rw", "/usr"], check=True)


def cover(pid):
    subprocess.run(["nsenter", "-t", str(find_agent(pid)), "-m", "mount", "-t", "tmpfs", "none", "/tmp"], check=True)


def unmask(pid):
    """By the call itself: umount(8) cannot read the mount table of another pid namespace."""
    agent = find_agent(pid)
    mask = re.search(r" (/proc/\S+) ro", pathlib.Path(f"/proc/{agent}/mountinfo").read_text())[1]
    script = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).umount2({mask.encode()!r}, 2))"
    subprocess.run(["nsenter", "-t", str(agent), "-m", "/usr/bin/python3", "-c", script], check=True)


def add_interface(pid):
    """Whatever kind of interface this kernel can make."""
    into = ["nsenter", "-t", str(find_agent(pid)), "-n", "ip"]
    tries = [["link", "add", "t0", "type", kind] for kind in ("dummy", "bridge", "veth", "ifb", "sit", "ipip", "vcan")]
    for words in [*tries, ["tuntap", "add", "dev", "t0", "mode", "tun"]]:
        if subprocess.run([*into, *words], check=False, capture_output=True).returncode == 0:
            return
    pytest.skip("this kernel can make no network interface")


# Like a command of the sandbox in everything but its limits: ids, no capability, no_new_privs, a filter.
STRANGER = """
import ctypes, os, struct, sys, time
call = ctypes.CDLL(None, use_errno=True).prctl
uid, gid = int(sys.argv[1]), int(sys.argv[2])
for cap in range(64):
    call(24, cap, 0, 0, 0)
os.setgroups([])
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)
rule = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("@HP", 1, ctypes.addressof(rule)))
ok = call(38, 1, 0, 0, 0) == 0 and call(22, 2, program, 0, 0) == 0
print("ready" if ok else "failed", flush=True)
time.sleep(60)
"""


def add_process(pid):
    """Limits of a process can only be raised with a capability that not every root has; so one comes with its own."""
    agent = find_agent(pid)
    child = next(iter(harness.descendants(agent)))
    ids = [harness.status_of(child)[key].split()[0] for key in ("Uid", "Gid")]
    with subprocess.Popen(["/usr/bin/python3", "-c", STRANGER, *ids], stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"ready\n"
        for folder in group_of(pid):
            pathlib.Path(folder, "cgroup.procs").write_text(str(p.pid))
        try:
            yield
        finally:
            p.kill()


CHANGES = {
    "cgroup.memory": lift_memory, "cgroup.pids": lift_pids, "mount": remount, "mount ": cover, "proc mask": unmask,
    "network": add_interface, "rlimit": add_process,
}


def delete_rule_of(agent):
    """One rule of the only chain that lets anything out."""
    into = ["nsenter", "-t", str(agent), "-n", "nft", "-a"]
    text = subprocess.run([*into, "list", "ruleset"], check=True, capture_output=True, text=True).stdout
    table, chain = re.search(r"table inet (\S+)", text)[1], re.search(r"chain (\S+)", text)[1]
    handle = re.findall(r"# handle (\d+)", text[text.index("chain"):])[1]
    subprocess.run([*into, "delete", "rule", "inet", table, chain, "handle", handle], check=True)


def delete_rule(pid):
    delete_rule_of(find_agent(pid))


CHANGES["network rules"] = delete_rule
OF_A_NETWORK = ("network rules",)


def is_frozen(pid):
    """Nothing inside uses the CPU: two looks at the loop's time."""
    def ticks():
        return [pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
                for p in harness.descendants(find_agent(pid))]
    before = ticks()
    time.sleep(0.3)
    return before == ticks() and before


@pytest.mark.parametrize("control", CHANGES)
def test_a_change_from_outside_freezes_the_sandbox_and_is_named(control, log):
    words = ["--allow", "web.example"] if control in OF_A_NETWORK else []
    with started("--audit", log, *words, *FOREVER) as p, contextlib.ExitStack() as stack:
        assert until(lambda: log.exists() and find(log, "evidence"))
        time.sleep(0.2)
        change = CHANGES[control]
        if inspect.isgeneratorfunction(change):
            stack.enter_context(contextlib.contextmanager(change)(p.pid))
        else:
            change(p.pid)
        changed = time.monotonic()
        found = until(lambda: find(log, "sandbox.frozen"), SOON_S)
        assert found, find(log, "drift")
        assert time.monotonic() - changed < SOON_S
        drift = find(log, "drift")[0]
        assert drift["unmapped"]["object"] == control.strip() and fields(drift)["action"] == "freeze"
        assert drift["class_uid"] == 2004 and drift["is_alert"] is True and drift["severity_id"] == 4
        assert is_frozen(p.pid)
        p.send_signal(signal.SIGTERM)
        assert p.wait(timeout=10) == 137
        said = p.stderr.read().decode()
        assert f"drift: {control.strip()}: " in said and f"'kill {p.pid}' ends it" in said
        assert drift["metadata"]["uid"] in said
    assert_whole(log)


def test_a_check_on_demand_says_what_it_finds(log, tmp_path):
    """Long before the schedule would. A sandbox that is as planned runs on."""
    file = policy(tmp_path, "monitor: { interval: 30s }\n")
    with started("--audit", log, "--policy", file, "--allow", "web.example", *FOREVER) as p:
        assert until(lambda: log.exists() and find(log, "evidence"))
        sandbox = find(log, "evidence")[0]["device"]["container"]["uid"]
        r = audit("check", sandbox)
        assert (r.code, r.out) == (0, f"{sandbox}: as planned\n") and not find(log, "drift")
        lift_memory(p.pid)
        r = audit("check", sandbox)
        assert r.code == 1 and f"{sandbox}: DRIFT: cgroup.memory: memory" in r.out
        assert until(lambda: find(log, "sandbox.frozen")) and is_frozen(p.pid)
        assert audit("check", sandbox).code == 1 and len(find(log, "drift")) == 1
        p.terminate()
        assert p.wait(timeout=10) == 137
    assert audit("check", sandbox).code == 125


def test_a_sandbox_without_a_network_can_be_checked_too(log, tmp_path):
    file = policy(tmp_path, "monitor: { interval: 100ms }\n")
    with started("--audit", log, "--policy", file, *FOREVER):
        assert until(lambda: log.exists() and find(log, "evidence"))
        sandbox = find(log, "evidence")[0]["device"]["container"]["uid"]
        assert until(lambda: audit("check", sandbox).code == 0)
        assert "the sandbox has no network" in harness.gabion("policy", "show", sandbox).err


def test_drift_may_kill(log, tmp_path):
    file = policy(tmp_path, "monitor: { on_drift: kill, interval: 200ms }\n")
    with started("--audit", log, "--policy", file, *FOREVER) as p:
        assert until(lambda: log.exists() and find(log, "evidence"))
        lift_memory(p.pid)
        assert p.wait(timeout=5) == 137
    assert fields(find(log, "sandbox.ended")[0])["reason"] == "killed_by_policy"
    assert fields(find(log, "drift")[0])["action"] == "kill"


def test_drift_may_only_warn_and_does_so_once(log, tmp_path):
    file = policy(tmp_path, "monitor: { on_drift: warn, interval: 100ms }\n")
    with started("--audit", log, "--policy", file, "--timeout", "2s", *FOREVER) as p:
        assert until(lambda: log.exists() and find(log, "evidence"))
        lift_memory(p.pid)
        assert p.wait(timeout=10) == 124
        assert p.stderr.read().decode().count("drift: cgroup.memory") == 1
    assert len(find(log, "drift")) == 1 and not find(log, "sandbox.frozen")


def test_the_time_limit_holds_while_it_is_frozen(log):
    with started("--audit", log, "--timeout", "3s", *FOREVER) as p:
        assert until(lambda: log.exists() and find(log, "evidence"))
        lift_memory(p.pid)
        assert p.wait(timeout=10) == 124
    assert find(log, "sandbox.frozen") and fields(find(log, "sandbox.ended")[0])["reason"] == "timeout"


def test_work_is_no_drift(log, tmp_path):
    """Processes that come and go, lower their own limits and add filters, for several readings."""
    file = policy(tmp_path, "monitor: { on_drift: kill, interval: 100ms }\n")
    script = ("ulimit -n 100; end=$(( $(date +%s) + 3 ));"
              "while [ $(date +%s) -lt $end ]; do for i in 1 2 3 4 5 6 7 8; do /bin/true & done; wait; done")
    r = run("--audit", log, "--policy", file, "--", "sh", "-c", script)
    assert r.code == 0 and r.err == "", r
    assert not find(log, "drift") and not find(log, "alert")


def test_without_a_log_drift_is_answered_all_the_same():
    with started(*FOREVER) as p:
        find_agent(p.pid)
        time.sleep(0.3)
        lift_memory(p.pid)
        assert b"drift: cgroup.memory" in p.stderr.readline()
        p.send_signal(signal.SIGINT)
        assert p.wait(timeout=10) == 137


# --- monitor ---

def test_a_burst_of_refused_calls(log, tmp_path):
    file = policy(tmp_path, "monitor: { refused_calls: { over: 4, within: 5s, action: kill } }\n")
    r = run("--audit", log, "--policy", file, "--", "sh", "-c", "unshare -U true; unshare -U true; exit 0")
    assert r.code == 0 and not find(log, "alert")
    r = run("--audit", log, "--policy", file, "--", "sh", "-c", "while :; do unshare -U true; done", timeout=20)
    assert r.code == 137 and "alert: refused calls: more than 4 within 5000 ms" in r.err
    assert fields(find(log, "alert")[0])["action"] == "kill"
    assert fields(find(log, "sandbox.ended")[1])["reason"] == "killed_by_policy"


def test_an_unexpected_program(log, tmp_path):
    """Expected by name, recognised as a file: a link or another name changes nothing, a copy is another program."""
    file = policy(tmp_path, "monitor: { programs: { expect: [ sh, cp, ln, cat ], action: log } }\n")
    r = run("--audit", log, "--policy", file, "--", "sh", "-c",
            "cat /dev/null; cp /bin/true $HOME/cat; $HOME/cat; ln -s /bin/cat $HOME/other; $HOME/other /dev/null; "
            "/usr/bin/env true")
    assert r.code == 0
    assert {a["unmapped"]["object"] for a in find(log, "alert")} == {"/home/user/cat", "/usr/bin/env", "/usr/bin/true"}


def test_an_unexpected_program_may_freeze(log, tmp_path):
    file = policy(tmp_path, "monitor: { programs: { expect: [ sh, sleep ], action: freeze } }\n")
    with started("--audit", log, "--policy", file, "--", "sh", "-c", "sleep 0.2; cat /dev/null; sleep 30") as p:
        assert until(lambda: log.exists() and find(log, "sandbox.frozen"))
        assert is_frozen(p.pid)
        p.terminate()
        assert p.wait(timeout=10) == 137


def test_watched_paths_are_recorded(log, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/in").write_text("x")
    (tmp_path / "out").chmod(0o777)
    file = policy(tmp_path, "filesystem: { watch: [ /out, /home/user/secret ] }\n")
    r = run("--audit", log, "--policy", file, "-v", f"{tmp_path / 'out'}:/out:rw", "--", "sh", "-c",
            "cat /out/in; echo a >/out/new; mkdir $HOME/secret; echo b >$HOME/secret/key; echo c >$HOME/elsewhere;"
            "for i in 1 2 3 4 5; do cat /out/in; done")
    assert r.code == 0
    (tmp_path / "out/by-the-host").write_text("not through the sandbox's mount")
    assert {f["file"]["path"] for f in find(log, "file.written")} == {"/out/new", "/home/user/secret/key"}
    assert [f["file"]["path"] for f in find(log, "file.read")] == ["/out/in"]
    assert_whole(log)


def test_a_write_may_end_the_sandbox(log, tmp_path):
    file = policy(tmp_path, "filesystem: { watch: [ /home/user/.ssh ] }\nmonitor: { writes: { action: kill } }\n")
    r = run("--audit", log, "--policy", file, "--", "sh", "-c",
            "mkdir $HOME/.ssh; echo key >$HOME/.ssh/authorized_keys; sleep 20", timeout=20)
    assert r.code == 137 and "alert: /home/user/.ssh/authorized_keys" in r.err


def test_a_spike_of_memory_or_processes(log, tmp_path):
    file = policy(tmp_path, "monitor: { interval: 100ms, resources: { memory: 60M, action: log } }\n")
    r = run("--audit", log, "--policy", file, "--", "python3", "-c",
            "import time; x = bytearray(100 << 20); time.sleep(0.6)")
    assert r.code == 0 and "alert: resources: memory reached" in r.err and len(find(log, "alert")) == 1
    file = policy(tmp_path, "monitor: { interval: 100ms, resources: { pids: 5, action: kill } }\n")
    r = run("--audit", log, "--policy", file, "--", "sh", "-c", "for i in 1 2 3 4 5 6 7; do sleep 9 & done; wait")
    assert r.code == 137 and "processes and threads" in r.err


def test_what_needs_root_is_refused_without_it(tmp_path):
    """The same as an ordinary user: refused, not left out."""
    user = 64331
    for path in [tmp_path, *tmp_path.parents][:-2]:
        path.chmod(path.stat().st_mode | 0o711)
    file = policy(tmp_path, "filesystem: { watch: [ /tmp ] }\n")
    copy = tmp_path / "gabion"
    copy.write_bytes(pathlib.Path(harness.GABION).read_bytes())
    copy.chmod(0o755)
    r = subprocess.run(["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", copy, "run", "--limits",
                        "rlimit", "--policy", file, "--", "true"], capture_output=True, text=True, check=False,
                       timeout=30, env={"PATH": os.environ["PATH"], "HOME": "/"})
    assert r.returncode == 125, r
