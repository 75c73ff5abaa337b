"""An agent that may be anybody: src/envd refuses what it says, tells its client, and lives on."""
import socket
import struct
import threading

import pytest
from envd import ID, Client, RpcError, Server, wait_for

ERROR, DONE, RUNNING, OUTPUT, EXITED, CREDIT, ENTRY, DATA, USAGE = 36, 41, 37, 33, 34, 35, 42, 23, 44


def frame(kind, ident, body=b""):
    return struct.pack(">IHI", 6 + len(body), kind, ident) + body


def error(ident, errno, step=b"stat"):
    return frame(ERROR, ident, struct.pack(">IH", errno, len(step)) + step)


def running(ident, number, pid=5, at=0):
    return frame(RUNNING, ident, struct.pack(">IIQ", number, pid, at))


class FakeAgent:
    """Reads frames, and answers each with what `answer(type, id)` says; None ends the connection."""

    def __init__(self, path, answer):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(str(path))
        self.sock.listen(64)
        self.answer, self.n = answer, 0
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            self.n += 1
            threading.Thread(target=self.one, args=(c,), daemon=True).start()

    def one(self, c):
        data = b""
        try:
            while piece := c.recv(65536):
                data += piece
                while len(data) >= 10 and len(data) >= 4 + struct.unpack(">I", data[:4])[0]:
                    n, kind, ident = struct.unpack(">IHI", data[:10])
                    data = data[4 + n:]
                    said = self.answer(kind, ident)
                    if said is None:
                        return
                    c.sendall(said)
        except OSError:
            pass
        finally:
            c.close()


@pytest.fixture
def play(tmp_path):
    """Starts a server whose agent answers as the given function says."""
    servers = []

    def start(answer):
        home = tmp_path / f"home{len(servers)}"
        home.mkdir()
        agent = FakeAgent(tmp_path / f"agent{len(servers)}", answer)
        servers.append(Server(home, tmp_path / f"agent{len(servers)}"))
        c = Client(servers[-1])
        c.agent = agent
        return c

    yield start
    for s in servers:
        s.stop()


def after_first(answer):
    """AP_FILES and AP_PORT have no answer of their own when all is well."""
    return lambda kind, ident: b"" if kind == 13 else answer(kind, ident)


