/* test_net_packages.c - preset packages: what the files of package clients say, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "net_help.h"
#include "policy/net_packages.h"
#include "policy/net_rules.h"

/* "HOST PORTS; ..." of the allow rules. */
static void rules_text(const struct policy_net *net, char *dst, size_t cap) {
        size_t n = 0;

        dst[0] = '\0';
        for (size_t i = 0; i < net->allow.n; i++) {
                char host[HOST_NAME + 4];

                net_rule_text(&net->allow.at[i], host);
                assert_int_equal(net->allow.at[i].n_ports, 1);
                n += (size_t) snprintf(dst + n, cap - n, "%s%s %u", i > 0 ? "; " : "", host,
                                       net->allow.at[i].ports[0].first);
        }
}

static void finds(enum net_client client, const char *text, const char *want) {
        CLEANUP(net_freep) struct policy_net *net = net_new();
        struct err err = { 0 };
        char got[1024];
        int r = net_packages_text(net, client, "f", text, &err);

        if (r < 0 && r != -ENOENT)
                fail_msg("%s", err.msg);
        rules_text(net, got, sizeof(got));
        assert_string_equal(got, want);
}

static void apt_lists(void **state) {
        (void) state;
        finds(NET_APT_LIST,
              "# deb http://no.example/ x main\n"
              "deb http://a.example/debian bookworm main # deb http://no.example/\n"
              "deb-src http://a.example/debian bookworm main\n"
              "  deb [arch=amd64 signed-by=/usr/share/k.gpg] https://b.example:8443/apt stable main\n"
              "deb\thttps://user:p@ss@c.example/apt x\n"
              "debug http://no.example/ x\n"
              "deb cdrom:[Debian]/ bookworm main\ndeb file:///srv/mirror x main\ndeb mirror+file:/etc/m x\n"
              "deb http://*.d.example/ x\ndeb http:// x\ndeb http://no.example:1-99/ x\ndeb http://192.0.2.9/ x\ndeb https://[2001:db8::9]:444/ x\n",
              "a.example 80; b.example 8443; c.example 443; 192.0.2.9/32 80; 2001:db8::9/128 444");
        finds(NET_APT_LIST, "", "");
        finds(NET_APT_LIST, "deb http://A.Example.:80/x y", "a.example 80");
}

static void apt_sources(void **state) {
        (void) state;
        finds(NET_APT_SOURCES,
              "Types: deb deb-src\n# URIs: http://no.example\nURIs: http://a.example/debian\n  https://b.example/debian\n"
              "Suites: x\n\n"
              "Enabled: no\nTypes: deb\nURIs: http://off.example/\n\n"
              "uris: https://c.example/\nEnabled: yes\n",
              "a.example 80; b.example 443; c.example 443");
        finds(NET_APT_SOURCES, "URIs: http://off.example/\nEnabled: no", "");
        finds(NET_APT_SOURCES, " http://no.example/\nSuites:\n https://no.example/\n", "");
}

static void pip_files(void **state) {
        (void) state;
        finds(NET_PIP,
              "[global]\nindex-url = https://u:secret@a.example/simple\nextra-index-url =\n    https://b.example/simple\n"
              "    https://c.example:8080/simple ; https://no.example\ntimeout = 60\n[install]\nindex_url: http://d.example\n"
              "trusted-host = no.example\nproxy = http://no.example:3128\n",
              "a.example 443; b.example 443; c.example 8080; d.example 80");
}

static void npm_files(void **state) {
        (void) state;
        finds(NET_NPM,
              "; registry=https://no.example\nregistry=https://a.example/npm/\n@corp:registry = \"https://b.example\"\n"
              "//no.example/:_authToken=x\nproxy=http://no.example\n@x:registry=https://${HOST}/\n",
              "a.example 443; b.example 443");
}

