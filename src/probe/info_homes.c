/*
 * info_homes.c - files of the host's system and of its users' homes that hold secrets or tell about people.
 *
 * Invariant: files are opened for reading and closed; their contents are never read, so they cannot get into a report.
 */
#include "probe/info_homes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "probe/files_look.h"
#include "probe/probe.h"

extern char **environ;

#define SYSTEM_FILE(fn, path)                                                                                          \
        void fn(const struct probe_canaries *c, struct probe_result *r) {                                              \
                (void) c;                                                                                              \
                probe_judge(r, look_open(path, O_RDONLY), "");                                                         \
        }

SYSTEM_FILE(system_etc_shadow, "/etc/shadow")
SYSTEM_FILE(system_etc_gshadow, "/etc/gshadow")
SYSTEM_FILE(system_etc_sudoers, "/etc/sudoers")
SYSTEM_FILE(system_etc_ssh_ssh_host_ed25519_key, "/etc/ssh/ssh_host_ed25519_key")
SYSTEM_FILE(system_etc_ssh_ssh_host_rsa_key, "/etc/ssh/ssh_host_rsa_key")
SYSTEM_FILE(system_etc_ssl_private, "/etc/ssl/private")
SYSTEM_FILE(system_etc_letsencrypt_live, "/etc/letsencrypt/live")
SYSTEM_FILE(system_etc_wireguard, "/etc/wireguard")
SYSTEM_FILE(system_etc_krb5_keytab, "/etc/krb5.keytab")
SYSTEM_FILE(system_etc_kubernetes_admin_conf, "/etc/kubernetes/admin.conf")
SYSTEM_FILE(system_var_run_secrets_kubernetes_io_serviceaccount_token,
            "/var/run/secrets/kubernetes.io/serviceaccount/token")
SYSTEM_FILE(system_run_secrets, "/run/secrets")
SYSTEM_FILE(system_var_log_auth_log, "/var/log/auth.log")
SYSTEM_FILE(system_var_log_syslog, "/var/log/syslog")
SYSTEM_FILE(system_var_log_journal, "/var/log/journal")
SYSTEM_FILE(system_var_lib_docker, "/var/lib/docker")
SYSTEM_FILE(system_var_spool_cron, "/var/spool/cron")
SYSTEM_FILE(system_var_mail, "/var/mail")
SYSTEM_FILE(system_var_lib_cloud_instance_user_data_txt, "/var/lib/cloud/instance/user-data.txt")
SYSTEM_FILE(system_run_cloud_init_instance_data_json, "/run/cloud-init/instance-data.json")
SYSTEM_FILE(system_etc_fstab, "/etc/fstab")
SYSTEM_FILE(system_var_lib_dpkg_status, "/var/lib/dpkg/status")

struct home_look {
        const char *file;
        int ret; /* the strongest answer so far */
        char where[100];
};

static bool home_try(const char *home, struct home_look *h) {
        char path[256];
        int ret;

        if (snprintf(path, sizeof(path), "%s/%s", home, h->file) >= (int) sizeof(path))
                return false;
        ret = look_open(path, O_RDONLY);
        if (ret == -ENOENT || ret == -ENOTDIR)
                return false;
        h->ret = ret;
        (void) snprintf(h->where, sizeof(h->where), "%.95s", path);
        return ret == 0;
}

static bool on_home(const char *dir, const char *name, void *arg) {
        char home[128];

        (void) snprintf(home, sizeof(home), "%.60s/%.60s", dir, name);
        return home_try(home, arg);
}

/* name:x:uid:gid:comment:home:shell */
static bool on_passwd(char *line, void *arg) {
        char *p = line, *end;

        for (int i = 0; i < 5 && p; i++) {
                p = strchr(p, ':');
                p = p ? p + 1 : NULL;
        }
        end = p ? strchr(p, ':') : NULL;
        if (!end)
                return false;
        *end = '\0';
        return home_try(p, arg);
}

static void home_file(struct probe_result *r, const char *file) {
        struct home_look h = { .file = file, .ret = -ENOENT };
        bool is_hit = home_try("/root", &h) || look_each("/home", on_home, &h) || look_each("/Users", on_home, &h) ||
                      look_each_line("/etc/passwd", on_passwd, &h);

        for (char **e = environ; *e && !is_hit; e++)
                if (str_has_prefix(*e, "HOME="))
                        is_hit = home_try(*e + strlen("HOME="), &h);
        probe_judge(r, h.ret, h.where);
}

#define HOME_FILE(fn, file)                                                                                            \
        void fn(const struct probe_canaries *c, struct probe_result *r) {                                              \
                (void) c;                                                                                              \
                home_file(r, file);                                                                                    \
        }

HOME_FILE(home_ssh_id_rsa, ".ssh/id_rsa")
HOME_FILE(home_ssh_id_ed25519, ".ssh/id_ed25519")
HOME_FILE(home_ssh_authorized_keys, ".ssh/authorized_keys")
HOME_FILE(home_ssh_known_hosts, ".ssh/known_hosts")
HOME_FILE(home_aws_credentials, ".aws/credentials")
HOME_FILE(home_config_gcloud_credentials_db, ".config/gcloud/credentials.db")
HOME_FILE(home_azure_msal_token_cache_json, ".azure/msal_token_cache.json")
HOME_FILE(home_kube_config, ".kube/config")
HOME_FILE(home_docker_config_json, ".docker/config.json")
HOME_FILE(home_netrc, ".netrc")
HOME_FILE(home_git_credentials, ".git-credentials")
HOME_FILE(home_gitconfig, ".gitconfig")
HOME_FILE(home_config_gh_hosts_yml, ".config/gh/hosts.yml")
HOME_FILE(home_npmrc, ".npmrc")
HOME_FILE(home_pypirc, ".pypirc")
HOME_FILE(home_gnupg, ".gnupg")
HOME_FILE(home_vault_token, ".vault-token")
HOME_FILE(home_bash_history, ".bash_history")
HOME_FILE(home_zsh_history, ".zsh_history")
HOME_FILE(home_python_history, ".python_history")
HOME_FILE(home_password_store, ".password-store")
HOME_FILE(home_local_share_keyrings, ".local/share/keyrings")
HOME_FILE(home_cargo_credentials_toml, ".cargo/credentials.toml")
HOME_FILE(home_mozilla, ".mozilla")
HOME_FILE(home_config_google_chrome, ".config/google-chrome")
HOME_FILE(home_bashrc, ".bashrc")
