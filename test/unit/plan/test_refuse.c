/* test_refuse.c - host paths that a sandbox is not shown: themselves, what is below them, what is above them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "plan/plan.h"

static void refused(const char *path, const char *home, const char *why) {
        const char *said = plan_mount_refused(path, home);

        if (!said)
                fail_msg("%s would be shown", path);
        assert_string_equal(said, why);
}

static void shown(const char *path, const char *home) {
        const char *said = plan_mount_refused(path, home);

        if (said)
                fail_msg("%s refused: %s", path, said);
}

static void dangerous_paths_are_refused_with_their_reason(void **state) {
        static const struct {
                const char *path, *why;
        } rows[] = {
                { "/", "it is the whole host" },
                { "/proc", "it is the host's process table" },
                { "/proc/1/root", "it is the host's process table" },
                { "/sys/fs/cgroup", "it is the host's kernel interface" },
                { "/dev/sda", "it holds the host's devices" },
                { "/boot/vmlinuz", "it holds the host's kernel" },
                { "/run/docker.sock", "it is a container engine's socket" },
                { "/run/containerd/containerd.sock", "it is a container engine's socket" },
                { "/run/podman/podman.sock", "it is a container engine's socket" },
                { "/run/crio/crio.sock", "it is a container engine's socket" },
                { "/run/dbus/system_bus_socket", "it is the system bus" },
                { "/run/systemd/private", "it is the service manager's interface" },
                { "/run/gabion", "it is Gabion's own state" },
                { "/var/lib/gabion/x", "it is Gabion's own state" },
                { "/var/lib/docker/overlay2", "it is a container engine's state" },
                { "/etc/ssh/ssh_host_ed25519_key", "it holds the host's keys" },
                { "/etc/ssl/private", "it holds the host's keys" },
                { "/etc/shadow", "it holds the host's passwords" },
                { "/etc/gshadow", "it holds the host's passwords" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                refused(rows[i].path, NULL, rows[i].why);
}

static void a_folder_around_a_dangerous_path_is_refused_too(void **state) {
        (void) state;
        refused("/run", NULL, "it is a container engine's socket");
        refused("/var", NULL, "it is a container engine's socket");
        refused("/var/lib", NULL, "it is Gabion's own state");
        refused("/etc", NULL, "it holds the host's keys");
        refused("/etc/ssl", NULL, "it holds the host's keys");
}

static void key_folders_are_refused_wherever_they_are(void **state) {
        static const char *const names[] = { ".ssh",  ".gnupg",  ".aws",    ".azure",
                                             ".kube", ".docker", ".gcloud", ".password-store" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[64] = "/srv/backup/";

                memcpy(path + strlen(path), names[i], strlen(names[i]) + 1);
                refused(path, NULL, "it holds keys");
                memcpy(path + strlen(path), "/id", sizeof("/id"));
                refused(path, NULL, "it holds keys");
        }
        shown("/srv/backup/.sshd", NULL); /* whole names only */
        shown("/srv/backup/x.ssh", NULL);
        shown("/srv/my.aws/x", NULL);
        refused("/srv/.sshx/.ssh", NULL, "it holds keys"); /* the first near miss does not end the search */
}

static void home_directories_are_refused_and_projects_inside_are_not(void **state) {
        (void) state;
        refused("/root", NULL, "it is a home directory");
        refused("/home", NULL, "it is a home directory");
        refused("/home/alice", NULL, "it is a home directory");
        refused("/data/alice", "/data/alice", "it is a home directory");
        refused("/data", "/data/alice", "it is a home directory");
        shown("/home/alice/project", NULL);
        shown("/home/alice/project", "/home/alice");
        shown("/root/project", "/root");
        shown("/data/alice/project", "/data/alice");
        shown("/data/alicent", "/data/alice");
}

static void ordinary_paths_and_look_alikes_are_shown(void **state) {
        static const char *const paths[] = { "/srv",          "/opt/tool",     "/tmp/x",    "/usr/share",
                                             "/process",      "/system",       "/devel",    "/bootcamp",
                                             "/etc/hosts",    "/etc/sshd",     "/mnt/proc", "/var/lib/gabionx",
                                             "/run/gabion-x", "/etc/ssl/certs" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                shown(paths[i], "/home/alice");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(dangerous_paths_are_refused_with_their_reason),
                cmocka_unit_test(a_folder_around_a_dangerous_path_is_refused_too),
                cmocka_unit_test(key_folders_are_refused_wherever_they_are),
                cmocka_unit_test(home_directories_are_refused_and_projects_inside_are_not),
                cmocka_unit_test(ordinary_paths_and_look_alikes_are_shown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
