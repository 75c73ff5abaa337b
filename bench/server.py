#!/usr/bin/python3
"""The server, as a client sees it: `gabion serve` on loopback with a warm pool; its clients are bench/server-load.c.

How long from a create to the first output of a command (one client), how many whole cycles of create, exec and kill a second
(several clients), how long an exec in a living sandbox takes, and what idle sandboxes weigh and burn. The same command without
a sandbox and in bwrap is started in the same run, before and after, for the ratios. Judged is the server as it comes, with its
audit log; the same without it is measured beside it. Times are judged twice: as they are, and at the speed of the machine for
which they were promised, told by what bwrap and a plain start took there; the worse of the two counts.

JSON on standard output, a table on standard error. Needs root. GABION: the program (default build/gabion). BENCH_TURNS: creates
of one client, execs, plain starts (default 200). BENCH_SECONDS: of cycles (default 5). BENCH_BOXES: idle sandboxes
(default 1000). BENCH_CLIENTS: that run cycles (default 6)."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("GABION", str(ROOT / "build/gabion"))
sys.path.insert(0, str(ROOT / "test/integration"))
import harness  # noqa: E402
import server  # noqa: E402

LOAD = str(pathlib.Path(harness.GABION).parents[2] / "bench/server-load")
TURNS = int(os.environ.get("BENCH_TURNS", "200"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
BOXES = int(os.environ.get("BENCH_BOXES", "1000"))
CLIENTS = int(os.environ.get("BENCH_CLIENTS", "6"))
SETTINGS = """quota: { sandboxes: 5000, creates_per_s: 100000, memory: 9999G, cpu: 1024, disk: 9999G }
capacity: { sandboxes: 4000, memory: 9999G, cpu: 1024, disk: 9999G }
pool: 32
"""
PROMISED = {"create_to_output_p50_ms": ("at_most", 3), "create_to_output_p99_ms": ("at_most", 20), "exec_p50_ms": ("at_most", 1.5),
            "cycles_per_s": ("at_least", 200), "idle_kib_each": ("at_most", 1024), "idle_cpu_ms_per_s": ("at_most", 10)}
# What a start took there, ms: what each promise is measured in now.
THEN = {"bwrap": 3.6, "plain": 0.45}
GAUGE = {"create_to_output_p50_ms": "output", "create_to_output_p99_ms": "output", "exec_p50_ms": "exec", "cycles_per_s": "output"}
# Where the kernel keeps what a sandbox costs; page cache is not among it, so others' files do not disturb.
WEIGHED = ("Slab", "AnonPages", "Shmem", "PageTables", "KernelStack", "Percpu")
QUIET_S = 3


def load(*words, key=""):
    done = subprocess.run([LOAD, *map(str, words)], env={**os.environ, "GABION_KEY": key}, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"server: {done.stderr.strip()}")
    return json.loads(done.stdout)


def bwrap():
    links = [word for name in ("bin", "sbin", "lib", "lib32", "lib64") if os.path.islink("/" + name)
             for word in ("--symlink", "usr/" + name, "/" + name)]
    return [shutil.which("bwrap"), "--unshare-all", "--tmpfs", "/", "--ro-bind", "/usr", "/usr", *links, "--proc", "/proc",
            "--dev", "/dev", "--"]


def others():
    """Milliseconds until the first output of echo, and until the end of true, without a server."""
    found = {}
    for name, prefix in (("plain", []), ("bwrap", bwrap() if shutil.which("bwrap") else None)):
        if prefix is not None:
            found[name] = {"output": load("spawn", TURNS, *prefix, "/bin/echo", "x")["create_to_output_ms"],
                           "exec": load("spawn", TURNS, *prefix, "/bin/true")["exec_ms"]}
    return found


def memory():
    text = pathlib.Path("/proc/meminfo").read_text()
    return {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()}


def pss_kib(pids):
    total = 0
    for pid in pids:
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total


def ticks_ms(pids):
    """Processor time of processes so far, with that of their children that have ended."""
    fields = [pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(sum(map(int, f[11:15])) for f in fields) * 1000 / os.sysconf("SC_CLK_TCK")


def wait_steady(pid):
    """Until the pool is full: nothing of the service comes or goes."""
    last, since, end = None, time.monotonic(), time.monotonic() + 20
    while time.monotonic() < end and time.monotonic() - since < 0.3:
        now = set(harness.descendants(pid))
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.02)
    return last


def idle(running, port, key):
    before, known = memory(), wait_steady(running.process.pid)
    with subprocess.Popen([LOAD, "hold", port, str(BOXES)], env={**os.environ, "GABION_KEY": key}, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as holder:
        if holder.stdout.readline() != "held\n":
            sys.exit("server: the idle sandboxes could not be made")
        everybody = wait_steady(running.process.pid)
        after, fresh = memory(), everybody - known
        everybody.add(running.process.pid)
        cpu = ticks_ms(everybody)
        time.sleep(QUIET_S)
        cpu = ticks_ms(everybody) - cpu
        pss = pss_kib(fresh)
        holder.stdin.close()
        holder.wait()
    parts = {name: round((after[name] - before[name]) / BOXES, 1) for name in WEIGHED}
    return {"sandboxes": BOXES, "kib_each": round(sum(parts.values())), "parts_kib": parts, "processes_each": round(len(fresh) / BOXES, 2),
            "pss_kib_each": round(pss / BOXES, 1), "available_kib_each": round((before["MemAvailable"] - after["MemAvailable"]) / BOXES),
            "cpu_ms_per_s": round(cpu / QUIET_S, 2)}


def times(folder, *options, weigh):
    with server.Server(folder, *options) as running:
        port, key = str(running.address[1]), running.key
        wait_steady(running.process.pid)
        one = load("cycle", port, 1, 60, TURNS, key=key)
        wait_steady(running.process.pid)
        exec_ms = load("exec", port, TURNS, key=key)["exec_ms"]
        many = load("cycle", port, CLIENTS, SECONDS, 10**6, key=key)
        return {"one_client": one, "exec_ms": exec_ms, "many_clients": many, **({"idle": idle(running, port, key)} if weigh else {})}


def measure(folder):
    settings = pathlib.Path(folder) / "settings.yaml"
    settings.write_text(SETTINGS)
    settings.chmod(0o644)
    before = others()
    report = times(folder, "--config", settings, weigh=True)
    report["without_audit"] = times(folder, "--config", settings, "--audit", "off", weigh=False)
    return {**report, "without_a_server": {"before": before, "after": others()}}


def others_p50(report, name, kind):
    return sum(report["without_a_server"][when][name][kind]["p50"] for when in ("before", "after")) / 2


def at_that_speed(report, name, seen):
    """What would have been seen where the promises were made, by the gauge that says worse."""
    gauges = [(others_p50(report, other, GAUGE[name]), then) for other, then in THEN.items() if other in report["without_a_server"]["after"]]
    if name == "cycles_per_s":
        return round(min(seen * now / then for now, then in gauges), 1)
    return round(max(seen * then / now for now, then in gauges), 2)


def judge(report):
    seen = {"create_to_output_p50_ms": report["one_client"]["create_to_output_ms"]["p50"],
            "create_to_output_p99_ms": report["one_client"]["create_to_output_ms"]["p99"], "exec_p50_ms": report["exec_ms"]["p50"],
            "cycles_per_s": report["many_clients"]["cycles_per_s"], "idle_kib_each": report["idle"]["kib_each"],
            "idle_cpu_ms_per_s": report["idle"]["cpu_ms_per_s"]}
    report["promises"] = {}
    for name, (how, bound) in PROMISED.items():
        def met(value, how=how, bound=bound):
            return value <= bound if how == "at_most" else value >= bound
        report["promises"][name] = {"seen": seen[name], how: bound, "met": met(seen[name])}
        if name in GAUGE:
            then = at_that_speed(report, name, seen[name])
            report["promises"][name].update({"at_that_speed": then, "met_at_that_speed": met(then)})
    report["ratios"] = {}
    for name in report["without_a_server"]["after"]:
        report["ratios"][f"create_to_output/{name}"] = round(seen["create_to_output_p50_ms"] / others_p50(report, name, "output"), 2)
        report["ratios"][f"exec/{name}"] = round(seen["exec_p50_ms"] / others_p50(report, name, "exec"), 2)


def table(report):
    rows = [("create to output, 1 client", report["one_client"]["create_to_output_ms"]), ("  of it create", report["one_client"]["create_ms"]),
            ("  kill", report["one_client"]["kill_ms"]), ("exec of /bin/true", report["exec_ms"])]
    bare = report["without_audit"]
    rows += [("create to output, no audit log", bare["one_client"]["create_to_output_ms"]), ("exec, no audit log", bare["exec_ms"])]
    rows += [(f"{name}, output", after["output"]) for name, after in report["without_a_server"]["after"].items()]
    print(f"the server, ms (load before {report['load_before']})      p50      p99", file=sys.stderr)
    for name, row in rows:
        print(f"  {name:30} {row['p50']:8.2f} {row['p99']:8.2f}", file=sys.stderr)
    many, weight = report["many_clients"], report["idle"]
    print(f"  {many['cycles_per_s']} cycles of create, exec and kill a second ({bare['many_clients']['cycles_per_s']} without audit log), "
          f"{CLIENTS} clients\n  idle, of {weight['sandboxes']}: "
          f"{weight['kib_each']} KiB each, {weight['pss_kib_each']} of it its processes; {weight['cpu_ms_per_s']} ms of processor time a second",
          file=sys.stderr)
    print("  " + ", ".join(f"{name}: {value}" for name, value in report["ratios"].items()), file=sys.stderr)
    for name, p in report["promises"].items():
        then = f"; {p['at_that_speed']} at the speed of the promises: {'met' if p['met_at_that_speed'] else 'MISSED'}" if name in GAUGE else ""
        bound = f"at most {p['at_most']}" if "at_most" in p else f"at least {p['at_least']}"
        print(f"  {'met' if p['met'] else 'MISSED':7} {name}: {p['seen']} ({bound}){then}", file=sys.stderr)


def main():
    harness.become_subreaper()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="gabion-bench-") as folder:
        os.chmod(folder, 0o711)
        report = {"load_before": load_before, **measure(folder)}
    judge(report)
    table(report)
    print(json.dumps(report))


main()
