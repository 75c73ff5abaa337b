#!/usr/bin/python3
"""Peak memory of gabion-agent (VmHWM) after it has passed on 50 MB of output: the work that would make it grow.

JSON on standard output, a line on standard error. GABION: the program (default build/gabion). Needs root: the agent's
memory figures are nobody else's to read."""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTPUT_BYTES = 50_000_000
PROMISED_KIB = 400
PROC = pathlib.Path("/proc")


def agent_of(parent):
    """The child of the supervisor that calls itself gabion-agent. Not by comm: that is the name of the sealed file, or
    the number of its descriptor, depending on the kernel."""
    for path in PROC.glob("[0-9]*"):
        try:
            ppid = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            name = (path / "cmdline").read_bytes().split(b"\0")[0]
        except (OSError, ValueError, IndexError):
            continue  # gone meanwhile
        if ppid == parent and name == b"gabion-agent":
            return path
    sys.exit("agent-memory: no gabion-agent below the supervisor")


def figures(status):
    return {key: int(value) for key, value in re.findall(r"^(Vm\w+|Rss\w+):\s+(\d+) kB$", status, re.M)}


def main():
    program = os.environ.get("GABION") or str(ROOT / "build/gabion")
    # After its output the command waits for the end of its input, so that the agent can be looked at.
    script = f"head -c {OUTPUT_BYTES} /dev/zero; cat"
    with subprocess.Popen([program, "run", "--", "/bin/sh", "-c", script], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as p:
        left = OUTPUT_BYTES
        while left > 0:
            data = p.stdout.read1(1 << 20)
            if not data:
                sys.exit(f"agent-memory: the run ended early, exit status {p.wait()}")
            left -= len(data)
        found = figures((agent_of(p.pid) / "status").read_text())
        p.stdin.close()
        p.stdout.read()
    if p.returncode != 0:
        sys.exit(f"agent-memory: exit status {p.returncode}")
    report = {"output_bytes": OUTPUT_BYTES, "peak_kib": found["VmHWM"], "now_kib": found["VmRSS"],
              "anonymous_kib": found["RssAnon"], "image_kib": found["RssShmem"] + found["RssFile"],
              "at_most_kib": PROMISED_KIB, "met": found["VmHWM"] <= PROMISED_KIB}
    print(f"agent's peak memory after {OUTPUT_BYTES // 1_000_000} MB of output: {report['peak_kib']} KiB "
          f"(promised: at most {PROMISED_KIB}; {'met' if report['met'] else 'MISSED'})", file=sys.stderr)
    print(json.dumps(report, indent=2))


main()
