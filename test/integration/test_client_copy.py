"""`gabion cp` and `gabion port`, and the ways to a server other than plain TCP."""
import base64
import hashlib
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import threading

import harness
import pytest
from client import box, cli  # noqa: F401  pylint: disable=unused-import
from server import Server


@pytest.fixture
def tree(place):
    root = place / "tree"
    (root / "sub/empty").mkdir(parents=True)
    (root / "a").write_bytes(b"a\n")
    (root / "zero").write_bytes(b"")
    (root / "sub/name with ' blanks%20&?").write_bytes(os.urandom(300_000))
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "run.sh").chmod(0o755)
    return root


def contents(root):
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else None for p in pathlib.Path(root).rglob("*")}


def test_directories_go_both_ways(cli, box, tree, place):
    cli.ok("cp", str(tree), f"{box}:copy")
    assert cli.ok("exec", box, "./copy/run.sh") == "ran\n"
    assert cli.ok("exec", box, "sh", "-c", "stat -c '%U %a' copy/a") == "user 644\n"
    cli.ok("cp", f"{box}:copy", str(place / "back"))
    assert contents(place / "back") == contents(tree)
    assert os.access(place / "back/run.sh", os.X_OK) and not os.access(place / "back/a", os.X_OK)
    cli.ok("cp", str(tree), f"{box}:copy")  # into what is there, as cp does
    assert cli.ok("exec", box, "cat", "copy/tree/a") == "a\n"
    cli.ok("cp", f"{box}:copy/tree", str(place))
    assert contents(tree) == contents(place / "tree")


def test_files_go_both_ways(cli, box, tree, place):
    big = os.urandom(5_000_000)
    (place / "big").write_bytes(big)
    cli.ok("cp", str(place / "big"), f"{box}:/tmp/deep/er/big")
    assert cli("cp", f"{box}:/tmp/deep/er/big", "-").stdout == big
    cli.ok("cp", "-", f"{box}:x", data=b"from a pipe")
    cli.ok("cp", f"{box}:x", str(place / "x"))
    assert (place / "x").read_bytes() == b"from a pipe"
    cli.ok("cp", str(tree / "a"), str(tree / "run.sh"), f"{box}:many/")
    assert cli.ok("exec", box, "ls", "many").split() == ["a", "run.sh"]
    cli.ok("cp", "-u", "root", str(tree / "a"), f"{box}:/tmp/roots")
    assert cli.ok("exec", box, "stat", "-c", "%U", "/tmp/roots") == "root\n"
    assert cli("cp", f"{box}:/proc/self/status", "-").stdout.startswith(b"Name:")  # its size is 0


def test_failures_leave_nothing_half_done(cli, box, tree, place):
    (place / "kept").write_text("old")
    assert "no such file in the sandbox" in cli.refused("cp", f"{box}:nothere", str(place / "kept"))
    cli.ok("exec", box, "sh", "-c", "echo secret > hidden; chmod 000 hidden")
    assert "hidden" in cli.refused("cp", f"{box}:hidden", str(place / "kept"))
    assert (place / "kept").read_text() == "old" and not list(place.glob(".gabion-*"))
    assert "several sources" in cli.refused("cp", str(tree / "a"), str(tree / "zero"), f"{box}:notadir")
    assert "only a file" in cli.refused("cp", f"{box}:/tmp", "-")
    assert "/usr" in cli.refused("cp", str(tree / "a"), f"{box}:/usr/x")
    assert "No such file" in cli.refused("cp", "/nosuch", f"{box}:")


def test_links_are_left_out_and_never_followed(cli, box, tree, place):
    os.symlink("/etc/passwd", tree / "link")
    out = cli("cp", str(tree), f"{box}:linked")
    assert out.returncode == 0 and b"link: a link; left out" in out.stderr and b"1 entry was left out" in out.stderr
    cli.ok("cp", "-L", str(tree), f"{box}:followed")
    assert "root:" in cli.ok("exec", box, "cat", "followed/link")
    # What a sandbox calls a directory may be a link here, and the other way round.
    target = place / "outside"
    target.mkdir()
    cli.ok("exec", box, "sh", "-c", f"mkdir -p evil; ln -s {target} evil/link; mkdir evil/dir; echo x > evil/dir/planted")
    (place / "down/evil").mkdir(parents=True)
    os.symlink(target, place / "down/evil/dir")
    assert cli("cp", f"{box}:evil", str(place / "down")).returncode == 125
    assert not list(target.iterdir()) and not (place / "down/evil/link").exists()


@pytest.fixture
def forwarded(cli, box):
    """(process, port here) of a port in the sandbox where a script listens."""
    running = []

    def start(script, port):
        inside = cli.popen("exec", box, "python3", "-u", "-c", script, str(port))
        assert inside.stdout.readline() == b"ready\n", inside.stderr.read()
        here = cli.popen("port", box, str(port), "--listen", "127.0.0.1:0")
        running.extend([inside, here])
        return here, int(here.stdout.readline().split(b":")[2].split(b"/")[0])

    yield start
    for p in running:
        p.kill()
        p.communicate()


