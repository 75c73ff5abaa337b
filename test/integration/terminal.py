"""A program under a pseudo-terminal, as a person would see it."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pytest


class Terminal:
    """Types, and looks at what comes."""

    def __init__(self, argv, rows=30, columns=100, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, {**os.environ, **(env or {})})
        self.before = termios.tcgetattr(self.fd)
        self.resize(rows, columns)
        self.seen = b""
        self.code = None

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, text, seconds=5):
        """Reads until the text was seen; what came before it is dropped."""
        end = time.monotonic() + seconds
        want = text.encode()
        while want not in self.seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                pytest.fail(f"no {text!r} in {self.seen!r}")
            try:
                more = os.read(self.fd, 65536)
            except OSError:
                more = b""
            if not more:
                pytest.fail(f"the end before {text!r}: {self.seen!r}")
            self.seen += more
        self.seen = self.seen[self.seen.index(want) + len(want):]

    def wait(self, seconds=5):
        end = time.monotonic() + seconds
        while self.code is None and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.01)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        assert self.code is not None, f"no end: {self.seen!r}"
        return self.code

    def close(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
