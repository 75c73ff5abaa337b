"""The npm package `e2b`, unmodified and of its newest version, against `gabion serve`. Each *.test.mjs is one file of node's own
test runner; its tests are reported by name when one fails."""
import os
import pathlib
import re
import shutil
import subprocess

import harness
import pytest

HERE = pathlib.Path(__file__).resolve().parent
FILES = sorted(p.name for p in HERE.glob("*.test.mjs"))
INSTALL_S, RUN_S = 240, 170
NODE = (20, 18)


@pytest.fixture(scope="session")
def packages():
    """A folder with the tests and the packages they need, kept between runs in the build folder."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=10).stdout.strip()
    if tuple(map(int, version.lstrip("v").split(".")[:2])) < NODE:
        pytest.skip(f"the newest SDK needs node {NODE[0]}.{NODE[1]}; here is {version}")
    folder = pathlib.Path(harness.GABION).parents[2] / "e2b"
    folder.mkdir(exist_ok=True)
    for p in [*HERE.glob("*.mjs"), HERE / "package.json"]:
        shutil.copy(p, folder)
    # `latest` is looked up again every time; without a registry what was installed before will do.
    p = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefer-online"], cwd=folder, capture_output=True, text=True,
                       timeout=INSTALL_S)
    if p.returncode != 0 and not (folder / "node_modules/e2b").exists():
        pytest.skip(f"the npm registry cannot be reached: {p.stderr.strip().splitlines()[-1:]}")
    return folder


def variables(server):
    """The environment of a client."""
    url = "http://%s:%d" % server.address
    return {**os.environ, "E2B_API_KEY": server.key, "E2B_API_URL": url, "E2B_SANDBOX_URL": url}


@pytest.mark.parametrize("name", FILES)
def test_sdk(packages, server, name):
    p = subprocess.run(["node", "--test", "--test-reporter=spec", name], cwd=packages, env=variables(server), capture_output=True,
                       text=True, timeout=RUN_S)
    assert p.returncode == 0, p.stdout[-8000:] + p.stderr[-2000:]
    assert int(re.search(r"pass (\d+)", p.stdout).group(1)) > 0, p.stdout
