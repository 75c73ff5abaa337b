"""`-t`: the command has a terminal of its own, and the caller's is given back as it was."""
import os
import pty
import signal
import termios
import time

import pytest
from harness import argv_of
from terminal import Terminal


@pytest.fixture
def terminal():
    opened = []

    def make(*words, **kw):
        opened.append(Terminal(argv_of("run", "-t", *words), **kw))
        return opened[-1]

    yield make
    for t in opened:
        t.close()


def test_the_command_has_a_terminal(terminal):
    t = terminal("--", "/usr/bin/python3", "-c",
                 "import os; print([os.isatty(i) for i in range(3)], os.ttyname(0), os.environ['TERM'])")
    t.expect("[True, True, True] /dev/pts/0 ")
    assert t.wait() == 0


def test_without_the_flag_it_has_none(terminal):
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(argv_of()[0], argv_of("run", "--", "sh", "-c", "test -t 1; echo $?"))
    assert b"1" in os.read(fd, 100)
    os.waitpid(pid, 0)
    os.close(fd)


def test_the_size_is_passed_in_and_changes_are_followed(terminal):
    t = terminal("--", "sh", "-c", "trap 'stty size' WINCH; sleep 0.2; stty size; while :; do sleep 0.05; done")
    t.expect("30 100")
    t.resize(41, 123)
    t.expect("41 123")


def test_control_c_interrupts_the_command(terminal):
    t = terminal("--", "sh", "-c", "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.05; done")
    t.expect("ready")
    t.type("\x03")
    t.expect("interrupted")
    assert t.wait() == 5


def test_a_shell_works_and_exits(terminal):
    t = terminal("--", "bash", "--norc", "-i")
    t.expect("$ ")
    t.type("echo $((6*7))\n")
    t.expect("\r42\r\n")
    t.type("sleep 20\n")
    time.sleep(0.2)
    t.type("\x03")
    t.expect("$ ")
    t.type("exit 3\n")
    assert t.wait() == 3


def test_control_z_stays_inside(terminal):
    """Job control belongs to the shell in the sandbox: raw mode passes the key on."""
    t = terminal("--", "bash", "--norc", "-i")
    t.expect("$ ")
    t.type("sleep 20\n")
    time.sleep(0.2)
    t.type("\x1a")
    t.expect("Stopped")
    t.type("echo still $((40+2))\n")
    t.expect("\rstill 42\r\n")


@pytest.mark.parametrize("how", ["exit", "refused", "limit"])
def test_the_callers_terminal_is_given_back_as_it_was(terminal, how):
    words = {"exit": ("--", "true"), "refused": ("--", "no-such-command"),
             "limit": ("--timeout", "200ms", "--", "sleep", "9")}[how]
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if pid == 0:
        os.login_tty(slave) if hasattr(os, "login_tty") else [os.dup2(slave, i) for i in range(3)]
        os.execv(argv_of()[0], argv_of("run", "-t", *words))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == {"exit": 0, "refused": 127, "limit": 124}[how]
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)


def test_a_closed_terminal_ends_the_command():
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(argv_of()[0], argv_of("run", "-t", "--", "sleep", "30"))
    time.sleep(0.3)
    os.close(fd)  # SIGHUP, as when a window is closed
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("gabion lives on without a terminal")
