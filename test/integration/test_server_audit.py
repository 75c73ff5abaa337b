"""The audit log of a server: what it has, what it must not have, who reads it, and what happens without it."""
import base64
import contextlib
import http.client
import json
import re
import secrets
import subprocess
import time

import harness
import pytest
import server as server_module
from audit_log import assert_whole, fields, find, verify
from harness import until
from server_audit import Box, agent_of, lift_memory, log_of, new_tenant, of, tenant_of

SOON_S = 2.5  # a second between two looks, and the test's own


@pytest.fixture
def operator(server):
    return server.client()


def test_a_session_is_one_timeline(server, operator):
    tenant, key = new_tenant(operator)
    box = Box(key("developer"))
    assert [box.run("/bin/sh", "-c", f"exit {n}") for n in range(3)] == [0, 1, 2]
    box.run("/usr/bin/unshare", "-U", "true")
    box.kill()
    log = log_of(server)
    assert until(lambda: "sandbox.removed" in of(log, tenant, box.id))
    got = of(log, tenant, box.id)
    assert got[0] == "sandbox.created" and got[-2:] == ["sandbox.ended", "sandbox.removed"]
    assert sorted(got[1:-2]) == sorted(["evidence", "call.refused"] + 4 * ["exec.started", "exec.ended"])
    created = find(log, "sandbox.created", tenant)[0]
    assert fields(created)["memory_bytes"] > 0 and created["policy"]["uid"].startswith("sha256:")
    ended = [(e["process"]["name"], fields(e)["exit_code"]) for e in find(log, "exec.ended", tenant)]
    assert ended[:3] == [("sh", 0), ("sh", 1), ("sh", 2)] and ended[3][0] == "unshare"
    assert all(fields(e)["category"] == "shell" for e in find(log, "exec.started", tenant)[:3])
    last = find(log, "sandbox.ended", tenant)[0]
    assert fields(last)["reason"] == "killed" and fields(last)["duration_ms"] > 0
    assert {i["kind"]: i["result"] for i in find(log, "sandbox.removed", tenant)[0]["unmapped"]["items"]}["cgroup"] == "removed"
    assert_whole(log)


def test_admin_and_operator_access_is_recorded(server, operator):
    tenant, key = new_tenant(operator)
    log, own = log_of(server), tenant_of(server, operator)
    made = until(lambda: (log / tenant).exists() and find(log, "admin", tenant))
    assert {a["unmapped"]["object"] for a in made} == {"tenant.created"} and made[0]["actor"]["user"]["uid"]
    developer = key("developer")
    created = until(lambda: [a for a in find(log, "admin", tenant) if a["unmapped"]["object"] == "key.created"])
    assert fields(created[0])["role"] == "developer"
    calls = {a["unmapped"]["object"] for a in find(log, "admin", own)}
    assert {"POST /gabion/v1/tenants", "POST /gabion/v1/tenants/{tenantID}/keys"} <= calls
    assert developer.get("/gabion/v1/tenants").status == 403
    refused = until(lambda: [a for a in find(log, "admin", tenant) if a["action_id"] == 2])
    assert refused[0]["status_code"] == "api.forbidden" and refused[0]["unmapped"]["object"] == "GET /gabion/v1/tenants"
    assert server.client("e2b_" + "0" * 40).get("/sandboxes").status == 401
    assert until(lambda: [a for a in find(log, "admin", "system") if a.get("status_code") == "api.unauthorized"])


