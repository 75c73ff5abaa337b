/*
 * probe.h - gabion-probe: single, harmless attempts to get out of a sandbox, or further into it.
 *
 * Each attempt runs in a process of its own with a deadline. It tries one thing, undoes it at once if it worked, and
 * says what the kernel answered. Safe by rule: no byte is ever written to a control file (opening it for writing is
 * proof enough), no pid -1, dangerous calls get arguments that fail in argument checking, loads are bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum probe_severity { PROBE_CRIT, PROBE_HIGH, PROBE_MED, PROBE_LOW, PROBE_CONTROL };

/* CONTROL attempts are things that ordinary programs need: there a refusal is the finding. */
enum probe_verdict {
        PROBE_STOPPED,  /* the attempt failed, as it should */
        PROBE_REACHED,  /* it worked: a finding of this attempt's severity */
        PROBE_ABSENT,   /* there was nothing to attack here (no such file, no such call on this machine) */
        PROBE_ACCEPTED, /* it worked and is accepted on purpose; the note says why */
};

struct probe_result {
        enum probe_verdict verdict;
        int err_no;     /* what the kernel answered; 0 = success or not a call */
        char note[120]; /* a few words: what was seen; no control characters, no tabs */
};

/* What the host planted outside, so that an attempt can show that it got there. "" or 0 when not given. */
struct probe_canaries {
        char file[256];        /* absolute path of a host file */
        char text[64];         /* what it contains; never to be seen inside */
        char abstract[64];     /* name of an abstract unix stream socket that listens on the host, without the NUL */
        char path_socket[108]; /* path of a unix stream socket that listens on the host */
        int port;              /* TCP port on the host's 127.0.0.1 and ::1 */
        int pid;               /* a host process, by its host pid */
        char hostname[65], machine_id[40], boot_id[40];
};

struct probe_attempt {
        const char *id; /* "A01", "C12b": group letter, number, optional letter */
        enum probe_severity severity;
        const char *what;      /* one line: what is tried */
        const char *technique; /* CVE or technique, "" if none */
        void (*fn)(const struct probe_canaries *c, struct probe_result *r);
};

/* One table per group file; ends with id = NULL. */
extern const struct probe_attempt probe_caps[], probe_namespaces[], probe_calls[], probe_sockets[], probe_proc[],
        probe_devices[], probe_files[], probe_network[], probe_limits[], probe_info[];

/* Ways to say it. stopped_by: r < 0 is a negative errno. */
void probe_stopped(struct probe_result *r, int err_no, const char *note);
void probe_reached(struct probe_result *r, const char *note);
void probe_absent(struct probe_result *r, const char *note);
/* The usual case: a call returned ret (value or negative errno). Success is a finding; ENOENT on a path is "absent". */
void probe_judge(struct probe_result *r, long ret, const char *note);

/* The whole program as bytes, for the host (base/embed.S; Meson: probe_image_dep). */
extern const uint8_t gabion_probe_image[];
extern const size_t gabion_probe_image_size;