BAD_FRAMES = {
    "too long": b"\xff\xff\xff\xff\0\0\0\0\0\0",
    "too short": b"\0\0\0\1\0\0\0\0\0\0",
    "longer than any frame": struct.pack(">IHI", 1 << 20, OUTPUT, 1),
    "of no known kind": frame(999, 1),
    "a request": frame(9, 1),
    "an end of nothing": frame(DONE, 4711),
    "an answer to nothing": running(4711, 1),
    "about a command that is not": frame(OUTPUT, 77, b"\1x"),
    "number 0": running(1, 0),
    "an error without errno": error(1, 0, b"x"),
    "with something behind it": frame(RUNNING, 1, struct.pack(">IIQ", 1, 5, 0) + b"x"),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_bad_frames_about_commands_cut_the_connection(play, name):
    envd = play(lambda kind, ident: BAD_FRAMES[name])
    with pytest.raises(Exception) as e:
        envd.sh("true").finish()
    assert not isinstance(e.value, (AssertionError, TimeoutError))
    assert envd.http("GET", "/health").status == 204
    assert envd.server.events("agent") or envd.server.events("lost")


def test_more_output_than_was_granted(play):
    flood = frame(OUTPUT, 1, b"\1" + b"x" * 32768) * 1000
    envd = play(lambda kind, ident: running(ident, 1) + flood if kind == 9 else b"")
    s = envd.sh("true")  # and its client does not read
    wait_for(lambda: any("not granted" in e for e in envd.server.events("agent")))
    with pytest.raises(Exception):
        s.finish()


def test_output_before_the_start_and_after_the_end(play):
    gone = frame(EXITED, 1, struct.pack(">BIQQQ", 0, 0, 0, 0, 0))
    envd = play(lambda kind, ident: frame(OUTPUT, 1, b"\1x") + running(ident, 1))
    with pytest.raises(Exception):
        envd.sh("true").finish()
    envd = play(lambda kind, ident: running(ident, 1) + gone + frame(OUTPUT, 1, b"\1x"))
    assert envd.sh("true").finish()[0]["exitCode"] == 0  # this one is whole; the connection is cut behind it
    wait_for(lambda: envd.server.events("agent"))


def test_an_agent_that_says_nothing(play):
    envd = play(lambda kind, ident: b"")
    h = {"Connect-Timeout-Ms": "300"}
    with pytest.raises(RpcError) as e:
        envd.sh("true", headers=h).finish()
    assert e.value.code == "deadline_exceeded"
    for call in (lambda: envd.unary("process.Process/List", {}, h), lambda: envd.fs("Stat", path="/", headers=h)):
        with pytest.raises(RpcError) as e:
            call()
        assert e.value.code == "deadline_exceeded" and e.value.status == 504


def test_an_agent_that_hangs_up(play):
    envd = play(lambda kind, ident: None)
    for call in (lambda: envd.unary("process.Process/List"), lambda: envd.fs("Stat", path="/")):
        with pytest.raises(RpcError) as e:
            call()
        assert e.value.code == "unavailable"
    assert envd.http("GET", "/files?path=/x").status == 503
    assert envd.http("POST", "/files?path=/x", b"x", headers={"Content-Type": "application/octet-stream"}).status == 503
    assert envd.http("GET", "/", port=3000).status == 502
    assert envd.http("GET", "/metrics").status == 503


def test_nobody_listens(tmp_path):
    (tmp_path / "home").mkdir()
    server = Server(tmp_path / "home", tmp_path / "nothing")
    envd = Client(server)
    with pytest.raises(RpcError) as e:
        envd.fs("Stat", path="/")
    assert e.value.code == "unavailable"
    with pytest.raises(RpcError) as e:
        envd.sh("true").next()
    assert e.value.code == "unavailable"
    assert envd.http("GET", "/", port=3000).status == 502
    server.stop()


@pytest.mark.parametrize("said", [frame(ENTRY, 1, b"garbage"), frame(DATA, 1, b"x"), frame(DONE, 1, b"x"), frame(ENTRY, 2), frame(USAGE, 1, b"x"),
                                  b"\0\1\0\0\0\x2a\0\0\0\1" + b"x" * 65532, error(1, 0), b"\xff" * 20])
def test_bad_answers_about_files(play, said):
    envd = play(after_first(lambda kind, ident: said))
    for method, message in (("Stat", {"path": "/"}), ("ListDir", {"path": "/"}), ("Remove", {"path": "/x"}), ("CreateWatcher", {"path": "/"})):
        with pytest.raises(RpcError) as e:
            envd.fs(method, **message)
        assert e.value.code in ("unavailable", "internal", "not_found"), method
    assert envd.http("GET", "/files?path=/x").status >= 500
    assert envd.http("GET", "/metrics").status in (200, 503)
    assert envd.http("POST", "/files?path=/x", b"x", headers={"Content-Type": "application/octet-stream"}).status >= 500
    assert envd.http("GET", "/health").status == 204


def test_a_port_that_is_none(play):
    for said in (frame(DONE, 0, b"x"), frame(RUNNING, 0), frame(DONE, 0) + b"\0" * 100, b"\xff" * 20):
        envd = play(lambda kind, ident: said)
        r = envd.http("GET", "/", port=3000)
        assert r.status == 502 and r.json["sandboxId"] == ID


def test_endless_lists(play):
    text = struct.pack(">I", 0) + b"\0"
    one = lambda i, n: frame(38, i, struct.pack(">IIIBQQ", n, n, 0, 0, 0, 0) + struct.pack(">H", 0) + struct.pack(">H", 8) + text + b"\0" + struct.pack(">H", 0))
    envd = play(lambda kind, ident: b"".join(one(ident, n) for n in range(1, 200)))
    with pytest.raises(RpcError) as e:
        envd.unary("process.Process/List")
    assert e.value.code == "unavailable"
