"""`gabion prove` attacks a sandbox from inside and watches from outside; planted weaknesses must be found and named."""
import json
import re
import subprocess

import pytest
from harness import GABION, GABION_WEAK


def prove(*flags, binary=GABION, timeout=120):
    return subprocess.run([str(binary), "prove", *flags], capture_output=True, text=True, timeout=timeout)


@pytest.fixture(scope="module")
def report():
    out = prove("--json")
    assert out.returncode == 0, out.stdout[-4000:] + out.stderr
    return json.loads(out.stdout)


def findings(report, *severities):
    return [a for a in report["attempts"]
            if a["severity"] in severities and a["verdict"] == ("stopped" if a["severity"] == "control" else "reached")]


def test_the_hardened_default_has_no_serious_finding(report):
    assert report["passed"] is True
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


def test_ordinary_work_is_not_refused(report):
    assert findings(report, "control") == []
    assert any(a["severity"] == "control" for a in report["attempts"])


def test_a_person_sees_the_vector_and_not_only_a_total():
    out = prove("--groups", "ABCDF")
    assert out.returncode == 0
    assert len(re.findall(r"^  [A-J] .*\|", out.stdout, re.M)) == 10
    assert "passed" in out.stdout.splitlines()[-1]


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


def test_the_same_attempts_find_much_without_a_sandbox():
    """Otherwise the proof would prove nothing. An ordinary user on the bare host (but without its network), by --wrap."""
    out = prove("--json", "--groups", "ABCDEFGJ", "--wrap", "unshare -n setpriv --reuid 65534 --regid 65534 --clear-groups {}")
    bare = json.loads(out.stdout)[1]
    assert bare["passed"] is False
    assert len(findings(bare, "crit", "high")) >= 10


# What is left out, and the groups that are tried then. Left out on purpose: what exec() takes away anyway (capabilities,
# descriptors), and what only the host can see (the agent's environment, securebits); test_readback.py has those.
PLANTED = {
    "net": "H",
    "pid-ns": "EJ",
    "uts": "J",
    "ipc": "G",
    "uid-map": "A",
    "shared": "G",
    "mask": "E",
    "memory": "I",
    "tasks": "I",
    "seccomp": "C",
    "rlimit": "I",
    "usr-rw": "G",
    "root-rw": "G",
    "extra-mount": "G",
    "cgroup-ns": "G",
    "time": "J",
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_weakness_is_found(name, report):
    out = prove("--json", "--groups", PLANTED[name], "--weaken", name, binary=GABION_WEAK)
    assert out.stdout.startswith("{"), out.stderr
    weak = json.loads(out.stdout)
    before = {a["id"] for a in findings(report, "crit", "high", "med", "low")}
    new = [a for a in findings(weak, "crit", "high", "med", "low") if a["id"] not in before]
    assert new or not all(c["ok"] for c in weak["outside"]), (name, weak["outside"])


def test_bad_words_are_refused():
    for words in (["--bogus"], ["x"], ["--against", "nothing"], ["--limits", "none"], ["--policy", "/nonexistent"]):
        out = prove(*words)
        assert out.returncode == 125 and len(out.stderr.splitlines()) == 1 and out.stderr.startswith("gabion: "), words
