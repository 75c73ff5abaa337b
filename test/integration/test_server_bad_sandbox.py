"""Bytes that no client should send to a sandbox, through a real server: to envd and to a port inside. Clear answers, bounded memory,
nothing smuggled to the server inside, and everything goes on."""
import base64
import contextlib
import json
import os
import socket
import struct
import threading
import time

import harness
import pytest
from envd import RpcError, Stream, envelope, wait_for
from server import raw, status_of
from test_server_bad_input import MALFORMED

PORT = 8080
# Writes the paths of all requests that it gets to a file.
INSIDE = '''
import http.server
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        with open("/tmp/seen", "a") as f:
            f.write(self.path + "\\n")
        n = int(self.headers.get("Content-Length") or 0)
        while n > 0:
            n -= len(self.rfile.read(min(n, 65536)))
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    do_POST = do_PUT = do_GET
http.server.ThreadingHTTPServer(("127.0.0.1", 8080), H).serve_forever()
'''
OCTETS = {"Content-Type": "application/octet-stream"}


def memory(server, which="VmRSS"):
    return int(harness.status_of(server.pid_of("gabiond"))[which].split()[0])


@pytest.fixture(scope="module")
def box(server):
    box = server.client().sandbox()
    assert box.http("POST", "/files?path=serve.py", INSIDE, headers=OCTETS).status == 200
    stream = box.start("/usr/bin/python3", "serve.py", stdin=False)
    wait_for(lambda: box.http("GET", "/", port=PORT).status == 200)
    yield box
    stream.close()
    server.client().kill_all()


@pytest.fixture(autouse=True)
def all_goes_on(server, box):
    pid, before = server.pid_of("gabiond"), memory(server)
    yield
    assert server.pid_of("gabiond") == pid
    assert box.http("GET", "/", port=PORT).body == b"ok"
    assert box.sh("echo fine").finish()[1] == b"fine\n"
    assert harness.until(lambda: memory(server) < before + 32 * 1024, 5), f"{before} KiB, then {memory(server)}"


def head(box, port, *lines, method="POST", path="/"):
    words = [f"{method} {path} HTTP/1.1", "Host: x", f"E2b-Sandbox-Id: {box.ident}", f"E2b-Sandbox-Port: {port}",
             f"X-Access-Token: {box.token}", *lines, "", ""]
    return "\r\n".join(words).encode()


@pytest.mark.parametrize("port", [49983, PORT])
@pytest.mark.parametrize("name", [n for n in MALFORMED if n not in ("no host", "two hosts", "no version", "other protocol", "HTTP/2")])
def test_malformed_http_is_refused(server, box, name, port):
    data, _ = MALFORMED[name]
    end = b"\n" if name == "bare line ends" else b"\r\n"
    whom = end.join([b"E2b-Sandbox-Id: " + box.ident.encode(), b"E2b-Sandbox-Port: %d" % port, b"X-Access-Token: " + box.token.encode(), b""])
    at = data.index(b"Host")
    got = raw(server, data[:at] + whom + data[at:] + head(box, PORT, path="/smuggled"), timeout=3, shut=True)
    assert 400 <= (status_of(got) or 0) < 600 and got.count(b"HTTP/1.1 ") == 1, got[:300]
    assert b"/smuggled" not in box.http("GET", "/files?path=/tmp/seen").body


def test_heads_have_a_size(server, box):
    for port in (49983, PORT):
        assert status_of(raw(server, head(box, port, "A: " + "a" * 20000), timeout=3)) == 431
        assert status_of(raw(server, head(box, port, *[f"H{i}: x" for i in range(120)]), timeout=3)) == 431
        assert status_of(raw(server, head(box, port, path="/" + "a" * 20000), timeout=3)) in (414, 431)


@pytest.mark.parametrize("lines", [
    ["E2b-Sandbox-Id: ../../etc"], ["E2b-Sandbox-Id: "], ["E2b-Sandbox-Id: " + "a" * 300], ["E2b-Sandbox-Id: ABC"],
    ["E2b-Sandbox-Id: abc", "E2b-Sandbox-Port: -1"], ["E2b-Sandbox-Id: abc", "E2b-Sandbox-Port: 65536"],
    ["E2b-Sandbox-Id: abc", "E2b-Sandbox-Port: 80 80"], ["E2b-Sandbox-Id: abc", "E2b-Sandbox-Port: 0x50"]])
def test_ids_and_ports_that_are_none(server, lines):
    got = raw(server, "\r\n".join(["GET /health HTTP/1.1", "Host: x", *lines, "Connection: close", "", ""]).encode(), timeout=3)
    assert status_of(got) == 400 and b'"code":400' in got


