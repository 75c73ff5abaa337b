"""The control plane of the E2B protocol against a real server: every call that exists, and what it promises."""
import concurrent.futures
import datetime
import time
import urllib.parse

import harness
import pytest


@pytest.fixture
def api(server):
    client = server.client()
    yield client
    client.kill_all()


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def metadata(**pairs):
    """As SDKs encode it: each name and value, then the pairs, then the whole as a value of the query."""
    once = {urllib.parse.quote(k, safe=""): urllib.parse.quote(v, safe="") for k, v in pairs.items()}
    return "metadata=" + urllib.parse.quote(urllib.parse.urlencode(once), safe="")


def test_a_sandbox_is_created_seen_and_killed(api, server):
    reply = api.post("/v2/sandboxes", {"templateID": "base", "metadata": {"who": "me"}, "envVars": {"A": "1"}})
    assert reply.status == 201
    box = reply.json
    assert box["templateID"] == "base" and box["envdVersion"] == "0.6.13" and box["trafficAccessToken"] is None
    assert len(box["envdAccessToken"]) == 64 and box["domain"] == f"localhost:{server.address[1]}" or box["domain"] is None
    detail = api.get(f"/sandboxes/{box['sandboxID']}").json
    assert detail["state"] == "running" and detail["metadata"] == {"who": "me"}
    assert detail["envdAccessToken"] == box["envdAccessToken"]
    assert detail["lifecycle"] == {"autoResume": False, "onTimeout": "kill"}
    assert 298 < moment(detail["endAt"]) - time.time() <= 301
    assert (detail["cpuCount"], detail["memoryMB"], detail["diskSizeMB"]) == (1, 512, 1024)
    assert api.ids() == [box["sandboxID"]]
    assert api.delete(f"/sandboxes/{box['sandboxID']}").status == 204
    assert api.ids() == []
    gone = api.get(f"/sandboxes/{box['sandboxID']}")
    assert gone.status == 404 and gone.json["code"] == 404 and box["sandboxID"] in gone.message
    assert gone.json["sandbox"]["state"] == "gone" and gone.json["sandbox"]["reason"] == "killed"
    assert gone.json["sandbox"]["last_event"]["kind"] == "sandbox.ended"
    assert gone.json["request"] == gone.headers["X-Request-Id"]
    assert api.delete(f"/sandboxes/{box['sandboxID']}").status == 404


def test_the_first_version_lives_fifteen_seconds(api):
    box = api.post("/sandboxes", {"templateID": "base", "secure": True}).json
    detail = api.get(f"/sandboxes/{box['sandboxID']}").json
    assert 13 < moment(detail["endAt"]) - moment(detail["startedAt"]) <= 15
    assert api.get("/sandboxes").json[0]["sandboxID"] == box["sandboxID"]


def test_ids_of_old_sdks_and_names_are_understood(api):
    ident = api.create(name="my-box")
    assert api.get(f"/sandboxes/{ident}-gabion").json["sandboxID"] == ident
    assert api.get("/sandboxes/my-box").json["name"] == "my-box"
    taken = api.post("/v2/sandboxes", {"templateID": "base", "name": "my-box"})
    assert taken.status == 409 and "my-box" in taken.message
    assert api.delete("/sandboxes/my-box").status == 204
    again = api.create(name="my-box")
    assert again != ident and api.get("/sandboxes/my-box").json["sandboxID"] == again


def test_of_many_that_want_a_name_at_once_one_gets_it(api):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(api.post, "/v2/sandboxes", {"templateID": "base", "name": "wanted"}) for _ in range(8)]
        replies = [f.result() for f in asked]
    assert sorted(r.status for r in replies) == [201] + [409] * 7
    [mine] = [r.json["sandboxID"] for r in replies if r.status == 201]
    assert api.ids() == [mine] and api.delete(f"/sandboxes/{mine}").status == 204


def test_a_sandbox_ends_when_its_time_is_over(api):
    ident = api.create(timeout=1)
    assert harness.until(lambda: api.get(f"/sandboxes/{ident}").status == 404, 4)
    assert api.get(f"/sandboxes/{ident}").json["sandbox"]["reason"] == "expired"


def test_time_outs_can_be_moved_both_ways(api):
    ident = api.create(timeout=100)

    def left():
        return moment(api.get(f"/sandboxes/{ident}").json["endAt"]) - time.time()

    assert api.post(f"/sandboxes/{ident}/timeout", {"timeout": 500}).status == 204
    assert 498 < left() <= 501
    assert api.post(f"/sandboxes/{ident}/timeout", {"timeout": 50}).status == 204
    assert 48 < left() <= 51
    assert api.post(f"/sandboxes/{ident}/refreshes", {"duration": 10}).status == 204
    assert 48 < left() <= 51  # only ever longer
    assert api.post(f"/sandboxes/{ident}/refreshes", {"duration": 200}).status == 204
    assert 198 < left() <= 201
    assert api.post(f"/v2/sandboxes/{ident}/connect", {"timeout": 5}).status == 200
    assert 198 < left() <= 201
    assert api.post(f"/v2/sandboxes/{ident}/connect").json["sandboxID"] == ident
    assert 298 < left() <= 301
    assert api.post(f"/sandboxes/{ident}/connect", {"timeout": 400}).status == 200
    assert 398 < left() <= 401
    assert api.post(f"/sandboxes/{ident}/connect").status == 400
    assert api.post(f"/sandboxes/{ident}/timeout", {"timeout": 0}).status == 204
    assert harness.until(lambda: api.get(f"/sandboxes/{ident}").status == 404, 3)


