/*
 * exec.c - finding and starting the command's program, with the errors a shell would give.
 *
 * Invariant: uses nothing but execve(), so that it works behind any filter that lets the command itself start.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/sysraw.h"
#include "state.h"

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

static const char *search_path(const char *const envp[]) {
        for (; *envp; envp++)
                if (str_has_prefix(*envp, "PATH="))
                        return *envp + strlen("PATH=");
        return default_path;
}

static int try(const char *file, const char *const argv[], const char *const envp[]) {
        return (int) -SYS3(SYS_execve, file, argv, envp); /* not by libc: see launcher.c */
}

/* Errors that say "not here, look on"; any other is about a program that was found. */
static bool is_elsewhere(int e) {
        return e == ENOENT || e == ENOTDIR || e == ENAMETOOLONG || e == ELOOP || e == ENODEV || e == ESTALE;
}

int exec_search(const char *const argv[], const char *const envp[]) {
        const char *name = argv[0], *dir = search_path(envp);
        size_t n_name = strlen(name);
        char file[AP_PATH_MAX];
        int found = ENOENT;

        if (n_name == 0)
                return ENOENT;
        if (strchr(name, '/'))
                return try(name, argv, envp);
        for (;;) {
                size_t n = strcspn(dir, ":");

                /* An empty element is the current directory, as everywhere. Too long for a path is nowhere. */
                if (n + 1 + n_name < sizeof(file)) {
                        int e;

                        memcpy(file, dir, n);
                        file[n] = '/';
                        memcpy(file + n + 1, name, n_name + 1);
                        e = try(n > 0 ? file : file + 1, argv, envp);
                        if (e == EACCES)
                                found = EACCES;
                        else if (!is_elsewhere(e))
                                return e;
                }
                if (dir[n] == '\0')
                        return found;
                dir += n + 1;
        }
}
