/*
 * gabion.h - run a command in a sandbox from your own program: no daemon, no other process of ours installed.
 *
 *     struct gabion_result res;
 *     char why[GABION_ERROR];
 *     const char *argv[] = { "/usr/bin/python3", "script.py", NULL };
 *
 *     if (gabion_run("{\"version\":1,\"limits\":{\"memory\":\"256M\"}}", argv, &res, why) < 0)
 *             fprintf(stderr, "not run: %s\n", why);
 *
 * A policy with a network needs gabion-egress installed (make install); no egress log is kept.
 *
 * Standard input, output and error are the caller's. Call it from a process with one thread, one call at a time: as an
 * ordinary user it moves the process into a user namespace. Link with `pkg-config --static --libs gabion`.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

enum { GABION_ERROR = 320 };

struct gabion_result {
        char sandbox[24]; /* id */
        char reason[24];  /* exited signalled timeout oom limit killed_by_user killed_by_policy lost */
        int exit_code;    /* the command's; 124, 126, 127, 128+n as `gabion run` */
        int signal;       /* 0 = none */
        double duration_ms, cpu_ms;
        unsigned long long memory_peak_bytes;
        unsigned denials; /* how many; each was said on standard error */
};

/*
 * policy: a policy document as JSON (docs/policy.md), or NULL for the hardened default. argv: NULL-terminated, with an
 * absolute path or a name in /usr/bin. Returns 0 when the command ran (or was ended by a limit), and a negative errno
 * with a message in `why` (GABION_ERROR bytes) when nothing was started or the sandbox broke.
 */
int gabion_run(const char *policy, const char *const argv[], struct gabion_result *ret, char *why);

#ifdef __cplusplus
}
#endif
