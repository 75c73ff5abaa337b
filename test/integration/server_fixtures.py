"""Places and servers for tests; test/e2b uses them too."""
import os
import pathlib
import tempfile

import harness
import pytest
from server import Server


@pytest.fixture(scope="module")
def module_place():
    """A folder that other users may pass, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="gabion-test-") as folder:
        os.chmod(folder, 0o711)
        yield pathlib.Path(folder)


@pytest.fixture
def place():
    """The same for one test."""
    with tempfile.TemporaryDirectory(prefix="gabion-test-") as folder:
        os.chmod(folder, 0o711)
        yield pathlib.Path(folder)


@pytest.fixture(scope="module")
def server(module_place):
    """One `gabion serve` for the tests of a file, without anything left when it ends."""
    before, known = harness.mounts(), set(harness.descendants(os.getpid()))
    with Server(module_place) as running:
        yield running
        assert running.stop() == 0, running.text()[-3000:]
    found = harness.wait_clean(before, known)
    if found:
        harness.kill_all(found, known)
        pytest.fail("left behind: " + ", ".join(found))
