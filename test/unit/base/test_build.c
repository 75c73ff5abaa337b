/* The build id is the one that the linker wrote into this very file. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/build.h"
#include "base/str.h"

static void the_id_is_in_the_program_on_disk(void **state) {
        char id[BUILD_TEXT], seen[BUILD_TEXT] = "";
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        const char *at;
        struct stat st;
        char *file;

        (void) state;
        build_id(id);
        assert_int_equal(strlen(id), BUILD_TEXT - 1);
        assert_int_equal(strspn(id, "0123456789abcdef"), BUILD_TEXT - 1);
        assert_int_equal(fstat(fd, &st), 0);
        file = malloc((size_t) st.st_size);
        assert_int_equal(read(fd, file, (size_t) st.st_size), st.st_size);
        at = memmem(file, (size_t) st.st_size, "\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU", 16);
        assert_non_null(at);
        str_hex(seen, at + 16, 20);
        assert_string_equal(id, seen);
        free(file);
        (void) close(fd);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(the_id_is_in_the_program_on_disk) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
