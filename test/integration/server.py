"""Starting `gabion serve` for real, and speaking to it. Every JSON reply is held against api/openapi.yaml."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time

import envd
import harness
import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GABIOND = str(pathlib.Path(harness.GABION).parent.parent / "daemon/gabiond")
WARDEN = str(pathlib.Path(harness.GABION).parent.parent / "warden/gabion-warden")
OPENAPI = yaml.safe_load((ROOT / "api/openapi.yaml").read_text())
START_S, UID = 15, 65533


def _patterns():
    """(regex, item) of every path; literals come before parameters."""
    found = [(re.compile("^" + re.sub(r"{\w+}", "[^/]+", path) + "$"), path.count("{"), item)
             for path, item in OPENAPI["paths"].items()]
    return [(regex, item) for regex, _, item in sorted(found, key=lambda f: f[1])]


PATTERNS = _patterns()
RESOLVER = jsonschema.RefResolver("", OPENAPI)


def resolve(node):
    return RESOLVER.resolve(node["$ref"])[1] if "$ref" in node else node


def check_reply(method, path, reply):
    """The document knows this reply: its status, and the shape of its body."""
    items = [item for regex, item in PATTERNS if regex.match(path.split("?")[0])]
    operations = [item[method.lower()] for item in items if method.lower() in item]
    if not operations:
        return
    known = operations[0]["responses"]
    assert str(reply.status) in known, f"{method} {path}: {reply.status} is not described: {reply.text[:300]}"
    content = resolve(known[str(reply.status)]).get("content", {})
    assert bool(content) == bool(reply.body), f"{method} {path} {reply.status}: {reply.body[:200]}"
    if "application/json" in content and reply.headers.get("Content-Type") == "application/json":
        jsonschema.Draft202012Validator(content["application/json"]["schema"], resolver=RESOLVER).validate(reply.json)


# systemd's /run is memory. Where it is a disk, sockets and records of sandboxes would be timed as files of that disk.
IN_MEMORY = "/run" if "/run" in [m.split()[1] for m in open("/proc/mounts", encoding="utf-8")] else "/dev/shm"


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The word for programs, in either shape."""
        return self.json["error"]["code"] if "error" in self.json else self.json["error_code"]

    @property
    def message(self):
        return self.json["error"]["message"] if "error" in self.json else self.json["message"]

    def __repr__(self):
        return f"{self.status} {self.text[:600]}"


class Client:
    """One API key's view of a server."""

    def __init__(self, server, key=None):
        self.server, self.key = server, key

    def request(self, method, path, body=None, headers=None, timeout=20):
        headers = dict(headers or {})
        if self.key:
            headers.setdefault("X-API-Key", self.key)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        with contextlib.closing(http.client.HTTPConnection(*self.server.address, timeout=timeout)) as c:
            c.request(method, path, body, headers)
            got = c.getresponse()
            reply = Reply(got.status, got.headers, got.read())
        if "E2b-Sandbox-Id" not in headers:
            check_reply(method, path, reply)
        return reply

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, body=None, **kw):
        return self.request("POST", path, {} if body is None else body, **kw)

    def delete(self, path, **kw):
        return self.request("DELETE", path, **kw)

    def create(self, **fields):
        """A sandbox's id."""
        reply = self.post("/v2/sandboxes", {"templateID": "base", "timeout": 120, **fields})
        assert reply.status == 201, reply
        return reply.json["sandboxID"]

    def sandbox(self, **fields):
        """A sandbox, as a client of what is inside; `made` is the reply to its create."""
        reply = self.post("/v2/sandboxes", {"templateID": "base", "timeout": 120, **fields})
        assert reply.status == 201, reply
        box = envd.Client(self.server, reply.json["sandboxID"], reply.json["envdAccessToken"])
        box.made = reply.json
        return box

    def ids(self, query=""):
        reply = self.get("/v2/sandboxes" + query)
        assert reply.status == 200, reply
        return [b["sandboxID"] for b in reply.json]

    def events(self, sandbox=None, after=0):
        reply = self.get(f"/gabion/v1/events?after={after}&limit=1000" + (f"&sandbox={sandbox}" if sandbox else ""))
        assert reply.status == 200, reply
        return reply.json["events"]

    def kill_all(self):
        for ident in self.ids():
            assert self.delete(f"/sandboxes/{ident}").status in (204, 404)


