"""Reaching processes that are not the command's own: the agent (pid 1), the host's, and the kernel's knobs in /proc."""
import os
import subprocess

import pytest
from harness import run
from inside import USERS, inside

PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
CLOSED_FILES = ["environ", "mem", "maps", "auxv", "stack", "syscall", "pagemap", "smaps", "io", "numa_maps"]
CLOSED_LINKS = ["root", "cwd", "exe", "fd", "fdinfo", "map_files", "ns/mnt", "ns/user", "ns/pid", "ns/net",
                "task/1/root", "task/1/cwd", "task/1/exe", "task/1/fd"]
# Host-wide knobs, each a known way to run a program as the host's root, or to hurt it.
KNOBS = ["sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/kernel/hotplug", "sys/kernel/sysrq", "sysrq-trigger",
         "sys/vm/panic_on_oom", "sys/vm/overcommit_memory", "sys/vm/drop_caches", "sys/fs/file-max",
         "sys/fs/suid_dumpable", "sys/kernel/randomize_va_space", "sys/kernel/ns_last_pid", "sys/kernel/panic",
         "sys/kernel/poweroff_cmd", "sys/kernel/yama/ptrace_scope", "sys/kernel/usermodehelper/bset",
         "sys/fs/binfmt_misc/register",
         "sys/net/ipv4/ip_forward", "sys/user/max_user_namespaces", "sys/kernel/unprivileged_bpf_disabled", "mtrr",
         "scsi/scsi", "irq/default_smp_affinity", "fs/ext4", "kmsg", "kcore", "kpagecount"]
OWN = ["oom_score_adj", "uid_map", "gid_map", "setgroups", "projid_map", "timens_offsets", "mem", "clear_refs",
       "coredump_filter", "loginuid", "attr/current", "attr/exec", "sched", "autogroup", "comm"]


@pytest.fixture
def neighbour():
    """A process of the host, of a user whose number also exists inside."""
    p = subprocess.Popen(["/bin/sleep", "60"], user=1000, group=1000, extra_groups=[])
    yield p.pid
    alive = p.poll() is None
    p.kill()
    p.wait()
    assert alive, "the sandbox killed a process of the host"


@pytest.mark.parametrize("user", USERS)
def test_pid_1_is_closed(user, tmp_path):
    report = inside(f"""
tell({{**{{name: opened("/proc/1/" + name, os.O_RDONLY) for name in {CLOSED_FILES + CLOSED_LINKS!r}}},
      **{{"link " + name: tried(os.readlink, "/proc/1/" + name) for name in ("root", "cwd", "exe", "ns/mnt")}},
      "list fd": tried(os.listdir, "/proc/1/fd"), "list root": tried(os.listdir, "/proc/1/root"),
      "chdir": tried(os.chdir, "/proc/1/root"), "own": opened("/proc/self/environ", os.O_RDONLY)}})
""", "--user", user, folder=tmp_path)
    assert report.found.pop("own") == "worked"
    # Some of these open for everybody and refuse the read: only the ones that may are looked at by reading.
    soft = {name for name, answer in report.found.items() if answer == "worked"}
    assert soft <= {"stack", "syscall", "io", "ns/mnt", "ns/user", "ns/pid", "ns/net"}, soft
    assert {answer for name, answer in report.found.items() if name not in soft} <= {"EACCES", "EPERM"}, report.found
    report = inside(f"""
found = {{}}
for name in {sorted(soft)!r}:
    try:
        found[name] = os.read(os.open("/proc/1/" + name, os.O_RDONLY), 100).decode()
    except OSError as e:
        found[name] = errno.errorcode[e.errno]
tell(found)
""", "--user", user, folder=tmp_path)
    assert set(report.found.values()) <= {"EACCES", "EPERM"}, report.found


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("profile", ["agent", "debug"])
def test_pid_1_cannot_be_traced(user, profile, tmp_path):
    """The filter refuses it; in the debug profile, which allows ptrace of the command's own, the kernel does."""
    report = inside(f"""
vec = struct.pack("QQ", ctypes.addressof(ctypes.create_string_buffer(64)), 64)
far = struct.pack("QQ", 0x400000, 64)
pidfd = os.pidfd_open(1)
tell({{"attach": call("ptrace", {PTRACE_ATTACH}, 1, 0, 0), "seize": call("ptrace", {PTRACE_SEIZE}, 1, 0, 0),
      "read": call("process_vm_readv", 1, vec, 1, far, 1, 0), "write": call("process_vm_writev", 1, vec, 1, far, 1, 0),
      "getfd": call("pidfd_getfd", pidfd, 3, 0), "kcmp": call("kcmp", 1, os.getpid(), 0, 0, 0),
      "madvise": call("process_madvise", pidfd, far, 1, 4, 0)}})
""", "--user", user, "--syscalls", profile, folder=tmp_path)
    assert set(report.found.values()) == {"EPERM"}, report.found
    expected = {"pidfd_getfd"} | ({"ptrace", "process_vm_readv", "process_vm_writev"} if profile == "agent" else set())
    assert expected <= report.denied