def test_lists_are_filtered_sorted_and_cut_into_pages(api):
    made = [api.create(metadata={"n": str(i), "odd": str(i % 2), "k 1": "v&2=+ü"}) for i in range(5)]
    assert api.ids() == made[::-1]
    assert api.ids("?order=asc") == made
    assert api.ids("?" + metadata(odd="1")) == [made[3], made[1]]
    assert api.ids("?" + metadata(odd="1", n="3")) == [made[3]]
    assert api.ids("?" + metadata(**{"k 1": "v&2=+ü"})) == made[::-1]
    assert api.ids("?" + metadata(n="7")) == []
    assert api.get("/sandboxes?" + metadata(n="2")).json[0]["sandboxID"] == made[2]
    assert api.ids("?state=paused") == [] and api.ids("?state=running%2Cpaused") == made[::-1]
    assert api.ids("?template=host") == made[::-1] and api.ids("?template=other") == []
    third = api.get(f"/sandboxes/{made[2]}").json["startedAt"]
    assert api.ids("?startedAfter=" + urllib.parse.quote(third)) == made[:1:-1]
    pages, query = [], "?limit=2"
    for _ in range(3):
        reply = api.get("/v2/sandboxes" + query)
        pages.append([b["sandboxID"] for b in reply.json])
        assert reply.headers["X-Total-Running"] == "5"
        token = reply.headers["X-Next-Token"]
        query = f"?limit=2&nextToken={token}"
    assert pages == [made[:2:-1], [made[2], made[1]], [made[0]]] and token is None


def test_a_page_goes_on_although_its_end_is_gone(api):
    made = [api.create() for _ in range(3)]
    token = api.get("/v2/sandboxes?limit=2").headers["X-Next-Token"]
    api.delete(f"/sandboxes/{made[1]}")
    assert api.ids(f"?limit=2&nextToken={token}") == [made[0]]


def test_usage_and_history_can_be_seen(api):
    ident, other = api.create(), api.create()
    now = int(time.time())
    [metric] = api.get(f"/sandboxes/{ident}/metrics").json
    assert metric["memTotal"] == 512 << 20 and 0 < metric["memUsed"] < metric["memTotal"]
    assert abs(metric["timestampUnix"] - now) < 5
    assert api.get(f"/sandboxes/{ident}/metrics?start={now + 100}").json == []
    assert api.get(f"/sandboxes/{ident}/metrics?start={now - 100}&end={now + 100}").json
    both = api.get(f"/sandboxes/metrics?sandbox_ids={ident},{other},aaaaaaaaaaaaaaaaaaaa").json["sandboxes"]
    assert set(both) == {ident, other}
    api.delete(f"/sandboxes/{ident}")
    logs = api.get(f"/v2/sandboxes/{ident}/logs").json["logs"]
    assert [e["message"] for e in logs] == ["sandbox.create", "sandbox.running", "sandbox.ending", "sandbox.ended"]
    assert len(api.get(f"/v2/sandboxes/{ident}/logs?limit=1&direction=backward").json["logs"]) == 1
    assert api.get(f"/v2/sandboxes/{ident}/logs?level=error").json["logs"] == []
    old = api.get(f"/sandboxes/{ident}/logs?limit=2").json
    assert old["logs"][0]["line"].startswith("sandbox.create ") and len(old["logEntries"]) == 2


def test_the_network_of_a_request_never_goes_beyond_the_ceiling(api):
    ident = api.create(network={"allowOut": ["api.example.com"], "denyOut": ["0.0.0.0/0"], "allowPublicTraffic": False})
    policy = api.get(f"/gabion/v1/sandboxes/{ident}/policy").json
    assert policy["policy"]["network"] == {"default": "deny"} and policy["ceiling"]["network"] == {"default": "deny"}
    assert policy["requested"]["allowOut"] == ["api.example.com"]
    assert api.get(f"/sandboxes/{ident}").json["trafficAccessToken"]
    assert api.request("PUT", f"/sandboxes/{ident}/network", {"denyOut": ["10.0.0.0/8"]}).status == 204
    detail = api.get(f"/sandboxes/{ident}").json
    assert detail["network"] == {"denyOut": ["10.0.0.0/8"], "allowPublicTraffic": False}
    wrong = api.request("PUT", f"/sandboxes/{ident}/network", {"allowOut": ["not a host"]})
    assert wrong.status == 400 and "allowOut[0]" in wrong.message
    wrong = api.post("/v2/sandboxes", {"templateID": "base", "network": {"denyOut": ["example.com"]}})
    assert wrong.status == 400 and "denyOut[0]" in wrong.message


