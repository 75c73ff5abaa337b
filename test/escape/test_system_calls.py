"""The kernel's surface from inside: every refused system call, socket families, namespaces, foreign entry points."""
import os
import platform
import socket
import struct
import subprocess

import pytest
from harness import run, sh
from inside import USERS, answers, inside, numbers

x86_only = pytest.mark.skipif(platform.machine() != "x86_64", reason="x86_64 has these entry points, no other machine")
NAMESPACES = {"time": 0x80, "mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000,
              "pid": 0x20000000, "net": 0x40000000}
# What nobody calls by accident: the answer, and a record of the attempt.
INTENT = {"bpf": "EPERM", "perf_event_open": "EPERM", "userfaultfd": "EPERM", "io_uring_setup": "ENOSYS",
          "keyctl": "ENOSYS", "add_key": "ENOSYS", "request_key": "ENOSYS", "init_module": "EPERM",
          "finit_module": "EPERM", "delete_module": "EPERM", "kexec_load": "EPERM", "reboot": "EPERM",
          "ptrace": "EPERM", "process_vm_readv": "EPERM", "open_by_handle_at": "EPERM", "setns": "EPERM",
          "mount": "EPERM"}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("profile", ["agent", "strict", "debug"])
def test_every_refused_call_gets_its_answer(profile, user, tmp_path):
    """The whole table, with arguments that fit nothing: what is not allowed never reaches the kernel's own code."""
    known = numbers()
    refused = {name: answer.split()[-1] for name, answer in answers(profile).items()
               if name in known and answer != "allow" and not answer.startswith("rule ")}
    assert len(refused) > 100
    report = inside(f"""
unknown = [nr for nr in range(0, 1100) if nr not in NR.values()]
tell({{"known": {{name: call(name, -1, -1, -1, -1, -1, -1) for name in {sorted(refused)!r}}},
      "unknown": sorted({{call(nr, -1, -1, -1, -1, -1, -1) for nr in unknown}})}})
""", "--user", user, "--syscalls", profile, folder=tmp_path)
    assert {name: answer for name, answer in report["known"].items() if answer != refused[name]} == {}
    assert report["unknown"] == ["ENOSYS"]


@pytest.mark.parametrize("user", USERS)
def test_calls_of_intent_are_reported(user, tmp_path):
    report = inside(f"tell({{name: call(name, -1, -1, -1, -1, -1) for name in {sorted(INTENT)!r}}})", "--user", user,
                    folder=tmp_path)
    assert report.found == INTENT
    assert report.denied == set(INTENT)


@pytest.mark.parametrize("user", USERS)
def test_no_namespace_can_be_made_or_joined(user, tmp_path):
    report = inside(f"""
def clone(flags):
    got = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if got == 0:
        os._exit(0)
    return got
found = {{}}
for name, bit in {NAMESPACES!r}.items():
    fd = os.open("/proc/self/ns/" + name, os.O_RDONLY)
    found[name] = [call("unshare", bit), call("setns", fd, bit), call("setns", fd, 0)]
    if name != "time":  # there clone() has no bit for it: 0x80 is part of the exit signal
        found[name].append(clone(bit))
tell(found)
""", "--user", user, folder=tmp_path)
    for name, got in report.found.items():
        assert set(got) == {"EPERM"}, (name, got)


def test_no_new_network_for_a_program(tmp_path):
    """The programs that people know, instead of raw calls."""
    assert sh("unshare -Ur id -u", "--user", "root").code != 0
    assert sh("unshare -n true", "--user", "root").code != 0
    assert sh("nsenter -t 1 -m true", "--user", "root").code != 0