def test_everybody_reads_the_own_chain_only(server, operator):
    (red, red_key), (blue, blue_key) = new_tenant(operator), new_tenant(operator)
    boxes = {red: Box(red_key("developer")), blue: Box(blue_key("developer"))}
    for tenant, auditor in ((red, red_key("auditor")), (blue, blue_key("auditor"))):
        page = auditor.get("/gabion/v1/audit?limit=1000")
        assert page.status == 200, page
        own, others = (boxes[tenant].id, next(b.id for t, b in boxes.items() if t != tenant))
        assert own in page.text and others not in page.text and page.json["head"].startswith(f"gabion/{tenant}\n")
        assert {r["metadata"]["tenant_uid"] for r in page.json["records"]} == {tenant}
        for other in ({red, blue} - {tenant}) | {"default", "system"}:
            assert auditor.get(f"/gabion/v1/audit?tenant={other}").status == 403
        assert auditor.get(f"/gabion/v1/sandboxes/{others}/dossier").status == 404
        # reads, and changes nothing
        for method, path in (("POST", "/v2/sandboxes"), ("DELETE", f"/sandboxes/{own}"), ("POST", "/gabion/v1/keys"),
                             ("PUT", f"/sandboxes/{own}/network"), ("POST", f"/sandboxes/{own}/timeout")):
            assert auditor.request(method, path, {}).status == 403, (method, path)
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert auditor.request(method, "/gabion/v1/audit", {}).status == 405
    assert red_key("developer", verbs=["read", "create"]).get("/gabion/v1/audit").status == 403
    for box in boxes.values():
        box.kill()


def test_pages_are_the_file(server, operator):
    """What the API gives is what the file has, byte by byte, also in small pages."""
    tenant, key = new_tenant(operator)
    auditor = key("auditor")

    def pages():
        got, after = [], 0
        for _ in range(50):
            page = auditor.get(f"/gabion/v1/audit?limit=2&after={after}")
            lines = re.search(r'"records":\[(.*)\],"next":', page.text, re.S)[1]
            got += [line for line in re.split(r",(?={\"action_id)", lines) if line]
            if page.json["next"] == 0:
                break
            after = page.json["next"] - 1
        return got

    assert until(lambda: len(pages()) >= 3)
    got = pages()
    have = [line for f in sorted((log_of(server) / tenant).glob("*.log")) for line in f.read_text().splitlines()]
    assert got == have[:len(got)]


def test_a_dossier_of_a_sandbox_verifies(server, operator, tmp_path):
    tenant, key = new_tenant(operator)
    box = Box(key("developer"))
    assert box.run("true") == 0
    box.kill()
    assert until(lambda: "sandbox.removed" in of(log_of(server), tenant, box.id))
    reply = key("auditor").get(f"/gabion/v1/sandboxes/{box.id}/dossier")
    assert reply.status == 200, reply
    file = tmp_path / "dossier.json"
    file.write_bytes(reply.body)
    public = log_of(server) / "keys/signing.pub"
    r = harness.gabion("verify", "--key", public, file)
    assert r.code == 0, r
    payload = json.loads(base64.b64decode(reply.json["payload"]))
    start = json.loads(payload["start"])
    assert set(start) == {"evidence", "plan", "policy"} and start["evidence"]["sandbox"] == box.id
    assert json.loads(payload["end"])["sandbox"] == box.id
    r = harness.gabion("dossier", "--socket", f"{server.run}/notary/socket", "--tenant", tenant, box.id)
    assert r.code == 0 and json.loads(r.out)["payloadType"] == reply.json["payloadType"]
    file.write_bytes(reply.body.replace(reply.json["payload"][100:104].encode(), b"AAAA", 1))
    assert harness.gabion("verify", "--key", public, file).code != 0


CANARY = "canary-" + secrets.token_hex(12)


