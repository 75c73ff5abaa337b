#!/usr/bin/python3
"""Sandboxes that live on: how long a claim from the pool, a cold create, an exec and a whole cycle take, beside plain
posix_spawn, and what an idle sandbox weighs. Speaks to gabion-warden and to agents directly: no daemon, no HTTP.

JSON on standard output, a table on standard error. Needs root. GABION: the program (default build/gabion); the warden is
found beside it. BENCH_TURNS: claims and execs (default 200). BENCH_SECONDS: of cycles (default 3). BENCH_BOXES: idle
sandboxes that are weighed (default 200)."""
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("GABION", str(ROOT / "build/gabion"))
sys.path.insert(0, str(ROOT / "test/integration"))
import harness  # noqa: E402
import shim  # noqa: E402
import warden  # noqa: E402

TURNS = int(os.environ.get("BENCH_TURNS", "200"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "3"))
BOXES = int(os.environ.get("BENCH_BOXES", "200"))
POOL = 16
PROMISED = {"exec_p50_ms": 1.5, "idle_kib": 1024}
# Where the kernel keeps what a sandbox costs; page cache is not among it, so others' files do not disturb.
WEIGHED = ("Slab", "AnonPages", "Shmem", "PageTables", "KernelStack", "Percpu")


def quantiles(times):
    times = sorted(t * 1e3 for t in times)
    return {"p50_ms": round(times[len(times) // 2], 3), "p99_ms": round(times[min(len(times) - 1, len(times) * 99 // 100)], 3)}


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def spawn():
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def wait_pool(c, wanted=1):
    while c.status().pooled < wanted:
        time.sleep(0.002)


def claims(c):
    claim, first, cold = [], [], []
    c.pool(POOL)
    for _ in range(TURNS):
        wait_pool(c, POOL // 2)
        t1, b = timed(lambda: c.create(source=warden.POOL_ONLY))
        with shim.Agent(b.socket) as a:
            t2, _ = timed(lambda: a.run("/bin/echo", "x"))
        c.kill(b.id)
        claim.append(t1)
        first.append(t1 + t2)
    c.pool(0)
    for _ in range(max(3, TURNS // 4)):
        t, b = timed(lambda: c.create(source=warden.COLD_ONLY))
        c.kill(b.id)
        cold.append(t)
    return {"claim": quantiles(claim), "claim_and_output": quantiles(first), "cold_create": quantiles(cold)}


def execs(c):
    inside, plain = [], []
    b = c.create()
    with shim.Agent(b.socket) as a:
        for _ in range(TURNS):
            inside.append(timed(lambda: a.run("/bin/true", cwd="/"))[0])
            plain.append(timed(spawn)[0])
    c.kill(b.id)
    return {"exec": quantiles(inside), "posix_spawn": quantiles(plain)}


def cycles(c):
    """Create, exec, kill, by one client, with a pool behind it."""
    c.pool(POOL)
    wait_pool(c, POOL)
    n, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        b = c.create()
        with shim.Agent(b.socket) as a:
            a.run("/bin/true", cwd="/")
        c.kill(b.id)
        n += 1
    c.pool(0)
    return round(n / SECONDS, 1)


def memory():
    text = pathlib.Path("/proc/meminfo").read_text()
    return {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()}


def idle(c):
    before = memory()
    ids, serials = [], set()
    for _ in range(BOXES):
        ids.append(warden.new_id())
        serials.add(c.ask_create(ids[-1], source=warden.COLD_ONLY))
        while len(serials) > 32:
            serials.remove(c.receive()[0])
    while serials:
        serials.remove(c.receive()[0])
    time.sleep(0.5)
    after = memory()
    cpu = sum(c.usage(i).cpu_us for i in ids[:50])
    time.sleep(1)
    cpu = sum(c.usage(i).cpu_us for i in ids[:50]) - cpu
    for i in ids:
        c.kill(i)
    parts = {name: round((after[name] - before[name]) / BOXES, 1) for name in WEIGHED}
    return {"sandboxes": BOXES, "kib_each": round(sum(parts.values())), "parts_kib": parts, "idle_cpu_us": cpu}


def main():
    harness.become_subreaper()
    with warden.Warden() as w, w.client() as c:
        report = {**claims(c), **execs(c), "cycles_per_s": cycles(c), "idle": idle(c)}
    report["exec_ratio"] = round(report["exec"]["p50_ms"] / report["posix_spawn"]["p50_ms"], 2)
    report["promises"] = {"exec_p50_ms": {"at_most": PROMISED["exec_p50_ms"],
                                          "met": report["exec"]["p50_ms"] <= PROMISED["exec_p50_ms"]},
                          "idle_kib": {"at_most": PROMISED["idle_kib"],
                                       "met": report["idle"]["kib_each"] <= PROMISED["idle_kib"]}}
    print("sandboxes that live on, ms      p50      p99", file=sys.stderr)
    for name in ("claim", "claim_and_output", "cold_create", "exec", "posix_spawn"):
        print(f"  {name:24} {report[name]['p50_ms']:8.2f} {report[name]['p99_ms']:8.2f}", file=sys.stderr)
    print(f"  exec is {report['exec_ratio']} of posix_spawn; {report['cycles_per_s']} cycles of create, exec, kill a second; "
          f"{report['idle']['kib_each']} KiB per idle sandbox of {BOXES}", file=sys.stderr)
    print(json.dumps(report))


main()
