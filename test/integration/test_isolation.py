"""Things of the host that a sandbox must not see, reach or change; each is really there while the test looks."""
import ctypes
import os
import pathlib
import socket
import threading
import time

import pytest
from harness import find_below, python, run, sh, started

IPC_CREAT, IPC_RMID = 0o1000, 0


@pytest.fixture
def listener():
    """Starts a server on a Unix address that counts its visitors."""
    servers = []

    def listen(address):
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen(8)
        server.settimeout(0.1)
        visits, stop = [], threading.Event()

        def serve():
            while not stop.is_set():
                try:
                    server.accept()[0].close()
                    visits.append(1)
                except TimeoutError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        servers.append((server, thread, stop))
        return visits

    yield listen
    for server, thread, stop in servers:
        stop.set()
        thread.join()
        server.close()


def connect_script(address):
    return ("import socket\ns = socket.socket(socket.AF_UNIX)\n"
            f"try:\n  s.connect({address!r}); print('connected')\nexcept OSError as e: print(type(e).__name__)")


def test_files_of_the_host_are_invisible(host_file):
    tag = os.urandom(6).hex()
    files = [host_file(f"{place}/gabion-canary-{tag}", "canary-text") for place in
             ("/tmp", "/root", "/home", "/var/tmp", "/run", "/dev/shm", "/etc", "/opt", "/srv", "/mnt", "/var/lib")]
    names = " ".join(map(str, files))
    for user in ("user", "root"):
        result = sh(f"cat {names}; ls -d {names}; find / -name 'gabion-canary-*'; "
                    f"cat /proc/1/root{files[0]} /proc/self/root/../..{files[1]}", "--user", user)
        assert "canary-text" not in result.out
        assert result.out == "", user


def test_files_beside_a_mount_are_invisible(shared):
    (shared.parent / "secret").write_text("canary-text")
    (shared / "link").symlink_to("../secret")
    (shared / "absolute").symlink_to(str(shared.parent / "secret"))
    (shared / "open").write_text("to be read")
    result = sh("cat /mnt/d/open /mnt/d/link /mnt/d/absolute /mnt/d/../secret /mnt/d/../../secret; cd /mnt/d; "
                "cat ../secret", "-v", f"{shared}:/mnt/d:rw")
    assert result.out == "to be read"


def test_a_host_directory_descriptor_cannot_be_climbed(shared):
    """`..` from a mounted directory ends at the sandbox's root."""
    result = python("""
        import os
        fd = os.open('/mnt/d', os.O_RDONLY)
        for i in range(20):
            fd = os.open('..', os.O_RDONLY, dir_fd=fd)
        print(sorted(os.listdir(fd)))
        """, "-v", f"{shared}:/mnt/d:ro")
    assert "'.gabion'" in result.out and "'root'" not in result.out and "'boot'" not in result.out


def test_processes_of_the_host_are_neither_seen_nor_signalled():
    with started("--", "sleep", "20") as neighbour:
        pid = find_below(neighbour.pid, "sleep")
        script = (f"import os\nfor pid in ({pid}, {neighbour.pid}, {os.getpid()}):\n"
                  "  try: os.kill(pid, 9); print('killed', pid)\n  except OSError: pass\n"
                  "  if os.path.exists(f'/proc/{pid}'): print('seen', pid)")
        result = python(script, "--user", "root")
        assert result.out == ""
        assert os.path.exists(f"/proc/{pid}") and neighbour.poll() is None


def test_abstract_sockets_of_the_host_cannot_be_reached(listener):
    name = "\0gabion-canary-" + os.urandom(6).hex()
    visits = listener(name)
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(name)  # the server is really there
    assert python(connect_script(name)).out.strip() == "ConnectionRefusedError"
    time.sleep(0.15)
    assert len(visits) == 1


def test_path_sockets_of_the_host_cannot_be_reached(listener, shared, tmp_path):
    outside = str(tmp_path / "socket")
    visits = listener(outside)
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(outside)
    assert python(connect_script(outside)).out.strip() == "FileNotFoundError"
    time.sleep(0.15)
    assert len(visits) == 1


def test_a_socket_of_the_host_is_not_mounted_unasked(listener, tmp_path):
    listener(str(tmp_path / "socket"))
    result = run("-v", f"{tmp_path}/socket:/mnt/socket:rw", "--", "true")
    assert result.code == 125
    assert "socket of the host" in result.err and "--allow-sensitive-mounts" in result.err


