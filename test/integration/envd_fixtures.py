"""src/envd beside a real agent, for the tests that speak to it directly."""
import pytest
from envd import Client, RpcError, Server


@pytest.fixture
def server(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    s = Server(home)
    yield s
    s.stop()


@pytest.fixture
def envd(server):
    return Client(server)


def code_of(call):
    """The code of the error that a call must end with."""
    with pytest.raises(RpcError) as e:
        call()
    return e.value.code