def rpc(box, method, body, kind="application/json"):
    return box.http("POST", "/" + method, body, headers={"Content-Type": kind})


@pytest.mark.parametrize("method, body", [
    ("filesystem.Filesystem/Stat", b"{"), ("filesystem.Filesystem/Stat", b"[]"), ("filesystem.Filesystem/Stat", b'{"path":"\xff"}'),
    ("filesystem.Filesystem/Stat", b'{"path":"a\\u0000b"}'), ("filesystem.Filesystem/Stat", b'{"path":1}'),
    ("filesystem.Filesystem/Stat", b'{"path":"' + b"a" * 5000 + b'"}'), ("filesystem.Filesystem/Stat", b"[" * 5000),
    ("filesystem.Filesystem/ListDir", b'{"path":"/","depth":-1}'), ("filesystem.Filesystem/ListDir", b'{"path":"/","depth":1e99}'),
    ("filesystem.Filesystem/Move", b'{"source":"a"}'), ("filesystem.Filesystem/CreateWatcher", b'{"path":"/tmp","recursive":"yes"}'),
    ("process.Process/SendInput", b'{"process":{"pid":1},"input":{"stdin":"%%%"}}'), ("process.Process/SendInput", b'{"process":{"pid":-1}}'),
    ("process.Process/SendSignal", b'{"process":{"pid":1},"signal":"SIGNAL_SIGSTOP"}'),
    ("process.Process/Update", b'{"process":{"pid":1},"pty":{"size":{"cols":-1,"rows":70000}}}'),
])
def test_messages_that_make_no_sense_are_refused_by_their_field(box, method, body):
    reply = rpc(box, method, body)
    assert reply.status == 400 and reply.json["code"] == "invalid_argument" and reply.json["message"], reply
    assert reply.json["request"] == reply.headers["X-Request-Id"] and reply.json["sandbox"]["state"] == "running"
    assert reply.json["sandbox"]["last_event"]["kind"]


@pytest.mark.parametrize("message", [
    {"process": {"cmd": ""}}, {"process": {"args": ["x"]}}, {"process": {"cmd": "/bin/true", "args": "x"}}, {"process": {"cmd": 1}},
    {"process": {"cmd": "/bin/true", "envs": {"A=B": "x"}}}, {"process": {"cmd": "/bin/true", "envs": {"A": 1}}},
    {"process": {"cmd": "/bin/true", "cwd": "/none"}}, {"process": {"cmd": "/bin/true", "cwd": "/" + "a" * 5000}},
    {"process": {"cmd": "/bin/true", "args": ["x"] * 5000}}, {"process": {"cmd": "/bin/true"}, "tag": "x" * 5000}, {}, [],
    {"process": {"cmd": "/bin/true"}, "pty": {"size": {"cols": 0}}}])
def test_commands_that_make_no_sense_are_refused(box, message):
    stream = box.stream("process.Process/Start", message)
    frame = stream.r.read()
    flag, size = struct.unpack(">BI", frame[:5])
    said = json.loads(frame[5:])
    assert stream.r.status == 200 and flag == 2 and len(frame) == size + 5 and said["error"]["code"] == "invalid_argument", said
    assert said["error"]["request"] == stream.r.headers["X-Request-Id"]


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0\0\0\0", b"\1\0\0\0\2{}", b"\0\xff\xff\xff\xff", b"\0\0\0\0\2{}\0\0\0\0\2{}", b"\0\0\0\0\3{}"])
def test_frames_that_make_no_sense_are_refused(box, frame):
    reply = rpc(box, "process.Process/Start", frame, "application/connect+json")
    assert reply.status == 200 and reply.body[:1] == b"\2" and json.loads(reply.body[5:])["error"]["code"] in (
        "invalid_argument", "resource_exhausted")


def test_what_is_not_served_says_so(box):
    assert box.http("GET", "/process.Process/List").status == 405
    assert rpc(box, "process.Process/List", b"{}", "text/plain").status == 415
    assert rpc(box, "process.Process/None", b"{}").status == 404
    assert rpc(box, "init", b"{}").status == 404
    unknown = rpc(box, "process.Process/List", b'{"unknownField":{"deep":[1]}}')
    assert unknown.status == 400 and "must be empty" in unknown.json["message"]
    unknown = rpc(box, "filesystem.Filesystem/Stat", b'{"path":"/tmp","unknownField":1}')
    assert unknown.status == 400 and "unknownField" in unknown.json["message"]


