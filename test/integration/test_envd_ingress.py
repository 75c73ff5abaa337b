"""Ingress to ports of a sandbox: src/envd, with a real agent and servers of the test's own behind it."""
import socket
import threading
import time

import pytest
from envd import ID, wait_for
from envd_fixtures import envd, server  # noqa: F401


class Inside:
    """A server that gets one connection after the other and hands each to a function."""

    def __init__(self, serve, family=socket.AF_INET):
        self.sock = socket.socket(family)
        self.sock.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        self.sock.listen(16)
        self.port = self.sock.getsockname()[1]
        self.serve, self.errors = serve, []
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(c,), daemon=True).start()

    def one(self, c):
        try:
            c.settimeout(10)
            self.serve(c)
        except OSError as e:
            self.errors.append(e)
        finally:
            c.close()


def read_head(c):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = c.recv(65536)
        if not piece:
            raise OSError("closed")
        data += piece
    head, rest = data.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    return lines[0], {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}, rest


def echo(c):
    """Answers with what it got."""
    line, headers, rest = read_head(c)
    n = int(headers.get("content-length", 0))
    if headers.get("transfer-encoding") == "chunked":
        while not rest.endswith(b"0\r\n\r\n"):
            rest += c.recv(65536)
        body, data = b"", rest
        while (size := int(data.split(b"\r\n", 1)[0], 16)):
            data = data.split(b"\r\n", 1)[1]
            body, data = body + data[:size], data[size + 2:]
    else:
        while len(rest) < n:
            rest += c.recv(65536)
        body = rest
    text = (line + "\n" + "\n".join(f"{k}={v}" for k, v in sorted(headers.items())) + "\n\n").encode() + body
    c.sendall(b"HTTP/1.1 200 OK\r\nX-Inside: yes\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: %d\r\n\r\n" % len(text) + text)


def answer(raw):
    def serve(c):
        read_head(c)
        c.sendall(raw)
    return serve


def test_a_request_goes_in_and_its_answer_comes_out(envd):
    i = Inside(echo)
    r = envd.http("POST", "/path/x?q=1&r=%20", b"body", port=i.port, headers={"X-Mine": "1", "Connection": "x-hop", "X-Hop": "drop", "E2b-Traffic-Access-Token": "t"})
    assert r.status == 200 and r.headers["X-Inside"] == "yes" and r.headers.get_all("Set-Cookie") == ["a=1", "b=2"]
    head, body = r.body.decode().split("\n\n", 1)
    assert body == "body" and head.startswith("POST /path/x?q=1&r=%20 HTTP/1.1\n")
    assert "x-mine=1" in head and "host=127.0.0.1" in head
    for gone in ("x-hop=", "e2b-", "traffic"):
        assert gone not in head, head


