"""gabion-warden from outside: sandboxes that live on are made, used, held and ended."""
import hashlib
import json
import os
import pathlib
import socket
import stat
import struct
import subprocess
import threading
import time

import harness
import pytest
import shim
import warden


@pytest.fixture
def w():
    with warden.Warden() as one:
        yield one


@pytest.fixture
def c(w):
    with w.client() as one:
        yield one


def refused(kind, call, *words):
    with pytest.raises(warden.WardenError) as e:
        call()
    assert all(word in str(e.value) for word in words), str(e.value)
    assert e.value.kind == kind, (e.value.kind, str(e.value))


(INTERNAL, INVALID, DENIED, NOT_FOUND, BUSY, LIMIT, PEER) = range(7)


def test_commands_run_with_every_control(c):
    b = c.create(env={"FROM": "sandbox", "HOME": "/nowhere"}, hostname="box")
    with shim.Agent(b.socket) as a:
        r = a.sh("id -u; hostname; echo $FROM $HOME; pwd", env=["HOME=/home/user"])
        assert r.out == b"1000\nbox\nsandbox /home/user\n/home/user\n"
        status = harness.parse_status(a.run("cat", "/proc/self/status").out.decode())
    assert {status[k].strip() for k in harness.CAPABILITY_SETS} == {"0" * 16}
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip(), status["Seccomp_filters"].strip()) == ("1", "2", "1")
    for name in harness.NAMESPACES:
        assert os.readlink(f"/proc/{b.pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}"), name


def test_the_statement_is_what_was_promised(c):
    b = c.create({"version": 1, "limits": {"memory": "300M"}})
    text = c.evidence(b.id)
    doc = json.loads(text)
    assert f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" == b.evidence
    assert (doc["sandbox"], doc["policy"]) == (b.id, b.policy)
    assert doc["limits"]["cgroup"]
    assert set(doc["command_seen_from_host"]) >= {"CapEff", "NoNewPrivs", "Seccomp"}


def test_usage_and_list(c):
    boxes = [c.create(tenant=t) for t in ("alpha", "beta", "alpha")]
    with shim.Agent(boxes[0].socket) as a:
        a.sh("head -c 5000000 /dev/zero >/tmp/x; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done")
        number, _ = a.start(["sleep", "100"])
        u = c.usage(boxes[0].id)
        assert u.disk > 5_000_000 and u.memory > 5_000_000 and u.cpu_us > 10_000 and u.tasks == 3
        assert u.memory_limit == 512 << 20 and u.peak >= u.memory and u.disk < u.disk_limit
        a.send(shim.SIGNAL, number, struct.pack(">I", 9))
        a.finish(number)
    listed = c.list()
    assert {b.id: (listed[b.id].tenant, listed[b.id].pid) for b in boxes} == {
        b.id: (t, b.pid) for b, t in zip(boxes, ("alpha", "beta", "alpha"))}
    assert c.status().running == 3


def test_list_goes_on_where_it_stopped(c):
    ids = {c.create().id for _ in range(60)}
    assert set(c.list()) == ids


def test_the_end_takes_everything(c):
    c.subscribe()
    with_events = c
    b = c.create(tenant="alpha")
    group = [g for g in harness.control_groups() if g.endswith(f"sbx-{b.slot:04}")]
    assert group and os.path.exists(b.socket)
    with shim.Agent(b.socket) as a:
        a.start(["sleep", "100"])
        serial = with_events.send(warden.KILL, warden.put(b.id))
        replies = dict([with_events.receive(), with_events.receive()])
        assert warden.Reader(replies[serial]).take("B") == warden.KILLED
        with pytest.raises(EOFError):
            while True:
                a.next()
    assert not os.path.exists(b.socket) and not os.path.exists(f"{os.path.dirname(b.socket)}/../gates/{b.id}")
    assert not any(map(os.path.exists, group)) and not os.path.exists(f"/run/gabion/sbx-{b.slot:04}")
    assert b.id not in c.list()
    refused(NOT_FOUND, lambda: c.kill(b.id), b.id)


def test_a_lost_sandbox_is_told(c, w):
    with w.client() as events:
        events.subscribe()
        b = c.create(tenant="alpha")
        os.kill(b.pid, 9)
        e = events.event()
    assert (e.kind, e.id, e.tenant, e.end.reason) == (warden.ENDED, b.id, "alpha", warden.LOST)
    assert harness.until(lambda: b.id not in c.list())


