"""Driving gabion-egress by its own protocol (docs/protocol/egress.md): network namespaces made as the supervisor makes
them, the control socket, and the records that come back."""
import array
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import pathlib
import random
import selectors
import signal
import socket
import string
import struct
import subprocess
import tempfile
import threading
import time

import harness

EGRESS = os.environ.get("GABION_EGRESS",
                        str(pathlib.Path(harness.GABION).resolve().parent.parent / "egress" / "gabion-egress"))
CONFIG, ADD, UPDATE, REMOVE, PING, READY, OK, FAILED, RECORD = 1, 2, 3, 4, 5, 32, 33, 34, 35
CLONE_NEWNET = 0x40000000
IP_TRANSPARENT, IPV6_TRANSPARENT = 19, 75
LISTENER_PORT = 15001
F_ADD_SEALS, ALL_SEALS = 1033, 0xF
# A sanitizer's leak check needs calls that egress gives up; everything else it does works under the filter.
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=0"}
libc = ctypes.CDLL(None, use_errno=True)

RULES = """
table inet gabion {
  chain pre { type filter hook prerouting priority -150;
    ip daddr { 127.0.0.0/8, 10.200.0.2 } accept
    ip6 daddr { ::1, fd00:6e77::2 } accept
    meta nfproto ipv4 meta l4proto tcp tproxy ip to 127.0.0.1:15001
    meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [::1]:15001
    meta nfproto ipv4 udp dport 53 tproxy ip to 127.53.53.53:53
    meta nfproto ipv6 udp dport 53 tproxy ip6 to [fd00:6e77:1::53]:53
  }
}
"""


def _check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Place:
    """A network namespace without a wire. Clients are run in it; its sockets are handed to egress."""

    def __init__(self):
        self.ns, self.error = None, None
        self._in_thread(self._make)

    def _in_thread(self, fn):
        """The namespace belongs to a thread: one that comes and goes leaves the test where it was."""
        def body():
            try:
                fn()
            except BaseException as e:  # told in the test's own thread
                self.error = e
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if self.error:
            raise self.error

    def _make(self):
        _check(libc.unshare(CLONE_NEWNET))
        for words in ("link set lo up", "addr add 10.200.0.2/32 dev lo", "-6 addr add fd00:6e77::2/128 dev lo nodad",
                      "route add local default dev lo table local src 10.200.0.2",
                      "-6 route add local default dev lo table local"):
            subprocess.run(["ip", *words.split()], check=True)
        subprocess.run(["nft", "-f", "-"], input=RULES, text=True, check=True)
        self.ns = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def enter(self):
        _check(libc.setns(self.ns, CLONE_NEWNET))

    def listeners(self):
        """[tcp, dns4, dns6], new ones."""
        made = []

        def make():
            self.enter()
            tcp = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            tcp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            tcp.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
            tcp.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
            tcp.bind(("::", LISTENER_PORT))
            tcp.listen(1024)
            dns4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            dns4.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
            dns4.bind(("127.53.53.53", 53))
            dns6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            dns6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            dns6.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
            dns6.bind(("fd00:6e77:1::53", 53))
            made.extend((tcp, dns4, dns6))
        self._in_thread(make)
        return made

    def call(self, fn, *args):
        """fn(*args) in a thread inside; sockets that it makes belong here for ever."""
        result = []

        def body():
            self.enter()
            result.append(fn(*args))
        self._in_thread(body)
        return result[0]

    def socket(self, family=socket.AF_INET, kind=socket.SOCK_STREAM, timeout=5):
        s = self.call(socket.socket, family, kind)
        s.settimeout(timeout)
        return s

    def connect(self, address, port, timeout=5):
        s = self.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, timeout=timeout)
        s.connect((address, port))
        return s

    def popen(self, argv, **kw):
        return subprocess.Popen(argv, preexec_fn=self.enter, **kw)

    def close(self):
        os.close(self.ns)


def sealed(text):
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, text.encode())
    import fcntl
    fcntl.fcntl(fd, F_ADD_SEALS, ALL_SEALS)
    return fd


