"""process.Process of src/envd, over HTTP, with a real agent."""
import base64
import os
import threading
import time

import pytest
from envd import RpcError, basic, envelope, wait_for
from envd_fixtures import code_of, envd, server  # noqa: F401


def test_start_tells_pid_output_of_both_streams_and_the_end(envd):
    s = envd.sh("echo out; echo err >&2; exit 3")
    assert s.pid() > 1
    end, out, err, pty = s.finish()
    assert (out, err, pty) == (b"out\n", b"err\n", b"")
    assert end == {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}


def test_success_has_no_error(envd):
    assert envd.sh("true").finish()[0] == {"exitCode": 0, "exited": True, "status": "exit status 0"}


def test_a_signal_is_told_as_go_tells_it(envd):
    end = envd.sh("kill -9 $$").finish()[0]
    assert end == {"exitCode": -1, "exited": False, "status": "signal: killed", "error": "signal: killed"}
    assert envd.sh("kill -SEGV $$").finish()[0]["status"].startswith("signal: segmentation fault")


def test_the_first_message_is_the_start_and_the_pid_is_the_commands(envd):
    s = envd.sh("echo $$")
    pid = s.event()["start"]["pid"]
    assert s.finish()[1] == b"%d\n" % pid


def test_variables_last_one_wins(envd, server):
    script = 'echo "$HOME|$USER|$LOGNAME|$FROM_SANDBOX|$MINE|$PATH"'
    out = envd.sh(script, envs={"MINE": "a=b", "USER": "me"}).finish()[1].decode().strip()
    assert out == f"{server.home}|me|sandbox|yes|a=b|/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert envd.sh("echo $FROM_SANDBOX", envs={"FROM_SANDBOX": "no"}).finish()[1] == b"no\n"


@pytest.mark.parametrize("cwd, expected", [(None, ""), ("", ""), ("sub", "/sub"), ("~/sub", "/sub"), ("~", ""), ("sub/../sub/.", "/sub")])
def test_directories_are_below_home(envd, server, cwd, expected):
    (server.home / "sub").mkdir()
    assert envd.sh("pwd", cwd=cwd).finish()[1].decode().strip() == f"{server.home}{expected}"


def test_a_missing_directory_is_an_invalid_argument(envd, server):
    with pytest.raises(RpcError) as e:
        envd.sh("true", cwd="/does/not/exist").finish()
    assert e.value.code == "invalid_argument" and e.value.message == "cwd '/does/not/exist' does not exist"
    (server.home / "file").write_text("")
    assert code_of(envd.sh("true", cwd="file").finish) == "invalid_argument"


def test_a_program_that_is_not_there_ends_with_127(envd):
    end = envd.start("/no/such/program").finish()[0]
    assert end["exitCode"] == 127 and "No such file" in end["error"]


def test_users(envd):
    assert envd.sh("true", headers=basic("user")).finish()[0]["exitCode"] == 0
    assert code_of(envd.sh("true", headers=basic("nobody-here")).finish) == "unauthenticated"
    assert code_of(envd.sh("true", headers={"Authorization": "Bearer x"}).finish) == "unauthenticated"
    assert code_of(envd.sh("true", headers=basic("ghost")).finish) == "unavailable"  # known, but without launcher


def test_no_token_no_command(envd):
    r = envd.http("POST", "/process.Process/List", "{}", token="", headers={"Content-Type": "application/json"})
    assert r.status == 401 and r.json["code"] == 401
    r = envd.http("POST", "/process.Process/List", "{}", token="x" * 32, headers={"Content-Type": "application/json"})
    assert r.status == 401


def test_the_owner_may_refuse(envd, server):
    server.say("refuse")
    assert code_of(envd.sh("true").finish) == "permission_denied"


