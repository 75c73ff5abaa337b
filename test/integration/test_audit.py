"""A run and its records: what is recorded, that it cannot be left out or changed unnoticed, and that content never is."""
import json
import os
import pathlib
import signal
import subprocess
import time

import harness
import pytest
from audit_log import assert_whole, audit, codes, fields, find, records, verify
from harness import ROOT, gabion, run, sh, started, until

LIFE = ["log.started", "sandbox.created", "exec.started", "evidence", "exec.ended", "sandbox.ended", "sandbox.removed"]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def only_sandbox(log):
    return find(log, "sandbox.created")[0]["device"]["container"]["uid"]


def test_a_run_is_recorded_from_creation_to_removal(log):
    assert sh("exit 3", "--audit", log).code == 3
    assert codes(log) == LIFE
    created, started_, ended = (find(log, c)[0] for c in ("sandbox.created", "exec.started", "exec.ended"))
    assert fields(created)["tier"] == "ns" and fields(created)["memory_bytes"] == 512 << 20
    assert created["policy"]["uid"].startswith("sha256:")
    assert started_["process"]["name"] == "sh" and fields(started_)["category"] == "shell"
    assert ended["exit_code"] == 3 and fields(ended)["reason"] == "exited"
    items = find(log, "sandbox.removed")[0]["unmapped"]["items"]
    assert {i["kind"] for i in items} >= {"processes", "namespaces", "files", "cgroup"}
    assert {i["result"] for i in items} == {"removed"}
    assert_whole(log)


def test_without_a_log_nothing_is_recorded_and_nothing_said(tmp_path):
    r = run("--", "true", cwd=tmp_path)
    assert r.code == 0 and r.err == "" and not list(tmp_path.iterdir())


def test_a_refusal_has_one_id_everywhere(log):
    r = sh("unshare -U true", "--audit", log, "--json")
    denial = [d for d in r.json["denials"] if d["code"] == "sys.call_refused"][0]
    record = find(log, "call.refused")[0]
    assert denial["event"] in r.err
    assert record["metadata"]["uid"] == denial["event"]
    assert record["status_code"] == "sys.call_refused" and record["action_id"] == 2
    assert record["kernel"]["name"].startswith("unshare")


@pytest.mark.parametrize("flags, script, reason, code", [
    (["--timeout", "300ms"], "sleep 20", "timeout", "limit.time"),
    (["-m", "32M", "--disk", "16M"], "exec python3 -c 'x = bytearray(200 << 20)'", "oom", "limit.memory"),
    (["--output", "4K"], "yes", "limit", "limit.output"),
])
def test_limits_are_recorded_with_their_reason(log, flags, script, reason, code):
    sh(script, "--audit", log, *flags)
    assert fields(find(log, "sandbox.ended")[0])["reason"] == reason
    assert code in [r["status_code"] for r in find(log, "limit.reached")]
    assert_whole(log)


def test_content_never_appears(log, tmp_path):
    """Arguments, values, input, output and file contents of a run with one canary each."""
    names = ("argument", "value", "input", "output", "error", "file", "inner")
    canary = {name: f"canary-{name}-{os.urandom(8).hex()}" for name in names}
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "data").write_text(canary["file"])
    r = run("--audit", log, "-e", f"SECRET={canary['value']}", "-v", f"{shared}:/data:rw", "--", "sh", "-c",
            'cat; echo "$1"; echo "$2"; echo "$3" >&2; cat /data/data; echo "$3" >/data/new; unshare -U true; exit 7',
            "sh", canary["argument"], canary["output"], canary["error"], stdin=canary["input"])
    assert r.code == 7
    for name in ("argument", "input", "output", "file"):
        assert canary[name] in r.out, "the canary was not where it should have been seen"
    text = b"".join(p.read_bytes() for p in log.rglob("*") if p.is_file())
    assert len(text) > 20000
    for name, value in canary.items():
        assert value.encode() not in text, name


def test_a_changed_byte_is_found_and_named(log):
    for _ in range(2):
        sh("true", "--audit", log)
    file = log / "local/000000000001.log"
    data = file.read_bytes()
    lines = data.splitlines(True)
    at = sum(map(len, lines[:5])) + lines[5].index(b'"reason"') + 3
    file.write_bytes(data[:at] + b"X" + data[at + 1:])
    r = verify(log, "--json")
    assert r.code == 1
    assert r.json[0]["record"] == 6 and r.json[0]["line"] == 6 and r.json[0]["file"] == file.name
    assert "record 6" in verify(log).out
    file.write_bytes(data)
    assert_whole(log)


def test_verification_needs_the_public_key_and_nothing_else(log, tmp_path):
    sh("true", "--audit", log)
    key = tmp_path / "key"
    key.write_bytes((log / "keys/signing.pub").read_bytes())
    for path in (log / "keys").iterdir():
        path.unlink()
    (log / "keys").rmdir()
    assert verify(log, "--key", key).code == 0
    key.write_text("0" * 64 + "\n")
    r = verify(log, "--key", key)
    assert r.code == 1 and "not trusted" in r.out


