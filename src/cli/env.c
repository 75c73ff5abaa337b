/* env.c - the one place that reads the caller's environment, and what depends on it alone. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

const char *cli_env(const char *name) {
        const char *v = getenv(name);

        return v ? v : "";
}

/* Root's key belongs to the machine, a user's to the user. */
const char *cli_key_dir(void) {
        static char dir[512];
        const char *home = cli_env("HOME");

        if (geteuid() == 0) {
                (void) mkdir("/var/lib/gabion", 0755);
                return "/var/lib/gabion/keys";
        }
        (void) snprintf(dir, sizeof(dir), "%.400s/.local", home);
        (void) mkdir(dir, 0755);
        (void) snprintf(dir, sizeof(dir), "%.400s/.local/share", home);
        (void) mkdir(dir, 0755);
        (void) snprintf(dir, sizeof(dir), "%.400s/.local/share/gabion", home);
        return dir;
}
