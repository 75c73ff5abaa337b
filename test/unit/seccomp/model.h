/*
 * model.h - a second reading of the table files, sharing no code with the generator: what each profile must answer,
 * computed from the text by looking for the first line that holds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim.h"

enum { MODEL_ALLOW = 0x7fff0000, MODEL_NOTIFY = 0x7fc00000, MODEL_ERRNO = 0x00050000, MODEL_NR = 600 };
#define MODEL_KILL 0x80000000u

struct model;

/* Aborts when the files do not make sense; the generator's own test covers bad tables. */
struct model *model_new(const char *dir, const char *arch);
struct model *model_free(struct model *m);
/* The architecture's audit number. */
uint32_t model_arch(const struct model *m);
/* The value for `RET`; for notified calls *ret_errno is what the listener's holder must answer. */
uint32_t model_answer(const struct model *m, unsigned profile, const struct sim_data *d, int *ret_errno);
/* True if the profile looks at this call's arguments. */
bool model_has_rule(const struct model *m, unsigned profile, int nr);
/* The number of a call on this architecture, or -1. */
int model_nr(const struct model *m, const char *name);
/* All values of values.txt; false past the end. */
bool model_value(const struct model *m, size_t i, const char **ret_name, uint32_t *ret);
