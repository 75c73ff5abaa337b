/*
 * caps.c - group A: capabilities, ids and groups, and the ways back to them.
 *
 * What a program became by being executed is read from /proc after it has ended and before it is reaped: a zombie
 * still shows its ids and capabilities, and the program itself need not help.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "probe/probe.h"

enum {
        PR_DUMPABLE = 4,
        PR_KEEPCAPS = 8,
        PR_BOUND_DROP = 24,
        PR_GET_BITS = 27,
        PR_SET_BITS = 28,
        PR_GET_NNP = 39,
        PR_AMBIENT = 47,
        PR_AMBIENT_RAISE = 2,
        LAST_CAP = 40,
};
#define ALL_CAPS ((1ull << (LAST_CAP + 1)) - 1)

/* The line "Name:\tvalue" of a status file, value only; "" if it is not there. */
static void status_line(const char *who, const char *name, char *ret, size_t cap) {
        char path[48], text[4096] = "", *at;
        ssize_t n;

        ret[0] = '\0';
        (void) snprintf(path, sizeof(path), "/proc/%s/status", who);
        AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        at = n < 0 ? NULL : strstr(text, name);
        if (!at)
                return;
        at += strlen(name);
        at += strspn(at, ":\t ");
        (void) snprintf(ret, cap, "%.*s", (int) strcspn(at, "\n"), at);
}

static bool is_all_zero(const char *hex) {
        return hex[strspn(hex, "0")] == '\0';
}

/* One line, "0 0 4294967295" with any number of blanks: the map of the machine itself. */
static bool has_identity_map(const char *path) {
        static const char *const words[] = { "0", "0", "4294967295" };
        char text[128] = "", *at = text;
        AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                size_t n;

                at += strspn(at, " ");
                n = strcspn(at, " \n");
                if (n != strlen(words[i]) || memcmp(at, words[i], n) != 0)
                        return false;
                at += n;
        }
        return true;
}

static void set_judge(struct probe_result *r, const char *name) {
        char value[24];

        status_line("self", name, value, sizeof(value));
        if (!value[0])
                probe_absent(r, "no status to read");
        else if (is_all_zero(value))
                probe_stopped(r, 0, value);
        else
                probe_reached(r, value);
}

#define A_SET(id, name)                                                                                                \
        static void id(const struct probe_canaries *c, struct probe_result *r) {                                       \
                (void) c;                                                                                              \
                set_judge(r, name);                                                                                    \
        }
#define A_CALL(id, expr)                                                                                               \
        static void id(const struct probe_canaries *c, struct probe_result *r) {                                       \
                (void) c;                                                                                              \
                probe_judge(r, (expr), "");                                                                            \
        }

A_SET(a01b, "CapEff")
A_SET(a01c, "CapPrm")
A_SET(a02, "CapBnd")
A_SET(a03, "CapInh")
A_SET(a04a, "CapAmb")

/* Capabilities that the whole machine honours, not only the sandbox. */
static void a01a(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        set_judge(r, "CapPrm");
        if (r->verdict == PROBE_REACHED && !has_identity_map("/proc/self/uid_map"))
                probe_stopped(r, 0, "some, but in a user namespace of its own");
}

static void a04b(const struct probe_canaries *c, struct probe_result *r) {
        int ret = -EPERM;

        (void) c;
        for (int cap = 0; cap <= LAST_CAP && ret < 0; cap++)
                ret = sys_prctl(PR_AMBIENT, PR_AMBIENT_RAISE, (unsigned long) cap, 0, 0);
        probe_judge(r, ret, "");
}

static void a05(const struct probe_canaries *c, struct probe_result *r) {
        int ret = sys_prctl(PR_GET_NNP, 0, 0, 0, 0);

        (void) c;
        if (ret == 1)
                probe_stopped(r, 0, "set");
        else
                probe_reached(r, "not set: set-user-id programs gain");
}

/* Runs path --version in silence; what it became is in *ret_uid (effective) and ret_caps (permitted). */
static int became(const char *path, char *ret_uid, char *ret_caps, size_t cap) {
        char who[16], ids[64], *at;
        siginfo_t info;
        pid_t pid = fork();

        if (pid == 0) {
                int null = open("/dev/null", O_RDWR | O_CLOEXEC);

                for (int i = 0; null >= 0 && i < 3; i++)
                        (void) dup2(null, i);
                (void) execl(path, path, "--version", (char *) NULL);
                _exit(127);
        }
        if (pid < 0 || waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT) < 0)
                return -errno;
        (void) snprintf(who, sizeof(who), "%d", (int) pid);
        status_line(who, "Uid", ids, sizeof(ids));
        status_line(who, "CapPrm", ret_caps, cap);
        (void) waitpid(pid, NULL, 0);
        at = ids + strcspn(ids, "\t");
        at += strspn(at, "\t");
        (void) snprintf(ret_uid, cap, "%.*s", (int) strcspn(at, "\t"), at);
        return info.si_code == CLD_EXITED && info.si_status == 127 ? -ENOEXEC : 0;
}

