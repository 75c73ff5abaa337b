#!/usr/bin/python3
"""Fails on calls that src/ may not make, and on // comments, tabs and unfinished-work marks in any C file.
usage: check-banned.py [ROOT]"""
import pathlib
import re
import sys

from csource import blank, files, line_comments

BANNED = ("strcpy strcat sprintf vsprintf gets strtok sscanf atoi atol atoll strtol strtoll strtoul strtoull alloca "
          "system popen signal realpath").split()
CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED))
FORK = re.compile(r"(?<![\w.>])(v?fork)\s*\(")  # where processes are made, and nowhere else
FORK_PLACES = ("src/agent/", "src/sandbox/", "src/run/", "src/prove/", "src/probe/", "src/warden/")
GETENV = re.compile(r"(?<![\w.>])(getenv|secure_getenv)\s*\(")  # the environment is read in one file of the CLI
MARK = re.compile(r"\b(TODO|FIXME)\b")


def matches(regex, text):
    return [(text.count("\n", 0, m.start()) + 1, m.group(1)) for m in regex.finditer(text)]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    bad, getenv_file = [], None
    for path in files(root, ".c", ".h"):
        name, text = path.relative_to(root).as_posix(), path.read_text()
        bad += [f"{name}:{n}: use /* */ comments" for n in line_comments(text)]
        bad += [f"{name}:{n}: tab" for n, line in enumerate(text.splitlines(), 1) if "\t" in line]
        bad += [f"{name}:{n}: {what}: open an issue instead" for n, what in matches(MARK, text)]
        if not name.startswith("src/"):
            continue
        code = blank(text)
        bad += [f"{name}:{n}: {what}() is banned (docs/style.md, Untrusted input)" for n, what in matches(CALL, code)]
        if not name.startswith(FORK_PLACES):
            bad += [f"{name}:{n}: {what}() only in {', '.join(FORK_PLACES)}" for n, what in matches(FORK, code)]
        for n, what in matches(GETENV, code):
            getenv_file = getenv_file or name
            if not name.startswith("src/cli/") or name != getenv_file:
                bad.append(f"{name}:{n}: {what}() only in one file of src/cli")
    print("\n".join(bad) or "banned ok")
    return bool(bad)


sys.exit(main())
