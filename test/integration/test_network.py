"""A sandbox with a network, from the command line to the server on loopback and back. What egress itself decides is
tested in test_egress*.py; here it is that the pieces hold together, and fail closed."""
import json
import os
import pathlib
import shutil
import signal
import textwrap
import time

import egress_world as world
import pytest
from harness import GABION, descendants, find_below, gabion, others, python, run, sh, slots, started, status_of, until
from network import FETCH, NAME, PATIENCE, fetch, flags, log, records, sandbox_id, web  # noqa: F401

# --- without ---

def test_without_a_network_there_is_no_egress():
    with started("--", "sleep", "20") as p:
        find_below(p.pid, "sleep")
        assert "gabion-egress" not in descendants(p.pid).values()


def test_without_a_network_names_and_addresses_fail_at_once():
    result = python("""
        import socket, time
        t = time.monotonic()
        for fn in (lambda: socket.getaddrinfo("web.example", 80), lambda: socket.create_connection(("192.0.2.1", 80))):
            try:
                fn()
                print("reached")
            except OSError as e:
                print(type(e).__name__)
        print(time.monotonic() - t < 3)
        """)
    assert result.lines == ["gaierror", "OSError", "True"], result


@pytest.mark.parametrize("words", [["--net", "none"], []])
def test_a_network_of_none_is_no_network(words, tmp_path):
    evidence = tmp_path / "e.json"
    assert run(*words, "--evidence", evidence, "--", "true").code == 0
    assert json.loads(evidence.read_text())["network"] == {"interfaces": "lo", "egress": "none"}


# --- with ---

def test_an_allowed_name_is_reached(web, log):
    result = run(*flags(web, log), "--json", "--", "curl", "-sS", f"http://{NAME}/hello")
    assert result.code == 0 and result.lines[0] == "GET /hello 0", result
    assert result.json["denials"] == []
    assert [r[:2] for r in web.requests] == [("GET", "/hello")]
    kinds = [(r["kind"], r["decision"], r.get("name")) for r in records(log)]
    assert ("dns", "allow", NAME) in kinds and ("tcp", "allow", NAME) in kinds


def test_another_name_is_refused_with_one_event_everywhere(web, log):
    result = run(*flags(web, log), "--json", "--", "curl", "-sS", "-m", "10", "http://evil.example/")
    denials = [d for d in result.json["denials"] if d["what"] == "evil.example"]
    assert result.json["exit_code"] == 6 and denials, result
    assert denials[0]["code"] == "net.name_not_allowed" and denials[0]["rule"] == "default"
    assert f"({denials[0]['event']})" in result.err
    assert denials[0]["event"] in [r["event"] for r in records(log)]
    assert web.requests == []


def test_what_egress_tells_the_client_is_in_the_result(web, log):
    policy = log.parent.parent / "p.yaml"
    policy.write_text(f"version: 1\nnetwork:\n  allow:\n    - {{ host: {NAME}, ports: [80], paths: [/public/] }}\n")
    result = run("--policy", policy, *flags(web, log)[2:], "--json", "--", "curl", "-sS", f"http://{NAME}/private")
    answer, denial = json.loads(result.lines[0]), result.json["denials"][0]
    assert answer["code"] == denial["code"] == "net.path_not_allowed"
    assert answer["event"] == denial["event"] and web.requests == []


def test_everything_but_names_is_refused_at_once(web, log):
    result = python("""
        import errno, socket, time
        def outcome(fn):
            start = time.monotonic()
            try:
                fn()
                what = "reached"
            except OSError as e:
                what = errno.errorcode.get(e.errno, str(e))
            print(what, time.monotonic() - start < 1)
        def tcp(address, port, family=socket.AF_INET):
            with socket.socket(family) as s:
                s.settimeout(5)
                s.connect((address, port))
                s.sendall(b"x")
                if s.recv(1) == b"":
                    raise ConnectionResetError(errno.ECONNRESET, "closed")
        def udp(address, port, family=socket.AF_INET):
            with socket.socket(family, socket.SOCK_DGRAM) as s:
                s.sendto(b"x", (address, port))
        outcome(lambda: tcp("127.0.0.1", 9))
        for address in ("192.0.2.1", "10.0.0.1", "169.254.169.254", "198.18.77.77"):
            outcome(lambda: tcp(address, 443))
        outcome(lambda: tcp("2001:db8::1", 443, socket.AF_INET6))
        outcome(lambda: udp("192.0.2.1", 443))
        outcome(lambda: udp("2001:db8::1", 443, socket.AF_INET6))
        outcome(lambda: udp("192.0.2.1", 123))
        outcome(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
        outcome(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1))
        """, *flags(web, log))
    refused, reset = "ECONNREFUSED True", "ECONNRESET True"
    assert result.lines[:6] == [refused] + [reset] * 5, result
    assert result.lines[6:9] == ["EPERM True"] * 3, result
    assert all(line in ("EPERM True", "EACCES True", "EPROTONOSUPPORT True") for line in result.lines[9:]), result


