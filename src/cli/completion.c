/*
 * completion.c - `gabion completion`: scripts for bash, zsh and fish, written from one table.
 *
 * Invariant: the table has every option of `gabion run --help` and every command of `gabion help`;
 * test/integration/test_completion.py compares them. Texts hold no quotes, colons or brackets, which shells would read.
 */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"

#define AUDIT_ACTIONS "tail show verify head export rotate-key check"
#define AUDIT_OPTIONS                                                                                                  \
        "--log --tenant --json --key --head --socket --format --to --cursor --follow --secret --headers --lines"

enum kind { SWITCH, WORD, FILE_NAME, VARIABLE, CHOICE, CHOICE_OR_FILE, MOUNT, OPTIONAL_FILE };

static const struct option_word {
        const char *name;
        char letter; /* 0 = none */
        enum kind kind;
        const char *what;
        const char *choices;
} options[] = {
        { "volume", 'v', MOUNT, "show a host directory or file inside", NULL },
        { "env", 'e', VARIABLE, "set a variable", NULL },
        { "workdir", 'w', WORD, "working directory inside", NULL },
        { "memory", 'm', WORD, "memory limit", NULL },
        { "cpus", 0, WORD, "CPU limit", NULL },
        { "pids", 0, WORD, "processes and threads", NULL },
        { "disk", 0, WORD, "files written inside", NULL },
        { "timeout", 0, WORD, "end the command after this time", NULL },
        { "output", 0, WORD, "output limit", NULL },
        { "io", 0, WORD, "disk throughput per second", NULL },
        { "files", 0, WORD, "open files of one process", NULL },
        { "tty", 't', SWITCH, "give the command a terminal", NULL },
        { "interactive", 'i', SWITCH, "keep standard input open", NULL },
        { "no-stdin", 0, SWITCH, "standard input is empty", NULL },
        { "name", 0, WORD, "name of the sandbox", NULL },
        { "policy", 0, FILE_NAME, "policy file", NULL },
        { "net", 0, CHOICE_OR_FILE, "what may be reached", "none public packages" },
        { "allow", 0, WORD, "allow a name or address", NULL },
        { "ceiling", 0, FILE_NAME, "limits of the network policy", NULL },
        { "resolve", 0, WORD, "a name that leads elsewhere", NULL },
        { "upstream-proxy", 0, WORD, "go out through a proxy", NULL },
        { "bind", 0, WORD, "source address of outgoing connections", NULL },
        { "ca-bundle", 0, FILE_NAME, "certificates to trust", NULL },
        { "egress-log", 0, FILE_NAME, "log of every connection attempt", NULL },
        { "template", 0, CHOICE, "root file system", "host" },
        { "user", 0, CHOICE, "who runs the command inside", "user root" },
        { "syscalls", 0, CHOICE, "system-call profile", "agent strict debug" },
        { "json", 0, OPTIONAL_FILE, "print the result as JSON", NULL },
        { "evidence", 0, FILE_NAME, "write what was read back from the kernel", NULL },
        { "show-evidence", 0, SWITCH, "show the evidence as a card", NULL },
        { "audit", 0, FILE_NAME, "record the run in a log or with a notary", NULL },
        { "tenant", 0, WORD, "whose chain of records it belongs to", NULL },
        { "limits", 0, CHOICE, "how limits are enforced", "cgroup rlimit" },
        { "off", 0, CHOICE, "do without a control that this machine lacks", "landlock io" },
        { "allow-sensitive-mounts", 0, SWITCH, "mount what is refused by default", NULL },
        { "quiet", 'q', SWITCH, "no lines about denials", NULL },
        { "rm", 0, SWITCH, "accepted, nothing is ever kept", NULL },
        { "help", 'h', SWITCH, "show help", NULL },
};

#define EXPLAIN_OPTIONS                                                                                                \
        "--host --port --method --path --address --policy --net --allow --resolve --ceiling --json --help"

#define SERVE_OPTIONS                                                                                                            \
        "--listen --certificate --certificate-key --data --key-file --user --domain --policy --ceiling --upstream-proxy --bind " \
        "--ca-bundle --resolve --pool --config --log --audit --audit-keep --run --keep --without-landlock --help"

