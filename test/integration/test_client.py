"""The sub-commands against a real server: what they print, what they return, and what they say when something is wrong."""
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import time

import harness
import pytest
from client import Cli, box, cli  # noqa: F401  pylint: disable=unused-import


def test_a_sandbox_has_an_id_and_a_name(cli):
    ident = cli.ok("create", "--name", "first", "--metadata", "k 1=v&2", "--timeout", "2h").strip()
    other = cli.ok("create").strip()
    assert len(ident) == len(other) == 20
    lines = cli.ok("ps").splitlines()
    assert lines[0].split() == ["ID", "NAME", "TEMPLATE", "STATE", "CPU", "MEM", "AGE", "ENDS"]
    rows = {line.split()[0]: line.split() for line in lines[1:]}
    assert rows[ident][1:4] == ["first", "base", "running"] and rows[ident][7] in ("119m", "2h")
    assert rows[other][1] == "-"
    assert len({len(line) for line in lines}) == 1 or lines[0].index("STATE") == lines[1].index("running")
    assert cli.ok("ps", "-q", "--metadata", "k 1=v&2").split() == [ident]
    assert cli.ok("ps", "-q", "--metadata", "k 1=other").split() == []
    assert set(cli.ok("ps", "--names").split()) == {"first", other}
    listed = {b["sandboxID"]: b for b in json.loads(cli.ok("ps", "--json"))}
    assert set(listed) == {ident, other} and listed[ident]["metrics"]["memTotal"] == 512 << 20
    about = json.loads(cli.ok("inspect", "first"))
    assert about["sandboxID"] == ident and about["metadata"] == {"k 1": "v&2"} and about["usage"]["state"] == "running"
    assert about["policy"]["policy"] and "envdAccessToken" not in about and about["allowInternetAccess"] is False
    assert len(json.loads(cli.ok("inspect", "--tokens", ident, other))[1]["envdAccessToken"]) == 64
    assert cli.ok("rm", "first", other).split() == ["first", other]
    assert cli.ok("ps", "-q") == ""
    assert json.loads(cli.ok("inspect", ident))["reason"] == "killed"
    assert "first was not found" in cli.refused("rm", "first")


def test_json_of_create_is_the_servers_answer(cli):
    made = json.loads(cli.ok("create", "--json", "--private-ports"))
    assert len(made["sandboxID"]) == 20 and made["trafficAccessToken"]


@pytest.mark.parametrize("words, code, out, err", [
    (["--", "sh", "-c", "echo out; echo err >&2; exit 3"], 3, "out\n", "err\n"),
    (["sh", "-c", "kill -9 $$"], 137, "", ""),
    (["sh", "-c", "kill -TERM $$"], 143, "", ""),
    (["nosuch"], 127, "", "gabion: nosuch: No such file or directory\n"),
    (["/etc/passwd"], 126, "", "gabion: /etc/passwd: Permission denied\n"),
    (["-w", "/tmp", "-e", "A=b c", "--", "sh", "-c", 'echo "$PWD $A $SET_HERE"'], 0, "/tmp b c from here\n", ""),
    (["-u", "root", "id", "-un"], 0, "root\n", ""),
    (["-u", "stranger", "id"], 125, "", "gabion: the sandbox has no such user\n"),
    (["-w", "/nosuch", "true"], 125, "", "gabion: cwd '/nosuch' does not exist\n"),
    (["--timeout", "1", "sleep", "20"], 124, "", "gabion: sleep: 1 s are over\n"),
    (["cat"], 0, "", ""),
])
def test_exec_is_as_if_the_command_ran_here(cli, box, words, code, out, err):
    cli.env["SET_HERE"] = "from here"
    first = words.index("--") if "--" in words else 0
    if "-e" in words:
        words = [*words[:first], "-e", "SET_HERE", *words[first:]]
    got = cli("exec", box, *words)
    assert (got.returncode, got.stdout.decode(), got.stderr.decode()) == (code, out, err)


def test_options_may_stand_on_both_sides_of_the_sandbox(cli, box):
    assert cli.ok("exec", "-i", box, "-w", "/tmp", "sh", "-c", "pwd; cat", data=b"x") == "/tmp\nx"


def test_much_input_and_output_pass_whole(cli, box, place):
    data = os.urandom(6_000_000)
    assert cli("exec", "-i", box, "cat", data=data).stdout == data
    (place / "in").write_bytes(data)
    with open(place / "in", "rb") as file:
        assert cli("exec", "-i", box, "cat", stdin=file).stdout == data
    out = cli("exec", box, "sh", "-c", "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2")
    assert (len(out.stdout), len(out.stderr)) == (3_000_000, 2_000_000)


