/*
 * yaml.c - one YAML document into the tree, by libyaml's events.
 *
 * Only what JSON could say as well is accepted: no aliases (they multiply), anchors, tags, directives or second
 * documents, and no key twice. Plain scalars follow one small schema, so that `no`, `0x10`, `1_000` and `010` are what
 * they look like, text, and not what some YAML 1.1 reader takes them for.
 *
 * A container is attached to its parent when it begins, so the tree below `root` is whole at any moment and owns
 * everything; the stack only borrows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "json/tree.h"

struct builder {
        const char *what;
        struct json_lines *lines;
        json_t *root;
        json_t *stack[JSON_DEPTH];
        size_t depth;
        size_t nodes;
        unsigned n_docs;
        char *key; /* owned; set between a key and its value */
        unsigned key_line;
};

static unsigned event_line(const yaml_event_t *e) {
        return (unsigned) e->start_mark.line + 1;
}

static int no_memory(struct err *err) {
        return err_set(err, -ENOMEM, ERR_INTERNAL, "parse YAML");
}

static bool expects_key(const struct builder *b) {
        return b->depth > 0 && json_typeof(b->stack[b->depth - 1]) == JSON_OBJECT && !b->key;
}

/* JSON's grammar for numbers, which is also where the conversion is done. */
static bool is_number(const char *s) {
        size_t n;

        s += *s == '-';
        n = strspn(s, "0123456789");
        if (n == 0 || (n > 1 && *s == '0'))
                return false;
        s += n;
        if (*s == '.') {
                n = strspn(s + 1, "0123456789");
                if (n == 0)
                        return false;
                s += 1 + n;
        }
        if (*s == 'e' || *s == 'E') {
                s++;
                s += *s == '+' || *s == '-';
                n = strspn(s, "0123456789");
                if (n == 0)
                        return false;
                s += n;
        }
        return !*s;
}

/* Takes node. */
static int attach(struct builder *b, json_t *node, unsigned line, struct err *err) {
        json_t *in = b->depth > 0 ? b->stack[b->depth - 1] : NULL;
        size_t index = 0;
        int r = 0;

        if (!node)
                return no_memory(err);
        if (!in) {
                b->root = node;
        } else if (json_typeof(in) == JSON_ARRAY) {
                index = json_array_size(in);
                r = json_array_append_new(in, node);
        } else {
                index = json_object_size(in);
                line = b->key_line;
                r = json_object_set_new(in, b->key, node);
                free(TAKE_PTR(b->key));
        }
        if (r < 0 || json_lines_add(b->lines, in, index, line) < 0)
                return no_memory(err);
        return 0;
}

static int on_scalar(struct builder *b, const yaml_event_t *e, struct err *err) {
        const char *s = (const char *) e->data.scalar.value;
        size_t n = e->data.scalar.length;
        unsigned line = event_line(e);
        bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        json_error_t why = { .line = -1 };
        json_t *node;

        if (memchr(s, '\0', n))
                return json_error(err, b->what, line, "a NUL character is not allowed");
        if (expects_key(b)) {
                if (json_object_get(b->stack[b->depth - 1], s))
                        return json_error(err, b->what, line, "key '%.64s' is there twice", s);
                b->key = strdup(s);
                b->key_line = line;
                return b->key ? 0 : no_memory(err);
        }
        if (b->depth == 0)
                return json_error(err, b->what, line, "must be a mapping (key: value) or a list");
        if (plain && (n == 0 || str_eq(s, "~") || str_eq(s, "null")))
                node = json_null();
        else if (plain && (str_eq(s, "true") || str_eq(s, "false")))
                node = json_boolean(*s == 't');
        else if (plain && is_number(s))
                node = json_loadb(s, n, JSON_DECODE_ANY, &why);
        else
                node = json_stringn(s, n);
        if (!node && json_error_code(&why) == json_error_numeric_overflow)
                return json_error(err, b->what, line, "number %.40s is out of range", s);
        return attach(b, node, line, err);
}

