"""Starting gabion-warden and speaking to it: the messages of src/ipc and src/wardenproto, as far as tests need them."""
import collections
import fcntl
import json
import os
import pathlib
import secrets
import select
import shutil
import signal
import socket
import string
import struct
import subprocess
import tempfile
import threading
import time

import harness

WARDEN = os.environ.get("GABION_WARDEN", str(pathlib.Path(harness.GABION).parent.parent / "warden/gabion-warden"))
(CREATE, KILL, FREEZE, THAW, USAGE, LIST, EVIDENCE, SUBSCRIBE, LAUNCH, POOL, STATUS) = range(1, 12)
STATEMENT, CHECK = 20, 21
ANY, POOL_ONLY, COLD_ONLY = range(3)
MAKING, POOLED, RUNNING, FROZEN, ENDING = range(5)
KILLED, OOM, LOST = range(3)
ENDED, DENIED = range(2)
SEALS = 0x1 | 0x2 | 0x4 | 0x8  # SEAL SHRINK GROW WRITE
DEFAULT = {"version": 1}
AGENT_NAMES = ("gabion-agent", "6", "8", "memfd:gabion-ag")  # a sealed file's, or its number, depending on the kernel

Created = collections.namedtuple("Created", "id from_pool slot pid took_us socket policy evidence plan")
Listed = collections.namedtuple("Listed", "id tenant state slot pid created_ms")
End = collections.namedtuple("End", "reason memory_peak cpu_us oom_kills")
Event = collections.namedtuple("Event", "kind id tenant end text suppressed")
Usage = collections.namedtuple("Usage", "memory cache peak memory_limit cpu_us tasks oom_kills pids_refused disk disk_limit")
Status = collections.namedtuple("Status", "running making queued pooled pool_wanted ending")


class WardenError(Exception):
    def __init__(self, kind, code, message):
        super().__init__(message)
        self.kind, self.code = kind, code


class Gone(Exception):
    """The warden closed the connection, or is not there."""


def new_id():
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(20))


def put(s):
    return struct.pack(">H", len(s)) + s.encode()


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, form):
        n = struct.calcsize(">" + form)
        values, self.data = struct.unpack(">" + form, self.data[:n]), self.data[n:]
        return values if len(values) > 1 else values[0]

    def str(self):
        n = self.take("H")
        s, self.data = self.data[:n], self.data[n:]
        return s.decode()


def blob(data):
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, 1033, SEALS)  # F_ADD_SEALS
    return fd