def test_inside_there_is_only_loopback_and_a_resolver(web, log):
    result = sh("cat /etc/resolv.conf; sed -n 's/:.*//p' /proc/net/dev | tr -d ' '; cat /proc/net/if_inet6",
                *flags(web, log))
    assert result.lines[:2] == ["nameserver 10.200.0.53", "lo"], result
    assert {line.split()[-1] for line in result.lines[2:]} == {"lo"}


def test_servers_inside_work_as_ever(web, log):
    result = python("""
        import socket, threading
        with socket.create_connection(("web.example", 80)) as out:      # held open by egress on port 80
            for address in ("0.0.0.0", "127.0.0.1", "10.200.0.2"):
                s = socket.socket()
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind((address, 80))
                s.listen()
                threading.Thread(target=lambda: s.accept()[0].sendall(b"own"), daemon=True).start()
                with socket.create_connection(("127.0.0.1" if address == "0.0.0.0" else address, 80), 3) as c:
                    print(c.recv(3).decode())
                s.close()
        """, *flags(web, log))
    assert result.lines == ["own"] * 3, result


def test_a_relay_inside_gains_nothing(web, log):
    """Who asks does not matter, only for what: a proxy that runs inside is told the same as its client would be."""
    result = python("""
        import http.server, threading, urllib.request
        class Relay(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                try:
                    got = urllib.request.urlopen(self.path, timeout=5).read()
                except OSError:
                    got = b"refused"
                self.send_response(200)
                self.end_headers()
                self.wfile.write(got)
        relay = http.server.HTTPServer(("127.0.0.1", 0), Relay)
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        client = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{relay.server_port}"}))
        for host in ("web.example", "evil.example", "169.254.169.254"):
            print(client.open(f"http://{host}/x").read().decode().strip())
        """, *flags(web, log), "--json")
    assert result.lines[:3] == ["GET /x 0", "refused", "refused"], result
    assert {d["code"] for d in result.json["denials"]} == {"net.name_not_allowed", "net.metadata"}


def test_connections_outlive_a_stop(log):
    """The key that stops a job, and `fg`: nothing is closed meanwhile, and what came in waits."""
    server = world.Server(world.echo)
    script = """
import socket, sys
s = socket.create_connection(("web.example", 9000), 5)
for line in sys.stdin:
    s.sendall(b"x")
    print(s.recv(1).decode() or "closed", flush=True)
"""
    words = ["--allow", f"{NAME}:9000", "--resolve", f"{NAME}:9000=127.0.0.1:{server.port}", "--egress-log", log]
    try:
        with started(*words, "--", "/usr/bin/python3", "-c", script) as p:
            assert fetch(p) == "x"
            p.send_signal(signal.SIGTSTP)
            assert until(lambda: status_of(p.pid)["State"].split()[0] == "T")
            p.stdin.write(b"\n")
            p.stdin.flush()
            time.sleep(0.5)
            p.send_signal(signal.SIGCONT)
            assert p.stdout.readline() == b"x\n" and fetch(p) == "x"
            assert server.connections == 1
    finally:
        server.close()


def test_a_ceiling_is_not_passed(web, log, tmp_path):
    ceiling = tmp_path / "ceiling.yaml"
    ceiling.write_text("version: 1\nnetwork:\n  allow:\n    - { host: other.example }\n")
    result = run(*flags(web, log, "--ceiling", ceiling), "--json", "--", "curl", "-sS", "-m", "10", f"http://{NAME}/")
    assert result.json["exit_code"] == 6 and web.requests == [], result
    assert {d["rule"] for d in result.json["denials"]} == {"ceiling:default"}