class Server:
    """`gabion serve` in places of its own; everything of it is ended at the end of the block."""
    pids = set()  # of all that were started: subprocess reaps them

    def __init__(self, folder, *options):
        name = secrets.token_hex(4)
        self.data, self.run = pathlib.Path(folder) / f"data-{name}", f"{IN_MEMORY}/gabion-test-{name}"
        harness.RUNS.add(self.run)
        self.key_file, self.log = pathlib.Path(folder) / f"key-{name}", pathlib.Path(folder) / f"log-{name}"
        self.options, self.process = options, None
        with socket.create_server(("127.0.0.1", 0)) as s:  # the same port again after a restart
            self.address = s.getsockname()

    def argv(self):
        return [harness.GABION, "serve", "--data", str(self.data), "--run", self.run, "--key-file", str(self.key_file),
                "--listen", "%s:%d" % self.address, "--user", str(UID), *self.options]

    def start(self):
        self.offset = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        Server.pids.add(self.process.pid)
        ready = harness.until(lambda: self.lines("ready") or self.process.poll() is not None, START_S)
        assert self.process.poll() is None and ready, self.log.read_text()
        self.wait_up()
        return self

    def text(self):
        with open(self.log, "rb") as f:
            f.seek(self.offset)
            return f.read().decode()

    def lines(self, message):
        """Log lines of this start with that message."""
        found = []
        for line in self.text().splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if entry.get("message") == message:
                    found.append(entry)
        return found

    def health(self):
        try:
            return Client(self).get("/gabion/v1/health").json
        except (OSError, http.client.HTTPException):
            return {}

    def wait_up(self):
        assert harness.until(lambda: self.health().get("status") == "ok", START_S, 0.02), self.log.read_text()

    @property
    def port(self):
        return self.address[1]

    @property
    def key(self):
        return self.key_file.read_text().strip()

    def client(self, key=None):
        return Client(self, self.key if key is None else key)

    def pid_of(self, program):
        table = harness.parents()  # the warden's children have its name for a while
        found = [pid for pid in harness.descendants(self.process.pid)
                 if table.get(pid, (0, ""))[1] == program and table.get(table[pid][0], (0, ""))[1] != program]
        assert len(found) == 1, f"{program}: {found}\n{self.text()}"
        return found[0]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if self.process and self.process.poll() is None:
            self.stop()
        with Reaper(), subprocess.Popen([WARDEN, "--run", self.run, "--end-all"], stderr=subprocess.DEVNULL) as last:
            Server.pids.add(last.pid)
            last.wait(60)
        shutil.rmtree(self.run, ignore_errors=True)
        if kind:
            print(self.log.read_text()[-6000:])


class Reaper:
    """Agents whose parents were killed become children of the test, which has to reap them as any reaper would."""

    def __init__(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.loop, daemon=True)

    def loop(self):
        while not self.over.wait(0.01):
            for pid, (parent, _, state) in harness.parents().items():
                if parent == os.getpid() and state == "Z" and pid not in Server.pids:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def raw(server, data, timeout=5, shut=False):
    """Sends bytes and returns everything that comes back until the server closes, or time is up."""
    with socket.create_connection(server.address, timeout=timeout) as s:
        with contextlib.suppress(OSError):
            s.sendall(data)
            if shut:
                s.shutdown(socket.SHUT_WR)
        got = b""
        end = time.monotonic() + timeout
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                piece = s.recv(65536)
                if not piece:
                    break
                got += piece
        return got


def status_of(reply):
    """The status of a raw reply, or None."""
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", reply)
    return int(found[1]) if found else None
