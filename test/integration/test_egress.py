"""gabion-egress by itself: names, connections, checks of first bytes, budgets. The world is on loopback."""
import contextlib
import socket
import struct
import threading
import time

import egress_driver as driver
import egress_world as world
import pytest
from egress_fixtures import (NAME, allow, client_context, drain, egress, hello_bytes, is_reset,  # noqa: F401 fixtures
                             loopback, open_file, place, rule, servers, start, to)


# --- names ---

def test_allowed_names_get_addresses_of_their_own(place, egress):
    egress.add(place, driver.document(allow(rule(), rule("**.files.example"))))
    first = driver.resolve(place, NAME)
    second = driver.resolve(place, "a.b.files.example")
    assert first != second and first.startswith("198.18.") and second.startswith("198.18.")
    assert driver.resolve(place, NAME.upper()) == first
    assert driver.resolve(place, "files.example") not in (first, second)


def test_other_names_do_not_exist(place, egress):
    egress.add(place, driver.document(allow(rule())))
    begin = time.monotonic()
    assert driver.rcode(driver.ask_name(place, "evil.example")) == 3
    assert time.monotonic() - begin < 0.5
    r = egress.find(kind="dns", name="evil.example")
    assert (r["decision"], r["code"], r["rule"]) == ("deny", "net.name_not_allowed", "default")


def test_refusal_carries_its_reason_for_clients_that_can_show_it(place, egress):
    egress.add(place, driver.document(allow(rule())))
    s = place.socket(kind=socket.SOCK_DGRAM)
    with s:
        s.connect(("8.8.8.8", 53))
        s.send(driver.query("evil.example", edns=True))
        reply = s.recv(4096)
    r = egress.find(kind="dns", name="evil.example")
    assert f"net.name_not_allowed; event={r['event']}; do not retry".encode() in reply


@pytest.mark.parametrize("kind", [28, 64, 65, 16, 15, 255], ids=["AAAA", "SVCB", "HTTPS", "TXT", "MX", "ANY"])
def test_only_addresses_of_allowed_names_are_told(place, egress, kind):
    egress.add(place, driver.document(allow(rule())))
    reply = driver.ask_name(place, NAME, kind)
    assert driver.rcode(reply) == 0 and struct.unpack(">H", reply[6:8])[0] == 0


def test_any_resolver_address_answers_from_itself(place, egress):
    egress.add(place, driver.document(allow(rule())))
    for server in ("8.8.8.8", "10.9.8.7", "2001:4860:4860::8888"):
        s = place.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
        with s:
            s.sendto(driver.query(NAME), (server, 53))
            reply, peer = s.recvfrom(4096)
            assert peer[:2] == (server, 53) and driver.address_of(reply).startswith("198.18.")


def test_dns_over_tcp_answers_several_queries_on_one_connection(place, egress):
    egress.add(place, driver.document(allow(rule())))
    with place.connect("9.9.9.9", 53) as s:
        for name, code in ((NAME, 0), ("evil.example", 3), (NAME, 0)):
            q = driver.query(name)
            s.sendall(struct.pack(">H", len(q))[:1])
            s.sendall(struct.pack(">H", len(q))[1:] + q)
            n = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))[0]
            assert driver.rcode(s.recv(n, socket.MSG_WAITALL)) == code


@pytest.mark.parametrize("packet,code", [
    (b"\x12\x34\x08\x00\0\1\0\0\0\0\0\0\0\0\1\0\1", 4),  # opcode 1
    (b"\x12\x34\x01\x00\0\2\0\0\0\0\0\0\1a\0\0\1\0\1\1b\0\0\1\0\1", 1),  # two questions
    (b"\x12\x34\x01\x00\0\1\0\0\0\0\0\0\x08good\0evi\3com\0\0\1\0\1", None),  # NUL in a label
    (b"\x12\x34\x01\x00\0\1\0\0\0\0\0\0\x05a.b.c\0\0\1\0\1", None),  # dots in a label
], ids=["opcode", "two-questions", "nul", "dots"])
def test_odd_queries_are_refused(place, egress, packet, code):
    egress.add(place, driver.document(allow(rule(), rule("**.good.example"))))
    s = place.socket(kind=socket.SOCK_DGRAM)
    with s:
        s.connect(("8.8.8.8", 53))
        s.send(packet)
        got = driver.rcode(s.recv(4096))
    assert got == code if code is not None else got in (1, 3, 5)
    assert egress.find(kind="dns", decision="deny")