def test_standard_input(envd):
    s = envd.start("/bin/cat")
    pid = s.pid()
    envd.send(b"one\n", pid=pid)
    assert s.until(b"one\n") == b"one\n"
    envd.send(b"\x00\xff" * 100000, pid=pid)
    envd.unary("process.Process/CloseStdin", {"process": {"pid": pid}})
    end, out, _, _ = s.finish()
    assert out == b"\x00\xff" * 100000 and end["exitCode"] == 0
    assert code_of(lambda: envd.send(b"x", pid=pid)) == "not_found"


def test_input_that_nobody_reads_waits_and_is_given_up_with_its_client(envd):
    s = envd.start("/bin/sleep", "60")
    pid = s.pid()
    c = envd.connect(timeout=1)
    c.request("POST", "/process.Process/SendInput", headers=envd.headers(more={"Content-Type": "application/json"}),
              body='{"process":{"pid":%d},"input":{"stdin":"%s"}}' % (pid, base64.b64encode(b"x" * 500000).decode()))
    with pytest.raises(TimeoutError):
        c.getresponse()
    c.close()
    assert envd.processes()[0]["pid"] == pid
    envd.signal(pid=pid)
    assert s.finish()[0]["status"] == "signal: killed"


def test_no_input_where_there_is_none(envd):
    s = envd.sh("sleep 60")
    pid = s.pid()
    assert code_of(lambda: envd.send(b"x", pid=pid)) == "internal"
    assert code_of(lambda: envd.send(b"x", kind="pty", pid=pid)) == "internal"
    assert code_of(lambda: envd.unary("process.Process/CloseStdin", {"process": {"pid": pid}})) == "internal"
    assert code_of(lambda: envd.unary("process.Process/Update", {"process": {"pid": pid}, "pty": {"size": {"cols": 1, "rows": 1}}})) == "failed_precondition"
    envd.signal(pid=pid, signal="SIGNAL_SIGTERM")
    assert s.finish()[0]["status"] == "signal: terminated"


def test_unknown_processes(envd):
    for who in ({"pid": 999999}, {"tag": "nothing"}):
        assert code_of(lambda: envd.signal(**who)) == "not_found"
        assert code_of(lambda: envd.send(b"", **who)) == "not_found"
        assert code_of(envd.follow(**who).next) == "not_found"


def test_list_says_what_was_asked_for(envd):
    s = envd.start("/bin/sleep", "60", envs={"A": "b"}, tag="mine", stdin=False, cwd="/tmp")
    pid = s.pid()
    (one,) = envd.processes()
    assert one == {"pid": pid, "tag": "mine", "config": {"cmd": "/bin/sleep", "args": ["60"], "envs": {"A": "b"}, "cwd": "/tmp"}}
    envd.signal(tag="mine")
    s.finish()
    assert envd.processes() == []


def test_connect_gets_only_new_output_and_the_end(envd):
    s = envd.start("/bin/sh", "-c", "echo early; read x; echo late-$x; read y")
    pid = s.pid()
    s.until(b"early\n")
    f = envd.follow(pid=pid)
    assert f.pid() == pid
    envd.send(b"1\n", pid=pid)
    assert f.until(b"late-1\n") == b"late-1\n"
    assert s.until(b"late-1\n") == b"late-1\n"
    envd.send(b"\n", pid=pid)
    for stream in (s, f):
        assert stream.finish()[0]["exitCode"] == 0


def test_a_command_survives_its_client_and_others_come_back(envd):
    s = envd.start("/bin/sh", "-c", "echo a; read x; echo b; read x; exit 7", tag="t")
    pid = s.pid()
    s.until(b"a\n")
    s.close()
    envd.send(b"\n", pid=pid)  # b is written while nobody listens
    time.sleep(0.2)
    f = envd.follow(tag="t")
    assert f.pid() == pid
    envd.send(b"\n", pid=pid)
    end, out, _, _ = f.finish()
    assert end["exitCode"] == 7 and out == b""
    g = envd.follow(pid=pid)  # an end is kept for a while
    assert g.pid() == pid and g.finish()[0]["exitCode"] == 7


