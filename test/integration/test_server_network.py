"""The network of sandboxes of a server: what the ceiling and the request allow, and nothing else; live updates, what is told
of it, and what happens when its parts are killed. The servers are on loopback, behind names of the operator's choice."""
import json
import os
import signal
import time

import egress_world as world
import harness
import pytest
import shim
from server import Server

NAME, OTHER, CLOSED = "api.example.com", "other.example.com", "evil.example.com"
QUICK_S = 5.0  # a refusal that takes longer looks like an outage
FETCH = "import urllib.request as u; print(u.urlopen('http://{}/py', timeout=10).read().decode())"


@pytest.fixture(scope="module")
def web():
    server = world.Web()
    yield server
    server.close()


def ceiling(folder, *rules):
    """A ceiling of a server, as a file."""
    path = folder / f"ceiling-{time.monotonic_ns()}.json"
    allow = [{"host": h, "ports": [80, 443]} if isinstance(h, str) else h for h in rules]
    path.write_text(json.dumps({"version": 1, "network": {"allow": allow}}))
    path.chmod(0o644)
    return str(path)


def options(folder, web, *more):
    return ["--ceiling", ceiling(folder, NAME, OTHER), "--resolve", f"{NAME}:80=127.0.0.1:{web.port}",
            "--resolve", f"{OTHER}:80=127.0.0.1:{web.port}", *more]


@pytest.fixture(scope="module")
def net(module_place, web):
    """One server with a ceiling of two names, for all tests that kill nothing."""
    before, known = harness.mounts(), set(harness.descendants(os.getpid()))
    with Server(module_place, *options(module_place, web, "--pool", "2")) as running:
        yield running
        assert running.stop() == 0, running.text()[-3000:]
    found = harness.wait_clean(before, known)
    if found:
        harness.kill_all(found, known)
        pytest.fail("left behind: " + ", ".join(found))


@pytest.fixture
def nothing_left_behind(request):
    """The server of this file outlives its tests; those with a server of their own look for themselves."""
    if "place" not in request.fixturenames:
        yield
        return
    before, known = harness.mounts(), set(harness.descendants(os.getpid()))
    yield
    found = harness.wait_clean(before, known)
    if found:
        harness.kill_all(found, known)
        pytest.fail("left behind: " + ", ".join(found))


@pytest.fixture
def api(net):
    client = net.client()
    yield client
    client.kill_all()


def sh(server, ident, script, **kw):
    with shim.Agent(f"{server.run}/agents/{ident}") as agent:
        begin = time.monotonic()
        r = agent.sh(script, **kw)
        return r._replace(out=r.out.decode(), err=r.err.decode()), time.monotonic() - begin


def curl(server, ident, host, more=""):
    """(exit code, status) of a request."""
    r, _ = sh(server, ident, f"curl -sS -m 10 -o /dev/null -w '%{{http_code}}' {more} http://{host}/c")
    return r.code, r.out


def egress(api, ident, want, what="egress"):
    """What was told of a sandbox, once `want` holds of some of it."""
    def found():
        all_of_it = api.get(f"/gabion/v1/sandboxes/{ident}/{what}").json[what]
        return all_of_it if any(map(want, all_of_it)) else None
    got = harness.until(found, 5)
    assert got, api.get(f"/gabion/v1/sandboxes/{ident}/{what}").text
    return got


def put(api, ident, **rules):
    return api.request("PUT", f"/sandboxes/{ident}/network", rules)


def test_an_allowed_name_works_and_is_told(net, api, web):
    ident = api.create()
    r, _ = sh(net, ident, f"curl -sS http://{NAME}/curl && /usr/bin/python3 -c \"{FETCH.format(NAME)}\"")
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
def test_everything_else_is_refused_at_once(net, api, client):
    ident = api.create()
    r, took = sh(net, ident, client)
    assert r.code != 0 and took < QUICK_S, (r, took)
    if "127.0.0.1" not in client:
        denial = egress(api, ident, lambda d: True, "denials")[0]
        assert denial["code"].startswith("net.") and denial["event"].startswith("evt_") and denial["rule"], denial
        assert denial["what"].removesuffix(":80") in client, denial


