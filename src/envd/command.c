/*
 * command.c - one command of a sandbox: its followers, its input, its end. See command.h.
 *
 * Invariant: the agent sends no more output than was granted, and gets no more input than it granted. While an attach
 * is under way nothing is written to the command, because the agent counts anew from it.
 */
#include "envd/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "base/wr.h"
#include "envd/rpc.h"
#include "json/json.h"

enum { IN_CREDIT_MAX = 1 << 20, SIGNAL_KILL = 9 };

static int bad(struct err *err, const char *why) {
        return err_set(err, -EPROTO, ERR_PEER, "%s", why);
}

int command_new(struct control *k, struct command **ret) {
        struct command *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        c->control = k;
        TAILQ_INIT(&c->clients);
        TAILQ_INIT(&c->inputs);
        TAILQ_INSERT_TAIL(&k->commands, c, link);
        *ret = c;
        return 0;
}

void command_free(struct command *c) {
        TAILQ_REMOVE(&c->control->commands, c, link);
        (void) json_free(c->config);
        if (c->deadline)
                event_free(c->deadline);
        free(c);
}

struct command *command_by_number(struct control *k, uint32_t number) {
        struct command *c;

        TAILQ_FOREACH(c, &k->commands, link)
        if (number != 0 && c->number == number)
                return c;
        return NULL;
}

static bool is_meant(const struct message_who *who, uint32_t pid, const char *tag) {
        return who->pid ? who->pid == pid : str_eq(who->tag, tag);
}

struct command *command_find(struct control *k, const struct message_who *who) {
        struct command *c, *best = NULL;

        TAILQ_FOREACH(c, &k->commands, link)
        if (c->number && !c->exited && is_meant(who, c->pid, c->tag) && (!best || c->number > best->number))
                best = c;
        return best;
}

const struct listed *command_find_listed(const struct control *k, const struct message_who *who) {
        const struct listed *best = NULL;

        for (size_t i = 0; i < k->n_list; i++) {
                const struct listed *l = &k->list[i];
                bool ended = l->c.flags & AP_HAS_EXITED, best_ended = best && best->c.flags & AP_HAS_EXITED;

                if (is_meant(who, l->c.pid, l->c.tag) &&
                    (!best || (best_ended && !ended) || (best_ended == ended && l->c.number > best->c.number)))
                        best = l;
        }
        return best;
}

/* --- time: the client's own ended just before, and was told so --- */

static void on_deadline(int fd, short what, void *arg) {
        struct command *c = arg;
        struct wr w = agent_frame();

        (void) fd, (void) what;
        if (c->number && !c->exited) {
                ap_put_u32(&w, AP_SIGNAL, c->number, SIGNAL_KILL);
                (void) agent_send(c->control->agent, &w);
        }
}

bool command_start(struct command *c, const struct wr *w, uint32_t id, uint64_t timeout_ms) {
        struct timeval tv = { .tv_sec = (time_t) (timeout_ms / 1000),
                              .tv_usec = (suseconds_t) (timeout_ms % 1000) * 1000 };

        if (!agent_send(c->control->agent, w))
                return false;
        c->request = id;
        c->credit = ENVD_WINDOW;
        c->reading = true;
        if (timeout_ms > 0)
                c->deadline = evtimer_new(c->control->box->envd->config.base, on_deadline, c);
        if (c->deadline)
                (void) event_add(c->deadline, &tv);
        return true;
}

void command_go(struct command *c, bool go) {
        struct wr w = agent_frame();

        if (c->hold != COMMAND_HELD)
                return;
        c->hold = go ? COMMAND_FREE : COMMAND_DROPPED;
        c->began_ns = clock_mono_ns();
        ap_put_u32(&w, AP_GO, c->request, go);
        (void) agent_send(c->control->agent, &w);
}

/* --- followers --- */

static void attach(struct command *c, bool quiet, uint64_t from) {
        struct ap_attach a = { .by = AP_BY_NUMBER, .value = c->number, .from = from };
        struct wr w = agent_frame();

        a.flags = quiet ? AP_QUIET : 0;
        a.credit = quiet ? 0 : ENVD_WINDOW;
        c->request = commands_id(c->control);
        c->ask_quiet = quiet;
        c->ask_from = from;
        ap_put_attach(&w, c->request, &a);
        (void) agent_send(c->control->agent, &w);
}

/* Those that can follow from where we are. Returns the first of the others, who needs bytes that went by. */
static struct rpc *welcome(struct command *c) {
        struct rpc *q, *next, *behind = NULL;

