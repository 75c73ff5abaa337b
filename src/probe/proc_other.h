/* proc_other.h - the attempts on /proc that look at other processes and at views of the host; rows are in proc.c. */
#pragma once

#include "probe/probe.h"

/* A file of pid 1 that only a tracer may read: opening it is the finding. */
void proc_init_open(struct probe_result *r, const char *path, int flags);
void proc_init_environ(struct probe_result *r);
void proc_init_dir(struct probe_result *r, const char *path, const char *own);
void proc_init_fd_list(struct probe_result *r);
void proc_init_fd_open(struct probe_result *r);
void proc_init_ns(struct probe_result *r, const char *name);

void proc_canary_seen(struct probe_result *r, int pid);
void proc_canary_signal(struct probe_result *r, int pid);
void proc_canary_pidfd(struct probe_result *r, int pid);
void proc_kernel_threads(struct probe_result *r);
void proc_foreign_cmdline(struct probe_result *r);

void proc_mount_roots(struct probe_result *r);
void proc_mount_sources(struct probe_result *r);
/* A table of /proc/net: has it more lines than its header? */
void proc_net_lines(struct probe_result *r, const char *path, int n_header);
void proc_net_sockets(struct probe_result *r, const char *path, int port);
void proc_net_unix(struct probe_result *r, const char *abstract);

void proc_oom_open(struct probe_result *r);
void proc_oom_inherited(struct probe_result *r);
void proc_mount_old(struct probe_result *r, const char *type);
void proc_mount_new(struct probe_result *r, const char *type);
void proc_is_fs(struct probe_result *r, const char *path, long magic);
void proc_null_is_null(struct probe_result *r);
