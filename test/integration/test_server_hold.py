"""A command is prepared while the notary is asked; nothing of it runs, and nobody hears of it, before the record is there."""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import signal
import struct
import threading
import time

import pytest
import server as server_module
from audit_log import assert_whole, find
from harness import descendants, until
from server_audit import Box, agent_of, log_of, tenant_of

MARK = "/tmp/ran"
LEAVE_MARK = "/bin/sh", "-c", f": >{MARK}"


class Held:
    """A start that waits, because the notary stands still."""

    def __init__(self, server):
        self.server, self.operator = server, server.client()
        self.box = Box(self.operator)
        assert self.box.run("true") == 0
        self.agent = agent_of(server, self.operator, self.box)
        assert until(lambda: len(descendants(self.agent)) == 1)  # the launcher
        self.notary = server.pid_of("gabion-notary")
        os.kill(self.notary, signal.SIGSTOP)

    def ask(self, *words, waiting=1, headers=None):
        """The connection, once so many children wait."""
        body = json.dumps({"process": {"cmd": words[0], "args": words[1:]}, "stdin": False}).encode()
        c = http.client.HTTPConnection(*self.server.address, timeout=20)
        c.request("POST", "/process.Process/Start", struct.pack(">BI", 0, len(body)) + body,
                  {**self.box.headers(), "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1",
                   **(headers or {})})
        assert until(lambda: len(descendants(self.agent)) == 1 + waiting)
        return contextlib.closing(c)

    def has_run(self):
        return pathlib.Path(f"/proc/{self.agent}/root{MARK}").exists()

    def is_over(self):
        return len(descendants(self.agent)) == 1

    def go_on(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.notary, signal.SIGCONT)


@pytest.fixture
def held(place):
    with server_module.Server(place) as server:
        h = Held(server)
        try:
            yield h
        finally:
            h.go_on()


def test_nothing_runs_and_nothing_is_told_before_the_record(held):
    with held.ask(*LEAVE_MARK) as c:
        told = []
        reader = threading.Thread(target=lambda: told.append(c.getresponse().read()))
        reader.start()
        time.sleep(0.3)
        assert not told and not held.has_run() and not held.is_over()
        held.go_on()
        reader.join(20)
    assert b'"pid"' in told[0] and b'"exitCode":0' in told[0], told
    assert held.has_run() and held.is_over()
    log, tenant = log_of(held.server), tenant_of(held.server, held.operator)
    assert len(find(log, "exec.started", tenant)) == 2
    assert_whole(log)


def test_a_daemon_that_dies_meanwhile_leaves_no_process(held):
    with held.ask(*LEAVE_MARK):
        os.kill(held.server.pid_of("gabiond"), signal.SIGKILL)
        assert until(held.is_over)
    held.go_on()
    held.server.wait_up()
    assert until(lambda: held.operator.get(f"/sandboxes/{held.box.id}").status == 200, 10)
    assert held.box.run("true") == 0 and not held.has_run()


def test_a_client_that_leaves_or_whose_time_is_over_has_started_nothing(held):
    with held.ask(*LEAVE_MARK):
        pass
    assert until(held.is_over)
    with held.ask(*LEAVE_MARK, headers={"Connect-Timeout-Ms": "300"}) as c:
        assert b"deadline_exceeded" in c.getresponse().read()
        assert until(held.is_over)
    held.go_on()
    assert held.box.run("true") == 0 and not held.has_run()


def test_what_cannot_be_recorded_does_not_run(held):
    with held.ask(*LEAVE_MARK) as c:
        os.kill(held.notary, signal.SIGKILL)
        assert b"permission_denied" in c.getresponse().read()
    assert until(held.is_over) and not held.has_run()


def test_many_wait_at_once(held):
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(held.ask("/bin/echo", f"number {i}", waiting=i + 1)) for i in range(20)]
        held.go_on()
        for i, c in enumerate(waiting):
            assert base64.b64encode(f"number {i}\n".encode()) in c.getresponse().read()
    assert until(held.is_over)
