"""Holes that other sandboxes and container engines had: each test repeats the technique and expects it to fail here."""
import fcntl
import hashlib
import os
import pathlib
import pty
import socket
import struct
import subprocess
import termios

import pytest
from harness import GABION, run, sh
from inside import USERS, inside

NEWUSER, NEWCGROUP, NEWNS, NEWNET = 0x10000000, 0x02000000, 0x00020000, 0x40000000
MOUNT_CALLS = {"mount": "EPERM", "umount2": "EPERM", "pivot_root": "EPERM", "chroot": "EPERM", "fsopen": "EPERM",
               "fsmount": "EPERM", "fspick": "EPERM", "fsconfig": "EPERM", "open_tree": "EPERM", "move_mount": "EPERM",
               "mount_setattr": "EPERM", "open_tree_attr": "EPERM", "statmount": "ENOSYS", "listmount": "ENOSYS"}


@pytest.fixture
def host_directory(tmp_path):
    """A descriptor of a host directory that gabion inherits, and the secret in it."""
    (tmp_path / "secret").write_text("host-secret")
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(fd, True)
    yield fd, tmp_path
    os.close(fd)


def test_cve_2024_21626_no_descriptor_leads_out(host_directory, tmp_path):
    """runc left a descriptor of the host's cgroup directory open in the container's first process."""
    fd, folder = host_directory
    report = inside("""
fds = sorted(int(n) for n in os.listdir("/proc/self/fd"))
reached = []
for n in range(0, 256):
    for path in ("secret", "etc/shadow", "../etc/shadow"):
        if opened(f"/proc/self/fd/{n}/{path}", os.O_RDONLY) == "worked":
            reached.append([n, path])
tell({"fds": fds, "cwd": os.getcwd(), "reached": reached})
""", folder=tmp_path, pass_fds=[fd], cwd=folder)
    assert report["fds"] == [0, 1, 2, 3]  # 3: the listing itself
    assert report["cwd"] == "/home/user"
    assert report["reached"] == []


def test_cve_2024_21626_working_directory_through_a_descriptor(host_directory, shared):
    """The same hole by `-w /proc/self/fd/N`, asked for by an image; here also through a link that a mount brings."""
    fd, folder = host_directory
    for n in range(3, 24):
        (shared / f"link{n}").symlink_to(f"/proc/self/fd/{n}")
    (shared / "pid1").symlink_to("/proc/1/cwd")
    wanted = [f"/proc/self/fd/{n}" for n in range(0, 24)] + [f"/mnt/d/link{n}" for n in range(3, 24)]
    for path in [*wanted, "/proc/1/root", "/proc/1/cwd", "/mnt/d/pid1"]:
        result = run("-v", f"{shared}:/mnt/d", "-w", path, "--", "/bin/sh", "-c", "pwd; cat secret ../*/secret",
                     pass_fds=[fd], cwd=folder)
        assert result.code == 125, (path, result)
        assert result.err.startswith("gabion: working directory (-w): "), path
        assert result.out == "", path


def test_cve_2019_5736_the_runtime_cannot_be_overwritten(tmp_path):
    """runc's own binary was written through /proc/PID/exe of a process it had just started inside."""
    before = hashlib.sha256(pathlib.Path(GABION).read_bytes()).digest()
    for user in USERS:
        report = inside("""
found = {}
for pid in ["1", "self"]:
    for flag, name in ((os.O_RDONLY, "read"), (os.O_WRONLY, "write"), (os.O_RDWR | os.O_TRUNC, "both"),
                       (os.O_PATH, "path")):
        found[f"{pid} {name}"] = opened(f"/proc/{pid}/exe", flag)
tell(found)
""", "--user", user, folder=tmp_path)
        assert {report[f"1 {way}"] for way in ("read", "write", "both", "path")} == {"EACCES"}, user
        assert report["self read"] == "worked"  # the attack itself is sound
        assert report["self write"] in ("EROFS", "EACCES", "ETXTBSY"), user
    assert hashlib.sha256(pathlib.Path(GABION).read_bytes()).digest() == before


def test_cve_2019_5736_an_entry_point_that_names_the_runtime(shared, tmp_path):
    """`#!/proc/self/exe` makes the runtime start itself inside. What it starts here is a sealed copy of the agent,
    without any of its descriptors: it ends at once, and whoever waits for it cannot write it."""
    before = hashlib.sha256(pathlib.Path(GABION).read_bytes()).digest()
    entry = shared / "entry"
    entry.write_text("#!/proc/self/exe\n")
    entry.chmod(0o755)
    for user in USERS:
        result = run("--user", user, "-v", f"{shared}:/mnt/d", "--", "/mnt/d/entry")
        assert result.code not in (0, 125), result
        assert result.out == ""
        report = inside("""
opens = {}
for i in range(30):
    pid = os.posix_spawn("/mnt/d/entry", ["entry"], {})
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        for flag in (os.O_WRONLY, os.O_RDWR):
            for who in os.listdir("/proc"):
                if who.isdigit() and int(who) != os.getpid():
                    answer = opened(f"/proc/{who}/exe", flag)
                    opens[answer] = opens.get(answer, 0) + 1
tell(opens)
""", "--user", user, "-v", f"{shared}:/mnt/d", folder=tmp_path)
        assert "worked" not in report.found, report.found
    assert hashlib.sha256(pathlib.Path(GABION).read_bytes()).digest() == before


