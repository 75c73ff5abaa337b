"""The harness of the integration tests serves these too."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

import harness  # noqa: E402
from server_fixtures import module_place, server  # noqa: E402, F401


def pytest_configure():
    if not os.access(harness.GABION, os.X_OK):
        pytest.exit(f"{harness.GABION} is missing: build first, or set GABION", returncode=2)
    harness.become_subreaper()


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="needs root: gabion serve"))
