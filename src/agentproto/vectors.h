/* vectors.h - several texts: arguments and environment of a program. Private to agentproto/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rd;
struct wr;

void put_texts(struct wr *w, const char *const *vec, size_t n);
/* Fills vec[n + 1]; the last is NULL. */
void get_texts(struct rd *r, const char **vec, size_t n);

/* u16 argc, u16 envc, argc texts, envc texts. */
void put_vectors(struct wr *w, const char *const *argv, uint16_t argc, const char *const *envp, uint16_t envc);
/* The arguments into vec, the environment behind their NULL. False: no arguments, too many, or more than cap. */
bool get_vectors(struct rd *r, const char **vec, size_t cap, uint16_t *ret_argc, uint16_t *ret_envc);
/* An absolute path that the kernel would take. */
bool is_directory(const char *s);
