"""Parts of the service are killed: sandboxes go on, the store agrees with what runs, and nothing leaks.

SERVER_SECONDS: how long the random test kills (default 5; tools/soak 300)."""
import concurrent.futures
import http.client
import os
import random
import signal
import sqlite3
import time

import harness
from server import Reaper, Server

SECONDS = float(os.environ.get("SERVER_SECONDS", "5"))


def agents():
    """Host pids of the first processes of our sandboxes. Whoever is lost comes back to us, so all are below us."""
    found = set()
    for pid in harness.descendants(os.getpid()):
        try:
            if harness.status_of(pid).get("NSpid", "").split()[1:] == ["1"]:
                found.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def rows(server, state):
    """Ids of the store's rows in a state (1 runs, 3 gone), read from outside."""
    with sqlite3.connect(f"file:{server.data}/gabion.db?mode=ro", uri=True) as db:
        return {row[0] for row in db.execute("SELECT id FROM sandbox WHERE state=?", (state,))}


def kill(server, program):
    pid = server.pid_of(program)
    os.kill(pid, signal.SIGKILL)
    assert harness.until(lambda: harness.parents().get(pid, (0, "", "Z"))[2] == "Z", 5)


def wait_again(server, program, old):
    def fresh():
        found = [p for p, name in harness.descendants(server.process.pid).items() if name == program and p != old]
        return found[0] if found else None

    assert harness.until(fresh, 10), server.text()
    server.wait_up()


def test_sandboxes_outlive_the_api(place):
    with Server(place, "--pool", "0") as server:
        api = server.client()
        made = [api.create(metadata={"n": str(i)}) for i in range(3)]
        token = api.get(f"/sandboxes/{made[0]}").json["envdAccessToken"]
        before, old = agents(), server.pid_of("gabiond")
        kill(server, "gabiond")
        wait_again(server, "gabiond", old)
        assert agents() == before
        assert api.ids() == made[::-1]
        assert api.get(f"/sandboxes/{made[0]}").json["envdAccessToken"] == token
        assert api.get("/gabion/v1/capacity").json["tenant"]["used"]["sandboxes"] == 3
        assert [e["kind"] for e in api.events(made[0])] == ["sandbox.create", "sandbox.running"]
        assert api.delete(f"/sandboxes/{made[0]}").status == 204
        assert api.create()
        assert server.stop() == 0


def test_sandboxes_outlive_the_warden(place):
    with Server(place, "--pool", "0") as server:
        api = server.client()
        made = [api.create() for _ in range(3)]
        before, old = agents(), server.pid_of("gabion-warden")
        kill(server, "gabion-warden")
        wait_again(server, "gabion-warden", old)
        assert agents() == before
        assert api.ids() == made[::-1]
        assert api.delete(f"/sandboxes/{made[1]}").status == 204
        assert api.ids() == [made[2], made[0]]
        assert server.stop() == 0


def test_sandboxes_outlive_everything_and_end_when_their_time_is_over(place):
    with Server(place, "--pool", "0") as server, Reaper():
        api = server.client()
        long, short = api.create(timeout=300), api.create(timeout=2)
        before = agents()
        server.kill()  # takes both others with it
        assert harness.until(lambda: not {"gabiond", "gabion-warden"} & set(harness.descendants(os.getpid()).values()), 5)
        assert agents() == before
        time.sleep(2)
        server.start()
        assert harness.until(lambda: api.ids() == [long], 5)
        assert api.get(f"/sandboxes/{short}").json["sandbox"]["reason"] == "expired"
        assert server.stop() == 0


def test_what_is_gone_meanwhile_is_lost_and_what_nobody_owns_is_ended(place):
    with Server(place, "--pool", "0") as server:
        api = server.client()
        dies, owned = api.create(), api.create()
        pid = server.pid_of("gabiond")
        time.sleep(0.2)  # what it gathers is committed: a write would find the store locked
        os.kill(pid, signal.SIGSTOP)
        victims = agents()
        with sqlite3.connect(f"{server.data}/gabion.db") as db:  # as if the row had been lost
            db.execute("UPDATE sandbox SET state=3, reason='killed' WHERE id=?", (owned,))
        os.kill(pid, signal.SIGKILL)
        wait_again(server, "gabiond", pid)
        assert harness.until(lambda: len(agents() & victims) == 1, 5)
        assert api.ids() == [dies]
        [agent] = agents() & victims
        os.kill(agent, signal.SIGKILL)  # the sandbox ends by itself
        assert harness.until(lambda: api.ids() == [], 5)
        assert api.get(f"/sandboxes/{dies}").json["sandbox"]["reason"] in ("lost", "killed", "oom")
        assert api.get("/gabion/v1/capacity").json["tenant"]["used"]["sandboxes"] == 0
        assert server.stop() == 0


def ask_in_vain(api):
    try:
        api.post("/v2/sandboxes", {"templateID": "base", "timeout": 300})
    except (OSError, http.client.HTTPException):  # cut off
        pass


