"""The same command as an ordinary user. Makes an account for the time of the tests, and removes it."""
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import time

import egress_world as world
import harness
import pytest
from harness import Result

NAME = "gabion-test"
UNMAPPED = "gabion-bare"


def account(name, *ids):
    subprocess.run(["userdel", "-rf", name], check=False, capture_output=True)
    subprocess.run(["useradd", "-m", "-s", "/bin/sh", "-K", "SUB_UID_COUNT=0", "-K", "SUB_GID_COUNT=0", name],
                   check=True, capture_output=True)
    if ids:
        subprocess.run(["usermod", *ids, name], check=True, capture_output=True)


@pytest.fixture(scope="module")
def place():
    """A folder with a copy of the binary that everybody may execute; the two accounts exist as long as it does."""
    for tool in ("newuidmap", "useradd", "setpriv"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    folder = pathlib.Path(f"/opt/gabion-test-{os.getpid()}")
    (folder / "bin").mkdir(parents=True)
    (folder / "libexec/gabion").mkdir(parents=True)
    shutil.copy(harness.GABION, folder / "bin/gabion")
    shutil.copy(pathlib.Path(harness.GABION).parent.parent / "egress/gabion-egress", folder / "libexec/gabion")
    first = 1500000000
    account(NAME, "--add-subuids", f"{first}-{first + 65535}", "--add-subgids", f"{first}-{first + 65535}")
    account(UNMAPPED)
    # useradd gives a range by itself on some systems
    for kind in ("subuid", "subgid"):
        path = pathlib.Path(f"/etc/{kind}")
        lines = path.read_text().splitlines(True)
        path.write_text("".join(line for line in lines if not line.startswith(f"{UNMAPPED}:")))
    yield folder
    for name in (NAME, UNMAPPED):
        subprocess.run(["userdel", "-rf", name], check=False, capture_output=True)
    shutil.rmtree(folder)


def ids(name):
    entry = pwd.getpwnam(name)
    return [str(entry.pw_uid), str(entry.pw_gid)]


def as_user(place, name, *words, **kw):
    uid, gid = ids(name)
    argv = ["setpriv", "--reuid", uid, "--regid", gid, "--clear-groups", str(place / "bin/gabion"), *words]
    p = subprocess.run(argv, cwd="/", capture_output=True, timeout=30, check=False, stdin=subprocess.DEVNULL,
                       env={"HOME": f"/home/{name}", "PATH": "/usr/bin:/bin"}, **kw)
    return Result(p.returncode, p.stdout, p.stderr)


@pytest.fixture(autouse=True)
def no_slot_left(place):
    yield
    uid = ids(NAME)[0]
    for folder in (f"/run/user/{uid}/gabion", f"/tmp/gabion-{uid}"):
        if os.path.isdir(folder):
            assert harness.until(lambda: not os.listdir(folder), harness.PATIENCE_S), os.listdir(folder)
            os.rmdir(folder)


def delegated():
    return os.path.exists("/sys/fs/cgroup/cgroup.controllers") and os.environ.get("GABION_DELEGATED")


def test_without_subordinate_ids_it_is_refused_with_the_remedy(place):
    result = as_user(place, UNMAPPED, "run", "--limits=rlimit", "--", "true")
    assert result.code == 125
    assert "usermod --add-subuids" in result.err and UNMAPPED in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.skipif(delegated(), reason="control groups are delegated here")
def test_without_delegation_it_is_refused_with_the_remedy(place):
    result = as_user(place, NAME, "run", "--", "true")
    assert result.code == 125, result
    assert "--limits=rlimit" in result.err, result
    assert len(result.err.splitlines()) == 1


def test_with_rlimits_it_works(place):
    result = as_user(place, NAME, "run", "--limits=rlimit", "--", "sh", "-c",
                     "id -u; echo x > /tmp/f; cat /tmp/f; exit 7")
    assert (result.code, result.lines) == (7, ["1000", "x"]), result


def test_the_statement_shows_it(place):
    home = f"/home/{NAME}"
    result = as_user(place, NAME, "run", "--limits=rlimit", "--evidence", f"{home}/e.json", "--json", "--", "true")
    assert result.code == 0, result
    doc = json.loads(pathlib.Path(home, "e.json").read_text())
    assert doc["rootless"] is True
    assert [d for d in doc["deviations"] if "no control group" in d]
    assert doc["seccomp"]["hash_read_back"] is None and doc["seccomp"]["hash_unavailable"]
    assert {int(doc["command_seen_from_host"][c], 16) for c in harness.CAPABILITY_SETS} == {0}
    assert all(n["sandbox"] != n["host"] for n in doc["namespaces"].values())


def test_a_mount_belongs_to_the_user_on_both_sides(place):
    work = pathlib.Path(f"/home/{NAME}/work")
    work.mkdir(exist_ok=True)
    uid = int(ids(NAME)[0])
    os.chown(work, uid, uid)
    result = as_user(place, NAME, "run", "--limits=rlimit", "-v", f"{work}:/mnt/w:rw", "--", "sh", "-c",
                     "echo made > /mnt/w/f; stat -c %u /mnt/w/f")
    assert (result.code, result.out) == (0, "1000\n"), result
    assert (work / "f").stat().st_uid == uid and (work / "f").read_text() == "made\n"


def test_it_gives_no_rights_that_the_user_lacks(place, host_file):
    secret = host_file(f"/opt/gabion-secret-{os.getpid()}/f", "canary-text")
    secret.chmod(0o600)
    result = as_user(place, NAME, "run", "--limits=rlimit", "-v", f"{secret}:/mnt/f:ro", "--", "cat", "/mnt/f")
    assert "canary-text" not in result.out and result.code != 0
    result = as_user(place, NAME, "run", "--limits=rlimit", "-v", f"{secret.parent}:/mnt/d:rw", "--", "sh", "-c",
                     "cat /mnt/d/f; touch /mnt/d/g; id")
    assert "canary-text" not in result.out and not (secret.parent / "g").exists()


def test_the_command_is_another_user_on_the_host_unless_it_has_mounts(place):
    uid = ids(NAME)[0]
    argv = ["setpriv", "--reuid", uid, "--regid", ids(NAME)[1], "--clear-groups", str(place / "bin/gabion"), "run",
            "--limits=rlimit", "--", "sleep", "20"]
    with subprocess.Popen(argv, env={"HOME": f"/home/{NAME}"}, stdin=subprocess.DEVNULL) as p:
        try:
            pid = harness.find_below(p.pid, "sleep")
            assert int(harness.status_of(pid)["Uid"].split()[0]) == 1500000000 + 1000
        finally:
            p.kill()
    assert harness.until(lambda: not os.path.exists(f"/proc/{pid}"), 2)
    time.sleep(0.1)


@pytest.mark.parametrize("attack,reason", [
    ("x = []\nwhile True: x.append(bytearray(1 << 20))", "exited"),
    ("import time; time.sleep(30)", "timeout"),
])
def test_rlimits_still_bound_one_process(attack, reason, place):
    result = as_user(place, NAME, "run", "--limits=rlimit", "--json", "-m", "200M", "--timeout", "1s", "--",
                     "/usr/bin/python3", "-c", attack)
    assert result.json["reason"] == reason and result.code == (124 if reason == "timeout" else 1), result


def test_an_unreadable_policy_is_refused(place, tmp_path):
    file = place / "policy.yaml"  # a folder that the user may enter
    file.write_text("version: 1\n")
    file.chmod(0o600)
    result = as_user(place, NAME, "run", "--limits=rlimit", "--policy", str(file), "--", "true")
    assert result.code == 125, result
    assert result.err.startswith("gabion: ") and "policy.yaml" in result.err and len(result.err.splitlines()) == 1


def test_a_run_directory_prepared_by_somebody_else_is_refused(place):
    """/tmp is everybody's: what lies there under our name may be a trap."""
    uid = ids(NAME)[0]
    if os.path.isdir(f"/run/user/{uid}"):
        pytest.skip("there is a /run/user of its own")
    trap = pathlib.Path(f"/tmp/gabion-{uid}")
    trap.mkdir(mode=0o777)
    try:
        result = as_user(place, NAME, "run", "--limits=rlimit", "--", "true")
        assert result.code == 125 and str(trap) in result.err, result
        trap.rmdir()
        trap.symlink_to("/opt")
        result = as_user(place, NAME, "run", "--limits=rlimit", "--", "true")
        assert result.code == 125 and str(trap) in result.err, result
    finally:
        if trap.is_symlink():
            trap.unlink()
        else:
            trap.rmdir()


def test_a_plan_can_be_made_by_a_user(place):
    result = as_user(place, NAME, "plan", "--json", "--limits=rlimit", "--", "true")
    assert result.code == 0 and json.loads(result.out)["plan"].startswith("sha256:")


@pytest.fixture
def web():
    server = world.Web()
    yield server
    server.close()


def test_a_network_works_the_same(place, web):
    home = pathlib.Path(f"/home/{NAME}")
    result = as_user(place, NAME, "run", "--limits=rlimit", "--allow", "web.example", "--resolve",
                     f"web.example:80=127.0.0.1:{web.port}", "--evidence", home / "net.json", "--json", "--", "sh", "-c",
                     "curl -sS http://web.example/hello; curl -sS -m 5 http://169.254.169.254/; "
                     "curl -sS -m 5 http://evil.example/; true")
    assert result.code == 0 and result.lines[0] == "GET /hello 0", result
    assert {d["code"] for d in result.json["denials"]} == {"net.metadata", "net.name_not_allowed"}
    doc = json.loads((home / "net.json").read_text())["network"]
    assert doc["egress"] == "by policy" and doc["canaries_refused"] == 5
    log = home / ".local/state/gabion/egress.jsonl"
    assert log.stat().st_uid == int(ids(NAME)[0]) and log.stat().st_mode & 0o777 == 0o600
    assert "evil.example" in as_user(place, NAME, "egress", "log", "--denied").out


def test_a_running_sandbox_can_be_spoken_to(place, web):
    uid, gid = ids(NAME)
    argv = ["setpriv", "--reuid", uid, "--regid", gid, "--clear-groups", str(place / "bin/gabion"), "run",
            "--limits=rlimit", "--allow", "web.example", "--resolve", f"web.example:80=127.0.0.1:{web.port}", "--", "sleep",
            "20"]
    with subprocess.Popen(argv, env={"HOME": f"/home/{NAME}"}, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        try:
            harness.find_below(p.pid, "sleep")
            folder = [f for f in (f"/run/user/{uid}/gabion", f"/tmp/gabion-{uid}") if os.path.isdir(f)][0]
            slot = [n for n in os.listdir(folder) if not n.endswith(".sock")][0]
            name = pathlib.Path(folder, slot).read_text()
            result = as_user(place, NAME, "reach", "--json", name)
            assert result.code == 0 and json.loads(result.out)["different"] == 0, result
            other = pathlib.Path(f"/home/{NAME}/other.yaml")
            other.write_text("version: 1\nnetwork:\n  allow:\n    - { host: other.example }\n")
            assert as_user(place, NAME, "policy", "update", name, str(other)).code == 0
            assert as_user(place, UNMAPPED, "reach", name).code == 125  # another user's
            egress = harness.find_below(p.pid, "gabion-egress")
            os.kill(egress, 9)
            assert harness.until(lambda: harness.find_below(p.pid, "gabion-egress") != egress, 10)
        finally:
            p.kill()


def test_a_proof_by_an_ordinary_user(place):
    """Without control groups, so without group I. Namespaces come from the statement: the kernel shows them to the owner."""
    result = as_user(place, NAME, "prove", "--limits", "rlimit", "--groups", "ABCDEFGHJ", "--json")
    assert result.code == 0, result
    report = json.loads(result.out)
    assert report["passed"] and report["rootless"] and report["dangerous_calls"]["reached"] <= 5
    assert report["aisi"]["host"]["level"] == "H1" and report["aisi"]["network"]["level"] == "N2"
    posture = report["posture"]
    assert posture["seen"] and posture["CapBnd"] == "0" * 16 and posture["Seccomp"] == 2
    assert posture["uid"] == int(ids(NAME)[0])  # the probe is a mount, so the user inside is the caller
