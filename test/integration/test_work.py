"""Ordinary work inside: what people and agents run must simply work."""
import os
import shutil
import subprocess

import pytest
from conftest import needs
from harness import python, run, sh


def assert_done(result, *expected):
    assert result.code == 0, result
    assert result.lines == list(expected) or not expected, result
    assert "gabion: denied" not in result.err, result


def test_python_threads():
    assert_done(python("""
        import threading
        r = []
        threads = [threading.Thread(target=lambda i=i: r.append(i)) for i in range(50)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(sorted(r) == list(range(50)))
        """), "True")


def test_python_multiprocessing():
    assert_done(python("import multiprocessing as m\ndef f(x): return x * x\n"
                       "with m.get_context('fork').Pool(4) as p: print(sum(p.map(f, range(100))))\n"
                       "q = m.Queue(); l = m.Lock(); v = m.Value('i', 3); print(v.value)"), "328350", "3")


def test_python_subprocess_and_signals():
    assert_done(python("""
        import subprocess
        p = subprocess.Popen(['sleep', '9'])
        p.terminate()
        print(p.wait())
        print(subprocess.run('echo a | tr a b', shell=True, capture_output=True, text=True).stdout.strip())
        """), "-15", "b")


def test_python_venv():
    assert_done(sh("cd /tmp && /usr/bin/python3 -m venv --without-pip v && . v/bin/activate && "
                   "python -c 'import sys; print(sys.prefix)'", timeout=60), "/tmp/v")


def test_python_multiprocessing_by_spawn():
    """A fresh interpreter for each worker, semaphores and shared memory in /dev/shm."""
    assert_done(sh("""cat > ~/m.py <<'EOF'
import multiprocessing as m
from multiprocessing import shared_memory
def f(x): return x * x
if __name__ == "__main__":
    with m.get_context("spawn").Pool(2) as p: print(sum(p.map(f, range(100))))
    s = shared_memory.SharedMemory(create=True, size=64); s.buf[0] = 7; print(s.buf[0]); s.close(); s.unlink()
EOF
/usr/bin/python3 ~/m.py""", timeout=60), "328350", "7")


def test_python_venv_with_pip():
    """ensurepip unpacks the wheels that come with Python; no network is needed."""
    needs("python3")
    result = sh("cd ~ && /usr/bin/python3 -m venv v && v/bin/pip --version | cut -d' ' -f1", timeout=120)
    if "ensurepip is not available" in result.out + result.err:
        pytest.skip("python3-venv is not installed")
    assert_done(result, "pip")


def test_python_sqlite():
    assert_done(python("""
        import sqlite3
        c = sqlite3.connect('/home/user/x.db')
        c.execute('pragma journal_mode=wal')
        c.execute('create table t(i)')
        c.executemany('insert into t values(?)', [(i,) for i in range(1000)])
        c.commit()
        print(c.execute('select sum(i) from t').fetchone()[0])
        """), "499500")


def test_python_asyncio_server_and_client():
    assert_done(python("""
import asyncio
async def serve(r, w):
    w.write((await r.readline()).upper()); await w.drain(); w.close()
async def main():
    for host in ('127.0.0.1', '::1', 'localhost'):
        s = await asyncio.start_server(serve, host, 0)
        r, w = await asyncio.open_connection(host, s.sockets[0].getsockname()[1])
        w.write(b'hello\\n'); print((await r.readline()).decode().strip()); w.close(); s.close()
    p = await asyncio.create_subprocess_exec('echo', 'child', stdout=-1)
    print((await p.communicate())[0].decode().strip())
asyncio.run(main())"""), "HELLO", "HELLO", "HELLO", "child")


def test_a_fork_server():
    assert_done(python("""
import os, socket
s = socket.create_server(('127.0.0.1', 0)); port = s.getsockname()[1]
if os.fork() == 0:
    for _ in range(10):
        c, _a = s.accept()
        if os.fork() == 0: c.sendall(str(os.getpid()).encode()); os._exit(0)
        c.close(); os.wait()
    os._exit(0)
seen = set()
for _ in range(10):
    with socket.create_connection(('127.0.0.1', port)) as c: seen.add(c.recv(99))
print(len(seen)); os.wait()"""), "10")


def test_unix_sockets_and_descriptor_passing():
    assert_done(python(r"""
        import socket, os
        a, b = socket.socketpair()
        r, w = os.pipe()
        socket.send_fds(a, [b'x'], [w])
        os.write(socket.recv_fds(b, 1, 1)[1][0], b'passed')
        print(os.read(r, 9).decode())
        s, c = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        s.bind('\0mine')
        s.listen()
        c.connect('\0mine')
        print('connected')
        """), "passed", "connected")


