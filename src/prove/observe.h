/* observe.h - the attacking processes, seen from the host. Private to prove/. */
#pragma once

#include "prove/prove.h"

/* Reads the posture of the process that runs the probe; name: of this attack, which is among its arguments. */
void observe_posture(const char *name, struct prove_posture *ret);
/* Namespaces from the statement of our own supervisor, which may see what an ordinary user may not. */
void observe_statement(const struct json *statement, struct prove_posture *p);

/* Host ids that belong to the sandbox alone: base and size of its map; false if they are also somebody else's. */
bool observe_range(const struct prove_posture *p, uint64_t *ret_base, uint64_t *ret_size);

/* Ends every process that has the name among its arguments: what another sandbox left behind of itself. */
void observe_kill(const char *name);
/* Waits a little until nothing is left of the attack: by its name, and by the ids that only it has (p: or NULL).
 * Returns how many processes are. */
size_t observe_left(const char *name, const struct prove_posture *p);
