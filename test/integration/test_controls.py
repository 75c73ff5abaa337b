"""The controls in force, read inside the sandbox and, for the same process, from the host."""
import json
import os
import pathlib
import re

import pytest
from harness import (CAPABILITY_SETS, NAMESPACES, ROOT, find_agent, find_below, gabion, parse_status, python, run, sh,
                     started, status_of)

SLOT_UID_FIRST = 1 << 27  # below every range handed out to sandboxes, above every account of a host
SYSCALLS = """
import ctypes, errno, json
libc = ctypes.CDLL(None, use_errno=True)
def call(nr, *args):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno(), 'worked') if libc.syscall(nr, *args) < 0 else 'worked'
"""


@pytest.fixture(params=["user", "root"])
def pair(request):
    """(host pid of the command, user inside, gabion) for a command that waits; `cat` echoes nothing until it ends."""
    with started("--user", request.param, "--", "cat") as p:
        yield find_below(p.pid, "cat"), request.param, p


def inside(text_file="/proc/self/status", *flags):
    return run(*flags, "--", "cat", text_file).out


def test_no_capabilities_and_a_filter_inside():
    status = parse_status(inside())
    assert {int(status[name], 16) for name in CAPABILITY_SETS} == {0}
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")


def test_no_capabilities_and_a_filter_seen_from_the_host(pair):
    pid, _, _ = pair
    status = status_of(pid)
    assert {int(status[name], 16) for name in CAPABILITY_SETS} == {0}
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
    assert status["Groups"].strip() == ""


def test_ids_inside_are_nobody_on_the_host(pair):
    pid, user, _ = pair
    uids = {int(n) for n in status_of(pid)["Uid"].split() + status_of(pid)["Gid"].split()}
    assert len(uids) == 1 and uids.pop() >= SLOT_UID_FIRST
    first, base, count = map(int, pathlib.Path(f"/proc/{pid}/uid_map").read_text().split())
    assert first == 0 and base >= SLOT_UID_FIRST and count == 65536  # host root is not mapped
    assert os.stat(f"/proc/{pid}").st_uid == base + (1000 if user == "user" else 0)


def test_two_sandboxes_never_share_host_ids():
    with started("--", "cat") as a, started("--", "cat") as b:
        first, second = (int(pathlib.Path(f"/proc/{find_below(p.pid, 'cat')}/uid_map").read_text().split()[1])
                         for p in (a, b))
        assert abs(first - second) >= 65536


def test_eight_namespaces_are_new_and_the_commands_own(pair):
    pid, _, p = pair
    for name in NAMESPACES:
        mine, theirs = os.readlink(f"/proc/self/ns/{name}"), os.readlink(f"/proc/{pid}/ns/{name}")
        assert mine != theirs, name
        assert os.readlink(f"/proc/{p.pid}/ns/{name}") == mine  # gabion itself stays outside
    seen = run("--", "sh", "-c", "readlink /proc/self/ns/*").out
    assert not [name for name in NAMESPACES if os.readlink(f"/proc/self/ns/{name}") in seen]


def test_mounts_seen_from_the_host_are_private_and_restricted(pair):
    pid, user, _ = pair
    home = "/home/user" if user == "user" else "/root"
    writable = {"/tmp", "/run", "/dev/shm", "/dev/pts", home}
    for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        target, options = left.split()[4], left.split()[5].split(",")
        assert "shared:" not in left and "master:" not in left, line
        assert "nosuid" in options, line
        assert ("rw" in options) == (target in writable), line
        assert "nodev" in options or target in ("/dev", "/dev/pts"), line
        assert "noexec" in options or target in writable or target.startswith(("/usr", "/etc/")), line
        assert right.split()[0] in ("tmpfs", "proc", "devpts") or target.startswith(("/usr", "/etc/")), line


def test_oom_killer_takes_the_sandbox_before_the_host(pair):
    assert int(pathlib.Path(f"/proc/{pair[0]}/oom_score_adj").read_text()) == 500