@pytest.mark.parametrize("user", USERS)
def test_cve_2022_0492_release_agent(user, tmp_path):
    """A cgroup v1 hierarchy that can be mounted or written names a program that the host's root starts."""
    report = inside(f"""
names = ("release_agent", "notify_on_release", "cgroup.procs", "tasks", "devices.allow")
seen = [os.path.join(at, f) for at, _, files in os.walk("/", followlinks=False) for f in files if f in names
        and not at.startswith("/usr/")]
tell({{"mount": call("mount", b"none", b"/tmp", b"cgroup", 0, b"rdma"), "seen": seen,
      "mount2": call("mount", b"none", b"/tmp", b"cgroup2", 0, 0),
      "unshare": call("unshare", {NEWUSER | NEWCGROUP | NEWNS}), "sys": os.path.exists("/sys/fs/cgroup")}})
""", "--user", user, folder=tmp_path)
    assert report.found == {"mount": "EPERM", "mount2": "EPERM", "seen": [], "unshare": "EPERM", "sys": False}
    assert {"mount", "unshare"} <= report.denied


class Terminal:
    """A terminal of the caller, with gabion as the leader of its session."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        mode = termios.tcgetattr(self.slave)
        mode[3] &= ~(termios.ICANON | termios.ECHO)  # so that a pushed character can be counted
        termios.tcsetattr(self.slave, termios.TCSANOW, mode)

    def run(self, *words):
        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        p = subprocess.Popen([GABION, "run", *words], stdin=self.slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             preexec_fn=lead)
        return p

    def typed(self):
        """Characters waiting to be read by the caller's shell."""
        return struct.unpack("i", fcntl.ioctl(self.slave, termios.FIONREAD, b"\0" * 4))[0]

    def close(self):
        os.close(self.master)
        os.close(self.slave)


PUSH = """
import errno, fcntl, json, os, termios
def push(fd):
    found = []
    for request, arg in ((termios.TIOCSTI, b"X"), (0x541C, b"\\x03")):
        try:
            fcntl.ioctl(fd, request, arg)
            found.append("worked")
        except OSError as e:
            found.append(errno.errorcode[e.errno])
    return found
try:
    tty = push(os.open("/dev/tty", os.O_RDWR))
except OSError as e:
    tty = errno.errorcode[e.errno]
print(json.dumps({"isatty": os.isatty(0), "stdin": push(0), "tty": tty}))
"""


@pytest.mark.parametrize("flags", [(), ("-t",)])
def test_cve_2017_5226_nothing_is_typed_into_the_callers_terminal(flags):
    """TIOCSTI on an inherited terminal types a command that the caller's shell runs after the sandbox is gone."""
    terminal = Terminal()
    try:
        with terminal.run(*flags, "--", "/usr/bin/python3", "-c", PUSH) as p:
            out, err = p.communicate(timeout=20)
        assert p.returncode == 0, (out, err)
        assert terminal.typed() == 0
        if flags:
            assert b'"isatty": true, "stdin": ["ENOTTY", "ENOTTY"], "tty": ["ENOTTY", "ENOTTY"]' in out, out
        else:
            assert b'"isatty": false, "stdin": ["ENOTTY", "ENOTTY"], "tty": "ENXIO"' in out, out
    finally:
        terminal.close()


def test_cve_2019_10063_upper_halves_of_arguments_are_ignored(tmp_path):
    """The kernel reads 32 bits of a request or a family; a filter that compares 64 lets TIOCSTI | 1 << 32 pass."""
    report = inside(f"""
high = [1 << 32, 0xffffffff << 32, 1 << 63]
s = ctypes.c_ulong
def each(name, build):
    return sorted({{call(name, *build(bits)) for bits in [0, *high]}}, key=str)
def made(answer):
    if isinstance(answer, int):
        os.close(answer)
        return "worked"
    return answer
tell({{
    "TIOCSTI": each("ioctl", lambda b: (0, s({termios.TIOCSTI} | b), b"X")),
    "TIOCLINUX": each("ioctl", lambda b: (0, s(0x541C | b), b"\\x03")),
    "vsock": each("socket", lambda b: (s(40 | b), s(1 | b), s(b))),
    "packet": each("socket", lambda b: (s(17 | b), s(3 | b), s(b))),
    "raw": each("socket", lambda b: (s(2 | b), s(3 | b), s(1 | b))),
    "unshare": each("unshare", lambda b: (s({NEWUSER} | b),)),
    "device": each("mknodat", lambda b: (-100, b"/tmp/node", s(0o020666 | b), s(0x103))),
    "inet": sorted({{made(call("socket", s(2 | b), s(1 | b), s(b))) for b in [0, *high]}}),
}})
""", folder=tmp_path)
    assert report.found == {"TIOCSTI": ["ENOTTY"], "TIOCLINUX": ["ENOTTY"], "vsock": ["EAFNOSUPPORT"],
                            "packet": ["EAFNOSUPPORT"], "raw": ["EPERM"], "unshare": ["EPERM"], "device": ["EPERM"],
                            "inet": ["worked"]}


