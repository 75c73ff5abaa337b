#!/usr/bin/python3
"""What a saturating neighbour costs: the time of small requests in one sandbox, alone and beside another sandbox that
takes all it can get of processor, memory, files and processes within the default limits.

Rounds alone and rounds beside the neighbour take turns, so that a change of the machine meets both. JSON on standard
output, a line on standard error. GABION: the program (default build/gabion). BENCH_REQUESTS: per round (default 150).
BENCH_TURNS: pairs of rounds (default 3)."""
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMISED = 2.0  # p95 beside the neighbour over p95 alone, at most

# A request: a millisecond or two of processor time, and a file written and read back.
REQUESTS = """
import hashlib, sys, time
data = bytes(1 << 20)
for _ in range(int(sys.argv[1])):
    time.sleep(0.004)
    begin = time.perf_counter()
    digest = hashlib.sha256(data).digest() * 2048
    with open("/tmp/file", "wb") as f:
        f.write(digest)
    with open("/tmp/file", "rb") as f:
        assert f.read() == digest
    print(time.perf_counter() - begin)
"""

# Until it is ended: busy loops, memory up to the limit and over it, files until the disk is full, processes without end.
NEIGHBOUR = """
echo saturating
for i in 1 2 3 4; do while :; do :; done & done
while :; do head -c 900M /dev/zero > /tmp/fill 2>/dev/null; rm -f /tmp/fill; done &
while :; do find /usr -type f -exec cat {} + > /dev/null 2>&1; done &
while :; do (/bin/true & /bin/true & /bin/true & /bin/true) 2>/dev/null; done
"""


def round_of(program, requests):
    done = subprocess.run([program, "run", "--", "/usr/bin/python3", "-c", REQUESTS, str(requests)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"neighbour: the requests ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return [float(line) * 1000 for line in done.stdout.split()]


def p95(values):
    return sorted(values)[len(values) * 95 // 100]


def main():
    program = os.environ.get("GABION") or str(ROOT / "build/gabion")
    requests, turns = int(os.environ.get("BENCH_REQUESTS", "150")), int(os.environ.get("BENCH_TURNS", "3"))
    alone, beside = [], []
    for _ in range(turns):
        alone += round_of(program, requests)
        with subprocess.Popen([program, "run", "--timeout", "5m", "--", "/bin/sh", "-c", NEIGHBOUR],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
            p.stdout.readline()
            time.sleep(0.3)  # until all of it is at work
            beside += round_of(program, requests)
            p.terminate()
            time.sleep(0.2)
            p.kill()
    report = {"requests": len(beside), "alone_p95_ms": round(p95(alone), 3), "beside_p95_ms": round(p95(beside), 3),
              "ratio": round(p95(beside) / p95(alone), 2), "at_most": PROMISED,
              "met": p95(beside) <= PROMISED * p95(alone)}
    print(f"p95 of a request: {report['alone_p95_ms']} ms alone, {report['beside_p95_ms']} ms beside a saturating "
          f"neighbour, {report['ratio']} x (promised: at most {PROMISED}; {'met' if report['met'] else 'MISSED'})",
          file=sys.stderr)
    print(json.dumps(report, indent=2))


main()
