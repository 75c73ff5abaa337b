#!/usr/bin/python3
"""Fails when src/<a> includes src/<b> and tools/layers.txt does not allow a -> b, when a header private to another
component is included, when a library is included by somebody who does not own it, or when a file has a name that
says nothing. usage: check-layers.py [ROOT]"""
import pathlib
import re
import sys

from csource import files

# <header>: the places that may include it. Replacing a library then touches one folder. Tests are exempt.
OWNERS = {
    "jansson.h": r"src/json/",
    "yaml.h": r"src/json/",
    # The generator, which runs at build time only; and a program that is dynamic anyway and filters only itself.
    "seccomp.h": r"(src/seccomp/|tools/).*gen[^/]*\.[ch]$|src/daemon/calls\.c$",
    "sha2.h": r"src/base/",
    "sodium.h": r"src/sign/",
    "llhttp.h": r"src/http/",
    "zlib.h": r"src/envd/",
    "ldns/": r"src/dns/",  # everything below this folder
    "openssl/": r"src/tls/",
    "cmocka.h": r"$^",
}
# What strangers include; others: <component>.h
PUBLIC = {"lib": ("gabion.h",), "http": ("http.h", "server.h"), "policy": ("policy.h", "net.h", "net_flags.h"),
          "client": ("client.h", "process.h"), "egressctl": ("egressctl.h", "trust.h", "truststore.h"),
          "run": ("run.h", "remote.h"), "sandbox": ("sandbox.h", "netpool.h")}
VAGUE = {"misc", "common", "shared", "util", "utils", "helper", "helpers"}
INCLUDE = re.compile(r'\s*#\s*include\s+(["<])([^">]+)[">]')


def read_layers(path):
    allowed = {}
    for line in path.read_text().splitlines():
        name, colon, deps = line.split("#")[0].partition(":")
        if colon:
            allowed[name.strip()] = set(deps.split()) | {name.strip()}
    return allowed


def cycle(allowed, name, path):
    for dep in sorted(allowed.get(name, set()) - {name}):
        found = [*path, dep] if dep in path else cycle(allowed, dep, [*path, dep])
        if found:
            return found
    return None


def check_include(allowed, name, kind, header):
    """The complaint about one include line of the file `name`, or None."""
    if kind == "<":
        owner = OWNERS.get(header) or OWNERS.get(header.partition("/")[0] + "/")
        if owner and not re.match(owner, name):
            return f"<{header}> belongs to another component (tools/check-layers.py, OWNERS)"
        return None
    if not name.startswith("src/"):
        return None
    comp = name.split("/")[1]
    dep, slash, rest = header.partition("/")
    if not slash or dep == comp:
        return None
    if dep not in allowed[comp]:
        return f"{comp} may not include {dep} (tools/layers.txt)"
    public = PUBLIC.get(dep, (f"{dep}.h",))
    if rest not in public and dep != "base":
        return f"{rest} is private to {dep}; include {dep}/{public[0]}"
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    allowed = read_layers(root / "tools/layers.txt")
    bad = []
    for name in allowed:
        found = cycle(allowed, name, [name])
        if found:
            bad.append(f"tools/layers.txt:1: cycle {' -> '.join(found)}")
            break
    for path in files(root, ".c", ".h"):
        name = path.relative_to(root).as_posix()
        if VAGUE & {*path.relative_to(root).parts[:-1], path.stem}:
            bad.append(f"{name}:1: a name that says nothing; name the subject")
        if not name.startswith(("src/", "tools/")):
            continue
        if name.startswith("src/") and name.split("/")[1] not in allowed:
            bad.append(f"{name}:1: component '{name.split('/')[1]}' is not in tools/layers.txt")
            continue
        for n, line in enumerate(path.read_text().splitlines(), 1):
            m = INCLUDE.match(line)
            complaint = m and check_include(allowed, name, m.group(1), m.group(2))
            if complaint:
                bad.append(f"{name}:{n}: {complaint}")
    print("\n".join(bad) or "layers ok")
    return bool(bad)


sys.exit(main())
