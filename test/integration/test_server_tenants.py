"""Tenants do not see each other, keys do what they may and no more, and quotas hold."""
import concurrent.futures
import datetime
import http.client
import json
import secrets
import time

import harness
import pytest

NOBODY = "aaaaaaaaaaaaaaaaaaaa"


class Tenant:
    def __init__(self, operator, **fields):
        self.name = "t-" + secrets.token_hex(4)
        reply = operator.post("/gabion/v1/tenants", {"name": self.name, **fields})
        assert reply.status == 201, reply
        self.id, self.operator = reply.json["id"], operator
        self.admin = self.key("admin")

    def key(self, role, **fields):
        reply = self.operator.post(f"/gabion/v1/tenants/{self.name}/keys", {"name": role, "role": role, **fields})
        assert reply.status == 201, reply
        return self.operator.server.client(reply.json["key"])


@pytest.fixture
def operator(server):
    return server.client()


@pytest.fixture
def tenant(operator):
    made = []

    def make(**fields):
        made.append(Tenant(operator, **fields))
        return made[-1]

    yield make
    for t in made:
        t.admin.kill_all()


@pytest.fixture
def red(tenant):
    return tenant()


@pytest.fixture
def blue(tenant):
    return tenant()


def after(seconds):
    return datetime.datetime.fromtimestamp(time.time() + seconds, datetime.timezone.utc).isoformat()


CALLS = [  # every call that names a sandbox; what a stranger gets must be what nobody gets
    ("GET", "/sandboxes/{}", None),
    ("DELETE", "/sandboxes/{}", None),
    ("POST", "/sandboxes/{}/timeout", {"timeout": 1}),
    ("POST", "/sandboxes/{}/refreshes", {"duration": 1}),
    ("POST", "/sandboxes/{}/connect", {"timeout": 1}),
    ("POST", "/v2/sandboxes/{}/connect", {}),
    ("PUT", "/sandboxes/{}/network", {}),
    ("GET", "/sandboxes/{}/metrics", None),
    ("GET", "/sandboxes/{}/logs", None),
    ("GET", "/v2/sandboxes/{}/logs", None),
    ("POST", "/sandboxes/{}/pause", {}),
    ("POST", "/sandboxes/{}/resume", {}),
    ("POST", "/sandboxes/{}/fork", {}),
    ("POST", "/sandboxes/{}/snapshots", {}),
    ("GET", "/gabion/v1/sandboxes/{}/policy", None),
    ("GET", "/gabion/v1/sandboxes/{}/evidence", None),
    ("GET", "/gabion/v1/sandboxes/{}/denials", None),
    ("GET", "/gabion/v1/sandboxes/{}/egress", None),
    ("GET", "/gabion/v1/sandboxes/{}/usage", None),
]


def same(reply, ident):
    """A reply without what must differ: ids and the number of the request."""
    return reply.status, reply.text.replace(ident, "ID").replace(reply.headers["X-Request-Id"], "REQ")


@pytest.mark.parametrize("method, path, body", CALLS, ids=[f"{c[0]}-{c[1]}" for c in CALLS])
def test_another_tenants_sandbox_is_as_good_as_none(red, blue, operator, method, path, body):
    ident = red.admin.create(name="secret-name")
    for stranger in (blue.admin, operator):
        got = stranger.request(method, path.format(ident), body)
        assert got.status == 404, f"{method} {path}: {got}"
        assert same(got, ident) == same(stranger.request(method, path.format(NOBODY), body), NOBODY)
        named = stranger.request(method, path.format("secret-name"), body)
        assert named.status == 404 and ident not in named.text
    assert red.admin.ids() == [ident]  # and nobody has touched it


def test_lists_and_sums_have_nothing_of_others(red, blue, operator):
    ident = red.admin.create(name="secret-name", metadata={"whose": "red"})
    for stranger in (blue.admin, operator):
        assert stranger.get(f"/sandboxes/metrics?sandbox_ids={ident}").json == {"sandboxes": {}}
        assert stranger.ids() == [] and stranger.get("/sandboxes").json == [] and stranger.ids("?metadata=whose%3Dred") == []
        assert stranger.get(f"/gabion/v1/events?after=0&sandbox={ident}").json["events"] == []
    assert blue.admin.create(name="secret-name") != ident  # names are each tenant's own