def test_budget_of_names_ends(place, egress):
    egress.add(place, driver.document(allow(rule("**.files.example"), names=3)))
    known = [driver.resolve(place, f"n{i}.files.example") for i in range(3)]
    assert len(set(known)) == 3
    assert driver.rcode(driver.ask_name(place, "n3.files.example")) == 5
    assert driver.resolve(place, "n0.files.example") == known[0]
    assert egress.find(kind="dns", code="net.budget")["rule"] == "budget:names"


def test_flood_of_queries_is_refused_and_told(place, egress):
    egress.add(place, driver.document(allow(rule())))
    s = place.socket(kind=socket.SOCK_DGRAM)
    s.connect(("8.8.8.8", 53))
    codes = []
    with s:
        for _ in range(2500):
            s.send(driver.query(NAME))
            codes.append(driver.rcode(s.recv(512)))
            if codes[-1] == 5:
                break
    assert set(codes) == {0, 5} and len(codes) > 900
    assert egress.find(kind="dns", code="net.budget")["rule"] == "floor:dns_rate"


def test_queries_are_not_forwarded(place, start, open_file):
    """The far name server hears of a name when a connection to it is made, and not before."""
    upstream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    at = loopback()
    upstream.bind((at, 53))
    upstream.settimeout(1)
    e = start(resolv_conf=open_file("resolv.conf", f"nameserver {at}\noptions timeout:1 attempts:1\n"))
    e.add(place, driver.document(allow(rule())))
    address = driver.resolve(place, NAME)
    with pytest.raises(TimeoutError):
        upstream.recv(512)
    with place.connect(address, 9000):
        assert NAME.split(".", 1)[0].encode() in upstream.recv(512)
    upstream.close()


# --- connections ---

def test_bytes_pass_both_ways_and_ends_are_kept_apart(place, egress, servers):
    s = servers(world.echo)
    sandbox = egress.add(place, driver.document(allow(rule()), resolve=[to(s)]))
    data = bytes(range(256)) * 8192
    with place.connect(driver.resolve(place, NAME), 9000) as c:
        c.settimeout(10)
        threading.Thread(target=lambda: (c.sendall(data), c.shutdown(socket.SHUT_WR)), daemon=True).start()
        got = b""
        while piece := c.recv(65536):
            got += piece
    assert got == data
    r = egress.find(kind="tcp", phase="close")
    assert (r["bytes_out"], r["bytes_in"], r["rule"], r["address"]) == (len(data), len(data), "allow[0]", "127.0.0.1")
    assert r["sandbox"] == sandbox and r["decision"] == "allow" and r["duration_ms"] > 0


def test_server_may_speak_first(place, egress, servers):
    s = servers(world.banner)
    egress.add(place, driver.document(allow(rule()), resolve=[to(s)]))
    with place.connect(driver.resolve(place, NAME), 9000) as c:
        assert c.recv(100) == b"220 ready\r\n"
        c.sendall(b"HELO\r\n")
        assert c.recv(100) == b"HELO\r\n"


def test_reset_is_passed_on(place, egress, servers):
    def rude(sock):
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s = servers(rude)
    egress.add(place, driver.document(allow(rule()), resolve=[to(s)]))
    with place.connect(driver.resolve(place, NAME), 9000) as c:
        c.sendall(b"xy")
        with pytest.raises(ConnectionResetError):
            c.recv(10)


def test_unreachable_server_is_a_reset_and_not_a_denial(place, egress, servers):
    s = servers(world.echo)
    s.close()
    egress.add(place, driver.document(allow(rule()), resolve=[to(s)]))
    assert is_reset(place, driver.resolve(place, NAME), 9000)
    assert "refused" in egress.find(kind="tcp", decision="allow")["detail"]


@pytest.mark.parametrize("address,port,code,by", [
    ("93.184.216.34", 443, "net.address_not_allowed", "default"),
    ("169.254.169.254", 80, "net.metadata", "floor:metadata"),
    ("10.0.0.1", 22, "net.private_address", "floor:private"),
    ("198.18.0.77", 443, None, None),
    ("2606:2800:220:1::1", 443, "net.address_not_allowed", "default"),
    ("fd00:ec2::254", 80, "net.metadata", "floor:metadata"),
])
def test_literal_addresses_are_reset_and_told(place, egress, address, port, code, by):
    egress.add(place, driver.document(allow(rule())))
    begin = time.monotonic()
    assert is_reset(place, address, port)
    assert time.monotonic() - begin < 0.5
    r = egress.find(kind="tcp", decision="deny", address=address, port=port)
    assert code is None or (r["code"], r["rule"]) == (code, by)


