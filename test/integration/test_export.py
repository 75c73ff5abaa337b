"""Exports: every form arrives as its receivers read it, and nothing is lost while a receiver is away."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import socket
import subprocess
import threading
import time

import harness
import pytest
from audit_log import audit, records
from conftest import needs
from harness import sh, until


@pytest.fixture
def log(tmp_path):
    place = tmp_path / "log"
    for _ in range(3):
        assert sh("unshare -U true; exit 0", "--audit", place).code == 0
    return place


class Receiver:
    """An HTTP server that keeps what it is sent and answers as it is told: status codes, one per request, then 200."""

    def __init__(self, answers=(), reply=b"{}", headers=()):
        self.requests, self.answers, self.reply, self.headers = [], list(answers), reply, headers
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code = outer.answers.pop(0) if outer.answers else 200
                outer.requests.append((code, dict(self.headers), body))
                self.send_response(code)
                for name, value in outer.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(outer.reply)))
                self.end_headers()
                self.wfile.write(outer.reply)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/logs"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def taken(self):
        return [(headers, body) for code, headers, body in self.requests if code == 200]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver():
    made = []

    def make(*args, **kw):
        made.append(Receiver(*args, **kw))
        return made[-1]

    needs("curl")
    yield make
    for r in made:
        r.close()


def ids(log):
    return [r["metadata"]["uid"] for r in records(log)]


def test_lines_are_the_records_and_the_cursor_goes_on(log, tmp_path):
    cursor = tmp_path / "cursor"
    first = audit("export", "--log", log, "--cursor", cursor)
    assert [json.loads(line) for line in first.lines] == records(log)
    assert audit("export", "--log", log, "--cursor", cursor).out == ""
    sh("true", "--audit", log)
    more = audit("export", "--log", log, "--cursor", cursor)
    assert [json.loads(line) for line in first.lines + more.lines] == records(log)
    assert audit("export", "--log", log, "--tenant", "other", "--cursor", cursor).code == 125


def otlp_ids(body):
    logs = json.loads(body)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    return [a["value"]["stringValue"] for r in logs for a in r["attributes"] if a["key"] == "gabion.event"]


def test_otlp_survives_a_receiver_that_is_away(log, tmp_path, receiver):
    cursor = tmp_path / "cursor"
    away = f"http://127.0.0.1:{free_port()}/v1/logs"
    words = ["export", "--log", log, "--format", "otlp", "--cursor", cursor]
    r = audit(*words, "--to", away, timeout=60)
    assert r.code == 125 and "nothing is lost" in r.err
    back = receiver(answers=[503, 429, 502])
    assert audit(*words, "--to", back.url, timeout=60).code == 0
    assert [code for code, _, _ in back.requests] == [503, 429, 502, 200]
    headers, body = back.taken()[0]
    assert headers["Content-Type"] == "application/json"
    assert otlp_ids(body) == ids(log)


def test_following_waits_for_the_receiver_and_delivers_all(log, tmp_path, receiver):
    port = free_port()
    words = [harness.GABION, "audit", "export", "--log", log, "--format", "otlp", "--follow", "--cursor",
             tmp_path / "cursor", "--to", f"http://127.0.0.1:{port}/v1/logs"]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as p:
        time.sleep(1)
        sh("true", "--audit", log)
        back = receiver()
        threading.Thread(target=forward, args=(port, back.server.server_port), daemon=True).start()
        sh("true", "--audit", log)
        assert until(lambda: sum((otlp_ids(body) for _, body in back.taken()), []) == ids(log), 20)
        p.terminate()


def forward(port, to):
    """A port that leads to another one, from now on."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            conn, _ = listener.accept()
            other = socket.create_connection(("127.0.0.1", to))
            for a, b in ((conn, other), (other, conn)):
                threading.Thread(target=pump, args=(a, b), daemon=True).start()


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_refused_for_good_stops_in_front(log, tmp_path, receiver):
    cursor = tmp_path / "cursor"
    server = receiver(answers=[400])
    words = ["export", "--log", log, "--format", "hec", "--cursor", cursor, "--to", server.url]
    r = audit(*words)
    assert r.code == 125 and "HTTP 400" in r.err
    assert audit(*words).code == 0
    text = server.taken()[0][1].decode()
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(text):
        doc, at = decoder.raw_decode(text, at)
        found.append(doc["event"]["metadata"]["uid"])
    assert found == ids(log)


def test_records_that_a_receiver_threw_away_are_told(log, receiver):
    server = receiver(reply=b'{"partialSuccess":{"rejectedLogRecords":"2"}}')
    r = audit("export", "--log", log, "--format", "otlp", "--to", server.url)
    assert r.code == 0 and "rejected" in r.err and len(server.requests) == 1


