#!/usr/bin/python3
"""Wall time of starting /bin/true, from nothing, in one sandbox after another, in one process and in mixed order.

The machine drifts (load, frequency, caches), so single numbers mean little and ratios within one run mean much: every
round starts each program once, in an order shuffled anew, because a start also pays for what the program before it left
to the kernel (dead network namespaces). The first rounds are dropped.

JSON on standard output, a table on standard error.
GABION: the program (default build/gabion). BENCH_ROUNDS: default 200. BENCH_DROP: default 10."""
import contextlib
import json
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = "/bin/true"
# What is promised (docs/performance.md): p50 of gabion over p50 of the other, at most.
PROMISED = {"bwrap": 0.75, "runc": 0.2}
LINKS = ("bin", "sbin", "lib", "lib32", "lib64")


def usr_links():
    """Those of /bin, /lib, ... that are links into /usr on this machine."""
    return [name for name in LINKS if os.path.islink("/" + name)]


class Plain:
    name = "plain"

    def argv(self, _round):
        return [COMMAND]

    def version(self):
        return "fork and exec, no sandbox"


class Gabion:
    """A copy, as an installed program is one: the pages of a file that the linker has just written are slower to map, by a fortieth
    of a start."""
    name = "gabion"

    def __init__(self, folder):
        built = os.environ.get("GABION") or str(ROOT / "build/gabion")
        self.program = os.path.join(folder, "gabion")
        try:
            pathlib.Path(self.program).write_bytes(pathlib.Path(built).read_bytes())
            os.chmod(self.program, 0o755)
        except FileNotFoundError:
            self.program = built  # which is told when it does not start

    def argv(self, _round):
        return [self.program, "run", "--", COMMAND]

    def version(self):
        return first_line([self.program, "--version"])


class Bwrap:
    name = "bwrap"

    def __init__(self):
        self.program = shutil.which("bwrap")
        self.links = [word for name in usr_links() for word in ("--symlink", "usr/" + name, "/" + name)]

    def argv(self, _round):
        return [self.program, "--unshare-all", "--tmpfs", "/", "--ro-bind", "/usr", "/usr", *self.links,
                "--proc", "/proc", "--dev", "/dev", "--", COMMAND]

    def version(self):
        return first_line([self.program, "--version"])