def test_output_from_a_byte_on(envd):
    s = envd.start("/bin/sh", "-c", "echo 0123456789; read x; echo more; read x")
    pid = s.pid()
    s.until(b"9\n")
    s.close()
    f = envd.follow(pid=pid, headers={"Gabion-Output-From": "4"})
    assert int(f.event()["start"]["at"]) == 4
    assert f.until(b"9\n") == b"456789\n"
    g = envd.follow(pid=pid, headers={"Gabion-Output-From": "10"})  # while another follows
    g.pid()
    assert g.until(b"\n") == b"\n"
    envd.send(b"\n", pid=pid)
    assert f.until(b"more\n") == b"more\n" and g.until(b"more\n") == b"more\n"
    assert code_of(envd.follow(pid=pid, headers={"Gabion-Output-From": "4000000"}).next) == "out_of_range"
    envd.send(b"\n", pid=pid)
    assert f.finish()[0]["exitCode"] == g.finish()[0]["exitCode"] == 0


def test_lost_output_is_told_as_a_gap(envd):
    s = envd.start("/bin/sh", "-c", "read x; head -c 300000 /dev/zero; echo end; read x")
    pid = s.pid()
    s.close()
    wait_for(lambda: "active 0" in open(envd.server.log.name).read().splitlines()[-1])
    envd.send(b"\n", pid=pid)
    time.sleep(0.5)
    f = envd.follow(pid=pid, headers={"Gabion-Output-From": "0"})
    f.pid()
    envd.send(b"\n", pid=pid)
    end, out, _, _ = f.finish()
    assert f.gaps and sum(f.gaps) + len(out) == 300004 and out.endswith(b"end\n")


def test_after_a_restart_of_the_daemon_everything_is_found_again(envd, server):
    s = envd.start("/bin/sh", "-c", "echo a; read x; echo $x; exit 5", tag="survivor")
    pid = s.pid()
    s.until(b"a\n")
    t = envd.start("/bin/cat", pty={"size": {"cols": 20, "rows": 10}})
    tty = t.pid()
    server.say("forget")
    with pytest.raises(Exception):
        s.finish()
    listed = {p["pid"]: p for p in envd.processes()}
    assert listed[pid]["tag"] == "survivor" and listed[pid]["config"]["cmd"] == "/bin/sh"
    f = envd.follow(tag="survivor", headers={"Gabion-Output-From": "0"})
    assert f.pid() == pid and f.until(b"a\n") == b"a\n"
    envd.send(b"word\n", tag="survivor")
    end, out, _, _ = f.finish()
    assert out == b"word\n" and end["exitCode"] == 5
    assert code_of(lambda: envd.send(b"x", pid=tty)) == "internal"  # it is known that this has a terminal
    g = envd.follow(pid=tty)
    g.pid()
    envd.send(b"hi\n", kind="pty", pid=tty)
    assert b"hi" in g.until(b"hi", kind="pty")
    envd.signal(pid=tty)
    assert g.finish()[0]["status"] == "signal: killed"


def test_a_terminal(envd):
    s = envd.start("/bin/sh", "-i", envs={"PS1": "$ ", "TERM": "dumb"}, pty={"size": {"cols": 80, "rows": 24}})
    pid = s.pid()
    envd.send(b"stty size\n", kind="pty", pid=pid)
    assert b"24 80" in s.until(b"24 80", kind="pty")
    envd.unary("process.Process/Update", {"process": {"pid": pid}, "pty": {"size": {"cols": 100, "rows": 30}}})
    envd.send(b"stty size\n", kind="pty", pid=pid)
    assert b"30 100" in s.until(b"30 100", kind="pty")
    assert code_of(lambda: envd.send(b"x", pid=pid)) == "internal"
    assert code_of(lambda: envd.unary("process.Process/CloseStdin", {"process": {"pid": pid}})) == "failed_precondition"
    envd.send(b"exit 4\n", kind="pty", pid=pid)
    end, out, err, pty = s.finish()
    assert end["exitCode"] == 4 and (out, err) == (b"", b"")