def test_cve_2020_15257_abstract_socket_of_the_host(tmp_path):
    """containerd's shim listened on an abstract address of the host's network namespace."""
    name = f"gabion-escape-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as stream, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram:
        stream.bind(f"\0{name}")
        stream.listen(4)
        stream.setblocking(False)
        datagram.bind(f"\0{name}-d")
        datagram.setblocking(False)
        with socket.socket(socket.AF_UNIX) as probe:  # the server really answers
            probe.connect(f"\0{name}")
            stream.accept()[0].close()
        for user in USERS:
            report = inside(f"""
s, d = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
tell({{"stream": tried(s.connect, "\\0{name}"), "datagram": tried(d.sendto, b"x", "\\0{name}-d"),
      "listed": "{name}" in open("/proc/net/unix").read()}})
""", "--user", user, folder=tmp_path)
            assert report.found == {"stream": "ECONNREFUSED", "datagram": "ECONNREFUSED", "listed": False}
        with pytest.raises(BlockingIOError):
            stream.accept()
        with pytest.raises(BlockingIOError):
            datagram.recv(1)


@pytest.mark.parametrize("user", USERS)
def test_cve_2021_41133_every_way_to_change_mounts(user, tmp_path):
    """Flatpak refused mount() and forgot the calls that came later."""
    report = inside(f"tell({{name: call(name, -1, -1, -1, -1, -1) for name in {sorted(MOUNT_CALLS)!r}}})",
                    "--user", user, folder=tmp_path)
    assert report.found == MOUNT_CALLS
    reported = {name for name, answer in MOUNT_CALLS.items() if answer == "EPERM"} - {"fsconfig"}
    assert reported <= report.denied


@pytest.mark.parametrize("user", USERS)
def test_cve_2022_0185_fsopen_in_a_user_namespace(user, tmp_path):
    """A heap overflow in fsconfig(), reachable by whoever can make a user namespace."""
    report = inside(f"""
def clone(flags):
    got = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if got == 0:
        os._exit(0)
    return got
tell({{"unshare": call("unshare", {NEWUSER | NEWNS}), "clone": clone({NEWUSER}),
      "clone3": call("clone3", b"\\0" * 88, 88), "fsopen": call("fsopen", b"ext4", 0),
      "setns": call("setns", os.open("/proc/self/ns/user", os.O_RDONLY), {NEWUSER}),
      "fsconfig": call("fsconfig", 0, 1, b"\\0", b"A" * 4095, 0)}})
""", "--user", user, folder=tmp_path)
    assert report.found == {"unshare": "EPERM", "clone": "EPERM", "clone3": "ENOSYS", "setns": "EPERM",
                            "fsopen": "EPERM", "fsconfig": "EPERM"}
    assert {"unshare", "clone", "setns", "fsopen"} <= report.denied
    assert sh("unshare -Ur true || unshare -n true || unshare -m true", "--user", user).code != 0


@pytest.mark.parametrize("user", USERS)
def test_shocker_open_by_handle(user, shared, tmp_path):
    """open_by_handle_at() opens any file of a mounted file system by its number: docker's host /etc/shadow, 2014."""
    (shared / "file").write_text("x")
    report = inside("""
# The handle of the root directory of ext4 and xfs: inode 2, length 8, type 1.
handle = struct.pack("IiIQ", 8, 1, 2, 0)
answers = {}
for path in ("/mnt/d", "/usr", "/etc/ssl/certs", "/"):
    fd = os.open(path, os.O_RDONLY)
    answers[path] = call("open_by_handle_at", fd, handle, 0)
answers["name"] = call("name_to_handle_at", -100, b"/mnt/d/file", b"\\x80" + b"\\0" * 200, b"\\0" * 8, 0)
tell(answers)
""", "--user", user, "-v", f"{shared}:/mnt/d", folder=tmp_path)
    assert set(report.found.values()) == {"EPERM"}
    assert "open_by_handle_at" in report.denied
