#!/usr/bin/python3
"""New connections, requests and throughput through gabion-egress, beside the same without a proxy on loopback and beside
the proxies tinyproxy and squid (CONNECT), in one run and in turns.

The client through egress runs in a sandbox (`gabion run`), the others on the host. A new connection is one until its
first byte has come back. Ratios are taken within a round and their median is told: the machine drifts, and rounds are
short. Rounds go in shuffled order.

JSON on standard output, a table on standard error.
GABION: the program (default build/gabion). BENCH_EGRESS_ROUNDS: default 7. BENCH_CONNECTS: new connections of a
round, default 400. BENCH_SECONDS: of each direction, default 0.5."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOAD = ROOT / "build/bench/egress-load"
NAME, PORT = "echo.example.com", 9000
ROUNDS = int(os.environ.get("BENCH_EGRESS_ROUNDS", 7))
CONNECTS, SECONDS = os.environ.get("BENCH_CONNECTS", "400"), os.environ.get("BENCH_SECONDS", "0.5")
# What is promised (docs/performance.md).
THROUGHPUT_AT_LEAST, ADDED_AT_MOST_US = 0.5, 150.0


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def wait_port(port, process):
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise SystemExit(f"egress: {process.args[0]} does not listen")


class Direct:
    name = "direct"

    def __init__(self, server, _folder):
        self.server = server

    def argv(self):
        return [LOAD, "measure", "127.0.0.1", self.server, CONNECTS, SECONDS]

    def close(self):
        pass


class Egress(Direct):
    name = "egress"

    def __init__(self, server, folder):
        super().__init__(server, folder)
        self.policy = folder / "policy.yaml"
        self.policy.write_text(f"version: 1\nname: bench\nnetwork:\n  allow:\n    - {{ host: {NAME}, ports: [{PORT}] }}\n"
                               "  budget: { rate: 100000/s, bytes_out: 1000G }\n")

    def argv(self):
        gabion = os.environ.get("GABION") or str(ROOT / "build/gabion")
        return [gabion, "run", "--policy", self.policy, "--resolve", f"{NAME}:{PORT}=127.0.0.1:{self.server}", "--cpus", "2",
                "-v", f"{LOAD}:/opt/load", "--", "/opt/load", "measure", NAME, PORT, CONNECTS, SECONDS]


class Proxy(Direct):
    """A proxy of the distribution, as a process of its own."""
    config = command = ""

    def __init__(self, server, folder):
        super().__init__(server, folder)
        self.port = free_port()
        conf = folder / f"{self.name}.conf"
        conf.write_text(self.config.format(port=self.port, server=server, folder=folder))
        argv = [w.format(conf=conf) for w in self.command.split()]
        # A group of its own, since squid has children.
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        wait_port(self.port, self.process)

    def argv(self):
        return [LOAD, "measure", "127.0.0.1", self.port, CONNECTS, SECONDS, f"127.0.0.1:{self.server}"]

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Tinyproxy(Proxy):
    name = "tinyproxy"
    config = "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nConnectPort {server}\nMaxClients 200\nTimeout 60\nLogLevel Critical\n" \
             "LogFile \"{folder}/tinyproxy.log\"\n"
    command = "tinyproxy -d -c {conf}"


class Squid(Proxy):
    name = "squid"
    config = "http_port 127.0.0.1:{port}\nhttp_access allow all\ncache deny all\naccess_log none\ncache_log /dev/null\n" \
             "cache_store_log none\npid_filename none\nmemory_pools on\nnetdb_filename none\nshutdown_lifetime 0 seconds\n" \
             "coredump_dir /tmp\npinger_enable off\n"
    command = "squid -N -f {conf}"


def measure(way):
    done = subprocess.run([str(w) for w in way.argv()], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise SystemExit(f"egress: {way.name}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout.splitlines()[0])


def median(values):
    return round(statistics.median(values), 3)


def report(rounds):
    """The medians of each way, and of what is compared within each round."""
    def of(way, *keys):
        values = []
        for r in rounds:
            v = r[way]
            for k in keys:
                v = v[k]
            values.append(v)
        return values
    results = {way: {"connect_p50_us": median(of(way, "connect_us", "p50")),
                     "connect_p95_us": median(of(way, "connect_us", "p95")),
                     "request_p50_us": median(of(way, "request_us", "p50")),
                     "download_gbit": median(of(way, "download_gbit")), "upload_gbit": median(of(way, "upload_gbit"))}
               for way in rounds[0]}
    egress, direct = of("egress", "download_gbit"), of("direct", "download_gbit")
    up, direct_up = of("egress", "upload_gbit"), of("direct", "upload_gbit")
    both = [(a + c) / (b + d) for a, b, c, d in zip(egress, direct, up, direct_up)]
    added = [a - b for a, b in zip(of("egress", "connect_us", "p50"), of("direct", "connect_us", "p50"))]
    compared = {"throughput_ratio": median(both), "added_connect_p50_us": median(added)}
    promises = {"throughput_ratio": {"at_least": THROUGHPUT_AT_LEAST, "met": compared["throughput_ratio"] >= THROUGHPUT_AT_LEAST},
                "added_connect_p50_us": {"at_most": ADDED_AT_MOST_US, "met": compared["added_connect_p50_us"] <= ADDED_AT_MOST_US}}
    for other in set(results) - {"egress", "direct"}:
        theirs = [(a + c) / (b + d) for a, b, c, d in zip(egress, of(other, "download_gbit"), up, of(other, "upload_gbit"))]
        compared[f"throughput_over_{other}"] = median(theirs)
        promises[f"throughput_over_{other}"] = {"at_least": 1.0, "met": compared[f"throughput_over_{other}"] > 1.0}
    return results, compared, promises


def main():
    left_out, ways = {}, []
    server = free_port()
    with tempfile.TemporaryDirectory(prefix="gabion-bench-") as folder:
        os.chmod(folder, 0o755)
        far = subprocess.Popen([LOAD, "serve", str(server)])
        try:
            wait_port(server, far)
            for kind in (Direct, Egress, Tinyproxy, Squid):
                program = kind.command.split(" ")[0] if issubclass(kind, Proxy) else None
                if program and not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin"):
                    left_out[kind.name] = "not installed"
                    continue
                ways.append(kind(server, pathlib.Path(folder)))
            rounds = []
            for _ in range(ROUNDS):
                random.shuffle(ways)
                rounds.append({way.name: measure(way) for way in ways})
        finally:
            for way in ways:
                way.close()
            far.kill()
            far.wait()
    results, compared, promises = report(rounds)
    print(f"{'':12}{'connect p50':>14}{'request p50':>14}{'download':>12}{'upload':>12}", file=sys.stderr)
    for name in sorted(results, key=lambda n: results[n]["connect_p50_us"]):
        r = results[name]
        print(f"{name:12}{r['connect_p50_us']:11.1f} us{r['request_p50_us']:11.1f} us{r['download_gbit']:7.1f} Gb/s"
              f"{r['upload_gbit']:7.1f} Gb/s", file=sys.stderr)
    print(json.dumps({"rounds": ROUNDS, "results": results, "compared": compared, "promises": promises, "left_out": left_out}))


main()
