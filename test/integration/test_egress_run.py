"""Unmodified clients in a sandbox with a network: each works through an allowlist with no proxy variables, and fails at
once with a reason when it is not allowed. The servers are on loopback, behind names of the operator's choice."""
import base64
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tarfile
import textwrap
import time

import egress_world as world
import harness
import pytest
from egress_fixtures import servers  # noqa: F401 fixtures

NAME = "api.example.com"
CA = "/opt/test-ca.pem"
QUICK_S = 5.0  # a refusal that takes longer looks like an outage


def run(*command, allow=(f"{NAME}:443",), resolve=(), flags=(), timeout=60, trust=True, **kw):
    """gabion run --json with a network. The test CA is at CA inside, and no client is told of any proxy."""
    words = ["--json"]
    for a in allow:
        words += ["--allow", a]
    for name, port, to in resolve:
        words += ["--resolve", f"{name}:{port}=127.0.0.1:{to}"]
    if trust:
        words += ["-v", f"{world.authority()[1]}:{CA}"]
        for variable in ("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"):
            words += ["-e", f"{variable}={CA}"]
    begin = time.monotonic()
    r = harness.run(*words, *flags, "--", *command, timeout=timeout, **kw)
    r.seconds = time.monotonic() - begin
    r.denials = r.json["denials"]
    return r


def codes(r):
    return {d["code"] for d in r.denials}


@pytest.fixture
def web(servers):
    return servers(world.server_context(NAME), cls=world.Web)


PYTHON = "import urllib.request as u; print(u.urlopen('https://{}/py', timeout=10).read().decode())"
REQUESTS = "import requests; print(requests.get('https://{}/rq', timeout=10).text)"
NODE = "fetch('https://{}/node').then(r => r.text()).then(console.log, e => {{ console.error(e.cause); process.exit(1) }})"
CLIENTS = {
    "curl": ["curl", "-sS", "-m", "10", "https://{}/curl"],
    "urllib": ["/usr/bin/python3", "-c", PYTHON],
    "requests": ["/usr/bin/python3", "-c", REQUESTS],
    "node": ["node", "-e", NODE],
}


PATHS = {"curl": "curl", "urllib": "py", "requests": "rq", "node": "node"}


def installed(which):
    return shutil.which(CLIENTS[which][0]) and (which != "requests" or list(pathlib.Path("/usr/lib/python3").glob("*/requests")))


def client(which, host):
    if not installed(which):
        pytest.skip(f"{which} is not installed")
    return [w.format(host) for w in CLIENTS[which]]


@pytest.mark.parametrize("which", CLIENTS)
def test_client_works_through_an_allowlist(web, which):
    r = run(*client(which, NAME), resolve=[(NAME, 443, web.port)])
    assert r.code == 0 and "GET /" in r.out, r
    assert not r.denials and len(web.requests) == 1


@pytest.mark.parametrize("which", CLIENTS)
def test_client_that_is_not_allowed_fails_at_once_with_a_reason(which):
    r = run(*client(which, "evil.example.com"))
    assert r.code != 0 and r.seconds < QUICK_S, r
    assert codes(r) == {"net.name_not_allowed"} and r.denials[0]["what"].startswith("evil.example.com")
    assert "gabion: denied net.name_not_allowed: evil.example.com" in r.err


def test_opened_tls_is_trusted_by_unmodified_clients(servers, tmp_path):
    web = servers(world.server_context(NAME), cls=world.Web)
    policy = tmp_path / "policy.yaml"
    policy.write_text(textwrap.dedent(f"""\
        version: 1
        name: read-only
        network:
          allow:
            - {{ host: {NAME}, ports: [443], methods: [GET], paths: [/] }}
        """))
    lines = "\n".join(shlex.join(client(which, NAME)) for which in CLIENTS if installed(which))
    script = f"""
        {lines}
        curl -sS -w '%{{http_code}} %header{{x-gabion-denied}}\\n' -X POST -d x https://{NAME}/post
    """
    r = run("sh", "-c", script, allow=(), resolve=[(NAME, 443, web.port)], trust=False,
            flags=("--policy", policy, "--ca-bundle", world.authority()[1]))
    assert re.findall("^GET /([a-z]+) 0$", r.out, re.M) == [PATHS[which] for which in CLIENTS if installed(which)], r
    assert "403 net.method_not_allowed; event=" in r.out and codes(r) == {"net.method_not_allowed"}
    event = re.search(r"event=(evt_\w+)", r.out)[1]
    assert r.denials[0]["event"] == event and f"({event})" in r.err
    assert {x[0] for x in web.requests} == {"GET"}


