/* files_host.h - what tests of connections about files share: such a connection, and a directory to work in. */
#pragma once

#include "fileproto/fileproto.h"
#include "shim.h"

#define FILES_TEST(f) cmocka_unit_test_setup_teardown(f, files_set_up, files_tear_down)

/* Of the test that runs. */
extern struct shim *shim;
extern struct conn *conn;
extern char dir[64];

int files_set_up(void **state);
int files_tear_down(void **state);
/* A path below the directory; the last four stay valid. */
const char *in_dir(const char *name);
/* Sends a request with id 5. */
void ask(enum ap_type type, const struct fp_request *q);
void ask_path(enum ap_type type, const char *name);
/* The next frame must be an AP_ENTRY, or an AP_ERROR with that errno and step. */
struct fp_entry entry(void);
void is_error(int want, const char *want_step);
void make_file(const char *name, const char *text);
