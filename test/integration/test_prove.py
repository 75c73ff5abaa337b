"""`gabion prove` attacks a sandbox from inside and watches from outside; planted weaknesses must be found and named."""
import base64
import ctypes
import fcntl
import hashlib
import html
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import stat
import struct
import subprocess

import pytest
import test_readback as readback
from harness import GABION, GABION_WEAK


def prove(*flags, binary=GABION, timeout=120, **popen):
    return subprocess.run([str(binary), "prove", *flags], capture_output=True, text=True, timeout=timeout, **popen)


def lone_network():
    """In the child: a network namespace with loopback only, for what would otherwise try the machine's real network."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x40000000) != 0:  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


@pytest.fixture(scope="module")
def report():
    out = prove("--json")
    assert out.returncode == 0, out.stdout[-4000:] + out.stderr
    return json.loads(out.stdout)


def findings(report, *severities):
    return [a for a in report["attempts"]
            if a["severity"] in severities and a["verdict"] == ("stopped" if a["severity"] == "control" else "reached")]


def outside(report, what):
    return next(c for c in report["outside"] if what in c["what"])


def test_the_hardened_default_has_no_serious_finding(report):
    assert report["passed"] is True and report["whole"] is True
    assert findings(report, "crit", "high") == []
    assert len(findings(report, "med")) <= 3, findings(report, "med")
    assert all(c["ok"] for c in report["outside"]) and len(report["outside"]) >= 6


def test_it_really_tries_in_every_group(report):
    ids = [a["id"] for a in report["attempts"]]
    assert len(ids) >= 200 and len(ids) == len(set(ids))
    for group in "ABCDEFGHIJ":
        assert sum(i[0] == group for i in ids) >= 5, group
    # An attempt that had nothing to attack shows nothing: most must have met a wall.
    assert sum(a["verdict"] == "stopped" for a in report["attempts"]) >= 150


def test_it_takes_less_than_half_a_minute(report):
    assert report["seconds"] < 30


def test_dangerous_calls_do_not_reach_the_kernel(report):
    calls = report["dangerous_calls"]
    assert calls["tried"] == calls["exist"] >= 60  # every one that this kernel has
    assert calls["reached"] == len(calls["names"]) <= 5, calls


def test_the_levels_are_stated_with_the_facts_they_rest_on(report):
    assert report["aisi"]["host"]["level"] == "H1" and "the kernel is the host's" in report["aisi"]["host"]["why"]
    assert report["aisi"]["network"]["level"] == "N2" and "group H" in report["aisi"]["network"]["why"]


def test_the_host_saw_the_attacker_as_the_statement_says(report):
    """The observer's own look while it attacked, and the read-back before it started, are two sources."""
    posture, statement = report["posture"], report["evidence"]
    assert posture["seen"] and posture["uid"] == statement["host_uid"] != 0
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters"):
        assert posture[name] == statement["command_seen_from_host"][name], name
    assert posture["CapBnd"] == "0" * 16 and posture["NoNewPrivs"] == 1 and posture["Seccomp"] == 2
    assert set(posture["namespaces"].values()) == {"own"} and len(posture["namespaces"]) == 8
    assert statement["type"] == "gabion.evidence/v1" and statement["policy"].startswith("sha256:")
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert report["evidence_hash"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_the_report_names_program_kernel_and_policy(report):
    version = subprocess.run([str(GABION), "version"], capture_output=True, text=True, check=True).stdout.split()
    assert version[:2] == ["gabion", report["gabion"]] and version[3] == report["build"]
    assert re.fullmatch("[0-9a-f]{40}", report["build"])
    assert report["kernel"] == platform.release() and report["machine"] == platform.machine()
    assert re.fullmatch("sha256:[0-9a-f]{64}", report["policy"]) and report["tier"] == "ns"


def test_what_lies_outside_was_compared(report):
    for what in ("canary file", "abstract socket", "unix socket", "TCP port", "canary process", "flag", "key files",
                 "settings", "device nodes", "mount table", "kernel module", "listens on the host", "no process",
                 "read back as planned", "no control group"):
        assert outside(report, what)["ok"], what


def test_ordinary_work_is_not_refused(report):
    assert findings(report, "control") == []
    assert any(a["severity"] == "control" for a in report["attempts"])


def test_a_person_sees_the_vector_and_not_only_a_total():
    out = prove("--groups", "ABCDF")
    assert out.returncode == 0
    assert len(re.findall(r"^  [A-J] .*\|", out.stdout, re.M)) == 5
    assert len(re.findall(r"^  [A-J] .* not tried$", out.stdout, re.M)) == 5
    assert out.stdout.splitlines()[-1].endswith("passed, but not every group was tried")


def test_a_signed_report_verifies_and_a_changed_one_does_not(tmp_path):
    path = tmp_path / "proof.json"
    assert prove("--groups", "AF", "-o", str(path)).returncode == 0
    verify = [str(GABION), "verify", str(path)]
    assert subprocess.run(verify, capture_output=True, text=True).stdout.startswith("signature ok:")
    text = path.read_text()
    payload = text.index('"payload":') + 40
    path.write_text(text[:payload] + ("A" if text[payload] != "A" else "B") + text[payload + 1:])
    out = subprocess.run(verify, capture_output=True, text=True)
    assert out.returncode == 125 and "the signature does not match" in out.stderr


def test_the_page_is_whole_and_asks_nobody(tmp_path):
    page = tmp_path / "proof.html"
    assert prove("--groups", "AF", "--html", str(page)).returncode == 0
    text = page.read_text()
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert "<script" not in text and not re.search(r"(src|href)=", text) and "Passed" in text
    assert "Not every group was tried." in text


def test_the_same_attempts_find_much_without_a_sandbox():
    """Otherwise the proof would prove nothing. An ordinary user on the bare host (but without its network), by --wrap."""
    out = prove("--json", "--groups", "ABCDEFGJ", "--wrap", "unshare -n setpriv --reuid 65534 --regid 65534 --clear-groups {}")
    bare = json.loads(out.stdout)[1]
    assert bare["passed"] is False
    assert len(findings(bare, "crit", "high")) >= 10


# What is left out, and the group of attempts that must notice it.
ATTACKED = {
    "net": "H",
    "pid-ns": "E",
    "uts": "J",
    "ipc": "G",
    "uid-map": "A",
    "shared": "G",
    "mask": "E",
    "memory": "I",
    "tasks": "I",
    "seccomp": "C",
    "family": "D",
    "userns": "C",
    "rlimit": "I",
    "usr-rw": "G",
    "root-rw": "G",
    "extra-mount": "G",
    "cgroup-ns": "G",
    "time": "J",
}
# What no attempt can be sure to see (another wall stands behind it, exec() takes it away, only the host has it, or others
# use the machine too): there the host's own reading must fail the proof.
READ_BACK = ["gid-map", "dev-rw", "pids", "cpu", "io", "caps", "seccomp-other", "landlock", "scope", "securebits", "ids", "fds",
             "agent-env", "agent-caps", "oom-score", "tmpfs-size", "terminals", "user-namespaces"]


@pytest.mark.parametrize("name", [*ATTACKED, *READ_BACK])
def test_a_planted_weakness_fails_the_proof_and_is_named(name, report):
    out = prove("--json", "--groups", ATTACKED.get(name, "F"), "--weaken", name, binary=GABION_WEAK,
                preexec_fn=lone_network if name == "net" else None)
    assert out.returncode == 1 and out.stdout.startswith("{"), out.stderr
    weak = json.loads(out.stdout)
    said = outside(weak, "read back as planned")
    assert weak["passed"] is False and not said["ok"] and re.search(readback.NAMED[name], said["note"]), said
    if name in ATTACKED:
        before = {a["id"] for a in findings(report, "crit", "high", "med", "low")}
        new = [a for a in findings(weak, "crit", "high", "med", "low") if a["id"] not in before]
        assert new, (name, weak["outside"])
    if name == "net":
        assert not outside(weak, "TCP port")["ok"] and weak["aisi"]["network"]["level"] == "N0"


def test_every_weakness_is_planted():
    """All that the twin knows of a sandbox without a network; the kernel itself refuses to go on without no_new_privs."""
    assert {*ATTACKED, *READ_BACK, "nnp"} == {name for name in readback.NAMED if not name.startswith("net-")}


def test_an_engines_socket_in_a_mounted_folder_is_found(tmp_path):
    """A folder with a socket in it may be mounted: it is the user's own policy. The proof says what that means."""
    folder = tmp_path / "engine"
    folder.mkdir(mode=0o755)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(folder / "unix.socket"))
        os.chmod(folder / "unix.socket", 0o666)
        s.listen()
        policy = tmp_path / "policy.yaml"
        policy.write_text("version: 1\nfilesystem:\n  mounts:\n"
                          f"    - {{ source: {folder}, target: /var/lib/lxd }}\n")
        out = prove("--json", "--groups", "G", "--policy", str(policy))
    assert out.returncode == 1, out.stderr
    found = findings(json.loads(out.stdout), "crit", "high")
    assert any("lxd" in a["what"] + a["note"] for a in found), found