static const struct {
        const char *name, *what;
} commands[] = {
        { "run", "run a command in a new sandbox" },
        { "plan", "show what a command would get" },
        { "policy", "check, explain, compare and update policies" },
        { "egress", "show what sandboxes tried to reach" },
        { "reach", "probe what a sandbox can reach" },
        { "prove", "attack a sandbox on this machine" },
        { "audit", "read, verify and export the audit log" },
        { "dossier", "everything about one sandbox in one signed file" },
        { "verify", "check a signed report or dossier" },
        { "serve", "make this machine a sandbox service" },
        { "create", "make a sandbox on a server" },
        { "exec", "run a command in a sandbox" },
        { "shell", "a terminal in a sandbox" },
        { "ps", "list sandboxes" },
        { "top", "what sandboxes use" },
        { "inspect", "everything about a sandbox" },
        { "logs", "what happened to a sandbox" },
        { "cp", "copy files to and from a sandbox" },
        { "port", "reach a port of a sandbox" },
        { "stop", "end sandboxes, commands first" },
        { "rm", "end sandboxes at once" },
        { "doctor", "check what this machine offers" },
        { "completion", "print a completion script" },
        { "version", "print the version" },
        { "help", "show help" },
};

static bool takes_next_word(const struct option_word *o) {
        return o->kind != SWITCH && o->kind != OPTIONAL_FILE;
}

static void bash_names(const struct option_word *o) {
        if (o->letter)
                (void) printf("-%c|", o->letter);
        (void) printf("--%s", o->name);
}

/* A `case` arm for the value of each option that has something to offer. */
static void bash_values(void) {
        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                const struct option_word *o = &options[i];

                if (o->kind == SWITCH || o->kind == WORD)
                        continue;
                (void) printf("    ");
                bash_names(o);
                if (o->kind == CHOICE)
                        (void) printf(") _gabion_words \"%s\" ;;\n", o->choices);
                else if (o->kind == CHOICE_OR_FILE)
                        (void) printf(") compopt -o filenames 2>/dev/null; _gabion_from -f -W \"%s\" ;;\n", o->choices);
                else
                        (void) printf(") %s ;;\n", o->kind == VARIABLE ? "_gabion_from -e" : "_gabion_files");
        }
}

/* The last part: which command is being completed. */
static void bash_commands(void) {
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                (void) printf("%s ", commands[i].name);
        (void) printf(
                "--help --version\"; return; fi\n"
                "    case ${COMP_WORDS[1]} in\n"
                "    run|plan) _gabion_run ;;\n"
                "    policy) _gabion_policy ;;\n"
                "    egress) _gabion_words \"log --follow --sandbox --denied --json --file --help\" ;;\n"
                "    reach|doctor) _gabion_words \"--json --help\" ;;\n"
                "    audit) case $COMP_CWORD in 2) _gabion_words \"" AUDIT_ACTIONS " --help\" ;;\n"
                "           *) case $cur in -*) _gabion_words \"" AUDIT_OPTIONS "\" ;; *) _gabion_files ;; esac ;;\n"
                "           esac ;;\n"
                "    dossier) case $cur in -*) _gabion_words \"--output --log --socket --tenant --help\" ;;\n"
                "             *) _gabion_files ;; esac ;;\n"
                "    verify) case $cur in -*) _gabion_words \"--key --help\" ;; *) _gabion_files ;; esac ;;\n"
                "    serve) case ${COMP_WORDS[COMP_CWORD-1]} in\n"
                "        --data|--key-file|--policy|--ceiling|--config|--run|--audit|--ca-bundle) _gabion_files ;;\n"
                "        --certificate|--certificate-key) _gabion_files ;;\n"
                "        --log) _gabion_words \"error warning info\" ;;\n"
                "        --listen|--user|--domain|--pool|--upstream-proxy|--bind|--resolve|--audit-keep) ;;\n"
                "        *) _gabion_words \"" SERVE_OPTIONS "\" ;; esac ;;\n"
                "    completion) _gabion_words \"bash zsh fish\" ;;\n");
        completion_remote_bash();
        (void) printf("    esac\n"
                      "}\n"
                      "complete -F _gabion gabion\n");
}

