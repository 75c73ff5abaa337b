"""`gabion doctor` says what is so, names remedies, and its exit code can be relied on."""
import json
import shutil
import subprocess
import tempfile

import pytest
from harness import GABION

UID_WITHOUT_ANYTHING = 61234  # no account, so no subordinate ids and no control groups


@pytest.fixture(scope="module")
def reachable():
    """A copy of the program where every user may start it; the checkout may be in somebody's home."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["chmod", "755", folder], check=True)
        yield shutil.copy(GABION, folder)


def doctor(*args, program=GABION, uid=None):
    switch = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"] if uid else []
    return subprocess.run([*switch, program, "doctor", *args], capture_output=True, text=True, timeout=120, cwd="/")


def findings(out):
    return {f["name"]: f for f in json.loads(out.stdout)}


def test_a_machine_that_runs_sandboxes_is_well():
    out = doctor("--json")
    found = findings(out)
    assert out.returncode == 0, out.stdout
    assert all(f["state"] in ("ok", "limited") for f in found.values() if f["required"])
    assert "exit code 0" in found["self-test"]["found"]


def test_whatever_is_missing_has_a_remedy(reachable):
    for uid in (None, UID_WITHOUT_ANYTHING):
        for f in findings(doctor("--json", program=reachable, uid=uid)).values():
            assert f["found"]
            assert f["state"] != "missing" or f["remedy"], f


def test_a_user_without_ids_is_told_how_to_get_them(reachable):
    out = doctor("--json", program=reachable, uid=UID_WITHOUT_ANYTHING)
    found = findings(out)
    assert out.returncode == 1
    assert found["subordinate ids"]["required"] and found["subordinate ids"]["state"] == "missing"
    assert "usermod --add-subuids" in found["subordinate ids"]["remedy"]
    assert found["self-test"]["state"] == "missing"


def test_the_table_and_the_document_agree():
    text = doctor().stdout
    for f in findings(doctor("--json")).values():
        assert f"  {f['state']:8} {f['name']}" in text


def test_an_unknown_argument_is_an_error():
    out = doctor("--fix")
    assert (out.returncode, out.stdout) == (125, "")
    assert "--fix" in out.stderr
