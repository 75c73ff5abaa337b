/*
 * job.c - child processes of the warden. Each does one thing, reports once and ends; a maker may make several sandboxes
 * for a pool, and reports each.
 *
 * A child holds nothing of its parent's but what it needs: with a copy of our lock or of a client's socket, somebody
 * would wait for the child who waits for us. It dies with its parent, and what it was about to make is then cleaned up
 * by its janitor, or by the next warden.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/sys.h"
#include "base/wr.h"
#include "state.h"

enum { JOB_FAILED = 1, ASK_MS = 20000 };

static void on_report(struct watch *w, uint32_t events) {
        struct job *j = OF_WATCH(w, struct job, report);
        struct ipc_msg m = { 0 };
        int r = ipc_recv(w->fd, &m);

        (void) events;
        if (r > 0 && j->ask && m.n > 0 && m.bytes[0] >= JOB_ASKS) {
                j->ask(j, &m);
                ipc_msg_done(&m);
                return;
        }
        do
                j->done(j, r > 0 ? &m : NULL);
        while (r <= 0 && j->order); /* whoever ended without a word has said nothing of the others either */
        ipc_msg_done(&m);
        if (j->order)
                return;
        loop_drop(&j->report);
        TAILQ_REMOVE(&warden.jobs, j, link);
        *(j->maker ? &warden.n_makers : &warden.n_jobs) -= 1;
        warden.n_pool_makers -= j->pool;
        free(j);
}

/* To fixed numbers; by way of high ones, so that none is overwritten before it was copied. */
static int keep_fds(int *const fds[], size_t n) {
        enum { HIGH = 64 };

        for (size_t i = 0; i < n; i++) {
                *fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, HIGH);
                if (*fds[i] < 0)
                        return -errno;
        }
        for (size_t i = 0; i < n; i++) {
                int to = WARDEN_FD_MORE + (int) i;

                if (dup3(*fds[i], to, O_CLOEXEC) < 0)
                        return -errno;
                *fds[i] = to;
        }
        return 0;
}

static _Noreturn void child(job_fn fn, const void *arg, pid_t parent, int report_fd, int *const fds[], size_t n) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(JOB_FAILED);
        if (dup3(report_fd, WARDEN_FD_REPORT, O_CLOEXEC) < 0 || dup3(warden.image_fd, WARDEN_FD_IMAGE, O_CLOEXEC) < 0 ||
            keep_fds(fds, n) < 0 || sys_close_range(WARDEN_FD_MORE + (unsigned) n, ~0u, 0) < 0)
                _exit(JOB_FAILED);
        fn(arg);
        _exit(JOB_FAILED);
}

struct job *job_start(job_fn fn, const void *arg, bool maker, struct err *err) {
        return job_start_with(fn, arg, maker, NULL, 0, err);
}

struct job *job_start_with(job_fn fn, const void *arg, bool maker, int *const fds[], size_t n, struct err *err) {
        pid_t self = getpid();
        struct job *j = calloc(1, sizeof(*j));
        int pair[2], high;
        pid_t pid;

        if (!j || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                free(j);
                (void) err_set(err, -ENOMEM, ERR_INTERNAL, "child process: out of memory");
                return NULL;
        }
        high = fcntl(pair[1], F_DUPFD_CLOEXEC, WARDEN_FD_IMAGE + 1); /* out of the way of the fixed numbers */
        pid = high < 0 ? -1 : fork();
        if (pid == 0)
                child(fn, arg, self, high, fds, n);
        own_closep(&high);
        (void) close(pair[1]);
        if (pid < 0 || loop_watch(&j->report, pair[0], on_report) < 0) {
                (void) err_set(err, -errno, ERR_INTERNAL, "child process: %s", strerror(errno));
                (void) close(pair[0]);
                free(j);
                return NULL;
        }
        j->pid = pid;
        j->maker = maker;
        TAILQ_INSERT_TAIL(&warden.jobs, j, link);
        *(maker ? &warden.n_makers : &warden.n_jobs) += 1;
        return j;
}

int job_report(const struct wr *body, const int *fds, size_t n_fds) {
        return body->bad ? -EMSGSIZE : ipc_send(WARDEN_FD_REPORT, body->p, body->len, fds, n_fds);
}

/* u8 ok; of a failure: u32 errno, u8 kind, str message. */
static void put_failure(struct wr *w, const struct err *failed) {
        wr_u8(w, 0);
        wr_u32(w, (uint32_t) -failed->code);
        wr_u8(w, (uint8_t) failed->kind);
        wr_str(w, failed->msg);
}

int job_ask(const struct wr *body, const int *fds, size_t n_fds, struct ipc_msg *answer, struct rd *ret_body,
            struct err *err) {
        int r = job_report(body, fds, n_fds);

        if (r == 0)
                r = sys_poll_in(WARDEN_FD_REPORT, ASK_MS);
        if (r <= 0)
                return err_set(err, r < 0 ? r : -ETIMEDOUT, ERR_INTERNAL, "the warden does not answer");
        return job_result(ipc_recv(WARDEN_FD_REPORT, answer) > 0 ? answer : NULL, ret_body, err);
}

void job_answer(struct job *j, const struct wr *body, const struct err *failed) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));

        if (failed)
                put_failure(&w, failed);
        else
                wr_bytes(&w, body->p, body->len);
        (void) ipc_send(j->report.fd, w.p, w.len, NULL, 0); /* one that is dead is told of by its report */
}

_Noreturn void job_failed(const struct err *failed) {
        uint8_t space[IPC_MAX];
        struct wr w = wr_to(space, sizeof(space));

        put_failure(&w, failed);
        _exit(job_report(&w, NULL, 0) < 0 ? JOB_FAILED : 0);
}

int job_result(const struct ipc_msg *m, struct rd *ret_body, struct err *err) {
        struct rd r = rd_from(m ? m->bytes : NULL, m ? m->n : 0);
        char text[sizeof(err->msg)];
        uint32_t code;
        uint8_t kind;

        if (!m)
                return err_set(err, -ECHILD, ERR_INTERNAL, "a child process ended without a word");
        if (rd_u8(&r) == 1) {
                *ret_body = r;
                return 0;
        }
        code = rd_u32(&r);
        kind = rd_u8(&r);
        rd_str(&r, text, sizeof(text));
        if (!rd_done(&r) || code < 1 || code > 4095 || kind > ERR_PEER)
                return err_set(err, -EBADMSG, ERR_INTERNAL, "a child process spoke nonsense");
        return err_set(err, -(int) code, (enum err_kind) kind, "%s", text);
}