def test_refused_calls_are_told_and_a_flood_is_cut(c, w):
    with w.client() as events:
        events.subscribe()
        b = c.create()
        with shim.Agent(b.socket) as a:
            assert b"perm" in a.sh("unshare -U true; mount -t tmpfs x /tmp").err.lower()
            seen = [events.event() for _ in range(2)]
            assert {e.kind for e in seen} == {warden.DENIED} and {e.id for e in seen} == {b.id}
            assert any("unshare" in e.text for e in seen) and any("mount" in e.text for e in seen)
            a.run("/usr/bin/python3", "-c", "import ctypes\nfor _ in range(200): ctypes.CDLL(None).umount2(b'/', 0)")
            texts = []
            while not texts or not texts[-1].suppressed:
                texts.append(events.event())
            assert 40 <= len(texts) <= 60
            assert a.run("true").code == 0


def test_frozen_means_still(c):
    b = c.create()
    with shim.Agent(b.socket) as a:
        a.start(["/bin/sh", "-c", "while :; do date +%s%N >/tmp/now; done"])
        time.sleep(0.1)
        c.freeze(b.id)
        before = c.usage(b.id).cpu_us
        time.sleep(0.3)
        assert c.usage(b.id).cpu_us == before and c.list()[b.id].state == warden.FROZEN
        refused(BUSY, lambda: c.freeze(b.id), b.id)
        c.thaw(b.id)
        time.sleep(0.1)
        assert c.usage(b.id).cpu_us > before and c.list()[b.id].state == warden.RUNNING
    c.freeze(b.id)
    assert c.kill(b.id).reason == warden.KILLED


def test_root_is_launched_when_asked_for(c):
    b = c.create()
    with shim.Agent(b.socket) as a:
        with pytest.raises(shim.AgentError) as e:
            a.run("id", uid=shim.ROOT, cwd="/")
        assert e.value.step == "launcher"
        c.launch(b.id, shim.ROOT)
        assert a.sh("id -u; grep CapEff /proc/self/status", uid=shim.ROOT, cwd="/").out == b"0\nCapEff:\t0000000000000000\n"
    refused(INTERNAL, lambda: c.launch(b.id, shim.ROOT), "exists")
    refused(INVALID, lambda: c.launch(b.id, 4711), "4711")


def test_a_killed_launcher_comes_back(c):
    b = c.create()
    with shim.Agent(b.socket) as a:
        assert a.sh("kill -9 -1; true").signal is None or True  # kills every process of the user but pid 1
        with pytest.raises(shim.AgentError) as e:
            a.run("true")
        assert e.value.step == "launcher"
        c.launch(b.id, shim.USER)
        assert a.run("echo", "again").out == b"again\n"


def test_commands_of_a_user_reach_each_other_and_nobody_else(c):
    one, two = c.create(), c.create()
    with shim.Agent(one.socket) as a, shim.Agent(two.socket) as b:
        number, pid = a.start(["sleep", "100"])
        assert a.sh(f"kill -0 {pid} && kill {pid}").code == 0
        assert a.finish(number).signal == 15
        assert a.sh("kill -0 1").code != 0
        _, pid = a.start(["sleep", "100"])
        assert b.sh(f"kill -0 {pid}").code != 0  # another pid namespace


def test_files_and_ports(c):
    b = c.create()
    with shim.Agent(b.socket) as a, shim.Agent(b.socket).files() as f:
        data = os.urandom(300_000)
        f.write("/home/user/deep/er/file", data)
        assert f.read("/home/user/deep/er/file") == data
        assert a.sh("stat -c '%U %a' deep/er/file; wc -c <deep/er/file").out == b"user 644\n300000\n"
        with pytest.raises(shim.AgentError):
            f.read("/.gabion/probe")  # Landlock holds for workers too
        with pytest.raises(shim.AgentError):
            f.write("/usr/x", b"")
        server = "import socket; s=socket.create_server(('127.0.0.1', 8080)); print('up', flush=True); c=s.accept()[0]; c.sendall(c.recv(99)*2)"
        number, _ = a.start(["/usr/bin/python3", "-c", server])
        a.expect(shim.OUTPUT)
        with shim.Agent(b.socket) as p:
            p.send(shim.PORT, 1, struct.pack(">I", 8080))
            p.expect(shim.DONE)
            p.sock.sendall(b"ping")
            assert p.sock.recv(99, socket.MSG_WAITALL) == b"pingping"
        assert a.finish(number).code == 0


def test_a_full_disk_is_an_error_of_the_write(c):
    b = c.create({"version": 1, "limits": {"disk": "16M"}})
    with shim.Agent(b.socket).files() as f:
        with pytest.raises(shim.AgentError) as e:
            f.write("/tmp/a", bytes(12 << 20))
            f.write("/tmp/b", bytes(12 << 20))
        assert os.strerror(e.value.code) == "No space left on device"


