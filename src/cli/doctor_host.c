/* doctor_host.c - checks of what the machine and its set-up offer, and the self-test that ends them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "cgroup/cgroup.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "run/run.h"

enum { KVM_GET_VERSION = 0xae00, KVM_VERSION = 12 };

/* Our messages are "what is wrong; what to do". */
static void found_error(struct doctor_finding *f, const struct err *err) {
        const char *cut = strstr(err->msg, "; ");
        size_t n = cut ? (size_t) (cut - err->msg) : strlen(err->msg);

        doctor_found(f, DOCTOR_MISSING, "%.*s", (int) n, err->msg);
        doctor_remedy(f, "%s", cut ? cut + 2 : "");
}

void doctor_cgroup_version(struct doctor_finding *f) {
        enum { MAGIC_V2 = 0x63677270 };
        struct statfs st;

        if (statfs("/sys/fs/cgroup", &st) < 0) {
                doctor_found(f, DOCTOR_MISSING, "nothing at /sys/fs/cgroup: %s", strerror(errno));
                doctor_remedy(f, "as root: mount -t cgroup2 cgroup2 /sys/fs/cgroup");
        } else if (st.f_type == MAGIC_V2) {
                doctor_found(f, DOCTOR_OK, "v2");
        } else if (access("/sys/fs/cgroup/memory", F_OK) < 0) {
                doctor_found(f, DOCTOR_MISSING, "no control groups are mounted at /sys/fs/cgroup");
                doctor_remedy(f, "as root: mount -t cgroup2 cgroup2 /sys/fs/cgroup");
        } else {
                bool hybrid = access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0;

                doctor_found(f, DOCTOR_OK, hybrid ? "hybrid: v1 controllers, and v2 at /sys/fs/cgroup/unified" : "v1");
        }
}

void doctor_cgroup(struct doctor_finding *f) {
        static const char *const modes[] = {
                [CGROUP_V2] = "v2: limits, kill and freeze",
                [CGROUP_HYBRID] = "limits through v1, kill and freeze through v2",
                [CGROUP_V1] = "v1: limits and freeze; kills go process by process",
        };
        struct cgroup_host *host = NULL;
        struct err err = { 0 };
        size_t n;

        if (cgroup_host_find(&host, &err) == 0) {
                doctor_found(f, DOCTOR_OK, "%s%s", modes[cgroup_host_mode(host)],
                             geteuid() == 0 ? "" : "; delegated to this user");
                host = cgroup_host_free(host);
                return;
        }
        found_error(f, &err);
        n = strlen(f->remedy);
        if (n < sizeof(f->remedy))
                (void) snprintf(f->remedy + n, sizeof(f->remedy) - n, "%s--limits=rlimit does without (weaker)",
                                n ? "; or " : "");
}

void doctor_subids(struct doctor_finding *f) {
        struct err err = { 0 };
        bool rootless;

        if (geteuid() == 0) {
                bool have = access("/usr/bin/newuidmap", X_OK) == 0 && access("/usr/bin/newgidmap", X_OK) == 0;

                doctor_found(f, DOCTOR_OK, "not needed by root%s",
                             have ? "; newuidmap is there for others" : "; others need: apt-get install uidmap");
                return;
        }
        if (sandbox_enter(&rootless, &err) == 0)
                doctor_found(f, DOCTOR_OK, "newuidmap and newgidmap mapped 65536 ids");
        else
                found_error(f, &err);
}

#ifdef __aarch64__
#define KVM_REMEDY "boot the kernel at EL2 and with CONFIG_KVM"
#else
#define KVM_REMEDY "as root: modprobe kvm_intel || modprobe kvm_amd"
#endif

