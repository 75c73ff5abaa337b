/* logs.c - see logs.h. */
#include "logs.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fd.h"

char logs_dir[64];
static uint8_t kept[SIGN_PUBLIC];
static bool has_kept;

int logs_set_up(void **state) {
        (void) state;
        has_kept = false;
        (void) snprintf(logs_dir, sizeof(logs_dir), "/tmp/gabion-ledger.XXXXXX");
        return mkdtemp(logs_dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
        (void) st;
        (void) type;
        (void) at;
        return remove(path);
}

int logs_tear_down(void **state) {
        (void) state;
        return nftw(logs_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct ledger *logs_open(uint64_t segment_bytes) {
        const struct ledger_settings s = {
                .dir = logs_dir, .node = "node1", .segment_bytes = segment_bytes, .readers = (gid_t) -1
        };
        struct ledger *l = NULL;
        struct err err = { 0 };

        if (ledger_open(&s, &l, &err) < 0)
                fail_msg("%s", err.msg);
        return l;
}

void logs_fill(struct ledger *l, const char *tenant, unsigned n, unsigned batch) {
        struct audit_event ev;
        struct err err = { 0 };
        uint64_t seq;

        for (unsigned i = 0; i < n; i++) {
                audit_event_init(&ev, i % 2 ? AUDIT_NET_CONTACT : AUDIT_EXEC_STARTED, tenant, "k3v9x2m4q8r7t1w5z6ab");
                audit_object(&ev, i % 2 ? "host.example" : "python3");
                audit_number(&ev, "index", i);
                if (ledger_append(l, &ev, &seq, &err) < 0 ||
                    ((i % batch == batch - 1 || i == n - 1) && ledger_commit(l, &err) < 0))
                        fail_msg("%s", err.msg);
        }
}

static void key_path(char dst[96]) {
        (void) snprintf(dst, 96, "%s/keys/signing.pub", logs_dir);
}

void logs_keep_key(void) {
        struct err err = { 0 };
        char path[96];

        key_path(path);
        assert_int_equal(sign_public_read(path, kept, &err), 0);
        has_kept = true;
}

struct ledger_verdict logs_verify(const char *tenant) {
        struct ledger_trust trust = { .n_keys = 1 };
        struct ledger_verdict v;
        struct err err = { 0 };
        char path[96];

        key_path(path);
        if (has_kept)
                memcpy(trust.keys[0], kept, SIGN_PUBLIC);
        else
                assert_int_equal(sign_public_read(path, trust.keys[0], &err), 0);
        if (ledger_verify(logs_dir, tenant, &trust, false, &v, &err) < 0)
                fail_msg("%s", err.msg);
        return v;
}

char *logs_read(const char *tenant, const char *name, size_t *ret_n) {
        enum { MOST = 4 << 20 };
        char path[128], *text = malloc(MOST);
        int n;

        (void) snprintf(path, sizeof(path), "%s/%s/%s", logs_dir, tenant, name);
        n = fd_read_at(AT_FDCWD, path, text, MOST);
        assert_true(n >= 0);
        *ret_n = (size_t) n;
        return text;
}

void logs_write(const char *tenant, const char *name, const char *p, size_t n) {
        char path[128];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/%s/%s", logs_dir, tenant, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0 && fd_write_all(fd, p, n) == 0);
        (void) close(fd);
}