def test_what_does_not_exist_yet_says_so(api):
    ident = api.create()
    for path in ("pause", "resume", "fork", "snapshots"):
        reply = api.post(f"/sandboxes/{ident}/{path}")
        assert reply.status == 501 and reply.code == "not_implemented" and "not available" in reply.message
        assert api.post(f"/sandboxes/aaaaaaaaaaaaaaaaaaaa/{path}").status == 404
    for path in ("/snapshots", "/volumes", "/secrets"):
        assert api.get(path).status == 501
    for path in ("/v3/templates", "/volumes", "/secrets", "/templates/tags"):
        assert api.post(path).status == 501
    assert api.delete("/templates/s%3Adefault").status == 501
    for field in ({"autoPause": True}, {"volumeMounts": [{"name": "v", "path": "/v"}]}, {"iam": {}}):
        assert api.post("/v2/sandboxes", {"templateID": "base", **field}).status == 501
    assert api.ids() == [ident]


def test_templates_teams_and_keys_are_listed(api):
    [template] = api.get("/templates").json
    assert template["templateID"] == "base" and "host" in template["aliases"]
    assert api.get("/templates/aliases/base").json["templateID"] == "base"
    assert api.get("/templates/aliases/a%2Fb").status == 404
    assert api.post("/v2/sandboxes", {"templateID": "unknown"}).status == 404
    assert api.get("/teams").json[0]["name"] == "default"
    made = api.post("/api-keys", {"name": "second"})
    assert made.status == 201
    assert made.json["key"].startswith("e2b_" + made.json["mask"]["maskedValuePrefix"])
    assert [k["name"] for k in api.get("/api-keys").json] == ["first", "second"]
    second = api.server.client(made.json["key"])
    assert second.get("/sandboxes").status == 200
    assert second.get("/api-keys").status == 403  # a developer's
    assert api.delete(f"/api-keys/{made.json['id']}").status == 204
    assert second.get("/sandboxes").status == 401
    assert [k["name"] for k in api.get("/api-keys").json] == ["first"]


def test_additions_tell_what_is_behind_a_sandbox(api):
    ident = api.create()
    evidence = api.get(f"/gabion/v1/sandboxes/{ident}/evidence").json
    assert evidence["agent"]["NoNewPrivs"] == 1
    usage = api.get(f"/gabion/v1/sandboxes/{ident}/usage").json
    assert usage["state"] == "running" and usage["tasks"] >= 1 and usage["cpu_us"] > 0
    assert api.get(f"/gabion/v1/sandboxes/{ident}/denials").json["denials"] == []
    assert api.get(f"/gabion/v1/sandboxes/{ident}/egress").json["egress"] == []
    api.delete(f"/sandboxes/{ident}")
    usage = api.get(f"/gabion/v1/sandboxes/{ident}/usage").json
    assert usage["state"] == "gone" and usage["cpu_us"] > 0 and usage["memory_peak_bytes"] > 0
    assert api.get(f"/gabion/v1/sandboxes/{ident}/policy").status == 200
    gone = api.get(f"/gabion/v1/sandboxes/{ident}/evidence")
    assert gone.status == 404 and gone.json["error"]["sandbox"]["state"] == "gone"


def test_health_capacity_and_counters(api, server):
    ident = api.create()
    assert server.health() == {"status": "ok", "warden": True, "stopping": False, "version": server.health()["version"]}
    capacity = api.get("/gabion/v1/capacity").json
    assert capacity["accepting"] and capacity["tenant"]["used"]["sandboxes"] == 1
    assert capacity["machine"]["used"]["memory_bytes"] == 512 << 20
    text = api.get("/metrics").text
    assert "\ngabion_sandboxes 1\n" in text and 'gabion_tenant_sandboxes{tenant="default"} 1\n' in text
    assert 'route="/v2/sandboxes",code="2xx"' in text and "gabion_warden_up 1" in text
    assert all(line.startswith("#") or len(line.split(" ")) == 2 for line in text.splitlines())
    api.delete(f"/sandboxes/{ident}")
    assert api.get("/gabion/v1/capacity").json["tenant"]["used"]["sandboxes"] == 0


def test_a_client_that_goes_away_leaves_no_sandbox(api, server):
    import socket
    body = b'{"templateID":"base","timeout":3600,"name":"orphan"}'
    with socket.create_connection(server.address) as s:
        s.sendall(b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n%s"
                  % (server.key.encode(), len(body), body))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert harness.until(lambda: api.get("/gabion/v1/capacity").json["tenant"]["used"]["sandboxes"] == 0, 5)
    assert api.ids() == []


def test_requests_that_name_an_unknown_sandbox_are_answered_as_the_proxy_would(server):
    reply = server.client("").get("/health", headers={"E2b-Sandbox-Id": "aaaaaaaaaaaaaaaaaaaa", "E2b-Sandbox-Port": "49983"})
    assert reply.status == 502
    want = {"sandboxId": "aaaaaaaaaaaaaaaaaaaa", "message": "The sandbox was not found", "code": 502}
    assert reply.json == {**want, "request": reply.headers["X-Request-Id"]}
