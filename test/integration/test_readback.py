"""Leaving out one control must keep the command from ever starting. One case per name that the twin binary knows."""
import os
import re

import pytest
from harness import GABION_WEAK, ROOT, gabion

SOURCE = (ROOT / "src/sandbox/weaken.c").read_text()
NAMES = re.findall(r'\[WEAKEN_\w+\] = "([a-z0-9-]+)"', SOURCE)
DECLARED = re.findall(r"^\s+(WEAKEN_\w+),$", (ROOT / "src/sandbox/sandbox.h").read_text(), re.M)

# What the one line must name. Everything that is not here must say "control ... is not in force".
NAMED = {
    "net": "namespace is not in force: net",
    "pid-ns": "namespace is not in force: pid",
    "ipc": "namespace is not in force: ipc",
    "uts": "namespace is not in force: uts",
    "cgroup-ns": "namespace is not in force: cgroup",
    "time": "namespace is not in force: time",
    "uid-map": "(control (ids|uid map) is not in force|uid.map)",
    "gid-map": "gid map is not in force",
    "root-rw": "mount is not in force: / is rw",
    "usr-rw": "mount is not in force: /usr is rw",
    "shared": "mount is not in force: /usr propagates",
    "mask": "proc mask is not in force",
    "extra-mount": "mount is not in force: .* is not in the plan",
    "memory": r"control cgroup is not in force.*cgroup\.memory",
    "pids": r"control cgroup is not in force.*cgroup\.pids",
    "cpu": r"control cgroup is not in force.*cgroup\.cpu",
    "io": r"control cgroup is not in force.*cgroup\.io",
    "tasks": r"control cgroup is not in force.*cgroup\.member",
    "caps": "capabilities is not in force",
    # The kernel itself refuses Landlock and seccomp to an unprivileged process without no_new_privs: the start ends
    # there, before there is anything to read back.
    "nnp": "(no_new_privs is not in force|landlock: Operation not permitted)",
    "seccomp": "seccomp is not in force: mode 0",
    "seccomp-other": "seccomp is not in force: the loaded filter is another",
    "landlock": "landlock is not in force",
    "scope": "landlock scope is not in force",
    "securebits": "securebits is not in force",
    "rlimit": "rlimit is not in force: nofile",
    "ids": "ids is not in force",
    "fds": "descriptors is not in force",
    "agent-env": "agent environment is not in force",
    "agent-caps": "agent capabilities is not in force",
    "oom-score": "oom score is not in force",
    "tmpfs-size": "disk limit is not in force",
    "terminals": "terminal limit is not in force",
    "user-namespaces": "max_user_namespaces is not in force",
}


@pytest.fixture(autouse=True)
def twin():
    if not os.access(GABION_WEAK, os.X_OK):
        pytest.fail(f"{GABION_WEAK} is missing: the read-back cannot be tested without it")


def touch(folder, *flags, binary=GABION_WEAK):
    # -w /: with the wrong ids the home directory cannot be entered, and that would end the start for another reason
    return gabion("run", *flags, "-w", "/", "-v", f"{folder}:/mnt/shared:rw", "--", "touch", "/mnt/shared/canary",
                  binary=binary)


def test_every_declared_name_can_be_chosen_and_is_tested():
    assert len(NAMES) == len(DECLARED) >= 30
    assert set(NAMES) - {"none"} == set(NAMED)


def test_the_twin_starts_the_command_when_nothing_is_left_out(shared):
    result = touch(shared, "--weaken", "none")
    assert result.code == 0, result
    assert (shared / "canary").exists()  # so the canary below means something


@pytest.mark.parametrize("name", [n for n in NAMES if n != "none"])
def test_a_missing_control_stops_the_start(name, shared):
    result = touch(shared, "--weaken", name)
    assert result.code == 125, result
    assert not (shared / "canary").exists(), f"the command ran without {name}"
    assert len(result.err.splitlines()) == 1 and result.err.startswith("gabion: "), result
    assert re.search(NAMED[name], result.err), result
    assert result.out == ""


@pytest.mark.parametrize("name", ["seccomp", "memory"])
def test_a_missing_control_is_noticed_with_evidence_asked_for(name, shared, tmp_path):
    """The statement must not claim what was not there."""
    evidence = tmp_path / "evidence.json"
    result = touch(shared, "--weaken", name, "--evidence", str(evidence), "--json")
    assert result.code == 125, result
    assert not evidence.exists() or evidence.read_text() == ""


def test_the_product_has_no_such_switch(shared):
    result = touch(shared, "--weaken", "net", binary=None)
    assert result.code == 125
    assert "unknown option '--weaken'" in result.err
    assert not (shared / "canary").exists()
    assert "weaken" not in gabion("run", "--help").out