def test_chunked_both_ways_and_large(envd):
    i = Inside(echo)
    c = envd.connect()
    data = b"0123456789abcdef" * 4096
    c.request("PUT", "/", body=(data for _ in range(64)), headers=envd.headers(port=i.port), encode_chunked=True)
    r = c.getresponse()
    assert r.read().endswith(data * 64)
    i = Inside(answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n"))
    assert envd.http("GET", "/", port=i.port).body == b"abcde"


def test_answers_without_length_and_without_body(envd):
    assert envd.http("GET", "/", port=Inside(answer(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")).port).body == b"until the end"
    assert envd.http("GET", "/", port=Inside(answer(b"HTTP/1.0 200 OK\r\n\r\nold")).port).body == b"old"
    r = envd.http("HEAD", "/", port=Inside(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")).port)
    assert r.status == 200 and r.headers["Content-Length"] == "1000" and r.body == b""
    assert envd.http("GET", "/", port=Inside(answer(b"HTTP/1.1 204 No Content\r\n\r\n")).port).status == 204
    assert envd.http("GET", "/", port=Inside(answer(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n")).port).status == 304
    r = envd.http("GET", "/", port=Inside(answer(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno")).port)
    assert (r.status, r.body) == (404, b"no")


def test_ipv6_inside(envd):
    assert envd.http("GET", "/", port=Inside(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nv6"), socket.AF_INET6).port).body == b"v6"


def test_answers_come_as_they_are_made(envd):
    go = threading.Event()

    def serve(c):
        read_head(c)
        c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        assert go.wait(10)
        c.sendall(b"4\r\nlast\r\n0\r\n\r\n")

    c = envd.connect()
    c.request("GET", "/", headers=envd.headers(port=Inside(serve).port))
    r = c.getresponse()
    assert r.read(5) == b"first"
    go.set()
    assert r.read() == b"last"


def test_by_host_name(envd, server):
    i = Inside(echo)
    r = envd.http("GET", "/x", bare=True, headers={"Host": f"{i.port}-{ID}.sandbox.example:{server.port}"})
    assert r.status == 200 and f"host={i.port}-{ID}.sandbox.example:{server.port}".encode() in r.body
    assert envd.http("GET", "/health", bare=True, headers={"Host": f"49983-{ID}.sandbox.example"}).status == 204
    r = envd.http("GET", "/", bare=True, headers={"Host": f"3000-{'x' * 20}.sandbox.example"})
    assert r.status == 502 and r.json["sandboxId"] == "x" * 20
    assert envd.http("GET", "/", bare=True, headers={"Host": f"99999-{ID}.sandbox.example"}).status == 400
    assert envd.http("GET", "/", bare=True, headers={"Host": "www.sandbox.example"}).status == 421
    # headers count only where the host says nothing
    r = envd.http("GET", "/", bare=True, headers={"Host": f"{i.port}-{ID}.sandbox.example", "E2b-Sandbox-Id": "other", "E2b-Sandbox-Port": "1"})
    assert r.status == 200


def test_closed_ports_and_bad_servers(envd):
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    r = envd.http("GET", "/", port=s.getsockname()[1])
    assert r.status == 502 and r.json == {"sandboxId": ID, "message": "The sandbox is running but port is not open", "port": s.getsockname()[1], "code": 502}
    for raw in (b"not http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nA: b"):
        r = envd.http("GET", "/", port=Inside(answer(raw)).port)
        assert r.status == 502 and r.json["code"] == 502, raw
    with pytest.raises(Exception):  # too late for a status: the client must notice that something is missing
        envd.http("GET", "/", port=Inside(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")).port)
    for raw in ("0", "65536", "x", "-1"):
        assert envd.http("GET", "/", port=raw).status == 400


def test_traffic_token(envd, server):
    i = Inside(echo)
    server.say("traffic letmein")
    r = envd.http("GET", "/", port=i.port)
    assert r.status == 403 and r.json["code"] == 403 and r.json["sandboxId"] == ID
    assert envd.http("GET", "/", port=i.port, headers={"e2b-traffic-access-token": "wrong"}).status == 403
    r = envd.http("GET", "/", port=i.port, headers={"E2B-Traffic-Access-Token": "letmein"})
    assert r.status == 200 and b"letmein" not in r.body
    assert envd.http("GET", "/health").status == 204  # envd's own port has its own token


def test_the_host_can_be_masked(envd, server):
    i = Inside(echo)
    server.say("mask localhost:${PORT}")
    assert f"host=localhost:{i.port}\n".encode() in envd.http("GET", "/", port=i.port).body
    server.say("mask plain.example")
    assert b"host=plain.example\n" in envd.http("GET", "/", port=i.port).body


def upgrade(envd, port, more=b""):
    s = socket.create_connection(("127.0.0.1", envd.server.port), timeout=10)
    s.sendall(f"GET /ws HTTP/1.1\r\nHost: {port}-{ID}.x.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
              "Sec-WebSocket-Key: abc\r\n\r\n".encode() + more)
    return s


def test_upgrades_become_raw_streams(envd):
    seen = {}

    def serve(c):
        line, seen["headers"], rest = read_head(c)
        c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: xyz\r\n\r\nhello")
        c.sendall(rest)
        while data := c.recv(65536):
            c.sendall(data.upper())

    s = upgrade(envd, Inside(serve).port)
    line, headers, rest = read_head(s)
    assert "101" in line and headers["upgrade"] == "websocket" and headers["sec-websocket-accept"] == "xyz"
    while len(rest) < 5:
        rest += s.recv(100)
    assert rest == b"hello" and seen["headers"]["upgrade"] == "websocket" and seen["headers"]["connection"].lower() == "upgrade"
    s.sendall(b"ping")
    assert s.recv(100) == b"PING"
    data, got = b"abcdefgh" * 131072, b""
    threading.Thread(target=s.sendall, args=(data,)).start()
    while len(got) < len(data):
        got += s.recv(65536)
    assert got == data.upper()
    s.shutdown(socket.SHUT_WR)
    assert s.recv(100) == b""


def test_the_end_of_the_sandbox_cuts_raw_streams(envd, server):
    def serve(c):
        read_head(c)
        c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
        c.recv(1)

    s = upgrade(envd, Inside(serve).port)
    read_head(s)
    server.say("drop")
    assert s.recv(10) == b""


def test_an_upgrade_may_be_refused(envd):
    s = upgrade(envd, Inside(answer(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")).port)
    line, headers, rest = read_head(s)
    assert "403" in line


def test_a_client_that_leaves_is_told_inside(envd):
    left = threading.Event()

    def serve(c):
        read_head(c)
        c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        if c.recv(10) == b"":
            left.set()

    c = envd.connect()
    c.request("GET", "/", headers=envd.headers(port=Inside(serve).port))
    c.getresponse().read(1)
    c.sock.shutdown(socket.SHUT_RDWR)
    assert left.wait(5)


def test_slow_readers_stop_the_server_inside(envd):
    sent = [0]

    def serve(c):
        read_head(c)
        c.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        c.settimeout(1)
        while True:
            sent[0] += c.send(b"x" * 65536)

    i = Inside(serve)
    s = socket.create_connection(("127.0.0.1", envd.server.port))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(f"GET / HTTP/1.1\r\nHost: {i.port}-{ID}.x.example\r\n\r\n".encode())
    wait_for(lambda: i.errors, 10)
    assert sent[0] < 32 << 20
    s.close()


def test_many_at_once(envd):
    i = Inside(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    done = []
    threads = [threading.Thread(target=lambda: done.append(envd.http("GET", "/", port=i.port).body)) for _ in range(40)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert done == [b"ok"] * 40


def test_a_body_may_be_refused_before_it_is_whole(envd):
    i = Inside(answer(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"))
    s = socket.create_connection(("127.0.0.1", envd.server.port), timeout=10)
    s.sendall(f"POST / HTTP/1.1\r\nHost: {i.port}-{ID}.x.example\r\nContent-Length: 100000000\r\n\r\nstart".encode())
    line, headers, rest = read_head(s)
    assert "413" in line