NODE = """
const { Worker } = require('worker_threads'), { execSync, spawn } = require('child_process'), http = require('http');
console.log(execSync('echo child').toString().trim());
const w = new Worker("require('worker_threads').parentPort.postMessage(6*7)", { eval: true });
w.on('message', m => {
  console.log(m);
  const s = http.createServer((q, r) => r.end('served')).listen(0, '127.0.0.1', () =>
    http.get({ port: s.address().port, host: '127.0.0.1' }, r =>
      r.on('data', d => { console.log(d.toString()); s.close(); })));
});
"""


def test_node():
    needs("node")
    assert_done(run("--", "node", "-e", NODE), "child", "42", "served")


THREADS_C = r"""
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long n;
static void *f(void *p) {
  for (int i = 0; i < 10000; i++) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); }
  return p;
}
int main(void) { pthread_t t[16]; for (int i = 0; i < 16; i++) pthread_create(&t[i], 0, f, 0);
  for (int i = 0; i < 16; i++) pthread_join(t[i], 0); printf("%ld\n", n); return 0; }
"""


def test_gcc_make_and_a_threaded_program(shared):
    needs("gcc")
    needs("make")
    (shared / "t.c").write_text(THREADS_C)
    (shared / "Makefile").write_text("t: t.c\n\t@gcc -O1 -o $@ $< -pthread\n")
    assert_done(sh("make -s && ./t", "-v", f"{shared}:/mnt/src:rw", "-w", "/mnt/src", timeout=60), "160000")
    assert (shared / "t").stat().st_uid == os.getuid()
    assert_done(sh("cp -r /mnt/src ~/s && cd ~/s && rm -f t && make -s -j4 && ./t", "-v", f"{shared}:/mnt/src:ro",
                   timeout=60), "160000")


def test_a_sanitized_program(shared):
    needs("gcc")
    (shared / "t.c").write_text("#include <stdlib.h>\nint main(void) { char *p = malloc(4); free(p); return p[0]; }\n")
    result = sh("cd ~ && gcc -w -fsanitize=address -o t /mnt/src/t.c && ./t", "-v", f"{shared}:/mnt/src:ro", timeout=60)
    if "cannot find" in result.err:
        pytest.skip("libasan is not installed")
    assert "heap-use-after-free" in result.err and result.code == 1


def test_git():
    needs("git")
    result = sh("git init -q r && cd r && git config user.email a@b && git config user.name a && echo x > f && "
                "git add f && git commit -qm first && git checkout -qb other && echo y >> f && "
                "git commit -qam second && git log --format=%s && git clone -q . ../copy && cat ../copy/f && git gc -q")
    assert_done(result, "second", "first", "x", "y")


def test_git_in_a_mounted_repository(shared):
    needs("git")
    subprocess.run("git init -q . && git -c user.email=a@b -c user.name=a commit -q --allow-empty -m host", shell=True,
                   cwd=shared, check=True)
    assert_done(run("-v", f"{shared}:/mnt/r:rw", "-w", "/mnt/r", "--", "git", "log", "--format=%s"), "host")


def test_curl_to_a_server_of_its_own():
    needs("curl")
    serve = "mkdir w && echo page > w/f && /usr/bin/python3 -m http.server -d w -b 127.0.0.1 8000 >/dev/null 2>&1"
    fetch = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2; curl -sf http://127.0.0.1:8000/f && break; done"
    assert_done(sh(f"{serve} & {fetch}; kill $!"), "page")


def test_reading_a_gibibyte(tmp_path):
    big = tmp_path / "big"
    with open(big, "wb") as f:
        f.truncate(1 << 30)
    result = run("-v", f"{big}:/mnt/big:ro", "--", "wc", "-c", "/mnt/big")
    assert_done(result, f"{1 << 30} /mnt/big")
    assert_done(sh("cat /mnt/big | tail -c +1073741824 | wc -c", "-v", f"{big}:/mnt/big:ro", timeout=60), "1")


def test_sqlite_shell():
    needs("sqlite3")
    assert_done(sh("sqlite3 x.db 'pragma journal_mode=wal; create table t(i); insert into t values (42);' && "
                   "sqlite3 x.db 'select i from t; pragma integrity_check'"), "wal", "42", "ok")


