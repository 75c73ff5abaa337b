"""Fixtures of the escape tests. Running gabion, and the check that nothing was left behind, are those of the
integration tests."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

import harness  # noqa: E402 (the path above is needed first)


def pytest_configure():
    if not os.access(harness.GABION, os.X_OK):
        pytest.exit(f"{harness.GABION} is missing: build first, or set GABION", returncode=2)
    harness.become_subreaper()


def pytest_collection_modifyitems(items):
    for item in items:
        if os.geteuid() != 0 and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="needs root: the attacks are made on what root could lose"))


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before, known = harness.mounts(), set(harness.descendants(os.getpid()))
    old = set(harness.leftovers(before, known))  # somebody else's, or an earlier test's, who was told
    yield
    if set(harness.leftovers(before, known)) <= old:
        return
    found = [thing for thing in harness.wait_clean(before, known) if thing not in old]
    if found:
        harness.kill_all(found, known)
        pytest.fail("left behind: " + ", ".join(found))


@pytest.fixture
def shared(tmp_path):
    """A directory of the host that a test mounts into its sandbox."""
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def attack(tmp_path_factory):
    """Compiles test/escape/attacks/NAME.c once, static, and returns the flags that mount the folder of programs."""
    folder = tmp_path_factory.mktemp("attacks")

    def build(name):
        program = folder / name
        if not program.exists():
            source = HERE / "attacks" / f"{name}.c"
            subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-static",
                            "-pthread", "-o", str(program), str(source)], check=True)
        return program, ("-v", f"{folder}:/mnt/attacks:ro"), f"/mnt/attacks/{name}"

    return build
