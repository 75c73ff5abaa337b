"""In the guest of run-tree. usage: inside.py BUILD unit | PYTEST-ARGUMENT..."""
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

SLOW = 8  # an emulated machine


class Failures:
    """Told at once: the guest may be stopped before the end."""

    @staticmethod
    def pytest_runtest_logreport(report):
        if report.failed:
            print(f"\n--- {report.nodeid} ({report.when})\n{report.longreprtext}", flush=True)


def unit(build):
    """The programs that `meson test --suite kernel --suite root` would run."""
    failed = 0
    for test in json.loads((build / "meson-info/intro-tests.json").read_text()):
        if not {"gabion:kernel", "gabion:root"} & set(test["suite"]):
            continue
        begin = time.monotonic()
        try:
            p = subprocess.run(test["cmd"], cwd=build, env={**os.environ, **test["env"]}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SLOW * test["timeout"],
                               check=False)
            code, out = p.returncode, p.stdout
        except subprocess.TimeoutExpired as e:
            code, out = "no end", e.stdout or b""
        lines = out.decode(errors="replace").splitlines()
        passed = sum("[       OK ]" in line for line in lines)
        skipped = dict.fromkeys(line.split()[-1] for line in lines if "[  SKIPPED ]" in line and "listed" not in line)
        print(f"{test['name']:30} {passed:3} passed, exit {code} ({time.monotonic() - begin:.1f} s)"
              f"{'; skipped: ' if skipped else ''}{' '.join(skipped)}", flush=True)
        if code != 0:
            failed += 1
            print("\n".join(lines), flush=True)
    return 1 if failed else 0


def main():
    build = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["unit"]:
        return unit(build)
    os.environ["GABION"] = str(build / "src/cli/gabion")
    return pytest.main(["-q", "-p", "no:cacheprovider", "--tb=short", "--color=no", "-rs", *sys.argv[2:]], plugins=[Failures()])


sys.exit(main())
