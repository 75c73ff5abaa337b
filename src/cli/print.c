/* print.c - documents for people: the JSON text with its punctuation taken away. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "cli/cli.h"
#include "json/json.h"

/* One line of indented JSON without quotes, braces and commas; nothing if only punctuation is left. */
static void outline(const char *line, size_t n) {
        char text[1024];
        size_t k = 0, indent = 0;

        while (indent < n && line[indent] == ' ')
                indent++;
        for (size_t i = indent; i < n && k < sizeof(text) - 1; i++) {
                if (line[i] == '"' && (i == 0 || line[i - 1] != '\\'))
                        continue;
                if ((line[i] == '{' || line[i] == '[') && i + 1 >= n)
                        continue;
                if (line[i] == ',' && i + 1 == n)
                        continue;
                text[k++] = line[i];
        }
        text[k] = '\0';
        if (k == 0 || strcmp(text, "}") == 0 || strcmp(text, "]") == 0)
                return;
        (void) printf("%*s%s\n", indent >= 2 ? (int) indent - 2 : 0, "", text);
}

int cli_print(const struct json *doc, bool as_json) {
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        if (json_text(doc, true, &text, &err) < 0)
                return cli_fail(&err);
        if (as_json) {
                (void) printf("%s\n", text);
                return 0;
        }
        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");

                outline(line, n);
                line += n + (line[n] == '\n');
        }
        return 0;
}
