#!/bin/sh
# In the guest: the unit tests that work on real control groups, on a machine with nothing but v2. By hand, from a
# build folder:
#   run-guest --module brd --program test/unit/cgroup/test_cgroup_kill:/test/kill ... cgroup-v2.sh
failed=0

if grep -q ' cgroup ' /proc/mounts || ! grep -q memory /sys/fs/cgroup/cgroup.controllers; then
        echo 'this is not a pure cgroup v2 machine'
        exit 1
fi
insmod /lib/modules/brd.ko rd_nr=1 rd_size=1024 # a disk, for the limit of io
for program in /test/*; do
        echo "== ${program##*/} (up $(cut -d ' ' -f 1 /proc/uptime) s)"
        "$program" > /tmp/out 2>&1 || failed=$((failed + 1))
        grep -v '^\[ RUN' /tmp/out
done
echo "== done (up $(cut -d ' ' -f 1 /proc/uptime) s), $failed of the programs failed"
exit "$failed"
