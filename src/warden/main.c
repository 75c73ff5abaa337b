/*
 * main.c - gabion-warden: makes and ends sandboxes that live on, and holds them in between. The privileged half of the
 * server: it parses our own messages only (src/ipc, src/wardenproto).
 *
 * It may be killed and started again at any moment. Sandboxes do not notice: they have no end of the warden's, and what
 * it knows is in their records (recover.c).
 *
 * usage: gabion-warden [--run DIR] [--uid UID] [--end-all] [--upstream-proxy URL] [--bind ADDRESS] [--ca-bundle FILE]
 *                      [--resolve NAME:PORT=ADDRESS:PORT]...
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "network.h"
#include "sandbox/sandbox.h"
#include "state.h"

enum { KEEP_BYTES = 4 << 20 /* of freed memory */, LOCK_TRIES = 25, LOCK_MS = 20 };

struct warden warden = { .epoll_fd = -1, .listen_fd = -1, .lock_fd = -1, .slots_fd = -1, .image_fd = -1 };

void warden_log(const char *fmt, ...) {
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        (void) dprintf(STDERR_FILENO, "gabion-warden: %s\n", text);
}

/* Nothing of whoever started us, and no more privilege than the work needs. A filter is not among it: the kernel shows
 * the filters of others only to a process that has none itself. */
static int isolate(struct err *err) {
        /* CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER KILL SETGID SETUID SETPCAP NET_ADMIN SYS_CHROOT SYS_PTRACE
         * SYS_ADMIN SYS_RESOURCE SYS_TIME (offsets of clocks) MKNOD SETFCAP */
        static const unsigned char needed[] = { 0, 1, 2, 3, 5, 6, 7, 8, 12, 18, 19, 21, 24, 25, 27, 31 };
        struct rlimit files;
        uint64_t keep = 0, have = 0;

        for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
                keep |= 1ull << needed[i];
        for (unsigned long cap = 0; cap < 64; cap++) {
                int r = sys_prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

                if (r < 0)
                        break;
                if (r == 1 && (keep & 1ull << cap))
                        have |= 1ull << cap; /* a container may give root less */
                else
                        (void) sys_prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
        }
        (void) umask(077);
        if (sys_close_range(3, ~0u, 0) < 0 || chdir("/") < 0 || sys_capset(have, have, 0) < 0 ||
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "isolating the warden: %s", strerror(errno));
        if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
                files.rlim_cur = files.rlim_max;
                (void) setrlimit(RLIMIT_NOFILE, &files);
        }
        return 0;
}

static int directory(const char *path, mode_t mode, struct err *err) {
        struct stat st;

        if (mkdir(path, mode) < 0 && errno != EEXIST)
                return err_set(err, -errno, ERR_INTERNAL, "directory %.150s: %s", path, strerror(errno));
        if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022))
                return err_set(err, -EPERM, ERR_DENIED, "directory %.150s: root's alone it must be", path);
        return chmod(path, mode) < 0 ? err_set(err, -errno, ERR_INTERNAL, "directory %.150s: %s", path, strerror(errno))
                                     : 0;
}

/* Whoever is given a socket passes through the directory, but cannot look around in it. */
static int directories(struct err *err) {
        char path[WP_PATH + 16];
        int r = directory(warden.run, 0711, err);

        (void) snprintf(path, sizeof(path), "%s/agents", warden.run);
        if (r == 0)
                r = directory(path, 0711, err);
        (void) snprintf(path, sizeof(path), "%s/gates", warden.run);
        if (r == 0)
                r = directory(path, 0700, err);
        if (r == 0)
                r = directory(WARDEN_SLOTS, 0700, err);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "%s/lock", warden.run);
        warden.lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        /* A child that was being forked when the last one was killed has a copy for a moment. */
        for (unsigned i = 0;
             warden.lock_fd >= 0 && (r = flock(warden.lock_fd, LOCK_EX | LOCK_NB)) < 0 && i < LOCK_TRIES; i++)
                (void) poll(NULL, 0, LOCK_MS);
        if (warden.lock_fd < 0 || r < 0)
                return err_set(err, -EBUSY, ERR_BUSY, "%.150s: another warden runs there", warden.run);
        return 0;
}

