"""What the tests of servers with a network share: ceilings, and programs inside."""
import json
import time

import harness
import shim

NAME, OTHER, CLOSED = "api.example.com", "other.example.com", "evil.example.com"
FETCH = "import urllib.request as u; print(u.urlopen('http://{}/py', timeout=10).read().decode())"


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