@pytest.fixture
def repository(tmp_path, servers):
    """A git repository behind git http-backend and TLS; yields the server."""
    if not pathlib.Path("/usr/lib/git-core/git-http-backend").exists():
        pytest.skip("git http-backend is not installed")
    work, bare = tmp_path / "work", tmp_path / "repo.git"
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com",
           "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.com"}
    subprocess.run(f"git init -q {work} && cd {work} && echo hello > file && git add file && git commit -qm one && "
                   f"git clone -q --bare {work} {bare}", shell=True, check=True, env=env)

    def backend(handler):
        method, target, headers, body = handler.server.requests[-1]
        path, _, query = target.partition("?")
        cgi = {**env, "GIT_PROJECT_ROOT": str(tmp_path), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
               "REQUEST_METHOD": method, "QUERY_STRING": query, "CONTENT_TYPE": headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": headers.get("Content-Encoding", ""),
               "GIT_PROTOCOL": headers.get("Git-Protocol", ""), "REMOTE_ADDR": "127.0.0.1"}
        out = subprocess.run(["/usr/lib/git-core/git-http-backend"], input=body, capture_output=True, env=cgi).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        handler.send_response(int(fields.pop("Status", "200").split()[0]))
        for k, v in fields.items():
            handler.send_header(k, v)
        handler.send_header("Content-Length", str(len(rest)))
        handler.end_headers()
        handler.wfile.write(rest)
    return servers(world.server_context("git.example.com"), cls=world.Web, answer=backend)


def test_git_clones_over_https(repository):
    r = run("sh", "-c", "git clone -q https://git.example.com/repo.git /tmp/r && cat /tmp/r/file",
            allow=("git.example.com:443",), resolve=[("git.example.com", 443, repository.port)])
    assert r.code == 0 and r.out.startswith("hello\n") and not r.denials, r
    r = run("git", "clone", "-q", "https://other.example.com/repo.git", "/tmp/r", allow=("git.example.com:443",))
    assert r.code != 0 and r.seconds < QUICK_S and codes(r) == {"net.name_not_allowed"}, r


def npm_registry(servers, host):
    """A registry with one package, `small`, behind TLS; yields the server."""
    package = json.dumps({"name": "small", "version": "1.0.0"}).encode()
    space = io.BytesIO()
    with tarfile.open(fileobj=space, mode="w:gz") as tar:
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(package)
        tar.addfile(entry, io.BytesIO(package))
    archive = space.getvalue()
    about = {"name": "small", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
        "name": "small", "version": "1.0.0", "dist": {
            "tarball": f"https://{host}/small/-/small-1.0.0.tgz",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()}}}}

    def answer(handler):
        found = {"/small": json.dumps(about).encode(), "/small/-/small-1.0.0.tgz": archive}.get(handler.path)
        handler.send_response(200 if found else 404)
        handler.send_header("Content-Length", str(len(found or b"")))
        handler.end_headers()
        handler.wfile.write(found or b"")
    return servers(world.server_context(host), cls=world.Web, answer=answer)


def npm_install(registry, package):
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    return ("sh", "-c", f"mkdir /tmp/p && cd /tmp/p && npm install $FLAGS --no-audit --no-fund --no-update-notifier "
            f"--registry {registry} {package} >&2 && cat node_modules/{package}/package.json")


