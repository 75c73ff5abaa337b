/* say.c - one-line errors on standard error, the same from every program of the command line. */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/cli.h"

/* An error quotes what it was given, and a terminal must not obey that. */
static void say(const char *text) {
        (void) fputs("gabion: ", stderr);
        for (; *text; text++)
                (void) fputc((unsigned char) *text < 0x20 || *text == 0x7f ? '?' : *text, stderr);
}

int cli_fail(const struct err *err) {
        say(err->msg);
        (void) fputc('\n', stderr);
        return CLI_OWN_ERROR;
}

int cli_usage(const char *command, const char *fmt, ...) {
        char text[320];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        say(text);
        (void) fprintf(stderr, "; try 'gabion %s --help'\n", command);
        return CLI_OWN_ERROR;
}

/* A short option without its value makes musl go past the last word; glibc stays there. */
const char *cli_refused(int argc, char **argv) {
        static char letter[] = "-?";

        if (optind <= argc && argv[optind - 1])
                return argv[optind - 1];
        letter[1] = (char) optopt;
        return letter;
}