def test_ended_sandboxes_of_others_are_hidden_too(red, blue):
    ident = red.admin.create()
    red.admin.delete(f"/sandboxes/{ident}")
    assert red.admin.get(f"/v2/sandboxes/{ident}/logs").status == 200
    for path in ("/v2/sandboxes/{}/logs", "/gabion/v1/sandboxes/{}/usage", "/gabion/v1/sandboxes/{}/policy", "/sandboxes/{}"):
        got = blue.admin.get(path.format(ident))
        assert same(got, ident) == same(blue.admin.get(path.format(NOBODY)), NOBODY)


def test_pages_of_others_cannot_be_turned(red, blue):
    for _ in range(3):
        red.admin.create()
    token = red.admin.get("/v2/sandboxes?limit=1").headers["X-Next-Token"]
    assert blue.admin.ids(f"?limit=1&nextToken={token}") == []


def test_tokens_of_sandboxes_differ(red, blue):
    replies = [t.admin.post("/v2/sandboxes", {"templateID": "base"}).json for t in (red, red, blue)]
    assert len({r["envdAccessToken"] for r in replies}) == 3


def test_metrics_and_capacity_tell_a_tenant_only_about_itself(red, blue, operator):
    red.admin.create()
    text = blue.admin.get("/metrics").text
    assert red.name not in text and "default" not in text and "gabion_sandboxes " not in text and "route=" not in text
    assert f'gabion_tenant_sandboxes{{tenant="{blue.name}"}} 0' in text
    capacity = blue.admin.get("/gabion/v1/capacity").json
    assert capacity["tenant"]["used"]["sandboxes"] == 0 and "machine" not in capacity
    assert f'gabion_tenant_sandboxes{{tenant="{red.name}"}} 1' in operator.get("/metrics").text


def test_keys_of_others_cannot_be_seen_or_revoked(red, blue):
    key = blue.admin.get("/gabion/v1/keys").json[0]
    assert key["id"] not in red.admin.get("/gabion/v1/keys").text + red.admin.get("/api-keys").text
    for path in ("/gabion/v1/keys/", "/api-keys/"):
        assert red.admin.delete(path + key["id"]).status == 404
    assert blue.admin.get("/sandboxes").status == 200


def test_only_operators_administer_tenants(red, operator):
    for method, path, body in (("GET", "/gabion/v1/tenants", None), ("POST", "/gabion/v1/tenants", {"name": "x"}),
                               ("GET", f"/gabion/v1/tenants/{red.id}", None), ("PATCH", f"/gabion/v1/tenants/{red.id}", {}),
                               ("GET", f"/gabion/v1/tenants/{red.id}/keys", None),
                               ("POST", f"/gabion/v1/tenants/{red.id}/keys", {"name": "x"}),
                               ("DELETE", f"/gabion/v1/tenants/{red.id}/keys/{NOBODY}", None)):
        assert red.admin.request(method, path, body).status == 403
    assert red.admin.get("/gabion/v1/events?tenant=default").status == 403
    assert operator.get(f"/gabion/v1/events?tenant={red.name}&after=0").status == 200
    assert operator.get("/gabion/v1/events?tenant=*&after=0").status == 200
    own = operator.request("PATCH", "/gabion/v1/tenants/default", {"disabled": True})
    assert own.status == 403 and operator.get("/sandboxes").status == 200
    assert operator.request("PATCH", "/gabion/v1/tenants/default", {"name": "other"}).status == 403


