"""`gabion run`: what a caller is promised about output, exit codes, the result document, environment and names."""
import json
import os
import re
import time

import pytest
from harness import gabion, python, run, sh

RESULT_FIELDS = {
    "sandbox", "exit_code", "signal", "reason", "duration_ms", "cpu_ms", "memory_peak_bytes", "orphans_ended",
    "output_truncated", "denials", "denials_suppressed", "policy", "evidence",
}
REFUSED_CALL = "import os; os.chroot('/')"  # refused, and worth a report


def test_output_goes_to_the_stream_it_was_written_to():
    result = sh("echo out; echo err >&2")
    assert (result.code, result.out, result.err) == (0, "out\n", "err\n")


def test_bytes_pass_unchanged():
    every = bytes(range(256)) * 3
    result = run("--", "cat", stdin=every)
    assert result.raw == every


def test_nothing_is_added_to_the_output_of_a_quiet_command():
    result = run("--", "true")
    assert (result.code, result.raw, result.raw_err) == (0, b"", b"")


@pytest.mark.parametrize("code", [0, 1, 7, 42, 124, 125, 126, 127, 255])
def test_the_exit_code_is_the_commands(code):
    assert sh(f"exit {code}").code == code


@pytest.mark.parametrize("signo", [1, 2, 6, 9, 11, 15])
def test_death_by_signal_is_128_plus_n(signo):
    result = sh(f"kill -{signo} $$", "--json")
    assert result.code == 128 + signo
    assert (result.json["signal"], result.json["reason"]) == (signo, "signalled")


def test_time_limit_is_124():
    begin = time.monotonic()
    result = run("--json", "--timeout", "300ms", "--", "sleep", "30")
    assert result.code == 124
    assert 0.3 <= time.monotonic() - begin < 2
    assert result.json["reason"] == "timeout"
    assert [d["code"] for d in result.json["denials"]] == ["limit.time"]


@pytest.mark.parametrize("command,code,word", [
    ("no-such-command", 127, "not found"),
    ("/usr/bin/no-such-command", 127, "not found"),
    ("/etc/passwd", 126, "Permission denied"),
    ("/usr", 126, "Permission denied"),
])
def test_what_cannot_be_executed_is_126_or_127(command, code, word):
    result = run("--json", "--", command)
    assert result.code == code, result
    assert result.json["exit_code"] == code
    assert result.err.startswith(f"gabion: {command}: ") and word in result.err
    assert len(result.err.splitlines()) == 1


def test_the_result_document_has_the_promised_fields():
    result = sh("exit 7", "--json")
    assert RESULT_FIELDS <= set(result.json)
    doc = result.json
    assert (doc["exit_code"], doc["reason"], doc["signal"], doc["denials"]) == (7, "exited", None, [])
    assert doc["output_truncated"] is False and doc["denials_suppressed"] == doc["orphans_ended"] == 0
    assert re.fullmatch(r"[0-9a-z]{20}", doc["sandbox"])
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", doc["policy"]) and re.fullmatch(r"sha256:[0-9a-f]{64}", doc["evidence"])


def test_the_result_is_the_last_line_after_the_commands_output():
    result = sh("echo one; echo two", "--json")
    assert result.lines[:2] == ["one", "two"] and len(result.lines) == 3
    assert result.json["exit_code"] == 0


def test_the_result_has_a_line_of_its_own_after_unfinished_output():
    assert sh("printf unfinished", "--json").json["reason"] == "exited"


def test_the_result_can_go_to_a_file(tmp_path):
    file = tmp_path / "result.json"
    result = sh("echo out", f"--json={file}")
    assert result.out == "out\n"
    assert json.loads(file.read_text())["reason"] == "exited"


def test_time_and_memory_in_the_result_are_measured():
    result = python("import time\nx = bytearray(64 << 20)\nwhile time.process_time() < 0.3: pass", "--json")
    doc = result.json
    assert 300 <= doc["duration_ms"] < 5000
    assert 200 <= doc["cpu_ms"] < 5000
    assert 64 << 20 <= doc["memory_peak_bytes"] < 200 << 20


def test_each_sandbox_has_its_own_id():
    assert len({run("--json", "--", "true").json["sandbox"] for _ in range(5)}) == 5


def test_a_denial_is_told_on_stderr_and_in_the_result_by_one_event_id():
    result = python(REFUSED_CALL, "--json")
    [denial] = result.json["denials"]
    assert denial["code"] == "sys.call_refused" and "chroot" in denial["what"]
    assert set(denial) == {"event", "time", "code", "what", "rule", "policy", "hint"}
    assert re.fullmatch(r"evt_[0-9a-z]{20}", denial["event"])
    [line] = [ln for ln in result.err.splitlines() if ln.startswith("gabion: denied")]
    assert denial["event"] in line and denial["code"] in line and denial["hint"] in line


