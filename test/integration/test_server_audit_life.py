"""A server whose notary dies, one without an audit log, and one that ends what is no longer as planned."""
import contextlib
import os
import random
import signal
import subprocess
import threading
import time

import egress_world
import pytest
import server as server_module
import test_watch
from audit_log import assert_whole, audit, fields, find, records
from harness import until
from server_audit import Box, agent_of, lift_memory, log_of, of, tenant_of


MANY = 60


def refused_all(server, operator, box):
    assert until(lambda: "the notary has gone away" in server.text())
    assert operator.post("/v2/sandboxes", {"templateID": "base"}).status == 503
    refused = box.start("/bin/true")
    assert refused[-1]["error"]["code"] == "permission_denied", refused
    reply = operator.post("/gabion/v1/keys", {"name": "x"})
    assert reply.status == 503 and reply.code == "audit"
    assert operator.post(f"/sandboxes/{box.id}/timeout", {"timeout": 50}).status == 503
    assert operator.get("/v2/sandboxes").status == 200


FETCH = ("import sys, urllib.request as u\n"
         "try: u.urlopen('http://' + sys.argv[1] + '/', timeout=5)\n"
         "except OSError as e: sys.exit(str(e))\n")


@pytest.fixture
def web():
    server = egress_world.Web()
    yield server
    server.close()


def denied_in(log, tenant):
    return {r["unmapped"]["object"] for r in records(log, tenant)
            if r["class_uid"] in (4001, 4002, 4003) and r["action_id"] == 2}


def test_a_whole_session_reads_as_one_timeline(place, web):
    """Created, three commands, two allowed and three denied contacts, a refused call, killed."""
    with server_module.Server(place, "--ceiling", "public", "--resolve", f"web.example:80=127.0.0.1:{web.port}") as server:
        operator = server.client()
        box = Box(operator, allow_internet_access=False, network={"allowOut": ["web.example"]})
        assert box.run("/usr/bin/python3", "-c", FETCH, "web.example") == 0
        script = f"import subprocess, sys\nfor h in ('web.example', 'evil.example', 'paste.example', '169.254.169.254'):" \
                 f" subprocess.run([sys.executable, '-c', {FETCH!r}, h])"
        assert box.run("/usr/bin/python3", "-c", script) == 0
        box.run("/usr/bin/unshare", "--user", "true")
        log, tenant = log_of(server), tenant_of(server, operator)
        assert until(lambda: denied_in(log, tenant) == {"evil.example", "paste.example", "169.254.169.254"})
        box.kill()
        assert until(lambda: "sandbox.removed" in of(log, tenant, box.id))
        shown = audit("show", "--log", log, "--tenant", tenant, box.id)
        print(shown.out)
        net = [r for r in records(log, tenant) if r["class_uid"] in (4001, 4002, 4003)]
        assert len([r for r in net if r["action_id"] == 1 and r["class_uid"] != 4003]) >= 2
        lines = shown.lines
        own = [line for line in lines if "  net." not in line]  # what egress tells may come behind the end
        assert "sandbox.created" in lines[0] and "sandbox.removed" in own[-1]
        assert sum("exec.started" in line for line in lines) == 3 and sum("call.refused" in line for line in lines) >= 1
        assert_whole(log)


def test_a_deleted_rule_of_the_network_freezes_the_sandbox(place, web):
    with server_module.Server(place, "--ceiling", "public") as server:
        operator = server.client()
        box = Box(operator, allow_internet_access=False, network={"allowOut": ["web.example"]})
        log, tenant = log_of(server), tenant_of(server, operator)
        test_watch.delete_rule_of(agent_of(server, operator, box))
        assert until(lambda: find(log, "sandbox.frozen", tenant), 2.5)
        assert find(log, "drift", tenant)[0]["unmapped"]["object"] == "network rules"


