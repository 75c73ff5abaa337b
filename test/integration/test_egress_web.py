"""gabion-egress and HTTP: hosts, denials that say so, methods and paths, TLS that is opened, what no two servers read
in the same way."""
import contextlib
import json
import pathlib
import re
import socket
import ssl
import threading
import time

import egress_driver as driver
import egress_world as world
import pytest
from egress_fixtures import (NAME, allow, client_context, egress, open_file, place,  # noqa: F401 fixtures
                             is_reset, rule, servers, start, to)

DATA = pathlib.Path(__file__).parent.parent / "data" / "http"
READ_ONLY = {"methods": ["GET", "HEAD"], "paths": ["/public/"]}


class Answer:
    def __init__(self, head, body):
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:] if line)}
        self.body = body

    @property
    def denial(self):
        assert self.status == 403, self.status
        d = json.loads(self.body)
        assert self.headers["x-gabion-denied"] == f"{d['code']}; event={d['event']}"
        assert d["retry"] is False and "do not retry" in d["hint"] and d["reason"] and d["rule"]
        return d


def read_until(sock, end):
    data = b""
    while not data.endswith(end):
        byte = sock.recv(1)
        if not byte:
            raise EOFError(data)
        data += byte
    return data


def read_exactly(sock, n):
    data = b""
    while len(data) < n:
        piece = sock.recv(n - len(data))
        if not piece:
            raise EOFError(data)
        data += piece
    return data


def read_answer(sock, method="GET"):
    """One answer and not a byte more."""
    a = Answer(read_until(sock, b"\r\n\r\n")[:-4], b"")
    if a.headers.get("transfer-encoding") == "chunked":
        while n := int(read_until(sock, b"\r\n"), 16):
            a.body += read_exactly(sock, n + 2)[:-2]
        read_exactly(sock, 2)
    elif method != "HEAD":
        a.body = read_exactly(sock, int(a.headers.get("content-length", 0)))
    return a


def ask(sock, method="GET", path="/", host=NAME, headers="", body=b""):
    if body:
        headers += f"Content-Length: {len(body)}\r\n"
    sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n".encode() + body)
    return read_answer(sock, method)


@pytest.fixture
def plain(place, egress, servers):
    """(connect, web server, egress) for plain HTTP with a rule without methods and paths."""
    web = servers(cls=world.Web)
    egress.add(place, driver.document(allow(rule()), resolve=[to(web, port=80), to(web)]))
    address = driver.resolve(place, NAME)
    return lambda port=80: place.connect(address, port), web, egress


@pytest.fixture
def opened(place, start, servers):
    """The same with TLS that is opened: GET and HEAD below /public/."""
    web = servers(world.server_context(NAME), cls=world.Web)
    e = start(open_tls=True, ca_bundle=world.authority()[1])
    e.add(place, driver.document(allow(rule(**READ_ONLY)), resolve=[to(web, port=443)]))
    address = driver.resolve(place, NAME)

    def connect(name=NAME):
        return client_context(e.certificate).wrap_socket(place.connect(address, 443), server_hostname=name)
    return connect, web, e


# --- plain ---

def test_requests_follow_each_other(plain):
    connect, web, egress = plain
    with connect() as c:
        for i in range(3):
            assert ask(c, path=f"/{i}?q=1").body == f"GET /{i}?q=1 0\n".encode()
        assert ask(c, "POST", "/p", body=b"x" * 100000).body == b"POST /p 100000\n"
        assert ask(c, "HEAD", "/h").status == 200
    assert [r[:2] for r in web.requests] == [("GET", "/0?q=1"), ("GET", "/1?q=1"), ("GET", "/2?q=1"), ("POST", "/p"),
                                             ("HEAD", "/h")]
    r = egress.find(kind="http", method="POST")
    assert r["decision"] == "allow" and r["bytes_out"] > 100000 and "q=1" not in json.dumps(egress.records)
    assert egress.find(kind="tcp", protocol="http", phase="close")["bytes_out"] > 100000


