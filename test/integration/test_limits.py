"""Attacks on resources: each ends with a typed reason within its limit, and its neighbour does not notice.

A neighbour sandbox counts primes while the attack runs; it must finish, correctly, in the time it is given, and the
host must answer: a fork and exec may not take a second.
"""
import json
import os
import pathlib
import subprocess
import threading
import time

import pytest
from harness import descendants, find_below, python, run, sh, started, until

MIB = 1 << 20
NEIGHBOUR = ("--", "/usr/bin/python3", "-c",
             "print(sum(all(n % d for d in range(2, int(n ** .5) + 1)) for n in range(2, 30000)))")
NEIGHBOUR_ANSWER = b"3245\n"


class Responsiveness(threading.Thread):
    """The slowest /bin/true on the host while the attack ran."""

    def __init__(self):
        super().__init__()
        self.stop, self.worst = threading.Event(), 0.0

    def run(self):
        while not self.stop.wait(0.05):
            begin = time.monotonic()
            subprocess.run(["/bin/true"], check=True)
            self.worst = max(self.worst, time.monotonic() - begin)


@pytest.fixture
def neighbour():
    """Runs beside the attack; checked after it."""
    host = Responsiveness()
    host.start()
    try:
        with started(*NEIGHBOUR) as p:
            yield
            out, err = p.communicate(timeout=20)
            assert (p.returncode, out, err) == (0, NEIGHBOUR_ANSWER, b"")
    finally:
        host.stop.set()
        host.join()
    assert host.worst < 1.0, f"the host took {host.worst:.2f} s for /bin/true"


def codes(result):
    return {d["code"] for d in result.json["denials"]}


def test_fork_bomb(neighbour):
    begin = time.monotonic()
    result = run("--json", "--pids", "64", "--timeout", "2s", "--", "bash", "-c", "b() { b | b & }; b; sleep 30",
                 timeout=15)
    assert time.monotonic() - begin < 6
    assert "limit.pids" in codes(result), result
    assert result.json["reason"] in ("exited", "timeout") and result.code in (0, 1, 124, 254)


def test_threads_count_as_processes(neighbour):
    script = ("import threading, time\nn = 0\ntry:\n  for i in range(3000):\n"
              "    threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); n += 1\n"
              "except RuntimeError: pass\nprint(n, flush=True)\nimport os; os._exit(0)")
    result = python(script, "--json", "--pids", "64")
    assert 40 < int(result.lines[0]) < 64
    assert codes(result) == {"limit.pids"}


def test_memory_bomb_in_one_process(neighbour):
    result = python("x = []\nwhile True: x.append(bytearray(1 << 20))", "--json", "-m", "64M")
    assert (result.code, result.json["reason"]) == (137, "oom")
    assert codes(result) == {"limit.memory"}
    assert result.json["memory_peak_bytes"] <= 64 * MIB


def test_memory_bomb_in_many_processes(neighbour):
    script = ("import os, time\nfor i in range(30):\n  if os.fork() == 0:\n    x = b'x' * (8 << 20); time.sleep(30)\n"
              "time.sleep(30)")
    result = python(script, "--json", "-m", "64M", "--timeout", "3s", timeout=15)
    assert "limit.memory" in codes(result)
    assert result.json["reason"] in ("oom", "timeout")
    assert result.json["memory_peak_bytes"] <= 64 * MIB


@pytest.mark.parametrize("how", [
    "import os\nfd = os.memfd_create('x')\nwhile True: os.write(fd, bytes(1 << 20))",
    "import mmap\nx = []\nwhile True: x.append(mmap.mmap(-1, 1 << 22)); x[-1].write(b'x' * (1 << 22))",
    "import ctypes\nc = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p\nwhile True:\n"
    "  i = c.shmget(0, 1 << 22, 0o1600); p = c.shmat(i, None, 0); ctypes.memset(p, 1, 1 << 22)",
], ids=["memfd", "shared-mmap", "sysv-shm"])
def test_memory_outside_the_heap_counts_too(how, neighbour):
    result = python(how, "--json", "-m", "48M", "--timeout", "10s", timeout=15)
    assert (result.code, result.json["reason"]) == (137, "oom"), result
    assert codes(result) == {"limit.memory"} and result.json["memory_peak_bytes"] <= 48 * MIB


