/* fuzz_evidence.c - /proc texts as the read-back sees them: status (also the sandbox's own words) and mountinfo. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "evidence/evidence.h"

enum { INPUT_MAX = 16384 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void inside(const char *field, const char *text, size_t size) {
        if (!field || field < text || field + strlen(field) > text + size)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct evidence_mount mounts[EVIDENCE_MOUNTS];
        struct evidence_status status = { .seen = 0 };
        AUTO_FREE char *text = NULL;
        int n;

        if (size > INPUT_MAX)
                return 0;
        text = malloc(size + 1); /* exactly as long as the input, so that a read past its end is seen */
        if (!text)
                return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        if (evidence_parse_status(text, &status) < 0 ? status.seen != 0 : status.seen == 0)
                abort(); /* written on success only */
        n = evidence_parse_mounts(text, mounts, EVIDENCE_MOUNTS);
        if (n > EVIDENCE_MOUNTS)
                abort();
        for (int i = 0; i < n; i++) {
                const struct evidence_mount *m = &mounts[i];

                inside(m->root, text, size);
                inside(m->target, text, size);
                inside(m->options, text, size);
                inside(m->fstype, text, size);
                inside(m->source, text, size);
        }
        return 0;
}
