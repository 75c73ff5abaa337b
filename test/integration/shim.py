"""Speaking to the agent of a sandbox that lives on: the frames of src/agentproto, as far as tests need them."""
import collections
import os
import select
import socket
import struct
import time

(STDIN, STDIN_EOF, SIGNAL, RESIZE, CREDIT) = (3, 4, 5, 6, 7)
(START, LIST, ATTACH, DETACH, FILES, PORT) = (9, 10, 11, 12, 13, 14)
(STAT, LIST_DIR, MKDIR, MOVE, REMOVE, READ, WRITE, DATA, DATA_END) = range(16, 25)
(OUTPUT, EXITED, STDIN_CREDIT, ERROR, RUNNING, COMMAND, GAP, DETACHED, DONE, ENTRY) = range(33, 43)
EXEC_FAILED = 65
OF_COMMANDS = (OUTPUT, EXITED, STDIN_CREDIT, GAP, EXEC_FAILED)
ALL = 0xffffffff
NOW = 2**64 - 1
USER, ROOT = 1000, 0

Frame = collections.namedtuple("Frame", "type id body")
Result = collections.namedtuple("Result", "code signal out err lost")


class AgentError(Exception):
    def __init__(self, code, step):
        super().__init__(f"{step}: {os.strerror(code)}")
        self.code, self.step = code, step


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack(">I", len(s)) + s + b"\0"


def string(s):
    return struct.pack(">H", len(s)) + s.encode()


class Agent:
    """One connection to the agent's socket."""

    def __init__(self, path, timeout=10):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.timeout, self.buffer, self.request = timeout, b"", 0
        self.put_by = []  # frames about commands that came while something else was waited for

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, kind, ident, body=b""):
        self.sock.sendall(struct.pack(">IHI", len(body) + 6, kind, ident) + body)

    def next(self, timeout=None):
        """The next frame. TimeoutError if none comes, EOFError if the connection ended."""
        until = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            if len(self.buffer) >= 10:
                length, kind, ident = struct.unpack(">IHI", self.buffer[:10])
                if len(self.buffer) >= length + 4:
                    body, self.buffer = self.buffer[10:length + 4], self.buffer[length + 4:]
                    return Frame(kind, ident, body)
            if not select.select([self.sock], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError
            data = self.sock.recv(1 << 18)
            if not data:
                raise EOFError
            self.buffer += data

    def expect(self, *kinds):
        for i, frame in enumerate(self.put_by):
            if frame.type in kinds:
                return self.put_by.pop(i)
        while (frame := self.next()).type in OF_COMMANDS and frame.type not in kinds:
            self.put_by.append(frame)
        if frame.type == ERROR and ERROR not in kinds:
            code, n = struct.unpack(">IH", frame.body[:6])
            raise AgentError(code, frame.body[6:6 + n].decode())
        assert frame.type in kinds, frame
        return frame

    def start(self, argv, env=(), cwd="/home/user", uid=USER, stdin=False, tty=None, tag="", credit=ALL):
        """(number, pid inside) of a new command."""
        rows, columns = tty or (0, 0)
        flags = (1 if tty else 0) | (0 if stdin or tty else 2)
        self.request += 1
        self.send(START, self.request, struct.pack(">IIIHH", flags, uid, credit, rows, columns) + string(tag) + text(cwd) +
                  struct.pack(">HH", len(argv), len(env)) + b"".join(map(text, [*argv, *env])))
        number, pid, _ = struct.unpack(">IIQ", self.expect(RUNNING).body)
        return number, pid

    def attach(self, number, start=NOW, quiet=False, credit=ALL):
        """(pid, place of the next byte)."""
        self.request += 1
        self.send(ATTACH, self.request, struct.pack(">BBIHQI", 0, int(quiet), number, 0, start, credit))
        _, pid, at = struct.unpack(">IIQ", self.expect(RUNNING).body)
        return pid, at

    def list(self):
        """{number: (pid, has exited, first byte kept, end)}."""
        self.request += 1
        self.send(LIST, self.request)
        found = {}
        while (frame := self.expect(COMMAND, DONE)).type == COMMAND:
            number, pid, _, flags, kept, end = struct.unpack(">IIIBQQ", frame.body[:29])
            found[number] = (pid, bool(flags & 2), kept, end)
        return found

    def finish(self, number):
        out, lost = {1: b"", 2: b""}, 0
        came = [f for f in self.put_by if f.id == number]
        self.put_by = [f for f in self.put_by if f.id != number]
        while True:
            frame = came.pop(0) if came else self.next()
            assert frame.type in OF_COMMANDS, frame
            if frame.id != number:
                self.put_by.append(frame)
            elif frame.type == OUTPUT:
                out[frame.body[0]] += frame.body[1:]
            elif frame.type == GAP:
                lost += struct.unpack(">Q", frame.body)[0]
            elif frame.type == EXITED:
                signalled, code = struct.unpack(">BI", frame.body[:5])
                return Result(None if signalled else code, code if signalled else None, out[1], out[2], lost)

    def run(self, *argv, **kw):
        return self.finish(self.start(argv, **kw)[0])

    def sh(self, script, **kw):
        return self.run("/bin/sh", "-c", script, **kw)

    # --- connections about files ---

    def files(self, uid=USER):
        self.send(FILES, 0, struct.pack(">I", uid))
        return self

    def ask(self, kind, path, other="", flags=0, offset=0, length=0):
        self.request += 1
        self.send(kind, self.request, struct.pack(">IQQ", flags, offset, length) + text(path) + text(other))

    def write(self, path, data):
        self.ask(WRITE, path)
        for at in range(0, len(data), 32768):
            self.send(DATA, self.request, data[at:at + 32768])
        self.send(DATA_END, self.request)
        return self.expect(ENTRY)

    def read(self, path):
        self.ask(READ, path, length=NOW)
        self.expect(ENTRY)
        data = b""
        while (frame := self.expect(DATA, DATA_END)).type == DATA:
            data += frame.body
        return data
