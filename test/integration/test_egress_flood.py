"""One sandbox that floods gabion-egress does not take the network from its neighbour.

The machine's cores are shared as well, so the neighbour is measured twice beside the same load: once while it goes
through egress and once while the same program does the same to its own loopback. What differs is egress."""
import contextlib
import os
import pathlib
import socket
import subprocess
import textwrap
import threading
import time

import egress_driver as driver
import harness
import pytest
from egress_fixtures import NAME, allow, egress, place, rule, servers, start, to  # noqa: F401 fixtures

ROUNDS, PAUSE_S = 250, 0.004
# What is promised is 2, and judged by `make soak`, on a machine without other work; here the neighbour must only be served.
FACTOR, TRIES = (2.0 if os.environ.get("GABION_JUDGE_TIMES") else 25.0), 4
STOCK = 64  # empty pipes that may stay

NEIGHBOUR = textwrap.dedent("""
    import socket, sys, time
    address, port, rounds, pause = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        s = socket.create_connection((address, port), 10)
        s.sendall(b"e")
        assert s.recv(1) == b"!"
        times.append(time.perf_counter() - begin)
        s.close()
        time.sleep(pause)
    times.sort()
    print(times[len(times) // 2] * 1e6, times[len(times) * 95 // 100] * 1e6)
""")

# Each reads what to do from its arguments, says "ready", goes on until it is killed, and says nothing more.
CONNECTS = textwrap.dedent("""
    import socket, sys
    address, port = sys.argv[1], int(sys.argv[2])
    print("ready", flush=True)
    n = 0
    while True:
        s = socket.socket()
        s.settimeout(1)
        try:
            s.connect((address, port))
        except OSError:
            pass
        s.close()
        n += 1
        if n == 10000:
            print("10000", flush=True)
""")
LORIS = textwrap.dedent("""
    import socket, sys, time
    address, port = sys.argv[1], int(sys.argv[2])
    socks = []
    print("ready", flush=True)
    while True:
        if len(socks) < 400:
            s = socket.socket()
            s.settimeout(1)
            try:
                s.connect((address, port))
                s.sendall(b"GET / HTTP/1.1\\r\\nHost: api.example.com\\r\\n")
                socks.append(s)
            except OSError:
                pass
        for s in socks:
            try:
                s.sendall(b"X-A: b\\r\\n")
            except OSError:
                socks.remove(s)
        time.sleep(0.001)
""")
UNREAD = textwrap.dedent("""
    import socket, sys, time
    address, port = sys.argv[1], int(sys.argv[2])
    socks = []
    for _ in range(200):
        try:
            s = socket.create_connection((address, port), 5)
            s.sendall(b"d")
            socks.append(s)
        except OSError:
            pass
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
        for s in socks[:20]:
            s.setblocking(False)
            try:
                s.recv(1000)
            except OSError:
                pass
""")


LOAD = str(harness.ROOT / "build/bench/egress-load")


class Server:
    """bench/egress-load as a process of its own, here or in a namespace: quick enough not to be what is measured."""

    def __init__(self, start=subprocess.Popen):
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        self.process = start([LOAD, "serve", str(self.port)])

    def close(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def load(place, script, address, port):
    p = place.popen(["/usr/bin/python3", "-c", script, address, str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        time.sleep(0.3)
        yield p
    finally:
        p.kill()
        p.wait()


def p95(place, address, port):
    p = place.popen(["/usr/bin/python3", "-c", NEIGHBOUR, address, str(port), str(ROUNDS), str(PAUSE_S)],
                    stdout=subprocess.PIPE, text=True)
    out, _ = p.communicate(timeout=90)
    assert p.returncode == 0
    return float(out.split()[1])


@contextlib.contextmanager
def supervised(egress):
    """Somebody reads the records, as a supervisor does."""
    stop = threading.Event()

    def body():
        while not stop.is_set():
            egress.receive(0.1)
            del egress.records[:-100]
    reader = threading.Thread(target=body)
    reader.start()
    try:
        yield
    finally:
        stop.set()
        reader.join()


@pytest.mark.parametrize("script,port", [(CONNECTS, 9000), (CONNECTS, 9999), (LORIS, 80), (UNREAD, 9000)],
                         ids=["connects", "denied-connects", "slow-loris", "unread"])
def test_neighbour_is_served(egress, servers, script, port):
    calm, wild = driver.Place(), driver.Place()
    good, other = servers(cls=Server), servers(cls=Server)
    egress.add(calm, driver.document(allow(rule(), rate="100000/s"), resolve=[to(good)]))
    egress.add(wild, driver.document(allow(rule(), rate="100000/s", connections=1000),
                                     resolve=[to(other), to(other, port=80)]))
    near, far = driver.resolve(calm, NAME), driver.resolve(wild, NAME)
    local = servers(wild.popen, cls=Server)
    ratios = []
    with supervised(egress):
        while len(ratios) < TRIES and min(ratios, default=FACTOR) >= FACTOR:
            with load(wild, script, "127.0.0.1", local.port):
                control = p95(calm, near, 9000)
            with load(wild, script, far, port):
                flooded = p95(calm, near, 9000)
            ratios.append(flooded / control)
    calm.close()
    wild.close()
    assert min(ratios) < FACTOR, f"p95 of the neighbour grew by {ratios}"


def test_ten_thousand_connects_pass_and_leave_nothing(place, egress, servers):
    s = servers(cls=Server)
    egress.add(place, driver.document(allow(rule(), rate="100000/s"), resolve=[to(s)]))
    address, fds = driver.resolve(place, NAME), pathlib.Path(f"/proc/{egress.process.pid}/fd")
    before = len(list(fds.iterdir()))
    with supervised(egress):
        with load(place, CONNECTS, address, 9000) as p:
            assert p.stdout.readline() == "10000\n"
        deadline = time.monotonic() + 5
        while len(list(fds.iterdir())) > before + 2 * STOCK and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(list(fds.iterdir())) <= before + 2 * STOCK
        with place.connect(address, 9000) as c:
            c.sendall(b"e")
            assert c.recv(1) == b"!"
