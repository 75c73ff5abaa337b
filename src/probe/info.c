/*
 * info.c - group J: what can be learnt about the host, its users and its other work.
 *
 * Invariant: reads only. Notes say where something was found, never what a secret is.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "probe/files_look.h"
#include "probe/info_homes.h"
#include "probe/probe.h"

/* The name of the first variable that has one of the marks in its name; never its value. */
static void env_look(struct probe_result *r, const char *const *marks, size_t n_marks, bool is_whole) {
        for (char **e = environ; *e; e++) {
                char name[64];
                size_t n = strcspn(*e, "=");

                (void) snprintf(name, sizeof(name), "%.*s", (int) (n < 60 ? n : 60), *e);
                for (size_t i = 0; i < n_marks; i++)
                        if (is_whole ? str_eq(name, marks[i]) : strstr(name, marks[i]) != NULL) {
                                probe_reached(r, name);
                                return;
                        }
        }
        probe_stopped(r, 0, "none");
}

static void info_env_secrets(const struct probe_canaries *c, struct probe_result *r) {
        static const char *const marks[] = { "SECRET",     "TOKEN",      "PASSW",       "API_KEY",      "APIKEY",
                                             "ACCESS_KEY", "CREDENTIAL", "PRIVATE_KEY", "DATABASE_URL", "SSH_AUTH" };

        (void) c;
        env_look(r, marks, ARRAY_SIZE(marks), false);
}

static void info_env_session(const struct probe_canaries *c, struct probe_result *r) {
        static const char *const marks[] = { "SUDO_USER",       "SUDO_COMMAND",   "SSH_CLIENT",
                                             "SSH_CONNECTION",  "OLDPWD",         "DBUS_SESSION_BUS_ADDRESS",
                                             "XDG_RUNTIME_DIR", "XDG_SESSION_ID", "DISPLAY",
                                             "WAYLAND_DISPLAY", "XAUTHORITY",     "MAIL",
                                             "INVOCATION_ID" };

        (void) c;
        env_look(r, marks, ARRAY_SIZE(marks), true);
}

static void info_env_loader(const struct probe_canaries *c, struct probe_result *r) {
        static const char *const marks[] = { "LD_PRELOAD",   "LD_LIBRARY_PATH", "LD_AUDIT", "PYTHONPATH",
                                             "NODE_OPTIONS", "BASH_ENV",        "PERL5LIB", "GCONV_PATH" };

        (void) c;
        env_look(r, marks, ARRAY_SIZE(marks), true);
}

static void info_env_canary(const struct probe_canaries *c, struct probe_result *r) {
        if (!c->text[0]) {
                probe_absent(r, "no canary given");
                return;
        }
        for (char **e = environ; *e; e++)
                if (strstr(*e, c->text)) {
                        probe_reached(r, "in the environment");
                        return;
                }
        probe_stopped(r, 0, "not there");
}

/* Not started by the probe: another session, and not one of its ancestors' shells. */
static bool is_foreign(pid_t pid) {
        return pid != getpid() && pid != getppid() && getsid(pid) != getsid(0);
}