static void bash_script(void) {
        bool first = true;

        (void) printf("# bash completion for gabion; made by: gabion completion bash\n"
                      "_gabion_from() { mapfile -t COMPREPLY < <(compgen \"$@\" -- \"$cur\"); }\n"
                      "_gabion_words() { _gabion_from -W \"$1\"; }\n"
                      "_gabion_files() { compopt -o filenames 2>/dev/null; _gabion_from -f; }\n\n"
                      "_gabion_value() {\n    case $1 in\n");
        bash_values();
        /* bash cuts words at '=' and ':', so an option may be followed by either as a word of its own. */
        (void) printf("    esac\n}\n\n"
                      "_gabion_run() {\n"
                      "    local i=2 option= only_command=\n"
                      "    while [ \"$i\" -lt \"$COMP_CWORD\" ]; do\n"
                      "        case ${COMP_WORDS[i]} in\n"
                      "        --) only_command=1; i=$((i + 1)); break ;;\n        ");
        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                if (!takes_next_word(&options[i]))
                        continue;
                (void) printf("%s", first ? "" : "|");
                bash_names(&options[i]);
                first = false;
        }
        (void) printf(")\n            option=${COMP_WORDS[i]}; i=$((i + 2))\n"
                      "            [ \"${COMP_WORDS[i - 1]}\" != = ] || i=$((i + 1)) ;;\n"
                      "        -*) option=${COMP_WORDS[i]}; i=$((i + 1)) ;;\n"
                      "        =|:) i=$((i + 2)) ;;\n"
                      "        *) break ;;\n"
                      "        esac\n"
                      "    done\n"
                      "    case $cur in =|:) [ \"$i\" -le \"$COMP_CWORD\" ] || cur= ;; esac\n"
                      "    if [ \"$i\" -lt \"$COMP_CWORD\" ]; then _gabion_files\n"
                      "    elif [ \"$i\" -gt \"$COMP_CWORD\" ]; then _gabion_value \"$option\"\n"
                      "    elif [ -z \"$only_command\" ] && [ \"${cur#-}\" != \"$cur\" ]; then\n"
                      "        _gabion_words \"");
        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                if (options[i].letter)
                        (void) printf("-%c ", options[i].letter);
                (void) printf("--%s%s", options[i].name, i + 1 < ARRAY_SIZE(options) ? " " : "");
        }
        (void) printf(
                "\"\n    else _gabion_from -c\n    fi\n}\n\n"
                "_gabion_policy() {\n"
                "    if [ \"$COMP_CWORD\" -eq 2 ]; then _gabion_words \"check explain diff show update --help\"; return; fi\n"
                "    case ${COMP_WORDS[2]}:$cur in\n"
                "    explain:*) case ${COMP_WORDS[COMP_CWORD-1]} in\n"
                "        --policy|--ceiling) _gabion_files ;;\n"
                "        --net) compopt -o filenames 2>/dev/null\n"
                "            _gabion_from -f -W \"none packages public\" ;;\n"
                "        --method) _gabion_words \"GET HEAD POST PUT PATCH DELETE OPTIONS\" ;;\n"
                "        --host|--port|--path|--address|--allow|--resolve) ;;\n"
                "        *) _gabion_words \"" EXPLAIN_OPTIONS "\" ;; esac ;;\n"
                "    update:-*) _gabion_words --drop ;;\n"
                "    *:-*) _gabion_words --json ;;\n"
                "    *) _gabion_files ;;\n"
                "    esac\n"
                "}\n\n");
        completion_remote_bash_function();
        (void) printf("_gabion() {\n"
                      "    local cur=${COMP_WORDS[COMP_CWORD]}\n"
                      "    COMPREPLY=()\n"
                      "    if [ \"$COMP_CWORD\" -eq 1 ]; then _gabion_words \"");
        bash_commands();
}

/* What zsh is told about an option's value: ":message:action". */
static void zsh_value(const struct option_word *o) {
        switch (o->kind) {
        case SWITCH:
                break;
        case WORD:
                (void) printf(":%s: ", o->name);
                break;
        case FILE_NAME:
        case MOUNT:
                (void) printf(":%s:_files", o->name);
                break;
        case OPTIONAL_FILE:
                (void) printf("::%s:_files", o->name);
                break;
        case VARIABLE:
                (void) printf(":%s:_parameters -g \"*export*\"", o->name);
                break;
        case CHOICE:
                (void) printf(":%s:(%s)", o->name, o->choices);
                break;
        case CHOICE_OR_FILE:
                (void) printf(":%s:{ compadd %s; _files }", o->name, o->choices);
                break;
        }
}