def test_kernel_buffers_count_too(neighbour):
    """Pipes full of bytes are memory; the number of descriptors bounds them, or the memory limit does."""
    script = ("import os\nn = 0\ntry:\n  while True:\n    r, w = os.pipe(); os.set_blocking(w, False)\n"
              "    try: n += os.write(w, bytes(1 << 16))\n    except BlockingIOError: pass\n"
              "except OSError as e: print(e.errno, n)")
    result = python(script, "--json", "-m", "48M", timeout=15)
    assert result.json["memory_peak_bytes"] <= 48 * MIB
    assert result.code == 0 and result.lines[0].startswith("24 ") or result.json["reason"] == "oom", result


@pytest.mark.parametrize("place", ["/tmp", "/home/user", "/dev/shm", "/run"])
def test_disk_filler(place, neighbour):
    result = sh(f"dd if=/dev/zero of={place}/big bs=1M count=200 2>&1; stat -c %s {place}/big; echo alive", "--json",
                "--disk", "32M", "-m", "128M")
    assert result.code == 0 and "alive" in result.lines, result
    size = int(result.lines[result.lines.index("alive") - 1])
    assert 28 * MIB < size <= 32 * MIB
    assert codes(result) == {"limit.disk"}


def test_disk_filled_by_many_files_is_told(neighbour):
    result = sh("i=0; while head -c 1000000 /dev/zero > /tmp/f$i; do i=$((i+1)); done 2>/dev/null; echo $i", "--json",
                "--disk", "24M", "-m", "96M")
    assert 20 <= int(result.lines[0]) <= 25
    assert codes(result) == {"limit.disk"}


def test_inode_filler(neighbour):
    script = ("import os\nn = 0\ntry:\n  while n < 200000: open(f'/tmp/{n}', 'w').close(); n += 1\n"
              "except OSError as e: print(e.errno, n)")
    result = python(script, "--json", "--disk", "16M", "-m", "128M", timeout=20)
    errno, n = map(int, result.lines[0].split())
    assert errno == 28 and n <= 16 * MIB // 4096
    assert codes(result) == {"limit.disk"}


def test_deep_directories_end(neighbour):
    script = ("import os\nn = 0\ntry:\n  while n < 100000: os.mkdir('d'); os.chdir('d'); n += 1\n"
              "except OSError as e: print(e.errno, n)")
    result = python(script, "--json", "--disk", "16M", "-m", "128M", "-w", "/tmp", timeout=20)
    assert int(result.lines[0].split()[0]) in (28, 36)


def test_output_flood(neighbour):
    begin = time.monotonic()
    result = run("--json", "--output", "4M", "--", "yes")
    assert (result.code, result.json["reason"]) == (137, "limit")
    assert codes(result) == {"limit.output"} and result.json["output_truncated"]
    assert time.monotonic() - begin < 5


def test_one_endless_line_is_cut_too(neighbour, tmp_path):
    result = run(f"--json={tmp_path}/r", "--output", "4M", "--", "tr", "\\0", "x", stdin=b"", timeout=10)
    assert result.code == 0
    result = sh("tr '\\0' x < /dev/zero", f"--json={tmp_path}/r", "--output", "4M")
    doc = json.loads((tmp_path / "r").read_text())
    assert doc["reason"] == "limit" and len(result.raw) == 4 * MIB


def test_cpu_hog_gets_its_share_and_no_more(neighbour):
    script = "import os, time\nfor i in range(2): os.fork()\nt = time.time()\nwhile time.time() < t + 1.5: pass"
    begin = time.monotonic()
    result = python(script, "--json", "--cpus", "0.5")
    wall = time.monotonic() - begin
    share = result.json["cpu_ms"] / 1000 / wall
    assert 0.3 < share <= 0.7, f"{share:.2f} CPUs"


def test_fd_bomb(neighbour):
    script = "import os\nn = 0\ntry:\n  while True: os.dup(0); n += 1\nexcept OSError as e: print(e.errno, n)"
    assert python(script).out == "24 1021\n"
    assert python(script, "--files", "64").out == "24 61\n"


