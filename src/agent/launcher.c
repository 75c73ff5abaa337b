/*
 * launcher.c - one process per user of a sandbox that starts all of that user's commands.
 *
 * Theory of operation. A launcher is made by the agent at the warden's word, puts every control on itself as a command
 * of `gabion run` does (child.c), and is read back at the gate. Then it waits for its agent. Each command it clones
 * inherits its ids, empty capability sets, no_new_privs, limits, filter and Landlock domain; none of them can be given
 * up, so nothing has to be applied or read again, and all commands of a user are in one domain, where they can signal
 * each other. CLONE_PARENT makes the agent their parent: it reaps them, and they do not notice when a launcher ends.
 *
 * A child tells its pid over the channel before exec, so before it can end, and why its exec failed: whoever has reaped
 * one and then drains the channel knows it. Draining before is not enough, as one may start and end in between. The
 * connections about files are served by children of the same kind (src/files).
 *
 * A start may be held before its exec until the host has made a record of it (AP_HOLD). Its child runs beside us, in
 * our memory, in a place that is its own until it execs or ends; one that waits in vain sees the end of its pipe.
 *
 * A command may kill its launcher: it is the same user. Starts then fail with ENOTCONN until the warden makes another.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "base/wr.h"
#include "files/files.h"
#include "state.h"

enum { SAY_MAX = 64, STDIO = 3, FDS_MAX = STDIO + 1, PLACES = 8, STACK = 4 * AGENT_PAGE };

/* --- the agent's side --- */

struct launcher *launcher_find(struct agent *a, uint32_t uid) {
        for (size_t i = 0; i < AGENT_LAUNCHERS; i++)
                if (a->launchers[i].pid > 0 && a->launchers[i].uid == uid)
                        return &a->launchers[i];
        return NULL;
}

int launcher_send(const struct launcher *u, const void *frame, size_t n, const int *fds, size_t n_fds) {
        struct iovec iov = { .iov_base = (void *) (uintptr_t) frame, .iov_len = n };
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        } control = { .bytes = { 0 } };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (n_fds > 0) {
                msg.msg_control = &control;
                msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                control.head.cmsg_level = SOL_SOCKET;
                control.head.cmsg_type = SCM_RIGHTS;
                control.head.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(&control.head), fds, n_fds * sizeof(int));
        }
        return sendmsg(u->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int launcher_fork(struct agent *a, struct launcher *u, const struct conn *l, uint32_t id,
                         const struct ap_spawn *spawn) {
        static const int room = AP_FRAME_MAX;
        struct child child = { .spawn = spawn, .id = id, .stdio = { -1, -1, -1 }, .gate_fd = l->fd, .agent = a };
        int pair[2], r;
        long pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        child.stdio[0] = pair[1];
        (void) setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)); /* the longest AP_START, if it can */
        r = agent_watch(a, pair[0], EPOLLIN, KEY_LAUNCHER, (uint32_t) (u - a->launchers));
        pid = r < 0 ? r : SYS5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0)
                child_run(&child);
        (void) close(pair[1]);
        if (pid < 0) {
                agent_unwatch(a, &pair[0]);
                return (int) pid;
        }
        *u = (struct launcher){
                .pid = (pid_t) pid, .uid = spawn->uid, .gid = spawn->gid, .fd = pair[0], .readable = true
        };
        return a->n_env > 0 ? launcher_send(u, a->env, a->n_env, NULL, 0) : 0;
}

void launcher_start(struct agent *a, struct conn *l, uint32_t id, const struct ap_spawn *spawn) {
        int r = -EBUSY;

        if (launcher_find(a, spawn->uid)) {
                r = -EEXIST;
        } else {
                for (size_t i = 0; i < AGENT_LAUNCHERS && r == -EBUSY; i++)
                        if (a->launchers[i].pid == 0)
                                r = launcher_fork(a, &a->launchers[i], l, id, spawn);
        }
        if (r < 0)
                conn_error(l, id, r, "launcher");
}

static void start_failed(struct command *c, uint32_t err_no, const char *step) {
        c->fail_errno = err_no;
        (void) str_copy(c->fail_step, sizeof(c->fail_step), step); /* all of ours fit */
}

