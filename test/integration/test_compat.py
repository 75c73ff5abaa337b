"""Ordinary work is not broken: what works inside, what does not, and why. docs/compatibility.md is written from here.

    /usr/bin/python3 test/integration/test_compat.py     writes the page
"""
import ast
import pathlib
import re
import shlex
import sys

import pytest
from conftest import needs
from harness import ROOT, run, sh

PAGE = ROOT / "docs/compatibility.md"
WORK = pathlib.Path(__file__).with_name("test_work.py")

# stress-ng's ordinary stressors, as an unprivileged user on any machine can run them.
STRESSORS = {
    "processor": "atomic branch bsearch cpu crypt fp funccall hash heapsort hsearch list longjmp lsearch matrix mergesort "
                 "nop qsort radixsort shellsort skiplist sparsematrix str tree tsearch vecmath wcs zlib",
    "memory": "bigheap brk cache context env full madvise malloc membarrier memcpy mincore mlock mprotect munmap null "
              "randlist shm shm-sysv stack stream vm zero",
    "files": "access chdir chmod close copy-file dentry dev-shm dir dirdeep dirmany dnotify dup fallocate fcntl filename "
             "flock fpunch fstat getdent hdd inotify io iomix lease link locka lockf lockofd msync open readahead rename "
             "revio seal seek set symlink sync-file touch utime xattr",
    "pipes and sockets": "epoll eventfd fifo pipe pipeherd poll ring-pipe sendfile sock sockfd sockpair splice udp",
    "signals and timers": "alarm clock hrtimers itimer kill nanosleep sigabrt sigchld sigfd sigfpe sigio signal signest "
                          "sigpending sigpipe sigq sigrt sigsegv sigsuspend sigtrap sleep timer",
    "processes and threads": "affinity clone daemon exec exit-group fork futex get getrandom landlock msg mutex nice "
                             "personality pidfd procfs pthread resched rlimit seccomp sem sem-sysv session spawn switch "
                             "sysinfo urandom vfork wait yield zombie",
}
# Those that fail or skip themselves: why, and what stress-ng says.
STRESSORS_THAT_FAIL = {
    "cyclic": ("real-time scheduling is refused: it could starve the host", "CAP_SYS_NICE"),
    "io-uring": ("io_uring answers ENOSYS: it goes round the system-call filter", "not supported by the kernel"),
    "mq": ("POSIX message queues answer ENOSYS: only stress tests use them", "not implemented"),
    "ping-sock": ("ICMP sockets are refused", "protocol not supported"),
    "ptrace": ("tracing is refused in the profile `agent`; `--syscalls debug` allows it", "cannot be traced"),
    "pty": ("only the terminal calls TCGETS/TCSETS are allowed, not the older TCGETA/TCSETA", "TCGETA"),
    "remap": ("remap_file_pages answers ENOSYS: libraries use mmap", "remap_file_pages failed"),
    "sctp": ("SCTP sockets are refused", "protocol not supported"),
    "tee": ("tee answers ENOSYS; splice is there", "tee failed"),
    "timerfd": ("it wants more than 1024 descriptors, the limit; `--files 4096` is enough", "timerfd: cannot create"),
    "userfaultfd": ("userfaultfd answers ENOSYS: it widens races in the kernel", "insufficient privilege"),
    "vm-rw": ("process_vm_readv and process_vm_writev are refused; `--syscalls debug` allows them", "process_vm_"),
}
# Other things that people try. Each must fail as said: flags, command, what it says, why.
REFUSED = {
    "mount, also in a user namespace of one's own": (
        (), "mount -t tmpfs none /tmp", "must be superuser|permission denied|denied sys.call_refused",
        "no sandbox changes mounts; so no Docker, Podman or FUSE inside"),
    "new namespaces (unshare, bubblewrap, Chromium's own sandbox)": (
        (), "unshare -U true", "denied sys.call_refused: unshare",
        "they are the way to most kernel holes; run Chromium with --no-sandbox"),
    "strace, gdb": (
        (), "strace -o /dev/null true", "ptrace|Operation not permitted", "`--syscalls debug` allows them"),
    "sudo, su, setuid programs": (
        (), "su root -c true </dev/null", "su: |failure|not", "nobody gains anything by executing a file"),
    "chown to another user": (
        (), "touch f && chown 0 f", "Operation not permitted", "the command has no capabilities"),
    "writing to /usr, /etc (apt-get install, pip install for the system)": (
        (), "touch /usr/x", "Read-only file system|Permission denied",
        "the host's programs are read-only; use a virtual environment or a folder in the home directory"),
    "raw sockets, ping": (
        (), "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
        "PermissionError|Operation not permitted", "raw sockets are refused"),
}

