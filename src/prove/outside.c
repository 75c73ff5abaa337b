/*
 * outside.c - what must be the same after an attack as before it: the mount table, the kernel's settings and modules,
 * key files, device nodes, listening sockets.
 *
 * Others use the machine meanwhile. Files and settings that are listed here do not change in ordinary use; a listening
 * socket counts only if it belongs to an id that the sandbox has.
 */
#include "prove/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "prove/canary.h"
#include "prove/observe.h"

enum { TEXT_MAX = 4 << 20, LISTENING = 8 };

enum kind { KEY_FILE, SETTING, NODE, KINDS };

static const struct thing {
        const char *path;
        enum kind kind;
} things[] = {
        { "/", KEY_FILE },
        { "/etc/passwd", KEY_FILE },
        { "/etc/group", KEY_FILE },
        { "/etc/shadow", KEY_FILE },
        { "/etc/sudoers", KEY_FILE },
        { "/etc/hosts", KEY_FILE },
        { "/etc/ld.so.preload", KEY_FILE },
        { "/etc/ld.so.conf", KEY_FILE },
        { "/etc/profile", KEY_FILE },
        { "/etc/crontab", KEY_FILE },
        { "/etc/cron.d", KEY_FILE },
        { "/etc/systemd/system", KEY_FILE },
        { "/root/.profile", KEY_FILE },
        { "/root/.bashrc", KEY_FILE },
        { "/root/.ssh/authorized_keys", KEY_FILE },
        { "/proc/self/exe", KEY_FILE },
        { "/proc/sys/kernel/core_pattern", SETTING },
        { "/proc/sys/kernel/modprobe", SETTING },
        { "/proc/sys/kernel/hotplug", SETTING },
        { "/proc/sys/kernel/sysrq", SETTING },
        { "/proc/sys/kernel/hostname", SETTING },
        { "/proc/sys/kernel/domainname", SETTING },
        { "/proc/sys/kernel/panic", SETTING },
        { "/proc/sys/kernel/panic_on_oops", SETTING },
        { "/proc/sys/kernel/randomize_va_space", SETTING },
        { "/proc/sys/kernel/unprivileged_bpf_disabled", SETTING },
        { "/proc/sys/vm/overcommit_memory", SETTING },
        { "/proc/sys/vm/panic_on_oom", SETTING },
        { "/proc/sys/fs/suid_dumpable", SETTING },
        { "/proc/sys/fs/file-max", SETTING },
        { "/proc/sys/fs/protected_symlinks", SETTING },
        { "/proc/sys/fs/binfmt_misc/status", SETTING },
        { "/proc/sys/net/ipv4/ip_forward", SETTING },
        { "/sys/kernel/uevent_helper", SETTING },
        { "/dev/null", NODE },
        { "/dev/zero", NODE },
        { "/dev/full", NODE },
        { "/dev/random", NODE },
        { "/dev/urandom", NODE },
        { "/dev/tty", NODE },
        { "/dev/ptmx", NODE },
};
_Static_assert(ARRAY_SIZE(things) <= OUTSIDE_THINGS, "OUTSIDE_THINGS is too small");

/* A whole text of procfs. It gives no size beforehand. */
static void text_read(const char *path, struct buf *into) {
        AUTO_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        char part[8192];
        ssize_t n;

        while (fd >= 0 && (n = read(fd, part, sizeof(part))) > 0 && !into->bad)
                buf_add(into, part, (size_t) n);
}

/* What identifies a thing; what is not there is a state too. Nobody can set back the time of a change of an inode;
 * the inodes of procfs have none. */
