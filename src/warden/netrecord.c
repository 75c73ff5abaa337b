/*
 * netrecord.c - what egress tells of attempts, on its way to the daemon.
 *
 * The daemon asks, and is answered when there is something; so it is never told more than it can take. While it is
 * there but slow, egress is not read any further, and holds back the sandboxes that make the records. While it is away
 * sandboxes go on: the oldest records are forgotten, and their number is told.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/own.h"
#include "base/str.h"
#include "base/wr.h"
#include "network.h"

enum {
        RECORDS_FULL = 1024, /* egress waits */
        RECORDS_MAX = 4096,  /* what an answer of egress brings along may be more */
};

struct kept {
        TAILQ_ENTRY(kept) link;
        char id[ID_TEXT];
        char json[];
};

static TAILQ_HEAD(, kept) all = TAILQ_HEAD_INITIALIZER(all);
static size_t n_kept;
static uint32_t lost;
static struct asker reader; /* client 0: nobody waits */
static uint64_t last_reader;

static void forget_first(void) {
        struct kept *k = TAILQ_FIRST(&all);

        TAILQ_REMOVE(&all, k, link);
        n_kept--;
        free(k);
}

void record_keep(const char id[ID_TEXT], const char *json) {
        size_t n = strlen(json) + 1;
        struct kept *k = n <= WP_RECORD ? malloc(sizeof(*k) + n) : NULL;

        if (!k) {
                lost += lost < UINT32_MAX;
                return;
        }
        memcpy(k->id, id, sizeof(k->id));
        memcpy(k->json, json, n);
        TAILQ_INSERT_TAIL(&all, k, link);
        n_kept++;
        while (n_kept > (client_is_there(last_reader) ? RECORDS_MAX : RECORDS_FULL)) {
                forget_first();
                lost += lost < UINT32_MAX;
        }
}

bool record_full(void) {
        return n_kept >= RECORDS_FULL && client_is_there(last_reader);
}

void record_ask(struct asker asker) {
        reader = asker;
        last_reader = asker.client;
}

void record_pump(void) {
        uint8_t space[IPC_MAX - IPC_HEAD];
        struct wr w = wr_to(space, sizeof(space));
        struct asker to = reader;
        struct kept *k;
        size_t n = 0;

        if (to.client == 0 || (n_kept == 0 && lost == 0))
                return;
        reader = (struct asker){ 0 };
        wp_put_lost(&w, lost);
        TAILQ_FOREACH(k, &all, link) {
                if (n == WP_RECORDS_MAX || !wp_put_record(&w, k->id, k->json))
                        break;
                n++;
        }
        client_reply(to, &w, NULL);
        if (!client_is_there(to.client))
                return; /* the next one gets them */
        lost = 0;
        while (n-- > 0)
                forget_first();
}
