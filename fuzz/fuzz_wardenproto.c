/* fuzz_wardenproto.c - what the warden reads from its clients, and they from it. The first byte chooses the message. */
#include <stdlib.h>
#include <string.h>

#include "base/rd.h"
#include "base/wr.h"
#include "wardenproto/wardenproto.h"

static uint8_t again[8192];

/* What was accepted must be the one way to say it. */
static void same(const struct wr *w, const uint8_t *data, size_t n) {
        if (w->bad || w->len != n || (n > 0 && memcmp(w->p, data, n) != 0))
                abort();
}

static void requests(uint8_t which, const uint8_t *data, size_t n) {
        struct rd r = rd_from(data, n);
        struct wr w = wr_to(again, sizeof(again));
        struct wp_create c;
        char id[ID_TEXT], bind[WP_ADDRESS];
        struct wp_network net;
        uint32_t v;

        if (which == WP_CREATE && wp_get_create(&r, &c) == 0)
                wp_put_create(&w, &c), same(&w, data, n);
        else if (which == WP_KILL && wp_get_id(&r, id) == 0)
                wp_put_id(&w, id), same(&w, data, n);
        else if (which == WP_LIST && wp_get_u32(&r, &v) == 0)
                wr_u32(&w, v), same(&w, data, n);
        else if (which == WP_LAUNCH && wp_get_launch(&r, id, &v) == 0)
                wp_put_launch(&w, id, v), same(&w, data, n);
        else if (which == WP_CREATE_NET && wp_get_create_net(&r, &c, bind) == 0)
                wp_put_create_net(&w, &c, bind), same(&w, data, n);
        else if (which == WP_NETWORK && wp_get_network(&r, &net) == 0)
                wp_put_network(&w, &net), same(&w, data, n);
}

static void records(const uint8_t *data, size_t n) {
        static struct wp_records records;
        struct rd r = rd_from(data, n);
        struct wr w = wr_to(again, sizeof(again));

        if (wp_get_records(&r, &records) < 0)
                return;
        wp_put_lost(&w, records.lost);
        for (uint32_t i = 0; i < records.n; i++)
                if (!wp_put_record(&w, records.at[i].id, records.at[i].json))
                        abort();
        same(&w, data, n);
}

static void answers(uint8_t which, const uint8_t *data, size_t n) {
        static struct wp_list l;
        struct rd r = rd_from(data, n);
        struct wr w = wr_to(again, sizeof(again));
        struct wp_created c;
        struct wp_usage u;
        struct wp_end e;
        struct wp_event v;
        struct wp_status s;
        struct wp_check k;

        if (which == 1 && wp_get_created(&r, &c) == 0)
                wp_put_created(&w, &c), same(&w, data, n);
        else if (which == 2 && wp_get_end(&r, &e) == 0)
                wp_put_end(&w, &e), same(&w, data, n);
        else if (which == 3 && wp_get_usage(&r, &u) == 0)
                wp_put_usage(&w, &u), same(&w, data, n);
        else if (which == 4 && wp_get_list(&r, &l) == 0)
                wp_put_list(&w, &l), same(&w, data, n);
        else if (which == 5 && wp_get_event(&r, &v) == 0)
                wp_put_event(&w, &v), same(&w, data, n);
        else if (which == 6 && wp_get_status(&r, &s) == 0)
                wp_put_status(&w, &s), same(&w, data, n);
        else if (which == 8 && wp_get_check(&r, &k) == 0)
                wp_put_check(&w, &k), same(&w, data, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size < 1 || size > 8192)
                return 0;
        requests(data[0], data + 1, size - 1);
        if (data[0] == 0x87)
                records(data + 1, size - 1);
        if (data[0] >= 0x80)
                answers(data[0] & 0x7f, data + 1, size - 1);
        if (data[0] == 0x7f)
                (void) wp_env_each((const char *) data + 1, size - 1, NULL, NULL);
        return 0;
}