static void go_and_cargo_files(void **state) {
        (void) state;
        finds(NET_GO, "GOPROXY=https://a.example,https://b.example|direct\nGONOSUMDB=https://no.example\n",
              "a.example 443; b.example 443");
        finds(NET_GO, "GOPROXY=off\n", "");
        finds(NET_CARGO,
              "[registries.corp]\nindex = \"sparse+https://a.example/index/\" # https://no.example\n"
              "[source.mirror]\n  registry = 'https://b.example/git'\n[http]\nproxy = \"http://no.example\"\n"
              "[source.crates-io]\nreplace-with = \"mirror\"\n[net]\nregistries.x.index = \"https://no.example\"\n",
              "a.example 443; b.example 443");
        finds(NET_CARGO, "registries.x.index = \"https://c.example\"\n[registry]\nindex = \"https://no.example\"\n",
              "c.example 443");
}

static void what_is_left_out_is_noted(void **state) {
        CLEANUP(net_freep) struct policy_net *net = net_new();
        struct err err = { 0 };

        (void) state;
        assert_int_equal(
                net_packages_text(net, NET_PIP, "/etc/pip.conf",
                                  "index-url = https://u:secret@a.example/x\n\nextra-index-url = ftp://x.example/\n",
                                  &err),
                0);
        assert_int_equal(net->n_notes, 2);
        assert_string_equal(net->notes[0], "pip: /etc/pip.conf:1: a.example, port 443");
        assert_string_equal(net->notes[1], "pip: /etc/pip.conf:3: left out: not an http or https URL of a host");
        assert_int_equal(net_packages_value(net, NET_GO, "$GOPROXY", "https://b.example", &err), 0);
        assert_string_equal(net->notes[2], "go: $GOPROXY: b.example, port 443");
}

static void long_lines_and_many_registries_are_errors(void **state) {
        CLEANUP(net_freep) struct policy_net *net = net_new();
        char text[8192] = "deb http://a.example/";
        struct err err = { 0 };
        size_t n = 0;

        (void) state;
        memset(text + 21, 'x', 4000);
        assert_int_equal(net_packages_text(net, NET_APT_LIST, "f", text, &err), -E2BIG);
        assert_string_equal(err.msg, "f:1: the line is too long");
        for (int i = 0; i < 257; i++)
                n += (size_t) snprintf(text + n, sizeof(text) - n, "deb http://a%d.example/ x\n", i);
        assert_int_equal(net_packages_text(net, NET_APT_LIST, "f", text, &err), -E2BIG);
        assert_string_equal(err.msg, "at most 256 rules");
}

/* --- a whole machine --- */

static char root[64];
static const char *const folders[] = { "etc",         "etc/apt",      "etc/apt/sources.list.d", "home",
                                       "home/.cargo", "home/.config", "home/.config/go" };
static const struct {
        const char *name, *text;
} files[] = {
        { "etc/apt/sources.list", "deb http://apt1.example/ x main\n" },
        { "etc/apt/sources.list.d/b.list", "deb http://apt3.example/ x main\n" },
        { "etc/apt/sources.list.d/a.sources", "URIs: http://apt2.example/\n" },
        { "etc/apt/sources.list.d/c.list.disabled", "deb http://no.example/ x main\n" },
        { "home/.npmrc", "registry=https://npm.example/\n" },
        { "home/.cargo/config.toml", "[registries.a]\nindex = \"https://cargo.example\"\n" },
        { "home/.config/go/env", "GOPROXY=https://go.example\n" },
};

static void path_of(const char *name, char dst[128]) {
        (void) snprintf(dst, 128, "%s/%s", root, name);
}

static int setup(void **state) {
        char path[128];

        (void) state;
        (void) snprintf(root, sizeof(root), "/tmp/gabion-packages-XXXXXX");
        if (!mkdtemp(root))
                return -1;
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                path_of(folders[i], path);
                if (mkdir(path, 0700) < 0)
                        return -1;
        }
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                path_of(files[i].name, path);
                AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

                if (fd < 0 || fd_write_all(fd, files[i].text, strlen(files[i].text)) < 0)
                        return -1;
        }
        return 0;
}