def test_a_tier_that_is_not_there_is_an_error_and_not_another_tier():
    for tier in ("gvisor", "microvm"):
        out = prove("--tier", tier)
        assert out.returncode == 125 and out.stdout == "", out.stdout
        assert f"--tier {tier}: this build has no such tier" in out.stderr and len(out.stderr.splitlines()) == 1
    assert prove("--tier", "ns", "--groups", "F").returncode == 0


PEERS = ("bwrap", "firejail", "crun", "runc", "runsc", "podman")


def test_other_sandboxes_are_attacked_or_left_out_with_the_reason(tmp_path):
    page, signed = tmp_path / "p.html", tmp_path / "p.json"
    out = prove("--groups", "AF", "--json", "--html", str(page), "-o", str(signed), "--against", ",".join(PEERS))
    assert out.returncode == 0, out.stderr
    reports = json.loads(out.stdout)
    reports = {r["subject"]: r for r in (reports if isinstance(reports, list) else [reports])}
    left_out = dict(re.findall(r"^gabion: (\w+) is left out: (.+)$", out.stderr, re.M))
    assert {*reports, *left_out} == {"gabion", *PEERS} and not set(reports) & set(left_out)
    for name in PEERS:
        if not shutil.which(name, path="/usr/local/bin:/usr/sbin:/usr/bin"):
            assert left_out[name] == "it is not installed"
        elif name in left_out:
            assert left_out[name].startswith("it does not run here: "), left_out
        else:
            assert len(reports[name]["attempts"]) == len(reports["gabion"]["attempts"])
            assert reports[name]["command"].startswith(name + " ") and reports[name]["command"] in html.unescape(page.read_text())
    payload = json.loads(base64.b64decode(json.loads(signed.read_text())["payload"]))
    assert [r["subject"] for r in payload["against"]] == [n for n in reports if n != "gabion"]
    assert not list(pathlib.Path("/tmp").glob("gabion-bundle.*"))