def test_no_descriptor_of_the_caller_comes_in(tmp_path):
    files = []
    try:
        for n in range(3, 21):
            (tmp_path / f"canary-{n}").write_text("canary")
            files.append(os.open(tmp_path / f"canary-{n}", os.O_RDWR))
        for fd in files:
            os.set_inheritable(fd, True)
        with started("--", "cat", pass_fds=files) as p:
            pid = find_below(p.pid, "cat")
            targets = {n: os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
            assert set(targets) == {"0", "1", "2"}, targets
            assert all(t.startswith("pipe:") for t in targets.values())
        agent_free = sh("ls /proc/self/fd; ls -l /proc/self/fd", pass_fds=files)
        assert "canary" not in agent_free.out
    finally:
        for fd in files:
            os.close(fd)


def test_pid_1_holds_nothing_of_the_caller():
    env = {**os.environ, "SECRET_CANARY": "canary-4711"}
    with started("--", "cat", env=env) as p:
        find_below(p.pid, "cat")  # before that, pid 1 is still a copy of gabion
        agent = find_agent(p.pid)
        assert pathlib.Path(f"/proc/{agent}/environ").read_bytes() == b""
        status = status_of(agent)
        assert int(status["CapBnd"], 16) == 0 and int(status["Uid"].split()[0]) >= SLOT_UID_FIRST
        assert int(status["CapEff"], 16) & ~0x1e0 == 0  # kill, setgid, setuid, setpcap; of its own namespace


@pytest.mark.parametrize("user", ["user", "root"])
def test_pid_1_cannot_be_read_from_inside(user):
    script = "\n".join(["for f in environ mem maps fd/0 cwd root exe auxv; do",
                        "  if cat /proc/1/$f >/dev/null 2>&1 || ls /proc/1/$f/ >/dev/null 2>&1; then echo $f; fi",
                        "done; ls /proc/1/fd 2>/dev/null; cat /proc/1/environ 2>/dev/null"])
    assert sh(script, "--user", user).out == ""


def test_only_the_loopback_interface():
    result = sh("cat /proc/net/dev; cat /proc/net/route")
    assert re.findall(r"^\s*(\S+):", result.out, re.M) == ["lo"]
    assert len(result.lines) == 4  # two of heading, lo, the heading of routes


def test_nothing_beyond_loopback_can_be_reached():
    probe = """
import socket
for address in (('192.0.2.1', 80), ('169.254.169.254', 80), ('8.8.8.8', 53), ('2001:db8::1', 80)):
    family = socket.AF_INET6 if ':' in address[0] else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(2)
    try: s.connect(address); print('connected', address)
    except OSError as e: print(e.errno)
"""
    assert set(python(probe).lines) == {"101"}  # ENETUNREACH


def test_clocks_do_not_tell_the_hosts_uptime():
    result = python("""
        import time
        print(open('/proc/uptime').read().split()[0])
        print(time.monotonic())
        print(time.clock_gettime(time.CLOCK_BOOTTIME))
        """)
    assert len(result.lines) == 3
    for number in result.lines:
        assert 0 <= float(number) < 60, result.out


def test_proc_tells_nothing_of_the_host():
    """Both what is masked and what only the host's root may read, which nobody inside is."""
    masks = json.loads(gabion("plan", "--json", "--", "true").out)["proc_masks"]
    assert {"keys", "key-users", "kallsyms", "modules", "config.gz", "cmdline", "interrupts", "diskstats", "swaps",
            "partitions", "cgroups", "bus/", "fs/", "irq/", "pressure/"} <= set(masks)
    boot_id = "sys/kernel/random/boot_id"  # programs want one, so another is shown
    assert boot_id in masks
    inside = gabion("run", "--", "cat", f"/proc/{boot_id}").out.strip()
    assert len(inside) == 36 and inside != open(f"/proc/{boot_id}", encoding="ascii").read().strip()
    files = [m for m in masks if not m.endswith("/") and m != boot_id] + ["kcore", "kmsg", "slabinfo", "vmallocinfo", "pagetypeinfo"]
    folders = [f"/proc/{m}" for m in masks if m.endswith("/")]
    for user in ("user", "root"):
        result = sh(f"for f in {' '.join(files)}; do head -c 1 /proc/$f 2>/dev/null | grep -q . && echo $f; done; "
                    f"ls -A {' '.join(folders)} 2>/dev/null | grep -v ':$' | grep .", "--user", user)
        assert result.lines == [], user


def test_proc_cannot_be_written():
    for user in ("user", "root"):
        result = sh("for f in sys/kernel/core_pattern sys/kernel/hostname sys/vm/drop_caches sysrq-trigger "
                    "sys/net/ipv4/ip_forward 1/oom_score_adj self/uid_map sys/kernel/ns_last_pid; do "
                    "(echo 1 > /proc/$f) 2>/dev/null && echo wrote $f; done", "--user", user)
        assert result.out == "", user


def test_the_hosts_processes_are_invisible():
    pids = [int(p) for p in run("--", "ls", "/proc").out.split() if p.isdigit()]
    assert 1 in pids and len(pids) <= 3 and max(pids) < 20


def test_dev_holds_the_safe_nodes_and_no_others():
    result = sh("cd /dev; ls -A; find / -xdev -type b 2>/dev/null; find /dev -type c | sort")
    lines = result.lines
    assert set(lines[:lines.index("zero") + 1]) == {
        "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
    assert [ln for ln in lines if ln.startswith("/dev")] == [
        f"/dev/{n}" for n in ("full", "null", "pts/ptmx", "random", "tty", "urandom", "zero")]
    assert sh("echo x > /dev/null && head -c 4 /dev/zero | wc -c && head -c 4 /dev/urandom | wc -c; echo x > /dev/full"
              ).lines[:2] == ["4", "4"]


@pytest.mark.parametrize("user", ["user", "root"])
def test_the_root_is_read_only_but_for_the_promised_places(user):
    home = "/home/user" if user == "user" else "/root"
    result = sh("for d in / /usr /usr/bin /usr/local /etc /etc/ssl/certs /dev /dev/pts /proc /var /.gabion /home /bin; "
                "do touch $d/x 2>/dev/null && echo wrote $d; done; "
                f"for d in /tmp /run /dev/shm /var/tmp {home}; do touch $d/x && echo may $d; done; "
                "mv /etc/passwd /etc/p 2>/dev/null && echo moved; rm -f /usr/bin/ls 2>/dev/null && echo removed",
                "--user", user)
    assert result.lines == [f"may {d}" for d in ("/tmp", "/run", "/dev/shm", "/var/tmp", home)]


def test_accounts_and_configuration_of_the_host_are_not_there():
    result = sh("cat /etc/passwd | cut -d: -f1; ls /etc; ls -A /home /root /var /sys /boot /mnt /opt /srv 2>&1")
    names = result.lines[:result.lines.index("alternatives")]
    assert names == ["root", "user"] or set(names) <= {"root", "user", "nobody"}, names
    assert not {"shadow", "ssh", "sudoers", "machine-id", "fstab", "crontab"} & set(result.lines)


def test_a_setuid_program_gains_nothing(shared):
    """Both a setuid file of the host below /usr and one mounted in."""
    helper = shared / "id"
    helper.write_bytes(pathlib.Path("/usr/bin/id").read_bytes())
    helper.chmod(0o6755)
    result = sh("/mnt/d/id -u; /mnt/d/id -g; /mnt/d/id -ru; ls -l /usr/bin/passwd /usr/bin/su | cut -c1-4; "
                "su -c id 2>&1 </dev/null", "-v", f"{shared}:/mnt/d:ro")
    assert result.lines[:3] == ["1000", "1000", "1000"]
    assert "uid=0" not in result.out


@pytest.mark.parametrize("name", ["mount", "unshare", "chroot", "ptrace", "bpf", "io_uring_setup", "userfaultfd",
                                  "keyctl", "setns", "init_module", "perf_event_open", "reboot", "clone3", "open_tree",
                                  "pivot_root", "open_by_handle_at", "unknown"])
def test_dangerous_calls_are_refused(name):
    table = (ROOT / f"src/seccomp/syscalls-{os.uname().machine}.txt").read_text().splitlines()
    nr = {"unknown": 999, **{line.split()[0]: int(line.split()[1]) for line in table if line[:1] != "#"}}[name]
    # unshare(CLONE_NEWUSER); the others get zeroes, which the kernel would answer with EINVAL or EFAULT if it saw them
    argument = 0x10000000 if name == "unshare" else 0
    result = python(SYSCALLS + f"print(call({nr}, {argument}, 0, 0, 0, 0))")
    assert result.out.strip() in ("EPERM", "ENOSYS"), result


def test_socket_families_are_limited():
    result = python("""
        import socket
        for f in range(1, 46):
            for t in (1, 2, 3, 5):
                try:
                    socket.socket(f, t)
                    print(f, t)
                except OSError:
                    pass
        """)
    assert {int(line.split()[0]) for line in result.lines} <= {1, 2, 10, 16}
    assert {"1 1", "2 1", "2 2", "10 1"} <= set(result.lines)


def test_limits_of_the_process_are_as_stated():
    script = ("import resource, json\nprint(json.dumps({n: resource.getrlimit(getattr(resource, n)) for n in "
              "('RLIMIT_NOFILE', 'RLIMIT_CORE', 'RLIMIT_MEMLOCK', 'RLIMIT_MSGQUEUE', 'RLIMIT_RTPRIO', "
              "'RLIMIT_NICE')}))")
    assert json.loads(python(script).out) == {
        "RLIMIT_NOFILE": [1024, 1024], "RLIMIT_CORE": [0, 0], "RLIMIT_MEMLOCK": [65536, 65536],
        "RLIMIT_MSGQUEUE": [0, 0], "RLIMIT_RTPRIO": [0, 0], "RLIMIT_NICE": [0, 0]}