def test_datagrams_and_other_resolvers_reach_nobody(net, api):
    ident = api.create()
    r, _ = sh(net, ident, """/usr/bin/python3 -c "
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


def test_a_refused_request_has_the_event_of_its_record(place, web):
    rule = {"host": NAME, "ports": [80], "methods": ["GET"]}
    with Server(place, "--ceiling", ceiling(place, rule), "--resolve", f"{NAME}:80=127.0.0.1:{web.port}", "--pool", "0") as s:
        api = s.client()
        ident = api.create()
        r, _ = sh(s, ident, f"curl -sS http://{NAME}/ok; curl -sS -X POST -d x http://{NAME}/no")
        body = json.loads(r.out[r.out.index("{"):])
        assert "GET /ok" in r.out and body["code"] == "net.method_not_allowed", r
        denial = egress(api, ident, lambda d: d["code"] == "net.method_not_allowed", "denials")[0]
        assert denial["event"] == body["event"] and denial["side"] == "ceiling"


def test_tls_is_opened_and_trusted_where_the_ceiling_asks_for_it(place):
    web = world.Web(world.server_context(NAME))
    rule = {"host": NAME, "ports": [443], "methods": ["GET"]}
    bundle = world.authority()[1]
    try:
        with Server(place, "--ceiling", ceiling(place, rule), "--resolve", f"{NAME}:443=127.0.0.1:{web.port}",
                    "--ca-bundle", str(bundle), "--pool", "1") as s:
            api = s.client()
            for _ in range(2):  # a ready one, and one that is made
                ident = api.create()
                r, _ = sh(s, ident, f"curl -sS https://{NAME}/c && /usr/bin/python3 -c \"{FETCH.format(NAME)}\""
                          .replace("http://", "https://"))
                assert r.code == 0 and "GET /c" in r.out and "GET /py" in r.out, r
            assert [x[0] for x in web.requests] == ["GET"] * 4
    finally:
        web.close()


def test_the_request_narrows_what_the_ceiling_allows(net, api):
    ident = api.create(network={"allowOut": [NAME], "denyOut": ["0.0.0.0/0"]})
    assert curl(net, ident, NAME) == (0, "200")
    assert curl(net, ident, OTHER)[0] != 0
    denial = egress(api, ident, lambda d: True, "denials")[0]
    assert denial["side"] == "sandbox" and denial["what"].startswith(OTHER), denial


def test_the_ceiling_beats_the_request(net, api):
    ident = api.create(network={"allowOut": [CLOSED, NAME]})
    assert curl(net, ident, CLOSED)[0] != 0 and curl(net, ident, NAME) == (0, "200")
    assert egress(api, ident, lambda d: True, "denials")[0]["side"] == "ceiling"


def test_without_internet_access_there_is_no_network(net, api):
    ident = api.create(allow_internet_access=False)
    r, took = sh(net, ident, f"cat /proc/net/route | wc -l; curl -sS -m 20 http://{NAME}/")
    assert r.code != 0 and took < QUICK_S
    assert api.get(f"/gabion/v1/sandboxes/{ident}/evidence").json["network"]["egress"] == "none"
    refused = put(api, ident, allowOut=[NAME])
    assert refused.status == 409 and "without one" in refused.message
    assert put(api, ident, allow_internet_access=False).status == 204


def test_rules_of_a_living_sandbox_are_replaced(net, api):
    ident = api.create()
    old = api.get(f"/gabion/v1/sandboxes/{ident}/policy").json["hash"]
    assert curl(net, ident, NAME) == (0, "200") and curl(net, ident, OTHER) == (0, "200")
    assert put(api, ident, allowOut=[OTHER], allow_internet_access=False).status == 204
    assert curl(net, ident, NAME)[0] != 0 and curl(net, ident, OTHER) == (0, "200")
    now = api.get(f"/gabion/v1/sandboxes/{ident}/policy").json
    assert now["hash"] != old and now["policy"]["network"]["allow"][0]["host"] == OTHER
    assert put(api, ident, allow_internet_access=False).status == 204  # everything is closed
    assert curl(net, ident, OTHER)[0] != 0
    assert put(api, ident).status == 204  # and what was left out is open again, up to the ceiling
    assert curl(net, ident, NAME) == (0, "200") and curl(net, ident, CLOSED)[0] != 0
    assert [e["kind"] for e in api.events(ident)].count("policy.changed") == 3


SLOW = """
import socket, time
s = socket.create_connection(("{}", 80)); s.sendall(b"GET /slow HTTP/1.1\\r\\nHost: {}\\r\\n"); print("open", flush=True)
try:
    while True:
        s.sendall(b"X: y\\r\\n"); time.sleep(0.05)
except OSError: print("cut", flush=True)
"""


@pytest.mark.parametrize("drop", [False, True])
def test_open_connections_end_only_when_asked(net, api, drop):
    ident = api.create()
    with shim.Agent(f"{net.run}/agents/{ident}") as agent:
        number, _ = agent.start(["/usr/bin/python3", "-c", SLOW.format(NAME, NAME)])
        while agent.expect(shim.OUTPUT, shim.STDIN_CREDIT).body[1:] != b"open\n":
            pass
        assert put(api, ident, allow_internet_access=False, dropExisting=drop).status == 204
        if drop:
            assert agent.finish(number).out == b"cut\n"
        else:
            with pytest.raises(TimeoutError):
                agent.next(timeout=0.5)


def test_tenants_do_not_see_or_reach_each_other(net, api):
    made = api.post("/gabion/v1/tenants", {"name": f"team-{time.monotonic_ns()}"}).json
    key = api.post(f"/gabion/v1/tenants/{made['id']}/keys",
                   {"name": "k", "role": "admin"}).json
    other = net.client(key["key"])
    mine, theirs = api.create(), other.create()
    try:
        sh(net, theirs, "cd /tmp && /usr/bin/python3 -m http.server 8123 >/dev/null 2>&1 & sleep 0.7")
        for address in ("127.0.0.1", "10.200.0.2", "[fd00:6e77::2]"):
            assert sh(net, mine, f"curl -sS -m 5 http://{address}:8123/")[0].code == 7, address  # refused: its own loopback
        assert sh(net, theirs, "curl -sS -m 5 http://10.200.0.2:8123/")[0].code == 0
        sh(net, mine, f"curl -sS http://{CLOSED}/")
        egress(api, mine, lambda e: e.get("name") == CLOSED)
        for path in ("egress", "denials", "policy"):
            assert other.get(f"/gabion/v1/sandboxes/{mine}/{path}").status == 404
        assert put(other, mine, allowOut=[CLOSED]).status == 404
        assert not other.get(f"/gabion/v1/sandboxes/{theirs}/denials").json["denials"]
    finally:
        other.kill_all()


def test_a_ready_sandbox_gets_its_rules_when_it_is_claimed(net, api):
    for rules in ({"allowOut": [OTHER], "denyOut": ["0.0.0.0/0"]}, {"allowOut": [NAME], "denyOut": ["0.0.0.0/0"]}):
        time.sleep(0.5)  # until one is ready
        ident = api.create(network=rules)
        running = next(e for e in api.events(ident) if e["kind"] == "sandbox.running")
        assert running["data"]["from_pool"], running
        allowed = rules["allowOut"][0]
        assert curl(net, ident, allowed) == (0, "200")
        assert curl(net, ident, NAME if allowed == OTHER else OTHER)[0] != 0
        denials = egress(api, ident, lambda d: True, "denials")
        assert all("canary" not in d["what"] and d["sandbox"] == ident for d in denials), denials


def egress_pid(server):
    found = [pid for pid, name in harness.descendants(server.process.pid).items() if name == "gabion-egress"]
    return found[0] if len(found) == 1 else None


WATCH = """
import time, urllib.request
while True:
    try: print(urllib.request.urlopen("http://{}/w", timeout=5).status, flush=True)
    except OSError as e: print(type(getattr(e, "reason", e)).__name__, flush=True)
    time.sleep(0.02)
"""


def test_egress_and_warden_are_killed_and_sandboxes_go_on(place, web):
    with Server(place, *options(place, web, "--pool", "1")) as s:
        api = s.client()
        ready, made = api.create(), api.create(network={"allowOut": [NAME], "denyOut": ["0.0.0.0/0"]})
        with shim.Agent(f"{s.run}/agents/{made}") as agent:
            number, _ = agent.start(["/usr/bin/python3", "-c", WATCH.format(NAME)])

            def answers(right):
                """Waits until a request of the watcher inside ends so."""
                def look():
                    frame = agent.expect(shim.OUTPUT, shim.STDIN_CREDIT)
                    return frame.type == shim.OUTPUT and any(map(right, frame.body[1:].decode().split()))
                return harness.until(look, 10, 0)

            def well(answer):
                return answer == "200"

            def badly(answer):
                return answer in ("ConnectionRefusedError", "ConnectionResetError", "gaierror")

            assert answers(well), s.text()
            first = egress_pid(s)
            os.kill(first, signal.SIGKILL)
            assert answers(badly) and answers(well), s.text()
            assert egress_pid(s) not in (first, None)
            assert curl(s, ready, NAME) == (0, "200") and curl(s, made, OTHER)[0] != 0

            assert put(api, ready, allowOut=[OTHER], allow_internet_access=False).status == 204
            warden, second = s.pid_of("gabion-warden"), egress_pid(s)
            os.kill(warden, signal.SIGKILL)
            assert harness.until(lambda: (egress_pid(s) or second) != second, 10), s.text()
            s.wait_up()
            assert answers(well), s.text()
            assert curl(s, made, OTHER)[0] != 0  # by the same rules, also those that came later
            assert curl(s, ready, OTHER) == (0, "200") and curl(s, ready, NAME)[0] != 0
            assert put(api, made, allow_internet_access=False).status == 204
            assert answers(badly), s.text()
            egress(api, made, lambda d: d["code"] == "net.name_not_allowed", "denials")
        assert sorted(api.ids()) == sorted([ready, made])
        assert api.delete(f"/sandboxes/{made}").status == 204 and api.delete(f"/sandboxes/{ready}").status == 204


def test_source_addresses_are_those_of_the_tenant_or_the_server(place):
    seen = []
    web = world.Web(answer=lambda handler: (seen.append(handler.client_address[0]), world_answer(handler)))
    config = place / "server.yaml"
    try:
        config.write_text("source_addresses: { default: 127.0.0.77 }\n")
        config.chmod(0o644)
        with Server(place, *options(place, web, "--pool", "1", "--bind", "127.0.0.66", "--config", str(config))) as s:
            api = s.client()
            time.sleep(0.5)
            ident = api.create()
            assert curl(s, ident, NAME) == (0, "200")
            made = api.post("/gabion/v1/tenants", {"name": "red"}).json
            key = api.post(f"/gabion/v1/tenants/{made['id']}/keys",
                           {"name": "k", "role": "admin"}).json
            red = s.client(key["key"])
            assert curl(s, red.create(), NAME) == (0, "200")
            assert put(api, ident, allowOut=[NAME]).status == 204 and curl(s, ident, NAME) == (0, "200")
            assert seen == ["127.0.0.77", "127.0.0.66", "127.0.0.77"]
            red.kill_all()
    finally:
        web.close()


def world_answer(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "2")
    handler.end_headers()
    handler.wfile.write(b"ok")


@pytest.mark.parametrize("option, word", [(["--bind", "here"], "--bind"), (["--ca-bundle", "x"], "--ca-bundle"),
                                          (["--upstream-proxy", "ftp://x"], "--upstream-proxy"),
                                          (["--resolve", "nonsense"], "--resolve")])
def test_bad_options_are_named(place, option, word):
    s = Server(place, *option)
    with pytest.raises(AssertionError):
        s.start()
    s.process.wait(10)
    assert word in s.log.read_text()