def test_tenants_are_made_changed_and_switched_off(operator, red):
    assert operator.post("/gabion/v1/tenants", {"name": red.name}).status == 409
    for name in ("", "A", "-a", "a b", "x" * 64, NOBODY):
        assert operator.post("/gabion/v1/tenants", {"name": name}).status == 400
    changed = operator.request("PATCH", f"/gabion/v1/tenants/{red.id}", {"quota": {"sandboxes": 3, "cpu": 1.5}})
    assert changed.json["quota"] == {"sandboxes": 3, "creates_per_s": None, "cpu": 1.5, "memory_bytes": None, "disk_bytes": None}
    changed = operator.request("PATCH", f"/gabion/v1/tenants/{red.id}", {"quota": {"cpu": None}})
    assert changed.json["quota"]["cpu"] is None and changed.json["quota"]["sandboxes"] == 3
    ceiling = {"version": 1, "network": {"allow": [{"host": "packages.example", "ports": [443]}]}}
    assert operator.request("PATCH", f"/gabion/v1/tenants/{red.id}", {"ceiling": ceiling}).json["ceiling"]["network"]["allow"]
    bad = operator.request("PATCH", f"/gabion/v1/tenants/{red.id}", {"ceiling": {"version": 1, "limits": {}}})
    assert bad.status == 400 and "limits" in bad.message
    assert red.admin.post("/v2/sandboxes", {"templateID": "base"}).status == 201
    assert red.admin.post("/v2/sandboxes", {"templateID": "base", "allow_internet_access": False}).status == 201
    assert operator.request("PATCH", f"/gabion/v1/tenants/{red.id}", {"ceiling": None}).json["ceiling"] is None
    assert operator.request("PATCH", f"/gabion/v1/tenants/{red.id}", {"disabled": True}).json["disabled"]
    assert red.admin.get("/sandboxes").status == 403
    assert operator.request("PATCH", f"/gabion/v1/tenants/{red.id}", {"disabled": False}).status == 200
    assert operator.get(f"/gabion/v1/tenants/{NOBODY}").status == 404


def test_roles_do_what_they_may(red):
    developer, auditor = red.key("developer"), red.key("auditor")
    ident = developer.create()
    assert auditor.get(f"/gabion/v1/sandboxes/{ident}/policy").status == 200
    detail = auditor.get(f"/sandboxes/{ident}").json
    assert "envdAccessToken" not in detail and "envdAccessToken" in developer.get(f"/sandboxes/{ident}").json
    for method, path, body in (("POST", "/v2/sandboxes", {"templateID": "base"}), ("DELETE", f"/sandboxes/{ident}", None),
                               ("POST", f"/v2/sandboxes/{ident}/connect", {}), ("POST", f"/sandboxes/{ident}/timeout", {"timeout": 1}),
                               ("PUT", f"/sandboxes/{ident}/network", {}), ("GET", "/gabion/v1/keys", None)):
        refused = auditor.request(method, path, body)
        assert refused.status == 403 and "auditor" in refused.message
    assert developer.get("/gabion/v1/keys").status == 403
    assert developer.delete(f"/sandboxes/{ident}").status == 204


def test_verbs_and_templates_of_a_key_narrow_it(red):
    ident = red.admin.create()
    reader = red.key("admin", verbs=["read", "kill"])
    assert reader.get(f"/sandboxes/{ident}").status == 200
    assert reader.post("/v2/sandboxes", {"templateID": "base"}).status == 403
    assert reader.get("/gabion/v1/keys").status == 403
    assert reader.delete(f"/sandboxes/{ident}").status == 204
    assert red.key("developer", templates=["base"]).create()
    for fields in ({"verbs": ["fly"]}, {"verbs": "read"}, {"templates": ["none"]}, {"role": "king"}, {"expiresAt": after(-5)},
                   {"expiresAt": "soon"}, {"surprise": 1}, {"name": ""}):
        bad = red.admin.post("/gabion/v1/keys", {"name": "x", **fields})
        assert bad.status == 400 and list(fields)[0] in bad.message


def test_nobody_makes_a_key_with_more_rights(red):
    narrow = red.key("admin", verbs=["read", "keys"], templates=["base"], expiresAt=after(600))
    child = narrow.post("/gabion/v1/keys", {"name": "child", "role": "admin"}).json
    assert child["verbs"] == ["read", "keys"] and child["templates"] == ["base"] and child["expiresAt"]
    assert narrow.post("/gabion/v1/keys", {"name": "x", "role": "admin", "verbs": ["create"]}).status == 403
    assert narrow.post("/gabion/v1/keys", {"name": "x", "expiresAt": after(6000)}).status == 403
    assert narrow.post("/gabion/v1/keys", {"name": "x", "expiresAt": after(60)}).status == 201
    made = narrow.post("/api-keys", {"name": "e2b"}).json
    assert narrow.server.client(made["key"]).post("/v2/sandboxes", {"templateID": "base"}).status == 403