def test_literal_address_of_a_rule_is_reached(place, egress, servers):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        host = None
        probe.connect(("192.0.2.1", 9))
        host = probe.getsockname()[0]
    if not host:
        pytest.skip("this machine has no address but loopback")
    s = servers(world.echo, address=host)
    network = allow({"cidr": host, "ports": [s.port]})
    egress.add(place, driver.document(network, ceiling=network))
    with place.connect(host, s.port) as c:
        c.sendall(b"hello")
        assert c.recv(10) == b"hello"
    assert egress.find(kind="tcp", phase="close")["address"] == host


def test_port_that_is_not_allowed_is_reset(place, egress):
    egress.add(place, driver.document(allow(rule())))
    assert is_reset(place, driver.resolve(place, NAME), 8443)
    assert egress.find(code="net.port_not_allowed")["name"] == NAME


def test_name_that_leads_to_a_private_address_is_refused(place, start, open_file):
    hosts = open_file("hosts", f"10.1.2.3 {NAME}\n169.254.169.254 meta.example.com\n127.0.0.1 local.example.com\n")
    e = start(hosts=hosts)
    e.add(place, driver.document(allow(rule(), rule("meta.example.com"), rule("local.example.com"))))
    for name, code in ((NAME, "net.private_address"), ("meta.example.com", "net.metadata"),
                       ("local.example.com", "net.private_address")):
        assert is_reset(place, driver.resolve(place, name), 9000)
        r = e.find(decision="deny", name=name)
        assert r["code"] == code and r["side"] == "floor" and r["address"]


def test_rebinding_gains_nothing(place, start, servers, open_file):
    """A name with a public and a private address: only the public one is ever dialled."""
    s = servers(world.echo)
    e = start(hosts=open_file("hosts", f"127.0.0.1 {NAME}\n93.184.216.34 {NAME}\n::1 {NAME}\n"))
    e.add(place, driver.document(allow(rule(ports=[s.port]))))
    with contextlib.suppress(OSError), place.connect(driver.resolve(place, NAME), s.port, timeout=0.5) as c:
        c.sendall(b"x")
        assert c.recv(1) != b"x"
    assert s.connections == 0


def test_ceiling_must_allow_too(place, egress, servers):
    s = servers(world.echo)
    egress.add(place, driver.document(allow(rule(), rule("b.example.com")), ceiling=allow(rule()), resolve=[to(s)]))
    assert driver.rcode(driver.ask_name(place, "b.example.com")) == 3
    assert egress.find(name="b.example.com")["side"] == "ceiling"
    with place.connect(driver.resolve(place, NAME), 9000) as c:
        c.sendall(b"x")
        assert c.recv(1) == b"x"


# --- first bytes ---

@pytest.mark.parametrize("port", [443, 9000])
def test_tls_for_the_name_passes_unopened(place, egress, servers, port):
    s = servers(world.echo, context=world.server_context(NAME))
    egress.add(place, driver.document(allow(rule()), resolve=[to(s, port=port)]))
    raw = place.connect(driver.resolve(place, NAME), port)
    with client_context().wrap_socket(raw, server_hostname=NAME) as c:
        assert c.getpeercert()["issuer"][0][0] == ("commonName", "Test CA")
        c.sendall(b"secret")
        assert c.recv(10) == b"secret"
    r = egress.find(kind="tls", phase="close")
    assert r["protocol"] == "tls" and r["bytes_out"] > 300


@pytest.mark.parametrize("port", [443, 9000])
@pytest.mark.parametrize("name,what", [("evil.example", "floor:sni"), (None, "floor:sni")], ids=["other", "none"])
def test_tls_for_another_name_is_refused(place, egress, servers, port, name, what):
    s = servers(world.echo, context=world.server_context(NAME))
    egress.add(place, driver.document(allow(rule()), resolve=[to(s, port=port)]))
    assert is_reset(place, driver.resolve(place, NAME), port, hello_bytes(name))
    r = egress.find(kind="tls", decision="deny")
    assert (r["code"], r["rule"]) == ("net.sni_mismatch", what)
    assert port != 443 or s.connections == 0  # nothing is dialled before the name was seen, where TLS is due


