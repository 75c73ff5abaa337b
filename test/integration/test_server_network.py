"""The network of sandboxes of a server: what the ceiling and the request allow, and nothing else; live updates, and what is
told of it. The servers are on loopback, behind names of the operator's choice."""
import json
import os
import pathlib
import time

import egress_world as world
import harness
import pytest
import shim
from server import Server
from server_network import CLOSED, FETCH, NAME, OTHER, curl, egress, options, put, sh

QUICK_S = 5.0  # a refusal that takes longer looks like an outage


@pytest.fixture(scope="module")
def web():
    running = world.Web(answer=answer)
    yield running
    running.close()


def answer(handler):
    """Tells what was asked; /slow after a while."""
    text = f"{handler.command} {handler.path}\n".encode()
    time.sleep(0.7 if handler.path == "/slow" else 0)
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(text)))
    handler.end_headers()
    handler.wfile.write(text)


@pytest.fixture(scope="module")
def server(module_place, web):
    """One server with a ceiling of two names."""
    before, known = harness.mounts(), set(harness.descendants(os.getpid()))
    with Server(module_place, *options(module_place, web, "--pool", "2")) as running:
        yield running
        assert running.stop() == 0, running.text()[-3000:]
    found = harness.wait_clean(before, known)
    if found:
        harness.kill_all(found, known)
        pytest.fail("left behind: " + ", ".join(found))


@pytest.fixture
def api(server):
    client = server.client()
    yield client
    client.kill_all()


def test_an_allowed_name_works_and_is_told(server, api, web):
    ident = api.create()
    r, _ = sh(server, ident, f"curl -sS http://{NAME}/curl && /usr/bin/python3 -c \"{FETCH.format(NAME)}\"")
    assert r.code == 0 and "GET /curl" in r.out and "GET /py" in r.out, r
    mine = egress(api, ident, lambda e: e["kind"] == "http" or e.get("phase") == "close")
    one = next(e for e in mine if e.get("port") == 80)
    assert (one["sandbox"], one["name"], one["decision"]) == (ident, NAME, "allow"), one
    assert not api.get(f"/gabion/v1/sandboxes/{ident}/denials").json["denials"]
    policy = api.get(f"/gabion/v1/sandboxes/{ident}/policy").json
    assert all(e["policy"] == policy["hash"] for e in mine if "policy" in e)
    evidence = api.get(f"/gabion/v1/sandboxes/{ident}/evidence").json
    assert evidence["network"]["egress"] == "by policy" and evidence["network"]["canaries_refused"] == 5
    assert evidence["network"]["ceiling"]["allow"], evidence["network"]


@pytest.mark.parametrize("client", [f"curl -sS -m 20 http://{CLOSED}/", "curl -sS -m 20 http://192.0.2.1/",
                                    "curl -sS -m 20 http://169.254.169.254/latest/", f"curl -sS -m 20 http://{NAME}:81/",
                                    "curl -sS -m 20 http://127.0.0.1:1/", "curl -sS -m 20 'http://[2001:db8::1]/'"])
def test_everything_else_is_refused_at_once(server, api, client):
    ident = api.create()
    r, took = sh(server, ident, client)
    assert r.code != 0 and took < QUICK_S, (r, took)
    if "127.0.0.1" not in client:
        denial = egress(api, ident, lambda d: True, "denials")[0]
        assert denial["code"].startswith("net.") and denial["event"].startswith("evt_") and denial["rule"], denial
        assert denial["what"].removesuffix(":80") in client, denial


def test_datagrams_and_other_resolvers_reach_nobody(server, api):
    ident = api.create()
    r, _ = sh(server, ident, """/usr/bin/python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.sendto(b'x', ('192.0.2.1', 443)); print('sent')
except PermissionError: print('refused')
try:
    socket.getaddrinfo('evil.example.com', 443); print('found')
except socket.gaierror: print('no name')
" """)
    assert r.out.split("\n")[:2] == ["refused", "no name"], r


def test_the_request_narrows_what_the_ceiling_allows(server, api):
    ident = api.create(network={"allowOut": [NAME], "denyOut": ["0.0.0.0/0"]})
    assert curl(server, ident, NAME) == (0, "200")
    assert curl(server, ident, OTHER)[0] != 0
    denial = egress(api, ident, lambda d: True, "denials")[0]
    assert denial["side"] == "sandbox" and denial["what"].startswith(OTHER), denial


def test_the_ceiling_beats_the_request(server, api):
    ident = api.create(network={"allowOut": [CLOSED, NAME]})
    assert curl(server, ident, CLOSED)[0] != 0 and curl(server, ident, NAME) == (0, "200")
    assert egress(api, ident, lambda d: True, "denials")[0]["side"] == "ceiling"


def test_without_internet_access_there_is_no_network(server, api):
    ident = api.create(allow_internet_access=False)
    r, took = sh(server, ident, f"cat /proc/net/route | wc -l; curl -sS -m 20 http://{NAME}/")
    assert r.code != 0 and took < QUICK_S
    assert api.get(f"/gabion/v1/sandboxes/{ident}/evidence").json["network"]["egress"] == "none"
    refused = put(api, ident, allowOut=[NAME])
    assert refused.status == 409 and "without one" in refused.message
    assert put(api, ident, allow_internet_access=False).status == 204


