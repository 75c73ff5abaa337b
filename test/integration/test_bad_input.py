"""Wrong words and files: one line that names the field, exit code 125, nothing started, nothing left."""
import os

import pytest
from harness import gabion, run

OVERSIZE = 300 * 1024


def assert_refused(result, *words):
    assert result.code == 125, result
    lines = result.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("gabion: "), result
    for word in words:
        assert word in lines[0], f"{word!r} is not named in {lines[0]!r}"
    assert result.out == ""


@pytest.fixture
def policy(tmp_path):
    def write(text):
        file = tmp_path / "policy.yaml"
        file.write_text(text)
        return file
    return write


@pytest.mark.parametrize("flags,words", [
    (["--no-such-flag"], ["--no-such-flag"]),
    (["-z"], ["-z"]),
    (["-m", "12Q"], ["memory", "12Q"]),
    (["-m", ""], ["memory"]),
    (["-m", "-5"], ["memory"]),
    (["-m", "99999999999999999999"], ["memory"]),
    (["-m", "1"], ["memory"]),
    (["-m", "0"], ["memory"]),
    (["-m", "12 M"], ["memory"]),
    (["--cpus", "many"], ["cpu"]),
    (["--cpus", "0"], ["cpu"]),
    (["--cpus", "-1"], ["cpu"]),
    (["--cpus", "nan"], ["cpu"]),
    (["--pids", "0"], ["pids"]),
    (["--pids", "x"], ["pids"]),
    (["--disk", "12Q"], ["disk"]),
    (["--timeout", "soon"], ["time"]),
    (["--timeout", "0"], ["time"]),
    (["--output", "x"], ["output"]),
    (["--io", "x"], ["io"]),
    (["--files", "x"], ["files"]),
    (["--user", "admin"], ["user", "admin"]),
    (["--user", "0"], ["user"]),
    (["--syscalls", "all"], ["syscalls", "all"]),
    (["--template", "alpine"], ["template", "alpine"]),
    (["--limits", "none"], ["--limits", "none"]),
    (["--off", "seccomp"], ["--off", "seccomp"]),
    (["--net", "everything"], ["--net", "everything"]),
    (["--net", "/no/such/file"], ["/no/such/file"]),
    (["--allow", ""], ["--allow"]),
    (["--allow", "*"], ["--allow"]),
    (["--allow", "a.example:0"], ["--allow"]),
    (["--allow", "a.example:70000"], ["--allow"]),
    (["--allow", "http://a.example/"], ["--allow"]),
    (["--ceiling", "/no/such/file"], ["/no/such/file"]),
    (["--resolve", "a.example"], ["--resolve"]),
    (["--resolve", "a.example:80=b.example:80"], ["--resolve"]),
    (["--upstream-proxy", "proxy.example:3128"], ["--upstream-proxy"]),
    (["--bind", "eth0"], ["--bind", "eth0"]),
    (["--ca-bundle", "/no/such/file"], ["--ca-bundle", "/no/such/file"]),
    (["--allow", "a.example", "--ca-bundle", "/etc/passwd", "--egress-log", "/dev/null"], ["egress log"]),
    (["--allow", "a.example", "--egress-log", "/proc/x/y"], ["egress log", "/proc/x/y"]),
    (["--name", ""], ["--name"]),
    (["--name", "-x"], ["--name"]),
    (["--name", "a/b"], ["--name"]),
    (["--name", "../x"], ["--name"]),
    (["--name", "a" * 100], ["--name"]),
    (["--name", "a\nb"], ["--name"]),
    (["-e", "=x"], ["-e"]),
    (["-e", ""], ["-e"]),
    (["-w", "relative"], ["-w", "relative"]),
    (["-w", "/no/such/dir"], ["-w"]),
    (["-v", "/no/such/source:/mnt/x"], ["/no/such/source"]),
    (["-v", "relative-without-target"], ["mount"]),
    (["-v", ":/mnt/x"], ["mount"]),
    (["-v", "/tmp:"], ["mount"]),
    (["-v", "/tmp:relative"], ["mount"]),
    (["-v", "/tmp:/mnt/x:rx"], ["rx"]),
    (["-v", "/tmp:/mnt/../etc"], ["mount"]),
    (["--evidence", "/no/such/dir/file"], ["--evidence"]),
    (["--json=/no/such/dir/file"], ["--json"]),
], ids=lambda v: " ".join(v)[:40] if v and v[0].startswith("-") else "")
def test_a_wrong_flag_is_named(flags, words):
    assert_refused(run(*flags, "--", "true"), *words)


@pytest.mark.parametrize("flag", ["--memory", "-v", "--policy"])
def test_a_flag_without_its_value_is_named(flag):
    assert_refused(run(flag), flag)


def test_a_result_file_that_cannot_be_written_is_found_before_the_command_runs(shared):
    """Otherwise the work is done and its result lost."""
    result = run("--json=/no/such/dir/file", "-v", f"{shared}:/mnt/d:rw", "--", "touch", "/mnt/d/ran")
    assert_refused(result, "--json")
    assert not (shared / "ran").exists()


