#!/bin/sh
# In the guest: gabion itself on a machine with nothing but cgroup v2 and an older kernel (Landlock without scopes).
# The same promises as in test/integration, for what differs there: limits, killing, freezing, cleaning up. By hand:
#   run-guest --module brd --program build/src/cli/gabion:/usr/bin/gabion \
#             --program build/src/cli/gabion-weak:/usr/bin/gabion-weak gabion-v2.sh
failed=0
n=0
r=/tmp/result.json

fail() {
        echo "FAILED: $*"
        sed 's/^/    /' /tmp/out /tmp/err 2> /dev/null | head -n 20
        failed=$((failed + 1))
}

# expect NAME EXIT-CODE FLAGS... -- COMMAND: runs and compares. Streams: /tmp/out and /tmp/err; result: $r
expect() {
        name=$1
        want=$2
        shift 2
        n=$((n + 1))
        rm -f "$r"
        timeout 20 gabion run --json="$r" "$@" > /tmp/out 2> /tmp/err < /dev/null
        got=$?
        [ "$got" -eq "$want" ] || fail "$name: exit code $got, not $want"
        clean "$name"
}

# has NAME FILE TEXT
has() {
        grep -q -- "$3" "$2" || fail "$1: no $3 in $2: $(head -c 600 "$2")"
}

# Pids of processes of that name.
named() {
        grep -lx "$1" /proc/[0-9]*/comm 2> /dev/null | cut -d / -f 3
}

running() {
        [ -n "$(named "$1")" ]
}

# Nothing may be left after a run; the janitor gets a second.
clean() {
        i=0
        while ls -d /sys/fs/cgroup/gabion/sbx-* /run/gabion/sbx-* > /dev/null 2>&1 || running sleep; do
                i=$((i + 1))
                if [ "$i" -gt 20 ]; then
                        fail "$1: left behind: $(ls -d /sys/fs/cgroup/gabion/sbx-* /run/gabion/sbx-*; named sleep)"
                        return
                fi
                usleep 50000
        done
        [ "$(wc -l < /proc/self/mountinfo)" -eq "$mounts" ] || fail "$1: mounts are left behind"
}

# Waits up to 5 s for a command to succeed.
soon() {
        i=0
        while ! "$@" > /dev/null 2>&1; do
                i=$((i + 1))
                [ "$i" -le 100 ] || return 1
                usleep 50000
        done
}

grep -q ' cgroup ' /proc/mounts && { echo 'this is not a pure cgroup v2 machine'; exit 1; }
mounts=$(wc -l < /proc/self/mountinfo)
echo "== $(uname -r), up $(cut -d ' ' -f 1 /proc/uptime) s"

expect hello 7 -- sh -c 'echo hello; exit 7'
has hello /tmp/out '^hello$'
has hello "$r" '"reason":"exited"'

expect evidence 0 --evidence /tmp/e.json -m 96M --pids 40 --cpus 0.5 -- cat /proc/self/status
for line in 'CapBnd:.0000000000000000' 'NoNewPrivs:.1' 'Seccomp:.2'; do
        has evidence /tmp/out "$line"
done
for text in '"rootless": false' 'memory.max' '100663296' 'pids.max' 'cpu.max' '"probe_outside_rules": "EACCES"' \
        '"deviations": \[\]' '"abi": [1-9]'; do
        has evidence /tmp/e.json "$text"
done

expect masked 1 -- cat /proc/schedstat # which not every kernel has
[ -s /tmp/out ] && fail "masked: /proc/schedstat can be read"

expect oom 137 -m 48M -- dd if=/dev/zero of=/dev/null bs=200M count=1
has oom "$r" '"reason":"oom"'
has oom "$r" 'limit.memory'

expect pids 124 --pids 24 --timeout 1s -- sh -c 'b() { b | b & }; b; sleep 30'
has pids "$r" 'limit.pids'

expect disk 1 --disk 8M -m 64M -- dd if=/dev/zero of=/tmp/big bs=1M count=40
has disk /tmp/err 'No space left'