@pytest.mark.parametrize("path", ["../../../etc/shadow", "/proc/1/root/etc/shadow", "/proc/self/root/../../etc/shadow", "//etc//./shadow",
                                  "/dev/../etc/shadow", "/etc/shadow", "~root/x", "/proc/1/environ"])
def test_paths_with_tricks_stay_inside(box, path):
    reply = box.http("GET", "/files?path=" + path)
    assert reply.status in (400, 403, 404), reply
    assert b"root:" not in reply.body


@pytest.mark.parametrize("query", ["", "path=%00", "path=%zz", "path=%ff%fe", "path=a&path=b", "path=f&username=stranger",
                                   "path=f&signature=x", "path=f&signature_expiration=-1&signature=v1_x"])
def test_queries_that_make_no_sense_are_refused(box, query):
    reply = box.http("GET", "/files?" + query, token="" if "signature" in query else None)
    assert reply.status in (400, 401, 404) and reply.json["code"] == reply.status


def test_uploads_that_make_no_sense_are_refused(box):
    form = {"Content-Type": "multipart/form-data; boundary=b"}
    for headers, body in ((form, b"--x\r\n"), (form, b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\nx"),
                          (form, b"--b\r\n" + b"A: b\r\n" * 5000), ({"Content-Type": "multipart/form-data"}, b"x"),
                          ({"Content-Type": "text/plain"}, b"x"), ({**OCTETS, "Content-Encoding": "gzip"}, b"no gzip"),
                          ({**OCTETS, "Content-Encoding": "br"}, b"x"), ({**OCTETS, "Content-Length": "-1"}, b"x")):
        reply = box.http("POST", "/files?path=up", body, headers=headers)
        assert 400 <= reply.status < 500 or reply.status == 501, reply


def send_endlessly(server, start, piece, seconds=6):
    """What comes back while one writes without an end, and how much was written."""
    sent, got = 0, b""
    with socket.create_connection(server.address, timeout=seconds) as s:
        s.sendall(start)
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                s.setblocking(False)
                try:
                    got += s.recv(65536)
                    if got:
                        break
                except BlockingIOError:
                    pass
                s.settimeout(1)
                try:
                    sent += s.send(piece)
                except TimeoutError:
                    continue
        except OSError:
            pass
    return got, sent


CHUNK = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
CHUNKED = "Transfer-Encoding: chunked"


def test_endless_messages_are_cut_off(server, box):
    before = memory(server, "VmHWM")
    start = head(box, 49983, CHUNKED, "Content-Type: application/json", path="/process.Process/List")
    got, sent = send_endlessly(server, start, CHUNK)
    assert status_of(got) == 429 and sent < 64 << 20
    start = head(box, 49983, CHUNKED, "Content-Type: application/connect+json", path="/process.Process/Start")
    got, sent = send_endlessly(server, start, CHUNK)
    assert status_of(got) == 200 and b"error" in got and sent < 64 << 20
    tiny = head(box, 49983, CHUNKED, "Content-Type: application/json", path="/process.Process/List")
    assert status_of(raw(server, tiny + b"1\r\na\r\n" * 300000 + b"0\r\n\r\n", timeout=5, shut=True)) == 400
    assert memory(server, "VmHWM") < before + 64 * 1024


def test_an_endless_upload_ends_at_the_sandboxs_disk(server, box):
    before = memory(server, "VmHWM")
    start = head(box, 49983, CHUNKED, "Content-Type: application/octet-stream", path="/files?path=/tmp/endless")
    got, sent = send_endlessly(server, start, CHUNK * 16, seconds=30)
    assert status_of(got) == 507 and sent > 64 << 20
    assert memory(server, "VmHWM") < before + 64 * 1024
    box.fs("Remove", path="/tmp/endless")


def test_a_server_inside_that_never_reads_stops_the_client(server, box):
    listen = "import socket,time; s=socket.create_server(('127.0.0.1', 8081)); c=s.accept()[0]; print('in', flush=True); time.sleep(60)"
    stream = box.start("/usr/bin/python3", "-c", listen, stdin=False)
    pid = stream.pid()
    wait_for(lambda: box.sh("grep -c :1F91 /proc/net/tcp").finish()[1].strip() != b"0")
    before = memory(server, "VmHWM")
    got, sent = send_endlessly(server, head(box, 8081, CHUNKED), b"1\r\na\r\n" * 10000, seconds=2)
    assert got == b"" and sent < 32 << 20
    assert memory(server, "VmHWM") < before + 32 * 1024
    box.signal(pid=pid)
    stream.close()


def test_clients_that_do_not_read_stop_the_command(server, box):
    before, streams = memory(server, "VmHWM"), []
    for _ in range(8):
        s = socket.create_connection(server.address)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = envelope({"process": {"cmd": "/usr/bin/yes"}, "stdin": False, "tag": "yes"})
        s.sendall(head(box, 49983, "Content-Type: application/connect+json", f"Content-Length: {len(body)}", path="/process.Process/Start") + body)
        streams.append(s)
    time.sleep(1)
    assert box.sh("echo quick").finish()[1] == b"quick\n"
    assert memory(server, "VmHWM") < before + 32 * 1024
    for process in box.processes():
        if process["config"]["cmd"] == "/usr/bin/yes":
            box.signal(pid=process["pid"])
    for s in streams:
        s.close()


def test_clients_that_trickle_do_not_hold_up_others(server, box):
    """Uploads of one sandbox wait for each other, but for nobody else."""
    slow, other = [], server.client().sandbox()
    for port in (49983, PORT):
        for _ in range(50):
            s = socket.create_connection(server.address)
            s.sendall(head(box, port, "Content-Length: 1000", "Content-Type: application/octet-stream", path="/files?path=/tmp/slow") + b"x")
            slow.append(s)
    began = time.monotonic()
    assert box.sh("echo quick").finish()[1] == b"quick\n" and box.http("GET", "/", port=PORT).status == 200
    assert other.http("POST", "/files?path=f", "x", headers=OCTETS).status == 200
    assert time.monotonic() - began < 2
    for s in slow:
        s.close()
    assert box.http("GET", "/files?path=serve.py").status == 200


def test_too_many_requests_at_once_are_refused_not_lost(server, box):
    """A sandbox has a number of requests at once; one more is told so, and the others go on."""
    streams = [box.sh("sleep 20") for _ in range(60)]
    replies = []

    def ask():
        replies.append(box.http("GET", "/files?path=serve.py").status)

    threads = [threading.Thread(target=ask) for _ in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert set(replies) <= {200, 429} and replies.count(200) > 0
    for process in box.processes():
        if process["config"]["args"][-1:] == ["sleep 20"]:
            box.signal(pid=process["pid"])
    assert {s.finish()[0]["error"] for s in streams} == {"signal: killed"}


def test_a_watch_that_nobody_reads_costs_little(server, box):
    before = memory(server)
    watch = Stream(box, "filesystem.Filesystem/WatchDir", {"path": "/tmp"})
    assert box.sh("cd /tmp; for i in $(seq 20000); do echo > w$((i % 50)); done; rm -f w*").finish()[0]["exitCode"] == 0
    assert memory(server) < before + 32 * 1024
    watch.close()


def test_bytes_of_an_upgraded_connection_are_bounded(server, box):
    """After 101 both sides are raw: whoever does not read stops the other."""
    accept = ("import socket; s=socket.create_server(('127.0.0.1', 8082)); c=s.accept()[0]; c.recv(4096); "
              "c.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: raw\\r\\n\\r\\n'); "
              "[c.sendall(b'x' * 65536) for _ in range(100000)]")
    stream = box.start("/usr/bin/python3", "-c", accept, stdin=False)
    pid = stream.pid()
    wait_for(lambda: box.sh("grep -c :1F92 /proc/net/tcp").finish()[1].strip() != b"0")
    before = memory(server, "VmHWM")
    with socket.create_connection(server.address, timeout=5) as s:
        s.sendall(head(box, 8082, "Connection: Upgrade", "Upgrade: raw", method="GET"))
        assert s.recv(12) == b"HTTP/1.1 101"
        time.sleep(1)
        assert memory(server, "VmHWM") < before + 16 * 1024
    with contextlib.suppress(RpcError):  # it may have heard already that nobody reads any more
        box.signal(pid=pid)
    stream.close()


def test_input_is_taken_as_the_command_reads_it(server, box):
    stream = box.start("/bin/sleep", "30")
    pid = stream.pid()
    before = memory(server, "VmHWM")
    data = base64.b64encode(os.urandom(1 << 20)).decode()
    body = json.dumps({"process": {"pid": pid}, "input": {"stdin": data}}).encode()
    waiting = []
    for _ in range(8):
        s = socket.create_connection(server.address)
        s.sendall(head(box, 49983, "Content-Type: application/json", f"Content-Length: {len(body)}", path="/process.Process/SendInput") + body)
        waiting.append(s)
    time.sleep(0.5)
    assert memory(server, "VmHWM") < before + 64 * 1024
    box.signal(pid=pid)
    stream.finish()
    for s in waiting:
        s.close()