static void zsh_option(const struct option_word *o) {
        const char *glue = o->kind == SWITCH ? "" : o->kind == OPTIONAL_FILE ? "=-" : "=";
        bool repeats = o->kind == MOUNT || o->kind == VARIABLE || str_eq(o->name, "off") || str_eq(o->name, "allow") ||
                       str_eq(o->name, "resolve");

        (void) printf("    '%s--%s%s[%s]", repeats ? "*" : "", o->name, glue, o->what);
        zsh_value(o);
        (void) printf("'\n");
        if (!o->letter)
                return;
        (void) printf("    '%s-%c%s[%s]", repeats ? "*" : "", o->letter, o->kind == SWITCH ? "" : "+", o->what);
        zsh_value(o);
        (void) printf("'\n");
}

static void zsh_script(void) {
        (void) printf(
                "#compdef gabion\n# zsh completion for gabion; made by: gabion completion zsh\n"
                "_gabion() {\n  local curcontext=$curcontext state line\n  local -a commands options\n  commands=(\n");
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                (void) printf("    '%s:%s'\n", commands[i].name, commands[i].what);
        (void) printf("  )\n  options=(\n");
        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                zsh_option(&options[i]);
        (void) printf(
                "  )\n"
                "  _arguments -C '1:command:->command' '*::argument:->argument'\n"
                "  case $state in\n"
                "  command) _describe -t commands 'gabion command' commands ;;\n"
                "  argument)\n"
                "    case $words[1] in\n"
                "    run|plan) _arguments -s -S $options '1:command:_command_names -e' '*::argument:_normal' ;;\n"
                "    policy) _arguments '1:action:(check explain diff show update)' '--json[print JSON]' "
                "'--host[a name or an address]:host: ' '--port[a port]:port: ' "
                "'--method[of a request]:method:(GET HEAD POST PUT PATCH DELETE OPTIONS)' "
                "'--path[of a request]:path: ' '--address[what the name resolves to]:address: ' "
                "'--policy[policy file]:file:_files' '--ceiling[ceiling file]:file:_files' "
                "'--net[preset or file]:net:_files' '*--allow[a host]:host: ' '*--resolve[a mapping]:mapping: ' "
                "'*:policy file:_files' ;;\n"
                "    egress) _arguments '1:action:(log)' '(-f --follow)'{-f,--follow}'[wait for more]' "
                "'--sandbox[of one sandbox]:id: ' '--denied[refused attempts only]' '--json[print JSON]' "
                "'--file[another log]:file:_files' ;;\n"
                "    reach|doctor) _arguments '--json[print JSON]' '--help[show help]' ;;\n"
                "    audit) _arguments '1:action:(" AUDIT_ACTIONS ")' '*:file:_files' ;;\n"
                "    dossier|verify) _arguments '*:file:_files' ;;\n"
                "    serve) _arguments '*--listen[where clients come]:address: ' '--data[store and keys]:folder:_files' "
                "'--key-file[for the first key]:file:_files' '--user[of the API]:user:_users' "
                "'--domain[of the ports of sandboxes]:name: ' '--policy[policy file]:file:_files' "
                "'--ceiling[none, public, packages or a file]:network:_files' '--pool[kept ready]:number: ' "
                "'--certificate[of TLS]:file:_files' '--certificate-key[its key]:file:_files' "
                "'--upstream-proxy[go out through a proxy]:url: ' '--bind[source address]:address: ' "
                "'--ca-bundle[certificates to trust]:file:_files' '*--resolve[a mapping]:mapping: ' "
                "'--audit[the audit log]:folder:_files' '--audit-keep[how long]:time: ' "
                "'--config[settings]:file:_files' '--log[what is logged]:level:(error warning info)' "
                "'--run[sockets]:folder:_files' '--keep[sandboxes go on]' "
                "'--without-landlock[for kernels that have none]' '--help[show help]' ;;\n"
                "    completion) _arguments '1:shell:(bash zsh fish)' ;;\n");
        completion_remote_zsh();
        (void) printf("    esac ;;\n"
                      "  esac\n"
                      "}\n"
                      "if [ \"$funcstack[1]\" = _gabion ]; then _gabion \"$@\"; else compdef _gabion gabion; fi\n");
}

