"""Speaking to a sandbox that runs: another policy, what it can reach, and the log of what it tried."""
import json
import os
import signal
import subprocess

import egress_world as world
import pytest
from harness import GABION, find_below, gabion, run, started
from network import FETCH, NAME, fetch, flags, log, records, sandbox_id, web  # noqa: F401


def test_a_policy_can_be_changed_while_the_command_runs(web, log, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("version: 1\nnetwork:\n  allow:\n    - { host: other.example }\n")
    back = tmp_path / "back.yaml"
    back.write_text(f"version: 1\nnetwork:\n  allow:\n    - {{ host: {NAME}, ports: [80] }}\n")
    with started(*flags(web, log), "--", "/usr/bin/python3", "-c", FETCH) as p:
        assert fetch(p) == "200"
        name = sandbox_id(p)
        result = gabion("policy", "update", name, other)
        assert result.code == 0 and "sha256:" in result.out, result
        assert fetch(p) == "gaierror"
        shown = json.loads(gabion("policy", "show", name).out)
        assert shown["policy"]["network"]["allow"] == [{"host": "other.example", "ports": [80, 443]}]
        assert [(d["what"], d["policy"]) for d in shown["denials"]] == [(NAME, shown["policy_hash"])]
        assert gabion("policy", "update", name, back).code == 0
        assert fetch(p) == "200"
        assert gabion("policy", "update", name, tmp_path / "none.yaml").code == 125
        p.stdin.close()
        assert p.wait(10) == 0
    assert [r["kind"] for r in records(log)].count("policy") == 2


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("network", ["{ allow: [{ host: other.example }] }", "{ preset: none }"])
def test_old_connections_end_only_when_asked(drop, network, log, tmp_path):
    server = world.Server(world.echo)
    other = tmp_path / "other.yaml"
    other.write_text(f"version: 1\nnetwork: {network}\n")
    script = """
import socket, sys
s = socket.create_connection(("web.example", 9000), 5)
for line in sys.stdin:
    try:
        s.sendall(b"x")
        print(s.recv(1).decode() or "closed", flush=True)
    except OSError as e:
        print(type(e).__name__, flush=True)
"""
    words = ["--allow", f"{NAME}:9000", "--resolve", f"{NAME}:9000=127.0.0.1:{server.port}", "--egress-log", log]
    try:
        with started(*words, "--", "/usr/bin/python3", "-c", script) as p:
            assert fetch(p) == "x"
            result = gabion("policy", "update", *(["--drop"] if drop else []), sandbox_id(p), other)
            assert result.code == 0, result
            assert (fetch(p) == "x") != drop
    finally:
        server.close()


def test_an_update_cannot_do_more_than_the_network(web, log, tmp_path):
    more = tmp_path / "more.yaml"
    more.write_text("version: 1\nlimits: { memory: 1G }\nnetwork: { default: deny }\n")
    opens = tmp_path / "opens.yaml"
    opens.write_text(f"version: 1\nnetwork:\n  allow:\n    - {{ host: {NAME}, methods: [GET] }}\n")
    with started(*flags(web, log), "--", "sleep", "30") as p:
        name = sandbox_id(p)
        result = gabion("policy", "update", name, more)
        assert result.code == 125 and "limits" in result.err, result
        result = gabion("policy", "update", name, opens)
        assert result.code == 125 and "TLS" in result.err, result


def test_an_unknown_or_foreign_sandbox_is_an_error(web, log):
    for command in (["reach"], ["policy", "update"]):
        result = gabion(*command, "a" * 20, *(["/dev/null"] if "update" in command else []))
        assert result.code == 125 and len(result.err.splitlines()) == 1, result
    with started(*flags(web, log), "--", "sleep", "30") as p:
        name = sandbox_id(p)
        # somebody else does not even see the run directory
        result = gabion("reach", name, preexec_fn=lambda: os.setuid(65534))
        assert result.code == 125 and "no sandbox of yours" in result.err, result


def test_a_sandbox_without_a_network_is_said_to_have_none(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(f"version: 1\nnetwork:\n  allow:\n    - {{ host: {NAME} }}\n")
    with started("--", "sleep", "30") as p:
        find_below(p.pid, "sleep")
        name = sandbox_id(p)
        for command in (["reach", name], ["policy", "show", name], ["policy", "update", name, file]):
            result = gabion(*command)
            assert result.code == 125 and "the sandbox has no network" in result.err, result
            assert len(result.err.splitlines()) == 1


def test_reach_agrees_with_the_policy(web, log):
    words = flags(web, log, "--allow", "*.files.example:443", "--json")
    with started(*words, "--", "/usr/bin/python3", "-c", FETCH) as p:
        assert fetch(p) == "200"
        result = gabion("reach", "--json", sandbox_id(p))
        doc = json.loads(result.out)
        assert result.code == 0 and doc["different"] == 0, result
        seen = {(q["kind"], q["host"], q.get("port")): q for q in doc["probes"]}
        assert seen["name", NAME, 80]["reached"] and seen["name", "gabion-reach.files.example", 443]["reached"]
        assert not seen["address", "169.254.169.254", 80]["reached"]
        assert len(doc["probes"]) >= 15
        table = gabion("reach", sandbox_id(p))
        assert table.code == 0 and "0 different" in table.out
        p.stdin.close()
        out = p.stdout.read()
        assert p.wait(10) == 0
    assert json.loads(out.splitlines()[-1])["denials"] == []  # our own attempts are not the command's
    assert [r for r in records(log) if r.get("address") == "169.254.169.254"]  # but they are in the log


def test_reach_notices_a_difference(web, log):
    with started(*flags(web, log), "--", "/usr/bin/python3", "-c", FETCH) as p:
        assert fetch(p) == "200"
        name, egress = sandbox_id(p), find_below(p.pid, "gabion-egress")
        os.kill(egress, signal.SIGSTOP)  # allowed names resolve no more, and nobody refuses what the kernel took
        try:
            result = gabion("reach", name)
        finally:
            os.kill(egress, signal.SIGCONT)
        assert result.code == 1 and "DIFFERENT" in result.out, result


# --- the log ---

def test_the_log_is_shown_filtered_and_followed(web, log):
    for host in (NAME, "evil.example"):
        run(*flags(web, log), "--", "curl", "-sS", "-m", "10", f"http://{host}/")
    table = gabion("egress", "log", "--file", log)
    assert table.code == 0 and table.lines[0].startswith("TIME"), table
    assert [line for line in table.lines if f"{NAME}:80" in line and " allow " in line]
    denied = gabion("egress", "log", "--file", log, "--denied", "--json")
    assert {json.loads(line)["decision"] for line in denied.lines} == {"deny"}
    one = records(log)[0]["sandbox"]
    mine = gabion("egress", "log", "--file", log, "--sandbox", one, "--json")
    assert {json.loads(line)["sandbox"] for line in mine.lines} == {one}
    assert os.stat(log).st_mode & 0o777 == 0o600
    with subprocess.Popen([GABION, "egress", "log", "-f", "--json", "--file", log], stdout=subprocess.PIPE) as p:
        try:
            before = len(records(log))
            for _ in range(before):
                p.stdout.readline()
            run(*flags(web, log), "--", "curl", "-sS", f"http://{NAME}/")
            assert json.loads(p.stdout.readline())["name"] == NAME
        finally:
            p.kill()


def test_a_log_that_cannot_be_written_stops_the_start(web, tmp_path, shared):
    folder = tmp_path / "folder"
    folder.mkdir()
    result = run(*flags(web, folder), "-v", f"{shared}:/mnt/s:rw", "--", "touch", "/mnt/s/f")
    assert result.code == 125 and "egress log" in result.err and not (shared / "f").exists(), result


def test_a_full_log_is_kept_once(web, log):
    log.parent.mkdir()
    with open(log, "wb") as f:
        f.truncate(16 << 20)
    assert run(*flags(web, log), "--", "curl", "-sS", f"http://{NAME}/").code == 0
    assert os.path.getsize(f"{log}.1") == 16 << 20 and 0 < os.path.getsize(log) < 1 << 20