static void thing_look(const struct thing *t, char dst[HASH_TEXT]) {
        struct buf b = BUF_INIT(TEXT_MAX);
        struct stat st;

        if (stat(t->path, &st) < 0)
                buf_addf(&b, "%s", strerrorname_np(errno));
        else if (t->kind == SETTING)
                text_read(t->path, &b);
        else
                buf_addf(&b, "%o %u %u %llu %llu %lld %lld.%ld", st.st_mode, st.st_uid, st.st_gid,
                         (unsigned long long) st.st_ino, (unsigned long long) st.st_rdev, (long long) st.st_size,
                         (long long) st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        hash_text(dst, buf_str(&b), b.len);
        buf_done(&b);
}

/* Lines of a text, each cut at the first blank if names_only; the kernel changes the rest as it goes. */
static void lines_hash(const char *path, const char *skip, bool names_only, char dst[HASH_TEXT]) {
        struct buf text = BUF_INIT(TEXT_MAX), kept = BUF_INIT(TEXT_MAX);
        size_t n;

        text_read(path, &text);
        for (const char *line = buf_str(&text); *line; line += n + (line[n] == '\n')) {
                n = strcspn(line, "\n");
                if (!skip || !memmem(line, n, skip, strlen(skip)))
                        buf_addf(&kept, "%.*s\n", (int) (names_only ? strcspn(line, " \n") : n), line);
        }
        hash_text(dst, buf_str(&kept), kept.len);
        buf_done(&text);
        buf_done(&kept);
}

/* One line of /proc/net/tcp or udp: "sl local remote state queues timer retransmits uid ...". */
static void listener_add(const char *line, size_t n, bool tcp, struct buf *into) {
        const char *word[LISTENING];
        size_t len[LISTENING], k = 0;

        for (size_t at = 0; at < n && k < LISTENING; k++) {
                at += strspn(line + at, " ");
                word[k] = line + at;
                len[k] = strcspn(line + at, " \n");
                at += len[k];
        }
        if (k == LISTENING && len[3] == 2 && (!tcp || strncmp(word[3], "0A", 2) == 0) && len[7] < 11 &&
            strspn(word[7], "0123456789") == len[7])
                buf_addf(into, "%s %.*s %.*s\n", tcp ? "tcp" : "udp", (int) len[1], word[1], (int) len[7], word[7]);
}

void outside_listeners(struct buf *into) {
        static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6" };

        for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
                struct buf text = BUF_INIT(TEXT_MAX);
                size_t n;

                text_read(tables[i], &text);
                for (const char *line = buf_str(&text); *line; line += n + (line[n] == '\n')) {
                        n = strcspn(line, "\n");
                        listener_add(line, n, i < 2, into);
                }
                buf_done(&text);
        }
}

size_t outside_listeners_new(const struct buf *before, const struct buf *after, uint64_t base, uint64_t size) {
        size_t n = 0, found = 0;

        for (const char *line = buf_str(after); *line; line += n + 1) {
                const char *blank;
                char uid[16], whole[160];
                uint64_t id;

                n = strcspn(line, "\n");
                blank = memrchr(line, ' ', n);
                (void) snprintf(uid, sizeof(uid), "%.*s", (int) (line + n - blank - 1), blank + 1);
                (void) snprintf(whole, sizeof(whole), "%.*s\n", (int) n, line);
                found += str_to_u64(uid, UINT32_MAX, &id) == 0 && id >= base && id - base < size &&
                         !strstr(buf_str(before), whole);
        }
        return found;
}

void outside_look(struct outside *ret) {
        *ret = (struct outside){ .listeners = BUF_INIT(OUTSIDE_LISTENERS) };
        /* The kernel mounts tracefs by itself when somebody looks there. */
        lines_hash("/proc/self/mountinfo", " - tracefs ", false, ret->mounts);
        lines_hash("/proc/modules", NULL, true, ret->modules);
        for (size_t i = 0; i < ARRAY_SIZE(things); i++) {
                struct stat st;

                thing_look(&things[i], ret->things[i]);
                if (things[i].kind != NODE || stat(things[i].path, &st) < 0)
                        continue;
                ret->nodes[i].mode = st.st_mode;
                ret->nodes[i].uid = st.st_uid;
                ret->nodes[i].gid = st.st_gid;
        }
        outside_listeners(&ret->listeners);
}

void outside_check(const struct outside *before, struct prove_report *r) {
        static const char *const titles[KINDS] = {
                [KEY_FILE] = "the host's key files are as they were",
                [SETTING] = "the kernel's settings are as they were",
                [NODE] = "the host's device nodes are as they were",
        };
        const char *changed[KINDS] = { NULL };
        struct outside now;
        uint64_t base, size;

        outside_look(&now);
        for (size_t i = 0; i < ARRAY_SIZE(things); i++)
                if (!str_eq(before->things[i], now.things[i]))
                        changed[things[i].kind] = things[i].path;
        for (size_t k = 0; k < KINDS; k++)
                check_add(r, titles[k], !changed[k], changed[k]);
        check_add(r, "the host's mount table is as it was", str_eq(before->mounts, now.mounts), NULL);
        check_add(r, "no kernel module was loaded or removed", str_eq(before->modules, now.modules), NULL);
        if (observe_range(&r->posture, &base, &size))
                check_add(r, "no socket of the sandbox's ids listens on the host",
                          outside_listeners_new(&before->listeners, &now.listeners, base, size) == 0 &&
                                  !now.listeners.bad,
                          NULL);
        outside_done(&now);
}

void outside_restore(const struct outside *before) {
        for (size_t i = 0; i < ARRAY_SIZE(things); i++) {
                struct stat st;

                if (!before->nodes[i].mode || stat(things[i].path, &st) < 0)
                        continue;
                if (st.st_uid != before->nodes[i].uid || st.st_gid != before->nodes[i].gid)
                        (void) !chown(things[i].path, before->nodes[i].uid, before->nodes[i].gid);
                if (st.st_mode != before->nodes[i].mode)
                        (void) chmod(things[i].path, before->nodes[i].mode & 07777);
        }
}

void outside_done(struct outside *o) {
        buf_done(&o->listeners);
}
