"""gabion-egress behind others: upstream proxies, source addresses, name servers."""
import base64
import contextlib
import socket
import struct
import threading

import egress_driver as driver
import egress_world as world
import pytest
from egress_fixtures import (NAME, allow, client_context, egress, is_reset, loopback, open_file, place,  # noqa: F401 fixtures
                             rule, servers, start, to)

PUBLIC = "93.184.216.34"  # never reached: the proxies of these tests lead elsewhere


def echo_through(place, port=9000, words=b"hello"):
    with place.connect(driver.resolve(place, NAME), port) as c:
        c.sendall(words)
        got = b""
        while len(got) < len(words) and (piece := c.recv(65536)):
            got += piece
        return got


def test_http_proxy_is_asked_for_the_judged_address(place, start, servers, open_file):
    far = servers(world.echo)
    proxy = servers(far.port, cls=world.HttpProxy)
    e = start(upstream_proxy=f"http://me:p%40ss@127.0.0.1:{proxy.port}", hosts=open_file("hosts", f"{PUBLIC} {NAME}\n"))
    e.add(place, driver.document(allow(rule())))
    assert echo_through(place) == b"hello"
    assert proxy.heads[0].startswith(f"CONNECT {PUBLIC}:9000 HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:p@ss').decode()}\r\n" in proxy.heads[0]
    assert e.find(kind="tcp", phase="close")["address"] == PUBLIC


def test_http_proxy_may_be_given_names(place, start, servers):
    far = servers(world.echo)
    proxy = servers(far.port, cls=world.HttpProxy)
    e = start(upstream_proxy=f"http://127.0.0.1:{proxy.port}", upstream_names=True)
    e.add(place, driver.document(allow(rule())))
    assert echo_through(place) == b"hello"
    assert proxy.heads[0].startswith(f"CONNECT {NAME}:9000 HTTP/1.1\r\n")


def test_private_addresses_are_refused_before_the_proxy_is_asked(place, start, servers, open_file):
    proxy = servers(1, cls=world.HttpProxy)
    e = start(upstream_proxy=f"http://127.0.0.1:{proxy.port}", hosts=open_file("hosts", f"10.0.0.1 {NAME}\n"))
    e.add(place, driver.document(allow(rule())))
    assert is_reset(place, driver.resolve(place, NAME), 9000)
    assert e.find(decision="deny")["code"] == "net.private_address" and not proxy.heads


def test_server_that_speaks_first_is_heard_through_a_proxy(place, start, servers):
    far = servers(world.banner)
    proxy = servers(far.port, cls=world.HttpProxy)
    proxy.server_first = True
    e = start(upstream_proxy=f"http://127.0.0.1:{proxy.port}", upstream_names=True)
    e.add(place, driver.document(allow(rule())))
    with place.connect(driver.resolve(place, NAME), 9000) as c:
        assert c.recv(100) == b"220 ready\r\n"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", b"garbage\r\n\r\n",
                                    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"])
def test_proxy_that_refuses_is_a_failure_and_no_denial(place, start, servers, answer):
    proxy = servers(1, answer, cls=world.HttpProxy)
    e = start(upstream_proxy=f"http://127.0.0.1:{proxy.port}", upstream_names=True)
    e.add(place, driver.document(allow(rule())))
    assert is_reset(place, driver.resolve(place, NAME), 9000)
    r = e.find(kind="tcp", phase="close")
    assert r["decision"] == "allow" and "proxy" in r["detail"]


def test_socks_proxy_by_name_with_password(place, start, servers, open_file):
    far = servers(world.echo)
    proxy = servers(far.port, "me", "secret", cls=world.SocksProxy)
    e = start(upstream_proxy=f"socks5://me:secret@proxy.example:{proxy.port}",
              hosts=open_file("hosts", f"{PUBLIC} {NAME}\n127.0.0.1 proxy.example\n"))
    e.add(place, driver.document(allow(rule())))
    assert echo_through(place, words=b"x" * 100000) == b"x" * 100000
    assert proxy.targets == [(1, socket.inet_aton(PUBLIC), 9000)]


def test_socks_proxy_with_a_wrong_password_is_a_failure(place, start, servers):
    proxy = servers(1, "me", "secret", cls=world.SocksProxy)
    e = start(upstream_proxy=f"socks5://me:wrong@127.0.0.1:{proxy.port}", upstream_names=True)
    e.add(place, driver.document(allow(rule())))
    assert is_reset(place, driver.resolve(place, NAME), 9000)
    assert "secret" not in str(e.records) and "wrong" not in str(e.records)


def test_overrides_go_past_the_proxy(place, start, servers):
    far = servers(world.echo)
    proxy = servers(1, cls=world.HttpProxy)
    e = start(upstream_proxy=f"http://127.0.0.1:{proxy.port}")
    e.add(place, driver.document(allow(rule()), resolve=[to(far)]))
    assert echo_through(place) == b"hello" and not proxy.heads


def test_opened_tls_goes_through_the_proxy_too(place, start, servers):
    web = servers(world.server_context(NAME), cls=world.Web)
    proxy = servers(web.port, cls=world.HttpProxy)
    e = start(upstream_proxy=f"http://127.0.0.1:{proxy.port}", upstream_names=True, open_tls=True,
              ca_bundle=world.authority()[1])
    e.add(place, driver.document(allow(rule(methods=["GET"]))))
    raw = place.connect(driver.resolve(place, NAME), 443)
    with client_context(e.certificate).wrap_socket(raw, server_hostname=NAME) as c:
        c.sendall(f"GET /a HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        assert c.recv(12) == b"HTTP/1.1 200"
    assert web.requests[0][1] == "/a" and proxy.heads[0].startswith(f"CONNECT {NAME}:443 ")


def test_source_address_is_the_operators(place, start, servers):
    peers = []
    far = servers(lambda sock: (peers.append(sock.getpeername()[0]), world.echo(sock)))
    e = start(bind="127.0.0.66")
    e.add(place, driver.document(allow(rule()), resolve=[to(far)]))
    assert echo_through(place) == b"hello" and peers == ["127.0.0.66"]


def test_source_address_of_another_machine_is_a_failure(place, start, servers):
    far = servers(world.echo)
    e = start(bind="203.0.113.1")
    e.add(place, driver.document(allow(rule()), resolve=[to(far)]))
    assert is_reset(place, driver.resolve(place, NAME), 9000)
    assert "source address" in e.find(kind="tcp", phase="close")["detail"] and far.connections == 0


class NameServer:
    """Answers A questions with `address` until closed."""

    def __init__(self, address):
        self.asked = []
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.address, self.at = address, loopback()
        self.sock.bind((self.at, 53))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                q, peer = self.sock.recvfrom(4096)
                end = q.index(b"\0", 12) + 5
                kind = struct.unpack(">H", q[end - 4:end - 2])[0]
                self.asked.append((q[12:end - 5], kind))
                body = b"\xc0\x0c\0\1\0\1\0\0\0\x05\0\4" + socket.inet_aton(self.address) if kind == 1 else b""
                self.sock.sendto(q[:2] + b"\x81\x80\0\1" + struct.pack(">H", bool(body)) + b"\0\0\0\0" + q[12:end] + body,
                                 peer)

    def close(self):
        self.sock.close()


def test_name_servers_are_asked_and_their_answer_is_judged(place, start, servers, open_file):
    far = servers(world.echo)
    dns = servers("127.0.0.1", cls=NameServer)
    e = start(resolv_conf=open_file("resolv.conf", f"nameserver {dns.at}\n"))
    e.add(place, driver.document(allow(rule(ports=[far.port]))))
    assert is_reset(place, driver.resolve(place, NAME), far.port)
    assert e.find(decision="deny", name=NAME)["address"] == "127.0.0.1" and far.connections == 0
    assert any(kind == 1 for _, kind in dns.asked)


def test_name_server_that_is_silent_is_a_failure(place, start, open_file):
    e = start(resolv_conf=open_file("resolv.conf", f"nameserver {loopback()}\noptions timeout:1 attempts:1\n"))
    e.add(place, driver.document(allow(rule())))
    assert is_reset(place, driver.resolve(place, NAME), 9000)
    assert "name servers" in e.find(kind="tcp", phase="close", timeout=6)["detail"]