def test_much_output_arrives_whole_also_at_two_clients(envd):
    s = envd.start("/bin/sh", "-c", "read x; seq 1 1000000")
    pid = s.pid()
    f = envd.follow(pid=pid)
    f.pid()
    envd.send(b"\n", pid=pid)
    expected = b"".join(b"%d\n" % i for i in range(1, 1000001))
    got = {}
    threads = [threading.Thread(target=lambda k=k, x=x: got.update({k: x.finish()})) for k, x in (("s", s), ("f", f))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got["s"][1] == expected and got["f"][1] == expected


def test_a_client_that_does_not_read_stops_the_command_but_nobody_else(envd):
    s = envd.sh("yes x", tag="loud")
    s.pid()
    time.sleep(0.5)
    quick = time.monotonic()
    assert envd.sh("echo fine").finish()[1] == b"fine\n"
    assert time.monotonic() - quick < 2
    s.close()
    envd.signal(tag="loud")
    wait_for(lambda: envd.processes() == [])


def test_the_time_of_a_command_ends_it(envd):
    s = envd.sh("sleep 60", headers={"Connect-Timeout-Ms": "300"})
    pid = s.pid()
    before = time.monotonic()
    assert code_of(s.finish) == "deadline_exceeded"
    assert time.monotonic() - before < 2
    wait_for(lambda: envd.processes() == [])
    s = envd.sh("sleep 60", headers={"Connect-Timeout-Ms": "300"})  # also if the client is gone
    s.pid()
    s.close()
    wait_for(lambda: envd.processes() == [])


def test_silence_is_kept_alive(envd):
    s = envd.sh("sleep 2.5; echo x", headers={"Keepalive-Ping-Interval": "1"})
    s.pid()
    assert s.event() == {"keepalive": {}}
    assert s.event() == {"keepalive": {}}
    assert s.finish()[1] == b"x\n"


def test_the_end_of_the_sandbox_cuts_streams_and_health_says_502(envd, server):
    s = envd.sh("sleep 60")
    s.pid()
    server.say("drop")
    r = envd.http("GET", "/health")
    assert r.status == 502 and r.json == {"sandboxId": "sandboxunderthetests", "message": "The sandbox was not found", "code": 502}
    with pytest.raises(Exception) as e:
        s.next()
    assert not isinstance(e.value, RpcError) and not s.ended


def test_stream_input(envd):
    s = envd.start("/bin/cat")
    pid = s.pid()
    messages = [{"start": {"process": {"pid": pid}}}, {"keepalive": {}}]
    messages += [{"data": {"input": {"stdin": base64.b64encode(b"%d\n" % i).decode()}}} for i in range(50)]
    r = envd.http("POST", "/process.Process/StreamInput", b"".join(map(envelope, messages)),
                  headers={"Content-Type": "application/connect+json"})
    assert r.status == 200 and r.body == envelope({}) + envelope({}, flag=2)
    envd.unary("process.Process/CloseStdin", {"process": {"pid": pid}})
    assert s.finish()[1] == b"".join(b"%d\n" % i for i in range(50))
    for bad in ([{"data": {"input": {"stdin": ""}}}], [{"start": {"process": {"pid": 999999}}}], [{"start": {}, "data": {}}], [{}]):
        r = envd.http("POST", "/process.Process/StreamInput", b"".join(map(envelope, bad)),
                      headers={"Content-Type": "application/connect+json"})
        assert r.status == 200 and b'"error"' in r.body


@pytest.mark.parametrize("message", [
    {}, {"process": {}}, {"process": {"cmd": ""}}, {"process": {"cmd": 1}}, {"process": {"cmd": "x", "args": "y"}},
    {"process": {"cmd": "x", "args": [1]}}, {"process": {"cmd": "x", "envs": {"A=B": "c"}}}, {"process": {"cmd": "x", "envs": {"": "c"}}},
    {"process": {"cmd": "x", "envs": {"a": 1}}}, {"process": {"cmd": "x", "unknown": 1}}, {"process": {"cmd": "x"}, "pty": {"size": {"cols": -1, "rows": 1}}},
    {"process": {"cmd": "x"}, "tag": "t" * 300}, {"process": {"cmd": "x", "args": ["a" * 300000]}}, {"process": {"cmd": "x", "cwd": "~root"}},
    {"process": {"cmd": "x", "cwd": "/" + "d" * 5000}}, {"process": {"cmd": "x"}, "stdin": "yes"},
])
def test_bad_starts_are_refused(envd, message):
    assert code_of(envd.stream("process.Process/Start", message).next) == "invalid_argument"


def test_bad_framing_is_refused(envd):
    head = envd.headers(more={"Content-Type": "application/connect+json"})
    for body in (b"", b"\0\0\0\0\5{}", b"\1\0\0\0\2{}", b"\2\0\0\0\2{}", b"\0\0\0\0\2{}\0\0\0\0\2{}", b"\0\xff\xff\xff\xff", b"\0\0\0\0\2[}"):
        r = envd.http("POST", "/process.Process/Start", body, headers=head)
        assert r.status == 200 and r.body[0] == 2 and b'"error"' in r.body, body
    for kind, path, status in (("application/json", "/process.Process/Start", 415), ("application/connect+json", "/process.Process/List", 415),
                               ("application/proto", "/process.Process/List", 415), ("application/json", "/process.Process/Nothing", 404)):
        assert envd.http("POST", path, "{}", headers={"Content-Type": kind}).status == status
    assert envd.http("GET", "/process.Process/List").status == 405
    r = envd.http("POST", "/process.Process/List", "{", headers={"Content-Type": "application/json"})
    assert r.status == 400 and r.json["code"] == "invalid_argument"
    r = envd.http("POST", "/process.Process/List", '{"a":1}', headers={"Content-Type": "application/json"})
    assert r.status == 400
    r = envd.http("POST", "/process.Process/List", b'{"a":"' + b"x" * (5 << 20) + b'"}', headers={"Content-Type": "application/json"})
    assert r.status == 429 and r.json["code"] == "resource_exhausted"


def test_more_commands_than_there_is_room_for(envd):
    streams = [envd.sh("sleep 60") for _ in range(64)]
    pids = [s.pid() for s in streams]
    assert code_of(envd.sh("true").finish) == "resource_exhausted"
    assert len(envd.processes()) == 64
    for pid in pids:
        envd.signal(pid=pid)
    for s in streams:
        s.finish()
    assert envd.sh("true").finish()[0]["exitCode"] == 0


def launchers(server):
    """The agent is a child of the server, and the launcher of the agent."""
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    return [p for agent in children(server.p.pid) for p in children(agent)]


def test_a_killed_launcher_is_asked_for_again(envd, server):
    (launcher,) = launchers(server)
    os.kill(launcher, 9)
    assert envd.sh("echo again").finish()[1] == b"again\n"
    (other,) = launchers(server)
    assert other != launcher
    os.kill(other, 9)
    assert envd.fs("Stat", path="/")["entry"]["type"] == "FILE_TYPE_DIRECTORY"


def test_events_tell_who_started_what_and_how_it_ended(envd, server):
    s = envd.sh("exit 9")
    pid = s.pid()
    s.finish()
    assert any("user=user" in e and "/bin/sh" in e for e in server.events("exec"))
    assert any(f"pid={pid}" in e for e in server.events("started"))
    # the client hears of the end first
    wait_for(lambda: any(f"pid={pid} code=9" in e for e in server.events("exited")))