def test_socket_families(tmp_path):
    """Everything but unix, inet, inet6 and route netlink; on the host the test could have more."""
    report = inside("""
families, netlink = {}, {}
for family in range(0, 50):
    for kind in (1, 2, 5, 3):
        got = call("socket", family, kind, 0)
        if isinstance(got, int):
            os.close(got)
            got = "worked"
        families.setdefault(family, []).append(got)
        if got != "EPROTONOSUPPORT":
            break  # each refusal is reported, and a flood of them is answered in another way
for proto in range(0, 32):
    got = call("socket", 16, 3, proto)
    netlink[proto] = "worked" if isinstance(got, int) else got
tell({"families": families, "netlink": netlink})
""", folder=tmp_path)
    working = {int(family) for family, got in report["families"].items() if "worked" in got}
    assert working == {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
    for family, got in report["families"].items():
        if int(family) not in working:
            assert got == ["EAFNOSUPPORT"], family
    for proto, got in report["netlink"].items():
        assert got == ("worked" if proto == "0" else "EPROTONOSUPPORT"), proto


@pytest.mark.parametrize("family, kind, proto, answer", [
    (socket.AF_VSOCK, socket.SOCK_STREAM, 0, "EAFNOSUPPORT"),
    (socket.AF_PACKET, socket.SOCK_RAW, 0x0300, "EAFNOSUPPORT"),
    (socket.AF_ALG, socket.SOCK_SEQPACKET, 0, "EAFNOSUPPORT"),
    (44, socket.SOCK_RAW, 0, "EAFNOSUPPORT"),                     # AF_XDP
    (socket.AF_INET, socket.SOCK_RAW, 1, "EPERM"),                # ICMP
    (socket.AF_INET6, socket.SOCK_RAW, 58, "EPERM"),
    (socket.AF_INET, socket.SOCK_DGRAM, 1, "EPROTONOSUPPORT"),    # "ping" sockets
    (socket.AF_INET, socket.SOCK_STREAM, 132, "EPROTONOSUPPORT"),  # SCTP
    (socket.AF_INET, socket.SOCK_STREAM, 262, "EPROTONOSUPPORT"),  # MPTCP
    (socket.AF_NETLINK, socket.SOCK_RAW, 12, "EPROTONOSUPPORT"),  # netfilter
    (socket.AF_NETLINK, socket.SOCK_RAW, 6, "EPROTONOSUPPORT"),   # xfrm
    (socket.AF_NETLINK, socket.SOCK_RAW, 15, "EPROTONOSUPPORT"),  # kobject_uevent: the host's hot-plug events
])
def test_dangerous_sockets_as_root(family, kind, proto, answer, tmp_path):
    report = inside(f"tell([call('socket', {int(family)}, {int(kind)}, {proto})])", "--user", "root", folder=tmp_path)
    assert report.found == [answer]


def test_route_netlink_reads_and_does_not_write(tmp_path):
    """Root inside has no capability over its own network either: it stays as it was made."""
    for script in ("ip link add x type dummy", "ip link set lo down", "ip addr add 192.0.2.1/32 dev lo",
                   "ip route add 192.0.2.0/24 dev lo"):
        result = sh(f"export PATH=$PATH:/usr/sbin; {script} || echo refused; cat /proc/net/dev", "--user", "root")
        assert "refused" in result.out, (script, result)
        assert "lo:" in result.out and "x:" not in result.out


def test_a_filter_of_ones_own_cannot_listen_or_widen(tmp_path):
    """A second filter may only narrow; one with a listener inside would take the place of the host's."""
    report = inside("""
insn = struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)  # allow everything
code = ctypes.create_string_buffer(insn)
prog = struct.pack("HxxxxxxQ", 1, ctypes.addressof(code))
found = {f"flag {flag}": call("seccomp", 1, flag, prog) for flag in (8, 8 | 16, 8 | 32)}
found["plain"] = call("seccomp", 1, 0, prog)
found["after"] = call("mount", 0, 0, 0, 0, 0)
tell(found)
""", folder=tmp_path)
    assert report.found == {"flag 8": "EINVAL", "flag 24": "EINVAL", "flag 40": "EINVAL", "plain": 0, "after": "EPERM"}


@x86_only
@pytest.mark.parametrize("profile", ["agent", "strict", "debug"])
def test_foreign_entry_points_kill(profile, attack):
    """i386 numbers mean other calls: a filter that looks only at the number allows the wrong ones."""
    program, flags, path = attack("gates")
    native = run("--syscalls", profile, *flags, "--", path)
    assert native.code == 0 and native.out.startswith("answered "), native
    for gate in ("i386", "x32"):
        result = run("--syscalls", profile, *flags, "--", path, gate)
        assert result.code == 128 + 31, (gate, result)  # SIGSYS
        assert "answered" not in result.out


@pytest.mark.skipif(platform.machine() != "aarch64", reason="the 32-bit calls of aarch64")
@pytest.mark.parametrize("profile", ["agent", "strict", "debug"])
def test_32_bit_programs_are_killed(profile, tmp_path):
    """AArch32 has numbers of its own, and they come from another kind of program."""
    folder = tmp_path / "small"
    folder.mkdir()
    program = folder / "exit42"
    code = struct.pack("<III", 0xe3a0002a, 0xe3a07001, 0xef000000)  # mov r0, #42; mov r7, #1 (exit); svc #0
    start, size = 0x10000, 52 + 32 + len(code)
    program.write_bytes(b"\x7fELF\1\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIIIIIHHHHHH", 2, 40, 1, start + 52 + 32, 52, 0, 0x05000200, 52, 32, 1, 0, 0, 0) + struct.pack(
        "<IIIIIIII", 1, 0, start, start, size, size, 5, 0x1000) + code)
    program.chmod(0o755)
    try:
        assert subprocess.run([program], check=False).returncode == 42
    except OSError:
        pytest.skip("this kernel runs no 32-bit programs")
    result = run("--syscalls", profile, "-v", f"{folder}:/mnt/d", "--", "/mnt/d/exit42")
    assert result.code == 128 + 31, result  # SIGSYS


@pytest.mark.parametrize("user", USERS)
def test_a_setuid_program_stays_who_it_was(user, attack, tmp_path):
    program, _, _ = attack("ids")
    folder = tmp_path / "suid"
    folder.mkdir()
    copy = folder / "ids"
    copy.write_bytes(program.read_bytes())
    os.chown(copy, 0, 0)
    copy.chmod(0o6755)
    own = 1000 if user == "user" else 0
    result = run("--user", user, "-v", f"{folder}:/mnt/d", "--", "/mnt/d/ids")
    assert result.out == f"{own} {own} {1 - bool(own)}\n", result
    if user == "user":  # nor one that it made itself, on a tmpfs of its own
        result = sh("cp /mnt/d/ids ~/ids && chmod 6755 ~/ids && ~/ids && /usr/bin/su -c id < /dev/null", "-v",
                    f"{folder}:/mnt/d")
        assert result.out == "1000 1000 0\n", result
        assert result.code != 0


def test_scheduling_and_limits_only_go_down(tmp_path):
    for user in USERS:
        report = inside("""
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
def raise_limit():
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard + 1))
        return "worked"
    except (ValueError, OSError) as e:
        return type(e).__name__
tell({"fifo": tried(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)),
      "nice": tried(os.setpriority, 0, 0, -5),
      "attr": call("sched_setattr", 0, b"\\0" * 64, 0), "io": call("ioprio_set", 1, 0, 1 << 13),
      "limit": raise_limit() != "worked", "personality": call("personality", 0x0400000)})
""", "--user", user, folder=tmp_path)
        assert report.found == {"fifo": "EPERM", "nice": "EACCES", "attr": "EPERM", "io": "EPERM", "limit": True,
                                "personality": "EPERM"}, user