def test_loopback_servers_of_the_host_cannot_be_reached():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), 2):
            server.accept()[0].close()
        result = python("import socket\ntry: socket.create_connection(('127.0.0.1', %d), 2); print('connected')\n"
                        "except OSError as e: print(type(e).__name__)" % port)
        assert result.out.strip() == "ConnectionRefusedError"
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()


def test_shared_memory_of_the_host_is_another():
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x6761 << 16 | os.getpid() & 0xffff
    shmid = libc.shmget(key, 4096, IPC_CREAT | 0o666)
    assert shmid >= 0
    try:
        script = (f"import ctypes\nc = ctypes.CDLL(None)\nprint(c.shmget({key}, 4096, 0o666) >= 0, "
                  f"c.shmget({key}, 4096, 0o1666) >= 0)\nprint(len(open('/proc/sysvipc/shm').readlines()))")
        # not the host's; but one of its own can be made under the same key
        assert python(script).lines == ["False True", "2"]
    finally:
        libc.shmctl(shmid, IPC_RMID, None)


def test_posix_shared_memory_of_the_host_is_another(host_file):
    host_file("/dev/shm/gabion-canary", "canary-text")
    result = sh("ls -A /dev/shm; echo inside > /dev/shm/gabion-canary; cat /dev/shm/gabion-canary")
    assert result.out == "inside\n"
    assert pathlib.Path("/dev/shm/gabion-canary").read_text() == "canary-text"


def test_two_sandboxes_do_not_see_each_other(shared):
    with started("--", "sh", "-c", "echo secret > /tmp/f; echo secret > /dev/shm/f; exec sleep 20") as neighbour:
        find_below(neighbour.pid, "sleep")
        result = sh("cat /tmp/f /dev/shm/f; ps ax")
        assert "secret" not in result.out and "sleep" not in result.out


def test_core_dumps_do_not_reach_the_host(shared):
    before = set(os.listdir(shared)) | set(os.listdir("/tmp")) | set(os.listdir("/"))
    result = sh("ulimit -c unlimited 2>/dev/null; cd /mnt/d; kill -SEGV $$", "-v", f"{shared}:/mnt/d:rw")
    assert result.code == 139
    after = set(os.listdir(shared)) | set(os.listdir("/tmp")) | set(os.listdir("/"))
    assert not [name for name in after - before if "core" in name]


def test_device_nodes_on_a_mounted_directory_do_not_work(shared):
    os.mknod(shared / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    os.chmod(shared / "zero", 0o666)
    assert sh("head -c 1 /mnt/d/zero | wc -c", "-v", f"{shared}:/mnt/d:rw").out.strip() == "0"


@pytest.mark.parametrize("source", ["/", "/proc", "/sys", "/dev", "/root", "/home", "/etc/ssh", "/run", "/var", "/etc",
                                    "/proc/self/root", "/root/.ssh"])
def test_dangerous_sources_are_refused_with_the_override_named(source, host_file):
    if source in ("/etc/ssh", "/root/.ssh") and not os.path.exists(source):
        host_file(f"{source}/gabion-test", "")
    result = run("-v", f"{source}:/mnt/x:ro", "--", "true")
    assert result.code == 125
    assert "is refused" in result.err and "--allow-sensitive-mounts" in result.err, result


def test_a_link_does_not_smuggle_a_dangerous_source_in(tmp_path):
    (tmp_path / "innocent").symlink_to("/etc")
    result = run("-v", f"{tmp_path}/innocent:/mnt/x:ro", "--", "true")
    assert result.code == 125 and "is refused" in result.err


@pytest.mark.parametrize("target", ["/", "/usr", "/usr/bin", "/etc", "/proc", "/proc/self", "/dev", "/.gabion",
                                    "/etc/passwd"])
def test_a_mount_cannot_cover_what_the_sandbox_stands_on(target, shared):
    """Either refused, or harmless: the read-back still holds and the masks are still there."""
    result = sh("cat /proc/keys /proc/kallsyms | wc -c; test -e /dev/null", "-v", f"{shared}:{target}:rw")
    assert result.code == 125 or (result.code == 0 and result.out.strip() == "0"), result
