/* limits.h - the ranges and defaults of every limit of a sandbox, in one list; docs/policy.md repeats them. */
#pragma once

#include <stdint.h>

#define POLICY_K UINT64_C(1024)
#define POLICY_M (1024 * POLICY_K)
#define POLICY_G (1024 * POLICY_M)
#define POLICY_SECOND_MS UINT64_C(1000)
#define POLICY_HOUR_MS (3600 * POLICY_SECOND_MS)
#define POLICY_DAY_MS (24 * POLICY_HOUR_MS)

#define POLICY_MEMORY_MIN (16 * POLICY_M)
#define POLICY_MEMORY_MAX (1024 * POLICY_G)
#define POLICY_MEMORY_DEFAULT (512 * POLICY_M)

#define POLICY_CPU_MILLI_MIN 10
#define POLICY_CPU_MILLI_MAX 1024000
#define POLICY_CPU_MILLI_DEFAULT 1000

#define POLICY_PIDS_MIN 4
#define POLICY_PIDS_MAX 1000000
#define POLICY_PIDS_DEFAULT 256

#define POLICY_DISK_MIN POLICY_M
#define POLICY_DISK_MAX (1024 * POLICY_G)
#define POLICY_DISK_DEFAULT POLICY_G

#define POLICY_TIME_MS_MIN UINT64_C(10)
#define POLICY_TIME_MS_MAX (30 * POLICY_DAY_MS)
#define POLICY_TIME_MS_DEFAULT POLICY_HOUR_MS

#define POLICY_OUTPUT_MIN (4 * POLICY_K)
#define POLICY_OUTPUT_MAX (1024 * POLICY_G)
#define POLICY_OUTPUT_DEFAULT (64 * POLICY_M)

#define POLICY_FILES_MIN 16
#define POLICY_FILES_MAX 1048576
#define POLICY_FILES_DEFAULT 1024

/* 0 is allowed as well: no limit. */
#define POLICY_IO_MIN POLICY_M
#define POLICY_IO_MAX (1024 * POLICY_G)
#define POLICY_IO_DEFAULT (256 * POLICY_M)

/* network.budget */
#define POLICY_CONNECTIONS_MAX 65536
#define POLICY_CONNECTIONS_DEFAULT 256

#define POLICY_RATE_MAX 100000
#define POLICY_RATE_DEFAULT 100

#define POLICY_BYTES_OUT_MIN POLICY_K
#define POLICY_BYTES_OUT_MAX (1024 * POLICY_G)
#define POLICY_BYTES_OUT_DEFAULT POLICY_G

#define POLICY_NAMES_MAX 131070 /* what fits 198.18.0.0/15, where the answers are */
#define POLICY_NAMES_DEFAULT 1000

/* Rules, ports, methods and paths of one policy together: two policies must fit an egress document (JSON_NODES). */
#define POLICY_NET_PARTS 4096

struct err;
struct policy_limits;

/* As policy_set_limit(), for a caller that names the field itself: the message is only the problem. */
int policy_limits_set(struct policy_limits *l, const char *name, const char *text, struct err *err);
/* Every limit within its range, however it got there. The message is "limits.NAME: problem". */
int policy_limits_check(const struct policy_limits *l, struct err *err);
