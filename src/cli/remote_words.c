/* remote_words.c - the words of the sub-commands against a server: read by their parser, their help and the completion.
 */
#include "base/own.h"
#include "cli/remote.h"

const struct remote_option remote_usual[] = {
        { "server", REMOTE_SERVER, "URL", "http://HOST:PORT, https://NAME or unix:PATH (default: GABION_SERVER)" },
        { "key-file", REMOTE_KEY_FILE, "FILE", "the API key is in there (default: GABION_API_KEY)" },
        { "ca-file", REMOTE_CA_FILE, "FILE", "certificates to trust for https (default: the system's)" },
        { "help", 'h', NULL, "this text" },
};
const size_t remote_n_usual = ARRAY_SIZE(remote_usual);

#define JSON_OPTION                                                                                                    \
        { "json", REMOTE_JSON, NULL, "print JSON" }

static const struct remote_option of_create[] = {
        { "name", REMOTE_NAME, "NAME", "a name that works wherever the id does" },
        { "template", REMOTE_TEMPLATE, "NAME", "what it is made from (default: base)" },
        { "timeout", REMOTE_TIMEOUT, "TIME", "how long it lives (default: 1h)" },
        { "env", 'e', "NAME[=VALUE]", "a variable of its commands; without a value, the caller's" },
        { "metadata", REMOTE_METADATA, "NAME=VALUE", "a note that lists can be searched for" },
        { "net", REMOTE_NET, "none|public", "what it may reach, below the server's ceiling (default: none)" },
        { "allow", REMOTE_ALLOW, "HOST|CIDR", "may be reached nevertheless; repeatable" },
        { "deny", REMOTE_DENY, "CIDR", "may not be reached; repeatable" },
        { "private-ports", REMOTE_PRIVATE, NULL, "its ports are open only to those who have its traffic token" },
        JSON_OPTION,
};
static const struct remote_option of_exec[] = {
        { "interactive", 'i', NULL, "pass standard input on" },
        { "tty", 't', NULL, "give the command a terminal" },
        { "workdir", 'w', "DIR", "working directory (default: the home directory)" },
        { "env", 'e', "NAME[=VALUE]", "set a variable; without a value, take the caller's" },
        { "user", 'u', "NAME", "who runs it (default: user)" },
        { "timeout", REMOTE_TIMEOUT, "TIME", "end the command after this time" },
};
static const struct remote_option of_shell[] = {
        { "workdir", 'w', "DIR", "working directory (default: the home directory)" },
        { "env", 'e', "NAME[=VALUE]", "set a variable; without a value, take the caller's" },
        { "user", 'u', "NAME", "who runs it (default: user)" },
};
static const struct remote_option of_ps[] = {
        { "quiet", 'q', NULL, "ids only" },
        { "names", REMOTE_NAMES, NULL, "names only; the id where there is none" },
        { "metadata", REMOTE_METADATA, "NAME=VALUE", "only those that have this; repeatable" },
        { "template", REMOTE_TEMPLATE, "NAME", "only those made from this" },
        JSON_OPTION,
};
static const struct remote_option of_top[] = {
        { "interval", REMOTE_INTERVAL, "TIME", "between two looks (default: 2s)" },
        { "once", REMOTE_ONCE, NULL, "look once, and end" },
        JSON_OPTION,
};
static const struct remote_option of_inspect[] = {
        { "tokens", REMOTE_TOKENS, NULL, "with the secrets that open the sandbox" },
};
static const struct remote_option of_logs[] = {
        { "follow", 'f', NULL, "go on until the sandbox ends" },
        { "lines", 'n', "N", "only the last N" },
        JSON_OPTION,
};
static const struct remote_option of_cp[] = {
        { "user", 'u', "NAME", "as whom inside (default: user)" },
        { "follow-links", 'L', NULL, "copy what local links point to; links are left out otherwise" },
        { "recursive", 'r', NULL, "accepted for cp's sake: directories are always copied whole" },
};
static const struct remote_option of_port[] = {
        { "listen", REMOTE_LISTEN, "[ADDRESS:]PORT", "pass HTTP on from here, until interrupted" },
        JSON_OPTION,
};
static const struct remote_option of_stop[] = {
        { "timeout", REMOTE_TIMEOUT, "TIME", "for commands to end by themselves (default: 10s)" },
        { "all", REMOTE_ALL, NULL, "all sandboxes of the tenant" },
};
static const struct remote_option of_rm[] = {
        { "all", REMOTE_ALL, NULL, "all sandboxes of the tenant" },
};

#define EXIT_CODES                                                                                                     \
        "The exit code is the command's; 124 time limit, 125 Gabion's own error, 126 not executable, 127 not found,\n" \
        "128+N ended by signal N.\n"
#define OF(table) table, ARRAY_SIZE(table)

const struct remote_verb remote_verbs[] = {
        { "create", "[OPTIONS]", "Makes a sandbox on the server and prints its id.",
          "Times: s m h d; a number alone is seconds.\n", OF(of_create), false },
        { "exec", "[OPTIONS] SANDBOX [OPTIONS] [--] COMMAND [ARGUMENTS]",
          "Runs a command in a sandbox and passes its output, signals and exit code on.", EXIT_CODES, OF(of_exec),
          true },
        { "shell", "[OPTIONS] SANDBOX [COMMAND [ARGUMENTS]]", "A terminal in a sandbox: a login shell, or COMMAND.",
          EXIT_CODES, OF(of_shell), true },
        { "ps", "[OPTIONS]", "Lists the sandboxes that live.", "", OF(of_ps), false },
        { "top", "[OPTIONS]", "Shows what sandboxes use, again and again.", "", OF(of_top), false },
        { "inspect", "[OPTIONS] SANDBOX...",
          "Prints everything about sandboxes, as JSON; also of those that have ended, by id.", "", OF(of_inspect),
          true },
        { "logs", "[OPTIONS] SANDBOX", "Prints what happened to a sandbox; also to one that has ended, by id.", "",
          OF(of_logs), true },
        { "cp", "[OPTIONS] SANDBOX:PATH TARGET  or  [OPTIONS] SOURCE... SANDBOX:PATH",
          "Copies files and directories from a sandbox, or into one.",
          "'-' is standard input or output. Relative paths of a sandbox are below the user's home.\n", OF(of_cp),
          true },
        { "port", "[OPTIONS] SANDBOX PORT", "Says how a port of a sandbox is reached, or passes HTTP on to it.", "",
          OF(of_port), true },
        { "stop", "[OPTIONS] SANDBOX...", "Asks the commands of sandboxes to end (SIGTERM), then ends the sandboxes.",
          "A sandbox that has ended is gone, with its files.\n", OF(of_stop), true },
        { "rm", "[OPTIONS] SANDBOX...", "Ends sandboxes at once; they are gone, with their files.", "", OF(of_rm),
          true },
};
const size_t remote_n_verbs = ARRAY_SIZE(remote_verbs);