def test_keys_expire_and_are_revoked_at_once(red):
    short = red.key("developer", expiresAt=after(1))
    assert short.get("/sandboxes").status == 200
    assert harness.until(lambda: short.get("/sandboxes").status == 401, 3)
    listed = {k["name"]: k for k in red.admin.get("/gabion/v1/keys").json}
    assert listed["developer"]["usedAt"] and not listed["developer"]["revoked"]
    assert red.admin.delete(f"/gabion/v1/keys/{listed['developer']['id']}").status == 204
    assert {k["name"]: k["revoked"] for k in red.admin.get("/gabion/v1/keys").json}["developer"]


def test_quotas_are_typed_and_tell_when_to_come_back(tenant):
    t = tenant(quota={"sandboxes": 2})
    first = t.admin.create()
    t.admin.create()
    full = t.admin.post("/v2/sandboxes", {"templateID": "base"})
    assert full.status == 429 and full.code == "quota.sandboxes" and int(full.headers["Retry-After"]) >= 1
    t.admin.delete(f"/sandboxes/{first}")
    t.admin.create()
    for quota, code in (({"sandboxes": None, "memory_bytes": 1 << 30}, "quota.memory"), ({"memory_bytes": None, "cpu": 2.5}, "quota.cpu"),
                        ({"cpu": None, "disk_bytes": 1 << 31}, "quota.disk")):
        assert t.operator.request("PATCH", f"/gabion/v1/tenants/{t.id}", {"quota": quota}).status == 200
        refused = t.admin.post("/v2/sandboxes", {"templateID": "base"})
        assert (refused.status, refused.code) == (429, code)


def test_creates_per_second_are_limited(tenant):
    t = tenant(quota={"creates_per_s": 3})
    replies = [t.admin.post("/v2/sandboxes", {"templateID": "base"}) for _ in range(6)]
    refused = [r for r in replies if r.status == 429]
    assert refused and all(r.code == "quota.rate" and r.headers["Retry-After"] == "1" for r in refused)
    time.sleep(1)
    assert t.admin.post("/v2/sandboxes", {"templateID": "base"}).status == 201


def test_many_creates_at_once_all_come_through(tenant):
    t = tenant()
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        made = list(pool.map(lambda _: t.admin.create(), range(24)))
    assert len(set(made)) == 24 and sorted(t.admin.ids()) == sorted(made)
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        assert set(pool.map(lambda i: t.admin.delete(f"/sandboxes/{i}").status, made)) == {204}


def follow(client, headers=None, query=""):
    c = http.client.HTTPConnection(*client.server.address, timeout=10)
    c.request("GET", "/gabion/v1/events" + query, headers={"X-API-Key": client.key, "Accept": "text/event-stream", **(headers or {})})
    reply = c.getresponse()
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/event-stream")
    return c, reply


def next_event(stream):
    got = {}
    while True:
        line = stream.readline().decode().rstrip("\n")
        if not line and "data" in got:
            return int(got["id"]), got["event"], json.loads(got["data"])
        if ": " in line and not line.startswith(":"):
            name, got_value = line.split(": ", 1)
            got[name] = got_value


def test_events_are_followed_by_their_tenant_only(red, blue):
    c, stream = follow(red.admin)
    blue.admin.create()
    ident = red.admin.create()
    seen = [next_event(stream) for _ in range(2)]
    assert [(kind, data["sandbox"]) for _, kind, data in seen] == [("sandbox.create", ident), ("sandbox.running", ident)]
    c.close()
    red.admin.delete(f"/sandboxes/{ident}")
    c, stream = follow(red.admin, {"Last-Event-ID": str(seen[0][0])})  # what was missed comes first
    assert [next_event(stream)[1] for _ in range(3)] == ["sandbox.running", "sandbox.ending", "sandbox.ended"]
    c.close()
    c, stream = follow(red.admin, query=f"?after=0&sandbox={ident}")
    assert next_event(stream)[1] == "sandbox.create"
    c.close()
    listed = red.admin.events(ident)
    assert [e["kind"] for e in listed] == ["sandbox.create", "sandbox.running", "sandbox.ending", "sandbox.ended"]
    assert {e["tenant"] for e in red.admin.events()} == {red.id}


def test_administration_leaves_a_trace(red, operator):
    assert [e["kind"] for e in red.admin.events()] == ["tenant.created", "key.created"]
    operator.request("PATCH", f"/gabion/v1/tenants/{red.id}", {"quota": {"sandboxes": 9}})
    assert red.admin.events()[-1]["data"]["sandboxes"] == 9
