"""Starting and stopping: keys, places, isolation of the API's process, and orders that make no sense."""
import os
import pathlib
import re
import stat
import subprocess

import harness
import pytest
from server import GABIOND, UID, Server


def gabiond(*options, timeout=10):
    return subprocess.run([GABIOND, *map(str, options)], capture_output=True, text=True, timeout=timeout, check=False)


def test_the_first_start_makes_a_key_and_later_ones_do_not(place):
    s = Server(place)
    with s:
        first = s.key
        assert re.fullmatch(r"e2b_[0-9a-f]{40}", first)
        assert stat.S_IMODE(s.key_file.stat().st_mode) == 0o600
        assert s.client().get("/sandboxes").json == []
        assert first not in s.text()
        assert s.stop() == 0
        s.start()
        assert s.key == first
        assert s.client().get("/sandboxes").status == 200
        s.stop()
        s.key_file.unlink()
        s.start()  # the store is there: there is nothing to write
        assert not s.key_file.exists()
        assert s.client(first).get("/sandboxes").status == 200


def test_without_a_key_file_the_key_is_shown_once_with_what_to_export(place):
    words = ["--data", place / "data", "--listen", "127.0.0.1:0", "--warden", "/run/nobody/socket", "--user", UID, "--audit", "off"]
    with subprocess.Popen([GABIOND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        text = "".join(p.stdout.readline() for _ in range(5))
        assert "ready" in p.stderr.readline()
        p.terminate()
        out, _ = p.communicate(timeout=10)
    key = re.search(r"export E2B_API_KEY=(e2b_[0-9a-f]{40})$", text, re.M)[1]
    url = re.search(r"export E2B_API_URL=(http://127\.0\.0\.1:\d+)$", text, re.M)[1]
    assert f"export E2B_SANDBOX_URL={url}" in text
    assert p.returncode == 0 and key not in out
    for name in ("gabion.db", "server.key"):
        info = (place / "data" / name).stat()
        assert (stat.S_IMODE(info.st_mode), info.st_uid) == (0o600, UID)
    assert key.encode() not in (place / "data/gabion.db").read_bytes()


def test_the_api_has_no_privilege_and_sees_its_data_only(place):
    with Server(place) as server:
        pid = server.pid_of("gabiond")
        status = harness.status_of(pid)
        assert status["Uid"].split() == [str(UID)] * 4 and status["Gid"].split() == [str(UID)] * 4
        assert status["Groups"].strip() == ""
        assert all(int(status[name], 16) == 0 for name in harness.CAPABILITY_SETS)
        assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
        assert pathlib.Path(f"/proc/{pid}/environ").read_bytes() == b""
        opened = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        files = {path for path in opened if path.startswith("/") and path not in ("/dev/null", str(server.log))}
        assert files == {"/proc/meminfo"} | {f"{server.data}/gabion.db{end}" for end in ("", "-wal", "-shm")}


def test_a_local_socket_is_served_too(place):
    path = place / "api.sock"
    with Server(place, "--listen", f"unix:{path}") as s:
        out = subprocess.run(["curl", "-s", "--unix-socket", path, "http://localhost/health"], capture_output=True,
                             text=True, timeout=10, check=True).stdout
        assert out == "Health check successful\n"
        assert s.stop() == 0


@pytest.mark.parametrize("words, part", [
    (["--listen", "nonsense"], "listen: 'nonsense' is not ADDRESS:PORT"),
    (["--listen", "127.0.0.1:99999"], "listen"),
    (["--listen", "::1:80"], "listen"),
    (["--listen", "unix:relative"], "listen: unix:relative: must be an absolute path"),
    (["--data", "relative"], "data: 'relative' is not an absolute path"),
    (["--user", "no-such-user"], "user: 'no-such-user' is not in /etc/passwd"),
    (["--user", "root"], "user: 'root' must not be root"),
    (["--domain", "a b"], "domain: 'a b' is not NAME or NAME:PORT"),
    (["--log", "loud"], "log: 'loud' is not one of"),
    (["--pool", "1000"], "pool: must be a number up to 256"),
    (["--ceiling", "/does/not/exist"], "ceiling"),
    (["--policy", "/does/not/exist"], "/does/not/exist"),
    (["--config", "/does/not/exist"], "settings /does/not/exist"),
    (["--with-parent", "1"], "the parent has ended"),
    (["extra"], "'extra' is no option"),
])
def test_orders_that_make_no_sense_are_refused_in_one_line(words, part, place):
    if "--data" not in words:
        words = ["--data", place / "data", *words]
    r = gabiond("--listen", "127.0.0.1:0", *words)
    assert r.returncode == 125 and r.stdout == ""
    assert part in r.stderr and r.stderr.count("\n") == 1


def test_places_of_others_are_refused(place):
    foreign = place / "foreign"
    foreign.mkdir(mode=0o700)
    r = gabiond("--listen", "127.0.0.1:0", "--data", foreign)
    assert r.returncode == 125 and "must be a directory of user" in r.stderr
    wide = place / "wide"
    wide.mkdir()
    os.chown(wide, UID, UID)
    os.chmod(wide, 0o755)
    r = gabiond("--listen", "127.0.0.1:0", "--data", wide, "--user", UID)
    assert r.returncode == 125 and "0700" in r.stderr
    precious = place / "precious"
    precious.write_text("do not lose me")
    r = gabiond("--listen", "127.0.0.1:0", "--data", place / "data", "--key-file", precious)
    assert r.returncode == 125 and "has something else in it" in r.stderr
    assert precious.read_text() == "do not lose me"


def test_serve_ends_when_the_api_cannot_start(place):
    s = Server(place, "--domain", "not a name")
    r = subprocess.run(s.argv(), capture_output=True, text=True, timeout=30, check=False)
    assert r.returncode == 125 and "domain" in r.stderr
    r = subprocess.run([harness.GABION, "serve", "--run", "relative"], capture_output=True, text=True, timeout=10, check=False)
    assert r.returncode == 125 and "--run" in r.stderr
    s.process = None
    s.__exit__(None)
