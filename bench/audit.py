#!/usr/bin/python3
"""What the audit log costs: events acknowledged per second by a notary, the time of one acknowledgement, its memory, and
what recording adds to a whole run (/bin/true), with a running notary and with a log of its own: such a run waits for its
records and, unlike one without, for the proof of its end. What it adds to one command is judged by audit-server.py.

JSON on standard output, a table on standard error.
GABION: the program (default build/gabion). BENCH_ROUNDS: runs of each kind (default 200). BENCH_EVENTS: default 80000."""
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GABION = os.environ.get("GABION") or str(ROOT / "build/gabion")
BUILD = pathlib.Path(GABION).resolve().parent.parent.parent
# What is promised (docs/performance.md).
EVENTS_PER_S, MEMORY_KIB = 20000, 32768


def load(socket, writers, events, window):
    out = subprocess.run([BUILD / "bench/notary-load", socket, str(writers), str(events), str(window)], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out)


def once(words):
    start = time.monotonic()
    pid = os.posix_spawn(GABION, [GABION, "run", *words, "--", "/bin/true"], os.environ)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        sys.exit(f"audit: gabion run {' '.join(words)}: status {status}")
    return (time.monotonic() - start) * 1000


def runs(kinds, rounds):
    """Every round runs each kind once, in a new order; the first ten rounds are dropped."""
    times = {name: [] for name in kinds}
    for n in range(rounds + 10):
        for name in random.sample(list(kinds), len(kinds)):
            took = once(kinds[name])
            if n >= 10:
                times[name].append(took)
    return {name: sorted(t) for name, t in times.items()}


def main():
    rounds, events = int(os.environ.get("BENCH_ROUNDS", "200")), int(os.environ.get("BENCH_EVENTS", "80000"))
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/socket/notary"
        with subprocess.Popen([BUILD / "src/notary/gabion-notary", "--log", f"{folder}/log", "--socket", socket],
                              stderr=subprocess.PIPE) as notary:
            if b"ready" not in notary.stderr.readline():
                sys.exit("audit: gabion-notary does not start")
            many = load(socket, 4, events // 4, 64)
            single = load(socket, 1, 300, 1)
            status = pathlib.Path(f"/proc/{notary.pid}/status").read_text()
            peak = int(status.split("VmHWM:")[1].split()[0])
            times = runs({"off": [], "notary": ["--audit", socket], "own": ["--audit", f"{folder}/own"]}, rounds)
            notary.terminate()
    p50 = {name: t[len(t) // 2] for name, t in times.items()}
    report = {
        "load_before": round(before, 2), "rounds": rounds,
        "events_per_second": many["events_per_second"], "acknowledgement_p50_us": single["window_p50_us"],
        "memory_peak_kib": peak,
        "run_p50_ms": {name: round(v, 3) for name, v in p50.items()},
        "run_min_ms": {name: round(t[0], 3) for name, t in times.items()},
        "added_p50_ms": {name: round(p50[name] - p50["off"], 3) for name in ("notary", "own")},
        "spread_ms": round(statistics.pstdev(times["off"]), 3),
        "promises": {
            "events_per_second": {"at_least": EVENTS_PER_S, "met": many["events_per_second"] >= EVENTS_PER_S},
            "memory_peak_kib": {"at_most": MEMORY_KIB, "met": peak <= MEMORY_KIB},
        },
    }
    print(f"audit log, {rounds} rounds, load {before:.1f}", file=sys.stderr)
    print(f"  added to a run, ms   {report['added_p50_ms']}", file=sys.stderr)
    for name, value in report["promises"].items():
        print(f"  {name:20} {report[name]!s:30} {value}", file=sys.stderr)
    print(json.dumps(report))


main()
