"""Servers with a network of their own making: opened TLS, source addresses, parts that are killed, bad options."""
import json
import os
import signal
import time

import egress_world as world
import harness
import pytest
import shim
from server import Server
from server_network import FETCH, NAME, OTHER, ceiling, curl, egress, options, put, sh


@pytest.fixture
def web():
    server = world.Web()
    yield server
    server.close()


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


def test_attempts_that_nobody_asked_for_are_kept(place, web):
    with Server(place, *options(place, web, "--pool", "0")) as s:
        api = s.client()
        ident, daemon = api.create(), s.pid_of("gabiond")
        os.kill(daemon, signal.SIGKILL)
        assert curl(s, ident, NAME) == (0, "200") and curl(s, ident, "evil.example.com")[0] != 0
        assert harness.until(lambda: [p for p, n in harness.descendants(s.process.pid).items()
                                      if n == "gabiond" and p != daemon], 10)
        s.wait_up()
        egress(api, ident, lambda d: d["what"] == "evil.example.com", "denials")
        egress(api, ident, lambda e: e.get("name") == NAME)
        assert api.delete(f"/sandboxes/{ident}").status == 204
        egress(api, ident, lambda e: e.get("name") == NAME)  # after its end too


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
