"""Completion offers exactly the commands and options that the program has, in three shells."""
import pathlib
import re
import shutil
import subprocess

import pytest
from harness import GABION

SHELLS = ("bash", "zsh", "fish")


def gabion(*args):
    return subprocess.run([GABION, *args], capture_output=True, text=True, timeout=30, check=True).stdout


def script(shell, folder):
    path = folder / f"completion.{shell}"
    path.write_text(gabion("completion", shell))
    return path


def options_of_run():
    """Both forms of every option, from the text that people read."""
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", "\n".join(
        re.match(r"  (?:-\w, )? *--[a-z-]+", line)[0]
        for line in gabion("run", "--help").splitlines() if re.match(r" {2,6}-", line))))


def commands():
    return set(re.findall(r"^  ([a-z]+) {2,}", gabion("help"), re.M)) | {"help"}


def bash_offers(folder, *words):
    """What TAB offers at the end of these words, with bash's own cutting at '=' and ':' done by the caller."""
    ask = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gabion; printf "%s\\n" "${COMPREPLY[@]}"'
    out = subprocess.run(["bash", "-c", ask, script("bash", folder), *words], capture_output=True, text=True,
                         timeout=30, check=True)
    assert out.stderr == ""
    return set(out.stdout.split())


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_accepts_the_script(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", script(shell, tmp_path)], timeout=30, check=True)


def test_bash_offers_every_option_and_no_other(tmp_path):
    assert len(options_of_run()) > 30
    for command in ("run", "plan"):
        assert bash_offers(tmp_path, "gabion", command, "-") == options_of_run()


def test_bash_offers_every_command(tmp_path):
    assert bash_offers(tmp_path, "gabion", "") - {"--help", "--version"} == commands()


def test_fish_and_zsh_know_every_option():
    longs = {o[2:] for o in options_of_run() if o.startswith("--")}
    letters = {o[1:] for o in options_of_run() if not o.startswith("--")}
    fish = [line for line in gabion("completion", "fish").splitlines() if "from run plan" in line]
    assert set(re.findall(r" -l ([a-z-]+)", "\n".join(fish))) == longs
    assert set(re.findall(r" -s (\w)", "\n".join(fish))) == letters
    zsh = gabion("completion", "zsh").split("options=(\n")[1].split("\n  )\n")[0]
    assert set(re.findall(r"^    '\*?--([a-z-]+)", zsh, re.M)) == longs
    assert set(re.findall(r"^    '\*?-(\w)", zsh, re.M)) == letters


@pytest.mark.parametrize("words, offered", [
    (["run", "--limits", ""], {"cgroup", "rlimit"}),
    (["run", "--limits", "=", "r"], {"rlimit"}),
    (["run", "--limits", "="], {"cgroup", "rlimit"}),
    (["run", "--off", "l"], {"landlock"}),
    (["run", "-v", "/a", ":", "/b", "--sys"], {"--syscalls"}),
    (["run", "-m", "1G", "--", "-"], set()),
    (["run", "--policy", "/etc/passw"], {"/etc/passwd"}),
    (["run", "sh", "/etc/passw"], {"/etc/passwd"}),
    (["policy", "ch"], {"check"}),
    (["completion", ""], {"bash", "zsh", "fish"}),
])
def test_bash_knows_where_it_is(words, offered, tmp_path):
    assert {w for w in bash_offers(tmp_path, "gabion", *words) if w != "/etc/passwd-"} == offered


def test_another_shell_is_an_error():
    out = subprocess.run([GABION, "completion", "csh"], capture_output=True, text=True, timeout=30)
    assert (out.returncode, out.stdout) == (125, "")
    assert "bash, zsh or fish" in out.stderr


def test_every_shell_knows_the_options_of_serve(tmp_path):
    longs = set(re.findall(r"^ {6}--([a-z-]+)", gabion("serve", "--help"), re.M))
    assert len(longs) > 10
    assert bash_offers(tmp_path, "gabion", "serve", "--") == {f"--{o}" for o in longs}
    assert set(re.findall(r"from serve' -l ([a-z-]+)", gabion("completion", "fish"))) == longs - {"help"}
    zsh = re.search(r"^    serve\).*", gabion("completion", "zsh"), re.M)[0]
    assert set(re.findall(r"--([a-z-]+)\[", zsh)) == longs


REMOTE = ("create", "exec", "shell", "ps", "top", "inspect", "logs", "cp", "port", "stop", "rm")
MAN = pathlib.Path(__file__).resolve().parents[2] / "docs/man"


@pytest.mark.parametrize("verb", REMOTE)
def test_help_completion_and_manual_have_the_same_options(verb, tmp_path):
    rows = re.findall(r"^  (?:-(\w), |    )--([a-z-]+)", gabion(verb, "--help"), re.M)
    longs, letters = {name for _, name in rows}, {letter for letter, _ in rows if letter}
    assert longs >= {"server", "key-file", "ca-file", "help"}
    assert bash_offers(tmp_path, "gabion", verb, "-") == {f"--{o}" for o in longs} | {f"-{o}" for o in letters}
    fish = "\n".join(re.findall(rf"^.*from {verb}' .*$", gabion("completion", "fish"), re.M))
    assert set(re.findall(r" -l ([a-z-]+)", fish)) == longs and set(re.findall(r" -s (\w)", fish)) == letters
    zsh = re.search(rf"^    {verb}\).*", gabion("completion", "zsh"), re.M)[0]
    assert set(re.findall(r"'\*--([a-z-]+)", zsh)) == longs and set(re.findall(r"'\*-(\w)", zsh)) == letters
    page = (MAN / f"gabion-{verb}.1").read_text()
    assert set(re.findall(r"^\.It .*?Fl Fl ([a-z-]+)", page, re.M)) == longs
    assert set(re.findall(r"^\.It Fl (\w) ,", page, re.M)) == letters


def test_values_of_options_are_completed_where_they_are_files(tmp_path):
    assert "/etc/passwd" in bash_offers(tmp_path, "gabion", "ps", "--key-file", "/etc/passw")
    assert bash_offers(tmp_path, "gabion", "create", "--name", "") == set()