def test_no_audit_record_no_run(log, tmp_path):
    """The log cannot be written: the command must not run, and the exit code is Gabion's own."""
    (tmp_path / "out").mkdir()
    marker = ["-v", f"{tmp_path / 'out'}:/out:rw", "--", "touch", "/out/ran"]
    file = tmp_path / "file"
    file.write_text("")
    cases = [file / "below", "/proc/nowhere"]
    sh("true", "--audit", log)
    broken = log / "local/000000000001.log"
    broken.write_bytes(broken.read_bytes()[:-20])
    for place in [*cases, log]:
        r = run("--audit", place, *marker)
        assert r.code == 125 and "no audit record, no run" in r.err, r
        assert r.err.count("\n") == 1
    assert not (tmp_path / "out/ran").exists()


def test_a_log_without_room_refuses(log):
    log.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256K,mode=700", "gabion-test", log], check=True)
    try:
        assert sh("true", "--audit", log).code == 0
        (log / "full").write_bytes(b"")
        with open(log / "full", "wb", buffering=0) as f, pytest.raises(OSError):
            while True:
                f.write(bytes(4096))
        r = run("--audit", log, "--", "true")
        assert r.code == 125 and "No space left" in r.err, r
        (log / "full").unlink()
        assert_whole(log)
        assert sh("true", "--audit", log).code == 0
        assert_whole(log)
    finally:
        subprocess.run(["umount", log], check=True)


def test_a_notary_that_dies_ends_the_sandbox(log):
    with started("--audit", log, "--", "sleep", "60") as p:
        # The notary is the child that has the log open.
        def beside():
            return [pid for pid in harness.descendants(p.pid)
                    if any(str(log) in os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir())]
        assert until(lambda: log.exists() and "evidence" in codes(log) and verify(log).code == 0)
        pid = until(beside)[0]
        os.kill(pid, signal.SIGKILL)
        assert p.wait(timeout=10) == 125
        assert b"the audit log failed, and the sandbox was ended" in p.stderr.read()
    assert_whole(log)


def test_a_supervisor_that_is_killed_is_recorded_as_lost(log):
    with started("--audit", log, "--", "sleep", "60") as p:
        assert until(lambda: log.exists() and "evidence" in codes(log))
        p.kill()
    assert until(lambda: "sandbox.ended" in codes(log))
    assert fields(find(log, "sandbox.ended")[0])["reason"] == "lost"
    assert_whole(log)


def test_ctrl_c_does_not_take_the_notary_away(log):
    with started("--audit", log, "--", "sleep", "60", start_new_session=True) as p:
        assert until(lambda: log.exists() and "evidence" in codes(log))
        os.killpg(p.pid, signal.SIGINT)
        assert p.wait(timeout=10) == 130
    assert codes(log)[-1] == "sandbox.removed"
    assert_whole(log)


def test_tenants_have_chains_of_their_own(log):
    for tenant in ("acme", "other"):
        sh("true", "--audit", log, "--tenant", tenant)
    assert codes(log, "acme") == codes(log, "other") == LIFE
    assert b'"other"' not in (log / "acme/000000000001.log").read_bytes()
    r = assert_whole(log)
    assert r.out.startswith("acme: ok") and "other: ok" in r.out
    assert run("--audit", log, "--tenant", "../x", "--", "true").code == 125


def test_show_is_one_ordered_timeline(log):
    for _ in range(2):
        sh("unshare -U true", "--audit", log)
    sandbox = only_sandbox(log)
    r = audit("show", "--log", log, sandbox)
    assert r.code == 0
    numbers = [int(line[23:].split()[0]) for line in r.lines]
    assert numbers == sorted(numbers) and len(numbers) == 7
    assert "call.refused" in r.out and "DENIED unshare" in r.out
    assert [json.loads(line)["device"]["container"]["uid"] for line in
            audit("show", "--log", log, "--json", sandbox).lines] == [sandbox] * 7
    assert audit("show", "--log", log, "a" * 20).code == 125
    assert audit("show", "--log", log, "../../x").code == 125


def test_tail_follows(log):
    sh("true", "--audit", log)
    assert len(audit("tail", "--log", log, "-n", "3").lines) == 3
    with subprocess.Popen([harness.GABION, "audit", "tail", "--log", log, "-n", "1", "-f"],
                          stdout=subprocess.PIPE) as p:
        assert b"sandbox.removed" in p.stdout.readline()
        sh("true", "--audit", log)
        assert b"sandbox.created" in p.stdout.readline()
        p.terminate()