static const char *const helpers[] = {
        "/usr/bin/su",        "/usr/bin/sudo",       "/usr/bin/passwd",      "/usr/bin/chsh",       "/usr/bin/mount",
        "/usr/bin/newuidmap", "/usr/bin/newgidmap",  "/usr/bin/fusermount3", "/usr/bin/fusermount", "/usr/bin/pkexec",
        "/usr/bin/ping",      "/usr/bin/mtr-packet", "/usr/bin/dumpcap",     "/usr/bin/crontab",    "/bin/su",
        "/bin/ping",
};

static bool is_setuid(const char *path) {
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_ISUID);
}

static void a06(const struct probe_canaries *c, struct probe_result *r) {
        char before[32], after[32], caps[32];

        (void) c;
        (void) snprintf(before, sizeof(before), "%u", (unsigned) geteuid());
        for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
                if (!is_setuid(helpers[i]) || became(helpers[i], after, caps, sizeof(after)) < 0)
                        continue;
                if (after[0] && !str_eq(before, after)) {
                        probe_reached(r, helpers[i]);
                        return;
                }
                probe_stopped(r, 0, "ran with the caller's id");
        }
        if (!r->note[0])
                probe_absent(r, "no set-user-id program");
}

static void a07(const struct probe_canaries *c, struct probe_result *r) {
        char uid[32], caps[32], value[64];

        (void) c;
        for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
                if (getxattr(helpers[i], "security.capability", value, sizeof(value)) <= 0 ||
                    became(helpers[i], uid, caps, sizeof(caps)) < 0)
                        continue;
                if (!is_all_zero(caps)) {
                        probe_reached(r, helpers[i]);
                        return;
                }
                probe_stopped(r, 0, "ran without capabilities");
        }
        if (!r->note[0])
                probe_absent(r, "no program with file capabilities");
}

/* Version 2 names no owner and needs the machine's own CAP_SETFCAP; version 3 is for the namespace. */
static void filecap_try(struct probe_result *r, uint32_t version, size_t size) {
        uint32_t value[6] = { version | 1, 1u << 21, 0, 0, 0, 0 };
        char path[] = "/tmp/probe-XXXXXX";
        AUTO_FD int fd = mkstemp(path);

        if (fd < 0) {
                probe_absent(r, "no file to put it on");
                return;
        }
        probe_judge(r, fsetxattr(fd, "security.capability", value, size, 0) < 0 ? -errno : 0, "");
        (void) unlink(path);
}

static void a08a(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        filecap_try(r, 0x02000000, 20);
}

static void a08b(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        filecap_try(r, 0x03000000, 24);
}

static void id_try(struct probe_result *r, bool is_zero, long ret) {
        if (is_zero)
                probe_absent(r, "is 0 already; see the capabilities");
        else
                probe_judge(r, ret, "");
}

static void a09a(const struct probe_canaries *c, struct probe_result *r) {
        bool is_zero = geteuid() == 0;

        (void) c;
        id_try(r, is_zero, is_zero ? 0 : sys_setresuid(0));
}

static void a09b(const struct probe_canaries *c, struct probe_result *r) {
        bool is_zero = getegid() == 0;

        (void) c;
        id_try(r, is_zero, is_zero ? 0 : sys_setresgid(0));
}

/* Another id of the map, if there is one: another tenant's files may carry it. */
static void a09c(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        probe_judge(r, sys_setresuid(geteuid() == 1 ? 2 : 1), "");
}

static void a10a(const struct probe_canaries *c, struct probe_result *r) {
        gid_t zero = 0;

        (void) c;
        probe_judge(r, SYS2(SYS_setgroups, 1, &zero), "");
}

A_CALL(a10b, sys_setgroups_none())
A_CALL(a11a, sys_prctl(PR_SET_BITS, 1, 0, 0, 0))
A_CALL(a11b, sys_prctl(PR_BOUND_DROP, 0, 0, 0, 0))

static void a11c(const struct probe_canaries *c, struct probe_result *r) {
        struct probe_result has = { 0 };
        int ret = sys_prctl(PR_KEEPCAPS, 1, 0, 0, 0);

        (void) c;
        set_judge(&has, "CapPrm");
        probe_judge(r, ret, "");
        if (ret == 0 && has.verdict != PROBE_REACHED) {
                probe_reached(r, "there is nothing to keep");
                r->verdict = PROBE_ACCEPTED;
        }
}

