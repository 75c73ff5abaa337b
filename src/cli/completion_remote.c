/*
 * completion_remote.c - completion of the sub-commands against a server, from their table of words. Names of sandboxes
 * are asked for when they are needed; without a server nothing is offered.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/remote.h"

static bool wants_file(const struct remote_option *o) {
        return o->value && str_eq(o->value, "FILE");
}

/* Calls fn for the sub-command's own options and for those that all have. */
static void each(const struct remote_verb *v, void (*fn)(const struct remote_verb *v, const struct remote_option *o)) {
        for (size_t i = 0; i < v->n_options; i++)
                fn(v, &v->options[i]);
        for (size_t i = 0; i < remote_n_usual; i++)
                fn(v, &remote_usual[i]);
}

static void print_names(const struct remote_option *o) {
        if (o->key < 256)
                (void) printf("-%c ", o->key);
        (void) printf("--%s ", o->name);
}

static void bash_any(const struct remote_verb *v, const struct remote_option *o) {
        (void) v;
        print_names(o);
}

static void bash_file(const struct remote_verb *v, const struct remote_option *o) {
        (void) v;
        if (wants_file(o))
                print_names(o);
}

static void bash_word(const struct remote_verb *v, const struct remote_option *o) {
        (void) v;
        if (o->value && !wants_file(o))
                print_names(o);
}

void completion_remote_bash(void) {
        for (size_t i = 0; i < remote_n_verbs; i++) {
                const struct remote_verb *v = &remote_verbs[i];

                (void) printf("    %s) _gabion_remote \"", v->name);
                each(v, bash_any);
                (void) printf("\" \" ");
                each(v, bash_file);
                (void) printf("\" \" ");
                each(v, bash_word);
                (void) printf("\" \"%s\" ;;\n", str_eq(v->name, "cp") ? "files" : v->takes_sandbox ? "names" : "");
        }
}

void completion_remote_bash_function(void) {
        (void) printf("_gabion_remote() {\n"
                      "    local prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                      "    case \"$2\" in *\" $prev \"*) _gabion_files; return ;; esac\n"
                      "    case \"$3\" in *\" $prev \"*) return ;; esac\n"
                      "    case $cur:$4 in\n"
                      "    -*) _gabion_words \"$1\" ;;\n"
                      "    *:names) _gabion_words \"$(gabion ps --names 2>/dev/null)\" ;;\n"
                      "    *:files) compopt -o filenames -o nospace 2>/dev/null\n"
                      "        _gabion_from -f -W \"$(gabion ps --names 2>/dev/null | sed 's/$/:/')\" ;;\n"
                      "    esac\n"
                      "}\n\n");
}

/* What a shell would not read as something else. */
static void print_what(const char *text) {
        (void) printf("%.*s", (int) strcspn(text, "'\"()[]:;"), text);
}

static void zsh_option(const struct remote_verb *v, const struct remote_option *o) {
        (void) v;
        (void) printf("'*--%s%s[", o->name, o->value ? "=" : "");
        print_what(o->what);
        (void) printf("]%s%s%s' ", o->value ? ":" : "", o->value ? o->name : "",
                      !o->value       ? ""
                      : wants_file(o) ? ":_files"
                                      : ": ");
        if (o->key < 256) {
                (void) printf("'*-%c%s[", o->key, o->value ? "+" : "");
                print_what(o->what);
                (void) printf("]%s%s%s' ", o->value ? ":" : "", o->value ? o->name : "", o->value ? ": " : "");
        }
}

void completion_remote_zsh(void) {
        for (size_t i = 0; i < remote_n_verbs; i++) {
                const struct remote_verb *v = &remote_verbs[i];

                (void) printf("    %s) _arguments -s ", v->name);
                each(v, zsh_option);
                if (str_eq(v->name, "cp"))
                        (void) printf(
                                "'*:file:{ compadd -S : -- ${(f)\"$(gabion ps --names 2>/dev/null)\"}; _files }' ");
                else if (v->takes_sandbox)
                        (void) printf("'*:sandbox:{ compadd -- ${(f)\"$(gabion ps --names 2>/dev/null)\"} }' ");
                (void) printf(";;\n");
        }
}

static void fish_option(const struct remote_verb *v, const struct remote_option *o) {
        (void) printf("complete -c gabion -n '__fish_seen_subcommand_from %s' -l %s", v->name, o->name);
        if (o->key < 256)
                (void) printf(" -s %c", o->key);
        (void) printf("%s -d '", !o->value ? "" : wants_file(o) ? " -r -F" : " -x");
        print_what(o->what);
        (void) printf("'\n");
}

void completion_remote_fish(void) {
        for (size_t i = 0; i < remote_n_verbs; i++) {
                const struct remote_verb *v = &remote_verbs[i];

                each(v, fish_option);
                if (v->takes_sandbox)
                        (void) printf(
                                "complete -c gabion -n '__fish_seen_subcommand_from %s'%s -a '(gabion ps --names 2>/dev/null)'\n",
                                v->name, str_eq(v->name, "cp") ? " -F" : "");
        }
}