static int teardown(void **state) {
        char path[128];

        (void) state;
        path_of("etc/pip.conf", path);
        (void) unlink(path);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                path_of(files[i].name, path);
                (void) unlink(path);
        }
        for (size_t i = ARRAY_SIZE(folders); i > 0; i--) {
                path_of(folders[i - 1], path);
                (void) rmdir(path);
        }
        return rmdir(root);
}

static const char *no_env(const char *name) {
        (void) name;
        return "";
}

static const char *some_env(const char *name) {
        return str_eq(name, "PIP_INDEX_URL") ? "https://pip.example/simple" : str_eq(name, "GOPROXY") ? "direct" : "";
}

static void the_machine_is_read(void **state) {
        static struct policy p;
        struct policy_packages from = { root, "/home", some_env };
        CLEANUP(json_freep) struct json *notes = NULL;
        char got[512], hash[HASH_TEXT], again[HASH_TEXT], note[256], path[128];
        struct err err = { 0 };

        (void) state;
        net_accept(" {preset: packages}", &p);
        assert_int_equal(policy_hash(&p, hash, &err), -EINVAL);
        assert_int_equal(policy_net_expand(&p, &from, &err), 0);
        rules_text(p.net, got, sizeof(got));
        assert_string_equal(got, "apt1.example 80; apt2.example 80; apt3.example 80; pip.example 443; npm.example 443; "
                                 "cargo.example 443"); /* GOPROXY=direct replaces the file */
        assert_int_equal(policy_hash(&p, hash, &err), 0);
        assert_int_equal(policy_net_expand(&p, &from, &err), 0); /* once */
        assert_int_equal(policy_hash(&p, again, &err), 0);
        assert_string_equal(hash, again);
        policy_done(&p);

        from.env = no_env;
        net_accept(" {preset: packages, allow: [{host: own.example, ports: [1]}, {host: npm.example, ports: [443]}]}",
                   &p);
        path_of("etc/pip.conf", path);
        assert_int_equal(mkfifo(path, 0600), 0); /* must not block */
        assert_int_equal(policy_net_expand(&p, &from, &err), 0);
        rules_text(p.net, got, sizeof(got));
        assert_string_equal(got, "own.example 1; npm.example 443; apt1.example 80; apt2.example 80; apt3.example 80; "
                                 "go.example 443; cargo.example 443");
        notes = policy_net_notes(&p);
        (void) field_text(json_at(notes, 3), note, sizeof(note));
        assert_non_null(strstr(note, "/etc/pip.conf: cannot be read"));
        (void) field_text(json_at(notes, 4), note, sizeof(note));
        assert_string_equal(note, "pip: nothing is configured");
        policy_done(&p);
}

static void without_the_preset_nothing_is_read(void **state) {
        static struct policy p;
        struct policy_packages from = { root, "/home", some_env };
        struct err err = { 0 };

        (void) state;
        net_accept(" {allow: [{host: a.example, ports: [1]}]}", &p);
        assert_int_equal(policy_net_expand(&p, &from, &err), 0);
        assert_int_equal(p.net->allow.n, 1);
        policy_done(&p);
        policy_default(&p);
        assert_int_equal(policy_net_expand(&p, &from, &err), 0);
        assert_null(p.net);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(apt_lists),
                cmocka_unit_test(apt_sources),
                cmocka_unit_test(pip_files),
                cmocka_unit_test(npm_files),
                cmocka_unit_test(go_and_cargo_files),
                cmocka_unit_test(what_is_left_out_is_noted),
                cmocka_unit_test(long_lines_and_many_registries_are_errors),
                cmocka_unit_test_setup_teardown(the_machine_is_read, setup, teardown),
                cmocka_unit_test_setup_teardown(without_the_preset_nothing_is_read, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