/* One message about a command: who it is, or why it is none. */
static void on_message(struct agent *a, struct launcher *u, const uint8_t *frame, const struct ap_head *head) {
        const uint8_t *body = frame + AP_HEAD;
        size_t n = head->length - AP_HEAD;
        struct command *c = command_find(a, head->id);
        char step[16];
        uint32_t v;

        if (head->id == AGENT_WORKER) {
                u->pending--;
                for (size_t i = 0; head->type == AP_STARTED && ap_get_u32(body, n, &v) == 0 && i < AGENT_WORKERS; i++)
                        if (a->workers[i] == 0) {
                                a->workers[i] = (pid_t) v;
                                return;
                        }
                a->n_workers--; /* it could not be made */
                return;
        }
        if (!c || c->exited)
                return;
        if (head->type == AP_STARTED && ap_get_u32(body, n, &v) == 0) {
                c->pid = (pid_t) v;
                c->started = c->announce = c->hold_fd == 0;
        } else if (head->type == AP_EXEC_FAILED && ap_get_u32(body, n, &v) == 0) {
                c->exec_errno = v;
        } else if (head->type == AP_ERROR && ap_get_error(body, n, &v, step, sizeof(step)) == 0) {
                start_failed(c, v, step);
        }
}

/* What waits for a launcher that is gone will not come. */
static void on_gone(struct agent *a, struct launcher *u) {
        struct command *c;

        agent_unwatch(a, &u->fd);
        a->n_workers -= u->pending;
        EACH_COMMAND (a, c)
                if (c->pid == 0 && c->fail_errno == 0 && c->uid == u->uid)
                        start_failed(c, EPIPE, "launcher");
        u->pid = 0;
}

bool launcher_serve(struct agent *a, struct launcher *u) {
        uint8_t frame[SAY_MAX];
        struct ap_head head;
        ssize_t n;

        if (u->pid == 0 || !u->readable)
                return false;
        n = recv(u->fd, frame, sizeof(frame), MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
                u->readable = false;
                return false;
        }
        if (n < 0 && errno == ECONNRESET) /* it left requests unread; what it said before that is still to come */
                return true;
        if (n <= 0)
                on_gone(a, u);
        else if (ap_frame(frame, (size_t) n, &head) == 1)
                on_message(a, u, frame, &head);
        return true;
}

void launcher_listen(struct agent *a) {
        for (size_t i = 0; i < AGENT_LAUNCHERS; i++) {
                a->launchers[i].readable = true;
                while (launcher_serve(a, &a->launchers[i]))
                        ;
        }
}

void launcher_files(struct agent *a, struct conn *l, uint32_t id, uint32_t uid) {
        struct launcher *u = launcher_find(a, uid);
        uint8_t frame[SAY_MAX];
        struct wr w = wr_to(frame, sizeof(frame));
        int r = u ? 0 : -ENOTCONN;

        ap_put_u32(&w, AP_FILES, id, uid);
        if (r == 0)
                r = a->n_workers < AGENT_WORKERS ? launcher_send(u, frame, w.len, &l->fd, 1) : -EBUSY;
        if (r < 0) {
                conn_refuse(l->fd, id, r, r == -EBUSY ? "connections" : "launcher");
        } else {
                a->n_workers++;
                u->pending++;
        }
        l->dead = true; /* our copy */
}

void launcher_ended(struct agent *a, pid_t pid) {
        for (size_t i = 0; i < AGENT_WORKERS; i++)
                if (a->workers[i] == pid) {
                        a->workers[i] = 0;
                        a->n_workers--;
                }
        /* A launcher's end is seen on its channel, after the last word of its children. */
}

/* --- the launcher --- */

/* Variables that every command gets unless its own have the name. They point into the frame they came in. */
static struct {
        uint8_t frame[AP_ENV_MAX];
        const char *vars[AP_ARGS_MAX + 1];
} base;

/* What one start needs, apart from all others. */
static struct place {
        int busy; /* a held child still uses it; the kernel clears that when it execs or ends */
        uint32_t id, used;
        int fds[FDS_MAX];
        struct ap_start start;
        const char *vectors[2 * AP_ARGS_MAX + 2];
        _Alignas(AGENT_PAGE) uint8_t stack[STACK];
        uint8_t frame[AP_FRAME_MAX];
} places[PLACES];