def test_npm_installs_a_package(servers):
    host = "registry.example.com"
    web = npm_registry(servers, host)
    words = npm_install(f"https://{host}/", "small")
    known = {"resolve": [(host, 443, web.port)], "trust": False}
    bundle = ("--ca-bundle", world.authority()[1])  # npm may be configured to read one file alone: the sandbox's own
    r = run(*words, allow=(f"{host}:443",), flags=bundle, **known)
    assert r.code == 0 and '"name": "small"' in r.out and not r.denials, r
    # By itself npm tries every failure again after 10 and 60 seconds, names that do not exist included.
    r = run(*words, flags=(*bundle, "-e", "FLAGS=--fetch-retries=0"), **known)
    assert r.code != 0 and codes(r) == {"net.name_not_allowed"} and r.seconds < QUICK_S, r
    assert f"gabion: denied net.name_not_allowed: {host}" in r.err


def test_preset_packages_is_enough_for_npm(tmp_path):
    """With the registry that this machine's npm is configured to use."""
    words = npm_install("$REGISTRY", "is-number")
    registry = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True).stdout.strip()
    m = re.match(r"https://([^/:]+)(?::(\d+))?/", registry)
    if not m or subprocess.run(["curl", "-sSf", "-m", "10", "-o", "/dev/null", registry + "is-number"]).returncode:
        pytest.skip("the npm registry of this machine's configuration is not reachable from here")
    address = socket.getaddrinfo(m[1], int(m[2] or 443), socket.AF_INET)[0][4][0]
    ceiling = tmp_path / "ceiling.yaml"  # names the address, should it be one that is closed below all policies
    ceiling.write_text(f"version: 1\nname: c\nnetwork:\n  preset: public\n  allow:\n"
                       f"    - {{ cidr: {address}, ports: [{m[2] or 443}] }}\n")
    bundle = os.environ.get("NODE_EXTRA_CA_CERTS") or "/etc/ssl/certs/ca-certificates.crt"
    r = run(*words, allow=(), trust=False, env={**os.environ, "NPM_CONFIG_REGISTRY": registry}, flags=(
        "--net", "packages", "-e", f"REGISTRY={registry}", "-v", f"{bundle}:/opt/bundle.pem",
        "-e", "NODE_EXTRA_CA_CERTS=/opt/bundle.pem", "--ceiling", ceiling))
    assert r.code == 0 and '"name": "is-number"' in r.out, r


def test_dig_sees_names_and_reasons():
    if not shutil.which("dig"):
        pytest.skip("dig is not installed")
    script = f"dig +short {NAME}; dig +tcp +short {NAME} @9.9.9.9; dig +short {NAME} @2001:4860:4860::8888; " \
             f"dig {NAME} HTTPS; dig evil.example.com @8.8.8.8"
    r = run("sh", "-c", script)
    assert r.code == 0 and len(re.findall(r"^198\.18\.\d+\.\d+$", r.out, re.M)) == 3, r
    assert "status: NXDOMAIN" in r.out and "EDE: 18 (Prohibited)" in r.out and "net.name_not_allowed; event=evt_" in r.out


GO = """
package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
    r, err := http.Get(os.Args[1])
    if err != nil { fmt.Println(err); os.Exit(1) }
    b, _ := io.ReadAll(r.Body)
    fmt.Print(string(b))
}
"""


def test_go_client(web, tmp_path):
    go = shutil.which("go", path=f"/usr/lib/go/bin:{os.environ['PATH']}:/usr/local/go/bin")  # the first: compiled libraries
    if not go:
        pytest.skip("go is not installed")
    (tmp_path / "main.go").write_text(GO)
    built = subprocess.run([go, "build", "-o", tmp_path / "client", tmp_path / "main.go"], capture_output=True, text=True,
                           env={**os.environ, "HOME": str(tmp_path), "GO111MODULE": "off",
                                "GOCACHE": str(tmp_path / "cache")}, timeout=110)
    assert built.returncode == 0, built.stderr
    where = ("-v", f"{tmp_path}/client:/opt/client")
    r = run("/opt/client", f"https://{NAME}/go", resolve=[(NAME, 443, web.port)], flags=where)
    assert r.code == 0 and r.out.startswith("GET /go"), r
    r = run("/opt/client", "https://evil.example.com/", flags=where)
    assert r.code == 1 and "no such host" in r.out and r.seconds < QUICK_S, r
    assert codes(r) == {"net.name_not_allowed"}


