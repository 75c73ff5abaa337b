/* files_host.c - see files_host.h. */
#include "files_host.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/wr.h"

struct shim *shim;
struct conn *conn;
char dir[64];

const char *in_dir(const char *name) {
        static char paths[4][4200];
        static unsigned next;
        char *p = paths[next++ % ARRAY_SIZE(paths)];

        (void) snprintf(p, sizeof(paths[0]), "%s/%s", dir, name);
        return p;
}

int files_set_up(void **state) {
        int r = shim_set_up(state);

        shim = *state;
        conn = conn_open(shim);
        conn_u32(conn, AP_FILES, 1, 0);
        (void) snprintf(dir, sizeof(dir), "%s/files", shim->dir);
        assert_int_equal(mkdir(dir, 0755), 0);
        return r;
}

int files_tear_down(void **state) {
        char text[128];

        conn_close(conn);
        (void) snprintf(text, sizeof(text), "rm -rf %s", dir);
        assert_int_equal(system(text), 0);
        return shim_tear_down(state);
}

void ask(enum ap_type type, const struct fp_request *q) {
        static uint8_t b[16384];
        struct wr w = wr_to(b, sizeof(b));

        fp_put_request(&w, type, 5, q);
        assert_false(w.bad);
        conn_send(conn, b, w.len);
}

void ask_path(enum ap_type type, const char *name) {
        ask(type, &(struct fp_request){ .path = in_dir(name), .flags = FP_WITH_XATTRS });
}

struct fp_entry entry(void) {
        struct fp_entry e;

        conn_expect(conn, AP_ENTRY);
        assert_int_equal(conn->head.id, 5);
        assert_int_equal(fp_get_entry(conn->body, conn->n, &e), 0);
        return e;
}

void is_error(int want, const char *want_step) {
        char step[32];

        assert_int_equal(conn_error(conn, step), want);
        assert_string_equal(step, want_step);
}

void make_file(const char *name, const char *text) {
        AUTO_FD int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}
