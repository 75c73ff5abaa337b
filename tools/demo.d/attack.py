"""What a hostile script would try, one line each: "stopped" or "reached", what, how it ended (tabs between).
usage: attack.py HOME SECRET-FILE, both as they are called on the host"""
import ctypes
import os
import platform
import socket
import sys

HOME, SECRET = sys.argv[1:3]
X86 = platform.machine() == "x86_64"
LIBC = ctypes.CDLL(None, use_errno=True)


def read(path):
    return lambda: open(path, "rb").read(64)


def listing(path):
    return lambda: os.listdir(path)


def call(x86, arm, *args):
    """A raw system call: no library in between that could refuse by itself."""
    def go():
        if LIBC.syscall(x86 if X86 else arm, *args) < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    return go


def home():
    if not os.listdir(HOME):  # a caller whose home is called /home/user, as the sandbox's is
        raise OSError(0, "it is the sandbox's own, and empty")


def token():
    if "GABION_DEMO_TOKEN" not in os.environ:
        raise OSError(0, "the variable is not set")


def become_root():
    os.setuid(0)


def other_processes():
    others = [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]
    if not others:
        raise OSError(0, "only this script and its init are there")


ATTEMPTS = [
    ("read /etc/shadow", read("/etc/shadow")),
    (f"list the caller's home, {HOME}", home),
    ("read /root/.ssh", listing("/root/.ssh")),
    ("read a secret file of the caller", read(SECRET)),
    ("find a token in the environment", token),
    ("read /proc/1/environ", read("/proc/1/environ")),
    ("see processes of the host", other_processes),
    ("write to /usr/bin", lambda: open("/usr/bin/ls", "r+b")),
    ("connect to 192.0.2.1, port 443", lambda: socket.create_connection(("192.0.2.1", 443), 3)),
    ("look up example.com", lambda: socket.getaddrinfo("example.com", 443)),
    ("become root", become_root),
    ("make a device node", lambda: os.mknod("/tmp/disk", 0o60666, os.makedev(8, 0))),
    ("mount a file system", call(165, 40, b"none", b"/tmp", b"tmpfs", 0, 0)),
    ("make a user namespace", call(272, 97, 0x10000000)),
    ("load a kernel module", call(175, 105, 0, 0, b"")),
    ("load a BPF program", call(321, 280, 5, 0, 0)),
    ("read another process's memory", call(310, 270, 1, 0, 0, 0, 0, 0)),
    ("trace another process", call(101, 117, 16, 1, 0, 0)),
]

reached = 0
for what, attempt in ATTEMPTS:
    try:
        attempt()
        print("reached", what, "it worked", sep="\t")
        reached += 1
    except OSError as why:
        print("stopped", what, why.strerror or why, sep="\t")
sys.exit(min(reached, 100))
