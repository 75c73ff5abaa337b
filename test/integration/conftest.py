"""Fixtures of the integration tests, and the check after every test that nothing was left behind."""
import os
import pathlib
import shutil

import harness
import pytest
from server_fixtures import module_place, place, server  # noqa: F401  pylint: disable=unused-import


def pytest_configure():
    if not os.access(harness.GABION, os.X_OK):
        pytest.exit(f"{harness.GABION} is missing: build first, or set GABION", returncode=2)
    harness.become_subreaper()


def pytest_collection_modifyitems(items):
    if os.geteuid() == 0:
        return
    for item in items:
        item.add_marker(pytest.mark.skip(reason="needs root: control groups and another process's /proc"))


@pytest.fixture(autouse=True)
def nothing_left_behind(request):
    if "server" in request.fixturenames:  # it outlives a test, and looks for itself when it ends
        yield
        return
    before, known = harness.mounts(), set(harness.descendants(os.getpid()))
    yield
    found = harness.wait_clean(before, known)
    if found:
        harness.kill_all(found, known)
        pytest.fail("left behind: " + ", ".join(found))


@pytest.fixture
def shared(tmp_path):
    """A directory of the host that a test mounts into its sandbox. tmp_path lies below /tmp, which may be mounted."""
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.fixture
def canary(tmp_path):
    """A secret that must not turn up inside: (file, text)."""
    text = f"canary-{os.urandom(12).hex()}"
    file = tmp_path / "canary"
    file.write_text(text)
    return file, text


@pytest.fixture
def host_file():
    """Makes files anywhere on the host and removes them at the end."""
    made = []

    def make(path, text):
        path = pathlib.Path(path)
        for parent in [p for p in reversed(path.parents) if not p.exists()]:
            parent.mkdir()
            made.append(parent)
        path.write_text(text)
        made.append(path)
        return path

    yield make
    for path in reversed(made):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def needs(program):
    """Skips loudly when a program that people run inside is not installed below /usr."""
    path = shutil.which(program, path="/usr/local/bin:/usr/bin:/usr/sbin")
    if not path:
        pytest.skip(f"{program} is not installed")
    return path
