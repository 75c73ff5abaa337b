"""What is inside a tenant's sandbox is out of reach for another: by API, by its own sandbox's tokens, and from inside its sandbox."""
import json
import secrets
import time
import urllib.parse

import pytest
from envd import RpcError, signature, wait_for

SECRET = "only for red"
SERVE = "cd /tmp && exec python3 -m http.server 8080 --bind 127.0.0.1"


def new_tenant(operator):
    name = "t-" + secrets.token_hex(4)
    assert operator.post("/gabion/v1/tenants", {"name": name}).status == 201
    key = operator.post(f"/gabion/v1/tenants/{name}/keys", {"name": "k", "role": "admin"}).json["key"]
    return operator.server.client(key)


@pytest.fixture(scope="module")
def red(server):
    """A sandbox with a file, a command that waits for input, and a server on a port."""
    api = new_tenant(server.client())
    box = api.sandbox(network={"allowPublicTraffic": False})
    box.api = api
    assert box.http("POST", "/files?path=secret", SECRET, headers={"Content-Type": "application/octet-stream"}).status == 200
    box.stream_of_cat = box.start("/bin/cat")
    box.pid = box.stream_of_cat.pid()
    box.stream_of_server = box.sh(SERVE)
    traffic = {"e2b-traffic-access-token": box.made["trafficAccessToken"]}
    wait_for(lambda: box.http("GET", "/", port=8080, headers=traffic).status == 200)
    yield box
    # Whatever was tried: it is all as it was.
    assert box.http("GET", "/files?path=secret").body.decode() == SECRET
    assert {p["pid"] for p in box.processes()} >= {box.pid}
    box.send(b"still here\n", pid=box.pid)
    assert box.stream_of_cat.until(b"\n") == b"still here\n"
    box.stream_of_cat.close()
    api.kill_all()


@pytest.fixture(scope="module")
def blue(server):
    api = new_tenant(server.client())
    box = api.sandbox(network={"allowPublicTraffic": False})
    box.api = api
    yield box
    api.kill_all()


@pytest.fixture(params=["token of another sandbox", "no token", "API key", "a guess"])
def pretender(request, red, blue):
    """Red's sandbox, asked with what blue has."""
    headers = {"token of another sandbox": {"X-Access-Token": blue.token}, "no token": {}, "API key": {"X-API-Key": blue.api.key},
               "a guess": {"X-Access-Token": red.token[:-1] + ("0" if red.token[-1] != "0" else "1")}}[request.param]

    def ask(method, path, body=None, more=None, port=49983):
        return red.http(method, path, body, bare=True, headers={"E2b-Sandbox-Id": red.ident, "E2b-Sandbox-Port": str(port), **headers,
                                                               **(more or {})})

    return ask


JSON = {"Content-Type": "application/json"}


def is_shut(reply, status=401):
    """Refused, and without a word about the sandbox."""
    assert reply.status == status, reply
    return not any(word in reply.body.decode() for word in ("last_event", "state", SECRET))


def test_files_cannot_be_read_or_written(pretender):
    assert is_shut(pretender("GET", "/files?path=secret"))
    assert is_shut(pretender("POST", "/files?path=secret", "x", {"Content-Type": "application/octet-stream"}))


@pytest.mark.parametrize("method, message", [("Stat", {"path": "secret"}), ("ListDir", {"path": "/home/user"}), ("Remove", {"path": "secret"}),
                                             ("Move", {"source": "secret", "destination": "s"}), ("CreateWatcher", {"path": "/tmp"})])
def test_file_calls_are_refused(pretender, method, message):
    assert is_shut(pretender("POST", f"/filesystem.Filesystem/{method}", json.dumps(message), JSON))


@pytest.mark.parametrize("method, message", [("List", "{}"), ("SendSignal", '{"process":{"pid":PID},"signal":"SIGNAL_SIGKILL"}'),
                                             ("SendInput", '{"process":{"pid":PID},"input":{"stdin":"eA=="}}'),
                                             ("CloseStdin", '{"process":{"pid":PID}}')])
def test_commands_cannot_be_seen_or_signalled(pretender, red, method, message):
    assert is_shut(pretender("POST", f"/process.Process/{method}", message.replace("PID", str(red.pid)), JSON))


@pytest.mark.parametrize("method", ["Start", "Connect"])
def test_commands_cannot_be_started_or_followed(pretender, method):
    assert is_shut(pretender("POST", f"/process.Process/{method}", b"\0\0\0\0\2{}", {"Content-Type": "application/connect+json"}))


