"""A client of envd, and the server of one sandbox that the tests of src/envd build (test/unit/envd/server.c)."""
import base64
import hashlib
import http.client
import json
import os
import pathlib
import select
import socket
import struct
import subprocess
import time

import harness

BUILD = pathlib.Path(harness.GABION).parents[2]
TOKEN = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"
ID = "sandboxunderthetests"


class Server:
    """One sandbox, whose agent is real and whose users are the test's."""

    def __init__(self, home, agent=None):
        """agent: path of a socket where somebody plays the agent; None: a real one."""
        self.home = home
        self.log = open(home.parent / "envd.log", "w+")
        self.p = subprocess.Popen([BUILD / "test/unit/envd/envd_server", BUILD / "src/agent/gabion-agent", home, *([agent] if agent else [])],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.port = int(self.p.stdout.readline())

    def say(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        assert self.p.stdout.readline() == "ok\n"

    def events(self, kind):
        return [line for line in pathlib.Path(self.log.name).read_text().splitlines() if line.startswith(f"event {kind} ")]

    def stop(self):
        self.p.stdin.close()
        try:
            code = self.p.wait(10)
        except subprocess.TimeoutExpired:
            self.p.kill()
            raise
        text = pathlib.Path(self.log.name).read_text()
        assert code == 0, text[-4000:]


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:500]!r}"


class RpcError(Exception):
    def __init__(self, code, message, status=200):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status = code, message, status


def signature(path, op, user="", expiration=None, token=TOKEN):
    parts = [path, op, user, token] + ([str(expiration)] if expiration is not None else [])
    return "v1_" + base64.b64encode(hashlib.sha256(":".join(parts).encode()).digest()).decode().rstrip("=")


def basic(user):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode()}


class Client:
    """What one sandbox's token can do."""

    def __init__(self, server, ident=ID, token=TOKEN):
        self.server, self.ident, self.token = server, ident, token

    def connect(self, timeout=20):
        return http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=timeout)

    def headers(self, port=49983, token=None, more=None):
        """token: "" sends none."""
        h = {"E2b-Sandbox-Id": self.ident, "E2b-Sandbox-Port": str(port)}
        token = self.token if token is None else token
        if token:
            h["X-Access-Token"] = token
        return {**h, **(more or {})}

    def http(self, method, path, body=None, *, headers=None, bare=False, **kw):
        c = self.connect()
        c.request(method, path, body=body, headers=headers or {} if bare else self.headers(more=headers, **kw))
        r = c.getresponse()
        reply = Reply(r.status, r.headers, r.read())
        c.close()
        return reply

    def unary(self, method, message=None, headers=None):
        r = self.http("POST", "/" + method, json.dumps(message or {}),
                      headers={"Content-Type": "application/json", "Connect-Protocol-Version": "1", **(headers or {})})
        if r.status != 200:
            raise RpcError(r.json["code"], r.json["message"], r.status)
        return r.json

    def fs(self, method, headers=None, **message):
        return self.unary("filesystem.Filesystem/" + method, message, headers)

    def stream(self, method, message, headers=None):
        return Stream(self, method, message, headers)

    def start(self, cmd, *args, headers=None, envs=None, cwd=None, **more):
        process = {"cmd": cmd, "args": list(args), "envs": envs or {}, **({"cwd": cwd} if cwd else {})}
        return self.stream("process.Process/Start", {"process": process, **more}, headers)

    def sh(self, script, **kw):
        return self.start("/bin/sh", "-c", script, **{"stdin": False, **kw})

    def follow(self, headers=None, **who):
        return self.stream("process.Process/Connect", {"process": who}, headers)

    def send(self, data, kind="stdin", **who):
        return self.unary("process.Process/SendInput", {"process": who, "input": {kind: base64.b64encode(data).decode()}})

    def signal(self, signal="SIGNAL_SIGKILL", **who):
        return self.unary("process.Process/SendSignal", {"process": who, "signal": signal})

    def processes(self):
        return self.unary("process.Process/List")["processes"]


def envelope(message, flag=0):
    data = json.dumps(message).encode()
    return struct.pack(">BI", flag, len(data)) + data


class Stream:
    """A server stream: messages one by one."""

    def __init__(self, client, method, message, headers=None):
        self.c = client.connect()
        self.c.request("POST", "/" + method, body=envelope(message),
                       headers=client.headers(more={"Content-Type": "application/connect+json", **(headers or {})}))
        self.r = self.c.getresponse()
        self.ended = False

    def next(self):
        """The next message; None at an orderly end."""
        head = self.r.read(5)
        if len(head) < 5:
            raise EOFError(f"stream was cut: {head!r}")
        flag, n = struct.unpack(">BI", head)
        message = json.loads(self.r.read(n))
        if flag == 2:
            self.ended = True
            assert self.r.read() == b""
            if "error" in message:
                raise RpcError(message["error"]["code"], message["error"]["message"])
            return None
        assert flag == 0
        return message

    def event(self):
        m = self.next()
        return m and m["event"]

    def pid(self):
        return self.event()["start"]["pid"]

    def until(self, text, kind="stdout"):
        """Reads output until the text is in it."""
        got = b""
        while text not in got:
            got += base64.b64decode(self.event().get("data", {}).get(kind, ""))
        return got

    def finish(self):
        """The rest: (end event, stdout, stderr, pty), and gaps."""
        out, end = {"stdout": b"", "stderr": b"", "pty": b""}, None
        self.gaps = []
        while (e := self.event()) is not None:
            for kind, data in e.get("data", {}).items():
                out[kind] += base64.b64decode(data)
            if "gap" in e:
                self.gaps.append(int(e["gap"]["bytes"]))
            end = e.get("end", end)
        self.c.close()
        return end, out["stdout"], out["stderr"], out["pty"]

    def close(self):
        self.c.sock.close() if self.c.sock else None
        self.r.close()
        self.c.close()


def wait_for(what, seconds=5):
    end = time.monotonic() + seconds
    while not (result := what()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)
    return result
