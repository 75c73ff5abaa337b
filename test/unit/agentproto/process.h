/* process.h - starting the real agent without namespaces, and ending whatever came of it. */
#pragma once

#include <stddef.h>

enum {
        PROCESS_MS = 5000,                                /* how long a test waits before it fails */
        PROCESS_CAPS = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8, /* KILL SETGID SETUID SETPCAP */
        PROCESS_NOT_ROOT = 99,                            /* exit status: it cannot become root anywhere */
};

/* The agent's file, before anything else. */
void process_use(const char *agent);
/* In a child: becomes the agent with these three descriptors; landlock < 0: something that is no rule set. */
_Noreturn void process_exec(int control, int gate, int landlock);
/* Ends what is left of the agent's commands, and what they left in turn. */
void process_end_orphans(void);
void process_send(int fd, const void *p, size_t n);
/* Fails the test if nothing can be read there in time. */
void process_await(int fd, const char *what);