@functools.lru_cache(maxsize=None)
def _effective(text):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        f.write(text)
        f.flush()
        out = subprocess.run([harness.GABION, "policy", "check", "--json", f.name], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


def effective(network):
    """(canonical policy, hash) of a policy with this network part."""
    doc = _effective(json.dumps({"version": 1, "name": "test", "network": network}))
    return doc["effective"], doc["policy"]


def document(network, ceiling=None, resolve=()):
    """network: {"allow": [...]}; resolve: (name, port, address, to_port) each."""
    policy, digest = effective(network)
    return json.dumps({"policy": policy, "ceiling": effective(ceiling)[0] if ceiling else None, "policy_hash": digest,
                       "resolve": [dict(zip(("name", "port", "address", "to_port"), r)) for r in resolve]})


def new_id():
    return "".join(random.choices(string.ascii_lowercase + string.digits, k=20))


class Egress:
    """One gabion-egress. Records are collected in .records as they come."""

    def __init__(self, keep=None, **config):
        self.records, self.answers, self.request = [], {}, 0
        self.keep, self.certificate = keep, None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock = ours
        null = os.open("/dev/null", os.O_RDWR)
        self.errors = tempfile.TemporaryFile()
        fds = {0: null, 1: null, 2: self.errors.fileno(), 3: theirs.fileno()}

        def place():
            high = {at: os.dup2(fd, 100 + at) for at, fd in fds.items()}
            for at, fd in high.items():
                os.dup2(fd, at, inheritable=True)
        self.process = subprocess.Popen([EGRESS], preexec_fn=place, close_fds=False, env=SANITIZER,
                                        start_new_session=True)
        theirs.close()
        os.close(null)
        self.config_failed = None
        given = {"resolv_conf": None, "hosts": None, "upstream_proxy": None, "bind": None, "ca_bundle": None,
                 "open_tls": False, **config}
        fds = [sealed(json.dumps(given))] + ([keep] if keep is not None else [])
        answer = self.ask(CONFIG, b"", fds)
        os.close(fds[0])
        if answer[0] == FAILED:
            self.config_failed = answer[1]
        else:
            assert answer[0] == READY, answer
            self.keep = answer[2][0]
            if len(answer[2]) > 1:
                self.certificate = os.pread(answer[2][1], 65536, 0).decode()
                os.close(answer[2][1])

    def send(self, kind, body=b"", fds=()):
        self.request += 1
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([struct.pack(">HI", kind, self.request) + body], ancillary)
        return self.request

    def receive(self, timeout=5.0):
        """One message; False when none came in time."""
        self.sock.settimeout(timeout)
        try:
            data, ancillary, _, _ = self.sock.recvmsg(4096, socket.CMSG_SPACE(16))
        except (TimeoutError, BlockingIOError):
            return False
        if not data:
            raise EOFError(self.stderr())
        kind, request = struct.unpack(">HI", data[:6])
        fds = array.array("i")
        for _, _, raw in ancillary:
            fds.frombytes(raw)
        if kind == RECORD:
            self.records.append(json.loads(data[6:]))
        else:
            self.answers[request] = (kind, data[8:].decode() if kind == FAILED else data[6:], list(fds))
        return True

    def ask(self, kind, body=b"", fds=()):
        request = self.send(kind, body, fds)
        while request not in self.answers:
            assert self.receive(), f"no answer to request {kind}: {self.stderr()}"
        return self.answers.pop(request)

    @staticmethod
    def _id(sandbox):
        return struct.pack(">H", len(sandbox)) + sandbox.encode()

    def add(self, place, text, sandbox=None):
        """Adds a sandbox and returns its id; a failure is a ValueError with egress's words."""
        sandbox = sandbox or new_id()
        socks, doc = place.listeners(), sealed(text)
        answer = self.ask(ADD, self._id(sandbox), [*(s.fileno() for s in socks), doc])
        for s in socks:
            s.close()
        os.close(doc)
        if answer[0] != OK:
            raise ValueError(answer[1])
        return sandbox

    def update(self, sandbox, text, drop=False):
        doc = sealed(text)
        answer = self.ask(UPDATE, self._id(sandbox) + bytes([drop]), [doc])
        os.close(doc)
        if answer[0] != OK:
            raise ValueError(answer[1])

    def remove(self, sandbox):
        return self.ask(REMOVE, self._id(sandbox))

    def ping(self):
        assert self.ask(PING)[0] == OK

    def find(self, timeout=3.0, **want):
        """The first record with these members; fails when none comes."""
        end = time.monotonic() + timeout
        while True:
            for r in self.records:
                if all(r.get(k) == v for k, v in want.items()):
                    return r
            left = end - time.monotonic()
            if left <= 0 or not self.receive(left):
                raise AssertionError(f"no record with {want} among {self.records}")

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def close(self):
        """Ends it as a supervisor does; returns its exit status."""
        self.sock.close()
        try:
            status = self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        if self.keep is not None:
            with contextlib.suppress(OSError):
                os.close(self.keep)
        return status

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.sock.close()


def query(name, kind=1, ident=0x1234, edns=False):
    labels = b"".join(bytes([len(x)]) + x.encode() for x in name.split(".") if x) + b"\0"
    extra = b"\0\0\x29\x04\xd0\0\0\0\0\0\0" if edns else b""
    return struct.pack(">HHHHHH", ident, 0x0100, 1, 0, 0, 1 if edns else 0) + labels + struct.pack(">HH", kind, 1) + extra


def rcode(reply):
    return reply[3] & 15


def address_of(reply):
    """The address of an answer with one A record, or None."""
    return socket.inet_ntoa(reply[-4:]) if struct.unpack(">H", reply[6:8])[0] == 1 else None


def ask_name(place, name, kind=1, server="8.8.8.8"):
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    s = place.socket(family, socket.SOCK_DGRAM)
    with s:
        s.connect((server, 53))
        s.send(query(name, kind))
        return s.recv(4096)


def resolve(place, name):
    reply = ask_name(place, name)
    assert rcode(reply) == 0, f"rcode {rcode(reply)}"
    return address_of(reply)