static void fish_serve(void) {
        static const struct {
                const char *name, *value;
        } words[] = {
                { "listen", " -x" },
                { "data", " -r -F" },
                { "key-file", " -r -F" },
                { "user", " -x" },
                { "domain", " -x" },
                { "policy", " -r -F" },
                { "ceiling", " -r -F -a 'none public packages'" },
                { "pool", " -x" },
                { "certificate", " -r -F" },
                { "certificate-key", " -r -F" },
                { "upstream-proxy", " -x" },
                { "bind", " -x" },
                { "ca-bundle", " -r -F" },
                { "resolve", " -x" },
                { "audit", " -r -F" },
                { "audit-keep", " -x" },
                { "config", " -r -F" },
                { "log", " -x -a 'error warning info'" },
                { "run", " -r -F" },
                { "keep", "" },
                { "without-landlock", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                (void) printf("complete -c gabion -n '__fish_seen_subcommand_from serve' -l %s%s\n", words[i].name,
                              words[i].value);
}

static void fish_script(void) {
        static const char *const of_explain[] = { "policy", "ceiling", "net",     "host",  "port",
                                                  "method", "path",    "address", "allow", "resolve" };
        static const char of_run[] = "complete -c gabion -n '__fish_seen_subcommand_from run plan'";

        (void) printf("# fish completion for gabion; made by: gabion completion fish\ncomplete -c gabion -f\n");
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                (void) printf("complete -c gabion -n __fish_use_subcommand -a %s -d '%s'\n", commands[i].name,
                              commands[i].what);
        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                const struct option_word *o = &options[i];

                (void) printf("%s -l %s", of_run, o->name);
                if (o->letter)
                        (void) printf(" -s %c", o->letter);
                if (o->kind == CHOICE)
                        (void) printf(" -x -a '%s'", o->choices);
                else if (o->kind == VARIABLE)
                        (void) printf(" -x -a '(set -xn)'");
                else if (o->kind == CHOICE_OR_FILE)
                        (void) printf(" -r -F -a '%s'", o->choices);
                else if (o->kind == FILE_NAME || o->kind == MOUNT)
                        (void) printf(" -r -F");
                else if (o->kind == WORD)
                        (void) printf(" -x");
                (void) printf(" -d '%s'\n", o->what);
        }
        (void) printf("%s -a '(__fish_complete_subcommand --fcs-skip=2)'\n", of_run);
        for (size_t i = 0; i < ARRAY_SIZE(of_explain); i++)
                (void) printf("complete -c gabion -n '__fish_seen_subcommand_from explain' -l %s %s\n", of_explain[i],
                              i < 3 ? "-r -F" : "-x");
        fish_serve();
        completion_remote_fish();
        (void) printf(
                "complete -c gabion -n '__fish_seen_subcommand_from policy' -F -a 'check explain diff show update'\n"
                "complete -c gabion -n '__fish_seen_subcommand_from policy doctor reach egress' -l json -d 'print JSON'\n"
                "complete -c gabion -n '__fish_seen_subcommand_from policy' -l drop -d 'end old connections'\n"
                "complete -c gabion -n '__fish_seen_subcommand_from egress' -a log -l denied -d 'refused only'\n"
                "complete -c gabion -n '__fish_seen_subcommand_from egress' -s f -l follow -d 'wait for more'\n"
                "complete -c gabion -n '__fish_seen_subcommand_from egress' -x -l sandbox -d 'of one sandbox'\n"
                "complete -c gabion -n '__fish_seen_subcommand_from audit' -F -a '" AUDIT_ACTIONS "'\n"
                "complete -c gabion -n '__fish_seen_subcommand_from dossier verify' -F\n"
                "complete -c gabion -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n");
}

int cmd_completion(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*fn)(void);
        } shells[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };
        const char *want = argc == 2 ? argv[1] : "";

        if (str_eq(want, "--help") || str_eq(want, "-h")) {
                (void) printf("Usage: gabion completion bash|zsh|fish\n\n"
                              "Prints a completion script. To use it now:\n"
                              "  bash   source <(gabion completion bash)\n"
                              "  zsh    source <(gabion completion zsh)      (after compinit)\n"
                              "  fish   gabion completion fish | source\n");
                return 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
                if (str_eq(shells[i].name, want)) {
                        shells[i].fn();
                        return 0;
                }
        return cli_usage("completion", "bash, zsh or fish is expected");
}
