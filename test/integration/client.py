"""gabion as a client of a server under test; and the fixtures `cli` and `box` for those who import them."""
import os
import secrets
import subprocess

import harness
import pytest


class Cli:
    """gabion with one key's environment."""

    def __init__(self, server, key=None, **env):
        self.server = server
        self.env = {"PATH": os.environ["PATH"], "GABION_SERVER": "http://%s:%d" % server.address,
                    "GABION_API_KEY": server.key if key is None else key, **env}

    def argv(self, *words):
        return [harness.GABION, *words]

    def popen(self, *words, **kw):
        kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
        return subprocess.Popen(self.argv(*words), env=self.env, **kw)

    def __call__(self, *words, data=None, timeout=30, **kw):
        how = {"input": data} if data is not None else {"stdin": subprocess.DEVNULL}
        how = {**how, **kw}
        return subprocess.run(self.argv(*words), env=self.env, capture_output=True, timeout=timeout, **how)

    def ok(self, *words, **kw):
        out = self(*words, **kw)
        assert out.returncode == 0, out
        return out.stdout.decode()

    def refused(self, *words, code=125, **kw):
        """The one line on standard error."""
        out = self(*words, **kw)
        text = out.stderr.decode()
        assert (out.returncode, out.stdout) == (code, b""), out
        assert text.startswith("gabion: ") and text.count("\n") == 1, text
        return text[len("gabion: "):-1]


@pytest.fixture
def cli(server):
    yield Cli(server)
    server.client().kill_all()


@pytest.fixture
def box(cli):
    name = "box-" + secrets.token_hex(3)
    cli.ok("create", "--name", name)
    return name