def test_a_spent_budget_says_which(web, log, tmp_path):
    policy = tmp_path / "p.yaml"
    policy.write_text(f"version: 1\nnetwork:\n  allow: [{{ host: '**.{NAME}', ports: [80] }}]\n"
                      "  budget: { connections: 2, rate: 2/s, bytes_out: 1K, names: 1 }\n")
    result = python("""
        import contextlib, socket, time
        address = socket.gethostbyname("web.example")
        def outcome(fn):
            try:
                fn()
                print("open")
            except OSError as e:
                print(type(e).__name__)
        def connect():
            s = socket.create_connection((address, 80), 5)
            s.settimeout(0.3)
            try:
                s.recv(1)
            except TimeoutError:        # neither refused nor answered
                pass
            return s
        outcome(lambda: socket.gethostbyname("second.web.example"))
        held = [connect(), connect()]
        outcome(connect)                # one more than may be open
        held.clear()
        time.sleep(1)
        for i in range(8):
            with contextlib.suppress(ConnectionResetError):
                socket.create_connection((address, 80), 5).close()
            time.sleep(0.03)            # until it counts no more as open
        time.sleep(1)
        s = connect()
        outcome(lambda: (s.sendall(b"POST / HTTP/1.1\\r\\nHost: web.example\\r\\nContent-Length: 4096\\r\\n\\r\\n" + b"x" * 4096),
                         time.sleep(0.3), s.recv(1), s.recv(1)))
        """, "--policy", policy, *flags(web, log)[2:], "--json")
    rules = {d["rule"] for d in result.json["denials"]}
    assert rules == {"budget:names", "budget:connections", "budget:rate", "budget:bytes_out"}, result
    assert {d["code"] for d in result.json["denials"]} == {"net.budget"}
    for words in ("different names of the budget", "budget allows are open", "slow down", "bytes of the budget"):
        assert words in result.err, result
    assert result.lines[:2] == ["gaierror", "ConnectionResetError"]


# --- what is shown ---

def test_plan_and_evidence_agree_and_show_the_network(web, log, tmp_path):
    evidence = tmp_path / "e.json"
    plan = json.loads(gabion("plan", *flags(web, log), "--json", "--", "true").out)
    assert run(*flags(web, log), "--evidence", evidence, "--", "true").code == 0
    doc = json.loads(evidence.read_text())
    assert plan["plan"] == doc["plan"]
    assert plan["network"]["namespace"] == doc["network"]["namespace"]
    assert plan["network"]["policy"]["allow"] == [{"host": NAME, "ports": [80, 443]}]
    assert doc["network"]["canaries_refused"] == 5 and doc["network"]["listeners"] == "held by egress"
    assert doc["network"]["rules"].startswith("sha256:")
    assert [d for d in doc["deviations"] if "--resolve" in d and NAME in d]
    other = json.loads(gabion("plan", "--allow", "other.example", "--json", "--", "true").out)
    assert other["plan"] != plan["plan"]


def test_public_is_a_deviation():
    plan = json.loads(gabion("plan", "--net", "public", "--json", "--", "true").out)
    assert [d for d in plan["deviations"] if "public" in d]


def test_a_proxys_password_is_not_shown():
    out = gabion("plan", "--allow", NAME, "--upstream-proxy", "http://me:hunter2@proxy.example:3128", "--json", "--",
                 "true").out
    assert "hunter2" not in out and "proxy.example:3128" in out


# --- other ways out ---

@pytest.mark.parametrize("scheme, cls", [("http", world.HttpProxy), ("socks5", world.SocksProxy)])
def test_a_proxy_upstream_is_used_and_asked_for_the_address(web, log, scheme, cls):
    """The address is never reached: the proxy leads to our own server."""
    proxy = cls(web.port)
    try:
        result = run("--allow", "93.184.216.34:80", "--upstream-proxy", f"{scheme}://127.0.0.1:{proxy.port}", "--egress-log", log,
                     "--", "curl", "-sS", "-m", "10", "http://93.184.216.34/far")
    finally:
        proxy.close()
    assert result.out == "GET /far 0\n", result
    if cls is world.HttpProxy:
        assert proxy.heads[0].startswith("CONNECT 93.184.216.34:80 HTTP/1.1\r\n")
    else:
        assert proxy.targets == [(1, bytes([93, 184, 216, 34]), 80)]


