"""The Python package `e2b`, unmodified and of its newest version, against `gabion serve`."""
import pathlib
import subprocess

import harness
import pytest
from test_sdk import INSTALL_S, RUN_S, variables

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def interpreter():
    """Python with the package, kept between runs in the build folder."""
    folder = pathlib.Path(harness.GABION).parents[2] / "e2b-python"
    python = folder / "bin/python3"
    if not python.exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True, timeout=INSTALL_S)
    p = subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", "--retries", "1", "e2b"], capture_output=True,
                       text=True, timeout=INSTALL_S)
    if p.returncode != 0 and subprocess.run([python, "-c", "import e2b"], capture_output=True).returncode != 0:
        pytest.skip(f"the Python registry cannot be reached: {p.stderr.strip().splitlines()[-1:]}")
    return python


def test_python_sdk(interpreter, server):
    p = subprocess.run([interpreter, HERE / "python_sdk.py"], env=variables(server), capture_output=True, text=True, timeout=RUN_S)
    assert p.returncode == 0 and "pass test_commands" in p.stdout, p.stdout[-8000:] + p.stderr[-4000:]
