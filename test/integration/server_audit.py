"""Sandboxes of a server and its audit log, for the tests of both."""
import contextlib
import http.client
import json
import pathlib
import re
import secrets
import struct

import harness
from audit_log import records


class Box:
    """A sandbox of a server, and commands in it by envd's own protocol."""

    def __init__(self, client, **more):
        reply = client.post("/v2/sandboxes", {"templateID": "base", "timeout": 120, **more})
        assert reply.status == 201, reply
        self.client, self.id, self.token = client, reply.json["sandboxID"], reply.json["envdAccessToken"]

    def headers(self):
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "X-Access-Token": self.token}

    def start(self, *words, envs=None):
        """All messages of a command, or the reply's status."""
        body = json.dumps({"process": {"cmd": words[0], "args": list(words[1:]), "envs": envs or {}}, "stdin": False}).encode()
        with contextlib.closing(http.client.HTTPConnection(*self.client.server.address, timeout=20)) as c:
            c.request("POST", "/process.Process/Start", struct.pack(">BI", 0, len(body)) + body,
                      {**self.headers(), "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"})
            data = c.getresponse().read()
        found = []
        while data:
            size = struct.unpack(">I", data[1:5])[0]
            found.append(json.loads(data[5:5 + size]))
            data = data[5 + size:]
        return found

    def run(self, *words, **kw):
        end = [m["event"]["end"] for m in self.start(*words, **kw) if "end" in m.get("event", {})]
        assert len(end) == 1, end
        return end[0].get("exitCode", 0)

    def kill(self):
        assert self.client.delete(f"/sandboxes/{self.id}").status == 204


def log_of(server):
    return server.data / "audit"


def tenant_of(server, client):
    return client.get("/teams").json[0]["teamID"]


def of(log, tenant, box):
    """Codes of the records about a sandbox, in order."""
    return [r["metadata"]["event_code"] for r in records(log, tenant)
            if r["device"].get("container", {}).get("uid") == box and r["metadata"]["event_code"] != "admin"]


def new_tenant(operator):
    name = "t-" + secrets.token_hex(4)
    ident = operator.post("/gabion/v1/tenants", {"name": name}).json["id"]

    def key(role, **more):
        made = operator.post(f"/gabion/v1/tenants/{name}/keys", {"name": role, "role": role, **more})
        return operator.server.client(made.json["key"])
    return ident, key


def group_of(box_pid):
    name = re.search(r"gabion/(sbx-\d+)", pathlib.Path(f"/proc/{box_pid}/cgroup").read_text())[1]
    return [p for pattern in ("/sys/fs/cgroup/gabion/", "/sys/fs/cgroup/*/gabion/")
            for p in pathlib.Path("/").glob(pattern.strip("/") + f"/{name}")]


def agent_of(server, operator, box):
    """The host's pid of a sandbox's pid 1, by its record."""
    for path in pathlib.Path(harness.RUN_DIR).glob("sbx-*"):
        with contextlib.suppress(ValueError, OSError):
            record = json.loads(path.read_text())
            if record.get("id") == box.id:
                return record["pid"]
    raise AssertionError("no record of " + box.id)


def lift_memory(pid):
    for folder in group_of(pid):
        for name in ("memory.memsw.limit_in_bytes", "memory.limit_in_bytes", "memory.max"):
            path = folder / name
            if path.exists():
                path.write_text(str(8 << 30))
