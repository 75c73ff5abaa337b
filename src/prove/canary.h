/* canary.h - things planted outside that nobody inside should find. Private to prove/. */
#pragma once

#include <sys/types.h>

#include "prove/prove.h"

struct canary {
        char dir[32], file[48], socket[48];           /* a private directory below /tmp, and what is in it */
        char probe_dir[32], probe[48], statement[48]; /* another one: the probe may see where it came from */
        char text[ID_TEXT];                           /* the flag; nothing that goes inside has it */
        char name[ID_TEXT + 8];                       /* of this attack: the abstract socket, a container */
        int listeners[4];                             /* abstract, path, IPv4, IPv6; -1 = none */
        int port;
        pid_t pid;          /* a process that does nothing */
        const char *groups; /* which attempts: letters, or NULL for all */
};

int canary_plant(struct canary *c, struct err *err);
/* Looks at each: was the file changed, was anybody at a socket, is the process alive? */
void canary_check(const struct canary *c, struct prove_report *r);
void canary_remove(struct canary *c);

/* One line of the report. note: what is wrong, or NULL. */
void check_add(struct prove_report *r, const char *what, bool ok, const char *note);