        for (q = TAILQ_FIRST(&c->clients); q; q = next) {
                next = TAILQ_NEXT(q, process.link);
                if (q->process.live)
                        continue;
                if (q->process.from != AP_NOW && q->process.from > c->at + ENVD_WINDOW) { /* more than is under way */
                        process_leave(q);
                        process_refused(q, -ERANGE, "from");
                } else if (q->process.from == AP_NOW || q->process.from >= c->at)
                        process_live(q, q->process.from == AP_NOW ? c->at : q->process.from);
                else if (!behind)
                        behind = q;
        }
        return behind;
}

/* Somebody who wants only what is new comes first: where that begins is known at this moment only. */
static uint64_t first_wish(const struct command *c) {
        uint64_t from = 0;
        struct rpc *q;

        TAILQ_FOREACH(q, &c->clients, process.link) {
                if (q->process.live || q->process.from == AP_NOW)
                        return AP_NOW;
                from = q->process.from;
        }
        return from;
}

void command_settle(struct command *c) {
        struct rpc *behind = NULL;

        if (c->request) /* its answer brings us here again */
                return;
        if (c->attached && c->reading)
                behind = welcome(c);
        if (behind)
                attach(c, false, behind->process.from);
        else if (c->exited && !c->attached && TAILQ_EMPTY(&c->clients))
                command_free(c);
        else if (TAILQ_EMPTY(&c->clients) ? !c->attached || c->reading : !c->attached || !c->reading)
                attach(c, TAILQ_EMPTY(&c->clients), TAILQ_EMPTY(&c->clients) ? AP_NOW : first_wish(c));
        else
                command_pump(c);
}

void command_grant(struct command *c) {
        struct wr w = agent_frame();
        struct rpc *q;

        if (c->request || !c->attached || !c->reading || c->exited || c->credit > ENVD_WINDOW / 2)
                return;
        TAILQ_FOREACH(q, &c->clients, process.link)
        if (rpc_is_full(q))
                return;
        ap_put_u32(&w, AP_CREDIT, c->number, (uint32_t) (ENVD_WINDOW - c->credit));
        c->credit = ENVD_WINDOW;
        (void) agent_send(c->control->agent, &w);
}

/* --- input --- */

void command_pump(struct command *c) {
        struct rpc *q;

        while (c->attached && !c->request && (q = TAILQ_FIRST(&c->inputs))) {
                size_t n = evbuffer_get_length(q->process.data);

                if (!c->has_stdin) { /* somebody before closed it */
                        process_leave(q);
                        process_refused(q, -EPIPE, "input");
                        continue;
                }
                if (n > 0 && c->in_credit == 0)
                        return;
                if (n > 0) {
                        n = n < AP_CHUNK ? n : AP_CHUNK;
                        n = n < c->in_credit ? n : c->in_credit;
                        agent_send_bytes(c->control->agent, AP_STDIN, c->number, q->process.data, n);
                        c->in_credit -= (uint32_t) n;
                        continue;
                }
                if (q->process.eof) {
                        struct wr w = agent_frame();

                        ap_put_empty(&w, AP_STDIN_EOF, c->number);
                        (void) agent_send(c->control->agent, &w);
                        c->has_stdin = false;
                }
                process_leave(q);
                q->process.command = NULL;
                process_written(q);
        }
}

/* --- what the agent says --- */

static void refuse_all(struct rpc_list *list, int r, const char *step) {
        for (struct rpc *q; (q = TAILQ_FIRST(list));) {
                process_leave(q);
                process_refused(q, r, step);
        }
}

static int on_refused(struct command *c, const void *body, size_t n, struct err *err) {
        bool started = c->number != 0;
        struct rpc *q, *next;
        uint32_t err_no;
        char step[32];

        if (ap_get_error(body, n, &err_no, step, sizeof(step)) < 0 || err_no == 0 || err_no > 4095)
                return bad(err, "malformed error");
        c->request = 0;
        if (started && err_no == ERANGE) { /* only who asked for a byte that is not there yet */
                for (q = TAILQ_FIRST(&c->clients); q; q = next) {
                        next = TAILQ_NEXT(q, process.link);
                        if (!q->process.live && q->process.from == c->ask_from) {
                                process_leave(q);
                                process_refused(q, -ERANGE, step);
                        }
                }
                command_settle(c);
                return 0;
        }
        /* Everything of it goes before anybody is told: one of them may start the same anew. */
        c->exited = true;
        c->attached = false;
        refuse_all(&c->clients, -(int) err_no, step);
        refuse_all(&c->inputs, -(int) err_no, step);
        command_free(c);
        return 0;
}

