"""Running a hostile script inside a sandbox and hearing what it could do.

A script is Python. It has call() for raw system calls, tried() for everything that raises OSError, and tells what it
found with tell(). What it tells is compared outside; an attack that works must show.
"""
import json
import pathlib
import platform

from harness import ROOT, run

USERS = ("user", "root")

PRELUDE = """
import ctypes, errno, fcntl, json, os, signal, socket, struct, sys, threading, time
NR = json.loads(%r)
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
def call(name, *args):
    nr = NR[name] if isinstance(name, str) else name
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    ctypes.set_errno(0)
    got = LIBC.syscall(ctypes.c_long(nr), *words)
    return errno.errorcode[ctypes.get_errno()] if got == -1 else got
def tried(do, *args, **kw):
    try:
        do(*args, **kw)
    except OSError as e:
        return errno.errorcode[e.errno]
    return "worked"
def opened(path, flags):
    return tried(lambda: os.close(os.open(path, flags)))
def tell(found):
    print(json.dumps(found), flush=True)
"""


def numbers():
    """Names and numbers of this architecture's system calls, from the filter's own table."""
    table = ROOT / "src/seccomp" / f"syscalls-{platform.machine()}.txt"
    rows = [line.split() for line in table.read_text().splitlines() if line and not line.startswith("#")]
    return {name: int(nr) for name, nr in rows}


def answers(profile):
    """{call: answer} of a profile, as written in the filter's table."""
    column = {"agent": 1, "strict": 2, "debug": 3}[profile]
    found = {}
    for line in (ROOT / "src/seccomp/profiles.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        found[cells[0]] = cells[column] if cells[column] != "=" else cells[1]
    return found


class Report:
    def __init__(self, result, found, denied):
        self.result, self.found, self.denied = result, found, denied

    def __getitem__(self, key):
        return self.found[key]


def inside(script, *flags, folder, argv0="/usr/bin/python3", **kw):
    """Runs the script to its end, which must be a good one. Returns what it told and which denials were reported."""
    receipt = pathlib.Path(folder) / "receipt.json"
    prelude = PRELUDE % json.dumps(numbers())
    result = run(f"--json={receipt}", *flags, "--", argv0, "-c", prelude + script, **kw)
    assert result.code == 0, result
    told = [line for line in result.out.splitlines() if line.startswith(("{", "["))]
    assert told, result
    denials = json.loads(receipt.read_text())["denials"]
    assert all(d["code"] == "sys.call_refused" for d in denials)
    return Report(result, json.loads(told[-1]), {d["what"].split("(")[0] for d in denials})