class Oci:
    """runc and crun: the engine's own default configuration, /usr read-only, no terminal."""

    def __init__(self, name, folder):
        self.name, self.folder = name, pathlib.Path(folder)
        self.program = shutil.which(name)
        self.prefix = f"gabion-bench-{os.getpid()}"
        if self.program:
            self.make_bundle()

    def make_bundle(self):
        rootfs = self.folder / "rootfs"
        for name in ("usr", "proc", "dev", "sys"):
            (rootfs / name).mkdir(parents=True)
        for name in usr_links():
            (rootfs / name).symlink_to("usr/" + name)
        subprocess.run([self.program, "spec"], cwd=self.folder, check=True)
        path = self.folder / "config.json"
        config = json.loads(path.read_text())
        config["process"].update(terminal=False, args=[COMMAND])
        config["mounts"].insert(0, {"destination": "/usr", "type": "bind", "source": "/usr",
                                    "options": ["rbind", "ro", "nosuid", "nodev"]})
        path.write_text(json.dumps(config))

    def argv(self, number):
        return [self.program, "--root", str(self.folder / "state"), "run", "--bundle", str(self.folder),
                f"{self.prefix}-{number}"]

    def version(self):
        return first_line([self.program, "--version"])

    def clean(self):
        """Containers end by themselves; what an interrupted run left is removed with its control groups."""
        state = self.folder / "state"
        for entry in state.iterdir() if state.is_dir() else ():
            subprocess.run([self.program, "--root", str(state), "delete", "--force", entry.name], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Firejail:
    name = "firejail"
    # What its own documentation proposes for an untrusted program without a profile.
    flags = ("--quiet", "--noprofile", "--caps.drop=all", "--seccomp", "--nonewprivs", "--net=none", "--private",
             "--private-dev", "--private-tmp", "--ipc-namespace")

    state = pathlib.Path("/run/firejail")

    def __init__(self):
        self.program = shutil.which("firejail")
        self.was_there = self.state.exists()

    def argv(self, _round):
        return [self.program, *self.flags, "--", COMMAND]

    def version(self):
        return first_line([self.program, "--version"])

    def clean(self):
        """Its first start leaves a directory with mounts in it, for good. Taken away if there was none before."""
        if self.was_there or not self.state.exists() or not os.access(self.state, os.W_OK):
            return
        places = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
        for place in reversed([p for p in places if p.startswith(f"{self.state}/")]):
            subprocess.run(["umount", place], check=False)
        if not any(p.is_mount() for p in self.state.iterdir()):
            shutil.rmtree(self.state)


def first_line(argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return ((done.stdout + done.stderr).strip().splitlines() or ["unknown"])[0]


def refusal(contender, number):
    """None, or why the program cannot take part here, in its own words."""
    if not getattr(contender, "program", COMMAND):
        return "not installed"
    try:
        done = subprocess.run(contender.argv(number), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"does not start: {e}"
    if done.returncode == 0:
        return None
    words = (done.stderr + done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
    return f"refuses: {words[-1].strip()}"


def start_once(argv, quiet):
    """Seconds from spawn to exit status."""
    begin = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=quiet)
    _, status = os.waitpid(pid, 0)
    took = time.perf_counter() - begin
    if status != 0:
        raise RuntimeError(f"{' '.join(argv)}: wait status {status}")
    return took


def measure(contenders, rounds, drop):
    order = random.Random(1)
    times = {c.name: [] for c in contenders}
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    quiet = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    for number in range(rounds + drop):
        mixed = list(contenders)
        order.shuffle(mixed)
        for contender in mixed:
            took = start_once(contender.argv(number), quiet)
            if number >= drop:
                times[contender.name].append(took * 1000)
    os.close(null)
    return times


def quantile(ordered, q):
    """Nearest rank: always a time that was really measured."""
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * q // 100) - 1))]


def summary(values):
    ordered = sorted(values)
    return {"n": len(ordered), "min_ms": round(ordered[0], 3),
            **{f"p{q}_ms": round(quantile(ordered, q), 3) for q in (50, 90, 99)}}


def machine():
    model = [line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith(("model name", "CPU part"))]
    return {"kernel": platform.release(), "architecture": platform.machine(), "cpus": os.cpu_count(),
            "cpu": model[0] if model else "unknown", "load_before": [round(x, 2) for x in os.getloadavg()],
            "root": os.geteuid() == 0}


def ratios(results):
    mine = results["gabion"]["p50_ms"]
    return {f"gabion/{name}": round(mine / r["p50_ms"], 3) for name, r in results.items() if name != "gabion"}


def promises(found):
    return {f"gabion/{name}": {"at_most": most, "met": found[f"gabion/{name}"] <= most}
            for name, most in PROMISED.items() if f"gabion/{name}" in found}


def table(report):
    out = [f"cold start of {COMMAND}, ms, {report['rounds']} mixed rounds, "
           f"load before {report['machine']['load_before'][0]}",
           f"  {'':10} {'min':>8} {'p50':>8} {'p90':>8} {'p99':>8}  gabion's share (p50)"]
    for name, r in sorted(report["results"].items(), key=lambda item: item[1]["p50_ms"]):
        share = report["ratios"].get(f"gabion/{name}")
        promise = report["promises"].get(f"gabion/{name}")
        note = "" if share is None else f"{share:.2f}"
        if promise:
            note += f" (promised: at most {promise['at_most']}; {'met' if promise['met'] else 'MISSED'})"
        out.append(f"  {name:10} {r['min_ms']:8.2f} {r['p50_ms']:8.2f} {r['p90_ms']:8.2f} {r['p99_ms']:8.2f}  {note}")
    out += [f"  {name:10} {why}" for name, why in report["left_out"].items()]
    print("\n".join(out), file=sys.stderr)


def main():
    rounds, drop = int(os.environ.get("BENCH_ROUNDS", "200")), int(os.environ.get("BENCH_DROP", "10"))
    if rounds < 1 or drop < 0:
        sys.exit("cold-start: BENCH_ROUNDS must be at least 1, BENCH_DROP at least 0")
    host = machine()
    with tempfile.TemporaryDirectory(prefix="gabion-bench-") as folder, contextlib.ExitStack() as stack:
        untidy = [Firejail(), *(Oci(name, pathlib.Path(folder) / name) for name in ("runc", "crun"))]
        for contender in untidy:
            stack.callback(contender.clean)
        contenders = [Plain(), Gabion(folder), Bwrap(), *untidy]
        why = {c.name: refusal(c, "try") for c in contenders}
        left_out = {name: reason for name, reason in why.items() if reason}
        for name in ("plain", "gabion"):
            if name in left_out:
                sys.exit(f"cold-start: {name}: {left_out[name]}")
        taking_part = [c for c in contenders if c.name not in left_out]
        versions = {c.name: c.version() for c in contenders if getattr(c, "program", COMMAND)}
        times = measure(taking_part, rounds, drop)
    results = {name: summary(values) for name, values in times.items()}
    found = ratios(results)
    report = {"rounds": rounds, "dropped": drop, "machine": host, "versions": versions, "results": results,
              "ratios": found, "promises": promises(found), "left_out": left_out}
    table(report)
    print(json.dumps(report, indent=2))


main()