@pytest.mark.parametrize("kind", ["hmac", "ed25519"])
def test_webhooks_are_signed_one_by_one_and_keep_their_id(log, tmp_path, receiver, kind):
    key = os.urandom(32)
    secret = tmp_path / "secret"
    secret.write_text(("whsec_" if kind == "hmac" else "whsk_") + base64.b64encode(key).decode() + "\n")
    headers = tmp_path / "headers"
    headers.write_text('X-Token: a "quoted" \\ one\n')
    server = receiver(answers=[200, 503])
    r = audit("export", "--log", log, "--format", "webhook", "--to", server.url, "--secret", secret, "--headers", headers,
              timeout=90)
    assert r.code == 0, r
    seen = [h["webhook-id"] for _, h, _ in server.requests]
    assert seen[1] == seen[2] and [h["webhook-id"] for h, _ in server.taken()] == ids(log)
    for h, body in server.taken():
        signed = f"{h['webhook-id']}.{h['webhook-timestamp']}.".encode() + body
        version, signature = h["webhook-signature"].split(",")
        assert abs(int(h["webhook-timestamp"]) - time.time()) < 60
        assert h["X-Token"] == 'a "quoted" \\ one'
        assert json.loads(body)["type"] and json.loads(body)["data"]["metadata"]["uid"] == h["webhook-id"]
        if kind == "hmac":
            assert version == "v1"
            want = hmac.new(key, signed, hashlib.sha256).digest()
            assert hmac.compare_digest(base64.b64decode(signature), want)
        else:
            assert version == "v1a" and ed25519_ok(tmp_path, key, signed, base64.b64decode(signature))


def ed25519_ok(folder, seed, signed, signature):
    (folder / "key.der").write_bytes(bytes.fromhex("302e020100300506032b657004220420") + seed)
    (folder / "signed").write_bytes(signed)
    (folder / "sig").write_bytes(signature)
    return subprocess.run(["openssl", "pkeyutl", "-verify", "-keyform", "DER", "-inkey", folder / "key.der", "-rawin",
                           "-in", folder / "signed", "-sigfile", folder / "sig"], check=False,
                          capture_output=True).returncode == 0


def test_secrets_of_the_receiver_are_no_arguments(log, tmp_path, receiver):
    """The token and the signature must not be seen in the list of processes."""
    headers = tmp_path / "headers"
    headers.write_text("Authorization: Splunk canary-token\n")
    server = receiver()
    trace = tmp_path / "trace"
    subprocess.run(["strace", "-f", "-e", "trace=execve", "-o", trace, harness.GABION, "audit", "export", "--log", log,
                    "--format", "hec", "--to", server.url, "--headers", headers], check=True, timeout=60,
                   stderr=subprocess.DEVNULL)
    assert server.taken()[0][0]["Authorization"] == "Splunk canary-token"
    assert "curl" in trace.read_text() and "canary-token" not in trace.read_text()


def receive_stream(listener, into):
    while True:
        conn, _ = listener.accept()
        data = b""
        with conn:
            while chunk := conn.recv(65536):
                data += chunk
        into.append(data)


def unframe(data):
    """Octet counting (RFC 6587)."""
    messages = []
    while data:
        n, _, rest = data.partition(b" ")
        messages.append(rest[:int(n)])
        data = rest[int(n):]
    return messages


@pytest.mark.parametrize("form", ["syslog", "cef"])
def test_syslog_over_tcp_is_framed(log, form):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        got = []
        threading.Thread(target=receive_stream, args=(listener, got), daemon=True).start()
        r = audit("export", "--log", log, "--format", form, "--to", f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        assert r.code == 0
        assert until(lambda: len(got) == 1)
    messages = unframe(got[0])
    assert len(messages) == len(records(log))
    for message, record in zip(messages, records(log)):
        assert message.startswith(b"<1") and b">1 20" in message[:12]
        if form == "syslog":
            assert json.loads(message.split(b"\xef\xbb\xbf", 1)[1]) == record
        else:
            assert b"CEF:0|Gabion|Gabion|" in message and record["metadata"]["uid"].encode() in message


def test_syslog_to_a_local_socket(log, tmp_path):
    path = tmp_path / "dev-log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(path))
        got = []

        def collect():
            while True:
                got.append(s.recv(65536))

        threading.Thread(target=collect, daemon=True).start()
        assert audit("export", "--log", log, "--format", "syslog", "--to", f"unix:{path}").code == 0
        assert until(lambda: len(got) == len(records(log)))


@pytest.mark.parametrize("words, said", [
    (["--format", "xml"], "--format"), (["--to", "ftp://x"], "--to"), (["--to", "tcp://name:1"], "a number, not a name"),
    (["--to", "unix:/x"], "syslog and cef only"), (["--format", "syslog", "--to", "unix:/x"], "export again later"), (["--format", "webhook", "--to", "http://127.0.0.1:1"], "--secret"),
    (["--headers", "/nowhere"], "--headers"), (["--cursor", "/proc/self/status"], "/proc/self/status"),
])
def test_bad_words_are_told(log, words, said):
    r = audit("export", "--log", log, *words)
    assert r.code == 125 and said in r.err and r.err.count("\n") <= 2, r