def test_drift_is_found_at_once_among_many(place):
    """More sandboxes than the schedule reads in that time. Each is changed in another way."""
    ceiling = place / "ceiling.yaml"
    ceiling.write_text("version: 1\nnetwork: { allow: [ { host: web.example } ] }\n")
    with server_module.Server(place, "--ceiling", str(ceiling)) as server:
        operator = server.client()
        net = Box(operator, allow_internet_access=False, network={"allowOut": ["web.example"]})
        boxes = [Box(operator, allow_internet_access=False) for _ in range(MANY)]
        log, tenant = log_of(server), tenant_of(server, operator)
        time.sleep(2)  # until each was seen once
        agents = [agent_of(server, operator, b) for b in (net, boxes[MANY // 2], boxes[-1])]
        began = time.monotonic()
        test_watch.delete_rule_of(agents[0])
        lift_memory(agents[1])
        subprocess.run(["nsenter", "-t", str(agents[2]), "-m", "mount", "-o", "remount,bind,rw", "/"], check=True)
        found = until(lambda: len(find(log, "sandbox.frozen", tenant)) == 3, 2.5)
        print(time.monotonic() - began)
        assert found, [d["unmapped"]["object"] for d in find(log, "drift", tenant)]
        assert {d["unmapped"]["object"] for d in find(log, "drift", tenant)} == {"network rules", "cgroup.memory", "mount"}


def test_without_the_notary_nothing_new_happens(place):
    with server_module.Server(place) as server:
        operator = server.client()
        box = Box(operator)
        assert box.run("true") == 0
        notary = server.pid_of("gabion-notary")
        supervisor = server.process.pid
        os.kill(supervisor, signal.SIGSTOP)  # it would start another one
        try:
            os.kill(notary, signal.SIGKILL)
            refused_all(server, operator, box)
            box.kill()  # never waits for a record
        finally:
            os.kill(supervisor, signal.SIGCONT)
        tenant, log = tenant_of(server, operator), log_of(server)
        assert until(lambda: operator.post("/gabion/v1/keys", {"name": "x"}).status == 201, 10)
        # what happened meanwhile is recorded when there is a notary again
        assert until(lambda: "sandbox.removed" in of(log, tenant, box.id))
        assert_whole(log)


def kill_notary(server):
    with contextlib.suppress(AssertionError, ProcessLookupError):
        os.kill(server.pid_of("gabion-notary"), signal.SIGKILL)


def test_no_acknowledged_record_is_lost_when_the_notary_is_killed(place):
    """At random moments, GABION_KILLS times (6; tools/soak does 200)."""
    with server_module.Server(place) as server:
        operator = server.client()
        made, rng = [], random.Random(6)
        for _ in range(int(os.environ.get("GABION_KILLS", "6"))):
            killer = threading.Timer(rng.random() * 0.05, kill_notary, [server])
            killer.start()
            with contextlib.suppress(AssertionError):
                box = Box(operator)
                made.append(box.id)
                box.run("true")
            killer.join()
            assert until(lambda: operator.post("/gabion/v1/keys", {"name": "x"}).status == 201, 20)
            operator.kill_all()
        tenant = tenant_of(server, operator)
        text = "".join(f.read_text() for f in (log_of(server) / tenant).glob("*.log"))
        assert made and not [b for b in made if b not in text]
        assert_whole(log_of(server))


def test_off_means_off(place):
    with server_module.Server(place, "--audit", "off") as server:
        operator = server.client()
        box = Box(operator)
        assert box.run("true") == 0
        assert not (server.data / "audit").exists()
        reply = operator.get("/gabion/v1/audit")
        assert reply.status == 404 and "no audit log" in reply.message
        with pytest.raises(AssertionError):
            server.pid_of("gabion-notary")


def test_drift_may_end_the_sandbox(place):
    policy = place / "policy.yaml"
    policy.write_text("version: 1\nmonitor: { on_drift: kill }\n")
    with server_module.Server(place, "--policy", str(policy)) as server:
        operator = server.client()
        box = Box(operator)
        lift_memory(agent_of(server, operator, box))
        log, tenant = log_of(server), tenant_of(server, operator)
        assert until(lambda: "sandbox.removed" in of(log, tenant, box.id), 5)
        assert fields(find(log, "drift", tenant)[0])["action"] == "kill"