def test_rules_of_a_living_sandbox_are_replaced(server, api):
    ident = api.create()
    old = api.get(f"/gabion/v1/sandboxes/{ident}/policy").json["hash"]
    assert curl(server, ident, NAME) == (0, "200") and curl(server, ident, OTHER) == (0, "200")
    assert put(api, ident, allowOut=[OTHER], allow_internet_access=False).status == 204
    assert curl(server, ident, NAME)[0] != 0 and curl(server, ident, OTHER) == (0, "200")
    now = api.get(f"/gabion/v1/sandboxes/{ident}/policy").json
    assert now["hash"] != old and now["policy"]["network"]["allow"][0]["host"] == OTHER
    assert put(api, ident, allow_internet_access=False).status == 204  # everything is closed
    assert curl(server, ident, OTHER)[0] != 0
    assert put(api, ident).status == 204  # and what was left out is open again, up to the ceiling
    assert curl(server, ident, NAME) == (0, "200") and curl(server, ident, CLOSED)[0] != 0
    assert [e["kind"] for e in api.events(ident)].count("policy.changed") == 3


@pytest.mark.parametrize("drop", [False, True])
def test_open_connections_end_only_when_asked(server, api, web, drop):
    ident, asked = api.create(), len(web.requests)
    with shim.Agent(f"{server.run}/agents/{ident}") as agent:
        number, _ = agent.start(["curl", "-sS", f"http://{NAME}/slow"])
        assert harness.until(lambda: len(web.requests) > asked, 5)
        assert put(api, ident, allow_internet_access=False, dropExisting=drop).status == 204
        r = agent.finish(number)
        assert (r.code != 0, b"GET /slow" in r.out) == (drop, not drop), r


def test_tenants_do_not_see_or_reach_each_other(server, api):
    made = api.post("/gabion/v1/tenants", {"name": f"team-{time.monotonic_ns()}"}).json
    key = api.post(f"/gabion/v1/tenants/{made['id']}/keys",
                   {"name": "k", "role": "admin"}).json
    other = server.client(key["key"])
    mine, theirs = api.create(), other.create()
    try:
        sh(server, theirs, "cd /tmp && /usr/bin/python3 -m http.server 8123 >/dev/null 2>&1 & sleep 0.7")
        for address in ("127.0.0.1", "10.200.0.2", "[fd00:6e77::2]"):
            assert sh(server, mine, f"curl -sS -m 5 http://{address}:8123/")[0].code == 7, address  # refused: its own loopback
        assert sh(server, theirs, "curl -sS -m 5 http://10.200.0.2:8123/")[0].code == 0
        sh(server, mine, f"curl -sS http://{CLOSED}/")
        egress(api, mine, lambda e: e.get("name") == CLOSED)
        for path in ("egress", "denials", "policy"):
            assert other.get(f"/gabion/v1/sandboxes/{mine}/{path}").status == 404
        assert put(other, mine, allowOut=[CLOSED]).status == 404
        assert not other.get(f"/gabion/v1/sandboxes/{theirs}/denials").json["denials"]
    finally:
        other.kill_all()


def test_a_ready_sandbox_gets_its_rules_when_it_is_claimed(server, api):
    for rules in ({"allowOut": [OTHER], "denyOut": ["0.0.0.0/0"]}, {"allowOut": [NAME], "denyOut": ["0.0.0.0/0"]}):
        time.sleep(0.5)  # until one is ready
        ident = api.create(network=rules)
        running = next(e for e in api.events(ident) if e["kind"] == "sandbox.running")
        assert running["data"]["from_pool"], running
        allowed = rules["allowOut"][0]
        assert curl(server, ident, allowed) == (0, "200")
        assert curl(server, ident, NAME if allowed == OTHER else OTHER)[0] != 0
        denials = egress(api, ident, lambda d: True, "denials")
        assert all("canary" not in d["what"] and d["sandbox"] == ident for d in denials), denials


def test_rules_that_come_right_after_the_start_stay_written_down(api):
    """What was read back of a claimed sandbox is written a moment later, and must not undo what was changed meanwhile."""
    for _ in range(3):
        time.sleep(0.3)  # until one is ready
        ident = api.create(network={"allowOut": [NAME], "denyOut": ["0.0.0.0/0"]})
        assert put(api, ident, allowOut=[OTHER], denyOut=["0.0.0.0/0"]).status == 204
        time.sleep(0.02)
        records = [json.loads(p.read_text()) for p in pathlib.Path(harness.RUN_DIR).glob("sbx-*") if ident in p.read_text()]
        [record] = records
        assert [a["host"] for a in record["egress"]["policy"]["network"]["allow"]] == [OTHER] and record["evidence_hash"]
        assert api.delete(f"/sandboxes/{ident}").status == 204


FLOOD = """
import errno, socket
ends = set()
for port in range(1001, 3501):
    s = socket.socket()
    s.settimeout(10)
    try:
        s.connect(("192.0.2.1", port)); s.recv(1); ends.add("closed")
    except OSError as e: ends.add(errno.errorcode.get(e.errno, str(e)))
    s.close()
print(*ends)
"""


def test_a_flood_of_attempts_is_bounded_and_harms_nobody(server, api):
    calm, wild = api.create(), api.create()
    sh(server, calm, f"curl -sS http://{CLOSED}/")
    r, _ = sh(server, wild, f"/usr/bin/python3 -c '{FLOOD}'")
    assert r.code == 0 and set(r.out.split()) <= {"ECONNRESET", "closed"}, r
    last = egress(api, wild, lambda e: e.get("port") == 3500)
    assert len(last) == 1000 and last[0]["port"] == 2501  # the newest
    assert any(d["what"] == CLOSED for d in egress(api, calm, lambda d: True, "denials"))
    assert not server.lines("the warden is gone") and not server.lines("attempts of sandboxes were forgotten while nobody asked")
