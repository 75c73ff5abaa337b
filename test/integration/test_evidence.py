"""Evidence: what was read back is what is there, from both sides; the plan is a pure value with a stable hash."""
import hashlib
import json
import os
import pathlib
import re

import harness
import pytest
from harness import CAPABILITY_SETS, NAMESPACES, find_below, gabion, run, started, status_of, until


def canonical_hash(doc):
    text = json.dumps(doc, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def statement(tmp_path):
    """Runs with --evidence and returns (statement, result)."""
    def make(*flags, command=("true",)):
        file = tmp_path / "evidence.json"
        result = run("--evidence", str(file), "--json", *flags, "--", *command)
        assert result.code == 0, result
        return json.loads(file.read_text()), result
    return make


def test_the_statement_is_what_proc_says_of_the_running_command(tmp_path):
    file = tmp_path / "evidence.json"
    with started("--evidence", str(file), "-m", "99M", "--pids", "77", "--", "cat") as p:
        pid = find_below(p.pid, "cat")
        doc, status = json.loads(file.read_text()), status_of(pid)
        seen = doc["command_seen_from_host"]
        for name in CAPABILITY_SETS:
            assert int(seen[name], 16) == int(status[name], 16)
        assert (seen["NoNewPrivs"], seen["Seccomp"]) == (int(status["NoNewPrivs"]), int(status["Seccomp"]))
        assert (seen["uid"], seen["gid"]) == (int(status["Uid"].split()[0]), int(status["Gid"].split()[0]))
        for name in NAMESPACES:
            assert doc["namespaces"][name] == {"sandbox": os.readlink(f"/proc/{pid}/ns/{name}"),
                                               "host": os.readlink(f"/proc/self/ns/{name}")}
        assert doc["uid_map"] == pathlib.Path(f"/proc/{pid}/uid_map").read_text()
        assert doc["time_offsets"] == pathlib.Path(f"/proc/{pid}/timens_offsets").read_text()
        mounts = [line.split() for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
        assert [(m["root"], m["target"], m["options"]) for m in doc["mounts"]] == [(m[3], m[4], m[5]) for m in mounts]
        limits = re.findall(r"Max open files\s+(\d+)", pathlib.Path(f"/proc/{pid}/limits").read_text())
        assert str(doc["limits"]["rlimits"]["nofile"]) == limits[0]
        groups = json.dumps(doc["limits"]["cgroup"])
        assert str(99 << 20) in groups and "77" in groups


def test_the_inside_view_is_in_the_statement_too(statement):
    doc, _ = statement()
    inside = doc["command_seen_from_inside"]
    assert {int(inside[name], 16) for name in CAPABILITY_SETS} == {0}
    assert (inside["uid"], inside["gid"], inside["Seccomp"], inside["NoNewPrivs"]) == (1000, 1000, 2, 1)


def test_the_filter_in_the_kernel_is_the_planned_one(statement):
    doc, _ = statement()
    assert doc["seccomp"]["hash_read_back"] == doc["seccomp"]["hash_planned"]
    assert doc["seccomp"]["profile"] == "agent"
    other, _ = statement("--syscalls", "strict")
    assert other["seccomp"]["hash_planned"] != doc["seccomp"]["hash_planned"]


def test_the_hash_in_the_result_is_that_of_the_statement(statement):
    doc, result = statement()
    assert result.json["evidence"] == canonical_hash(doc)
    assert (result.json["policy"], result.json["sandbox"]) == (doc["policy"], doc["sandbox"])
    assert doc["type"] == "gabion.evidence/v1" and doc["tier"] == "ns" and doc["rootless"] is False


def test_the_hardened_default_has_no_deviations(statement):
    assert statement()[0]["deviations"] == []


@pytest.mark.parametrize("flags,word", [
    (["--syscalls", "debug"], "debug"),
    (["--user", "root"], "uid 0"),
    (["--limits=rlimit"], "no control group"),
    (["--off", "io"], "io: off"),
    (["--off", "landlock"], "landlock: off"),
    (["--allow-sensitive-mounts", "-v", "/etc:/mnt/etc:ro"], "/mnt/etc"),
], ids=lambda v: v[0] if isinstance(v, list) else "")
def test_every_weaker_choice_is_listed(flags, word, statement):
    doc, _ = statement(*flags)
    assert [d for d in doc["deviations"] if word in d], doc["deviations"]


def test_a_writable_mount_of_root_is_listed(statement, shared):
    doc, _ = statement("-v", f"{shared}:/mnt/d:rw")
    assert len(doc["deviations"]) == 1 and "/mnt/d" in doc["deviations"][0]
    assert statement("-v", f"{shared}:/mnt/d:ro")[0]["deviations"] == []


def test_without_control_groups_rlimits_stand_in(statement):
    doc, _ = statement("--limits=rlimit", "-m", "300M", "--pids", "50")
    assert "cgroup" not in doc["limits"]
    assert doc["limits"]["rlimits"]["as"] == 300 << 20 and doc["limits"]["rlimits"]["nproc"] == 50


def test_the_card_is_short_and_says_what_deviates():
    result = run("--show-evidence", "--", "echo", "out")
    assert result.out == "out\n"
    lines = result.err.splitlines()
    assert lines[0].startswith("gabion evidence  sandbox ") and len(lines) <= 12
    assert "\x1b" not in result.err  # no colours outside a terminal
    for word in ("capabilities", "identity", "namespaces", "mounts", "seccomp", "landlock", "limits", "network"):
        assert [ln for ln in lines if ln.startswith(f"  ok {word}")], word
    assert "none from the hardened default" in lines[-1]
    weaker = run("--show-evidence", "--syscalls", "debug", "--user", "root", "--", "true").err
    assert weaker.count("!! deviation") == 2


def test_the_card_comes_before_the_first_output_of_the_command(shared):
    p = run("--show-evidence", "--", "sh", "-c", "echo first >&2")
    assert p.err.index("gabion evidence") < p.err.index("first")


def plan(*flags):
    result = gabion("plan", "--json", *flags, "--", "true")
    assert result.code == 0, result
    return json.loads(result.out)


def test_a_plan_is_the_same_for_the_same_input(statement):
    assert plan() == plan()
    assert plan()["plan"] == statement()[0]["plan"]


def test_a_plan_changes_with_every_flag(shared):
    variants = [[], ["-m", "100M"], ["--cpus", "0.5"], ["--pids", "9"], ["--disk", "10M"], ["--timeout", "9s"],
                ["--output", "9M"], ["--io", "9M"], ["--files", "99"], ["--user", "root"], ["--syscalls", "debug"],
                ["--syscalls", "strict"], ["--name", "x"], ["--limits=rlimit"], ["--off", "io"], ["--off", "landlock"],
                ["-v", f"{shared}:/mnt/a"], ["-v", f"{shared}:/mnt/a:rw"], ["-v", f"{shared}:/mnt/b"]]
    hashes = [plan(*flags)["plan"] for flags in variants]
    twins = [variants[i] for i, h in enumerate(hashes) if hashes.count(h) > 1]
    assert not twins


def test_a_plan_names_what_a_command_would_get():
    doc = plan("-m", "64M")
    assert doc["limits"]["memory_bytes"] == 64 << 20
    assert "none" in doc["capabilities"] and doc["no_new_privs"] is True
    assert "mount" in doc["seccomp"]["refused"] and "read" in doc["seccomp"]["allowed"]
    text = gabion("plan", "-m", "64M", "--", "true").out
    assert "memory_bytes: 67108864" in text and doc["plan"] in text


def test_a_plan_starts_nothing(shared):
    with_command = gabion("plan", "-v", f"{shared}:/mnt/d:rw", "--", "touch", "/mnt/d/ran")
    assert with_command.code == 0 and not (shared / "ran").exists()
    before = harness.mounts()
    plan()
    assert not harness.wait_clean(before, seconds=1)


def test_a_policy_file_and_flags_give_the_same_plan(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("version: 1\nlimits:\n  memory: 100M\n  pids: 9\n")
    assert plan("--policy", str(file))["plan"] == plan("-m", "100M", "--pids", "9")["plan"]
    checked = gabion("policy", "check", str(file))
    assert checked.code == 0 and "sha256:" in checked.out
