/* names.c - what others tell, as events: programs and attempts to reach a host. Names only; see audit.h. */
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"

/* What a program is for, by its name alone: an auditor's first question. */
static const char *category_of(const char *program) {
        static const struct {
                const char *category, *names; /* each name with blanks around it */
        } table[] = {
                { "shell", " sh bash dash zsh fish busybox " },
                { "interpreter", " python python2 python3 node ruby perl php lua java deno bun " },
                { "compiler", " cc gcc g++ c++ clang clang++ rustc go javac make ninja cmake meson cargo ld " },
                { "package", " pip pip3 npm npx yarn pnpm apt apt-get dpkg gem uv poetry " },
                { "versions", " git hg svn " },
                { "network", " curl wget ssh scp nc ncat telnet dig ping rsync ftp " },
        };
        char word[AUDIT_NAME + 4];

        (void) snprintf(word, sizeof(word), " %.63s ", program);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (strstr(table[i].names, word))
                        return table[i].category;
        return str_has_prefix(program, "python") ? "interpreter" : "other";
}

void audit_program(struct audit_event *ev, const char *command) {
        const char *slash = strrchr(command, '/');
        char name[AUDIT_NAME];

        (void) snprintf(name, sizeof(name), "%.63s", slash ? slash + 1 : command);
        audit_object(ev, name);
        audit_text(ev, "category", category_of(name));
}

static void text_take(struct audit_event *ev, const char *key, const struct json *from, const char *name) {
        const char *s = json_get_str(from, name);

        if (s && s[0])
                audit_text(ev, key, s);
}

enum audit_kind audit_attempt_kind(const struct json *attempt) {
        const char *kind = json_get_str(attempt, "kind");

        if (kind && str_eq(kind, "dns"))
                return AUDIT_NET_NAME;
        return kind && str_eq(kind, "http") ? AUDIT_NET_REQUEST : AUDIT_NET_CONTACT;
}

void audit_attempt(struct audit_event *ev, const struct json *attempt) {
        const char *name = json_get_str(attempt, "name"), *address = json_get_str(attempt, "address");
        const char *decision = json_get_str(attempt, "decision"), *id = json_get_str(attempt, "event");
        const char *code = json_get_str(attempt, "code"), *rule = json_get_str(attempt, "rule");
        static const char *const numbers[] = { "bytes_in", "bytes_out", "count" };

        ev->decision = decision && str_eq(decision, "allow") ? AUDIT_ALLOWED : AUDIT_DENIED;
        if (id)
                (void) str_copy(ev->id, sizeof(ev->id), id);
        if (code)
                (void) str_copy(ev->code, sizeof(ev->code), code);
        (void) snprintf(ev->rule, sizeof(ev->rule), "%.63s", rule ? rule : "");
        audit_object(ev, name ? name : address ? address : "?");
        ev->port = (uint16_t) json_get_int(attempt, "port", 0);
        text_take(ev, "protocol", attempt, "protocol");
        text_take(ev, "ip", attempt, "address");
        text_take(ev, "method", attempt, "method"); /* never the path: it may carry a secret */
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                if (json_get(attempt, numbers[i]))
                        audit_number(ev, numbers[i], json_get_int(attempt, numbers[i], 0));
}
