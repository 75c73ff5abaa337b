#!/usr/bin/python3
"""Fails on C files over 500 lines, headers over 150, functions over 80, and an agent over 3,000. A file that must be longer says so in a
comment `layers: allow-long <reason>`, which shows in review. usage: check-size.py [ROOT]"""
import pathlib
import re
import sys

from csource import files, functions

BUDGET = {".c": 500, ".h": 150, ".py": 500}
FUNCTION = 80
FOLDER = {"src/agent/": 3000}  # what runs with capabilities inside
ESCAPE = re.compile(r"layers: allow-long \w")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    bad, sums = [], dict.fromkeys(FOLDER, 0)
    for path in files(root, *BUDGET):
        name, text = path.relative_to(root).as_posix(), path.read_text()
        lines = len(text.splitlines())
        for folder in FOLDER:
            sums[folder] += lines if name.startswith(folder) else 0
        if lines > BUDGET[path.suffix] and not ESCAPE.search(text):
            bad.append(f"{name}:{BUDGET[path.suffix] + 1}: {lines} lines, budget {BUDGET[path.suffix]}")
        if path.suffix == ".py":
            continue
        for first, last, function in functions(text):
            if last - first + 1 > FUNCTION:
                bad.append(f"{name}:{first}: {function}() has {last - first + 1} lines, budget {FUNCTION}")
    bad += [f"{folder}: {sums[folder]} lines, budget {n}" for folder, n in FOLDER.items() if sums[folder] > n]
    print("\n".join(bad) or "size ok")
    return bool(bad)


sys.exit(main())