DIES = """#!/bin/sh
# A sandbox that dies whenever it is asked for a certain attempt, and goes on after it when started again.
exec 3>&1
"$@" | while IFS= read -r line; do
    printf '%s\\n' "$line" >&3
    case $line in (A05*started*|A09b*started*|F01*started*) exit 0 ;; esac
done
"""


def test_a_sandbox_that_dies_of_an_attempt_is_started_again(tmp_path):
    wrapper = tmp_path / "dies"
    wrapper.write_text(DIES)
    wrapper.chmod(0o755)
    inner = "unshare -n setpriv --reuid 65534 --regid 65534 --clear-groups {}"
    out = prove("--groups", "AF", "--json", "--wrap", f"{wrapper} {inner}")
    own, other = json.loads(out.stdout)
    assert other["deaths"] >= 3
    assert [a["id"] for a in other["attempts"]] == [a["id"] for a in own["attempts"]]
    died = [a for a in other["attempts"] if a["id"].startswith(("A05", "A09b", "F01"))]
    assert len(died) == other["deaths"] and all(a["verdict"] == "stopped" for a in died)


GIVES_AWAY = """#!/bin/sh
chown 1234:1234 /dev/null
chmod 600 /dev/null
exec unshare -n setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""


def test_a_device_that_another_sandbox_gives_away_is_noticed_and_given_back(tmp_path):
    """On a node of our own, in a mount namespace of our own: never the host's."""
    wrapper, node = tmp_path / "gives-away", tmp_path / "null"
    wrapper.write_text(GIVES_AWAY)
    wrapper.chmod(0o755)
    os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.chmod(node, 0o666)
    out = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /dev/null && exec "$@"', str(node), GABION, "prove",
                          "--groups", "F", "--json", "--wrap", f"{wrapper} {{}}"], capture_output=True, text=True, timeout=60)
    own, other = json.loads(out.stdout)
    assert outside(own, "device nodes")["ok"] and other["passed"] is False
    assert outside(other, "device nodes") == {"what": "the host's device nodes are as they were", "ok": False, "note": "/dev/null"}
    assert node.stat().st_uid == 0 and stat.S_IMODE(node.stat().st_mode) == 0o666


def test_the_probe_refuses_to_be_real_root_without_a_sandbox(tmp_path):
    """Only its network is taken away, in case it did not refuse."""
    probe = pathlib.Path(GABION).parents[1] / "probe/gabion-probe"
    out = subprocess.run(["unshare", "-n", str(probe)], capture_output=True, text=True, timeout=20)
    assert out.returncode == 2 and out.stdout == ""
    assert out.stderr == "gabion-probe: this is real root without a sandbox around it; nothing was tried\n"
    # Through prove it is no different: the subject is left with no report, and that is an error.
    out = prove("--groups", "A", "--wrap", "unshare -n {}")
    assert out.returncode == 125 and "real root without a sandbox" in out.stderr
    # The same program, as an ordinary user, does speak: so it was the refusal that kept it silent above.
    out = subprocess.run(["unshare", "-n", "setpriv", "--reuid", "65534", "--clear-groups", str(probe), "-g", "F"],
                         capture_output=True, text=True, timeout=60)
    assert out.returncode == 0 and out.stdout.startswith("gabion-probe 1\n")


def test_bad_words_are_refused():
    for words in (["--bogus"], ["x"], ["--against", "nothing"], ["--against", "bwrap,nothing"], ["--tier", "vm"],
                  ["--groups", "Z"], ["--limits", "none"], ["--policy", "/nonexistent"]):
        out = prove(*words)
        assert out.returncode == 125 and len(out.stderr.splitlines()) == 1 and out.stderr.startswith("gabion: "), words
