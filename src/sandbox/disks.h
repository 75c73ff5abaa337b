/* disks.h - the whole disks behind a plan's mounts. Private to sandbox/. */
#pragma once

#include "cgroup/cgroup.h"
#include "plan/plan.h"

void disks_find(const struct plan *plan, struct cgroup_limits *l);