def test_a_source_address_can_be_chosen(log):
    peers = []
    server = world.Server(lambda sock: (peers.append(sock.getpeername()[0]), sock.sendall(b"hello")))
    try:
        result = python(f"""
            import socket
            print(socket.create_connection(("{NAME}", 9000), 5).recv(5).decode())
            """, "--allow", f"{NAME}:9000", "--resolve", f"{NAME}:9000=127.0.0.1:{server.port}", "--bind", "127.0.0.66",
                        "--egress-log", log)
    finally:
        server.close()
    assert result.out == "hello\n" and peers == ["127.0.0.66"], result


# --- certificates ---

@pytest.fixture
def opened(tmp_path):
    policy = tmp_path / "p.yaml"
    policy.write_text(f"version: 1\nnetwork:\n  allow:\n    - {{ host: {NAME}, ports: [443], methods: [GET] }}\n")
    return policy


def test_opened_tls_is_trusted_inside_and_nowhere_else(opened, log, tmp_path):
    server = world.Web(context=world.server_context(NAME))
    before = pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_bytes()
    words = ["--policy", opened, *flags(server, log, port=443)[2:], "--ca-bundle", world.authority()[1]]
    try:
        result = run(*words, "--evidence", tmp_path / "e.json", "--", "curl", "-sS", f"https://{NAME}/hello")
        assert result.out == "GET /hello 0\n", result
        result = run(*words, "--", "curl", "-sS", "-X", "POST", f"https://{NAME}/hello")
        assert json.loads(result.out)["code"] == "net.method_not_allowed", result
        result = python(f"""
            import os, ssl, urllib.request
            print(urllib.request.urlopen("https://{NAME}/py").read().decode().strip())
            print(*sorted({{v for k, v in os.environ.items() if "CERT" in k or "CA" in k}}))
            """, *words)
        assert result.lines == ["GET /py 0", "/etc/ssl/certs/ca-certificates.crt"], result
        assert len(server.requests) == 2
    finally:
        server.close()
    plan = json.loads(gabion("plan", *words, "--json", "--", "true").out)
    assert plan["plan"] == json.loads((tmp_path / "e.json").read_text())["plan"]  # though each run has a key of its own
    assert pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_bytes() == before


def test_two_runs_have_two_authorities(opened, log):
    words = ["--policy", opened, "--egress-log", log, "--", "sh", "-c", "tail -c 300 /etc/ssl/certs/ca-certificates.crt"]
    first, second = run(*words), run(*words)
    assert first.out and first.out != second.out


def test_the_callers_own_variable_wins(opened, log):
    result = sh("echo $SSL_CERT_FILE $PIP_CERT", "--policy", opened, "--egress-log", log, "-e", "SSL_CERT_FILE=/mine")
    assert result.out == "/mine /etc/ssl/certs/ca-certificates.crt\n", result


def test_passed_through_tls_needs_only_the_bundle(log):
    server = world.Web(context=world.server_context(NAME))
    try:
        words = flags(server, log, port=443)
        assert run(*words, "--", "curl", "-sS", f"https://{NAME}/").code == 60  # the host does not know the test CA
        result = run(*words, "--ca-bundle", world.authority()[1], "--", "curl", "-sS", f"https://{NAME}/")
        assert result.out == "GET / 0\n", result
    finally:
        server.close()


# --- processes that die ---

def test_a_killed_egress_refuses_then_comes_back(web, log):
    with started(*flags(web, log), "--", "/usr/bin/python3", "-c", FETCH) as p:
        egress = find_below(p.pid, "gabion-egress")
        command = find_below(p.pid, "python3")
        assert fetch(p) == "200"
        os.kill(egress, signal.SIGKILL)
        answers = []
        assert until(lambda: answers.append(fetch(p)) or answers[-1] == "200", PATIENCE), answers
        assert find_below(p.pid, "gabion-egress") != egress
        assert find_below(p.pid, "python3") == command  # the sandbox is untouched
        for _ in range(3):  # and again, later each time
            os.kill(find_below(p.pid, "gabion-egress"), signal.SIGKILL)
            assert until(lambda: fetch(p) == "200", PATIENCE)
        p.stdin.close()
        assert p.wait(10) == 0
        assert b"connections are refused until it is back" in p.stderr.read()


