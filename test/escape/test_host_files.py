"""Writing or reading host files that a mount does not give away: page-cache tricks, links, races, device nodes."""
import ctypes
import os
import pathlib
import stat
import subprocess
import threading

import pytest
from harness import GABION, run, sh
from inside import USERS, inside

TEXT = b"the host's own content\n" * 100
RENAME_EXCHANGE = 2
AT_FDCWD = -100


@pytest.fixture
def read_only(shared):
    """A folder with one file, mounted read-only; its content and its inode must be as before at the end."""
    file = shared / "file"
    file.write_bytes(TEXT)
    file.chmod(0o666)  # modes alone would not stop anybody
    shared.chmod(0o777)
    before = file.stat()
    yield "-v", f"{shared}:/mnt/d:ro"
    after = file.stat()
    assert file.read_bytes() == TEXT
    assert (after.st_mode, after.st_uid, after.st_mtime_ns, after.st_ctime_ns, after.st_nlink) == \
           (before.st_mode, before.st_uid, before.st_mtime_ns, before.st_ctime_ns, before.st_nlink)
    assert os.listdir(shared) == ["file"]


@pytest.mark.parametrize("user", USERS)
def test_read_only_files_cannot_be_changed_by_any_call(user, read_only, tmp_path):
    report = inside("""
import mmap
f = "/mnt/d/file"
fd = os.open(f, os.O_RDONLY)
d = os.open("/mnt/d", os.O_RDONLY)
tell({
    "open": opened(f, os.O_WRONLY), "truncating": opened(f, os.O_WRONLY | os.O_TRUNC),
    "again": opened(f"/proc/self/fd/{fd}", os.O_RDWR),
    "truncate": tried(os.truncate, f, 0), "chmod": tried(os.chmod, f, 0o777), "fchmod": tried(os.fchmod, fd, 0o777),
    "utime": tried(os.utime, f), "unlink": tried(os.unlink, f), "rename": tried(os.rename, f, "/mnt/d/other"),
    "link": tried(os.link, f, "/mnt/d/other"), "symlink": tried(os.symlink, "x", "/mnt/d/other"),
    "mkdir": tried(os.mkdir, "/mnt/d/other"), "create": opened("/mnt/d/other", os.O_CREAT | os.O_RDWR),
    "xattr": tried(os.setxattr, f, "user.x", b"1"), "through": opened("/proc/self/root/mnt/d/file", os.O_WRONLY),
    "write": tried(os.write, fd, b"x"), "ftruncate": tried(os.ftruncate, fd, 0),
    "out": tried(os.link, f, "/tmp/other"), "tmpfile": tried(os.open, "/mnt/d", os.O_TMPFILE | os.O_RDWR),
    "shared": call("mmap", 0, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0),
})
""", "--user", user, *read_only, folder=tmp_path)
    not_read_only = {"write": "EBADF", "ftruncate": "EINVAL", "shared": "EACCES", "out": "EXDEV"}
    for way, answer in report.found.items():
        wanted = {not_read_only.get(way, "EROFS")}
        if way in ("open", "truncating", "again", "through", "truncate", "create", "mkdir", "symlink", "unlink",
                   "rename", "link", "out", "tmpfile"):
            wanted.add("EACCES")  # Landlock may speak before the mount does
        assert answer in wanted, (way, answer)


def test_cve_2016_5195_race_on_a_private_mapping(attack, read_only):
    """Dirty COW: the race is lost by a patched kernel; here it cannot even begin."""
    _, flags, program = attack("race")
    result = run(*flags, *read_only, "--", program, "/mnt/d/file", "400")
    assert result.code == 0, result
    assert result.lines[:2] == ["mem EROFS 0", "vm EPERM 0"]
    assert result.lines[2].startswith("file the host")


@pytest.mark.parametrize("user", USERS)
def test_cve_2022_0847_pipe_buffers_over_the_page_cache(user, read_only, tmp_path):
    """Dirty Pipe: pages spliced into a pipe whose buffers were marked as mergeable, then written."""
    report = inside("""
r, w = os.pipe()
size = fcntl.fcntl(w, 1032)
os.write(w, b"x" * size)
os.read(r, size)
fd = os.open("/mnt/d/file", os.O_RDONLY)
spliced = os.splice(fd, w, 1, offset_src=0)
wrote = os.write(w, b"OVERWRITTEN")
tell({"spliced": spliced, "wrote": wrote, "now": open("/mnt/d/file").read(24), "vmsplice": call("vmsplice", w, 0, 0, 0),
      "tee": call("tee", r, w, 1, 0)})
""", "--user", user, *read_only, folder=tmp_path)
    assert report.found == {"spliced": 1, "wrote": 11, "now": TEXT[:24].decode(), "vmsplice": "ENOSYS", "tee": "ENOSYS"}


