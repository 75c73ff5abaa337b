/* query.c - the query of /files. See query.h. */
#include "envd/query.h"

#include <errno.h>
#include <stddef.h>

#include "base/own.h"
#include "base/str.h"
#include "envd/text.h"
#include "http/http.h"

int envd_query_read(const char *text, struct query *ret) {
        static const struct {
                const char *name;
                size_t value, cap, has;
        } rows[] = {
                { "path", offsetof(struct query, path), sizeof(ret->path), offsetof(struct query, has_path) },
                { "username", offsetof(struct query, user), sizeof(ret->user), offsetof(struct query, has_user) },
                { "signature", offsetof(struct query, signature), sizeof(ret->signature),
                  offsetof(struct query, has_signature) },
                { "signature_expiration", offsetof(struct query, expiration), sizeof(ret->expiration),
                  offsetof(struct query, has_expiration) },
        };
        char name[64], value[AP_PATH_MAX];
        int r;

        *ret = (struct query){ 0 };
        while ((r = http_query_next(&text, name, sizeof(name), value, sizeof(value))) > 0)
                for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                        bool *has = (bool *) ((char *) ret + rows[i].has);

                        if (!str_eq(name, rows[i].name))
                                continue;
                        if (*has || str_copy((char *) ret + rows[i].value, rows[i].cap, value) < 0)
                                return -EINVAL;
                        *has = true;
                }
        return r < 0 ? -EINVAL : 0;
}

const char *envd_query_op(const char *method) {
        return str_eq(method, "POST") ? "write" : "read";
}

bool envd_query_is_signed(const struct query *q, const char *op, const char *token) {
        char expected[ENVD_SIGNATURE];

        text_signature(expected, q->path, op, q->user, token, q->has_expiration ? q->expiration : NULL);
        return q->has_signature && text_is_secret(q->signature, expected);
}

bool envd_query_is_expired(const struct query *q, uint64_t now_s) {
        uint64_t until;

        return q->has_expiration && (str_to_u64(q->expiration, INT64_MAX, &until) < 0 || until < now_s);
}
