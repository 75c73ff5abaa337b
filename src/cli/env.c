/* env.c - the one place that reads the caller's environment. */
#include <stdlib.h>

#include "cli/cli.h"

const char *cli_env(const char *name) {
        const char *v = getenv(name);

        return v ? v : "";
}