/* Arguments and environment of a command are nobody's afterwards. */
static void wipe(struct place *p) {
        if (p->used > AGENT_PAGE)
                (void) madvise(p->frame, sizeof(p->frame), MADV_DONTNEED);
        else
                explicit_bzero(p->frame, p->used);
        p->used = 0;
}

static bool is_busy(const struct place *p) {
        return __atomic_load_n(&p->busy, __ATOMIC_ACQUIRE);
}

/* What those left behind that were held and have exec'd since; true if some have not. */
static bool wipe_others(const struct place *mine) {
        bool held = false;

        for (struct place *p = places; p < places + PLACES; p++) {
                if (is_busy(p))
                        held = true;
                else if (p != mine && p->used > 0)
                        wipe(p);
        }
        return held;
}

/* A place that nobody uses; NULL if there is none beside `other`. */
static struct place *find_place(const struct place *other) {
        for (struct place *p = places; p < places + PLACES; p++)
                if (p != other && !is_busy(p))
                        return p;
        return NULL;
}

/* A held child runs beside us in the same memory. So from here on nothing is called that has state in libc. */
static void say(const struct wr *w) {
        (void) SYS6(SYS_sendto, AGENT_FD_CHANNEL, w->p, w->len, MSG_NOSIGNAL, NULL, 0);
}

static void say_u32(enum ap_type type, uint32_t id, uint32_t v) {
        uint8_t frame[SAY_MAX];
        struct wr w = wr_to(frame, sizeof(frame));

        ap_put_u32(&w, type, id, v);
        say(&w);
}

static void say_error(uint32_t id, int r, const char *step) {
        uint8_t frame[SAY_MAX];
        struct wr w = wr_to(frame, sizeof(frame));

        ap_put_error(&w, id, (uint32_t) -r, step);
        say(&w);
}

static size_t name_length(const char *var) {
        return strcspn(var, "=") + 1;
}

/* Adds the sandbox's variables behind the command's own; there is room for as many as a command may have. */
static int add_base(struct ap_start *s) {
        for (size_t i = 0; base.vars[i]; i++) {
                const char *var = base.vars[i];
                bool own = false;

                for (size_t k = 0; k < s->envc && !own; k++)
                        own = strncmp(s->envp[k], var, name_length(var)) == 0;
                if (own)
                        continue;
                if (s->envc == AP_ARGS_MAX)
                        return -E2BIG;
                s->envp[s->envc++] = var;
                s->envp[s->envc] = NULL;
        }
        return 0;
}

/* A launcher listens to nobody's signals but those that cannot be blocked; its commands to all. */
static void block_signals(bool block) {
        const uint64_t set = block ? ~0ull : 0;

        (void) SYS4(SYS_rt_sigprocmask, SIG_SETMASK, &set, 0, sizeof(set));
}

static int start_child(void *arg) {
        struct place *p = arg;
        const struct ap_start *s = &p->start;
        const char *step = "stdio";
        long r;
        char go;

        r = sys_setsid();
        for (int i = 0; i < STDIO && r >= 0; i++)
                r = SYS3(SYS_dup3, p->fds[i], i, 0);
        if (r >= 0 && (s->flags & AP_TTY))
                r = SYS3(SYS_ioctl, STDOUT_FILENO, TIOCSCTTY, 0);
        if (r >= 0) {
                step = "chdir";
                r = sys_chdir(s->cwd);
        }
        if (r < 0) {
                say_error(p->id, (int) r, step);
                return CHILD_FAILED;
        }
        say_u32(AP_STARTED, p->id, (uint32_t) SYS0(SYS_getpid));
        /* Signals stay blocked meanwhile: what is sent now is for the program, if there will be one. */
        if ((s->flags & AP_HOLD) && sys_read(p->fds[STDIO], &go, sizeof(go)) != sizeof(go))
                return CHILD_FAILED;
        block_signals(false);
        say_u32(AP_EXEC_FAILED, p->id, (uint32_t) exec_search(s->argv, s->envp));
        return CHILD_NO_EXEC;
}