DEB = """
mkdir -p p/DEBIAN p/usr/share/doc/p && seq 2000 > p/usr/share/doc/p/copyright && ln -s copyright p/usr/share/doc/p/link
printf 'Package: p\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: d\\n' > p/DEBIAN/control
dpkg-deb --root-owner-group -Zxz -b p p.deb >/dev/null
"""


def test_a_debian_package_is_made_and_unpacked():
    """The file work of apt-get download and dpkg: ar, tar with owners, xz, links, checksums."""
    needs("dpkg-deb")
    needs("ar")
    result = sh("set -e\ncd /tmp\n" + DEB + "ar t p.deb\nar p p.deb data.tar.xz | xz -dc | tar tf - | wc -l\n"
                "dpkg-deb -x p.deb out && dpkg-deb -f p.deb Version && tail -1 out/usr/share/doc/p/link\n"
                "sha256sum p.deb | wc -c\n", timeout=60)
    assert_done(result, "debian-binary", "control.tar.xz", "data.tar.xz", "7", "1", "2000", "72")


def test_archives_and_pipes():
    assert_done(sh("mkdir -p a/b && seq 1000 > a/b/f && tar czf a.tgz a && rm -r a && tar xzf a.tgz && "
                   "sort -rn a/b/f | head -1 && find . -type f | wc -l && seq 100000 | sort -R | sort -n | tail -1"),
                "1000", "2", "100000")


def test_scripts_in_home_and_tmp_can_be_executed():
    assert_done(sh("for d in /tmp ~ /dev/shm; do printf '#!/bin/sh\\necho ran\\n' > $d/s; chmod +x $d/s; $d/s; done"),
                "ran", "ran", "ran")


def test_names_and_certificates():
    result = sh("whoami; id -un; getent passwd user | cut -d: -f6; getent hosts localhost | awk '{print $2}'; "
                "test -s /etc/ssl/certs/ca-certificates.crt && echo certificates")
    assert_done(result)
    assert result.lines[:4] == ["user", "user", "/home/user", "localhost"]
    if os.path.exists("/etc/ssl/certs/ca-certificates.crt"):
        assert result.lines[4] == "certificates"


def test_a_pseudo_terminal_inside():
    assert_done(python("import pty, os\npid, fd = pty.fork()\nif pid == 0: os.execvp('tty', ['tty'])\n"
                       "print(os.read(fd, 99).decode().strip()); os.wait()"), "/dev/pts/0")


def test_file_watching_timers_and_events():
    assert_done(python("""
        import ctypes, os, select, signal
        c = ctypes.CDLL(None)
        fd = c.inotify_init1(0)
        print(c.inotify_add_watch(fd, b'/tmp', 0x100) > 0)  # IN_CREATE
        open('/tmp/x', 'w').close()
        print(len(os.read(fd, 999)) > 0)
        signal.signal(signal.SIGALRM, lambda *a: print('alarm'))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        signal.setitimer(signal.ITIMER_REAL, .01)
        print(signal.sigwait([signal.SIGALRM]) == signal.SIGALRM)
        print(select.epoll().fileno() > 0)
        """), "True", "True", "True", "True")


def test_java(shared):
    needs("java")
    (shared / "H.java").write_text("public class H { public static void main(String[] a) { "
                                   'System.out.println("java " + 6*7); } }')
    if not shutil.which("javac", path="/usr/bin"):
        pytest.skip("javac is not installed")
    assert_done(sh("java /mnt/s/H.java", "-v", f"{shared}:/mnt/s:ro", "-m", "1G", timeout=60), "java 42")


def test_go(shared):
    go = shutil.which("go", path="/usr/local/go/bin:/usr/bin") or pytest.skip("go is not installed")
    (shared / "h.go").write_text('package main\nimport "fmt"\nfunc main() {\n\tc := make(chan int)\n'
                                 '\tgo func() { c <- 42 }()\n\tfmt.Println("go", <-c)\n}\n')
    (shared / "go.mod").write_text("module h\n\ngo 1.18\n")
    assert_done(sh(f"cd /mnt/s && GOCACHE=/tmp/c {go} build -o /tmp/h . && /tmp/h", "-v", f"{shared}:/mnt/s:ro",
                   "-m", "2G", "--cpus", "2", timeout=120), "go 42")


def test_perl_awk_sed():
    needs("perl")
    assert_done(sh("perl -e 'print 6*7, \"\\n\"'; echo a b | awk '{print $2}'; echo x | sed s/x/y/"), "42", "b", "y")
