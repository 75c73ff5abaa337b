/* transfer.c - /files: who may, which file, which bytes. */
#include "envd/transfer.h"

#include <errno.h>
#include <string.h>

#include "agentproto/agentproto.h"
#include "base/clock.h"
#include "base/str.h"
#include "envd/text.h"
#include "http/server.h"

/* NULL, or why not. */
static const char *refusal(const struct query *q, const char *op, const char *token) {
        if (!q->has_signature)
                return "missing signature query parameter";
        if (!envd_query_is_signed(q, op, token))
                return "invalid signature";
        return envd_query_is_expired(q, clock_real_ms() / 1000) ? "signature is already expired" : NULL;
}

void files_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head, bool trusted) {
        bool get = str_eq(head->method, "GET");
        const struct envd_user *user;
        struct query q = { 0 };
        char path[AP_PATH_MAX];
        const char *why;

        if (!get && !str_eq(head->method, "POST")) {
                answer_error(box->envd, box->target, c, 405, "only GET and POST are served here");
                return;
        }
        if (head->query && envd_query_read(head->query, &q) < 0) {
                answer_error(box->envd, box->target, c, 400, "malformed query");
                return;
        }
        why = trusted ? NULL : refusal(&q, envd_query_op(head->method), box->target->token);
        user = *q.user ? envd_box_user(box, q.user) : &box->target->users[0];
        if (why || !user)
                answer_error(box->envd, box->target, c, 401, "%s",
                             why ? why : "username: the sandbox has no such user");
        else if (!get)
                upload_serve(box, c, head, user, &q);
        else if (text_path(path, sizeof(path), user->home, q.path) < 0)
                answer_error(box->envd, box->target, c, 400, "path: names another user's home, or is too long");
        else
                download_serve(box, c, head, user, path);
}

int transfer_range(const char *header, uint64_t size, uint64_t *ret_offset, uint64_t *ret_length) {
        static const char unit[] = "bytes=";
        char first[24] = "", last[24] = "";
        uint64_t a = 0, b = size ? size - 1 : 0;
        const char *dash;

        if (!str_has_prefix(header, unit))
                return 0;
        header += sizeof(unit) - 1;
        dash = strchr(header, '-');
        if (!dash || (size_t) (dash - header) >= sizeof(first) || str_copy(last, sizeof(last), dash + 1) < 0)
                return 0;
        memcpy(first, header, (size_t) (dash - header));
        if (!*first && !*last)
                return 0;
        if ((*first && str_to_u64(first, INT64_MAX, &a) < 0) || (*last && str_to_u64(last, INT64_MAX, &b) < 0))
                return 0; /* several ranges, too: all of it is a right answer */
        if (!*first) {    /* the last b bytes */
                if (b == 0 || size == 0)
                        return -ERANGE;
                a = b < size ? size - b : 0;
                b = size - 1;
        } else if (*last && b < a) {
                return 0;
        }
        if (a >= size)
                return -ERANGE;
        *ret_offset = a;
        *ret_length = (b < size ? b : size - 1) - a + 1;
        return 1;
}