def test_while_egress_is_dead_connects_are_refused_at_once(web, log, shared):
    """The supervisor is stopped meanwhile: on a busy machine the next egress could be there before anybody has looked."""
    script = """
        import os, socket, time
        address = socket.gethostbyname("web.example")
        print("ready", flush=True)
        while not os.path.exists("/mnt/s/dead"):
            time.sleep(0.01)
        seen, begin = set(), time.monotonic()
        for i in range(20):
            try:
                socket.create_connection((address, 80), 3).close()
                seen.add("reached")
            except OSError as e:
                seen.add(type(e).__name__)
        with open("/mnt/s/part", "w") as f:
            print(*seen, time.monotonic() - begin < 2, end="", file=f)
        os.rename("/mnt/s/part", "/mnt/s/seen")
        """
    words = flags(web, log, "-v", f"{shared}:/mnt/s:rw")
    with started(*words, "--", "/usr/bin/python3", "-c", textwrap.dedent(script)) as p:
        assert p.stdout.readline() == b"ready\n"
        egress = find_below(p.pid, "gabion-egress")
        p.send_signal(signal.SIGSTOP)
        # A stopped egress is no help: the kernel answers in its place. It must be gone, and its sockets with it.
        os.kill(egress, signal.SIGKILL)
        assert until(lambda: pathlib.Path(f"/proc/{egress}/stat").read_text().rpartition(") ")[2][0] == "Z", PATIENCE)
        (shared / "dead").touch()
        assert until((shared / "seen").exists, PATIENCE)
        assert (shared / "seen").read_text() == "ConnectionRefusedError True"
        p.send_signal(signal.SIGCONT)
        assert p.wait(10) == 0


def test_a_killed_supervisor_leaves_nothing(web, log):
    with started(*flags(web, log), "--", "sleep", "30") as p:
        find_below(p.pid, "sleep")
        egress = find_below(p.pid, "gabion-egress")
        sandbox_id(p)
        p.kill()
        assert until(lambda: egress not in descendants(os.getpid()), 3)  # we are who adopts the lost
        assert until(lambda: not set(slots()) - others(), 3)


def test_the_egress_process_holds_nothing_and_may_nothing(web, log):
    with started(*flags(web, log), "--", "sleep", "30") as p:
        find_below(p.pid, "sleep")
        egress = find_below(p.pid, "gabion-egress")
        status = pathlib.Path(f"/proc/{egress}/status").read_text()
        assert [line for line in status.splitlines() if line.startswith("CapEff") and int(line.split()[1], 16) == 0]
        assert pathlib.Path(f"/proc/{egress}/environ").read_bytes() == b""
        links = [os.readlink(f"/proc/{egress}/fd/{fd}") for fd in os.listdir(f"/proc/{egress}/fd")]
        assert not [link for link in links if link.startswith("/") and link != "/dev/null"
                    and not link.startswith("/memfd:")], links


def test_without_the_program_nothing_starts(tmp_path, shared):
    alone = tmp_path / "gabion"
    shutil.copy(GABION, alone)
    result = gabion("run", "--allow", NAME, "-v", f"{shared}:/mnt/s:rw", "--", "touch", "/mnt/s/f", binary=str(alone))
    assert result.code == 125 and not (shared / "f").exists()
    assert len(result.err.splitlines()) == 1 and "gabion-egress" in result.err and "install" in result.err
    assert gabion("run", "--", "true", binary=str(alone)).code == 0  # which others do not need


# --- signals ---

def test_a_key_at_the_terminal_is_not_for_egress(web, log):
    with started(*flags(web, log), "--", "/usr/bin/python3", "-c", FETCH, start_new_session=True) as p:
        assert fetch(p) == "200"
        os.killpg(p.pid, signal.SIGWINCH)
        egress = find_below(p.pid, "gabion-egress")
        assert os.getsid(egress) != os.getsid(p.pid)
        time.sleep(0.1)
        assert fetch(p) == "200"