def test_a_link_in_a_writable_mount_is_resolved_inside_only(shared, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("host-secret")
    (shared / "given").symlink_to(secret)
    shared.chmod(0o777)
    report = inside(f"""
os.symlink({str(secret)!r}, "/mnt/d/made")
os.symlink("../" * 20 + {str(secret)[1:]!r}, "/mnt/d/climbing")
os.symlink("/", "/mnt/d/root")
ways = ["/mnt/d/given", "/mnt/d/made", "/mnt/d/climbing", "/mnt/d/root" + {str(secret)!r}, "/mnt/d/root/etc/shadow"]
tell([[way, opened(way, os.O_RDONLY), opened(way, os.O_WRONLY | os.O_CREAT)] for way in ways])
""", "-v", f"{shared}:/mnt/d:rw", folder=tmp_path)
    for way, reading, writing in report.found:
        assert reading == "ENOENT", way
        assert writing in ("ENOENT", "EROFS", "EACCES"), (way, writing)
    assert secret.read_text() == "host-secret"
    assert sorted(os.listdir(shared)) == ["climbing", "given", "made", "root"]


@pytest.mark.parametrize("points_to", ["/usr", "/proc", "/tmp", "../../../..", "HOST"])
def test_a_mount_target_that_became_a_link_is_not_followed(points_to, shared, tmp_path):
    """An earlier command leaves a link where the next run will mount: CVE-2021-30465 without the race."""
    elsewhere, other = tmp_path / "elsewhere", tmp_path / "other"
    elsewhere.mkdir()
    other.mkdir()
    (other / "marker").write_text("other")
    (shared / "sub").symlink_to(str(elsewhere) if points_to == "HOST" else points_to)
    result = sh("cat /mnt/d/sub/marker /usr/marker /tmp/marker /proc/marker; ls /usr/bin/true",
                "-v", f"{shared}:/mnt/d:rw", "-v", f"{other}:/mnt/d/sub")
    assert result.code == 125, result
    assert result.out == ""
    assert os.listdir(elsewhere) == []


class Swapper:
    """Swaps two names for each other, as fast as it can, like a command with a writable mount would."""

    def __init__(self, one, two):
        self.names = [os.fsencode(one), os.fsencode(two)]
        self.stop, self.swaps = threading.Event(), 0
        self.thread = threading.Thread(target=self.loop)

    def loop(self):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        while not self.stop.is_set():
            self.swaps += rename(AT_FDCWD, self.names[0], AT_FDCWD, self.names[1], RENAME_EXCHANGE) == 0

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def test_cve_2021_30465_a_mount_target_swapped_during_the_start(shared, tmp_path):
    """The target is a directory at one moment and a link out of the mount at the next."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "marker").write_text("other\n")
    (shared / "sub").mkdir()
    (shared / "sub" / "marker").write_text("covered\n")
    (shared / "link").symlink_to("/usr")
    outcomes = {}
    with Swapper(shared / "sub", shared / "link") as swapper:
        for _ in range(60):
            # The names go on changing under the command's feet, so it looks until it has found the directory.
            result = sh("i=0; until read x < /mnt/d/sub/marker || [ $i = 199999 ]; do i=$((i + 1)); done 2> /dev/null; "
                        "echo $x; cat /usr/marker; ls /usr/bin/env",
                        "-v", f"{shared}:/mnt/d", "-v", f"{other}:/mnt/d/sub")
            # 125: refused. Otherwise the mount is where it was asked for, and nothing lies over /usr.
            assert result.code in (0, 125), result
            assert result.code == 125 or result.out == "other\n/usr/bin/env\n", result
            outcomes[result.code] = outcomes.get(result.code, 0) + 1
    assert swapper.swaps > 100
    assert outcomes.get(125), outcomes  # the race was on


def test_cve_2018_15664_a_mount_source_swapped_during_the_start(shared, tmp_path):
    """The source is a harmless directory when it is judged and a link to somebody's keys when it is opened."""
    keys = tmp_path / ".ssh"
    keys.mkdir()
    (keys / "marker").write_text("PRIVATE KEY")
    (shared / "source").mkdir()
    (shared / "source" / "marker").write_text("harmless")
    (shared / "link").symlink_to(keys)
    outcomes = {}
    with Swapper(shared / "source", shared / "link") as swapper:
        for _ in range(80):
            result = sh("cat /mnt/d/marker", "-v", f"{shared / 'source'}:/mnt/d")
            assert "PRIVATE" not in result.out, "the refusal was raced"
            assert (result.code, result.out) in ((0, "harmless"), (125, "")), result
            outcomes[result.code] = outcomes.get(result.code, 0) + 1
    assert swapper.swaps > 100
    assert outcomes.get(0) and outcomes.get(125), outcomes


@pytest.mark.parametrize("user", USERS)
def test_device_nodes_cannot_be_made(user, shared, tmp_path):
    shared.chmod(0o777)
    report = inside("""
found = {}
for place in ("/tmp", "/dev/shm", "/mnt/d", os.environ["HOME"]):
    for kind, name in ((0o020666, "char"), (0o060666, "block")):
        found[f"{place} {name}"] = tried(os.mknod, f"{place}/{name}", kind, os.makedev(1, 3))
found["fifo"] = tried(os.mkfifo, "/tmp/fifo")
tell(found)
""", "--user", user, "-v", f"{shared}:/mnt/d:rw", folder=tmp_path)
    assert report.found.pop("fifo") == "worked"
    assert set(report.found.values()) == {"EPERM"}
    assert os.listdir(shared) == []


def look(path):
    s = os.stat(path)
    return s.st_mode, s.st_uid, s.st_gid, s.st_mtime_ns, s.st_ino, s.st_dev


@pytest.mark.parametrize("user", USERS)
def test_the_hosts_devices_are_not_touched(user, tmp_path):
    """One runtime changed mode and owner of the host's /dev/null, which it had given to the container as stdin."""
    nodes = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom"]
    before = [look(node) for node in nodes]
    with open("/dev/null", "rb+", buffering=0) as null:
        report = inside(f"""
found = {{}}
for node in {nodes!r}:
    found[node] = [tried(os.chmod, node, 0o600), tried(os.chown, node, os.getuid(), os.getgid()), tried(os.utime, node),
                   tried(os.unlink, node), tried(os.rename, node, "/dev/x"), tried(os.link, node, "/tmp/x")]
for fd in (0, 1, 2):
    tried(os.fchmod, fd, 0o600)
    tried(os.fchown, fd, os.getuid(), os.getgid())
    tried(os.ftruncate, fd, 0)
found["same"] = [s.st_dev for s in [os.stat("/dev/null")]]
tell(found)
""", "--user", user, folder=tmp_path)
        assert run("--user", user, "--", "/bin/chmod", "600", "/dev/stdin", "/dev/null").code != 0
        assert stat.S_ISCHR(os.fstat(null.fileno()).st_mode)
    assert report.found.pop("same") != [os.stat("/dev/null").st_dev]
    for node, answers in report.found.items():
        assert set(answers) <= {"EROFS", "EXDEV", "EACCES"}, (node, answers)
    assert [look(node) for node in nodes] == before


@pytest.mark.parametrize("null", [True, False])
def test_the_callers_streams_are_not_touched(null, tmp_path):
    """What the command does to its standard streams happens to pipes of its own."""
    path = "/dev/null" if null else str(tmp_path / "stream")
    if not null:
        pathlib.Path(path).write_text("before")
    before = look(path)[:3]
    script = ("import os\nfor fd in (0, 1, 2):\n  os.fchmod(fd, 0o600)\n  try: os.ftruncate(fd, 0)\n"
              "  except OSError: pass")
    with open(path, "r+b", buffering=0) as stream:
        subprocess.run([GABION, "run", "--", "/usr/bin/python3", "-c", script], stdin=stream, stdout=stream,
                       stderr=stream, check=False, timeout=20)
    assert look(path)[:3] == before
    assert null or pathlib.Path(path).read_text() == "before"


@pytest.mark.parametrize("user", USERS)
def test_the_hosts_passwords_cannot_be_read(user, tmp_path):
    assert os.access("/etc/shadow", os.R_OK)  # there is something to steal
    report = inside("""
places = ["/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/sudoers", "/root/.bashrc", "/var/lib/dpkg"]
prefixes = ["", "/proc/self/root", "/proc/1/root", "/proc/self/cwd/../..", "/../../..", "/proc/thread-self/root",
            "/proc/self/task/%d/root" % os.getpid()]
tell({a + b: opened(a + b, os.O_RDONLY) for a in prefixes for b in places})
""", "--user", user, folder=tmp_path)
    for path, answer in report.found.items():
        assert answer == ("EACCES" if path.startswith("/proc/1/") else "ENOENT"), path