A_CALL(a12a, sys_capset(ALL_CAPS, ALL_CAPS, ALL_CAPS))
A_CALL(a12b, sys_capset(1ull << 21, 1ull << 21, 0)) /* CAP_SYS_ADMIN alone */
A_CALL(a12c, sys_capset(0, 0, 1ull << 21))

static void map_judge(struct probe_result *r, const char *path) {
        if (access(path, F_OK) < 0)
                probe_absent(r, "no user namespaces on this machine");
        else if (has_identity_map(path))
                probe_reached(r, "the machine's own ids");
        else
                probe_stopped(r, 0, "a map of its own");
}

static void a13a(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        map_judge(r, "/proc/self/uid_map");
}

/* Files of the machine's root show its id only where that root is mapped; elsewhere they belong to nobody. */
static void a13c(const struct probe_canaries *c, struct probe_result *r) {
        enum { NOBODY = 65534 };
        struct stat st;

        (void) c;
        if (stat("/proc/sys", &st) < 0)
                probe_absent(r, "no /proc/sys");
        else if (st.st_uid == NOBODY)
                probe_stopped(r, 0, "the machine's root is nobody here");
        else
                probe_reached(r, "the machine's root has an id here");
}

static void a13b(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        map_judge(r, "/proc/self/gid_map");
}

/* Not a byte is written: an empty write is refused with EPERM once the map is set, and with EINVAL if it is open. */
static void map_try(struct probe_result *r, const char *path) {
        AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
        long ret = fd < 0 ? -errno : SYS3(SYS_write, fd, "", 0);

        probe_judge(r, ret == -EINVAL ? 0 : ret, "");
}

static void a14a(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        map_try(r, "/proc/self/uid_map");
}

static void a14b(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        map_try(r, "/proc/self/gid_map");
}

/* Here the opening is what needs the capability. */
A_CALL(a14c, sys_openat(AT_FDCWD, "/proc/self/setgroups", O_WRONLY | O_CLOEXEC, 0))

static void a15(const struct probe_canaries *c, struct probe_result *r) {
        bool is_nnp = sys_prctl(PR_GET_NNP, 0, 0, 0, 0) == 1, has_any = false;
        struct statvfs fs;

        (void) c;
        for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
                if (!is_setuid(helpers[i]))
                        continue;
                has_any = true;
                if (!is_nnp && statvfs(helpers[i], &fs) == 0 && !(fs.f_flag & ST_NOSUID)) {
                        probe_reached(r, helpers[i]);
                        return;
                }
        }
        if (has_any)
                probe_stopped(r, 0, "there, but without power");
        else
                probe_absent(r, "none of the known ones");
}

/* Crashes in a folder of its own. A dump that is not found there was taken by somebody else. */
static void a16(const struct probe_canaries *c, struct probe_result *r) {
        char dir[] = "/tmp/probe-XXXXXX";
        int status = 0, n = 0;
        pid_t pid;

        (void) c;
        if (!mkdtemp(dir) || chdir(dir) < 0) {
                probe_absent(r, "no folder to crash in");
                return;
        }
        pid = fork();
        if (pid == 0) {
                struct rlimit l;

                (void) sys_prctl(PR_DUMPABLE, 1, 0, 0, 0);
                (void) getrlimit(RLIMIT_CORE, &l);
                l.rlim_cur = l.rlim_max;
                (void) setrlimit(RLIMIT_CORE, &l);
                abort();
        }
        (void) waitpid(pid, &status, 0);
        if (unlink("core") == 0)
                n++;
        (void) snprintf(r->note, sizeof(r->note), "core.%d", (int) pid);
        if (unlink(r->note) == 0)
                n++;
        (void) rmdir(dir);
        if (!WIFSIGNALED(status) || !WCOREDUMP(status))
                probe_stopped(r, 0, "no dump was made");
        else if (n == 0)
                probe_reached(r, "a dump was made and went elsewhere");
        else {
                probe_reached(r, "a dump was made, inside only");
                r->verdict = PROBE_ACCEPTED;
        }
}

/* A group that is not mapped shows as 65534 and still opens the host's files. */
static void a17(const struct probe_canaries *c, struct probe_result *r) {
        gid_t groups[256];
        int n = getgroups(ARRAY_SIZE(groups), groups), others = 0;
        char note[48];

        (void) c;
        for (int i = 0; i < n; i++)
                others += groups[i] != getegid();
        (void) snprintf(note, sizeof(note), "%d of %d are not its own", others, n);
        if (others)
                probe_reached(r, note);
        else
                probe_stopped(r, 0, note);
}

