"""kill -9 of the warden at any moment: sandboxes go on and are found again, or are ended; nothing is left behind.

WARDEN_ROUNDS: how often the random test repeats (default 20; make soak runs 200)."""
import os
import pathlib
import random
import subprocess
import threading
import time

import harness
import pytest
import shim
import warden

ROUNDS = int(os.environ.get("WARDEN_ROUNDS", "20"))
BOXES = 50


def groups_left():
    """Names of control groups but for those of others, whose own come and go while we look."""
    seen = []
    for _ in range(3):
        seen.append({os.path.basename(g) for g in harness.control_groups()} - harness.others())
        time.sleep(0.02)
    return set.intersection(*seen)


@pytest.fixture
def w():
    with warden.Warden() as one:
        yield one


def test_sandboxes_and_commands_go_on(w):
    with w.client() as c:
        boxes = [c.create(hostname=f"box{i}") for i in range(5)]
    agents = [shim.Agent(b.socket) for b in boxes]
    commands = [a.start(["/bin/sh", "-c", "while :; do echo tick; sleep 0.02; done"]) for a in agents]
    w.kill()
    for a in agents:
        a.expect(shim.OUTPUT)  # the daemon's connection is the agent's, not the warden's
    w.start()
    with w.client() as c:
        found = c.list()
        assert {b.id: b.pid for b in boxes} == {i: one.pid for i, one in found.items()}
        for b, a, (number, _) in zip(boxes, agents, commands):
            assert a.list()[number][1] is False
            assert c.usage(b.id).tasks >= 3
        assert c.evidence(boxes[0].id)
        with shim.Agent(boxes[0].socket) as a:
            assert a.run("hostname").out == b"box0\n"
        c.launch(boxes[0].id, shim.ROOT)  # the gate is found again too
        c.freeze(boxes[1].id)
        w.kill()
        w.start()
    with w.client() as c:
        assert c.list()[boxes[1].id].state == warden.FROZEN
        c.thaw(boxes[1].id)
        for b in boxes:
            assert c.kill(b.id).reason == warden.KILLED
        assert c.list() == {}
    for a in agents:
        a.close()


def one_dead_one_alive(w):
    """Two sandboxes of a warden that was killed, and then one of them."""
    with w.client() as c:
        one, two = c.create(), c.create()
    w.kill()
    os.kill(one.pid, 9)
    assert harness.until(lambda: not os.path.exists(f"/proc/{one.pid}"))
    return one, two


def test_a_sandbox_that_died_meanwhile_is_cleaned_up(w):
    one, two = one_dead_one_alive(w)
    w.start()
    with w.client() as c:
        assert set(c.list()) == {two.id}
    assert not os.path.exists(one.socket) and not os.path.exists(f"/run/gabion/sbx-{one.slot:04}")
    assert f"sandbox {one.id} was lost" in w.log.read_text()


def test_another_process_with_the_pid_is_not_the_sandbox(w):
    with w.client() as c:
        b = c.create()
    w.kill()
    record = pathlib.Path(f"/run/gabion/sbx-{b.slot:04}")
    record.write_text(record.read_text().replace(f'"pid":{b.pid}', f'"pid":{os.getpid()}'))
    w.start()
    with w.client() as c:
        assert c.list() == {}
    assert harness.until(lambda: not os.path.exists(f"/proc/{b.pid}"))


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '{"version":2}', '{"version":1,"id":7}'])
def test_a_broken_record_is_ended_not_trusted(w, text):
    with w.client() as c:
        b = c.create()
    w.kill()
    pathlib.Path(f"/run/gabion/sbx-{b.slot:04}").write_text(text)
    w.start()
    with w.client() as c:
        assert c.list() == {}
    if text[0] == "{":
        assert harness.until(lambda: not os.path.exists(f"/proc/{b.pid}"))
        assert not [g for g in harness.control_groups() if g.endswith(f"sbx-{b.slot:04}")]
    else:  # not ours by its first character: as the slot of a dead `gabion run`, it is the next run's to sweep
        os.kill(b.pid, 9)
        assert harness.until(lambda: not os.path.exists(f"/proc/{b.pid}"))
        assert harness.run("true").code == 0


def test_gabion_run_leaves_the_wardens_sandboxes_alone(w):
    with w.client() as c:
        b = c.create()
    w.kill()
    for _ in range(3):
        assert harness.run("true").code == 0  # each sweeps what dead supervisors left
    w.start()
    with w.client() as c, shim.Agent(b.socket) as a:
        assert set(c.list()) == {b.id} and a.run("true").code == 0