static int on_open(struct builder *b, const yaml_event_t *e, struct err *err) {
        json_t *node;
        int r;

        if (expects_key(b))
                return json_error(err, b->what, event_line(e), "a key must be plain text");
        if (b->depth == JSON_DEPTH)
                return json_error(err, b->what, event_line(e), "nested deeper than %d levels", JSON_DEPTH);
        node = e->type == YAML_MAPPING_START_EVENT ? json_object() : json_array();
        r = attach(b, node, event_line(e), err);
        if (r < 0)
                return r;
        b->stack[b->depth++] = node;
        return 0;
}

/* What events carry that JSON has no word for. */
static const char *foreign(const yaml_event_t *e) {
        const void *anchor = NULL, *tag = NULL;

        if (e->type == YAML_ALIAS_EVENT)
                return "aliases";
        if (e->type == YAML_DOCUMENT_START_EVENT &&
            (e->data.document_start.version_directive ||
             e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end))
                return "directives";
        if (e->type == YAML_SCALAR_EVENT) {
                anchor = e->data.scalar.anchor;
                tag = e->data.scalar.tag;
        } else if (e->type == YAML_MAPPING_START_EVENT) {
                anchor = e->data.mapping_start.anchor;
                tag = e->data.mapping_start.tag;
        } else if (e->type == YAML_SEQUENCE_START_EVENT) {
                anchor = e->data.sequence_start.anchor;
                tag = e->data.sequence_start.tag;
        }
        return anchor ? "anchors" : tag ? "tags" : NULL;
}

static int on_event(struct builder *b, const yaml_event_t *e, struct err *err) {
        const char *what = foreign(e);

        if (what)
                return json_error(err, b->what, event_line(e), "%s are not allowed", what);
        switch (e->type) {
        case YAML_DOCUMENT_START_EVENT:
                if (b->n_docs++ > 0)
                        return json_error(err, b->what, event_line(e), "only one document is allowed");
                return 0;
        case YAML_SCALAR_EVENT:
        case YAML_MAPPING_START_EVENT:
        case YAML_SEQUENCE_START_EVENT:
                if (!expects_key(b) && ++b->nodes > JSON_NODES)
                        return json_error(err, b->what, event_line(e), "more than %d values", JSON_NODES);
                return e->type == YAML_SCALAR_EVENT ? on_scalar(b, e, err) : on_open(b, e, err);
        case YAML_MAPPING_END_EVENT:
        case YAML_SEQUENCE_END_EVENT:
                b->depth--;
                return 0;
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_STREAM_END_EVENT:
        case YAML_DOCUMENT_END_EVENT:
        case YAML_ALIAS_EVENT:
                return 0;
        }
        return 0;
}

static int on_failure(const struct builder *b, const yaml_parser_t *p, struct err *err) {
        /* Errors of the reader (bytes that are no text) have an offset, and a mark that was never set. */
        unsigned line = p->error == YAML_READER_ERROR ? 0 : (unsigned) p->problem_mark.line + 1;

        if (p->error == YAML_MEMORY_ERROR)
                return no_memory(err);
        return json_error(err, b->what, line, "not YAML: %s", p->problem ? p->problem : "unreadable");
}

static int read_events(struct builder *b, yaml_parser_t *p, struct err *err) {
        for (bool more = true; more;) {
                yaml_event_t e;
                int r;

                if (!yaml_parser_parse(p, &e))
                        return on_failure(b, p, err);
                r = on_event(b, &e, err);
                more = e.type != YAML_STREAM_END_EVENT;
                yaml_event_delete(&e);
                if (r < 0)
                        return r;
        }
        if (!b->root)
                return json_error(err, b->what, 0, "the document is empty");
        return 0;
}

int json_parse_yaml(const char *what, const char *text, size_t n, struct json **ret, struct json_lines **ret_lines,
                    struct err *err) {
        CLEANUP(json_lines_freep) struct json_lines *lines = json_lines_new();
        struct builder b = { .what = what, .lines = lines };
        yaml_parser_t p;
        int r;

        if (!lines || !yaml_parser_initialize(&p))
                return no_memory(err);
        yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING); /* or a byte order mark would choose UTF-16 */
        yaml_parser_set_input_string(&p, (const unsigned char *) text, n);
        r = read_events(&b, &p, err);
        yaml_parser_delete(&p);
        free(b.key);
        if (r < 0) {
                json_decref(b.root);
                return r;
        }
        *ret = tree_of(b.root);
        if (ret_lines)
                *ret_lines = TAKE_PTR(lines);
        return 0;
}
