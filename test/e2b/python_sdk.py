"""The Python package `e2b`: run by test_python_sdk.py in a virtual environment, with the server in the environment's variables.
Each function is a test; the names of those that fail are printed with their reasons."""
import asyncio
import sys
import time
import traceback
import urllib.error
import urllib.request

import e2b
from e2b import AsyncSandbox, CommandExitException, FileType, FilesystemEventType, NotFoundException, Sandbox, TimeoutException

MAX_S = 120


def raises(kind, call):
    try:
        call()
    except kind as failure:
        return failure
    raise AssertionError(f"{kind.__name__} was expected")


def until(what, seconds=5):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def test_life(_):
    box = Sandbox.create(timeout=MAX_S, metadata={"odd key&": "odd=value ü"}, envs={"FROM_CREATE": "yes"})
    assert box.is_running()
    info = box.get_info()
    assert (info.sandbox_id, info.metadata) == (box.sandbox_id, {"odd key&": "odd=value ü"})
    found = Sandbox.list(query=e2b.SandboxQuery(metadata={"odd key&": "odd=value ü"})).next_items()
    assert [s.sandbox_id for s in found] == [box.sandbox_id]
    box.files.write("kept", "here")
    assert Sandbox.connect(box.sandbox_id).files.read("kept") == "here"
    assert box.commands.run("echo $FROM_CREATE").stdout == "yes\n"
    box.set_timeout(30)
    assert (box.get_info().end_at.timestamp() - time.time()) < 31
    assert box.get_metrics()[-1].mem_total > 0
    assert box.kill() and not box.is_running() and not Sandbox.kill(box.sandbox_id)
    raises(NotFoundException, lambda: Sandbox.connect(box.sandbox_id))


def test_commands(box):
    seen = []
    done = box.commands.run("echo out; echo err >&2", on_stdout=seen.append)
    assert (done.exit_code, done.stdout, done.stderr, seen) == (0, "out\n", "err\n", ["out\n"])
    failed = raises(CommandExitException, lambda: box.commands.run("echo x; exit 3"))
    assert (failed.exit_code, failed.stdout) == (3, "x\n")
    assert box.commands.run("pwd; id -un", cwd="/tmp").stdout == "/tmp\nuser\n"
    assert box.commands.run("id -u", user="root").stdout == "0\n"
    before = time.monotonic()
    raises(TimeoutException, lambda: box.commands.run("sleep 30", timeout=1))
    assert time.monotonic() - before < 5


def test_background(box):
    cat = box.commands.run("cat", background=True, stdin=True)
    box.commands.send_stdin(cat.pid, "text")
    box.commands.close_stdin(cat.pid)
    assert cat.wait().stdout == "text"
    sleep = box.commands.run("sleep 60", background=True)
    assert sleep.pid in [p.pid for p in box.commands.list()]
    again = box.commands.connect(sleep.pid)
    assert box.commands.kill(sleep.pid)
    raises(CommandExitException, again.wait)
    assert not box.commands.kill(999_999)


def test_files(box):
    written = box.files.write("a/b.txt", "text ü")
    assert (written.name, written.path) == ("b.txt", "/home/user/a/b.txt")
    assert box.files.read("a/b.txt") == "text ü"
    assert bytes(box.files.read("a/b.txt", format="bytes")) == "text ü".encode()
    assert b"".join(box.files.read("a/b.txt", format="stream")) == "text ü".encode()
    box.files.write_files([{"path": "many/1", "data": "1"}, {"path": "/tmp/2", "data": b"\0\xff"}])
    assert bytes(box.files.read("/tmp/2", format="bytes")) == b"\0\xff"
    info = box.files.get_info("a/b.txt")
    assert (info.size, info.type, info.permissions, info.owner) == (7, FileType.FILE, "-rw-r--r--", "user")
    assert [e.name for e in box.files.list("a")] == ["b.txt"]
    assert box.files.make_dir("d") and not box.files.make_dir("d")
    assert box.files.rename("a/b.txt", "d/c.txt").path == "/home/user/d/c.txt"
    assert box.files.exists("d/c.txt") and not box.files.exists("a/b.txt")
    box.files.remove("d")
    assert not box.files.exists("d")
    raises(NotFoundException, lambda: box.files.read("none"))
    box.files.write("m", "x", metadata={"author": "me"})
    assert box.files.get_info("m").metadata == {"author": "me"}


def test_watch(box):
    box.files.make_dir("watched")
    handle = box.files.watch_dir("watched", recursive=True)
    box.files.write("watched/f", "x")
    events = []

    def created():
        events.extend(handle.get_new_events())
        return any(e.type == FilesystemEventType.CREATE and e.name == "f" for e in events)

    until(created)
    handle.stop()


def test_terminal(box):
    seen = []
    terminal = box.pty.create(e2b.PtySize(rows=24, cols=80), timeout=20)
    box.pty.resize(terminal.pid, e2b.PtySize(rows=30, cols=100))
    box.pty.send_stdin(terminal.pid, b"stty size; exit\n")
    terminal.wait(on_pty=seen.append)
    assert b"30 100" in b"".join(seen)


def test_signed(box):
    box.files.write("signed", "content")
    url = box.download_url("signed", use_signature_expiration=60)
    assert urllib.request.urlopen(url, timeout=10).read() == b"content"
    wrong = raises(urllib.error.HTTPError, lambda: urllib.request.urlopen(url.replace("signed", "other"), timeout=10))
    assert wrong.code == 401


def test_git(box):
    box.git.init("/home/user/repo", initial_branch="main")
    box.git.configure_user("A Name", "a@example.com")
    box.files.write("repo/file", "x")
    box.git.add("/home/user/repo")
    box.git.commit("/home/user/repo", "first")
    assert box.git.status("/home/user/repo").is_clean


def test_asynchronous(_):
    async def work():
        box = await AsyncSandbox.create(timeout=MAX_S)
        try:
            handle = await box.commands.run("sleep 0.3; echo done", background=True)
            events = []
            watch = await box.files.watch_dir("/tmp", on_event=events.append)
            await box.files.write("/tmp/f", "x")
            assert (await handle.wait()).stdout == "done\n"
            results = await asyncio.gather(*(box.commands.run(f"echo {i}") for i in range(20)))
            assert [r.stdout for r in results] == [f"{i}\n" for i in range(20)]
            await watch.stop()
            assert any(e.name == "f" for e in events)
        finally:
            await box.kill()

    asyncio.run(work())


def main():
    failed = 0
    with Sandbox.create(timeout=MAX_S) as box:
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                try:
                    test(box)
                    print("pass", name)
                except Exception:  # every one is to be told
                    failed += 1
                    print("FAIL", name)
                    traceback.print_exc(file=sys.stdout)
    return failed


if __name__ == "__main__":
    sys.exit(main())