def test_daemonised_orphan_dies_with_its_sandbox(neighbour, shared):
    script = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    open('/mnt/d/beat', 'w').write(str(time.time()))
                    time.sleep(.01)
            os._exit(0)
        os.wait()
        while not os.path.exists('/mnt/d/beat'):
            time.sleep(.01)
        """
    result = python(script, "--json", "-v", f"{shared}:/mnt/d:rw")
    assert (result.code, result.json["reason"]) == (0, "exited")
    beat = (shared / "beat").read_text()
    time.sleep(0.3)
    assert (shared / "beat").read_text() == beat


def test_orphans_are_counted():
    result = sh("sleep 60 & sleep 60 & exit 3", "--json")
    assert result.code == 3
    assert result.json["orphans_ended"] == 2, result


IGNORE_EVERYTHING = ("import signal, time\nfor s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n"
                     "  except (OSError, ValueError): pass\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
                     "while True: time.sleep(1)")


@pytest.mark.parametrize("script", [
    IGNORE_EVERYTHING,
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "import os, signal, time\nif os.fork() == 0: time.sleep(60)\nos.kill(0, signal.SIGSTOP)",
    "import os, time\nfor i in range(40):\n  if os.fork() == 0: os.setsid(); time.sleep(60)\ntime.sleep(60)",
], ids=["ignores-signals", "stops-itself", "stops-its-group", "many-sessions"])
def test_what_will_not_end_is_ended_in_time(script, neighbour):
    begin = time.monotonic()
    result = python(script, "--json", "--timeout", "700ms")
    assert (result.code, result.json["reason"]) == (124, "timeout")
    assert codes(result) == {"limit.time"}
    assert time.monotonic() - begin < 2.5


def test_zombies_are_reaped_or_bounded(neighbour):
    """Children of the command that nobody waits for stay zombies until it ends; those of the dead go to pid 1."""
    orphans = """
        import os
        for i in range(500):
            p = os.fork()
            if p == 0:
                if os.fork() == 0:
                    os._exit(0)
                os._exit(0)
            os.waitpid(p, 0)
        print('done')
        """
    result = python(orphans, "--json", "--pids", "64")
    assert result.lines[0] == "done" and codes(result) == set(), result
    unwaited = """
        import os
        n = 0
        try:
            for i in range(1000):
                if os.fork() == 0:
                    os._exit(0)
                n += 1
        except OSError:
            print(n)
        """
    result = python(unwaited, "--json", "--pids", "64")
    assert int(result.lines[0]) < 64 and codes(result) == {"limit.pids"}


def test_user_namespaces_cannot_be_made_in_a_loop(neighbour):
    script = """
        import ctypes
        c = ctypes.CDLL(None)
        user, mnt, net, pid = 0x10000000, 0x20000, 0x40000000, 0x20000000
        print(sum(c.unshare(kind) == 0 for kind in (user, mnt, net, pid) for _ in range(50)))
        """
    assert python(script).lines[-1] == "0"


def test_a_limit_is_enforced_by_the_kernel_not_only_reported():
    """The control groups of the running sandbox, read from the host."""
    with started("-m", "100M", "--pids", "33", "--cpus", "0.25", "--", "cat") as p:
        pid = find_below(p.pid, "cat")
        lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        places = {}
        for line in lines:
            _, controllers, path = line.split(":", 2)
            for name in controllers.split(",") if controllers else ["unified"]:
                places[name] = path
        if "memory" not in places:
            base = f"/sys/fs/cgroup{places['unified']}"
            got = [pathlib.Path(base, f).read_text().split() for f in ("memory.max", "pids.max", "cpu.max")]
            assert got == [["104857600"], ["33"], ["25000", "100000"]]
            return
        read = lambda c, f: int(pathlib.Path(f"/sys/fs/cgroup/{c}{places[c]}/{f}").read_text())  # noqa: E731
        assert read("memory", "memory.limit_in_bytes") == 100 * MIB
        assert read("memory", "memory.memsw.limit_in_bytes") == 100 * MIB
        assert read("pids", "pids.max") == 33
        assert read("cpu", "cpu.cfs_quota_us") / read("cpu", "cpu.cfs_period_us") == 0.25


def test_thirty_sandboxes_at_once():
    """No two get in each other's way: slots, ids and groups are their own."""
    running = [started("--", "sh", "-c", f"sleep 0.3; echo {i}") for i in range(30)]
    try:
        for i, one in enumerate(running):
            out, err = one.p.communicate(timeout=30)
            assert (one.p.returncode, out, err) == (0, f"{i}\n".encode(), b"")
    finally:
        for one in running:
            one.__exit__()


def test_nothing_of_an_ended_attack_keeps_running():
    before = set(descendants(os.getpid()))
    run("--pids", "32", "--timeout", "300ms", "--", "bash", "-c", "b() { b | b & }; b; sleep 30", timeout=15)
    assert until(lambda: set(descendants(os.getpid())) <= before, 2)