def test_quiet_keeps_denials_out_of_stderr_but_in_the_result():
    result = python("import os\ntry: os.chroot('/')\nexcept OSError: pass", "--json", "-q")
    assert result.err == ""
    assert [d["code"] for d in result.json["denials"]] == ["sys.call_refused"]


def test_a_flood_of_refused_calls_is_bounded():
    begin = time.monotonic()
    result = python("import os\nfor i in range(20000):\n  try: os.chroot('/')\n  except OSError: pass", "--json")
    assert result.code == 0, result
    assert time.monotonic() - begin < 10
    assert len(result.json["denials"]) < 200 and result.json["denials_suppressed"] > 0
    assert len(result.err.splitlines()) < 200


def test_the_working_directory_is_home_or_what_was_asked_for():
    assert run("--", "pwd").out == "/home/user\n"
    assert run("-w", "/usr/bin", "--", "pwd").out == "/usr/bin\n"
    assert run("--user", "root", "--", "pwd").out == "/root\n"


def test_the_callers_environment_does_not_leak():
    env = {**os.environ, "SECRET_CANARY": "canary-4711", "LD_PRELOAD": "", "HOME": "/canary-home"}
    result = run("--", "env", env=env)
    names = {line.split("=")[0] for line in result.lines}
    assert "canary" not in result.out
    assert names <= {"PATH", "HOME", "USER", "LANG", "ASAN_OPTIONS"}, names
    assert "HOME=/home/user" in result.lines


def test_variables_are_set_replaced_and_passed_on_request():
    env = {**os.environ, "PASSED": "from the caller"}
    result = run("-e", "A=1", "-e", "EMPTY=", "-e", "PASSED", "-e", "HOME=/tmp", "-e", "TWO=a=b", "--", "env", env=env)
    assert {"A=1", "EMPTY=", "PASSED=from the caller", "HOME=/tmp", "TWO=a=b"} <= set(result.lines)
    assert "HOME=/home/user" not in result.lines


def test_the_name_is_the_host_name_inside():
    result = sh("hostname; cat /etc/hostname; getent hosts web-7", "--name", "web-7")
    assert result.lines[:2] == ["web-7", "web-7"] and "web-7" in result.lines[2]


def test_without_a_name_the_hosts_name_stays_outside():
    result = sh("hostname; cat /etc/hostname /etc/hosts")
    assert result.lines[0] == "gabion"
    assert os.uname().nodename not in result.out.split()


def test_options_end_at_the_command():
    assert run("echo", "--json", "-v").out == "--json -v\n"


def test_flags_win_over_the_policy_file(tmp_path):
    policy = tmp_path / "p.yaml"
    policy.write_text("version: 1\nlimits:\n  pids: 77\n  memory: 100M\n")
    doc = json.loads(gabion("plan", "--json", "--policy", str(policy), "--pids", "33", "--", "true").out)
    assert doc["limits"]["pids"] == 33 and doc["limits"]["memory_bytes"] == 100 << 20


def test_files_are_shared_as_asked_and_belong_to_the_caller(shared):
    (shared / "in.txt").write_text("from the host")
    result = sh("cat /mnt/d/in.txt && echo made > /mnt/d/out.txt", "-v", f"{shared}:/mnt/d:rw")
    assert (result.code, result.out) == (0, "from the host")
    out = shared / "out.txt"
    assert out.read_text() == "made\n" and out.stat().st_uid == os.getuid()


def test_a_mount_is_read_only_unless_asked_otherwise(shared):
    (shared / "f").write_text("old")
    result = sh("cat /mnt/d/f; echo new > /mnt/d/f; rm /mnt/d/f; touch /mnt/d/g", "-v", f"{shared}:/mnt/d")
    assert result.code != 0 and result.out == "old"
    assert (shared / "f").read_text() == "old" and os.listdir(shared) == ["f"]


def test_a_single_file_can_be_mounted(shared):
    (shared / "f").write_text("one file")
    assert run("-v", f"{shared}/f:/mnt/f:ro", "--", "cat", "/mnt/f").out == "one file"


def test_nothing_written_inside_survives():
    assert sh("echo x > /tmp/f; echo x > ~/f; ls /tmp ~").code == 0
    assert sh("ls -A /tmp /home/user /run /dev/shm").out.split() == ["/dev/shm:", "/home/user:", "/run:", "/tmp:"]
