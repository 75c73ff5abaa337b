"""Standard streams: much of it, none of it, and readers that stop reading."""
import hashlib
import os
import subprocess
import time

import pytest
from harness import argv_of, python, run, sh, started, status_of, until

MIB = 1 << 20
SEEDED = "import random,sys\nr=random.Random(7)\nfor i in range(%d): sys.stdout.buffer.write(r.randbytes(1<<20))"


def noise(n_mib):
    import random
    r = random.Random(7)
    return b"".join(r.randbytes(MIB) for _ in range(n_mib))


def test_a_big_input_arrives_whole():
    data = noise(24)
    result = run("--", "md5sum", stdin=data)
    assert result.out.split()[0] == hashlib.md5(data).hexdigest()


def test_a_big_output_arrives_whole():
    result = python(SEEDED % 24)
    assert result.code == 0
    assert hashlib.md5(result.raw).hexdigest() == hashlib.md5(noise(24)).hexdigest()


def test_input_and_output_at_once_do_not_lock_each_other():
    data = noise(16)
    result = run("--", "cat", stdin=data)
    assert result.raw == data


def test_output_and_errors_both_arrive_whole():
    result = python("import sys\nfor i in range(4000):\n  print('o' * 999)\n  print('e' * 999, file=sys.stderr)")
    assert result.out == ("o" * 999 + "\n") * 4000
    assert result.err == ("e" * 999 + "\n") * 4000


def test_a_reader_that_stops_costs_neither_memory_nor_output():
    """The command is held back, not buffered: gabion and the sandbox stay small, and the bytes arrive later."""
    with started("--", "/usr/bin/python3", "-c", SEEDED % 32) as p:
        time.sleep(1.0)
        rss_kib = int(status_of(p.pid)["VmHWM"].split()[0])
        assert rss_kib < 8 * 1024, f"{rss_kib} KiB while nobody reads"
        assert hashlib.md5(p.stdout.read()).hexdigest() == hashlib.md5(noise(32)).hexdigest()
        assert p.wait() == 0


def test_an_input_nobody_reads_does_not_pile_up():
    with started("--", "sleep", "30") as p:
        os.set_blocking(p.stdin.fileno(), False)
        sent, end = 0, time.monotonic() + 1
        while time.monotonic() < end:
            try:
                sent += os.write(p.stdin.fileno(), b"x" * 65536)
            except BlockingIOError:
                time.sleep(0.05)
        assert sent < 2 * MIB
        assert int(status_of(p.pid)["VmHWM"].split()[0]) < 8 * 1024


def test_the_end_of_input_is_passed_on():
    assert run("--", "wc", "-c", stdin=b"abc").out == "3\n"
    assert run("--no-stdin", "--", "wc", "-c", stdin=b"abc").out == "0\n"


def test_input_is_interactive():
    with started("--", "cat") as p:
        for word in (b"one\n", b"two\n"):
            p.stdin.write(word)
            p.stdin.flush()
            assert p.stdout.readline() == word
        p.stdin.close()
        assert p.wait(5) == 0


def test_a_command_that_does_not_read_its_input_ends_at_once():
    begin = time.monotonic()
    with started("--", "true") as p:  # our end of its input stays open
        assert p.wait(5) == 0
    assert time.monotonic() - begin < 2


@pytest.mark.parametrize("closed", ["0", "1", "2", "0,1,2"])
def test_closed_standard_descriptors_are_survived(closed, shared):
    """The descriptors that gabion opens must not become the command's standard streams."""
    redirect = " ".join({"0": "<&-", "1": ">&-", "2": "2>&-"}[n] for n in closed.split(","))
    words = " ".join(argv_of("run", "-v", f"{shared}:/mnt/d:rw", "--", "sh", "-c"))
    inner = "'cat > /dev/null; echo out; echo err >&2; ls -l /proc/self/fd > /mnt/d/fds; exit 7'"
    p = subprocess.run(["sh", "-c", f"{words} {inner} {redirect}"], stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=20, check=False)
    assert p.returncode == 7, p
    assert p.stdout == (b"" if "1" in closed else b"out\n")
    assert p.stderr == (b"" if "2" in closed else b"err\n")
    targets = [line.split(" -> ")[1] for line in (shared / "fds").read_text().splitlines() if " -> " in line]
    # input, output and errors of `ls`, and the directory it reads
    assert len(targets) == 4 and not [t for t in targets if "gabion" in t], targets


def test_a_closed_pipe_does_not_end_the_command(shared):
    """`gabion run ... | head`: the output has no taker, the command still finishes its work."""
    with started("-v", f"{shared}:/mnt/d:rw", "--", "/usr/bin/python3", "-c",
                 SEEDED % 4 + "\nopen('/mnt/d/done','w').close()") as p:
        p.stdout.read(10)
        p.stdout.close()
        assert p.wait(10) == 0
    assert (shared / "done").exists()


def test_a_full_disk_for_the_output_is_survived():
    with open("/dev/full", "wb") as full, started("--", "sh", "-c", "echo x; exit 3", stdout=full) as p:
        assert p.wait(5) == 3


def test_output_of_background_processes_is_read_until_the_command_ends():
    assert sh("(echo early) & wait; echo late").lines == ["early", "late"]


def test_a_command_that_closes_its_streams_still_runs_on(shared):
    result = sh("exec >&- 2>&- <&-; sleep 0.3; touch /mnt/d/done; exit 5", "-v", f"{shared}:/mnt/d:rw")
    assert result.code == 5
    assert (shared / "done").exists()


def test_output_beyond_the_limit_is_cut_and_said_so():
    result = sh("yes | head -c 3000000; sleep 20", "--json", "--output", "1M")
    assert result.code == 137
    assert (result.json["reason"], result.json["output_truncated"]) == ("limit", True)
    assert [d["code"] for d in result.json["denials"]] == ["limit.output"]
    assert result.raw.startswith(b"y\n" * (MIB // 2) + b"{")


def test_output_of_exactly_the_limit_is_not_cut():
    result = sh("yes | head -c 1048576", "--json", "--output", "1M")
    assert (result.code, result.json["reason"], result.json["output_truncated"]) == (0, "exited", False)


def test_streams_of_the_caller_are_not_visible_inside(tmp_path):
    """The command gets pipes of its own: it cannot seek in, reopen or change the mode of the caller's files."""
    file = tmp_path / "out"
    with open(file, "wb") as out, started("--", "sh", "-c", "readlink /proc/self/fd/1; echo x", stdout=out) as p:
        assert p.wait(5) == 0
    assert file.read_text().startswith("pipe:[")
    assert until(lambda: file.read_text().endswith("x\n"))