STRESS = """
cd /tmp
one() {
    out=$(stress-ng --$1 1 --$1-ops 5 -t 1 --temp-path /tmp --vm-bytes 16M --hdd-bytes 4M --iomix-bytes 4M \\
        --bigheap-growth 64K --readahead-bytes 4M --seek-size 4M --revio-bytes 4M --fallocate-bytes 4M 2>&1 </dev/null)
    printf '%s\\t%s\\t%s\\n' "$1" $? "$(printf '%s' "$out" | tr '\\n' '|')"
}
export -f one
printf '%s\\n' "$@" | xargs -P 4 -I{} bash -c 'one {}'
"""


def stress(names):
    """{stressor: (worked, what it said)}, all in one sandbox, four at a time."""
    needs("stress-ng")
    result = run("-q", "--cpus", "2", "-m", "1G", "--pids", "1024", "--timeout", "150s", "--", "bash", "-c", STRESS, "sh", *names,
                 timeout=160)
    rows = [line.split("\t") for line in result.lines]
    assert sorted(r[0] for r in rows) == sorted(names), result
    return {name: (code == "0" and not re.search(r"skipp|No stress workers|fail: ", said), said) for name, code, said in rows}


@pytest.mark.parametrize("area", STRESSORS)
def test_ordinary_stressors(area):
    failed = {name: said[-600:] for name, (worked, said) in stress(STRESSORS[area].split()).items() if not worked}
    assert not failed


def test_stressors_that_fail_do_so_for_the_known_reason():
    for name, (worked, said) in stress(list(STRESSORS_THAT_FAIL)).items():
        assert not worked, f"{name} works now: move it"
        assert STRESSORS_THAT_FAIL[name][1] in said, (name, said)


def test_what_fails_only_for_a_limit_or_a_profile_works_with_another():
    needs("stress-ng")
    assert sh("cd /tmp && stress-ng -q --timerfd 1 --timerfd-ops 5 -t 1", "--files", "4096").code == 0
    needs("strace")
    assert sh("strace -o /tmp/t true && grep -c execve /tmp/t", "--syscalls", "debug").lines == ["1"]


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_says_so(what):
    flags, command, says, _ = REFUSED[what]
    needs(shlex.split(command)[0])
    result = sh(command, *flags)
    assert result.code != 0 and re.search(says, result.err + result.out), result


def page():
    """docs/compatibility.md."""
    tests = [f.name for f in ast.parse(WORK.read_text()).body if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")]
    lines = ["# What works inside, and what does not", "",
             "Written by `test/integration/test_compat.py`, which runs all of this in sandboxes with the default filter; do not edit.",
             "", "## Works", "", "| work | shown by |", "|---|---|"]
    lines += [f"| {t[5:].replace('_', ' ')} | `test_work.py::{t}` |" for t in tests]
    lines += ["", "stress-ng's ordinary stressors, one worker each:", "", "| kind | stressors |", "|---|---|"]
    lines += [f"| {kind} | {names} |" for kind, names in STRESSORS.items()]
    lines += ["", "## Does not work, and why", "", "| what | why |", "|---|---|"]
    lines += [f"| {what} | {row[3]} |" for what, row in REFUSED.items()]
    lines += [f"| stress-ng `{name}` | {why} |" for name, (why, _) in STRESSORS_THAT_FAIL.items()]
    return "\n".join(lines) + "\n"


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run: /usr/bin/python3 test/integration/test_compat.py"


if __name__ == "__main__":
    sys.exit(0 if PAGE.write_text(page()) else 1)
