"""What the tests of runs with a network share."""
import json
import pathlib

import egress_world as world
import pytest
from harness import RUN_DIR, find_agent, slot_of, until

NAME = "web.example"
PATIENCE = 20

# Fetches a page for every line of its input, and says how that went.
FETCH = """
import sys, urllib.request
for line in sys.stdin:
    try:
        print(urllib.request.urlopen("http://web.example/", timeout=5).status, flush=True)
    except OSError as e:
        print(type(getattr(e, "reason", e)).__name__, flush=True)
"""


@pytest.fixture
def web():
    server = world.Web()
    yield server
    server.close()


@pytest.fixture
def log(tmp_path):
    return tmp_path / "state/egress.jsonl"


def flags(server, path, *more, name=NAME, port=80):
    return ["--allow", name, "--resolve", f"{name}:{port}=127.0.0.1:{server.port}", "--egress-log", path, *more]


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def fetch(p):
    p.stdin.write(b"\n")
    p.stdin.flush()
    return p.stdout.readline().decode().strip()


def sandbox_id(p):
    """The id of the sandbox of a running gabion, once it can be spoken to."""
    slot = pathlib.Path(RUN_DIR, slot_of(find_agent(p.pid)))
    assert until(slot.with_name(slot.name + ".sock").exists) and p.poll() is None, "the sandbox does not run"
    return slot.read_text()