expect output 137 --output 1M -- yes
has output "$r" '"reason":"limit"'

expect timeout 124 --timeout 300ms -- sleep 30
has timeout "$r" '"reason":"timeout"'

expect stubborn 124 --timeout 500ms -- sh -c 'trap "" TERM INT HUP QUIT; sleep 30 & while :; do sleep 1; done'
has stubborn "$r" 'limit.time'

expect stopped 124 --timeout 300ms -- sh -c 'kill -STOP $$; sleep 30'

expect cpu 124 --cpus 0.2 --timeout 1s -- sh -c 'while :; do :; done'
used=$(sed 's/.*"cpu_ms":\([0-9]*\).*/\1/' "$r")
took=$(sed 's/.*"duration_ms":\([0-9]*\).*/\1/' "$r") # more than a second on a busy machine
[ "$used" -gt 50 ] && [ "$used" -le $((took / 2)) ] || fail "cpu: $used ms of $took ms at 0.2 CPUs"

# Freezing: a counter inside stops, and goes on. (This kernel's tmpfs cannot map owners, so nothing is mounted here.)
count() { cat "/proc/$inner/root/tmp/beat" 2> /dev/null; }
beat() { [ -n "$(count)" ] && [ "$(count)" != "$before" ]; }
before=
gabion run -- sh -c 'i=0; while :; do i=$((i+1)); echo $i > /tmp/beat; usleep 10000; done' &
pid=$!
# The agent, which is the first in the group: the others come and go with every beat.
find_inner() { inner=$(head -n 1 /sys/fs/cgroup/gabion/sbx-*/cgroup.procs) && beat; }
soon find_inner || fail 'freeze: the command does not run'
kill -TSTP "$pid"
soon grep -q '^State:.T' "/proc/$pid/status" || fail 'freeze: gabion does not stop'
grep -q 'frozen 1' /sys/fs/cgroup/gabion/sbx-*/cgroup.events || fail 'freeze: the group is not frozen'
before=$(count)
usleep 300000
beat && fail 'freeze: the command goes on'
kill -CONT "$pid"
soon beat || fail 'freeze: the command does not go on after SIGCONT'
kill -TERM "$pid"
wait "$pid"
[ $? -eq 143 ] || fail "freeze: TERM did not end it"
clean freeze

# SIGKILL of the supervisor while it runs: PDEATHSIG ends the sandbox, the janitor removes the rest.
gabion run -- sleep 30 &
pid=$!
soon running sleep || fail 'kill: the command does not run'
kill -KILL "$pid"
wait "$pid" 2> /dev/null
clean kill

# The read-back of control groups has a v2 branch of its own.
for name in memory pids cpu tasks; do
        gabion-weak run --weaken "$name" -- echo ran > /tmp/out 2> /tmp/err < /dev/null
        [ $? -eq 125 ] || fail "weaken $name: it started"
        grep -q 'control cgroup is not in force' /tmp/err || fail "weaken $name: not named"
        [ -s /tmp/out ] && fail "weaken $name: the command ran"
        clean "weaken $name"
done

# A memory bomb ends all of a sandbox here, and the proof goes on with another. The attacker is a file that gets mounted,
# for which the disk is.
insmod /lib/modules/brd.ko rd_nr=1
mke2fs /dev/ram0 > /dev/null && mount -t ext4 /dev/ram0 /tmp || fail 'prove: no disk'
mounts=$((mounts + 1))
printf 'version: 1\nlimits: { memory: 96M, disk: 32M }\n' > /tmp/small.yaml
gabion prove --groups I --policy /tmp/small.yaml > /tmp/out 2> /tmp/err < /dev/null || fail 'prove: it does not pass'
has prove /tmp/out 'The memory limit ended all of it in [1-9]'
clean prove

echo "== done (up $(cut -d ' ' -f 1 /proc/uptime) s), $n runs, $failed failed"
exit "$failed"
