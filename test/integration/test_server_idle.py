"""Sandboxes that do nothing cost nothing: no process of theirs runs, and the service hardly does."""
import pathlib
import time

import harness
from server import Server
from test_server_killed import Sandbox

BOXES, SECONDS = 20, 3
SERVICE_MS = 15  # of all three processes together, in that time


def test_a_create_takes_a_ready_one(place):
    with Server(place, "--pool", "2") as server:
        api = server.client()
        ready = harness.until(lambda: [e for e in api.events(api.create()) if e["data"].get("from_pool")], 10, 0.2)
        assert ready, server.text()[-3000:]
        assert server.stop() == 0


def run_ns(pids):
    """Time that each process has run so far, to the nanosecond."""
    return {pid: int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids}


def test_idle_sandboxes_cost_no_processor_time(place):
    with Server(place, "--pool", "4") as server:
        api = server.client()
        for _ in range(BOXES):  # used once, with a command that waits and somebody who follows it
            box = Sandbox(server, api, api.create(timeout=3600))
            stream = box.sh("echo up; exec sleep 1000")
            stream.until(b"up")
            stream.close()
        assert harness.until(lambda: api.get("/gabion/v1/capacity").status == 200, 5)
        time.sleep(1)  # the pool fills up
        everybody = {server.process.pid, *harness.descendants(server.process.pid)}
        service = {server.process.pid, server.pid_of("gabiond"), server.pid_of("gabion-warden")}
        before = run_ns(everybody)
        time.sleep(SECONDS)
        after = run_ns(everybody)
        assert len(everybody - service) >= 3 * BOXES
        assert {pid: after[pid] - before[pid] for pid in everybody - service if after[pid] != before[pid]} == {}
        assert sum(after[pid] - before[pid] for pid in service) < SERVICE_MS * 10**6
        assert server.stop() == 0