def test_variables_and_usage_are_not_told(pretender):
    assert is_shut(pretender("GET", "/envs")) and is_shut(pretender("GET", "/metrics"))


def test_ports_need_the_traffic_token_of_their_sandbox(pretender, blue):
    assert is_shut(pretender("GET", "/", port=8080), 403)
    assert is_shut(pretender("GET", "/", port=8080, more={"e2b-traffic-access-token": blue.made["trafficAccessToken"]}), 403)
    assert is_shut(pretender("GET", "/", port=8080, more={"Connection": "Upgrade", "Upgrade": "websocket"}), 403)


def test_a_host_name_is_no_way_around(red, blue):
    for port in (8080, 49983):
        host = {"Host": f"{port}-{red.ident}.localhost", "X-Access-Token": blue.token, "e2b-traffic-access-token": blue.token}
        assert is_shut(red.http("GET", "/envs", bare=True, headers=host), 401 if port == 49983 else 403)
    both = {"Host": f"49983-{red.ident}.localhost", "E2b-Sandbox-Id": blue.ident, "X-Access-Token": blue.token}
    assert is_shut(red.http("GET", "/envs", bare=True, headers=both))  # the name counts, not the header


def test_signed_addresses_open_files_of_their_own_sandbox_only(red, blue):
    blue.http("POST", "/files?path=secret", "only for blue", headers={"Content-Type": "application/octet-stream"})

    def fetch(sign, headers=None, path="secret", **more):
        query = urllib.parse.urlencode({"path": path, "signature": sign, **more})
        return red.http("GET", f"/files?{query}", bare=True, headers=headers)

    by_blue = signature("secret", "read", token=blue.token)
    assert fetch(by_blue).body == b"only for blue"
    assert is_shut(fetch(by_blue, {"E2b-Sandbox-Id": red.ident}))
    by_red = signature("secret", "read", token=red.token)
    assert fetch(by_red).body.decode() == SECRET
    for changed in (dict(path="/etc/passwd"), dict(username="root"), dict(signature_expiration=int(time.time()) + 60)):
        assert is_shut(fetch(by_red, **{"path": "secret", **changed}))
    assert is_shut(fetch(signature("secret", "write", token=red.token)))
    assert is_shut(fetch(signature("secret", "read", token="")))
    late = int(time.time()) - 1
    expired = fetch(signature("secret", "read", expiration=late, token=red.token), signature_expiration=late)
    assert is_shut(expired) and "expired" in expired.json["message"]


def test_nothing_of_others_is_there_inside(red, blue, server):
    end, out, _, _ = blue.sh("find / -name secret 2>/dev/null | xargs cat; ps -eo args 2>/dev/null || cat /proc/[0-9]*/cmdline; cat /proc/mounts").finish()
    assert end["exitCode"] == 0 and SECRET.encode() not in out and b"http.server" not in out and red.ident.encode() not in out
    for port in (8080, server.port, 49983):
        end, *_ = blue.start("/bin/bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}", stdin=False).finish()
        assert end["exitCode"] != 0, f"port {port} is reached from inside"
    for path in ("/run", "/tmp"):
        assert red.ident not in str(blue.fs("ListDir", path=path, depth=3))


def test_ids_and_tokens_cannot_be_guessed(blue):
    made = [blue.api.sandbox() for _ in range(12)]
    for values in ([b.ident for b in made], [b.token for b in made]):
        assert len({v[:6] for v in values}) == len({v[-6:] for v in values}) == 12  # nothing counts upwards
    assert all(len(b.ident) == 20 and len(b.token) == 64 for b in made)
    requests = [b.http("GET", "/health").headers["X-Request-Id"] for b in made]
    assert len({r[4:10] for r in requests}) == 12


def test_a_killed_sandbox_takes_its_tokens_with_it(blue):
    box = blue.api.sandbox()
    box.http("POST", "/files?path=f", "x", headers={"Content-Type": "application/octet-stream"})
    address = "/files?" + urllib.parse.urlencode({"path": "f", "signature": signature("f", "read", token=box.token)})
    assert box.http("GET", address, bare=True).body == b"x"
    assert blue.api.delete(f"/sandboxes/{box.ident}").status == 204
    assert box.http("GET", address, bare=True).status == 401
    assert box.http("GET", "/health").status == 502
    with pytest.raises(RpcError):
        box.processes()
