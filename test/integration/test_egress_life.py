"""gabion-egress as a process: what it gave up, live changes, its end, and that no record is lost."""
import contextlib
import os
import pathlib
import re
import socket
import struct
import threading
import time

import egress_driver as driver
import egress_world as world
import pytest
from egress_fixtures import (NAME, allow, client_context, egress, open_file, place,  # noqa: F401 fixtures
                             is_reset, reset_or_closed, rule, servers, start, to)


def exchange(sock, data=b"x"):
    sock.sendall(data)
    return sock.recv(len(data), socket.MSG_WAITALL)


def status_of(egress):
    text = pathlib.Path(f"/proc/{egress.process.pid}/status").read_text()
    return {k: v.strip() for k, v in re.findall(r"^(\w+):(.*)$", text, re.M)}


# --- what it gave up ---

def test_it_is_nobody_without_capabilities_or_files(egress):
    s = status_of(egress)
    assert set(s["Uid"].split()) != {"0"} and len(set(s["Uid"].split())) == 1 and s["Groups"] == ""
    assert all(int(s[c], 16) == 0 for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
    assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2" and s["Seccomp_filters"] == "1"
    fds = {os.readlink(f) for f in pathlib.Path(f"/proc/{egress.process.pid}/fd").iterdir()}
    assert not [f for f in fds if f.startswith("/") and "memfd" not in f and f != "/dev/null" and "(deleted)" not in f]


def test_leaked_descriptors_are_closed():
    leak = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(leak, True)
    e = driver.Egress()
    try:
        names = {os.readlink(f) for f in pathlib.Path(f"/proc/{e.process.pid}/fd").iterdir()}
        assert "/etc/passwd" not in names
    finally:
        os.close(leak)
        assert e.close() == 0


def test_without_a_control_socket_it_says_so():
    import subprocess
    out = subprocess.run([driver.EGRESS], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert out.returncode == 1 and "control socket" in out.stderr and len(out.stderr.splitlines()) == 1


# --- the protocol ---

@pytest.mark.parametrize("config,named", [({"bind": "nowhere"}, "bind"), ({"open_tls": 1}, "open_tls"),
                                          ({"surprise": True}, "surprise"), ({"upstream_proxy": "ftp://x"}, "upstream_proxy"),
                                          ({"open_tls": True, "ca_bundle": "/nowhere.pem"}, "/nowhere.pem")])
def test_bad_configuration_is_named(config, named):
    e = driver.Egress(**config)
    assert named in e.config_failed
    e.sock.close()
    assert e.process.wait(5) == 1


@pytest.mark.parametrize("message", [struct.pack(">HI", 99, 7), struct.pack(">HI", 5, 0), b"x", struct.pack(">HI", 1, 7),
                                     struct.pack(">HI", 5, 7) + b"more", struct.pack(">HIH", 2, 7, 20) + b"a" * 20],
                         ids=["unknown", "no-number", "short", "config-again", "trailing", "no-descriptors"])
def test_broken_supervisor_ends_it(message):
    e = driver.Egress()
    e.sock.send(message)
    assert e.process.wait(5) == 1 and "gabion-egress: " in e.stderr()
    e.sock.close()


def test_bad_documents_are_refused_and_the_process_lives(place, egress):
    good = driver.document(allow(rule()))
    for text in ("{}", "nonsense", good.replace('"policy_hash": "sha256:', '"policy_hash": "sha256:0'),
                 good.replace('"resolve": []', '"resolve": [], "more": 1')):
        with pytest.raises(ValueError):
            egress.add(place, text)
    sandbox = egress.add(place, good)
    with pytest.raises(ValueError, match="already"):
        egress.add(driver.Place(), good, sandbox)
    with pytest.raises(ValueError):
        egress.update(sandbox, "{}")
    assert driver.resolve(place, NAME)
    assert egress.remove("a" * 20)[0] == driver.FAILED
    assert egress.remove(sandbox)[0] == driver.OK


def test_unsealed_documents_and_wrong_sockets_are_refused(place, egress):
    socks = place.listeners()
    loose = os.memfd_create("loose")
    os.write(loose, driver.document(allow(rule())).encode())
    fds = [s.fileno() for s in socks]
    body = driver.Egress._id(driver.new_id())
    assert egress.ask(driver.ADD, body, [*fds, loose])[0] == driver.FAILED
    doc = driver.sealed(driver.document(allow(rule())))
    assert egress.ask(driver.ADD, body, [fds[1], fds[1], fds[2], doc])[0] == driver.FAILED
    assert egress.ask(driver.ADD, body, [*fds, doc])[0] == driver.OK
    for s in socks:
        s.close()


# --- live changes ---

def test_update_counts_at_once_for_new_connections(place, egress, servers):
    s = servers(world.echo)
    sandbox = egress.add(place, driver.document(allow(rule()), resolve=[to(s)]))
    address = driver.resolve(place, NAME)
    old = place.connect(address, 9000)
    assert exchange(old) == b"x"
    egress.update(sandbox, driver.document(allow(rule("other.example.com")), resolve=[to(s)]))
    assert driver.rcode(driver.ask_name(place, NAME)) == 3
    assert is_reset(place, address, 9000)
    assert exchange(old) == b"x"  # it was not asked to go
    egress.update(sandbox, driver.document(allow(rule()), resolve=[to(s)]))
    with place.connect(address, 9000) as c:
        assert exchange(c) == b"x"
    old.close()


def test_update_drops_what_is_no_longer_allowed(place, egress, servers):
    s, web = servers(world.echo), servers(cls=world.Web)
    both = [to(s), to(s, "other.example.com"), to(web, port=80)]
    sandbox = egress.add(place, driver.document(allow(rule(), rule("other.example.com")), resolve=both))
    gone = place.connect(driver.resolve(place, NAME), 9000)
    stays = place.connect(driver.resolve(place, "other.example.com"), 9000)
    page = place.connect(driver.resolve(place, NAME), 80)
    page.sendall(f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
    while not page.recv(1000).endswith(b"GET / 0\n"):
        pass
    assert exchange(gone) == exchange(stays) == b"x"
    egress.update(sandbox, driver.document(allow(rule("other.example.com")), resolve=both), drop=True)
    assert reset_or_closed(gone) is None and reset_or_closed(page) is None
    assert exchange(stays) == b"x"
    r = egress.find(decision="deny", phase="close", name=NAME, port=9000)
    assert r["bytes_out"] == 1 and "changed" in r["detail"]
    stays.close()


def test_update_to_rules_about_requests_drops_unseen_connections(place, egress, servers):
    s = servers(world.echo)
    sandbox = egress.add(place, driver.document(allow(rule()), resolve=[to(s)]))
    c = place.connect(driver.resolve(place, NAME), 9000)
    assert exchange(c) == b"x"
    egress.update(sandbox, driver.document(allow(rule(methods=["GET"])), resolve=[to(s)]), drop=True)
    assert reset_or_closed(c) is None


def test_update_changes_budgets(place, egress):
    sandbox = egress.add(place, driver.document(allow(rule("**.files.example"), names=1)))
    first = driver.resolve(place, "a.files.example")
    assert driver.rcode(driver.ask_name(place, "b.files.example")) == 5
    egress.update(sandbox, driver.document(allow(rule("**.files.example"), names=2)))
    assert driver.resolve(place, "b.files.example") != first == driver.resolve(place, "a.files.example")


def test_remove_tells_open_connections_before_it_answers(place, egress, servers):
    s = servers(world.echo)
    sandbox = egress.add(place, driver.document(allow(rule()), resolve=[to(s)]))
    socks = [place.connect(driver.resolve(place, NAME), 9000) for _ in range(5)]
    for c in socks:
        exchange(c, b"hello")
    assert egress.remove(sandbox)[0] == driver.OK
    closed = [r for r in egress.records if r.get("phase") == "close"]
    assert len(closed) == 5 and all(r["bytes_out"] == 5 for r in closed)
    assert all(reset_or_closed(c) is None for c in socks)
    with pytest.raises(ConnectionRefusedError):
        place.connect("198.18.0.1", 9000)


def test_sandboxes_do_not_share_names_or_rules(egress, servers):
    s = servers(world.echo)
    a, b = driver.Place(), driver.Place()
    first = egress.add(a, driver.document(allow(rule()), resolve=[to(s)]))
    egress.add(b, driver.document(allow(rule("other.example.com"))))
    address = driver.resolve(a, NAME)
    assert driver.rcode(driver.ask_name(b, NAME)) == 3
    assert driver.resolve(b, "other.example.com") == address  # the same number, another book
    assert is_reset(b, address, 9000)  # no server: it was never looked up
    with a.connect(address, 9000) as c:
        assert exchange(c) == b"x"
    egress.find(phase="close", name=NAME)
    assert {r["sandbox"] for r in egress.records if r.get("name") == NAME and r["decision"] == "allow"} == {first}
    a.close()
    b.close()


# --- its end ---

def test_killed_egress_refuses_and_its_successor_goes_on(place, servers):
    web = servers(world.server_context(NAME), cls=world.Web)
    text = driver.document(allow(rule(methods=["GET"]), rule("b.example.com"), rule("c.example.com")),
                           resolve=[to(web, port=443)])
    config = {"open_tls": True, "ca_bundle": world.authority()[1]}
    e = driver.Egress(**config)
    sandbox = e.add(place, text)
    names = {n: driver.resolve(place, n) for n in ("b.example.com", NAME, "c.example.com")}
    trusted, keep = e.certificate, os.dup(e.keep)
    e.kill()
    with pytest.raises(ConnectionRefusedError):
        place.connect(names[NAME], 443)
    after = driver.Egress(keep=keep, **config)
    assert after.certificate == trusted
    after.add(place, text, sandbox)
    with client_context(trusted).wrap_socket(place.connect(names[NAME], 443), server_hostname=NAME) as c:
        c.sendall(f"GET / HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        assert c.recv(12) == b"HTTP/1.1 200"
    assert {n: driver.resolve(place, n) for n in reversed(list(names))} == names
    os.close(keep)
    assert after.close() == 0


def test_it_ends_with_its_supervisor(place, servers):
    s = servers(world.echo)
    e = driver.Egress()
    e.add(place, driver.document(allow(rule()), resolve=[to(s)]))
    c = place.connect(driver.resolve(place, NAME), 9000)
    assert exchange(c) == b"x"
    assert e.close() == 0
    assert reset_or_closed(c) in (None, b"")
    with pytest.raises(ConnectionRefusedError):
        place.connect("198.18.0.1", 9000)


# --- records ---

def test_repeated_denials_are_counted(place, egress):
    egress.add(place, driver.document(allow(rule())))
    for _ in range(50):
        assert is_reset(place, "93.184.216.34", 443)
    egress.find(address="93.184.216.34", count=49, timeout=3)
    mine = [r for r in egress.records if r.get("address") == "93.184.216.34"]
    assert len(mine) == 2 and len({r["event"] for r in mine}) == 1


def test_long_connections_are_told_while_they_last(place, egress, servers):
    s = servers(world.echo)
    egress.add(place, driver.document(allow(rule()), resolve=[to(s)]))
    c = place.connect(driver.resolve(place, NAME), 9000)
    assert exchange(c) == b"x"
    opened = egress.find(phase="open", timeout=12)
    c.close()
    closed = egress.find(phase="close")
    assert opened["event"] == closed["event"] and opened["bytes_out"] == 1 and closed["duration_ms"] > 9000


def test_nothing_is_accepted_while_nobody_reads_records(place, egress, servers):
    """Every name that was answered is told: with a supervisor that sleeps, answers stop instead."""
    egress.add(place, driver.document({"allow": [rule("**.files.example")], "budget": {"names": 100000}}))
    s = place.socket(kind=socket.SOCK_DGRAM, timeout=0.3)
    s.connect(("8.8.8.8", 53))
    answered = 0
    with contextlib.suppress(TimeoutError):
        for i in range(5000):
            s.send(driver.query(f"n{i}.files.example"))
            s.recv(512)
            answered += 1
    assert answered < 5000
    told = set()
    while egress.receive(0.5):
        told = {r["name"] for r in egress.records}
    assert {f"n{i}.files.example" for i in range(answered)} <= told
    s.send(driver.query("again.files.example"))
    s.settimeout(3)
    assert s.recv(512)
    s.close()


def test_hundreds_of_sandboxes(egress, servers):
    s = servers(world.echo)
    text = driver.document(allow(rule()), resolve=[to(s)])
    places = [driver.Place() for _ in range(60)]
    ids = [egress.add(p, text) for p in places for _ in range(1)]
    assert len(set(ids)) == 60
    for p in places:
        with p.connect(driver.resolve(p, NAME), 9000) as c:
            assert exchange(c) == b"x"
    for sandbox in ids:
        assert egress.remove(sandbox)[0] == driver.OK
    for p in places:
        p.close()
    assert len([r for r in egress.records if r.get("phase") == "close"]) == 60
