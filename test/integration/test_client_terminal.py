"""`gabion shell` and `exec -t` under a terminal, and commands that outlive parts of the server."""
import os
import signal
import subprocess
import termios
import time

import harness
import pytest
from client import box, cli  # noqa: F401  pylint: disable=unused-import
from server import Server
from terminal import Terminal


@pytest.fixture
def terminal(cli):
    opened = []

    def make(*words, **kw):
        opened.append(Terminal(cli.argv(*words), env={**cli.env, "TERM": "xterm", "PS1": "$ "}, **kw))
        return opened[-1]

    yield make
    for t in opened:
        t.close()


def is_as_before(t):
    return termios.tcgetattr(t.fd)[:6] == t.before[:6]


def test_a_shell_has_a_terminal_of_the_right_size(terminal, box):
    t = terminal("shell", box, rows=31, columns=97)
    t.type("stty size; tty; echo $TERM; id -un\n")
    t.expect("31 97\r\n/dev/pts/0\r\nxterm\r\nuser\r\n")
    assert not is_as_before(t)
    t.resize(40, 120)
    time.sleep(0.3)
    t.type("stty size\n")
    t.expect("40 120")
    t.type("sleep 60\n")
    time.sleep(0.3)
    t.type("\x03")
    t.type("echo after $?\n")
    t.expect("after 130")
    t.type("exit 7\n")
    assert t.wait() == 7
    assert is_as_before(t)


def test_control_d_ends_it(terminal, box):
    t = terminal("exec", "-it", box, "cat")
    t.type("hello\n")
    t.expect("hello\r\nhello\r\n")
    t.type("\x04")
    assert t.wait() == 0


def test_a_command_can_take_the_place_of_the_shell(terminal, box):
    t = terminal("shell", "-w", "/tmp", "-e", "A=b", box, "sh", "-c", "echo $PWD $A; test -t 0 && exit 3")
    t.expect("/tmp b")
    assert t.wait() == 3


def test_a_terminal_without_one_here_has_a_usual_size(cli, box):
    assert cli.ok("exec", "-t", box, "stty", "size") == "24 80\r\n"


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_given_back_when_killed(terminal, box, sig):
    t = terminal("shell", box)
    t.type("echo rea''dy\n")
    t.expect("ready")
    os.kill(t.pid, sig)
    assert t.wait() == 128 + sig
    assert is_as_before(t)


def test_the_terminal_is_given_back_when_the_sandbox_ends(terminal, cli, box):
    t = terminal("shell", box)
    t.type("echo rea''dy\n")
    t.expect("ready")
    cli.ok("rm", box)
    t.expect("ended at")
    assert t.wait() == 125
    assert is_as_before(t)


def test_a_command_is_followed_over_a_restart_of_the_api(cli, box, server):
    """gabiond is killed; not a byte of the output is lost or told twice."""
    script = "for i in $(seq 300); do echo line $i; sleep 0.005; done; exit 9"
    with cli.popen("exec", box, "sh", "-c", script) as p:
        for _ in range(3):
            p.stdout.readline()
        os.kill(server.pid_of("gabiond"), signal.SIGKILL)
        out, err = p.communicate(timeout=20)
    assert p.returncode == 9, err
    assert out.decode().split("\n") == [f"line {i}" for i in range(4, 301)] + [""], err


def test_a_shell_goes_on_after_a_restart_of_the_api(terminal, box, server):
    t = terminal("shell", box)
    t.type("echo rea''dy\n")
    t.expect("ready")
    os.kill(server.pid_of("gabiond"), signal.SIGKILL)
    server.wait_up()
    time.sleep(0.5)
    t.type("echo go''es on; exit 4\n")
    t.expect("goes on")
    assert t.wait() == 4 and is_as_before(t)


def test_input_that_was_open_is_not_taken_for_whole(cli, box, server):
    with cli.popen("exec", "-i", box, "cat", stdin=subprocess.PIPE) as p:
        p.stdin.write(b"x\n")
        p.stdin.flush()
        assert p.stdout.readline() == b"x\n"
        os.kill(server.pid_of("gabiond"), signal.SIGKILL)
        err = p.stderr.read()
        assert p.wait(20) == 125 and b"how much of it arrived is not known" in err, err
        p.stdin.close()
    server.wait_up()


def test_a_server_that_is_killed_is_named(cli, place):
    """Everything of it: the sandboxes go on, but nobody can tell."""
    with Server(place) as server:
        cli.env.update(GABION_SERVER="http://%s:%d" % server.address, GABION_API_KEY=server.key)
        ident = cli.ok("create").strip()
        with cli.popen("exec", ident, "sh", "-c", "echo ready; sleep 60") as p:
            assert p.stdout.readline() == b"ready\n"
            server.kill()
            _, err = p.communicate(timeout=20)
        text = err.decode()
        assert p.returncode == 125 and "the connection to the server was lost; trying again" in text, text
        assert "cannot be reached: Connection refused" in text.splitlines()[-1], text
        assert "Traceback" not in text and harness.until(lambda: server.process.poll() is not None)
