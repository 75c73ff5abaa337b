/*
 * errno-gen.c - prints names and texts of all errors of this machine's C library, glibc, as C for src/musl. The
 * compiler of the program gives the names their numbers.
 */
#include <stdio.h>
#include <string.h>

enum { ERRORS = 4096 }; /* the kernel's bound */

int main(void) {
        printf("#include <errno.h>\n#include \"musl/musl.h\"\nconst struct errno_text errno_texts[] = {\n");
        for (int e = 0; e < ERRORS; e++)
                if (strerrorname_np(e))
                        printf("\t[%s] = { \"%s\", \"%s\" },\n", strerrorname_np(e), strerrorname_np(e),
                               strerrordesc_np(e));
        printf("};\nconst size_t errno_texts_count = sizeof(errno_texts) / sizeof(*errno_texts);\n");
        return fflush(stdout) != 0;
}