def test_a_slow_reader_holds_the_command_up_and_gets_everything(cli, box):
    with cli.popen("exec", box, "sh", "-c", "seq 400000; echo done >&2") as p:
        time.sleep(0.7)
        assert p.poll() is None  # 2.7 MB are more than all buffers between take
        out, err = p.communicate(timeout=30)
    assert out.split()[-1] == b"400000" and len(out) == 2688895 and err == b"done\n"


def test_a_reader_that_goes_ends_the_command(cli, box):
    with cli.popen("exec", box, "yes") as p:
        p.stdout.read(10)
        p.stdout.close()
        assert p.wait(10) == 143


def test_input_that_nobody_reads_does_not_hang(cli, box):
    assert cli("exec", "-i", box, "true", data=b"x" * 3_000_000).returncode == 0


def test_interrupts_reach_the_command(cli, box):
    script = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done"
    with cli.popen("exec", box, "sh", "-c", script) as p:
        assert p.stdout.readline() == b"ready\n"
        p.send_signal(signal.SIGINT)
        assert p.stdout.readline() == b"interrupted\n"
        assert p.wait(10) == 5
    with cli.popen("exec", box, "sh", "-c", "trap '' INT; echo ready; while :; do sleep 0.05; done") as p:
        assert p.stdout.readline() == b"ready\n"
        for _ in range(3):
            p.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert p.wait(10) == 137


def test_a_sandbox_that_ends_meanwhile_is_named(cli, box):
    with cli.popen("exec", box, "sh", "-c", "echo ready; sleep 60") as p:
        assert p.stdout.readline() == b"ready\n"
        cli.ok("rm", box)
        out, err = p.communicate(timeout=15)
    assert p.returncode == 125 and b"ended" in err and b"killed" in err, err


def test_stop_gives_commands_time(cli, box):
    ident = json.loads(cli.ok("inspect", box))["sandboxID"]
    with cli.popen("exec", box, "sh", "-c", "trap 'exit 42' TERM; echo ready; while :; do sleep 0.05; done") as p:
        assert p.stdout.readline() == b"ready\n"
        assert cli.ok("stop", box) == box + "\n"
        assert p.wait(10) == 42
    assert "status=42" in cli.ok("logs", ident)