static void on_start(struct place *p, const struct ap_head *head) {
        int flags = CLONE_PARENT | CLONE_VM | CLONE_VFORK, r;

        p->id = head->id;
        r = ap_get_start(p->frame + AP_HEAD, head->length - AP_HEAD, &p->start, p->vectors, ARRAY_SIZE(p->vectors));
        if (r == 0)
                r = add_base(&p->start);
        if (r < 0) {
                say_error(head->id, r, "environment");
                return;
        }
        /* As vfork(): it borrows our memory, and we go on once it has exec'd or ended. For one that is held we do not
         * wait, as others must be able to start meanwhile: it keeps its place, or, if that is the last, gets a copy. */
        if (p->start.flags & AP_HOLD) {
                p->busy = find_place(p) != NULL;
                flags = CLONE_PARENT | (p->busy ? CLONE_VM | CLONE_CHILD_CLEARTID : 0);
        }
        if (clone(start_child, p->stack + sizeof(p->stack), flags, p, NULL, NULL, &p->busy) < 0) {
                say_error(head->id, -errno, "fork");
                p->busy = 0;
        }
}

static void on_files(uint32_t id, int fd) {
        long pid = SYS5(SYS_clone, CLONE_PARENT, 0, 0, 0, 0);

        if (pid == 0) {
                say_u32(AP_STARTED, AGENT_WORKER, (uint32_t) getpid());
                (void) close(AGENT_FD_CHANNEL);
                files_run(fd);
        }
        if (pid < 0) {
                conn_refuse(fd, id, (int) pid, "fork");
                say_error(AGENT_WORKER, (int) pid, "fork");
        }
}

/* One message and its descriptors; returns how many, or -1 when the agent is gone. */
static int receive(struct place *p, struct ap_head *head) {
        struct iovec iov = { .iov_base = p->frame, .iov_len = sizeof(p->frame) };
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        } control;
        struct msghdr msg = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        ssize_t n = recvmsg(AGENT_FD_CHANNEL, &msg, MSG_CMSG_CLOEXEC);
        const struct cmsghdr *c;
        size_t n_fds = 0;

        if (n <= 0)
                return -1;
        p->used = (uint32_t) n;
        p->fds[STDIO] = -1; /* a held child without it ends */
        if (ap_frame(p->frame, (size_t) n, head) != 1 || head->length != (size_t) n)
                return -1;
        c = CMSG_FIRSTHDR(&msg);
        if (c && c->cmsg_type == SCM_RIGHTS) {
                n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(p->fds, CMSG_DATA(c), n_fds * sizeof(int));
        }
        return (int) n_fds;
}

_Noreturn void launcher_run(struct agent *a) {
        block_signals(true); /* SIGXFSZ too, so that a worker sees EFBIG instead */
        /* Channel from 0 to where no command will have it; the host's end of the pair goes with that. */
        if (dup3(0, AGENT_FD_CHANNEL, O_CLOEXEC) < 0 || dup2(1, 0) < 0)
                _exit(CHILD_FAILED);
        /* What the agent knows is not ours to know. */
        if (madvise(a, sizeof(*a), MADV_DONTNEED) < 0)
                _exit(CHILD_FAILED);
        for (;;) {
                struct place *p = find_place(NULL); /* one is always free: see on_start() */
                struct ap_head head;
                int n_fds = receive(p, &head);
                bool held;

                if (n_fds < 0)
                        _exit(0);
                held = wipe_others(p);
                if (head.type == AP_START && n_fds >= STDIO) {
                        on_start(p, &head);
                } else if (head.type == AP_FILES && n_fds == 1) {
                        on_files(head.id, p->fds[0]);
                } else if (head.type == AP_ENV && head.length <= sizeof(base.frame)) {
                        if (held) /* their environment lies there; the next start asks for another launcher */
                                _exit(0);
                        memcpy(base.frame, p->frame, head.length);
                        if (ap_get_env(base.frame + AP_HEAD, head.length - AP_HEAD, base.vars, ARRAY_SIZE(base.vars)) <
                            0)
                                _exit(CHILD_FAILED);
                }
                for (int i = 0; i < n_fds; i++)
                        (void) close(p->fds[i]);
                if (!is_busy(p))
                        wipe(p);
        }
}
