"""The world outside, on loopback: a test CA, and servers that the tests reach by names of the operator's choice."""
import contextlib
import functools
import http.server
import pathlib
import socket
import ssl
import struct
import subprocess
import tempfile
import threading


@functools.lru_cache(maxsize=None)
def authority():
    """(directory, CA file) of a test CA for the life of the test run."""
    folder = tempfile.TemporaryDirectory(prefix="gabion-test-ca-")
    authority.folder = folder  # removed with the process
    base = pathlib.Path(folder.name)
    base.chmod(0o755)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", base / "ca.key", "-out", base / "ca.pem", "-days", "2", "-subj", "/CN=Test CA",
                    "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"],
                   check=True, capture_output=True)
    (base / "ca.pem").chmod(0o644)
    return base, str(base / "ca.pem")


@functools.lru_cache(maxsize=None)
def certificate(*names):
    """(certificate, key) files for these names, signed by the test CA."""
    base, ca = authority()
    stem = base / names[0].replace("*", "any")
    subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    f"{stem}.key", "-out", f"{stem}.csr", "-subj", f"/CN={names[0]}"], check=True, capture_output=True)
    pathlib.Path(f"{stem}.ext").write_text("subjectAltName=" + ",".join(f"DNS:{n}" for n in names))
    subprocess.run(["openssl", "x509", "-req", "-in", f"{stem}.csr", "-CA", ca, "-CAkey", base / "ca.key",
                    "-CAcreateserial", "-days", "2", "-out", f"{stem}.pem", "-extfile", f"{stem}.ext"], check=True,
                   capture_output=True)
    return f"{stem}.pem", f"{stem}.key"


def server_context(*names):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(*names))
    return context


class Server:
    """Runs handle(socket) in a thread per connection until closed. .port, .connections (how many came)."""

    def __init__(self, handle, context=None, address="127.0.0.1"):
        self.handle, self.context, self.connections = handle, context, 0
        self.sock = socket.create_server((address, 0), backlog=512)
        self.port = self.sock.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                client, _ = self.sock.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._one, args=(client,), daemon=True).start()

    def _one(self, client):
        with contextlib.suppress(OSError, ssl.SSLError), client:
            client.settimeout(20)
            if self.context:
                client = self.context.wrap_socket(client, server_side=True)
            self.handle(client)

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # close() alone would leave it open in accept()
        self.sock.close()


def echo(sock):
    while data := sock.recv(65536):
        sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)


def banner(sock):
    """Speaks first, as ssh, smtp and databases do; then echoes."""
    sock.sendall(b"220 ready\r\n")
    echo(sock)


class Web(http.server.ThreadingHTTPServer):
    """An HTTP server that tells what it was asked: .requests is a list of (method, path, headers, body)."""
    daemon_threads = True

    def __init__(self, context=None, answer=None):
        self.requests, self.answer = [], answer
        super().__init__(("127.0.0.1", 0), WebHandler)
        self.port = self.server_address[1]
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def close(self):
        self.shutdown()
        self.server_close()


class WebHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while n := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _serve(self):
        body = self._body()
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        if self.server.answer:
            self.server.answer(self)
            return
        text = f"{self.command} {self.path} {len(body)}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_OPTIONS = _serve


def splice(a, b):
    def one(src, dst):
        with contextlib.suppress(OSError):
            while data := src.recv(65536):
                dst.sendall(data)
            dst.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=one, args=(b, a), daemon=True)
    t.start()
    one(a, b)
    t.join()


class HttpProxy(Server):
    """Answers CONNECT, whatever the target, by a connection to `port`. .heads: what it was asked."""

    def __init__(self, port, answer=b"HTTP/1.1 200 OK\r\n\r\n"):
        self.heads = []

        def handle(sock):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += sock.recv(1)
            self.heads.append(head.decode())
            if b" 200 " not in answer:
                sock.sendall(answer)
                return
            with socket.create_connection(("127.0.0.1", port)) as far:
                first = far.recv(65536, socket.MSG_PEEK) if self.server_first else b""
                sock.sendall(answer + first)
                if first:
                    far.recv(len(first))
                splice(sock, far)
        self.server_first = False
        super().__init__(handle)


class SocksProxy(Server):
    """SOCKS5, with user and password if given. .targets: (type, address, port)."""

    def __init__(self, port, user=None, password=None):
        self.targets = []

        def exactly(sock, n):
            return sock.recv(n, socket.MSG_WAITALL)

        def handle(sock):
            version, n = exactly(sock, 2)
            methods = exactly(sock, n)
            assert version == 5
            if user:
                assert 2 in methods
                sock.sendall(b"\5\2")
                _, n = exactly(sock, 2)
                got = exactly(sock, n).decode(), exactly(sock, exactly(sock, 1)[0]).decode()
                sock.sendall(b"\1\0" if got == (user, password) else b"\1\1")
                if got != (user, password):
                    return
            else:
                sock.sendall(b"\5\0")
            _, _, _, kind = exactly(sock, 4)
            where = exactly(sock, {1: 4, 4: 16}.get(kind) or exactly(sock, 1)[0])
            self.targets.append((kind, where, struct.unpack(">H", exactly(sock, 2))[0]))
            with socket.create_connection(("127.0.0.1", port)) as far:
                sock.sendall(b"\5\0\0\1\0\0\0\0\0\0")
                splice(sock, far)
        super().__init__(handle)
