/* tty.h - the caller's terminal while a command inside has one of its own: raw, so that every key goes inside. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* False: standard input is no terminal. */
bool tty_raw(void);
/* As it was; nothing if it is. */
void tty_restore(void);
/* Of the first of the standard descriptors that is a terminal, else 24 x 80. */
void tty_size(uint16_t *rows, uint16_t *columns);