void doctor_kvm(struct doctor_finding *f) {
        AUTO_FD int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

        if (fd >= 0 && ioctl(fd, KVM_GET_VERSION, 0) == KVM_VERSION) {
                doctor_found(f, DOCTOR_OK, "/dev/kvm opens and answers");
        } else if (fd >= 0) {
                doctor_found(f, DOCTOR_MISSING, "/dev/kvm opens, but does not answer as KVM does");
                doctor_remedy(f, KVM_REMEDY);
        } else if (errno == EACCES || errno == EPERM) {
                doctor_found(f, DOCTOR_MISSING, "/dev/kvm is there, but not for uid %u", (unsigned) geteuid());
                doctor_remedy(f, "as root: chgrp kvm /dev/kvm; chmod 0660 /dev/kvm; usermod -aG kvm $(id -un %u)",
                              (unsigned) geteuid());
        } else {
                doctor_found(f, DOCTOR_MISSING, "no KVM: %s; the tier ns does not need it", strerror(errno));
                doctor_remedy(f, KVM_REMEDY "; in a virtual machine, its host must offer nested virtualisation");
        }
}

/* Looks for a program in the caller's PATH. */
static bool path_find(const char *name, char *dst, size_t cap) {
        for (const char *at = cli_env("PATH"); *at;) {
                size_t n = strcspn(at, ":");
                int k = snprintf(dst, cap, "%.*s/%s", (int) n, at, name);

                if (n > 0 && k > 0 && (size_t) k < cap && access(dst, X_OK) == 0)
                        return true;
                at += n + (at[n] == ':');
        }
        return false;
}

void doctor_runsc(struct doctor_finding *f) {
        char path[256];

        if (path_find("runsc", path, sizeof(path))) {
                doctor_found(f, DOCTOR_OK, "%s", path);
                return;
        }
        doctor_found(f, DOCTOR_MISSING, "no runsc in PATH");
        doctor_remedy(f, "install gVisor's runsc as its documentation says, and put it in PATH");
}

void doctor_qemu(struct doctor_finding *f) {
#ifdef __aarch64__
        static const char program[] = "qemu-system-aarch64", package[] = "qemu-system-arm";
#else
        static const char program[] = "qemu-system-x86_64", package[] = "qemu-system-x86";
#endif
        char path[256];

        if (path_find(program, path, sizeof(path))) {
                doctor_found(f, DOCTOR_OK, "%s", path);
                return;
        }
        doctor_found(f, DOCTOR_MISSING, "no %s in PATH", program);
        doctor_remedy(f, "as root: apt-get install %s", package);
}

struct trial {
        unsigned off;
        struct doctor_finding *finding;
};

static int trial_main(void *arg) {
        static const char *const argv[] = { "/bin/true", NULL }, *const env[] = { NULL };
        static struct run_result res;
        static struct policy policy;
        const struct trial *t = arg;
        struct run_options o = { .policy = &policy, .argv = argv, .env = env, .no_stdin = true, .quiet = true };
        struct err err = { 0 };
        uint64_t start = clock_mono_ns();

        policy_default(&policy);
        o.off = t->off;
        o.agent = gabion_agent_image;
        o.agent_bytes = gabion_agent_image_size;
        if (run_command(&o, &res, &err) < 0) {
                found_error(t->finding, &err);
                return 1;
        }
        doctor_found(t->finding, res.exit_code == 0 ? DOCTOR_OK : DOCTOR_MISSING,
                     "/bin/true ended with exit code %d after %.1f ms, every control read back", res.exit_code,
                     (double) (clock_mono_ns() - start) / 1e6);
        return res.exit_code != 0;
}

/* Each try in a process of its own: the library makes one sandbox per process. */
static bool trial(unsigned off, struct doctor_finding *f) {
        int pid = doctor_child(trial_main, &(struct trial){ off, f });

        return pid > 0 && doctor_wait(pid) == 0;
}

void doctor_selftest(struct doctor_finding *f) {
        struct doctor_finding first;

        if (trial(0, f))
                return;
        first = *f;
        if (trial(PLAN_OFF_CGROUP | PLAN_OFF_IO, f))
                doctor_remedy(&first, "works with: gabion run --limits=rlimit ... (limits per process, weaker)");
        else if (!first.remedy[0])
                doctor_remedy(&first, "the checks above name what is missing");
        *f = first;
}