JAVA = """
import java.net.URI; import java.net.http.*;
public class Client { public static void main(String[] urls) throws Exception {
    for (String url : urls) try {
        System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(url)).build(),
            HttpResponse.BodyHandlers.ofString()).body());
    } catch (java.io.IOException e) { System.out.println(e); } } }
"""


def test_java_client_trusts_opened_tls(servers, tmp_path):
    if not shutil.which("java"):
        pytest.skip("java is not installed")
    web = servers(world.server_context(NAME), cls=world.Web)
    (tmp_path / "Client.java").write_text(JAVA)
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\nnetwork:\n  allow:\n    - {{ host: {NAME}, ports: [443], paths: [/java] }}\n")
    words = ("--policy", policy, "--ca-bundle", world.authority()[1], "-v", f"{tmp_path}:/opt/src", "-m", "1G")
    java = ("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "/opt/src/Client.java")
    r = run(*java, f"https://{NAME}/java", f"https://{NAME}/other", "https://evil.example.com/", allow=(), trust=False,
            resolve=[(NAME, 443, web.port)], flags=words)
    assert r.code == 0 and r.lines[0] == "GET /java 0" and '"code":"net.path_not_allowed"' in r.lines[1], r
    assert "java.net.ConnectException" in r.lines[2] and codes(r) == {"net.path_not_allowed", "net.name_not_allowed"}
    assert "Picked up" not in r.err and r.seconds < 4 * QUICK_S
    r = run("sh", "-c", "cmp /etc/ssl/java.jks /etc/ssl/certs/java/cacerts && keytool -list -keystore /etc/ssl/java.jks "
            "-storepass changeit", allow=(), trust=False, flags=words)
    assert r.code == 0 and "Your keystore contains 2 entries" in r.out, r  # the operator's bundle, and egress


# --- what must not get out ---

ATTEMPTS = """
import errno, json, socket, struct, sys, time
def attempt(fn):
    begin = time.monotonic()
    try:
        got = fn()
    except OSError as e:
        got = errno.errorcode.get(e.errno, str(e))
    return got, time.monotonic() - begin
def tcp(host, port):
    def fn():
        with socket.create_connection((host, port), 5) as s:
            s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
            return "answer" if s.recv(10) else "closed"
    return fn
def udp(family, host, port, connected):
    def fn():
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(2)
            s.connect((host, port)) if connected else None
            s.send(b"x" * 1200) if connected else s.sendto(b"x" * 1200, (host, port))
            return "answer" if s.recv(10) else "closed"
    return fn
def raw(family, kind, proto):
    def fn():
        with socket.socket(family, kind, proto) as s:
            s.settimeout(2)
            s.sendto(b"\\x08\\0\\0\\0\\0\\1\\0\\1", ("8.8.8.8", 0))
            return "answer" if s.recv(10) else "closed"
    return fn
tries = {
    "tcp literal": tcp("93.184.216.34", 443), "tcp6 literal": tcp("2606:2800:220:1::1", 443),
    "metadata": tcp("169.254.169.254", 80), "metadata6": tcp("fd00:ec2::254", 80),
    "metadata name": tcp("metadata.google.internal", 80), "private": tcp("10.0.0.1", 22), "dot": tcp("1.1.1.1", 853),
    "doh": tcp("1.1.1.1", 443), "doh name": tcp("dns.google", 443), "guess": tcp("198.18.77.77", 443),
    "port": tcp("api.example.com", 22), "decimal": tcp("2130706433", 80), "local": tcp("127.0.0.1", 22),
    "quic": udp(socket.AF_INET, "93.184.216.34", 443, True), "quic unconnected": udp(socket.AF_INET, "8.8.4.4", 443, False),
    "quic6": udp(socket.AF_INET6, "2606:2800:220:1::1", 443, False), "ntp": udp(socket.AF_INET, "8.8.8.8", 123, False),
    "doq": udp(socket.AF_INET, "9.9.9.9", 853, False),
    "icmp": raw(socket.AF_INET, socket.SOCK_RAW, 1), "ping": raw(socket.AF_INET, socket.SOCK_DGRAM, 1),
    "raw ip": raw(socket.AF_INET, socket.SOCK_RAW, 255),
}
print(json.dumps({name: attempt(fn) for name, fn in tries.items()}))
"""


def test_nothing_gets_out_and_everything_is_refused_at_once():
    r = run("/usr/bin/python3", "-c", ATTEMPTS)
    results = json.loads(r.lines[0])
    assert len(results) == 21
    for name, (got, seconds) in results.items():
        assert got not in ("answer", "closed", "timed out") and seconds < 1.5, (name, got, seconds)
    assert {"net.address_not_allowed", "net.metadata", "net.name_not_allowed", "net.port_not_allowed",
            "net.private_address"} <= codes(r)


def test_pinned_address_with_another_name_is_refused(web):
    """curl --resolve: the address of an allowed name, the name of another host in TLS."""
    script = f"a=$(getent ahostsv4 {NAME} | cut -d' ' -f1 | head -1); " \
             f"curl -sS -m 5 -k --resolve evil.example.com:443:$a https://evil.example.com/"
    r = run("sh", "-c", script, resolve=[(NAME, 443, web.port)])
    assert r.code != 0 and codes(r) == {"net.sni_mismatch"} and not web.requests, r


@pytest.mark.parametrize("url", [f"https://{NAME}@evil.example.com/", f"https://{NAME}%40evil.example.com/",
                                 f"https://{NAME}.evil.example.com/", "https://\u0430pi.example.com/",
                                 f"https://{NAME}:444/", "https://evil.example.com#@api.example.com/"])
def test_urls_that_look_like_the_allowed_one(url):
    r = run("curl", "-sS", "-m", "5", url)
    assert r.code != 0 and r.seconds < QUICK_S, r


def test_redirect_to_a_denied_host_is_not_followed(servers):
    def redirect(handler):
        handler.send_response(302)
        handler.send_header("Location", "https://evil.example.com/x")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
    web = servers(world.server_context(NAME), cls=world.Web, answer=redirect)
    r = run("curl", "-sSL", "-m", "5", f"https://{NAME}/", resolve=[(NAME, 443, web.port)])
    assert r.code != 0 and codes(r) == {"net.name_not_allowed"}, r


def egress_of(pid):
    """The gabion-egress below a process."""
    for p in harness.descendants(pid):
        try:
            if os.readlink(f"/proc/{p}/exe").endswith("gabion-egress"):
                return p
        except OSError:
            pass
    return None


def test_killed_egress_comes_back(servers):
    web = servers(cls=world.Web)
    script = f"""
        curl -sS -m 5 http://{NAME}/before && echo ready && read line
        curl -sS -m 5 -o /dev/null http://{NAME}/during; echo during=$?
        for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3; curl -sS -m 5 http://{NAME}/after && break; done
    """
    argv = harness.argv_of("run", "--allow", f"{NAME}:80", "--resolve", f"{NAME}:80=127.0.0.1:{web.port}", "--", "sh", "-c",
                           script)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "GET /before 0\n" and p.stdout.readline() == "ready\n"
        pid = egress_of(p.pid)
        os.kill(pid, signal.SIGKILL)
        p.stdin.write("\n")
        p.stdin.flush()
        out, err = p.communicate(timeout=30)
    assert "GET /after 0" in out and p.returncode == 0, (out, err)
    assert "during=0" not in out or "/during" in str(web.requests)
    assert {r[1] for r in web.requests} <= {"/before", "/during", "/after"}