@pytest.mark.parametrize("words", [["run"], ["run", "--"], ["run", "--", ""], ["plan"], ["plan", "--"]])
def test_a_missing_command_is_named(words):
    assert_refused(gabion(*words), "COMMAND is missing")


@pytest.mark.parametrize("words", [[], ["no-such-command"], ["--no-such-flag"]])
def test_a_wrong_subcommand_is_125_with_help(words):
    result = gabion(*words)
    assert result.code == 125
    assert "Usage: gabion" in result.err and result.out == ""


def test_a_directory_as_command(shared):
    result = run("--", "/usr/bin")
    assert result.code == 126 and result.err.startswith("gabion: /usr/bin: ")
    assert len(result.err.splitlines()) == 1


def test_an_argument_of_ten_thousand_characters_works():
    long = "x" * 10000
    assert run("--", "echo", long).out == long + "\n"


def test_a_thousand_arguments_work():
    words = [f"word{i}" for i in range(1000)]
    assert run("--", "echo", *words).out.split() == words


def test_arguments_beyond_the_frame_are_refused_clearly():
    assert_refused(run("--", "echo", *["y" * 100000] * 3), "arguments", "KiB")
    assert len("y" * 100000) * 3 >= OVERSIZE * 0.97


def test_too_many_variables_are_refused():
    assert_refused(run(*[w for i in range(600) for w in ("-e", f"V{i}=1")], "--", "true"), "-e")


def test_strange_bytes_in_arguments_pass_unchanged():
    assert run("--", "printf", "%s", "\x01\x7f\u00e4\n\t'\"").out == "\x01\x7f\u00e4\n\t'\""


@pytest.mark.parametrize("text", ['"a\\e]0;title\\a": 1\n', 'version: 1\nuser: "a\\e[2J"\n', '"a\\nb": 1\n',
                                  'version: 1\nlimits: {memory: "\\e[2J\\n"}\n'])
def test_a_policy_of_a_stranger_cannot_write_to_the_terminal(text, policy):
    """Error lines quote what was wrong; escape sequences and line ends in it must not be obeyed."""
    result = run("--policy", str(policy(text)), "--", "true")
    assert_refused(result)
    assert not [c for c in result.err[:-1] if ord(c) < 0x20 or ord(c) == 0x7f], result.err


@pytest.mark.parametrize("text,words", [
    ("version: 1\nlimit:\n  memory: 1G\n", ["limit", "policy.yaml:2:"]),
    ("version: 1\nlimits:\n  memroy: 1G\n", ["memroy", "policy.yaml:3:"]),
    ("version: 1\nlimits:\n  memory: lots\n", ["memory"]),
    ("version: 1\nlimits:\n  memory: 1G\n  memory: 2G\n", ["memory"]),
    ("version: 1\nlimits: 7\n", ["limits"]),
    ("version: 99\n", ["version"]),
    ("- a\n- b\n", []),
    ("{", []),
    ("", []),
    ("a: &x [*x]\n", []),
    ("version: 1\nfilesystem:\n  mounts:\n    - source: /no/such\n      target: /mnt/x\n", ["/no/such"]),
    ("\0\0\0", []),
    ("version: 1\nuser: wheel\n", ["user"]),
    ("version: 1\ntier: vm\n", ["tier"]),
])
def test_a_wrong_policy_is_refused(text, words, policy):
    file = policy(text)
    assert_refused(run("--policy", str(file), "--", "true"), *words)
    check = gabion("policy", "check", str(file))
    assert check.code == 125 or "/no/such" in words or "tier" in words, check


def test_a_policy_that_is_a_fifo_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert_refused(run("--policy", str(tmp_path / "fifo"), "--", "true", timeout=5), "fifo")


def test_a_policy_of_a_gibibyte_is_not_read(tmp_path):
    big = tmp_path / "big"
    with open(big, "wb") as f:
        f.truncate(1 << 30)
    assert_refused(run("--policy", str(big), "--", "true", timeout=5), "big")


@pytest.mark.parametrize("path", ["/", "/dev/zero", "/dev/null", "/no/such/policy", "/proc/self/mem"])
def test_a_policy_that_is_no_file_is_refused(path):
    assert_refused(run("--policy", path, "--", "true", timeout=5))


def test_a_target_twice_is_refused(shared):
    (shared / "a").mkdir()
    (shared / "b").mkdir()
    assert_refused(run("-v", f"{shared}/a:/mnt/x", "-v", f"{shared}/b:/mnt/x", "--", "true"), "/mnt/x")


def test_a_mount_that_is_no_file_or_directory_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert_refused(run("-v", f"{tmp_path}/fifo:/mnt/x", "--", "true", timeout=5), "fifo")


def test_too_many_mounts_are_refused(shared):
    flags = [w for i in range(100) for w in ("-v", f"{shared}:/mnt/{i}")]
    assert_refused(run(*flags, "--", "true"), "mounts")


def test_an_evidence_file_is_not_written_through_a_link(tmp_path):
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / "link").symlink_to(target)
    assert_refused(run("--evidence", str(tmp_path / "link"), "--", "true"), "--evidence")
    assert target.read_text() == "precious"
