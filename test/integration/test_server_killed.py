"""kill -9 of gabiond, then of the warden, while 50 commands run: they go on, and whoever follows their output sees every byte
of it, or a gap that says how many are missing.

SERVER_ROUNDS: how often both are killed (default 3; tools/soak runs 200)."""
import contextlib
import http.client
import os
import random
import signal
import threading
import time

import envd
import harness
from server import Server
from test_server_crash import agents, rows

ROUNDS = int(os.environ.get("SERVER_ROUNDS", "3"))
BOXES, COMMANDS = 10, 5
COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done"
CUT = (OSError, EOFError, http.client.HTTPException, ValueError, envd.RpcError, KeyError)


class Sandbox(envd.Client):
    """envd of one sandbox, by way of the service."""

    def __init__(self, server, api, ident):
        super().__init__(None)
        self.address, self.id = server.address, ident
        self.token = api.get(f"/sandboxes/{ident}").json["envdAccessToken"]

    def connect(self, timeout=20):
        return http.client.HTTPConnection(*self.address, timeout=timeout)

    def headers(self, port=49983, token=None, more=None):
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(port), "X-Access-Token": self.token, **envd.basic("user"),
                **(more or {})}


class Follower(threading.Thread):
    """Reads a command's output, and goes on where it was when the connection is cut."""

    def __init__(self, sandbox):
        super().__init__(daemon=True)
        self.sandbox, self.over = sandbox, False
        stream = sandbox.sh(COUNT)
        self.pid = stream.pid()
        stream.close()
        self.at, self.rest, self.last, self.gaps, self.wrong = 0, b"", 0, 0, []

    def take(self, data):
        self.at += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if int(line) != self.last + 1:
                self.wrong.append((self.last, int(line)))
            self.last = int(line)

    def follow(self):
        stream = self.sandbox.follow(headers={"Gabion-Output-From": str(self.at)}, pid=self.pid)
        try:
            while not self.over and (event := stream.event()) is not None:
                if "gap" in event:
                    self.gaps += 1
                    self.at += int(event["gap"]["bytes"])
                self.take(envd.base64.b64decode(event.get("data", {}).get("stdout", "")))
        finally:
            stream.close()

    def run(self):
        while not self.over:
            with contextlib.suppress(*CUT):
                self.follow()
            time.sleep(0.02)


def shoot(server, name):
    """Kills a part of the service, if it is there at the moment."""
    table = harness.parents()
    for pid, (parent, comm, state) in table.items():
        if comm == name and parent == server.process.pid and state != "Z":
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_fifty_commands_outlive_the_service(place):
    rng = random.Random(50)
    with Server(place, "--pool", "2") as server:
        api = server.client()
        made = {api.create(timeout=3600) for _ in range(BOXES)}
        boxes = [Sandbox(server, api, ident) for ident in sorted(made)]
        followers = [Follower(box) for box in boxes for _ in range(COMMANDS)]
        for f in followers:
            f.start()
        assert harness.until(lambda: all(f.last for f in followers), 20), server.text()[-3000:]
        first = {f.pid for f in followers}
        for n in range(ROUNDS):
            began = time.monotonic()
            shoot(server, "gabiond")
            time.sleep(rng.uniform(0, 0.4))
            shoot(server, "gabion-warden")
            time.sleep(rng.uniform(0, 0.4))
            server.wait_up()
            seen = [f.last for f in followers]
            assert harness.until(lambda: all(f.last > s for f, s in zip(followers, seen)), 20), f"round {n}: {seen}"
            assert not [f.wrong for f in followers if f.wrong], f"round {n}"
            assert set(api.ids()) == rows(server, 1) == made and not rows(server, 0), f"round {n}"
            again = api.create()
            assert api.delete(f"/sandboxes/{again}").status == 204, f"round {n}"
            print(f"round {n}: {time.monotonic() - began:.1f} s")
            time.sleep(rng.uniform(1, 1.5))  # whoever lives so long is started again at once
        assert sum(f.gaps for f in followers) == 0 and first == {f.pid for f in followers}
        for box in boxes:
            assert {p["pid"] for p in box.processes()} == {f.pid for f in followers if f.sandbox is box}
        for f in followers:
            f.over = True
        api.kill_all()
        for f in followers:
            f.join(20)
        assert server.stop() == 0
        assert agents() == set() and rows(server, 1) == set()
