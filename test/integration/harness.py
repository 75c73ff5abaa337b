"""Running gabion from outside, and finding what it left behind.

The test process is a child subreaper: whatever gabion started and lost comes back to us, so "nothing is left" can be
said of our own descendants without guessing by name, also while other people's sandboxes run on the same machine.
"""
import ctypes
import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GABION = str(pathlib.Path(os.environ.get("GABION", ROOT / "build/src/cli/gabion")).resolve())
GABION_WEAK = os.environ.get("GABION_WEAK", str(pathlib.Path(GABION).with_name("gabion-weak")))
RUN_DIR = "/run/gabion"
RUNS = set()  # directories of the wardens that this process started
PATIENCE_S = 2.0  # what the janitor may take
PR_SET_CHILD_SUBREAPER = 36

CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup", "time")


def become_subreaper():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


class Result:
    """What a finished `gabion` left: exit code, bytes and text of both streams."""

    def __init__(self, code, out, err):
        self.code, self.raw, self.raw_err = code, out, err
        self.out, self.err = out.decode(errors="replace"), err.decode(errors="replace")

    @property
    def json(self):
        """The last line of standard output, for runs with --json."""
        return json.loads(self.out.splitlines()[-1])

    @property
    def lines(self):
        return self.out.splitlines()

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out[-2000:]}\n--- stderr\n{self.err[-2000:]}"


def argv_of(*words, binary=None):
    return [binary or GABION, *map(str, words)]


def gabion(*words, stdin=b"", timeout=30, binary=None, **popen):
    """Runs `gabion WORDS...` to its end. Hanging is a failure of the test, and leaves nothing behind."""
    if isinstance(stdin, str):
        stdin = stdin.encode()
    with subprocess.Popen(argv_of(*words, binary=binary), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **popen) as p:
        try:
            out, err = p.communicate(stdin, timeout=timeout)
        except BaseException:
            p.kill()
            out, err = p.communicate()
            print(f"killed after {timeout} s: {out[-1000:]!r} {err[-1000:]!r}")
            raise
    return Result(p.returncode, out, err)


def run(*words, **kw):
    return gabion("run", *words, **kw)


def sh(script, *flags, **kw):
    return gabion("run", *flags, "--", "sh", "-c", script, **kw)


def python(script, *flags, **kw):
    return gabion("run", *flags, "--", "/usr/bin/python3", "-c", textwrap.dedent(script), **kw)


def start(*words, **popen):
    """Starts `gabion run WORDS...` with pipes; use as a context manager through `started`."""
    popen = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
    return subprocess.Popen(argv_of("run", *words), **popen)


class started:
    """`with started(...) as p:` - a running gabion that is killed and reaped at the end of the block."""

    def __init__(self, *words, **popen):
        self.p = start(*words, **popen)

    def __enter__(self):
        return self.p

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
        for stream in (self.p.stdin, self.p.stdout, self.p.stderr):
            if stream:
                stream.close()
        self.p.wait()


def until(condition, seconds=5.0, step=0.01):
    """Waits for a condition; returns its last value, so that `assert until(...)` shows what was seen."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(step)


def status_of(pid="self"):
    """/proc/PID/status as a dictionary."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return parse_status(text)


def parse_status(text):
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith(" "))


def parents():
    """pid -> (parent, name, state) of every process of this machine."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            text = pathlib.Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        comm, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        table[int(name)] = (int(rest[1]), comm, rest[0])
    return table


def descendants(pid):
    """Living processes below pid: {pid: name}."""
    table = parents()
    found, fresh = {}, {pid}
    while fresh:
        fresh = {p for p, (parent, _, _) in table.items() if parent in fresh and p not in found}
        found.update((p, table[p][1]) for p in fresh)
    return {p: name for p, name in found.items() if table[p][2] not in "ZX"}


def find_below(pid, name, seconds=5.0):
    """The pid of the process of that name in the sandbox of the gabion `pid`."""
    found = until(lambda: [p for p, comm in descendants(pid).items() if comm == name], seconds)
    assert found, f"no {name} below {pid}: {descendants(pid)}"
    return found[0]


def find_agent(pid, seconds=5.0):
    """The host's pid of pid 1 in the sandbox of the gabion `pid`."""
    def inits():
        try:
            return [p for p in descendants(pid) if status_of(p).get("NSpid", "").split()[-1:] == ["1"]]
        except (FileNotFoundError, ProcessLookupError):  # one ended while we looked
            return []

    found = until(inits, seconds)
    assert found, f"no agent below {pid}: {descendants(pid)}"
    return found[0]


def slot_of(agent):
    """The name of the slot of a sandbox by its agent's pid, from its control groups, which it joins late."""
    return until(lambda: re.findall(r"sbx-\d+", pathlib.Path(f"/proc/{agent}/cgroup").read_text()))[0]


def control_groups():
    return sorted(glob.glob("/sys/fs/cgroup/gabion/sbx-*") + glob.glob("/sys/fs/cgroup/*/gabion/sbx-*"))


def locked_inodes():
    with open("/proc/locks", encoding="ascii") as f:
        return {int(m.group(1)) for m in re.finditer(r"FLOCK .*?[0-9a-f]+:[0-9a-f]+:(\d+) ", f.read())}


def slots():
    """Slot files, and whether somebody holds them."""
    held, result = locked_inodes(), {}
    try:
        names = os.listdir(RUN_DIR)
    except FileNotFoundError:
        return {}
    for name in names:
        try:
            # the socket beside a slot lives as long as the slot
            result[name] = os.stat(f"{RUN_DIR}/{name.removesuffix('.sock')}").st_ino in held
        except FileNotFoundError:
            result[name] = False
    return {name: held for name, held in result.items() if os.path.lexists(f"{RUN_DIR}/{name}")}


def others():
    """Slots of somebody else: recorded by a warden that we did not start; of the rest, those that are held, as ours are over
    when we look. A record is also held for a moment by whoever sweeps."""
    found = set()
    for name, held in slots().items():
        try:
            run = json.loads(pathlib.Path(RUN_DIR, name).read_text())["run"]
        except (OSError, ValueError, TypeError, KeyError):  # a socket, gone, or no warden's
            run = None
        if (run not in RUNS) if run else held:
            found.add(name)
    return found


def mounts():
    """Without those that the kernel makes by itself when somebody looks there."""
    return {line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if " - tracefs " not in line}


def reap_adopted():
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                return
        except ChildProcessError:
            return


def leftovers(mounts_before, known=()):
    """What is there and should not be, as text; empty when everything is gone."""
    reap_adopted()
    found = [f"process {pid} {name}" for pid, name in descendants(os.getpid()).items() if pid not in known]
    table, groups, foreign = slots(), control_groups(), others()
    found += [f"slot {name}" for name in table if name not in foreign]
    found += [f"cgroup {path}" for path in groups if os.path.basename(path) not in foreign]
    found += [f"mount {line}" for line in mounts() - mounts_before]
    return found


def wait_clean(mounts_before, known=(), seconds=PATIENCE_S):
    """Gives the janitor its time. Returns what is still there."""
    end = time.monotonic() + seconds
    while (found := leftovers(mounts_before, known)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def kill_all(found, known=()):
    """After a failed check: the next test must not suffer for this one."""
    for pid in descendants(os.getpid()):
        if pid not in known:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    subprocess.run(argv_of("run", "--", "true"), check=False, capture_output=True, timeout=30)  # sweeps
    return found
