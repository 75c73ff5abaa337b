"""Bytes that no client should send: clear answers, nothing lost, memory bounded, and the next client is served."""
import contextlib
import json
import pathlib
import resource
import socket
import time

import harness
import pytest
from server import raw, status_of

CREATE = "/v2/sandboxes"


@pytest.fixture
def api(server):
    return server.client()


@pytest.fixture(autouse=True)
def the_server_is_well_afterwards(server):
    pid, kib = server.pid_of("gabiond"), memory_kib(server)
    yield
    assert server.pid_of("gabiond") == pid
    assert server.client().get("/sandboxes").json == []
    assert memory_kib(server) < kib + 32 * 1024


def memory_kib(server):
    return int(harness.status_of(server.pid_of("gabiond"))["VmRSS"].split()[0])


def head(server, *lines, method="GET", path="/sandboxes"):
    """A request head with the key, as bytes, up to and including the empty line."""
    text = [f"{method} {path} HTTP/1.1", "Host: x", f"X-API-Key: {server.key}", *lines, "", ""]
    return "\r\n".join(text).encode()


MALFORMED = {
    "two lengths": (b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    "length and chunks": (b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "strange coding": (b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    "two codings": (b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    "signed length": (b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}", 400),
    "bare line ends": (b"GET /sandboxes HTTP/1.1\nHost: x\n\n", 400),
    "blank before colon": (b"GET /sandboxes HTTP/1.1\r\nHost : x\r\n\r\n", 400),
    "folded header": (b"GET /sandboxes HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400),
    "NUL": (b"GET /sandboxes HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n", 400),
    "no host": (b"GET /sandboxes HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET /sandboxes HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    "no version": (b"GET /sandboxes\r\n\r\n", 400),
    "other protocol": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64, 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None),
    "backslash": (b"GET /sandboxes\\..\\ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_http_is_refused(server, name):
    data, want = MALFORMED[name]
    got = raw(server, data, timeout=3, shut=True)
    status = status_of(got)
    assert status is not None and 400 <= status < 600 and (want is None or status == want), got[:200]
    assert got.count(b"HTTP/1.1 ") == 1  # what stood behind it was not taken for a request


def test_a_smuggled_request_is_not_served(server):
    inner = head(server, method="DELETE", path="/sandboxes/" + "a" * 20)
    got = raw(server, b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
              + inner, timeout=3)
    assert got.count(b"HTTP/1.1 ") == 1 and status_of(got) == 400


def test_heads_have_a_size(server):
    assert status_of(raw(server, head(server, "A: " + "a" * 20000), timeout=3)) == 431
    many = [f"H{i}: x" for i in range(120)]
    assert status_of(raw(server, head(server, *many), timeout=3)) == 431
    assert status_of(raw(server, head(server, path="/" + "a" * 20000), timeout=3)) in (414, 431)
    assert status_of(raw(server, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200000, timeout=3)) == 431


def test_bodies_have_an_end(server):
    start = head(server, "Transfer-Encoding: chunked", method="POST", path=CREATE)
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    assert status_of(raw(server, start + chunk * 64, timeout=5)) == 413
    assert status_of(raw(server, head(server, "Content-Length: 999999999999", method="POST", path=CREATE), timeout=3)) == 413
    tiny = b"1\r\na\r\n" * 300000
    assert status_of(raw(server, start + tiny, timeout=5)) in (400, 413)


def test_a_stranger_cannot_make_us_read_a_body(server):
    data = b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\nX-API-Key: e2b_00\r\n\r\n"
    assert status_of(raw(server, data, timeout=2)) == 401


@pytest.mark.parametrize("body, part", [
    (b"", "templateID"),
    (b"{", "not JSON"),
    (b"nonsense", "not JSON"),
    (b"[]", "must be a JSON object"),
    (b'"text"', "not JSON"),
    (b'{"templateID":"base"} x', "not JSON"),
    (b'{"templateID":"base","templateID":"base"}', "duplicate"),
    (b'{"templateID":"\xff"}', "unable to decode byte 0xff"),
    (b'{"templateID":"a\\u0000b"}', "not JSON"),
    (b'{"templateID":"\\ud800"}', "not JSON"),
    (b'{"templateID":NaN}', "not JSON"),
    (b"[" * 5000, "deep"),
    (b'{"metadata":' * 3000 + b"1" + b"}" * 3000, "deep"),
    (b'{"templateID":"base","timeout":-1}', "timeout"),
    (b'{"templateID":"base","timeout":1e400}', "not JSON"),
    (b'{"templateID":"base","timeout":99999999999999999999}', "not JSON"),
    (b'{"templateID":"base","timeout":"60"}', "timeout"),
    (b'{"templateID":"base","unknownField":1}', "unknownField: unknown key"),
    (b'{"templateID":["base"]}', "templateID"),
    (b'{"templateID":"../../etc/passwd"}', "templateID"),
    (b'{"templateID":"base","metadata":{"a":{"b":"c"}}}', "metadata"),
    (b'{"templateID":"base","envVars":{"A=B":"c"}}', "envVars"),
    (b'{"templateID":"base","name":"../x"}', "name"),
])
def test_bodies_that_make_no_sense_are_answered_by_their_field(api, body, part):
    reply = api.request("POST", CREATE, body)
    assert reply.status in (400, 404) and part in reply.message
    assert reply.json["code"] == reply.status


def test_giant_documents_are_refused(api):
    members = ",".join(f'"k{i}":"v"' for i in range(15000))
    assert api.request("POST", CREATE, ('{"templateID":"base","metadata":{' + members + "}}").encode()).status == 400
    assert api.request("POST", CREATE, b'{"templateID":"' + b"a" * 200000 + b'"}').status == 400


@pytest.mark.parametrize("path", [
    "/v2/sandboxes?limit=-1", "/v2/sandboxes?limit=1e9", "/v2/sandboxes?nextToken=x", "/v2/sandboxes?metadata=%ff",
    "/v2/sandboxes?metadata=%25zz", "/v2/sandboxes?startedAfter=never", "/v2/sandboxes?state=dead", "/v2/sandboxes?a=%00",
    "/gabion/v1/events?after=-1", "/gabion/v1/events?sandbox=..", "/sandboxes/metrics?sandbox_ids=" + ",".join(["a" * 20] * 101),
])
def test_queries_that_make_no_sense_are_refused(api, path):
    assert api.get(path).status == 400


@pytest.mark.parametrize("path", [
    "/sandboxes/..%2f..%2fetc", "/sandboxes/%2e%2e", "/sandboxes/aaaaaaaaaaaaaaaaaaaa%00", "/sandboxes/'%20OR%201=1--",
    "/sandboxes/%ff%fe", "/sandboxes/" + "a" * 5000, "/sandboxes//", "/gabion/v1/../../sandboxes", "/sandboxes/%",
])
def test_paths_with_tricks_lead_nowhere(server, path):
    got = raw(server, head(server, "Connection: close", path=path), timeout=3)
    assert status_of(got) in (400, 404), got[:200]


def test_wrong_methods_say_what_is_possible(api):
    reply = api.request("PATCH", "/sandboxes")
    assert reply.status == 405 and reply.headers["Allow"] == "POST, GET"
    assert api.request("HEAD", "/sandboxes").body == b""
    assert api.get("/nothing/here").status == 404


@pytest.mark.parametrize("key", ["", "e2b_" + "0" * 40, "x" * 300, "e2b_", "' OR 1=1 --", "Bearer x"])
def test_wrong_keys_are_refused(server, key):
    reply = server.client("").get("/sandboxes", headers={"X-API-Key": key} if key else {})
    assert reply.status == 401 and reply.headers["WWW-Authenticate"]


def test_clients_that_trickle_do_not_hold_up_others(server, api):
    slow = [socket.create_connection(server.address) for _ in range(50)]
    for s in slow:
        s.sendall(b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API")
    began = time.monotonic()
    assert api.get("/sandboxes").status == 200
    assert time.monotonic() - began < 1
    slow[0].settimeout(15)
    assert status_of(slow[0].recv(4096)) == 408  # a head has ten seconds
    for s in slow:
        s.close()


def test_a_follower_that_does_not_read_costs_little(server, api):
    before = memory_kib(server)
    with socket.create_connection(server.address) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(head(server, "Accept: text/event-stream", path="/gabion/v1/events?after=0"))
        for i in range(150):
            assert api.post("/api-keys", {"name": f"k{i}" + "x" * 50}).status == 201
        assert memory_kib(server) < before + 16 * 1024
    for key in api.get("/api-keys").json:
        if key["name"] != "first":
            api.delete(f"/api-keys/{key['id']}")


def test_thousands_of_idle_connections_are_held(server, api):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, max(hard, 20000)))
    before, idle = memory_kib(server), []
    try:
        for i in range(5000):
            idle.append(socket.create_connection(server.address, timeout=5))
            if i % 5 == 0:  # some have begun to say something
                idle[-1].sendall(b"GET /sandboxes HTTP/1.1\r\nHost:")
        began = time.monotonic()
        assert api.get("/sandboxes").status == 200
        assert time.monotonic() - began < 2
        assert memory_kib(server) < before + 64 * 1024
    finally:
        for s in idle:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert harness.until(lambda: memory_kib(server) < before + 32 * 1024, 10)


def test_pipelined_requests_are_answered_in_order(server):
    got = raw(server, head(server) + head(server, path="/teams") + head(server, "Connection: close", path="/templates"), timeout=3)
    bodies = [part.split(b"\r\n\r\n", 1)[1] for part in got.split(b"HTTP/1.1 200 OK")[1:]]
    assert json.loads(bodies[0]) == [] and b"teamID" in bodies[1] and b"templateID" in bodies[2]
