/*
 * control.c - the connection about commands: whom a frame is for, and lists. See command.h.
 *
 * Invariant: every frame is about a request that was sent or a command that is attached; anything else cuts the
 * connection. Numbers and requests are different spaces: answers have the request's id, all else the command's number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/wr.h"
#include "envd/command.h"

static int bad(struct err *err, const char *why) {
        return err_set(err, -EPROTO, ERR_PEER, "%s", why);
}

uint32_t commands_id(struct control *k) {
        if (++k->last_id == 0)
                k->last_id = 1;
        return k->last_id;
}

static void lose(struct rpc_list *list) {
        for (struct rpc *q; (q = TAILQ_FIRST(list));) {
                process_leave(q);
                process_lost(q);
        }
}

/* --- lists: one at a time, for everybody who asked before it was sent --- */

static void ask(struct control *k) {
        struct wr w = agent_frame();

        if (k->listing || TAILQ_EMPTY(&k->wanted))
                return;
        k->list = calloc(AP_COMMANDS, sizeof(*k->list));
        if (!k->list) {
                lose(&k->wanted);
                return;
        }
        for (struct rpc *q; (q = TAILQ_FIRST(&k->wanted));) {
                process_leave(q);
                process_join(q, PROCESS_WAITS, &k->asked);
        }
        k->listing = true;
        k->n_list = 0;
        k->list_id = commands_id(k);
        ap_put_empty(&w, AP_LIST, k->list_id);
        (void) agent_send(k->agent, &w);
}

void commands_list(struct control *k, struct rpc *q) {
        process_join(q, PROCESS_WAITS, &k->wanted);
        ask(k);
}

static int on_command(struct control *k, const struct ap_head *head, const void *body, size_t n, struct err *err) {
        struct listed *l;

        if (!k->listing || head->id != k->list_id || k->n_list == AP_COMMANDS)
                return bad(err, "a list that was not asked for, or is too long");
        l = &k->list[k->n_list];
        if (ap_get_command(body, n, &l->c) < 0 || l->c.n_what > sizeof(l->bytes) || l->c.number == 0 || l->c.pid == 0)
                return bad(err, "malformed line of a list");
        memcpy(l->bytes, l->c.what, l->c.n_what);
        l->c.what = l->bytes;
        k->n_list++;
        return 0;
}

static int on_done(struct control *k, const struct ap_head *head, size_t n, struct err *err) {
        if (!k->listing || head->id != k->list_id || n != 0)
                return bad(err, "an end of nothing");
        k->listing = false;
        for (struct rpc *q; (q = TAILQ_FIRST(&k->asked));) {
                process_leave(q);
                process_listed(q, k);
        }
        free(TAKE_PTR(k->list));
        ask(k);
        return 0;
}

static int on_answer(struct control *k, const struct ap_head *head, const void *body, size_t n, struct err *err) {
        struct command *c;

        TAILQ_FOREACH(c, &k->commands, link)
        if (head->id != 0 && c->request == head->id)
                return command_answer(c, head, body, n, err);
        return bad(err, "an answer to nothing");
}

static int on_frame(void *data, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct control *k = data;
        struct command *c;

        switch ((int) head->type) {
        case AP_COMMAND:
                return on_command(k, head, body, n, err);
        case AP_DONE:
                return on_done(k, head, n, err);
        case AP_RUNNING:
        case AP_ERROR:
                return on_answer(k, head, body, n, err);
        default:
                c = command_by_number(k, head->id);
                return c && c->attached ? command_frame(c, head, body, n, err) : bad(err, "about no command of ours");
        }
}

static void on_down(void *data, const struct err *err) {
        struct control *k = data;
        struct envd_box *box = k->box;
        struct envd_event ev = { .kind = err->code == -EPROTO ? ENVD_AGENT : ENVD_LOST, .user = "", .text = err->msg };
        struct command *c;

        box->control = NULL; /* whoever comes now opens another */
        k->agent = NULL;
        (void) envd_box_tell(box, &ev);
        lose(&k->wanted);
        lose(&k->asked);
        TAILQ_FOREACH(c, &k->commands, link) {
                lose(&c->clients);
                lose(&c->inputs);
        }
        (void) commands_free(k);
}

const struct agent_ops commands_ops = { .frame_max = AP_FRAME_MAX, .on_frame = on_frame, .on_down = on_down };

int commands_get(struct envd_box *box, struct control **ret, struct err *err) {
        struct control *k = box->control;

        if (!k) {
                k = calloc(1, sizeof(*k));
                if (!k)
                        return err_set(err, -ENOMEM, ERR_INTERNAL, "control connection");
                k->box = box;
                TAILQ_INIT(&k->commands);
                TAILQ_INIT(&k->wanted);
                TAILQ_INIT(&k->asked);
                if (agent_open(box->envd, box->target->socket, &commands_ops, k, &k->agent, err) < 0) {
                        free(k);
                        return err->code;
                }
                box->control = k;
        }
        *ret = k;
        return 0;
}

struct control *commands_free(struct control *k) {
        if (!k)
                return NULL;
        for (struct command *c; (c = TAILQ_FIRST(&k->commands));)
                command_free(c);
        (void) agent_close(k->agent);
        free(k->list);
        free(k);
        return NULL;
}
