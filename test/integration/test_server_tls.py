"""A listener that speaks TLS: the API, commands and ports of sandboxes through it, and certificates that are refused."""
import contextlib
import http.client
import json
import socket
import ssl
import subprocess

import harness
import pytest
from envd import envelope, wait_for
from server import Server, raw
from test_server_start import gabiond


@pytest.fixture(scope="module")
def certificate(module_place):
    """(certificate, key) for localhost and all below it."""
    cert, key = module_place / "cert.pem", module_place / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=DNS:localhost,DNS:*.box.localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True, timeout=30)
    key.chmod(0o600)
    return cert, key


@pytest.fixture(scope="module")
def server(module_place, certificate):
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with Server(module_place, "--listen", f"tls:127.0.0.1:{port}", "--certificate", str(certificate[0]), "--certificate-key", str(certificate[1]),
                "--domain", f"box.localhost:{port}") as running:
        running.tls_port = port
        yield running
        assert running.stop() == 0


@pytest.fixture(scope="module")
def context(certificate):
    made = ssl.create_default_context(cafile=str(certificate[0]))
    made.set_alpn_protocols(["http/1.1"])
    return made


def opened(server, context, name="localhost"):
    s = socket.create_connection(("127.0.0.1", server.tls_port), timeout=10)
    return context.wrap_socket(s, server_hostname=name, suppress_ragged_eofs=False)


def ask(server, context, method, path, headers, body=None, name="localhost"):
    c = http.client.HTTPConnection(name, server.tls_port, timeout=10)
    c.sock = opened(server, context, name)
    with contextlib.closing(c):
        c.request(method, path, body, {"Host": f"{name}:{server.tls_port}", **headers})
        reply = c.getresponse()
        return reply.status, reply.read()


def test_the_api_and_sandboxes_are_reached_through_it(server, context):
    api = {"X-API-Key": server.key}
    status, body = ask(server, context, "POST", "/v2/sandboxes", api, json.dumps({"templateID": "base", "timeout": 60}))
    made = json.loads(body)
    assert status == 201 and made["domain"] == f"box.localhost:{server.tls_port}"
    name = f"49983-{made['sandboxID']}.box.localhost"
    token = {"X-Access-Token": made["envdAccessToken"]}
    assert ask(server, context, "GET", "/health", token, name=name)[0] == 204
    big = b"0123456789" * 300_000
    upload = {**token, "Content-Type": "application/octet-stream"}
    assert ask(server, context, "POST", "/files?path=big", upload, big, name=name)[0] == 200
    assert ask(server, context, "GET", "/files?path=big", token, name=name) == (200, big)
    serve = envelope({"process": {"cmd": "/usr/bin/python3", "args": ["-m", "http.server", "8080"]}, "stdin": False})
    with opened(server, context, name) as s:
        s.sendall(f"POST /process.Process/Start HTTP/1.1\r\nHost: {name}\r\nX-Access-Token: {made['envdAccessToken']}\r\n"
                  f"Content-Type: application/connect+json\r\nContent-Length: {len(serve)}\r\n\r\n".encode() + serve)
        assert s.recv(15) == b"HTTP/1.1 200 OK"
        wait_for(lambda: ask(server, context, "GET", "/big", {}, name=f"8080-{made['sandboxID']}.box.localhost") == (200, big))
    assert ask(server, context, "DELETE", f"/sandboxes/{made['sandboxID']}", api)[0] == 204


def test_the_end_of_a_connection_is_said(server, context):
    with opened(server, context) as s:
        assert s.version() in ("TLSv1.2", "TLSv1.3") and s.selected_alpn_protocol() == "http/1.1"
        s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        got = b""
        while piece := s.recv(4096):  # an end without close_notify would raise
            got += piece
        assert got.startswith(b"HTTP/1.1 200 ")


def test_other_words_are_not_understood(server, context):
    class Plain:
        address = ("127.0.0.1", server.tls_port)

    for data in (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 70000, b"\0" * 100):
        assert b"200 OK" not in raw(Plain, data, timeout=2, shut=True)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_alpn_protocols(["h2"])
    with pytest.raises(ssl.SSLError), opened(server, old):
        pass
    idle = [socket.create_connection(("127.0.0.1", server.tls_port)) for _ in range(200)]
    assert ask(server, context, "GET", "/health", {})[0] == 200
    for s in idle:
        s.close()
    assert harness.until(lambda: server.client().get("/sandboxes").status == 200, 2)


def test_certificates_that_cannot_be_used_are_refused_in_one_line(server, certificate, place):
    cert, key = certificate
    other, open_key = place / "other.pem", place / "open.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", other], check=True, capture_output=True)
    other.chmod(0o600)
    open_key.write_bytes(key.read_bytes())
    open_key.chmod(0o644)
    tls = ["--listen", "tls:127.0.0.1:0", "--data", place / "data"]
    for words, part in ((tls, "listen: tls: needs certificate and certificate-key"),
                        ([*tls, "--certificate", cert], "needs certificate and certificate-key"),
                        ([*tls, "--certificate", cert, "--certificate-key", other], "certificate-key: no key of this certificate"),
                        ([*tls, "--certificate", cert, "--certificate-key", open_key], "everybody may use it"),
                        ([*tls, "--certificate", cert, "--certificate-key", "/none"], "certificate-key /none: No such file"),
                        ([*tls, "--certificate", key, "--certificate-key", key], "certificate: no chain"),
                        (["--listen", "127.0.0.1:0", "--data", place / "data", "--certificate", cert], "no listener uses it"),
                        (["--listen", "tls:unix:/x", *tls[2:], "--certificate", cert, "--certificate-key", key], "listen")):
        r = gabiond(*words)
        assert r.returncode == 125 and part in r.stderr and r.stderr.count("\n") == 1, (words, r.stderr)
