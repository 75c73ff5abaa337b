/* fuzz_cgroup.c - the texts from which src/cgroup learns about the machine: mountinfo, PID/cgroup, control files. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup/parse.h"

enum { SIZE_MAX_IN = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct cgroup_layout layout;
        char own[CGROUP_PATH], home[CGROUP_PATH];
        uint64_t v = 0;
        char *text;

        if (size > SIZE_MAX_IN)
                return 0;
        text = malloc(size + 1); /* exactly as long as the input, so that a read past its end is seen */
        if (!text)
                return 0;
        memcpy(text, data, size);
        text[size] = '\0';

        cgroup_parse_mountinfo(text, &layout);
        for (int v2 = 0; v2 < 2; v2++)
                for (unsigned ctl = 0; ctl < CGROUP_CTLS; ctl++) {
                        if (cgroup_parse_member(text, v2, ctl, own, sizeof(own)) < 0)
                                continue;
                        for (size_t i = 0; i < layout.n; i++)
                                if (cgroup_parse_home(layout.mounts[i].root, own, home, sizeof(home)) == 0 &&
                                    strlen(home) > strlen(own))
                                        abort();
                }
        if (layout.n > CGROUP_MOUNTS)
                abort();
        (void) cgroup_parse_key(text, "oom_kill", &v);
        (void) cgroup_parse_controllers(text);
        (void) cgroup_parse_has_word(text, "254:0", "rbps=1000");
        free(text);
        return 0;
}
