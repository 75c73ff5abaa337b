"""Fixtures and small words that the tests of gabion-egress share."""
import contextlib
import os
import pathlib
import random
import socket
import ssl
import tempfile

import egress_driver as driver
import egress_world as world
import pytest

NAME = "api.example.com"


@pytest.fixture
def place():
    p = driver.Place()
    yield p
    p.close()


@pytest.fixture
def start():
    """Starts egress with a configuration; all are ended after the test, and must have ended well."""
    made = []

    def make(**config):
        made.append(driver.Egress(**config))
        return made[-1]
    yield make
    for e in made:
        assert e.close() == 0, e.stderr()


@pytest.fixture
def egress(start):
    return start()


@pytest.fixture
def open_file():
    """Makes files that egress can read, as another user that it becomes."""
    with tempfile.TemporaryDirectory(prefix="gabion-test-") as folder:
        os.chmod(folder, 0o755)

        def make(name, text):
            path = pathlib.Path(folder, name)
            path.write_text(text)
            path.chmod(0o644)
            return str(path)
        yield make


@pytest.fixture
def servers():
    made = []

    def make(*args, cls=world.Server, **kw):
        made.append(cls(*args, **kw))
        return made[-1]
    yield make
    for s in made:
        s.close()


def loopback():
    """An address of this machine that nobody else uses."""
    return "127.%d.%d.%d" % (random.randint(64, 126), random.randint(0, 255), random.randint(1, 254))


def allow(*rules, **budget):
    return {"allow": list(rules), **({"budget": budget} if budget else {})}


def rule(host=NAME, ports=(80, 443, 9000), **more):
    return {"host": host, "ports": list(ports), **more}


def to(server, name=NAME, port=9000):
    return name, port, "127.0.0.1", server.port


def reset_or_closed(sock):
    """What a refused connection looks like from inside: no byte, and a reset."""
    try:
        return sock.recv(100)
    except ConnectionResetError:
        return None


def is_reset(place, address, port, words=b""):
    """Is a connection refused, before or after what the client says, without a byte in answer?"""
    try:
        with place.connect(address, port) as c:
            if words:
                c.sendall(words)
            c.recv(100)
    except (ConnectionResetError, BrokenPipeError):
        return True
    return False


def drain(sock):
    with contextlib.suppress(OSError):
        while sock.recv(65536):
            pass


def client_context(ca=None):
    """Trusts the test CA, or the certificate text that egress made."""
    context = ssl.create_default_context(cafile=None if ca else world.authority()[1], cadata=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def hello_bytes(name):
    """A ClientHello as this machine's OpenSSL writes it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()
