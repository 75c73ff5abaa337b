#!/bin/sh
# What a hostile script would try, for machines without python3; as attack.py.
home=$1 secret=$2 reached=0
try() { # what, command...
    what=$1
    shift
    if why=$("$@" 2>&1 >/dev/null); then
        printf 'reached\t%s\tit worked\n' "$what"
        reached=$((reached + 1))
    else
        printf 'stopped\t%s\t%s\n' "$what" "$(printf '%s' "$why" | head -n 1 | sed 's/.*: //')"
    fi
}
home() { names=$(ls -A "$home") && test -n "$names"; }
has_token() { test -n "${GABION_DEMO_TOKEN-}"; }
connect() { timeout 3 bash -c ': </dev/tcp/192.0.2.1/443'; }
try 'read /etc/shadow' cat /etc/shadow
try "list the caller's home, $home" home
try 'read /root/.ssh' ls /root/.ssh
try 'read a secret file of the caller' cat "$secret"
try 'find a token in the environment' has_token
try 'read /proc/1/environ' cat /proc/1/environ
try 'write to /usr/bin' touch /usr/bin/ls
try 'connect to 192.0.2.1, port 443' connect
try 'look up example.com' getent hosts example.com
try 'make a device node' mknod /tmp/disk b 8 0
try 'mount a file system' mount -t tmpfs none /tmp
try 'make a user namespace' unshare --user true
exit $reached