def with_extension(hello, kind, body):
    """The same ClientHello with one more extension at its end."""
    at = 43 + 1 + hello[43]  # after the session id
    at += 2 + struct.unpack(">H", hello[at:at + 2])[0]  # cipher suites
    at += 1 + hello[at]  # compression
    extensions = hello[at + 2:] + struct.pack(">HH", kind, len(body)) + body
    message = hello[9:at] + struct.pack(">H", len(extensions)) + extensions
    handshake = b"\x01" + struct.pack(">I", len(message))[1:] + message
    return hello[:3] + struct.pack(">H", len(handshake)) + handshake


def test_encrypted_hello_is_refused(place, egress, servers):
    s = servers(world.echo, context=world.server_context(NAME))
    egress.add(place, driver.document(allow(rule()), resolve=[to(s, port=443)]))
    address = driver.resolve(place, NAME)
    with place.connect(address, 443) as c:
        c.sendall(with_extension(hello_bytes(NAME), 0x1234, b"unknown"))  # one that nobody knows does not matter
        assert c.recv(1) == b"\x16"
    assert is_reset(place, address, 443, with_extension(hello_bytes(NAME), 0xfe0d, bytes(64)))
    assert egress.find(kind="tls", decision="deny")["rule"] == "floor:ech"


def test_split_hello_passes_and_oversized_one_does_not(place, egress, servers):
    s = servers(world.echo, context=world.server_context(NAME))
    egress.add(place, driver.document(allow(rule()), resolve=[to(s, port=443)]))
    address = driver.resolve(place, NAME)
    with place.connect(address, 443) as c:
        for byte in hello_bytes(NAME):
            c.sendall(bytes([byte]))
            time.sleep(0.0005)
        assert c.recv(1) == b"\x16"  # the server's answer
    assert is_reset(place, address, 443, b"\x16\x03\x01\x40\x00\x01\x00\xff\xff" + bytes(16380) + b"\x16\x03\x01\x40\x00" + bytes(16384) * 3)
    assert egress.find(decision="deny")["code"] == "net.protocol_not_allowed"


@pytest.mark.parametrize("port", [80, 443])
@pytest.mark.parametrize("words", [b"SSH-2.0-x\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x05\x01\x00", b"\0" * 64],
                         ids=["ssh", "h2c", "socks", "zeros"])
def test_other_protocols_do_not_pass_where_web_is_due(place, egress, servers, port, words):
    s = servers(world.echo)
    egress.add(place, driver.document(allow(rule()), resolve=[to(s, port=port)]))
    assert is_reset(place, driver.resolve(place, NAME), port, words)
    assert egress.find(decision="deny")["code"] == "net.protocol_not_allowed"
    assert s.connections == 0


# --- budgets ---

def test_budget_of_open_connections(place, egress, servers):
    s = servers(world.echo)
    egress.add(place, driver.document(allow(rule(), connections=2), resolve=[to(s)]))
    address = driver.resolve(place, NAME)
    first, second = place.connect(address, 9000), place.connect(address, 9000)
    for c in (first, second):
        c.sendall(b"x")
        assert c.recv(1) == b"x"
    assert is_reset(place, address, 9000)
    assert egress.find(code="net.budget")["rule"] == "budget:connections"
    first.close()
    egress.find(kind="tcp", phase="close")
    with place.connect(address, 9000) as c:
        c.sendall(b"y")
        assert c.recv(1) == b"y"
    second.close()


def test_budget_of_rate(place, egress, servers):
    s = servers(world.echo)
    egress.add(place, driver.document(allow(rule(), rate="5/s"), resolve=[to(s)]))
    address, answers = driver.resolve(place, NAME), []
    for _ in range(10):
        try:
            with place.connect(address, 9000) as c:
                c.sendall(b"x")
                answers.append(c.recv(1))
        except OSError:
            answers.append(None)
    assert answers[:5] == [b"x"] * 5 and None in answers
    assert egress.find(code="net.budget")["rule"] == "budget:rate"


def test_budget_of_bytes_out(place, egress, servers):
    s = servers(world.echo)
    egress.add(place, driver.document(allow(rule(), bytes_out="1M"), resolve=[to(s)]))
    address = driver.resolve(place, NAME)
    for _ in range(2):  # what the first one left over is less than the second one wants
        with pytest.raises(OSError), place.connect(address, 9000) as c:
            threading.Thread(target=drain, args=(c,), daemon=True).start()
            for _ in range(100):
                c.sendall(bytes(65536))
                time.sleep(0.001)
    r = egress.find(code="net.budget")
    assert r["rule"] == "budget:bytes_out" and r["bytes_out"] <= 1 << 20