def test_a_head_kept_elsewhere_finds_a_log_put_back(log, tmp_path):
    sh("true", "--audit", log)
    subprocess.run(["cp", "-a", log, tmp_path / "backup"], check=True)
    sh("true", "--audit", log)
    head = tmp_path / "head"
    head.write_text(audit("head", "--log", log).out)
    assert_whole(log, "--head", head)
    assert_whole(tmp_path / "backup")
    r = verify(tmp_path / "backup", "--head", head)
    assert r.code == 1 and "covers 13 records" in r.out


def test_keys_change_and_old_and_new_verify(log, tmp_path):
    sh("true", "--audit", log)
    first = tmp_path / "first"
    first.write_bytes((log / "keys/signing.pub").read_bytes())
    assert audit("rotate-key", "--log", log).code == 0
    sh("true", "--audit", log)
    second = log / "keys/signing.pub"
    assert first.read_bytes() != second.read_bytes()
    assert_whole(log, "--key", first)
    assert_whole(log, "--key", second)
    assert "log.key_changed" in codes(log)


def test_dossier_verifies_elsewhere_and_with_openssl(log, tmp_path):
    sh("unshare -U true", "--audit", log)
    sh("true", "--audit", log)
    sandbox, key, file = only_sandbox(log), log / "keys/signing.pub", tmp_path / "dossier.json"
    assert gabion("dossier", "--log", log, "-o", file, sandbox).code == 0
    r = gabion("verify", "--key", key, file)
    assert r.code == 0 and f"sandbox {sandbox}" in r.out and "7 records" in r.out
    assert "evidence, plan and policy match, the receipt matches" in r.out
    assert subprocess.run([ROOT / "tools/verify", key, file], check=False, capture_output=True).returncode == 0
    payload = json.loads(subprocess.run([ROOT / "tools/verify", "--payload", key, file], check=True,
                                        capture_output=True).stdout.split(b"\n", 1)[1])
    assert payload["sandbox"] == sandbox
    start = json.loads(payload["start"])
    assert start["evidence"]["sandbox"] == sandbox and start["policy"]["name"] == "default"
    text = file.read_text()
    for old, new in (('"sig": "', '"sig": "A'), ('"payload": "ey', '"payload": "eyA')):
        file.write_text(text.replace(old, new))
        assert gabion("verify", "--key", key, file).code == 125
        assert subprocess.run([ROOT / "tools/verify", key, file], check=False, capture_output=True).returncode != 0


def test_dossier_of_a_changed_log_is_refused(log):
    sh("true", "--audit", log)
    file = log / "local/000000000001.log"
    file.write_bytes(file.read_bytes().replace(b'"exit_code":0', b'"exit_code":1', 1))
    r = gabion("dossier", "--log", log, only_sandbox(log))
    assert r.code == 125 and "does not verify" in r.err


# What OCSF 1.8.0 asks of the classes that we use (docs/audit.md): required beyond the base, and all that is known.
BASE = {"activity_id", "category_uid", "class_uid", "type_uid", "severity_id", "time", "metadata"}
KNOWN = BASE | {"activity_name", "message", "status_id", "status_code", "duration", "unmapped", "actor", "device",
                "action_id", "disposition_id", "firewall_rule", "policy", "is_alert"}
CLASSES = {
    1001: ({"actor", "device", "file"}, set()), 1003: ({"actor", "device", "kernel"}, set()), 1008: (set(), set()),
    1007: ({"actor", "device", "process"}, {"exit_code"}), 2003: ({"finding_info", "compliance"}, {"resources"}),
    2004: ({"finding_info"}, {"evidences", "resources"}), 3004: ({"entity"}, set()),
    4001: (set(), {"src_endpoint", "dst_endpoint", "connection_info", "traffic"}), 6002: ({"app"}, set()),
    6003: ({"actor", "api", "src_endpoint"}, {"resources"}),
}


def test_records_have_the_shape_of_ocsf(log):
    sh("unshare -U true; exit 1", "--audit", log, "--timeout", "20s")
    sh("sleep 9", "--audit", log, "--timeout", "200ms")
    seen = set()
    for r in records(log):
        required, more = CLASSES[r["class_uid"]]
        seen.add(r["class_uid"])
        assert BASE | required <= set(r) <= KNOWN | required | more, r
        assert r["type_uid"] == r["class_uid"] * 100 + r["activity_id"]
        assert r["category_uid"] == r["class_uid"] // 1000
        assert r["metadata"]["version"] == "1.8.0" and r["metadata"]["product"]["name"] == "Gabion"
        assert {"host", "container", "security_control"} == set(r["metadata"]["profiles"])
        assert r["activity_id"] != 99 or r["activity_name"]
        assert abs(r["time"] - time.time() * 1000) < 600000
        assert r["actor"].keys() & {"user", "app_uid"}
    assert seen == {1003, 1007, 1008, 2003, 6002}