def test_what_was_recorded_is_kept_when_its_answer_is_cut_off_and_what_was_not_is_ended(place):
    """The part that answers last is stopped, then gabiond is killed: with the warden stopped there is a row, with the notary
    stopped there is a sandbox, and only the first of both may be somebody's."""
    with Server(place, "--pool", "2") as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        api = server.client()
        for stopped, kept in (("gabion-warden", 1), ("gabion-notary", 0)):
            assert harness.until(lambda: len(agents()) == 2, 10)  # the pool
            late, old = server.pid_of(stopped), server.pid_of("gabiond")
            os.kill(late, signal.SIGSTOP)
            asked = pool.submit(ask_in_vain, api)
            try:
                assert harness.until(lambda: len(rows(server, 1)) == 1, 5 if kept else 0.5) == bool(kept)
                kill(server, "gabiond")
            finally:
                os.kill(late, signal.SIGCONT)
            asked.result()
            wait_again(server, "gabiond", old)
            assert harness.until(lambda: len(agents()) == 2 + kept, 10), agents()
            living = api.ids()
            assert len(living) == kept and set(living) == rows(server, 1)
            for ident in living:
                assert api.events(ident)[0]["kind"] == "sandbox.create"
                assert api.delete(f"/sandboxes/{ident}").status == 204
        assert server.stop() == 0


def test_an_orderly_stop_ends_sandboxes_unless_they_are_to_be_kept(place):
    with Server(place, "--pool", "0") as server, Reaper():
        ident = server.client().create()
        assert server.stop() == 0
        assert agents() == set() and rows(server, 3) == {ident}
        server.options = ("--pool", "0", "--keep")
        server.start()
        kept = server.client().create()
        before = agents()
        assert server.stop() == 0
        assert agents() == before and rows(server, 1) == {kept}
        server.options = ("--pool", "0")
        server.start()
        assert server.client().ids() == [kept]
        assert server.stop() == 0


def test_a_full_queue_and_a_full_machine_say_so(place):
    settings = place / "settings.yaml"
    settings.write_text("capacity: { sandboxes: 2 }\nqueue: { waiting: 2, waiting_tenant: 2, wait: 500ms }\npool: 0\n")
    settings.chmod(0o644)
    with Server(place, "--config", settings) as server:
        api = server.client()
        first = api.create()
        api.create()
        began = time.monotonic()
        late = api.post("/v2/sandboxes", {"templateID": "base"})
        assert (late.status, late.code) == (429, "quota.capacity") and 0.4 < time.monotonic() - began < 3
        assert int(late.headers["Retry-After"]) >= 1
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(api.post, "/v2/sandboxes", {"templateID": "base"}) for _ in range(4)]
            time.sleep(0.1)
            api.delete(f"/sandboxes/{first}")  # one of those that wait gets its place
            replies = [f.result() for f in waiting]
        assert sorted(r.status for r in replies) == [201, 429, 429, 429]
        assert {r.code for r in replies if r.status == 429} == {"quota.capacity", "quota.queue"}
        assert server.stop() == 0


def test_killing_at_random_moments_loses_and_leaks_nothing(place):
    rng = random.Random(7)
    with Server(place, "--pool", "2") as server:
        api, stop = server.client(), time.monotonic() + SECONDS + 2

        def work(n):
            """Creates and kills, and takes every honest answer. Returns what was promised and not taken back, and how
            many answers to a create were cut off: of those nobody knows the sandbox, but the list does."""
            held, cut = [], 0
            while time.monotonic() < stop:
                creating = True
                try:
                    reply = api.post("/v2/sandboxes", {"templateID": "base", "timeout": 600})
                    creating = False
                    if reply.status == 201:
                        held.append(reply.json["sandboxID"])
                    if len(held) > 2 and api.delete(f"/sandboxes/{held[0]}").status in (204, 404):
                        held.pop(0)
                except (OSError, http.client.HTTPException):  # a connection cut in the middle
                    cut += creating
                    time.sleep(0.02)
            return held, cut

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            workers = [pool.submit(work, n) for n in range(3)]
            while time.monotonic() < stop - 2:
                time.sleep(rng.uniform(0.05, 0.8))
                victim = rng.choice(["gabiond", "gabion-warden"])
                for pid, name in harness.descendants(server.process.pid).items():
                    if name == victim and harness.parents().get(pid, (0,))[0] == server.process.pid:
                        os.kill(pid, signal.SIGKILL)
            held = {ident for w in workers for ident in w.result()[0]}
            cut = sum(w.result()[1] for w in workers)
        server.wait_up()

        def listed():
            """All of them: whoever was cut off may have left more than a page."""
            return {b["sandboxID"] for b in api.get("/sandboxes").json}
        assert harness.until(lambda: listed() == rows(server, 1) and not rows(server, 0), 8)
        time.sleep(4)  # a round of comparing, for those that were being made when somebody died
        living = listed()
        assert len(living - held) <= cut, f"{living - held}"
        lost = held - living
        assert not [i for i in lost if api.get(f"/sandboxes/{i}").status != 404]
        assert server.stop() == 0
        assert rows(server, 1) == set() and agents() == set()