HTTP_SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = f"{self.path} {self.headers['Host']} {self.headers['E2b-Sandbox-Id']}".encode()
        self.send_response(203)
        self.send_header("X-Mine", "yes")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
    do_HEAD = do_GET
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(0, len(body), 65536):
            piece = body[i:i + 65536]
            self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(piece), piece))
        self.wfile.write(b"0\\r\\n\\r\\n")
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready")
server.serve_forever()
"""


def test_http_is_passed_on(forwarded):
    here, port = forwarded(HTTP_SERVER, 8000)
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for _ in range(2):
        c.request("GET", "/x?y=z%20", headers={"E2b-Sandbox-Id": "forged"})
        r = c.getresponse()
        assert (r.status, r.headers["X-Mine"], r.headers.get_all("Date") and len(r.headers.get_all("Date"))) == (203, "yes", 1)
        assert r.read().decode() == f"/x?y=z%20 127.0.0.1:{port} None"
    c.request("HEAD", "/")
    r = c.getresponse()
    assert int(r.headers["Content-Length"]) > 0 and r.read() == b""
    data = os.urandom(3_000_000)
    c.request("POST", "/", data)
    assert c.getresponse().read() == data
    c.close()
    here.send_signal(signal.SIGINT)
    assert here.wait(10) == 0


WEBSOCKET = """
import base64, hashlib, socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready")
c, _ = s.accept()
head = b""
while b"\\r\\n\\r\\n" not in head:
    head += c.recv(4096)
key = [l.split(b": ")[1] for l in head.split(b"\\r\\n") if l.lower().startswith(b"sec-websocket-key")][0]
accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
c.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
          b"Sec-WebSocket-Accept: " + accept + b"\\r\\n\\r\\nfirst")
while data := c.recv(65536):
    c.sendall(data.upper())
"""


def test_websockets_are_passed_on(forwarded):
    _, port = forwarded(WEBSOCKET, 8001)
    key = base64.b64encode(b"0123456789abcdef")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n")
        got = b""
        while not got.endswith(b"first"):
            piece = s.recv(4096)
            assert piece, got
            got += piece
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        assert got.startswith(b"HTTP/1.1 101 ") and accept in got
        data, back = b"abc" * 100_000, b""
        threading.Thread(target=s.sendall, args=(data,)).start()
        while len(back) < len(data):
            back += s.recv(65536)
        assert back == data.upper()


def test_a_port_says_how_it_is_reached(cli, box):
    text = cli.ok("port", box, "8000")
    assert f"gabion port {box} 8000 --listen 127.0.0.1:8000\n" in text and "-H 'E2b-Sandbox-Port: 8000'" in text
    command = next(line for line in text.splitlines() if line.startswith("curl "))
    out = subprocess.run(["sh", "-c", command.replace("curl ", "curl -s ")], capture_output=True, text=True, timeout=10)
    assert "port is not open" in out.stdout
    assert "PORT is expected" in cli.refused("port", box, "80", "--listen", "nowhere")


def test_private_ports_are_opened_by_the_client(cli, forwarded, box):
    ident = cli.ok("create", "--private-ports", "--name", "private").strip()
    with cli.popen("exec", ident, "python3", "-u", "-c", HTTP_SERVER, "8000") as inside:
        assert inside.stdout.readline() == b"ready\n"
        with cli.popen("port", "private", "8000", "--listen", "0") as here:
            port = int(here.stdout.readline().split(b":")[2].split(b"/")[0])
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            c.request("GET", "/")
            assert c.getresponse().status == 203
            c.close()
            here.kill()
        inside.kill()


def test_tls_is_checked(cli, place):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", place / "key.pem",
                    "-out", place / "cert.pem"], check=True, capture_output=True, timeout=30)
    (place / "key.pem").chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with Server(place, "--listen", f"tls:127.0.0.1:{port}", "--certificate", str(place / "cert.pem"),
                "--certificate-key", str(place / "key.pem")) as server:
        cli.env.update(GABION_SERVER=f"https://localhost:{port}", GABION_API_KEY=server.key)
        assert "certificate not accepted" in cli.refused("ps")
        cli.env["GABION_CA_FILE"] = str(place / "cert.pem")
        cli.ok("create", "--name", "safe")
        data = os.urandom(400_000)
        assert cli("exec", "-i", "safe", "cat", data=data).stdout == data
        cli.ok("cp", "-", "safe:x", data=data)
        assert cli("cp", "safe:x", "-").stdout == data
        cli.env["GABION_SERVER"] = f"https://127.0.0.1:{port}"
        assert "certificates are checked by name" in cli.refused("ps")


def test_a_unix_socket_will_do(cli, place):
    where = place / "api"
    where.mkdir(mode=0o777)
    where.chmod(0o777)
    with Server(place, "--listen", f"unix:{where}/sock") as server:
        cli.env.update(GABION_SERVER=f"unix:{where}/sock", GABION_API_KEY=server.key)
        name = cli.ok("create", "--name", "u").strip()
        assert cli.ok("exec", "u", "echo", "hi") == "hi\n"
        assert f"--unix-socket {where}/sock" in cli.ok("port", "u", "80")
        assert cli.ok("rm", name) == name + "\n"
        assert harness.until(lambda: cli.ok("ps", "-q") == "")
