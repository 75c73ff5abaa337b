"""Logs and notaries for the tests of the audit log."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess

import harness

NOTARY = os.environ.get("GABION_NOTARY", str(pathlib.Path(harness.GABION).parent.parent / "notary/gabion-notary"))
LOAD = os.environ.get("GABION_LOAD", str(pathlib.Path(harness.GABION).parent.parent.parent / "bench/notary-load"))


def records(log, tenant="local"):
    """All records of a chain, as documents."""
    return [json.loads(line) for file in sorted(pathlib.Path(log, tenant).glob("*.log"))
            for line in file.read_text().splitlines()]


def codes(log, tenant="local"):
    return [r["metadata"]["event_code"] for r in records(log, tenant)]


def find(log, code, tenant="local"):
    return [r for r in records(log, tenant) if r["metadata"]["event_code"] == code]


def fields(record):
    return record["unmapped"]["fields"]


def audit(*words, **kw):
    return harness.gabion("audit", *words, **kw)


def verify(log, *words):
    return audit("verify", "--log", log, *words)


def assert_whole(log, *words):
    r = verify(log, *words)
    assert r.code == 0, r
    return r


@contextlib.contextmanager
def notary(log, socket, *words, wait=True):
    """A running gabion-notary; ended by SIGTERM (or whatever the test did to it)."""
    with subprocess.Popen([NOTARY, "--log", str(log), "--socket", str(socket), *map(str, words)],
                          stderr=subprocess.PIPE) as p:
        try:
            if wait:
                line = p.stderr.readline().decode()
                assert "ready" in line, line + p.stderr.read().decode()
            yield p
        finally:
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
            p.wait(timeout=20)