@pytest.mark.parametrize("user", USERS)
def test_pid_1_survives_every_signal(user, neighbour, tmp_path):
    """As root inside the command has the agent's own uid there: then only Landlock's scope stands in between."""
    report = inside(f"""
found = {{}}
for n in range(0, 65):
    found[str(n)] = tried(os.kill, 1, n)
pidfd = os.pidfd_open(1)
found["pidfd"] = call("pidfd_send_signal", pidfd, 9, 0, 0)
found["tgkill"] = call("tgkill", 1, 1, 9)
found["tkill"] = call("tkill", 1, 9)
found["queue"] = call("rt_sigqueueinfo", 1, 9, struct.pack("iii", 9, 0, -1) + b"\\0" * 116)
found["host"] = tried(os.kill, {neighbour}, 9)
found["group"] = tried(os.killpg, 1, 9)
tell(found)
""", "--user", user, folder=tmp_path)
    assert report.found.pop("host") == "ESRCH"
    assert report.found.pop("group") in ("EPERM", "ESRCH")
    for name, answer in report.found.items():
        assert answer == "EPERM", name


@pytest.mark.parametrize("user", USERS)
def test_kill_all_stays_inside_and_is_survived_by_the_agent(user, neighbour, tmp_path):
    report = inside("""
pids = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
    pids.append(pid)
answer = tried(os.kill, -1, signal.SIGKILL)
tell({"answer": answer, "ends": [os.WTERMSIG(os.waitpid(pid, 0)[1]) for pid in pids]})
""", "--user", user, folder=tmp_path)
    assert report.found == {"answer": "worked", "ends": [9, 9, 9]}
    # From another process of the sandbox: the command dies of it, and that is what is reported.
    result = run("--user", user, "--", "/usr/bin/python3", "-c",
                 "import os, time\nif os.fork() == 0:\n  os.kill(-1, 9)\n  os._exit(0)\ntime.sleep(60)")
    assert result.code == 137, result


@pytest.mark.parametrize("user", USERS)
def test_knobs_of_the_host_cannot_be_opened_for_writing(user, tmp_path):
    report = inside(f"""
roots = ["/proc/", "/proc/self/root/proc/", "/proc/thread-self/root/proc/", "/proc/self/cwd/../../proc/",
         "/sys/kernel/"]
tell([[root + name, opened(root + name, flag)] for root in roots for name in {KNOBS!r}
      for flag in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC)])
""", "--user", user, folder=tmp_path)
    allowed = {"EROFS", "EACCES", "ENOENT", "EPERM", "EISDIR", "ENOTDIR"}
    assert [row for row in report.found if row[1] not in allowed] == []
    answers = dict(map(tuple, report.found))
    for name in ("sys/kernel/core_pattern", "sys/kernel/randomize_va_space", "sys/vm/overcommit_memory"):
        assert os.path.exists("/proc/" + name)
        assert answers["/proc/" + name] in ("EROFS", "EACCES"), name


@pytest.mark.parametrize("user", USERS)
def test_the_commands_own_knobs_cannot_be_opened_for_writing(user, tmp_path):
    report = inside(f"""
roots = ["/proc/self/", "/proc/thread-self/", "/proc/1/"]
tell([[root + name, opened(root + name, os.O_WRONLY)] for root in roots for name in {OWN!r}])
""", "--user", user, folder=tmp_path)
    assert [row for row in report.found if row[1] not in ("EROFS", "EACCES", "ENOENT", "EPERM")] == []


def test_landlock_stands_behind_modes_and_mounts(tmp_path):
    """A file that modes and mounts let everybody read, and no rule covers."""
    for user in USERS:
        report = inside("""
s = os.stat("/.gabion/probe")
tell({"mode": s.st_mode & 0o777, "read": opened("/.gabion/probe", os.O_RDONLY), "list": tried(os.listdir, "/.gabion"),
      "execute": tried(os.execv, "/proc/self/status", ["x"])})
""", "--user", user, folder=tmp_path)
        assert report.found == {"mode": 0o444, "read": "EACCES", "list": "worked", "execute": "EACCES"}
