/* fuzz_yaml.c - any bytes as YAML: what is accepted must be JSON as well, and mean the same there. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "json/json.h"

enum { INPUT_MAX = 16384 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(json_lines_freep) struct json_lines *lines = NULL;
        CLEANUP(json_freep) struct json *doc = NULL, *again = NULL;
        AUTO_FREE char *text = NULL, *same = NULL;
        struct err err = { 0 };

        if (size > INPUT_MAX)
                return 0;
        (void) json_parse("fuzz", (const char *) data, size, &again, &err);
        again = json_free(again);
        if (json_parse_yaml("fuzz", (const char *) data, size, &doc, &lines, &err) < 0)
                return 0;
        if (json_text(doc, false, &text, &err) < 0 || json_parse("text", text, strlen(text), &again, &err) < 0 ||
            json_text(again, false, &same, &err) < 0 || strcmp(text, same) != 0)
                abort();
        return 0;
}