def test_stop_does_not_wait_for_ever(cli, box):
    with cli.popen("exec", box, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done") as p:
        assert p.stdout.readline() == b"ready\n"
        out = cli("stop", "--timeout", "1", box)
        assert out.returncode == 0 and b"1 command did not end in 1 s" in out.stderr
        p.wait(15)
    assert cli.ok("ps", "-q") == ""


def test_all_are_ended_at_once(cli):
    made = {cli.ok("create").strip() for _ in range(3)}
    assert set(cli.ok("rm", "--all").split()) == made
    assert "no names" in cli.refused("rm", "--all", "x")


def test_logs_tell_what_happened_and_end_with_the_sandbox(cli, box):
    ident = json.loads(cli.ok("inspect", box))["sandboxID"]
    with cli.popen("logs", "-f", box) as p:
        seen = [p.stdout.readline() for _ in range(2)]
        assert b"sandbox.create" in seen[0] and b"sandbox.running" in seen[1]
        cli.ok("exec", box, "true")
        assert b"command.start program=true" in p.stdout.readline()
        cli.ok("rm", box)
        rest, err = p.communicate(timeout=10)
    assert (p.returncode, err) == (0, b"") and b"sandbox.ended" in rest.splitlines()[-1]
    last = json.loads(cli.ok("logs", "--json", "-n", "1", ident))
    assert last["kind"] == "sandbox.ended" and last["sandbox"] == ident


def test_top_shows_what_is_used(cli, box):
    lines = cli.ok("top", "--once").splitlines()
    assert "sandboxes 1" in lines[0] and lines[2].split()[:2] == ["ID", "NAME"] and box in lines[3]
    doc = json.loads(cli.ok("top", "--once", "--json"))
    assert doc["capacity"]["tenant"]["used"]["sandboxes"] == 1 and doc["sandboxes"][0]["name"] == box
    with cli.popen("top", "--interval", "1") as p:
        got = [p.stdout.readline() for _ in range(9)]
        p.kill()
    assert sum(box.encode() in line for line in got) == 2


@pytest.mark.parametrize("env, words, says", [
    ({"GABION_API_KEY": ""}, ["ps"], "no API key: set GABION_API_KEY"),
    ({"GABION_API_KEY": "e2b_" + "0" * 40}, ["ps"], "API key"),
    ({"GABION_API_KEY": "two words"}, ["ps"], "a character that no key has"),
    ({"GABION_SERVER": "http://127.0.0.1:9"}, ["ps"], "is 'gabion serve' running there?"),
    ({"GABION_SERVER": "http://no-such-host.invalid"}, ["ps"], "the server's name 'no-such-host.invalid' cannot be found"),
    ({"GABION_SERVER": "127.0.0.1:3000"}, ["ps"], "must begin with http://"),
    ({"GABION_SERVER": "unix:/nosuch.sock"}, ["ps"], "unix:/nosuch.sock cannot be reached"),
    ({}, ["ps", "--key-file", "/nosuch"], "--key-file /nosuch: No such file"),
    ({}, ["ps", "--nosuch"], "'--nosuch' is no option of ps"),
    ({}, ["ps", "more"], "'more' is no option"),
    ({}, ["exec"], "the id or name of a sandbox is expected"),
    ({}, ["exec", "x"], "a command is expected"),
    ({}, ["exec", "nothere", "true"], "sandbox nothere was not found"),
    ({}, ["exec", "NOT/A/NAME", "true"], "'NOT/A/NAME' is no id or name"),
    ({}, ["create", "--timeout", "soon"], "--timeout 'soon': a time such as"),
    ({}, ["create", "--name", "Bad_Name"], "name: must have letters"),
    ({}, ["create", "--template", "nosuch"], "nosuch"),
    ({}, ["create", "--net", "some"], "none or public is expected"),
    ({}, ["create", "-e", "=x"], "NAME=VALUE or NAME is expected"),
    ({}, ["port", "x", "0"], "'0' is no port"),
    ({}, ["cp", "a", "b"], "neither side is a sandbox"),
    ({}, ["cp", "a:x", "b:y"], "one side must be on this machine"),
    ({}, ["logs", "nothere"], "was not found"),
    ({}, ["inspect", "nothere"], "was not found"),
    ({}, ["stop"], "the id or name of a sandbox is expected"),
])
def test_errors_are_one_line_that_helps(server, env, words, says):
    assert says in Cli(server, **env).refused(*words)


def test_where_the_server_is(cli, box, place):
    """Options win over variables, ours over E2B's; a key can come from a file, and is never an argument."""
    url, key = cli.env["GABION_SERVER"], cli.env["GABION_API_KEY"]
    (place / "key").write_text(key + "\n")
    cli.env = {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": key}
    assert cli.ok("exec", box, "echo", "yes") == "yes\n"
    cli.env = {"GABION_SERVER": "http://127.0.0.1:9", "E2B_API_URL": url, "GABION_API_KEY": "e2b_bad"}
    assert "cannot be reached" in cli.refused("ps")
    assert cli.ok("ps", "--names", "--server", url, "--key-file", str(place / "key")) == box + "\n"


def test_tenants_see_nothing_of_each_other(cli, box, server):
    operator = server.client()
    name = "t-" + secrets.token_hex(4)
    assert operator.post("/gabion/v1/tenants", {"name": name}).status == 201
    key = operator.post(f"/gabion/v1/tenants/{name}/keys", {"name": "k", "role": "admin"}).json["key"]
    other, ident = Cli(server, key), json.loads(cli.ok("inspect", box))["sandboxID"]
    assert other.ok("ps", "-q") == ""
    for who in (box, ident):
        for words in (["exec", who, "true"], ["shell", who], ["inspect", who], ["rm", who], ["stop", who], ["port", who, "80"],
                      ["cp", f"{who}:/etc/passwd", "-"], ["cp", "/etc/passwd", f"{who}:x"]):
            assert "was not found" in other.refused(*words)
    assert "sandbox" not in other("logs", ident).stdout.decode()
    assert other.ok("create", "--name", box)  # names are the tenant's own
    assert other.ok("rm", box) and cli.ok("exec", box, "true") == ""


def test_an_auditor_sees_but_does_not_enter(cli, box, server):
    key = server.client().post("/gabion/v1/keys", {"name": "a", "role": "auditor"}).json["key"]
    auditor = Cli(server, key)
    assert auditor.ok("ps", "--names") == box + "\n" and "sandbox.running" in auditor.ok("logs", box)
    assert "but not connect to it" in auditor.refused("exec", box, "true")
    assert auditor("rm", box).returncode == 125 and auditor("create").returncode == 125


def test_the_first_use_in_the_manual_works_by_copy_and_paste(cli, place):
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/server.md").read_text()
    script = re.search(r"^First use.*?```\n(.*?)```", text, re.M | re.S)[1]
    assert script.count("gabion ") == 7
    cli.env["PATH"] = f"{pathlib.Path(harness.GABION).parent}:{cli.env['PATH']}"
    out = subprocess.run(["bash", "-ec", script], env=cli.env, cwd=place, capture_output=True, text=True, timeout=30)
    assert (out.returncode, out.stderr) == (0, "")
    name = pathlib.Path("/etc/hostname").read_text()
    assert "\n42\n" in out.stdout and name in out.stdout and (place / "from-outside").read_text() == name