int command_answer(struct command *c, const struct ap_head *head, const void *body, size_t n, struct err *err) {
        struct ap_running run;

        if (head->type == AP_ERROR)
                return on_refused(c, body, n, err);
        if (ap_get_running(body, n, &run) < 0 || run.number == 0 || run.pid == 0 || run.pid > INT32_MAX)
                return bad(err, "malformed answer");
        if (c->hold != COMMAND_FREE)
                return bad(err, "a command that was held");
        if (c->number == 0) {
                if (command_by_number(c->control, run.number) || run.at != 0)
                        return bad(err, "a number given twice");
                c->number = run.number;
                c->pid = run.pid;
                process_announce(c->control->box, c);
        } else if (run.number != c->number || (c->ask_from != AP_NOW && run.at != c->ask_from)) {
                return bad(err, "an answer about another command");
        } else {
                c->reading = !c->ask_quiet;
                c->credit = c->ask_quiet ? 0 : ENVD_WINDOW;
        }
        c->request = 0;
        c->attached = true;
        c->at = run.at;
        c->in_credit = 0;
        command_settle(c);
        return 0;
}

static int on_output(struct command *c, const void *body, size_t n, struct err *err) {
        static char message[MESSAGE_OUTPUT];
        struct rpc *q, *next;
        const void *bytes;
        unsigned stream;
        size_t len = 0, from = 0, n_bytes;

        if (ap_get_output(body, n, &stream, &bytes, &n_bytes) < 0 || n_bytes > c->credit || !c->reading)
                return bad(err, "output that was not granted");
        c->credit -= n_bytes;
        for (q = TAILQ_FIRST(&c->clients); q; q = next) {
                uint64_t skip = q->process.next > c->at ? q->process.next - c->at : 0;

                next = TAILQ_NEXT(q, process.link);
                if (!q->process.live || skip >= n_bytes)
                        continue;
                if (len == 0 || from != skip) {
                        from = (size_t) skip;
                        len = message_output(message,
                                             c->tty        ? MESSAGE_PTY
                                             : stream == 2 ? MESSAGE_STDERR
                                                           : MESSAGE_STDOUT,
                                             (const char *) bytes + from, n_bytes - from);
                }
                q->process.next = c->at + n_bytes;
                process_output(q, message, len);
        }
        c->at += n_bytes;
        command_grant(c);
        return 0;
}

static int on_gap(struct command *c, const void *body, size_t n, struct err *err) {
        struct rpc *q, *next;
        uint64_t lost;

        if (ap_get_gap(body, n, &lost) < 0 || lost == 0 || lost > UINT64_MAX / 2 - c->at)
                return bad(err, "malformed gap");
        c->at += lost;
        for (q = TAILQ_FIRST(&c->clients); q; q = next) {
                next = TAILQ_NEXT(q, process.link);
                if (!q->process.live || q->process.next >= c->at)
                        continue;
                lost = c->at - q->process.next;
                q->process.next = c->at;
                process_gap(q, lost);
        }
        return 0;
}

static int on_exited(struct command *c, const void *body, size_t n, struct err *err) {
        struct rpc *q, *next;
        struct ap_exit e;
        bool first;

        if (ap_get_exit(body, n, &e) < 0)
                return bad(err, "malformed end");
        first = !c->exited;
        c->exited = true;
        c->attached = false;
        if (c->deadline)
                (void) event_del(c->deadline);
        for (q = TAILQ_FIRST(&c->clients); q; q = next) {
                next = TAILQ_NEXT(q, process.link);
                if (!q->process.live)
                        continue;
                process_leave(q);
                process_ended(q, &e, c->exec_errno);
        }
        if (first) /* after the clients, who wait */
                process_gone(c->control->box, c, &e);
        refuse_all(&c->inputs, -ESRCH, "input");
        command_settle(c);
        return 0;
}

int command_frame(struct command *c, const struct ap_head *head, const void *body, size_t n, struct err *err) {
        uint32_t v = 0;

        switch ((int) head->type) {
        case AP_OUTPUT:
                return on_output(c, body, n, err);
        case AP_GAP:
                return on_gap(c, body, n, err);
        case AP_EXITED:
                return on_exited(c, body, n, err);
        case AP_STDIN_CREDIT:
                if (ap_get_u32(body, n, &v) < 0 || v > IN_CREDIT_MAX - c->in_credit)
                        return bad(err, "too much credit");
                c->in_credit += v;
                command_pump(c);
                return 0;
        case AP_EXEC_FAILED:
                return ap_get_u32(body, n, &c->exec_errno) < 0 ? bad(err, "malformed failure") : 0;
        case AP_DETACHED:
                if (n != 0)
                        return bad(err, "malformed detachment");
                c->attached = false;
                c->exited = true; /* for us */
                refuse_all(&c->clients, -ECONNRESET, "taken over");
                refuse_all(&c->inputs, -ECONNRESET, "taken over");
                if (c->request == 0)
                        command_free(c);
                return 0;
        default:
                return bad(err, "a frame that no agent sends");
        }
}
