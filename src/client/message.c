/* message.c - events of a command, as the server tells them. Pure. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "client/state.h"
#include "json/json.h"
#include "sign/sign.h"

static int bad(struct err *err, const char *what) {
        return err_set(err, -EPROTO, ERR_PEER, "the server sends an event of a command with a bad %s", what);
}

/* Numbers of 64 bits are texts in protobuf's JSON. 0 if there is none. */
static int read_u64(const struct json *obj, const char *key, uint64_t *ret) {
        const char *text = json_get_str(obj, key);
        int64_t v = json_get_int(obj, key, 0);

        *ret = v > 0 ? (uint64_t) v : 0;
        return text ? str_to_u64(text, INT64_MAX, ret) : v < 0 ? -EINVAL : 0;
}

/* "signal: killed" is 9: glibc's words in lower case. */
static int signal_of(const char *status) {
        static const char prefix[] = "signal: ";
        const char *name = status + sizeof(prefix) - 1;

        if (!str_has_prefix(status, prefix))
                return 0;
        for (int i = 1; i < 65; i++) {
                const char *known = sigdescr_np(i);
                size_t n = known ? strlen(known) : 0;

                if (n > 0 && strncasecmp(known, name, n) == 0 && (!name[n] || name[n] == ' ')) /* " (core dumped)" */
                        return i;
        }
        return 0;
}

static int read_end(const struct json *end, struct client_exit *ret, struct err *err) {
        const char *status = json_get_str(end, "status"), *error = json_get_str(end, "error");
        int64_t code = json_get_int(end, "exitCode", 0); /* protobuf leaves zeros out */

        if (code < -1 || code > 255)
                return bad(err, "exitCode");
        *ret = (struct client_exit){ .code = (int) code };
        if (code == -1)
                ret->signal = signal_of(status ? status : "");
        (void) snprintf(ret->error, sizeof(ret->error), "%s", error ? error : "");
        return 0;
}

static int read_data(const struct json *data, struct process_message *ret, struct err *err) {
        static const char *const names[] = {
                [CLIENT_STDOUT] = "stdout", [CLIENT_STDERR] = "stderr", [CLIENT_PTY] = "pty"
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                ret->base64 = json_get_str(data, names[i]);
                ret->stream = (enum client_stream) i;
                if (ret->base64)
                        return 0;
        }
        return bad(err, "data");
}

int process_message_read(const struct json *message, struct process_message *ret, struct err *err) {
        const struct json *event = json_get(message, "event"), *it;
        int64_t pid;

        *ret = (struct process_message){ .event = PROCESS_OTHER };
        if (!json_is_object(event))
                return bad(err, "shape");
        if ((it = json_get(event, "data"))) {
                ret->event = PROCESS_DATA;
                return read_data(it, ret, err);
        }
        if ((it = json_get(event, "start"))) {
                ret->event = PROCESS_START;
                pid = json_get_int(it, "pid", 0);
                if (pid < 1 || pid > INT32_MAX || read_u64(it, "at", &ret->at) < 0)
                        return bad(err, "start");
                ret->pid = (uint32_t) pid;
        } else if ((it = json_get(event, "end"))) {
                ret->event = PROCESS_END;
                return read_end(it, &ret->exit, err);
        } else if ((it = json_get(event, "gap"))) {
                ret->event = PROCESS_GAP;
                return read_u64(it, "bytes", &ret->at) < 0 ? bad(err, "gap") : 0;
        }
        return 0;
}

ssize_t process_bytes(const char *base64, struct evbuffer *to) {
        enum { PIECE = 4096 }; /* whole groups of four */
        size_t left = strlen(base64);
        ssize_t sum = 0;

        while (left > 0) {
                size_t n = left < PIECE ? left : PIECE;
                char text[PIECE + 1];
                uint8_t bytes[PIECE];
                ssize_t k;

                memcpy(text, base64, n);
                text[n] = '\0';
                k = sign_unbase64(bytes, sizeof(bytes), text);
                if (k < 0 || (k < (ssize_t) (n / 4 * 3) && left > n)) /* padding belongs to the end */
                        return -EPROTO;
                if (evbuffer_add(to, bytes, (size_t) k) < 0)
                        return -ENOMEM;
                sum += k;
                base64 += n;
                left -= n;
        }
        return sum;
}
