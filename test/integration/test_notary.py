"""gabion-notary as a process: what it acknowledged survives any kill, it gives up what it does not need, and readers
read. GABION_KILLS: how often it is killed (20; tools/soak does 200)."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import harness
import pytest
from audit_log import LOAD, NOTARY, assert_whole, audit, codes, notary, records, verify
from harness import gabion, run, sh, status_of, until

KILLS = int(os.environ.get("GABION_KILLS", "20"))
UID, GROUP, STRANGER = 64321, 64322, 64323


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


@pytest.fixture
def socket(tmp_path):
    return tmp_path / "socket/notary"


def as_uid(uid, gid, *words, groups=()):
    groups = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
    return subprocess.run(["setpriv", "--reuid", str(uid), "--regid", str(gid), *groups, *map(str, words)],
                          capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture
def open_place(tmp_path):
    """tmp_path that other users may enter."""
    for path in [tmp_path, *tmp_path.parents][:-2]:
        path.chmod(path.stat().st_mode | 0o711)
    return tmp_path


def load(socket, writers, events, window, *words):
    return subprocess.Popen([LOAD, str(socket), str(writers), str(events), str(window), *words],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)


def ids_in(log):
    return [r["metadata"]["uid"] for r in records(log, "load")]


def test_runs_use_a_notary_that_is_there(log, socket):
    with notary(log, socket):
        assert sh("unshare -U true; exit 4", "--audit", socket).code == 4
        assert codes(log)[1:3] == ["sandbox.created", "exec.started"] and codes(log)[-1] == "sandbox.removed"
        sandbox = records(log)[1]["device"]["container"]["uid"]
        file = log.parent / "dossier"
        assert gabion("dossier", "--socket", socket, "-o", file, sandbox).code == 0
        assert gabion("verify", "--key", log / "keys/signing.pub", file).code == 0
        assert audit("rotate-key", "--socket", socket).code == 0
        assert run("--audit", socket, "--", "true").code == 0
    assert not socket.exists()
    assert_whole(log)


def test_a_dead_notary_refuses_runs(log, socket, tmp_path):
    (tmp_path / "out").mkdir()
    with notary(log, socket) as p:
        p.kill()
        p.wait()
        r = run("--audit", socket, "-v", f"{tmp_path / 'out'}:/out:rw", "--", "touch", "/out/ran")
        assert r.code == 125 and "no audit record, no run" in r.err, r
    assert not list((tmp_path / "out").iterdir())


def killed_rounds(log, socket, kills, kill):
    """Writers print what was acknowledged while kill() takes processes away; everything printed must be in the log."""
    printed, rng = set(), random.Random(20261115)
    for _ in range(kills):
        with notary(log, socket, "--file-size", "256K") as p:
            writers = [load(socket, 2, 4000, 8, "print"), load(socket, 1, 4000, 1, "print")]
            time.sleep(rng.uniform(0.005, 0.15))
            kill(p, writers, rng)
            for w in writers:
                out, _ = w.communicate(timeout=30)
                printed.update(line for line in out.split("\n")[:-1])
            p.wait(timeout=20)
    return printed


def check_rounds(log, printed):
    with notary(log, log.parent / "socket/last"):
        pass
    found = ids_in(log)
    assert len(found) == len(set(found)), "a record is there twice"
    lost = printed - set(found)
    assert not lost, f"{len(lost)} acknowledged records are lost"
    assert_whole(log)
    return found


def test_kill_of_the_notary_loses_nothing_that_was_acknowledged(log, socket):
    def kill(p, _writers, _rng):
        p.kill()

    printed = killed_rounds(log, socket, KILLS, kill)
    found = check_rounds(log, printed)
    assert len(printed) > KILLS
    assert len(found) >= len(printed)


def test_kill_of_writers_leaves_a_whole_log(log, socket):
    def kill(p, writers, rng):
        for w in rng.sample(writers, len(writers)):
            os.killpg(w.pid, signal.SIGKILL)
        if rng.random() < 0.3:
            p.kill()
        else:
            p.send_signal(signal.SIGTERM)

    check_rounds(log, killed_rounds(log, socket, KILLS, kill))


def test_a_lost_page_cache_loses_nothing_that_was_acknowledged(log, socket):
    """What a power cut leaves is the durable prefix: everything behind the newest head may be there in part, or not at
    all. Here the files are cut back to each state that fdatasync() left, taken from a trace of the notary."""
    trace = log.parent / "trace"
    argv = ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=pwrite64,fdatasync,ftruncate,sendmsg", "-s", "65536",
            "-x", NOTARY, "--log", str(log), "--socket", str(socket)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as p:
        line = p.stderr.readline()
        assert b"ready" in line, line
        out, _ = load(socket, 2, 20, 5, "print").communicate(timeout=60)
        child = [c for c, name in harness.descendants(p.pid).items() if name == "gabion-notary"][0]
        os.kill(child, signal.SIGKILL)
        p.wait(timeout=20)
    durable, acknowledged = replay(trace.read_text(), log)
    assert acknowledged >= 40
    for head, size in durable:
        assert head["offset"] <= size, "a head was written before its records were durable"
    assert set(out.split()) <= set(ids_in(log))


def whole_lines(text):
    """Calls that strace shows in two halves, because another thread's came between, count when they return; replies when
    they begin."""
    begun = {}
    for line in text.splitlines():
        pid = line.split()[0]
        if line.endswith("<unfinished ...>") and "sendmsg(" not in line:
            begun[pid] = line.removesuffix("<unfinished ...>").rstrip()
        elif "resumed>" in line:
            if pid in begun:
                yield begun.pop(pid) + line.split("resumed>", 1)[1]
        else:
            yield line


def replay(text, log):
    """From a trace: for each head that was made durable, the durable size of the segment at that moment; and how many
    replies were sent. More of them than records under a durable head is a failure; the next head may be on its way."""
    sizes, synced, heads, replies, dirty_head, covered = {}, {}, [], 0, False, 0
    for line in whole_lines(text):
        if "pwrite64(" in line and "/load/" in line:
            path = line.split("<", 1)[1].split(">", 1)[0]
            data, count, at = line.split(">, ", 1)[1].rsplit(", ", 2)
            end = int(at.split(")")[0]) + int(count)
            if path.endswith(".log"):
                sizes[path] = max(end, sizes.get(path, 0))
            else:
                raw = bytes.fromhex(data.split('"')[1].replace("\\x", "")) if data.startswith('"\\x') else \
                    data.split('"')[1].encode().decode("unicode_escape").encode("latin-1")
                note = raw.decode(errors="replace").split("\n")
                heads.append(({"size": int(note[1]), "offset": int(note[4].split()[2])}, None))
                dirty_head = True
        elif "fdatasync(" in line and "/load/" in line:
            path = line.split("<", 1)[1].split(">", 1)[0]
            if path.endswith(".log"):
                synced[path] = sizes[path]
            elif dirty_head:
                heads[-1] = (heads[-1][0], max(synced.values(), default=0))
                dirty_head, covered = False, heads[-1][0]["size"] - 1  # the first says that the log began
        elif "sendmsg(" in line:
            replies += 1
            assert replies <= covered, "a reply went out before the head was durable"
    return [h for h in heads if h[1] is not None], replies


def descriptors(pid):
    """Where they lead; some are closed while we look."""
    names = []
    for f in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f))
    return names


def test_it_gives_up_what_it_does_not_need(log, socket, open_place):
    with notary(log, socket, "--user", UID, "--readers", GROUP) as p:
        status = status_of(p.pid)
        assert set(status["Uid"].split()) == {str(UID)} and status["Groups"].split() == [str(GROUP)]
        assert all(int(status[s], 16) == 0 for s in ("CapInh", "CapPrm", "CapEff", "CapAmb"))
        assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
        for thread in pathlib.Path(f"/proc/{p.pid}/task").iterdir():
            assert harness.parse_status((thread / "status").read_text())["Seccomp"].strip() == "2"
            first = os.SCHED_RR | os.SCHED_RESET_ON_FORK if int(thread.name) == p.pid else os.SCHED_OTHER
            assert os.sched_getscheduler(int(thread.name)) == first  # the one that records, not the one that reads
        assert sh("true", "--audit", socket).code == 0
        files = descriptors(p.pid)
        assert not [f for f in files if f.startswith("/") and not f.startswith((str(log), str(socket.parent), "/dev"))
                    and not f.endswith("(deleted)")], files
    assert_whole(log)


def test_readers_read_and_cannot_change_or_hold_up(log, socket, open_place):
    copy, helper = open_place / "bin/gabion", open_place / "libexec/gabion/gabion-audit"
    for path in (copy, helper):
        path.parent.mkdir(parents=True)
        shutil.copy(pathlib.Path(harness.GABION).with_name(path.name), path)
    with notary(log, socket, "--user", UID, "--readers", GROUP):
        assert sh("true", "--audit", socket).code == 0
        reader = as_uid(STRANGER, STRANGER, copy, "audit", "verify", "--log", log, groups=[GROUP])
        assert reader.returncode == 0, reader
        assert "sandbox.removed" in as_uid(STRANGER, STRANGER, copy, "audit", "tail", "--log", log,
                                           groups=[GROUP]).stdout
        stranger = as_uid(STRANGER, STRANGER, copy, "audit", "tail", "--log", log)
        assert stranger.returncode == 125 and "Permission denied" in stranger.stderr
        first = log / "local/000000000001.log"
        for words in (["sh", "-c", f"echo x >>{first}"], ["rm", "-f", first], ["mv", first, first.parent / "x"],
                      ["touch", log / "local/head.0"], ["rm", "-rf", log / "local"], ["cat", log / "keys/signing.key"],
                      ["flock", "-n", log / "local/lock", "true"], ["mkdir", log / "fake"]):
            assert as_uid(STRANGER, STRANGER, *words, groups=[GROUP]).returncode != 0, words
        assert sh("true", "--audit", socket).code == 0
    assert_whole(log)


def test_strangers_cannot_write(log, socket, open_place):
    with notary(log, socket, "--user", UID, "--writer", f"{STRANGER}=theirs") as p:
        p.stderr.close()
        unknown = as_uid(STRANGER + 1, STRANGER + 1, LOAD, socket, 1, 1, 1)
        assert unknown.returncode == 1
        other_tenant = as_uid(STRANGER, STRANGER, LOAD, socket, 1, 1, 1)
        assert other_tenant.returncode == 1 and "may not write to tenant load" in other_tenant.stderr
    assert not (log / "load").exists()


def test_retention_drops_old_files_and_the_rest_verifies(log, socket):
    with notary(log, socket, "--file-size", "8K"):
        load(socket, 1, 60, 5).wait(timeout=30)
    time.sleep(1.1)
    with notary(log, socket, "--file-size", "8K", "--keep", "1s", "--keep", "other=1d"):
        load(socket, 1, 5, 5).wait(timeout=30)
        assert until(lambda: not (log / "load/000000000001.log").exists(), 10)
    r = verify(log, "--json")
    assert r.code == 0 and r.json[0]["first_kept"] > 1, r
    assert "log.dropped" in codes(log, "load")


def test_bad_words_are_told(tmp_path):
    for words, said in ([["--keep", "x=1d", "--user", "nobody-here"], "user"], [["--keep", "forever"], "--keep"],
                        [["--readers", "no-such-group"], "no-such-group"], [["more"], "no arguments"],
                        [["--file-size", "1"], "--file-size"], [["--nonsense"], "--nonsense"]):
        r = subprocess.run([NOTARY, *words], capture_output=True, text=True, timeout=10, check=False)
        assert r.returncode == 125 and said in r.stderr and r.stderr.count("\n") == 1, r


def test_many_writers_are_acknowledged_and_memory_is_bounded(log, socket):
    with notary(log, socket) as p:
        out, _ = load(socket, 4, 5000, 64).communicate(timeout=60)
        result = json.loads(out)
        peak = int(status_of(p.pid)["VmHWM"].split()[0])
    assert result["events"] == 20000 and peak < 32 << 10, (result, peak)
    assert_whole(log)
    assert len(ids_in(log)) == 20001
