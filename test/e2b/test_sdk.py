"""The npm package `e2b`, unmodified and of its newest version, against `gabion serve`. Each *.test.mjs is one file of node's own
test runner; its tests are reported by name when one fails."""
import os
import pathlib
import re
import shutil
import socket
import subprocess

import harness
import pytest
from server import Server

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
    for p in [*HERE.glob("*.mjs"), *HERE.glob("*.cjs"), HERE / "package.json"]:
        shutil.copy(p, folder)
    # Named, so that it is looked up every time; without a registry what was installed before will do.
    p = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--prefer-online", "--fetch-retries=1",
                        "e2b@latest"], cwd=folder, capture_output=True, text=True, timeout=INSTALL_S)
    if p.returncode != 0 and not (folder / "node_modules/e2b").exists():
        pytest.skip(f"the npm registry cannot be reached: {p.stderr.strip().splitlines()[-1:]}")
    return folder


def variables(server):
    """The environment of a client."""
    url = "http://%s:%d" % server.address
    return {**os.environ, "E2B_API_KEY": server.key, "E2B_API_URL": url, "E2B_SANDBOX_URL": url}


def run(packages, name, env):
    p = subprocess.run(["node", "--test", "--test-reporter=spec", name], cwd=packages, env=env, capture_output=True, text=True, timeout=RUN_S)
    assert p.returncode == 0, p.stdout[-8000:] + p.stderr[-2000:]
    assert int(re.search(r"pass (\d+)", p.stdout).group(1)) > 0, p.stdout


@pytest.mark.parametrize("name", FILES)
def test_sdk(packages, server, name):
    run(packages, name, variables(server))


def test_sandboxes_by_name(packages, module_place):
    """The way of the service that the SDKs were made for: TLS, and a name for every port. No address is told but the domain's."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    cert, key = module_place / "cert.pem", module_place / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=DNS:localhost,DNS:*.box.localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
    key.chmod(0o600)
    with Server(module_place, "--listen", f"tls:127.0.0.1:{port}", "--certificate", str(cert), "--certificate-key", str(key),
                "--domain", f"box.localhost:{port}") as server:
        run(packages, "named.tls.mjs", {**os.environ, "E2B_API_KEY": server.key, "E2B_DOMAIN": f"box.localhost:{port}",
                                        "NODE_EXTRA_CA_CERTS": str(cert), "NODE_OPTIONS": "--require ./named.cjs"})