def test_content_is_nowhere_in_the_log(server, operator):
    tenant, key = new_tenant(operator)
    developer = key("developer")
    box = Box(developer, envVars={"SECRET": CANARY + "-box"}, metadata={"note": CANARY + "-metadata"})
    box.run("/bin/sh", "-c", f"echo {CANARY}-output; echo {CANARY}-file >/tmp/file; exit 0", f"{CANARY}-argument",
            envs={"TOKEN": CANARY + "-variable"})
    for method, body in (("POST", f"{CANARY}-content".encode()), ("GET", None)):
        with contextlib.closing(http.client.HTTPConnection(*server.address, timeout=20)) as c:
            c.request(method, "/files?path=/home/user/up&username=user", body,
                      {**box.headers(), "Content-Type": "application/octet-stream"})
            assert c.getresponse().status == 200
    server.client("e2b_" + CANARY).get("/sandboxes")
    developer.get(f"/sandboxes/{CANARY}-path?x={CANARY}-query")
    box.kill()
    log = log_of(server)
    assert until(lambda: "sandbox.removed" in of(log, tenant, box.id))
    secret = [CANARY, developer.key, developer.key[4:], operator.key, box.token, (server.data / "server.key").read_text()]
    for file in log.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not [s for s in secret if s.encode() in data], file
    assert box.id.encode() in b"".join(f.read_bytes() for f in (log / tenant).glob("*.log"))


def test_the_api_cannot_touch_the_log(server):
    """It runs as another user than the notary, and may not even look into the directory."""
    daemon, notary = server.pid_of("gabiond"), server.pid_of("gabion-notary")
    uids = [harness.status_of(p)["Uid"].split()[0] for p in (daemon, notary)]
    assert uids[0] == str(server_module.UID) and "0" not in uids and uids[0] != uids[1]
    mode = log_of(server).stat()
    assert mode.st_mode & 0o077 == 0 and str(mode.st_uid) == uids[1]
    assert harness.status_of(notary)["CapPrm"].strip("0\t\n") == ""


# --- drift ---

def remount(pid):
    subprocess.run(["nsenter", "-t", str(pid), "-m", "mount", "-o", "remount,bind,rw", "/usr"], check=True)


@pytest.mark.parametrize("change,control", [(lift_memory, "cgroup.memory"), (remount, "mount")])
def test_drift_freezes_a_sandbox_and_is_named(server, operator, change, control):
    tenant, key = new_tenant(operator)
    box, other = Box(key("developer")), Box(key("developer"))
    assert box.run("true") == 0
    auditor, log = key("auditor"), log_of(server)
    reply = auditor.post(f"/gabion/v1/sandboxes/{box.id}/check")
    assert reply.status == 200 and reply.json == {"sandbox": box.id, "drift": False, "control": None, "found": None}
    change(agent_of(server, operator, box))
    began = time.monotonic()
    found = until(lambda: find(log, "sandbox.frozen", tenant), SOON_S)
    assert found and time.monotonic() - began < SOON_S
    drift = find(log, "drift", tenant)
    assert len(drift) == 1 and drift[0]["unmapped"]["object"] == control and fields(drift[0])["action"] == "freeze"
    assert drift[0]["device"]["container"]["uid"] == box.id
    assert other.run("true") == 0  # nobody else suffers
    box.kill()
    other.kill()


def test_a_check_on_demand_finds_drift_at_once(server, operator):
    tenant, key = new_tenant(operator)
    box, auditor = Box(key("developer")), key("auditor")
    pid = agent_of(server, operator, box)
    assert box.run("true") == 0
    lift_memory(pid)
    reply = auditor.post(f"/gabion/v1/sandboxes/{box.id}/check")
    assert reply.status == 200 and reply.json["drift"] is True and reply.json["control"] == "cgroup.memory", reply
    assert until(lambda: find(log_of(server), "drift", tenant))
    box.kill()
    assert auditor.post(f"/gabion/v1/sandboxes/{box.id}/check").status == 404


def test_work_is_no_drift(server, operator):
    """Commands of both users that come and go, through several looks."""
    tenant, key = new_tenant(operator)
    box = Box(key("developer"))
    box.run("/bin/sh", "-c", "end=$(( $(date +%s) + 3 )); while [ $(date +%s) -lt $end ]; do "
                             "for i in 1 2 3 4 5 6; do /bin/true & done; wait; done")
    assert not find(log_of(server), "drift", tenant)
    box.kill()


def test_the_whole_log_verifies(server):
    """Last: after everything that the other tests did to this server."""
    r = verify(log_of(server))
    assert r.code == 0 and "BAD" not in r.out, r
