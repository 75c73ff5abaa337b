/* cli.h - the sub-commands of gabion, one file each. */
#pragma once

#include <stdbool.h>

struct err;
struct json;
struct policy;
struct run_options;

enum { CLI_OWN_ERROR = 125, CLI_PROGRAM = 512 };

/* Payload type of a signed report. */
#define CLI_PROVE_TYPE "application/vnd.gabion.prove+json"

/* Each gets its own words (argv[0] = the sub-command) and returns the exit code. */
int cmd_run(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_policy_explain(int argc, char **argv);
int cmd_policy_show(int argc, char **argv);
int cmd_policy_update(int argc, char **argv);
int cmd_prove(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_egress(int argc, char **argv);
int cmd_reach(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_version(int argc, char **argv);
/* Those of a server's sandboxes, and those of the audit log, by the programs for them. */
int cmd_remote(int argc, char **argv);
int cmd_log(int argc, char **argv);

/* gabion-audit. */
int cmd_verify(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_dossier(int argc, char **argv);

/* Parts of completion scripts about the sub-commands of a server: arms of a case, and what they call. */
void completion_remote_bash_function(void);
void completion_remote_bash(void);
void completion_remote_zsh(void);
void completion_remote_fish(void);

/* "gabion: message" on standard error; returns CLI_OWN_ERROR. */
int cli_fail(const struct err *err);
int cli_usage(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The option that getopt_long() refused. */
const char *cli_refused(int argc, char **argv);

/* Finds another program of Gabion; beside: its folder in a build tree. */
int cli_program(const char *name, const char *beside, char dst[CLI_PROGRAM], struct err *err);

/* Where the signing key of this machine or user is. */
const char *cli_key_dir(void);

/* The only reader of the environment. "" for what is unset. */
const char *cli_env(const char *name);

/* Reads the words of `run` and `plan` into options that point into argv and static storage. *ret_json: NULL = no,
 * "" = standard output, else a file. Returns -1 to go on, or an exit code (help shown, error said). */
int cli_run_options(int argc, char **argv, struct run_options *ret, const char **ret_json);

/* Replaces preset packages by the registries of this machine; before policy_check(). */
int cli_policy_expand(struct policy *p, struct err *err);
/* One rule of the network on one line, without its end. */
void cli_print_rule(const struct json *rule);
/* Where the rules of preset packages come from: all, or those that end in "HOST, port PORT". */
void cli_print_packages(const struct policy *p, const char *of);

/* Prints a document as an outline for people, or as JSON. */
int cli_print(const struct json *doc, bool as_json);
