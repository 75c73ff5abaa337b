/* warden_ask.c - the requests of gabiond, as messages. */
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/wr.h"
#include "daemon/warden.h"
#include "ipc/ipc.h"

enum { TEXTS = 3 };

struct blob {
        const char *p;
        size_t n;
};

/* With texts as sealed memory beside it. One that cannot be made: the request fails like any other. */
static void send_texts(struct warden *w, enum wp_type type, struct wr *body, const struct blob texts[TEXTS], size_t n,
                       warden_fn fn, void *arg) {
        struct err err = { 0 };
        int fds[TEXTS];
        size_t made = 0;

        for (; made < n; made++) {
                fds[made] = ipc_blob_make(texts[made].p, texts[made].n, &err);
                if (fds[made] < 0) {
                        body->bad = true;
                        break;
                }
        }
        warden_send(w, type, body, fds, made, fn, arg);
}

void warden_create(struct warden *w, const struct warden_order *o, warden_fn fn, void *arg) {
        uint8_t bytes[IPC_MAX - IPC_HEAD];
        struct wr body = wr_to(bytes, sizeof(bytes));
        const struct blob texts[TEXTS] = { { o->policy, strlen(o->policy) },
                                           { o->env ? o->env : "", o->n_env },
                                           { o->ceiling, o->ceiling ? strlen(o->ceiling) : 0 } };

        if (o->ceiling)
                wp_put_create_net(&body, &o->create, o->bind);
        else
                wp_put_create(&body, &o->create);
        send_texts(w, o->ceiling ? WP_CREATE_NET : WP_CREATE, &body, texts, o->ceiling ? 3 : 2, fn, arg);
}

void warden_ask(struct warden *w, enum wp_type type, const char *id, warden_fn fn, void *arg) {
        uint8_t bytes[64];
        struct wr body = wr_to(bytes, sizeof(bytes));

        wp_put_id(&body, id);
        warden_send(w, type, &body, NULL, 0, fn, arg);
}

void warden_list(struct warden *w, uint32_t from_slot, warden_fn fn, void *arg) {
        uint8_t bytes[8];
        struct wr body = wr_to(bytes, sizeof(bytes));

        wr_u32(&body, from_slot);
        warden_send(w, WP_LIST, &body, NULL, 0, fn, arg);
}

void warden_launch(struct warden *w, const char *id, uint32_t uid, warden_fn fn, void *arg) {
        uint8_t bytes[64];
        struct wr body = wr_to(bytes, sizeof(bytes));

        wp_put_launch(&body, id, uid);
        warden_send(w, WP_LAUNCH, &body, NULL, 0, fn, arg);
}

void warden_pool(struct warden *w, uint32_t n, const char *policy, const char *ceiling, warden_fn fn, void *arg) {
        uint8_t bytes[8];
        struct wr body = wr_to(bytes, sizeof(bytes));
        const struct blob texts[TEXTS] = { { policy, strlen(policy) }, { ceiling, ceiling ? strlen(ceiling) : 0 } };

        wr_u32(&body, n);
        send_texts(w, ceiling ? WP_POOL_NET : WP_POOL, &body, texts, ceiling ? 2 : 1, fn, arg);
}

void warden_network(struct warden *w, const struct wp_network *n, const char *policy, const char *ceiling, warden_fn fn,
                    void *arg) {
        uint8_t bytes[64];
        struct wr body = wr_to(bytes, sizeof(bytes));
        const struct blob texts[TEXTS] = { { policy, strlen(policy) }, { ceiling, strlen(ceiling) } };

        wp_put_network(&body, n);
        send_texts(w, WP_NETWORK, &body, texts, 2, fn, arg);
}

void warden_records(struct warden *w, warden_fn fn, void *arg) {
        const struct wr none = wr_to(NULL, 0);

        warden_send(w, WP_RECORDS, &none, NULL, 0, fn, arg);
}