class Client:
    def __init__(self, run):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.sock.connect(f"{run}/warden.sock")
        except OSError as e:
            self.sock.close()
            raise Gone from e
        self.serial, self.fds = 0, []

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, kind, body=b"", fds=()):
        self.serial += 1
        try:
            socket.send_fds(self.sock, [struct.pack(">HI", kind, self.serial) + body], list(fds))
        except OSError as e:
            raise Gone from e
        finally:
            for fd in fds:
                os.close(fd)
        return self.serial

    def receive(self, timeout=20):
        """(serial, body) of the next reply."""
        if not select.select([self.sock], [], [], timeout)[0]:
            raise TimeoutError
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, 8192, 4)
        except OSError as e:
            raise Gone from e
        self.fds += fds
        if not data:
            raise Gone
        status, serial = struct.unpack(">HI", data[:6])
        if status:
            r = Reader(data[6:])
            raise WardenError(status - 1, r.take("I"), r.str())
        return serial, data[6:]

    def call(self, kind, body=b"", fds=(), timeout=20):
        serial = self.send(kind, body, fds)
        got, reply = self.receive(timeout)
        assert got == serial
        return reply

    def ask_create(self, ident, policy=None, env=None, tenant="t1", hostname="", source=ANY):
        env = b"".join(f"{k}={v}\0".encode() for k, v in (env or {}).items())
        return self.send(CREATE, put(ident) + put(tenant) + put(hostname) + bytes([source]),
                         [blob(json.dumps(policy or DEFAULT).encode()), blob(env)])

    @staticmethod
    def created(ident, body):
        r = Reader(body)
        return Created(ident, bool(r.take("B")), *r.take("IIQ"), r.str(), r.str(), r.str(), r.str())

    def create(self, policy=None, ident=None, **kw):
        ident = ident or new_id()
        self.ask_create(ident, policy, **kw)
        return self.created(ident, self.receive()[1])

    def kill(self, ident):
        return End(*Reader(self.call(KILL, put(ident))).take("BQQQ"))

    def freeze(self, ident):
        self.call(FREEZE, put(ident))

    def thaw(self, ident):
        self.call(THAW, put(ident))

    def usage(self, ident):
        return Usage(*Reader(self.call(USAGE, put(ident))).take("10Q"))

    def launch(self, ident, uid):
        self.call(LAUNCH, put(ident) + struct.pack(">I", uid))

    def evidence(self, ident):
        self.call(EVIDENCE, put(ident))
        with os.fdopen(self.fds.pop()) as f:
            f.seek(0)
            return f.read()

    def statement(self, ident):
        """Hashes of evidence and plan, and all that is said of it."""
        r = Reader(self.call(STATEMENT, put(ident)))
        with os.fdopen(self.fds.pop()) as f:
            f.seek(0)
            return r.str(), r.str(), json.load(f)

    def list(self):
        found, first = {}, 0
        while True:
            r = Reader(self.call(LIST, struct.pack(">I", first)))
            for _ in range(r.take("H")):
                one = Listed(r.str(), r.str(), *r.take("BIIQ"))
                found[one.id] = one
            first = r.take("I")
            if first == 0:
                return found

    def pool(self, wanted, policy=None):
        self.call(POOL, struct.pack(">I", wanted), [blob(json.dumps(policy or DEFAULT).encode())])

    def status(self):
        return Status(*Reader(self.call(STATUS)).take("6I"))

    def subscribe(self):
        self.send(SUBSCRIBE)

    def event(self, timeout=5):
        r = Reader(self.receive(timeout)[1])
        kind, ident, tenant = r.take("B"), r.str(), r.str()
        if kind == ENDED:
            return Event(kind, ident, tenant, End(*r.take("BQQQ")), "", 0)
        return Event(kind, ident, tenant, None, r.str(), r.take("I"))


class Warden:
    """A warden with a directory of its own. Everything of it is ended at the end of the block."""

    def __init__(self, uid=0):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))  # a short name: sockets lie below it
        self.folder.chmod(0o711)
        self.run, self.uid, self.process, self.log = str(self.folder / "run"), uid, None, self.folder / "log"
        harness.RUNS.add(self.run)
        self.over, self.reaper = threading.Event(), threading.Thread(target=self.reap, daemon=True)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([WARDEN, "--run", self.run, "--uid", str(self.uid)], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:  # a child of the one before may hold its listener for a moment: only an answer counts
                with self.client() as c:
                    return c.status()
            except Gone:
                assert self.process.poll() is None, self.log.read_text()
                time.sleep(0.005)
        raise TimeoutError(self.log.read_text())

    def client(self):
        return Client(self.run)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)

    def end_all(self):
        """Ends every sandbox of this directory; no warden may run there."""
        subprocess.run([WARDEN, "--run", self.run, "--end-all"], check=True, timeout=60)

    def reap(self):
        """Agents whose warden was killed become children of the test, as of any reaper, which has to reap them."""
        while not self.over.wait(0.02):
            for pid, (parent, name, state) in harness.parents().items():
                if parent == os.getpid() and state == "Z" and name in AGENT_NAMES:
                    os.waitpid(pid, os.WNOHANG)

    def __enter__(self):
        self.reaper.start()
        self.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        try:
            self.end_all()
        finally:
            self.over.set()
            self.reaper.join()
        shutil.rmtree(self.folder)