static bool on_environ(pid_t pid, void *arg) {
        char path[40], text[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/environ", (int) pid);
        if (!is_foreign(pid) || look_read(path, text, sizeof(text)) <= 0)
                return false;
        probe_reached(arg, path);
        return true;
}

static void info_env_others(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (!look_each_pid(on_environ, r))
                probe_stopped(r, 0, "none readable");
}

static void same_text(struct probe_result *r, const char *mine, const char *hosts) {
        if (!hosts[0])
                probe_absent(r, "the host's was not given");
        else if (strstr(mine, hosts))
                probe_reached(r, "the host's");
        else
                probe_stopped(r, 0, "not the host's");
}

static void info_hostname(const struct probe_canaries *c, struct probe_result *r) {
        struct utsname u = { 0 };

        (void) uname(&u);
        same_text(r, u.nodename, c->hostname);
}

static void info_domainname(const struct probe_canaries *c, struct probe_result *r) {
        struct utsname u = { 0 };

        (void) c;
        (void) uname(&u);
        if (u.domainname[0] && !str_eq(u.domainname, "(none)") && look_ns_is_initial("uts", LOOK_NS_UTS))
                probe_reached(r, u.domainname);
        else
                probe_stopped(r, 0, "none, or its own");
}

static void info_hostname_files(const struct probe_canaries *c, struct probe_result *r) {
        if (!c->hostname[0])
                probe_absent(r, "the host's was not given");
        else if (look_has("/etc/hostname", c->hostname) || look_has("/etc/hosts", c->hostname))
                probe_reached(r, "the host's");
        else
                probe_stopped(r, 0, "not there");
}

static void info_uts_ns(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (look_ns_is_initial("uts", LOOK_NS_UTS))
                probe_reached(r, "the first one");
        else
                probe_stopped(r, 0, "another");
}

static void id_file(struct probe_result *r, const char *path, const char *hosts) {
        char text[128];
        ssize_t n = look_read(path, text, sizeof(text));

        if (n < 0)
                probe_judge(r, n, "");
        else
                same_text(r, text, hosts);
}

static void info_machine_id(const struct probe_canaries *c, struct probe_result *r) {
        id_file(r, "/etc/machine-id", c->machine_id);
}

static void info_machine_id_dbus(const struct probe_canaries *c, struct probe_result *r) {
        id_file(r, "/var/lib/dbus/machine-id", c->machine_id);
}

static void info_boot_id(const struct probe_canaries *c, struct probe_result *r) {
        id_file(r, "/proc/sys/kernel/random/boot_id", c->boot_id);
}

static void info_serial(const struct probe_canaries *c, struct probe_result *r) {
        int ret = look_open("/sys/class/dmi/id/product_uuid", O_RDONLY);

        (void) c;
        if (ret == -ENOENT)
                ret = look_open("/sys/firmware/devicetree/base/serial-number", O_RDONLY);
        probe_judge(r, ret, "");
}

static bool on_card(const char *dir, const char *name, void *arg) {
        char path[80], text[32];

        (void) snprintf(path, sizeof(path), "%.30s/%.30s/address", dir, name);
        if (str_eq(name, "lo") || look_read(path, text, sizeof(text)) <= 0)
                return false;
        probe_reached(arg, name);
        return true;
}

static void info_mac(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (!look_each("/sys/class/net", on_card, r))
                probe_stopped(r, 0, "none");
}

static void info_memory(const struct probe_canaries *c, struct probe_result *r) {
        char text[64];
        ssize_t n = look_read("/proc/meminfo", text, sizeof(text));

        (void) c;
        if (n < 0) {
                probe_judge(r, n, "");
                return;
        }
        text[strcspn(text, "\n")] = '\0';
        look_accepted(r, "programs need /proc/meminfo; it is the host's");
}

static void info_cpus(const struct probe_canaries *c, struct probe_result *r) {
        cpu_set_t set;
        char note[64];

        (void) c;
        CPU_ZERO(&set);
        if (sched_getaffinity(0, sizeof(set), &set) < 0) {
                probe_stopped(r, errno, "");
                return;
        }
        (void) snprintf(note, sizeof(note), "%d; programs size their thread pools by it", CPU_COUNT(&set));
        look_accepted(r, note);
}

static void info_uptime(const struct probe_canaries *c, struct probe_result *r) {
        int ret = look_open("/proc/self/ns/time", O_RDONLY);

        (void) c;
        if (ret == -ENOENT)
                probe_absent(r, "this kernel has no time namespaces");
        else if (look_ns_is_initial("time", LOOK_NS_TIME))
                probe_reached(r, "the clock of the host's boot");
        else
                probe_stopped(r, 0, "a time namespace of its own");
}

static void info_idle(const struct probe_canaries *c, struct probe_result *r) {
        int ret = look_open("/proc/uptime", O_RDONLY);

        (void) c;
        if (ret < 0)
                probe_judge(r, ret, "");
        else
                look_accepted(r, "the second number of /proc/uptime is the host's; programs read the file");
}

static bool on_user(char *line, void *arg) {
        char *end = strchr(line, ':');

        if (!end)
                return false;
        *end = '\0';
        if (!line[0] || str_eq(line, "root") || str_eq(line, "user") || str_eq(line, "nobody"))
                return false;
        probe_reached(arg, line);
        return true;
}

static void info_users(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (!look_each_line("/etc/passwd", on_user, r))
                probe_stopped(r, 0, "root, user and nobody at most");
}

static void info_release(const struct probe_canaries *c, struct probe_result *r) {
        struct utsname u = { 0 };

        (void) c;
        (void) uname(&u);
        look_accepted(r, u.release);
}

static void info_vulnerabilities(const struct probe_canaries *c, struct probe_result *r) {
        int ret = look_open("/sys/devices/system/cpu/vulnerabilities", O_RDONLY | O_DIRECTORY);

        (void) c;
        if (ret < 0)
                probe_judge(r, ret, "");
        else
                look_accepted(r, "listed; /proc/cpuinfo tells the same");
}

/* One word is a name; more are arguments. */
static void info_argv_init(const struct probe_canaries *c, struct probe_result *r) {
        char text[512];
        ssize_t n = look_read("/proc/1/cmdline", text, sizeof(text));

        (void) c;
        if (n < 0)
                probe_judge(r, n, "");
        else if (n > 0 && strlen(text) + 1 < (size_t) n)
                probe_reached(r, text);
        else
                probe_stopped(r, 0, n > 0 ? text : "empty");
}

static bool on_cmdline(pid_t pid, void *arg) {
        char path[40], text[100];

        (void) snprintf(path, sizeof(path), "/proc/%d/cmdline", (int) pid);
        if (pid == 1 || !is_foreign(pid) || look_read(path, text, sizeof(text)) <= 0)
                return false;
        probe_reached(arg, text);
        return true;
}

static void info_argv_others(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        if (!look_each_pid(on_cmdline, r))
                probe_stopped(r, 0, "none");
}

static void info_argv_host(const struct probe_canaries *c, struct probe_result *r) {
        char path[40], text[100];
        ssize_t n;

        if (c->pid <= 0) {
                probe_absent(r, "no host process given");
                return;
        }
        if (!is_foreign(c->pid)) {
                probe_stopped(r, 0, "the number is one of ours here");
                return;
        }
        (void) snprintf(path, sizeof(path), "/proc/%d/cmdline", c->pid);
        n = look_read(path, text, sizeof(text));
        look_judge(r, n, "");
}

static bool on_cmdline_text(pid_t pid, void *arg) {
        char path[40];

        (void) snprintf(path, sizeof(path), "/proc/%d/cmdline", (int) pid);
        return is_foreign(pid) && pid != 1 && look_has(path, arg);
}

static void info_argv_canary(const struct probe_canaries *c, struct probe_result *r) {
        char text[64];

        if (!c->text[0] || str_copy(text, sizeof(text), c->text) < 0)
                probe_absent(r, "no canary given");
        else if (look_each_pid(on_cmdline_text, text))
                probe_reached(r, "in a command line");
        else
                probe_stopped(r, 0, "nowhere");
}

static bool on_left(const char *dir, const char *name, void *arg) {
        (void) dir;
        probe_reached(arg, name);
        return true;
}

static void dir_left(struct probe_result *r, const char *dir) {
        int ret = look_open(dir, O_RDONLY | O_DIRECTORY);

        if (ret < 0)
                probe_judge(r, ret, "");
        else if (!look_each(dir, on_left, r))
                probe_stopped(r, 0, "empty");
}

#define DIR_LEFT(fn, dir)                                                                                              \
        static void fn(const struct probe_canaries *c, struct probe_result *r) {                                       \
                (void) c;                                                                                              \
                dir_left(r, dir);                                                                                      \
        }

DIR_LEFT(left_tmp, "/tmp")
DIR_LEFT(left_var_tmp, "/var/tmp")
DIR_LEFT(left_run, "/run")
DIR_LEFT(left_shm, "/dev/shm")

const struct probe_attempt probe_info[] = {
        { "J01a", PROBE_HIGH, "secrets in the environment", "careless inheritance", info_env_secrets },
        { "J01b", PROBE_HIGH, "canary text in the environment", "careless inheritance", info_env_canary },
        { "J01c", PROBE_LOW, "the caller's session in the environment", "careless inheritance", info_env_session },
        { "J01d", PROBE_MED, "loader variables in the environment", "careless inheritance", info_env_loader },
        { "J01e", PROBE_HIGH, "environment of every other process", "/proc/N/environ", info_env_others },
        { "J02a", PROBE_LOW, "host name", "", info_hostname },
        { "J02b", PROBE_LOW, "domain name", "", info_domainname },
        { "J02c", PROBE_LOW, "host name in /etc/hostname or /etc/hosts", "", info_hostname_files },
        { "J02d", PROBE_LOW, "in the UTS namespace of the host", "no uts namespace", info_uts_ns },
        { "J03a", PROBE_LOW, "machine id in /etc", "tenant correlation", info_machine_id },
        { "J03b", PROBE_LOW, "machine id of D-Bus", "tenant correlation", info_machine_id_dbus },
        { "J03c", PROBE_LOW, "boot id", "tenant correlation", info_boot_id },
        { "J03d", PROBE_LOW, "serial number of the machine", "tenant correlation", info_serial },
        { "J03e", PROBE_LOW, "hardware addresses of network cards", "tenant correlation", info_mac },
        { "J04a", PROBE_LOW, "memory size of the host", "fingerprint", info_memory },
        { "J04b", PROBE_LOW, "CPU count of the host", "fingerprint", info_cpus },
        { "J04c", PROBE_LOW, "uptime of the host", "no time namespace", info_uptime },
        { "J04d", PROBE_LOW, "idle time of the host in /proc/uptime", "fingerprint", info_idle },
        { "J05a", PROBE_HIGH, "read /etc/shadow", "host data", system_etc_shadow },
        { "J05b", PROBE_HIGH, "read /etc/gshadow", "host data", system_etc_gshadow },
        { "J05c", PROBE_MED, "read /etc/sudoers", "host data", system_etc_sudoers },
        { "J05d", PROBE_HIGH, "read /etc/ssh/ssh_host_ed25519_key", "host data", system_etc_ssh_ssh_host_ed25519_key },
        { "J05e", PROBE_HIGH, "read /etc/ssh/ssh_host_rsa_key", "host data", system_etc_ssh_ssh_host_rsa_key },
        { "J05f", PROBE_MED, "users of the host in /etc/passwd", "host data", info_users },
        { "J05g", PROBE_HIGH, ".ssh/id_rsa in every home", "host data", home_ssh_id_rsa },
        { "J05h", PROBE_HIGH, ".ssh/id_ed25519 in every home", "host data", home_ssh_id_ed25519 },
        { "J05i", PROBE_HIGH, ".ssh/authorized_keys in every home", "host data", home_ssh_authorized_keys },
        { "J05j", PROBE_MED, ".ssh/known_hosts in every home", "host data", home_ssh_known_hosts },
        { "J05k", PROBE_HIGH, ".aws/credentials in every home", "host data", home_aws_credentials },
        { "J05l", PROBE_HIGH, ".config/gcloud/credentials.db in every home", "host data",
          home_config_gcloud_credentials_db },
        { "J05m", PROBE_HIGH, ".azure/msal_token_cache.json in every home", "host data",
          home_azure_msal_token_cache_json },
        { "J05n", PROBE_HIGH, ".kube/config in every home", "host data", home_kube_config },
        { "J05o", PROBE_HIGH, ".docker/config.json in every home", "host data", home_docker_config_json },
        { "J05p", PROBE_HIGH, ".netrc in every home", "host data", home_netrc },
        { "J05q", PROBE_HIGH, ".git-credentials in every home", "host data", home_git_credentials },
        { "J05r", PROBE_MED, ".gitconfig in every home", "host data", home_gitconfig },
        { "J05s", PROBE_HIGH, ".config/gh/hosts.yml in every home", "host data", home_config_gh_hosts_yml },
        { "J05t", PROBE_HIGH, ".npmrc in every home", "host data", home_npmrc },
        { "J05u", PROBE_HIGH, ".pypirc in every home", "host data", home_pypirc },
        { "J05v", PROBE_HIGH, ".gnupg in every home", "host data", home_gnupg },
        { "J05w", PROBE_HIGH, ".vault-token in every home", "host data", home_vault_token },
        { "J05x", PROBE_MED, ".bash_history in every home", "host data", home_bash_history },
        { "J05y", PROBE_MED, ".zsh_history in every home", "host data", home_zsh_history },
        { "J05z", PROBE_MED, ".python_history in every home", "host data", home_python_history },
        { "J06a", PROBE_LOW, "kernel release", "exploit choice", info_release },
        { "J06b", PROBE_LOW, "CPU vulnerability list", "exploit choice", info_vulnerabilities },
        { "J07a", PROBE_HIGH, "arguments of pid 1", "secrets on command lines", info_argv_init },
        { "J07b", PROBE_HIGH, "arguments of processes that are not ours", "secrets on command lines",
          info_argv_others },
        { "J07c", PROBE_HIGH, "arguments of the host process", "secrets on command lines", info_argv_host },
        { "J07d", PROBE_HIGH, "canary text in any command line", "secrets on command lines", info_argv_canary },
        { "J14a", PROBE_HIGH, "files of an earlier run in /tmp", "persistence", left_tmp },
        { "J14b", PROBE_HIGH, "files of an earlier run in /var/tmp", "persistence", left_var_tmp },
        { "J14c", PROBE_MED, "files of others in /run", "persistence", left_run },
        { "J15a", PROBE_HIGH, "files of an earlier run in /dev/shm", "cross-job leak", left_shm },
        { "J18a", PROBE_HIGH, ".password-store in every home", "host data", home_password_store },
        { "J18b", PROBE_HIGH, ".local/share/keyrings in every home", "host data", home_local_share_keyrings },
        { "J18c", PROBE_HIGH, ".cargo/credentials.toml in every home", "host data", home_cargo_credentials_toml },
        { "J18d", PROBE_MED, ".mozilla in every home", "host data", home_mozilla },
        { "J18e", PROBE_MED, ".config/google-chrome in every home", "host data", home_config_google_chrome },
        { "J18f", PROBE_MED, ".bashrc in every home", "host data", home_bashrc },
        { "J19a", PROBE_HIGH, "read /etc/ssl/private", "host data", system_etc_ssl_private },
        { "J19b", PROBE_HIGH, "read /etc/letsencrypt/live", "host data", system_etc_letsencrypt_live },
        { "J19c", PROBE_HIGH, "read /etc/wireguard", "host data", system_etc_wireguard },
        { "J19d", PROBE_HIGH, "read /etc/krb5.keytab", "host data", system_etc_krb5_keytab },
        { "J19e", PROBE_HIGH, "read /etc/kubernetes/admin.conf", "host data", system_etc_kubernetes_admin_conf },
        { "J19f", PROBE_CRIT, "read /var/run/secrets/kubernetes.io/serviceaccount/token", "host data",
          system_var_run_secrets_kubernetes_io_serviceaccount_token },
        { "J19g", PROBE_HIGH, "read /run/secrets", "host data", system_run_secrets },
        { "J19h", PROBE_MED, "read /var/log/auth.log", "host data", system_var_log_auth_log },
        { "J19i", PROBE_MED, "read /var/log/syslog", "host data", system_var_log_syslog },
        { "J19j", PROBE_MED, "read /var/log/journal", "host data", system_var_log_journal },
        { "J19k", PROBE_HIGH, "read /var/lib/docker", "host data", system_var_lib_docker },
        { "J19l", PROBE_MED, "read /var/spool/cron", "host data", system_var_spool_cron },
        { "J19m", PROBE_MED, "read /var/mail", "host data", system_var_mail },
        { "J19n", PROBE_HIGH, "read /var/lib/cloud/instance/user-data.txt", "host data",
          system_var_lib_cloud_instance_user_data_txt },
        { "J19o", PROBE_HIGH, "read /run/cloud-init/instance-data.json", "host data",
          system_run_cloud_init_instance_data_json },
        { "J19p", PROBE_LOW, "read /etc/fstab", "host data", system_etc_fstab },
        { "J19q", PROBE_LOW, "read /var/lib/dpkg/status", "host data", system_var_lib_dpkg_status },
        { 0 },
};