def test_two_wardens_do_not_meet(w):
    with warden.Warden() as other, other.client() as d, w.client() as c:
        mine, theirs = c.create(), d.create()
        w.kill()
        w.start()
        with w.client() as again:
            assert set(again.list()) == {mine.id}
        assert set(d.list()) == {theirs.id}


def test_what_a_warden_left_whose_directory_is_gone_goes_too(w):
    """Its machine stopped, and /run was a disk. But what lives is never another's to judge."""
    dead, alive = one_dead_one_alive(w)
    os.rename(w.run, w.run + ".away")
    with warden.Warden():
        assert not os.path.exists(f"/run/gabion/sbx-{dead.slot:04}")
        assert os.path.exists(f"/proc/{alive.pid}") and os.path.exists(f"/run/gabion/sbx-{alive.slot:04}")
    os.rename(w.run + ".away", w.run)
    w.start()
    with w.client() as c:
        assert set(c.list()) == {alive.id}


def test_one_directory_one_warden(w):
    second = subprocess.run([warden.WARDEN, "--run", w.run], capture_output=True, text=True, timeout=20, check=False)
    assert second.returncode == 1 and "another warden" in second.stderr


def test_pool_members_do_not_survive(w):
    with w.client() as c:
        c.pool(5)
        assert harness.until(lambda: c.status().pooled == 5)
        taken = c.create(source=warden.POOL_ONLY)
    w.kill()
    w.start()
    with w.client() as c:
        assert set(c.list()) == {taken.id} and c.status().pooled == 0
        with shim.Agent(taken.socket) as a:
            assert a.run("true").code == 0
        assert c.call(warden.CHECK, warden.put(taken.id))[0] == 0  # it is watched, with or without a statement
    assert groups_left() == {f"sbx-{taken.slot:04}"}


class Load:
    """Creates, uses and ends sandboxes over one connection until the warden dies."""

    def __init__(self, w, seed):
        self.w, self.random = w, random.Random(seed)
        self.created, self.asked, self.ended = {}, set(), set()

    def run(self):
        try:
            with self.w.client() as c:
                self.work(c)
        except (warden.Gone, TimeoutError):
            pass

    def work(self, c):
        serials = {}
        for _ in range(BOXES):
            ident = warden.new_id()
            self.asked.add(ident)
            serials[c.ask_create(ident)] = ident
        while serials:
            serial, body = c.receive()
            ident = serials.pop(serial)
            self.created[ident] = c.created(ident, body)
            if self.random.random() < 0.3:
                self.end(c, serials)

    def end(self, c, serials):
        """Ends one, while others are still being made: replies come in any order."""
        ident = self.random.choice(sorted(set(self.created) - self.ended))
        self.ended.add(ident)
        serial = c.send(warden.KILL, warden.put(ident))
        while True:
            got, body = c.receive()
            if got == serial:
                return
            other = serials.pop(got)
            self.created[other] = c.created(other, body)


def test_random_moments(w):
    rng = random.Random(20261115)
    for n in range(ROUNDS):
        load = Load(w, n)
        t = threading.Thread(target=load.run)
        t.start()
        time.sleep(rng.uniform(0, 0.5))
        with_commands = [b for b in load.created.copy().values() if b.id not in load.ended][:5]
        held = {}
        for b in with_commands:
            try:
                a = shim.Agent(b.socket)
                held[b.id] = (a, a.start(["sleep", "1000"])[0])
            except (OSError, EOFError, shim.AgentError):
                pass  # it was ended meanwhile
        w.kill()
        t.join()
        w.start()
        with w.client() as c:
            found = c.list()
            assert set(found) <= load.asked, f"round {n}"
            # Whatever was there and nobody asked to end is there; what was asked to end may have been.
            for ident, b in load.created.items():
                if ident not in load.ended:
                    assert found.get(ident) and found[ident].pid == b.pid, f"round {n}: {ident} is lost"
            for ident in found:
                with shim.Agent(f"{w.run}/agents/{ident}") as a:
                    assert a.run("echo", "ok").out == b"ok\n", f"round {n}"
            for ident, (a, number) in held.items():
                if ident in found:
                    assert a.list()[number][1] is False
                a.close()
            slots = {f"sbx-{one.slot:04}" for one in found.values()}
            assert groups_left() == slots, f"round {n}"
            assert harness.until(lambda: set(os.listdir("/run/gabion")) - harness.others() == slots, 5), f"round {n}"
            assert set(os.listdir(f"{w.run}/agents")) == set(os.listdir(f"{w.run}/gates")) == set(found)
            for ident in found:
                c.kill(ident)
        assert harness.until(lambda: set(harness.descendants(os.getpid())) == {w.process.pid}), n