/* Most bits only take powers away from root. These two let capabilities outlive a change of user, if there are any. */
static void a18a(const struct probe_canaries *c, struct probe_result *r) {
        enum { NO_SETUID_FIXUP = 1 << 2, KEEP_CAPS = 1 << 4 };
        int bits = sys_prctl(PR_GET_BITS, 0, 0, 0, 0);
        char note[32], caps[24];

        (void) c;
        status_line("self", "CapPrm", caps, sizeof(caps));
        (void) snprintf(note, sizeof(note), "securebits 0x%x", (unsigned) bits);
        if (bits > 0 && ((bits & KEEP_CAPS) || ((bits & NO_SETUID_FIXUP) && !is_all_zero(caps))))
                probe_reached(r, note);
        else
                probe_stopped(r, bits < 0 ? -bits : 0, bits < 0 ? "" : note);
}

static void a18b(const struct probe_canaries *c, struct probe_result *r) {
        long now = SYS1(SYS_personality, 0xffffffff);

        (void) c;
        if (now > 0)
                probe_reached(r, "a personality was passed in");
        else
                probe_stopped(r, now < 0 ? (int) -now : 0, "");
}

#define PKEXEC "CVE-2021-4034"

const struct probe_attempt probe_caps[] = {
        { "A01a", PROBE_CRIT, "capabilities over the whole machine", "", a01a },
        { "A01b", PROBE_LOW, "effective capabilities", "", a01b },
        { "A01c", PROBE_LOW, "permitted capabilities", "", a01c },
        { "A02", PROBE_MED, "bounding set", "regain by execution", a02 },
        { "A03", PROBE_LOW, "inheritable set", "CVE-2022-24769", a03 },
        { "A04a", PROBE_HIGH, "ambient set", "ambient regain", a04a },
        { "A04b", PROBE_HIGH, "raise an ambient capability", "ambient regain", a04b },
        { "A05", PROBE_HIGH, "no_new_privs", PKEXEC, a05 },
        { "A06", PROBE_HIGH, "execute a set-user-id program", PKEXEC, a06 },
        { "A07", PROBE_HIGH, "execute a program with file capabilities", "file capabilities", a07 },
        { "A08a", PROBE_MED, "put a file capability on an own file", "planting", a08a },
        { "A08b", PROBE_MED, "put a file capability with owner on an own file", "planting", a08b },
        { "A09a", PROBE_HIGH, "become user 0", "id regain", a09a },
        { "A09b", PROBE_HIGH, "become group 0", "id regain", a09b },
        { "A09c", PROBE_HIGH, "become another user", "id regain", a09c },
        { "A10a", PROBE_MED, "take group 0 as a further group", "group regain", a10a },
        { "A10b", PROBE_MED, "drop all further groups", "CVE-2018-7169", a10b },
        { "A11a", PROBE_LOW, "set securebits", "securebits", a11a },
        { "A11b", PROBE_LOW, "drop from the bounding set", "securebits", a11b },
        { "A11c", PROBE_LOW, "keep capabilities over a change of user", "securebits", a11c },
        { "A12a", PROBE_HIGH, "capset with full sets", "", a12a },
        { "A12b", PROBE_HIGH, "capset with CAP_SYS_ADMIN", "", a12b },
        { "A12c", PROBE_HIGH, "capset: CAP_SYS_ADMIN inheritable", "CVE-2022-24769", a12c },
        { "A13a", PROBE_MED, "user ids are the machine's", "no user namespace", a13a },
        { "A13b", PROBE_MED, "group ids are the machine's", "no user namespace", a13b },
        { "A13c", PROBE_HIGH, "the machine's root is mapped", "root inside is root outside", a13c },
        { "A14a", PROBE_HIGH, "the user map takes another line", "CVE-2018-18955", a14a },
        { "A14b", PROBE_HIGH, "the group map takes another line", "CVE-2018-18955", a14b },
        { "A14c", PROBE_HIGH, "open setgroups for writing", "CVE-2018-7169", a14c },
        { "A15", PROBE_MED, "helpers with power are installed", "helper abuse", a15 },
        { "A16", PROBE_MED, "a crash leaves a dump outside", "CVE-2022-0811", a16 },
        { "A17", PROBE_HIGH, "groups left over from the caller", "docker, disk, kvm groups", a17 },
        { "A18a", PROBE_LOW, "securebits left over from the caller", "", a18a },
        { "A18b", PROBE_LOW, "personality left over from the caller", "", a18b },
        { 0 },
};