/* One image for all agents: they share its pages. Mode 0111 makes them non-dumpable from their first instruction. */
static int image(struct err *err) {
        enum { EXEC_FLAG = 0x10 };
        int fd = memfd_create("gabion-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING | EXEC_FLAG);

        if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
                fd = memfd_create("gabion-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0 || fd_write_all(fd, gabion_agent_image, gabion_agent_image_size) < 0 || fchmod(fd, 0111) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "agent image: %s", strerror(errno));
        warden.image_fd = fd;
        return 0;
}

static int open_all(struct err *err) {
        warden.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        warden.uts_fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
        warden.mnt_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        warden.slots_fd = open(WARDEN_SLOTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (warden.proc_fd < 0 || warden.uts_fd < 0 || warden.mnt_fd < 0 || warden.slots_fd < 0)
                return err_set(err, -errno, ERR_INTERNAL, "opening directories: %s", strerror(errno));
        return cgroup_host_find(&warden.groups, err);
}

static int begin(struct err *err) {
        bool rootless;
        int r = geteuid() == 0 ? isolate(err) : err_set(err, -EPERM, ERR_DENIED, "the warden needs root");

        if (r == 0)
                r = sandbox_enter(&rootless, err); /* first: it takes the descriptors 3 to 6 */
        if (r == 0)
                r = sandbox_facts(&warden.facts, err);
        if (r == 0)
                r = directories(err);
        if (r == 0)
                r = open_all(err);
        if (r == 0)
                r = image(err);
        if (r == 0)
                r = loop_open(err);
        return r < 0 ? r : recover(err);
}

/* Ends every sandbox of this warden, and waits until they are gone. */
static void end_all(void) {
        struct box *b;

        TAILQ_FOREACH(b, &warden.boxes, link) {
                box_kill(b, (struct asker){ 0 });
        }
        while (warden.n_boxes > 0 && !warden.stop)
                loop_turn();
}

static int options(int argc, char **argv, bool *ret_end_all, struct err *err) {
        static const struct option known[] = {
                { "run", required_argument, NULL, 'r' },     { "uid", required_argument, NULL, 'u' },
                { "end-all", no_argument, NULL, 'e' },       { "upstream-proxy", required_argument, NULL, 'n' },
                { "bind", required_argument, NULL, 'n' },    { "ca-bundle", required_argument, NULL, 'n' },
                { "resolve", required_argument, NULL, 'n' }, { NULL, 0, NULL, 0 },
        };
        uint64_t uid = 0;
        int c, at = 0;

        (void) str_copy(warden.run, sizeof(warden.run), "/run/gabion-warden");
        while ((c = getopt_long(argc, argv, "", known, &at)) != -1) {
                if (c == 'r' && (optarg[0] != '/' || strlen(optarg) > WARDEN_RUN_MAX))
                        return err_set(err, -EINVAL, ERR_INVALID, "--run: an absolute path of at most %d characters",
                                       WARDEN_RUN_MAX);
                if (c == 'r')
                        (void) str_copy(warden.run, sizeof(warden.run), optarg);
                else if (c == 'u' && str_to_u64(optarg, UINT32_MAX - 1, &uid) < 0)
                        return err_set(err, -EINVAL, ERR_INVALID, "--uid: a number is wanted");
                else if (c == 'n' && network_option(known[at].name, optarg, err) < 0)
                        return err->code;
                else if (c == 'e')
                        *ret_end_all = true;
                else if (c == '?')
                        return err_set(
                                err, -EINVAL, ERR_INVALID,
                                "usage: gabion-warden [--run DIR] [--uid UID] [--end-all] [--upstream-proxy URL] "
                                "[--bind ADDRESS] [--ca-bundle FILE] [--resolve NAME:PORT=ADDRESS:PORT]...");
        }
        warden.daemon = (uid_t) uid;
        return optind == argc
                       ? 0
                       : err_set(err, -EINVAL, ERR_INVALID, "'%.60s': nothing of that is expected", argv[optind]);
}

int main(int argc, char **argv) {
        struct err e = { 0 };
        bool ending = false;
        int r;

        /* What one request frees, the next one takes: given back each time, it would be faulted in each time. */
        (void) mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
        (void) mallopt(M_TOP_PAD, KEEP_BYTES / 4);
        (void) mallopt(M_MMAP_THRESHOLD, KEEP_BYTES / 4);
        TAILQ_INIT(&warden.clients);
        TAILQ_INIT(&warden.boxes);
        TAILQ_INIT(&warden.orders);
        TAILQ_INIT(&warden.jobs);
        TAILQ_INIT(&warden.shapes);
        r = options(argc, argv, &ending, &e);
        if (r == 0)
                r = begin(&e);
        if (r == 0 && !ending)
                r = client_listen(&e);
        if (r < 0) {
                warden_log("%s", e.msg);
                return 1;
        }
        if (ending)
                end_all();
        while (!ending && !warden.stop)
                loop_turn();
        claim_finish();
        return 0;
}
