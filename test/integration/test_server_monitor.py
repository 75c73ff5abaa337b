"""Rules of `monitor` and `filesystem.watch` over sandboxes of a server. One server, whose policy has them all."""
import os
import signal

import egress_world
import pytest
import server as server_module
from audit_log import assert_whole, fields, records
from harness import until
from server_audit import Box, log_of, tenant_of

POLICY = """
version: 1
filesystem: { watch: [ /home/user/watched ] }
monitor:
  refused_calls: { over: 4, within: 5s, action: kill }
  programs: { expect: [ sh, cat, mkdir, sleep, unshare, python3 ], action: log }
  hosts: { expect: [ web.example ], action: freeze }
  writes: { action: freeze }
  resources: { pids: 40, action: kill }
"""
SOON_S = 2.5
NETWORK = {"allow_internet_access": False, "network": {"allowOut": ["web.example"]}}


@pytest.fixture(scope="module")
def server(module_place):
    web, file = egress_world.Web(), module_place / "policy.yaml"
    file.write_text(POLICY)
    ceiling = module_place / "ceiling.yaml"
    ceiling.write_text("version: 1\nnetwork: { allow: [ { host: web.example } ] }\n")
    with server_module.Server(module_place, "--policy", str(file), "--ceiling", str(ceiling), "--resolve",
                              f"web.example:80=127.0.0.1:{web.port}") as running:
        yield running
        assert_whole(log_of(running))
        assert running.stop() == 0, running.text()[-3000:]
    web.close()


@pytest.fixture
def operator(server):
    yield server.client()
    server.client().kill_all()


def about(server, operator, box, code):
    """Records of a kind about a sandbox."""
    return [r for r in records(log_of(server), tenant_of(server, operator))
            if r["metadata"]["event_code"] == code and r["device"].get("container", {}).get("uid") == box.id]


def alert_of(server, operator, box, rule):
    return until(lambda: [a for a in about(server, operator, box, "alert") if a["firewall_rule"]["uid"] == rule], SOON_S)


def why(operator, box):
    return operator.get(f"/sandboxes/{box.id}").json.get("frozen")


def later(box, script):
    """In the background: whoever is frozen or ended does not answer any more."""
    assert box.run("sh", "-c", f"(sleep 0.2; {script}) >/dev/null 2>&1 &") == 0


def ended(operator, box):
    """Why it is gone."""
    reply = operator.get(f"/sandboxes/{box.id}")
    return reply.status == 404 and reply.json["sandbox"].get("reason")


def test_a_write_below_a_watched_path_freezes(server, operator):
    """With a network and without; what was frozen says why, to inspect as to those who want to use it, and also after a
    restart of gabiond."""
    for more in (NETWORK, {}):
        box = Box(operator, **more)
        assert box.run("sh", "-c", "mkdir watched; echo x >elsewhere; cat elsewhere") == 0
        assert why(operator, box) is None
        later(box, "echo x >watched/new; sleep 60")
        frozen = until(lambda b=box: why(operator, b), SOON_S)
        assert (frozen["rule"], frozen["object"]) == ("monitor.writes", "/home/user/watched/new")
        found = alert_of(server, operator, box, "monitor.writes")
        assert fields(found[0])["action"] == "freeze"
        assert fields(about(server, operator, box, "sandbox.frozen")[0])["reason"] == found[0]["metadata"]["uid"]
        assert [f["file"]["path"] for f in about(server, operator, box, "file.written")] == ["/home/user/watched/new"]
        reply = operator.get("/health", headers=box.headers())
        assert reply.status == 409 and "stands still" in reply.text and reply.json["sandbox"]["state"] == "frozen"
    os.kill(server.pid_of("gabiond"), signal.SIGKILL)
    server.wait_up()
    again = until(lambda: why(operator, box), 10)
    assert {**again, "since": 0} == {**frozen, "since": 0}


def test_an_unexpected_program_is_told_and_goes_on(server, operator):
    box = Box(operator)
    assert box.run("sh", "-c", "cat /dev/null; /usr/bin/env true") == 0
    assert alert_of(server, operator, box, "monitor.programs")
    assert until(lambda: len(about(server, operator, box, "alert")) == 2)
    told = about(server, operator, box, "alert")
    assert {a["unmapped"]["object"] for a in told} == {"/usr/bin/env", "/usr/bin/true"}
    assert {fields(a)["action"] for a in told} == {"log"} and why(operator, box) is None
    assert [e["data"]["rule"] for e in operator.get(f"/gabion/v1/events?sandbox={box.id}").json["events"]
            if e["kind"] == "alert"] == ["monitor.programs"] * 2


def test_a_host_that_is_not_expected_freezes(server, operator):
    box = Box(operator, **NETWORK)
    look = "python3 -c 'import socket; socket.getaddrinfo(\"{}\", 80)'".format
    assert box.run("sh", "-c", look("web.example")) == 0
    later(box, look("evil.example") + "; sleep 60")
    assert until(lambda: why(operator, box), SOON_S)["rule"] == "monitor.hosts"
    assert alert_of(server, operator, box, "monitor.hosts")[0]["unmapped"]["object"] == "evil.example"


@pytest.mark.parametrize(("rule", "script"), [
    ("monitor.refused_calls", "while :; do unshare -U true; done"),
    ("monitor.resources", "for i in $(seq 60); do sleep 60 & done; wait")])
def test_what_ends_the_sandbox(server, operator, rule, script):
    """With its reason, and whatever becomes of gabiond's own record, the alert is there."""
    box, quiet = Box(operator), Box(operator)
    later(box, script)
    assert until(lambda: ended(operator, box), 5) == "killed_by_policy"
    assert fields(alert_of(server, operator, box, rule)[0])["action"] == "kill"
    assert until(lambda: about(server, operator, box, "sandbox.removed"))
    assert quiet.run("sh", "-c", "cat /dev/null") == 0 and not about(server, operator, quiet, "alert")


def test_a_new_warden_goes_on_watching(server, operator):
    box, other = Box(operator, **NETWORK), Box(operator)
    assert box.run("mkdir", "watched") == 0 and other.run("unshare", "-U", "true") == 1
    os.kill(server.pid_of("gabion-warden"), signal.SIGKILL)
    assert until(lambda: "sandboxes were found again" in server.text(), 10)
    server.wait_up()
    later(box, "env true; echo x >watched/y; sleep 60")
    assert alert_of(server, operator, box, "monitor.programs")
    assert until(lambda: why(operator, box), SOON_S)["rule"] == "monitor.writes"
    later(other, "while :; do unshare -U true; done")
    assert until(lambda: ended(operator, other), 5) == "killed_by_policy"