def test_output_waits_for_a_daemon_that_comes_back(c):
    b = c.create()
    a = shim.Agent(b.socket)
    number, pid = a.start(["/bin/sh", "-c", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done; exit 9"])
    a.expect(shim.OUTPUT)
    a.close()  # as if the daemon had died
    time.sleep(0.3)
    with shim.Agent(b.socket) as a:
        assert a.list()[number][0] == pid
        assert a.attach(number, 2) == (pid, 2)
        r = a.finish(number)
        assert (r.out, r.code, r.lost) == (b"2\n3\n4\n5\n6\n", 9, 0)


def test_bad_requests(c, w):
    refused(INVALID, lambda: c.create({"version": 1, "memory": 5}), "memory")
    refused(INVALID, lambda: c.create({"version": 1, "limits": {"memory": "1Q"}}), "limits.memory")
    refused(INVALID, lambda: c.create({"version": 1, "tier": "microvm"}), "tier")
    refused(DENIED, lambda: c.create({"version": 1, "filesystem": {"mounts": [
        {"source": "/tmp", "target": "/x", "mode": "ro"}]}}), "filesystem.mounts")
    refused(NOT_FOUND, lambda: c.usage(warden.new_id()))
    b = c.create()
    refused(INVALID, lambda: c.create(ident=b.id), b.id)

    def not_sealed():
        c.send(warden.CREATE, warden.put(warden.new_id()) + warden.put("t") + warden.put("") + b"\0",
               [os.memfd_create("x"), warden.blob(b"")])
        c.receive()
    with pytest.raises(warden.WardenError):
        not_sealed()
    with pytest.raises(warden.WardenError):
        c.send(warden.CREATE, warden.put(warden.new_id()) + warden.put("t") + warden.put("") + b"\0",
               [warden.blob(b'{"version":1}'), warden.blob(b"NO-EQUALS\0")])
        c.receive()
    assert c.status().running == 1


@pytest.mark.parametrize("kind, body", [(0, b""), (99, b""), (warden.KILL, b"\0\3abc"), (warden.LIST, b""),
                                        (warden.STATUS, b"x"), (warden.USAGE, warden.put("../../../etc/passwd0")),
                                        (warden.KILL, b"\0" * 100)])
def test_nonsense_cuts_the_client_off(c, w, kind, body):
    with w.client() as bad:
        bad.send(kind, body)
        with pytest.raises(warden.Gone):
            bad.receive()
    assert c.status().running == 0


def test_only_the_daemon_may_speak():
    script = "import socket,sys; s=socket.socket(socket.AF_UNIX, int(sys.argv[2])); s.connect(sys.argv[1]); print('in')"

    def reaches(path, kind, uid):
        return subprocess.run(["/usr/bin/python3", "-c", script, path, str(int(kind))], user=uid, group=uid,
                              extra_groups=[], capture_output=True, check=False).stdout == b"in\n"

    with warden.Warden(uid=5001) as w, w.client() as c:
        assert reaches(f"{w.run}/warden.sock", socket.SOCK_SEQPACKET, 5001)
        assert not reaches(f"{w.run}/warden.sock", socket.SOCK_SEQPACKET, 5002)
        b = c.create()  # by root, so it is root's
        assert not reaches(b.socket, socket.SOCK_STREAM, 5001)
        assert not reaches(f"{w.run}/gates/{b.id}", socket.SOCK_SEQPACKET, 5001)
        mode = pathlib.Path(f"{w.run}/agents").stat().st_mode
        assert stat.S_IMODE(mode) == 0o711
        os.chown(b.socket, 5001, -1)
        assert reaches(b.socket, socket.SOCK_STREAM, 5001)
        assert not reaches(b.socket, socket.SOCK_STREAM, 5002)


def test_many_at_once_and_none_is_lost(c):
    ids = [warden.new_id() for _ in range(40)]
    serials = {c.ask_create(ident): ident for ident in ids}
    boxes = {}
    for _ in ids:
        serial, body = c.receive()
        boxes[serials[serial]] = c.created(serials[serial], body)
    assert set(c.list()) == set(ids)
    results = {}

    def one(b):
        with shim.Agent(b.socket) as a:
            results[b.id] = a.sh(f"echo {b.id}; hostname").out
    threads = [threading.Thread(target=one, args=(b,)) for b in boxes.values()]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {ident: f"{ident}\ngabion\n".encode() for ident in ids}
    assert len({b.slot for b in boxes.values()}) == len(ids)


def test_killed_while_it_is_made(c):
    ident = warden.new_id()
    create, kill = c.ask_create(ident), c.send(warden.KILL, warden.put(ident))
    replies = dict([c.receive(), c.receive()])
    assert set(replies) == {create, kill}
    assert c.list() == {}


def test_what_was_made_aside_runs_everywhere(c):
    """A pool is filled on one processor; a sandbox from it has all that we have."""
    c.pool(2)
    assert harness.until(lambda: c.status().pooled == 2)
    box = c.create(source=warden.POOL_ONLY)
    assert harness.status_of(box.pid)["Cpus_allowed_list"] == harness.status_of()["Cpus_allowed_list"]
    with shim.Agent(box.socket) as a:
        assert a.run("nproc").out.split() == [str(len(os.sched_getaffinity(0))).encode()]
    c.pool(0)


def test_a_claim_applies_what_differs_and_tells_the_filter_that_was_read(c, w):
    """A limit that is there already is not written again, but one that was changed meanwhile is."""
    c.pool(1)
    assert harness.until(lambda: c.status().pooled == 1)
    ours = subprocess.run(["grep", "-rls", f'"run":"{w.run}"', "/run/gabion"], capture_output=True, text=True, check=False)
    names = [os.path.basename(name) for name in ours.stdout.split()]  # others' come and go meanwhile
    limit = [p for g in harness.control_groups() if g.endswith(tuple(names)) and (p := pathlib.Path(g, "pids.max")).exists()]
    limit[0].write_text("999")
    box = c.create(source=warden.POOL_ONLY)
    assert names == [f"sbx-{box.slot:04}"] and limit[0].read_text() == "256\n"
    seccomp = json.loads(c.evidence(box.id))["seccomp"]
    assert seccomp["hash_read_back"] == seccomp["hash_planned"]
    c.pool(0)


def test_what_a_claim_has_read_is_written_down_after_its_answer(c):
    """Whoever asks at once gets the whole, and it is there when the sandbox is ended in the same moment."""
    c.pool(3)
    assert harness.until(lambda: c.status().pooled == 3)
    box = c.create(source=warden.POOL_ONLY)
    evidence, plan, said = c.statement(box.id)
    text = c.evidence(box.id)
    assert box.evidence == "" and f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" == evidence and plan == box.plan
    assert json.loads(text) == said["evidence"] and said["evidence"]["sandbox"] == box.id
    assert c.statement(box.id) == (evidence, plan, said)  # from its record now
    box = c.create(source=warden.POOL_ONLY)
    wanted, kill = c.send(warden.STATEMENT, warden.put(box.id)), c.send(warden.KILL, warden.put(box.id))
    assert [c.receive()[0], c.receive()[0]] == [wanted, kill] and len(c.fds) == 1
    box = c.create(source=warden.POOL_ONLY)
    wanted = c.send(warden.STATEMENT, warden.put(box.id))
    assert c.receive(timeout=1)[0] == wanted  # nobody asked for anything else
    c.pool(4)
    assert harness.until(lambda: c.status().pooled == 4)
    box = c.create(source=warden.POOL_ONLY)
    twice = [c.send(warden.STATEMENT, warden.put(box.id)) for _ in range(2)]
    assert [c.receive()[0], c.receive()[0]] == twice and len(c.fds) == 4
    c.pool(0)


def test_a_sandbox_of_which_nothing_can_be_written_down_is_ended(c):
    c.pool(1)
    for _ in range(10):  # until the record went before it was completed
        assert harness.until(lambda: c.status().pooled == 1)
        box = c.create(source=warden.POOL_ONLY)
        os.unlink(f"/run/gabion/sbx-{box.slot:04}")
        wanted = c.send(warden.STATEMENT, warden.put(box.id))
        with pytest.raises(warden.WardenError, match="record"):
            assert c.receive()[0] == wanted
        if harness.until(lambda: box.id not in c.list(), 0.3):
            break
        c.kill(box.id)
    else:
        raise AssertionError("it goes on")
    assert not os.path.exists(f"/proc/{box.pid}")
    c.pool(0)


def test_idle_sandboxes_use_no_processor(c, w):
    boxes = [c.create() for _ in range(20)]
    time.sleep(0.3)  # the last one has begun to wait

    def ticks():
        return sum(map(int, pathlib.Path(f"/proc/{w.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    before, own = [c.usage(b.id).cpu_us for b in boxes], ticks()
    time.sleep(1)
    idle = ticks() - own
    # Of the warden, what the clock's ticks of 10 ms show: one of them may meet a reading for drift.
    assert [c.usage(b.id).cpu_us for b in boxes] == before and idle <= 1