def test_pipelined_requests_are_answered_in_order(plain):
    connect, web, _ = plain
    with connect() as c:
        c.sendall(b"".join(f"GET /{i} HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode() for i in range(5)))
        got = b""
        while got.count(b"HTTP/1.1 200") < 5 or not got.endswith(b"/4 0\n"):
            got += c.recv(65536)
    assert [p for p in re.findall(rb"GET (/\d)", got)] == [b"/0", b"/1", b"/2", b"/3", b"/4"]
    assert len(web.requests) == 5


@pytest.mark.parametrize("port", [80, 9000])
def test_another_host_is_denied_in_words(plain, port):
    connect, web, egress = plain
    with connect(port) as c:
        d = ask(c, host="evil.example").denial
        assert c.recv(10) == b""
    assert (d["code"], d["rule"]) == ("net.sni_mismatch", "floor:host")
    assert egress.find(event=d["event"])["decision"] == "deny" and not web.requests


def test_second_request_for_another_host_is_denied(plain):
    connect, web, _ = plain
    with connect() as c:
        assert ask(c).status == 200
        assert ask(c, host="evil.example").denial["code"] == "net.sni_mismatch"
    assert len(web.requests) == 1


@pytest.mark.parametrize("line,host,status", [
    (f"GET http://{NAME}/x HTTP/1.1", NAME, 200),
    (f"GET http://{NAME}:80/x HTTP/1.1", f"{NAME}:80", 200),
    (f"GET https://{NAME}/x HTTP/1.1", NAME, 403),
    ("GET http://evil.example/x HTTP/1.1", NAME, 400),
    ("GET http://evil.example/x HTTP/1.1", "evil.example", 403),
    (f"GET http://{NAME}@evil.example/x HTTP/1.1", NAME, 400),
    ("GET /x HTTP/1.1", f"{NAME}:8080", 403),
    ("GET /x HTTP/1.1", f"{NAME}@evil.example", 400),
    ("GET /x HTTP/1.1", f"{NAME}.evil.example", 403),
    ("GET /x HTTP/1.1", f"{NAME}.", 403),  # some servers take it for another host
    ("GET /x HTTP/1.1", NAME.upper(), 200),
    ("GET /x HTTP/1.1", "\u0430pi.example.com", 400),  # a Cyrillic a
    (f"CONNECT {NAME}:80 HTTP/1.1", f"{NAME}:80", 403),
])
def test_targets_and_hosts(plain, line, host, status):
    connect, web, _ = plain
    with connect() as c:
        c.sendall(f"{line}\r\nHost: {host}\r\n\r\n".encode())
        assert read_answer(c).status == status
    assert len(web.requests) == (1 if status == 200 else 0)
    if status == 200:
        assert web.requests[0][1] == "/x"  # the far side is asked as a server, never as a proxy


def cases(kind):
    """(name, bytes, outcome) of the data tests of src/http."""
    for path in sorted(DATA.iterdir()):
        first, _, rest = path.read_text().partition("\n")
        if first.split()[0] != kind:
            continue
        text, _, outcome = rest.partition("\n=> ")
        lines = [line for line in text.split("\n") if not line.startswith("#")]
        yield pytest.param("".join(lines).encode().decode("unicode_escape").encode("latin-1"), outcome, id=path.name)


REFUSED = [c for c in cases("request") if c.values[1].startswith("refused")]


def test_there_are_refused_requests_to_try():
    assert len(REFUSED) > 60 and sum(c.id.startswith("s") for c in REFUSED) >= 12


@pytest.mark.parametrize("data,outcome", REFUSED)
def test_what_two_servers_could_read_differently_goes_nowhere(plain, data, outcome):
    """Whatever the parser refuses is answered or reset by egress; the far side never sees a request of it."""
    connect, web, _ = plain
    with connect() as c:
        got = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            c.sendall(data.replace(b"a.example", NAME.encode()))
            with contextlib.suppress(OSError):
                c.shutdown(socket.SHUT_WR)
            while piece := c.recv(65536):
                got += piece
    assert b"HTTP/1.1 2" not in got
    if web.requests:  # of a body that turns out bad the head has gone already: its framing must have been cut off
        assert "chunk" in outcome or "trailer" in outcome or "body" in outcome, (outcome, web.requests)
        assert len(web.requests) <= 1 and not web.requests[0][3].endswith(b"smuggled")


def test_smuggled_second_request_is_judged_by_itself(plain):
    connect, web, _ = plain
    inner = b"GET /inner HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    with connect() as c:
        c.sendall(b"POST /outer HTTP/1.1\r\nHost: " + NAME.encode() + b"\r\nContent-Length: 4\r\n\r\nbody" + inner)
        assert read_answer(c).status == 200
        assert read_answer(c).status == 403
    assert [r[1] for r in web.requests] == ["/outer"]


def test_expectation_is_answered_and_body_streams(plain):
    connect, web, _ = plain
    with connect() as c:
        c.sendall(f"PUT /e HTTP/1.1\r\nHost: {NAME}\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n".encode())
        assert c.recv(100).startswith(b"HTTP/1.1 100 ")
        for i in range(50):
            c.sendall(b"3e8\r\n" + bytes([65 + i % 26]) * 1000 + b"\r\n")
        c.sendall(b"0\r\n\r\n")
        assert read_answer(c).body == b"PUT /e 50000\n"
    assert "Expect" not in web.requests[0][2]


def test_hop_by_hop_headers_stay_here(plain):
    connect, web, _ = plain
    with connect() as c:
        ask(c, headers="Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\n"
                       "X-Kept: 2\r\n")
    got = {k.lower() for k in web.requests[0][2]}
    assert "x-kept" in got and not got & {"x-secret", "proxy-authorization", "te", "keep-alive"}


def test_unread_answers_hold_the_server_back(place, egress, servers):
    sent = []

    def flood(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(1 << 30))
        handler.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(1 << 14):
                handler.wfile.write(bytes(1 << 16))
                sent.append(1 << 16)
    web = servers(cls=world.Web, answer=flood)
    egress.add(place, driver.document(allow(rule()), resolve=[to(web, port=80)]))
    with place.connect(driver.resolve(place, NAME), 80) as c:
        c.sendall(f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        time.sleep(1.0)
        before = sum(sent)
        time.sleep(0.5)
        assert sum(sent) == before < 32 << 20
        rss = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{egress.process.pid}/status").read_text())[1])
        assert rss < 64 << 10


def test_bad_answers_are_not_passed_on(place, egress, servers):
    def answer(sock):
        sock.recv(65536)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
    s = servers(answer)
    egress.add(place, driver.document(allow(rule()), resolve=[to(s, port=80)]))
    with place.connect(driver.resolve(place, NAME), 80) as c:
        a = ask(c)
    assert a.status == 502 and "x-gabion-denied" not in a.headers


def test_upgraded_connection_passes_raw_bytes(place, egress, servers):
    def upgrade(sock):
        data = sock.recv(65536)
        assert b"Upgrade: websocket" in data and b"Connection: Upgrade" in data
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst")
        world.echo(sock)
    s = servers(upgrade)
    egress.add(place, driver.document(allow(rule()), resolve=[to(s, port=80)]))
    with place.connect(driver.resolve(place, NAME), 80) as c:
        c.sendall(f"GET /ws HTTP/1.1\r\nHost: {NAME}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n".encode())
        got = b""
        while not got.endswith(b"first"):
            got += c.recv(4096)
        assert got.startswith(b"HTTP/1.1 101 ")
        c.sendall(b"\x81\x05hello")
        assert c.recv(100) == b"\x81\x05hello"


def test_redirect_to_a_denied_host_ends_there(place, egress, servers):
    def redirect(handler):
        handler.send_response(302)
        handler.send_header("Location", "http://evil.example/x")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
    web = servers(cls=world.Web, answer=redirect)
    egress.add(place, driver.document(allow(rule()), resolve=[to(web, port=80)]))
    with place.connect(driver.resolve(place, NAME), 80) as c:
        assert ask(c).headers["location"] == "http://evil.example/x"
    assert driver.rcode(driver.ask_name(place, "evil.example")) == 3


# --- opened ---

def test_opened_requests_are_judged_by_method_and_path(opened):
    connect, web, egress = opened
    with connect() as c:
        assert c.getpeercert()["subjectAltName"] == (("DNS", NAME),) and c.version() == "TLSv1.3"
        assert ask(c, path="/public/a?token=1").body == b"GET /public/a?token=1 0\n"
        assert ask(c, path="/public/b").status == 200
    for method, path, code in (("POST", "/public/a", "net.method_not_allowed"), ("GET", "/private", "net.path_not_allowed"),
                               ("DELETE", "/private", None)):
        with connect() as c:
            d = ask(c, method, path, body=b"x" if method == "POST" else b"").denial
            assert code is None or d["code"] == code
            assert egress.find(event=d["event"])["method"] == method
    assert [r[1] for r in web.requests] == ["/public/a?token=1", "/public/b"]
    r = egress.find(kind="http", decision="allow")
    assert r["protocol"] == "https" and r["path"] == "/public/" and "token" not in json.dumps(egress.records)


@pytest.mark.parametrize("path", ["/public/../private", "/public/%2e%2e/private", "/public/..%2fprivate", "/public/%2f../x",
                                  "/public/..;/x", "/public//../private", "/public/.%2e/x", "/public\\..\\private",
                                  "/public/a%00b", "/PUBLIC/a", "/publicity", "/public"])
def test_paths_that_mean_something_else(opened, path):
    connect, web, _ = opened
    with connect() as c:
        c.sendall(f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        assert read_answer(c).status in (400, 403)
    assert not web.requests


def test_opened_host_must_be_the_name(opened):
    connect, web, _ = opened
    with connect() as c:
        d = ask(c, path="/public/a", host="evil.example").denial
    assert d["code"] == "net.sni_mismatch" and not web.requests


def test_opened_upgrade_is_refused(opened):
    connect, web, _ = opened
    with connect() as c:
        d = ask(c, path="/public/ws", headers="Connection: Upgrade\r\nUpgrade: websocket\r\n").denial
    assert (d["code"], d["rule"]) == ("net.protocol_not_allowed", "floor:upgrade") and not web.requests


def test_opened_connection_offers_http_1_only(opened, place):
    connect, _, egress = opened
    context = client_context(egress.certificate)
    context.set_alpn_protocols(["h2", "http/1.1"])
    with context.wrap_socket(place.connect(driver.resolve(place, NAME), 443), server_hostname=NAME) as c:
        assert c.selected_alpn_protocol() == "http/1.1"


def test_certificate_of_the_far_side_is_verified(place, start, servers):
    web = servers(world.server_context("other.example.com"), cls=world.Web)
    e = start(open_tls=True, ca_bundle=world.authority()[1])
    e.add(place, driver.document(allow(rule(**READ_ONLY)), resolve=[to(web, port=443)]))
    raw = place.connect(driver.resolve(place, NAME), 443)
    with client_context(e.certificate).wrap_socket(raw, server_hostname=NAME) as c:
        a = ask(c, path="/public/")
    assert a.status == 502 and "certificate" in json.loads(a.body)["reason"] and not web.requests
    assert "x-gabion-denied" not in a.headers


def test_client_that_does_not_trust_us_is_told_of_in_the_record(opened, place):
    _, web, egress = opened
    with pytest.raises(ssl.SSLError):
        client_context().wrap_socket(place.connect(driver.resolve(place, NAME), 443), server_hostname=NAME)
    assert "trust" in egress.find(kind="tcp", phase="close")["detail"] and not web.requests


def test_opened_large_bodies_stream_both_ways(place, start, servers):
    def back(handler):
        body = handler.server.requests[-1][3]
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for i in range(0, len(body), 50000):
            piece = body[i:i + 50000]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")
    web = servers(world.server_context(NAME), cls=world.Web, answer=back)
    e = start(open_tls=True, ca_bundle=world.authority()[1])
    e.add(place, driver.document(allow(rule(methods=["POST"])), resolve=[to(web, port=443)]))
    raw = place.connect(driver.resolve(place, NAME), 443)
    data = bytes(range(256)) * 20000
    with client_context(e.certificate).wrap_socket(raw, server_hostname=NAME) as c:
        c.settimeout(20)
        for _ in range(2):
            assert ask(c, "POST", "/", body=data).body == data


def test_plain_http_is_judged_by_the_same_rules(place, egress, servers):
    web = servers(cls=world.Web)
    egress.add(place, driver.document(allow(rule(**READ_ONLY)), resolve=[to(web, port=80)]))
    address = driver.resolve(place, NAME)
    with place.connect(address, 80) as c:
        assert ask(c, path="/public/x").status == 200
        assert ask(c, path="/private/x").denial["code"] == "net.path_not_allowed"
    assert is_reset(place, address, 80, b"SSH-2.0-x\r\n")
    assert len(web.requests) == 1


def test_slow_heads_are_cut_off(plain):
    """A head that never ends costs a connection for ten seconds and no longer."""
    connect, web, egress = plain
    with connect() as c, connect() as silent:
        c.settimeout(15)
        silent.settimeout(15)
        c.sendall(f"GET / HTTP/1.1\r\nHost: {NAME}\r\n".encode())
        stop = threading.Event()

        def drip():
            with contextlib.suppress(OSError):
                while not stop.wait(0.5):
                    c.sendall(b"X-A: b\r\n")
        threading.Thread(target=drip, daemon=True).start()
        begin = time.monotonic()
        a = read_answer(c)
        stop.set()
        assert a.status == 408 and 9 < time.monotonic() - begin < 13 and not web.requests
        with pytest.raises(ConnectionResetError):  # and one that says nothing at all, where something is due
            silent.recv(1)
    egress.ping()
    assert any("in time" in r.get("detail", "") for r in egress.records if r["kind"] == "tcp")
