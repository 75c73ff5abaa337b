/*
 * replay.c - runs a fuzz target over its corpus without libFuzzer, as an ordinary test.
 *
 * usage: replay_<what> DIRECTORY. Every file is fed as it is, then cut short at up to 64 places and with single bits
 * flipped at up to 256 places, so that a parser which is only right for good input is found on every build. Inputs are
 * copied to memory of exactly their size: with ASan a read past the end is seen. The order is fixed, and so is the
 * result. An empty or missing corpus is a failure, because such a test could not fail.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"

enum { INPUT_MAX = 1024 * 1024, CUTS = 64, FLIPS = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int feed(const char *data, size_t n) {
        AUTO_FREE uint8_t *copy = malloc(n > 0 ? n : 1);

        if (!copy)
                return -ENOMEM;
        memcpy(copy, data, n);
        (void) LLVMFuzzerTestOneInput(copy, n);
        return 0;
}

static int feed_mutations(char *data, size_t n) {
        size_t cut_step = n / CUTS + 1;
        size_t flip_step = n / FLIPS + 1;

        for (size_t i = 0; i < n; i += cut_step)
                if (feed(data, i) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < n; i += flip_step) {
                char old = data[i];
                int r;

                data[i] = (char) (old ^ (1 << (i % 8)));
                r = feed(data, n);
                data[i] = old;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int replay(int dir_fd, const char *name) {
        AUTO_FREE char *data = malloc(INPUT_MAX);
        int n;
        int r;

        if (!data)
                return -ENOMEM;
        n = fd_read_at(dir_fd, name, data, INPUT_MAX);
        if (n < 0)
                return n;
        r = feed(data, (size_t) n);
        return r < 0 ? r : feed_mutations(data, (size_t) n);
}

static int is_seed(const struct dirent *e) {
        return e->d_name[0] != '.';
}

int main(int argc, char **argv) {
        struct dirent **names = NULL;
        AUTO_FD int dir_fd = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        int n = dir_fd < 0 ? -1 : scandirat(dir_fd, ".", &names, is_seed, alphasort);
        int failed = n <= 0;

        if (failed)
                (void) fprintf(stderr, "replay: no corpus in %s\n", argc == 2 ? argv[1] : "(no directory given)");
        for (int i = 0; i < n; i++) {
                int r = replay(dir_fd, names[i]->d_name);

                if (r < 0) {
                        (void) fprintf(stderr, "replay: %s: %s\n", names[i]->d_name, strerrorname_np(-r));
                        failed = 1;
                }
                free(names[i]);
        }
        free(names);
        return failed;
}
