/* codes.c - Connect's codes, and what an errno of the agent is among them. */
#include <errno.h>

#include "base/own.h"
#include "envd/rpc.h"

static const struct {
        const char *name;
        unsigned status;
} codes[RPC_CODES] = {
        [RPC_CANCELED] = { "canceled", 499 },
        [RPC_UNKNOWN] = { "unknown", 500 },
        [RPC_INVALID_ARGUMENT] = { "invalid_argument", 400 },
        [RPC_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
        [RPC_NOT_FOUND] = { "not_found", 404 },
        [RPC_ALREADY_EXISTS] = { "already_exists", 409 },
        [RPC_PERMISSION_DENIED] = { "permission_denied", 403 },
        [RPC_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
        [RPC_FAILED_PRECONDITION] = { "failed_precondition", 400 },
        [RPC_ABORTED] = { "aborted", 409 },
        [RPC_OUT_OF_RANGE] = { "out_of_range", 400 },
        [RPC_UNIMPLEMENTED] = { "unimplemented", 501 },
        [RPC_INTERNAL] = { "internal", 500 },
        [RPC_UNAVAILABLE] = { "unavailable", 503 },
        [RPC_DATA_LOSS] = { "data_loss", 500 },
        [RPC_UNAUTHENTICATED] = { "unauthenticated", 401 },
};

const char *rpc_code_name(enum rpc_code code) {
        return codes[code].name;
}

unsigned rpc_code_status(enum rpc_code code) {
        return codes[code].status;
}

enum rpc_code rpc_code_of(int r) {
        static const struct {
                int err_no;
                enum rpc_code code;
        } map[] = {
                { ENOENT, RPC_NOT_FOUND },          { ESRCH, RPC_NOT_FOUND },
                { EEXIST, RPC_ALREADY_EXISTS },     { EACCES, RPC_PERMISSION_DENIED },
                { EPERM, RPC_PERMISSION_DENIED },   { EROFS, RPC_PERMISSION_DENIED },
                { ENOTDIR, RPC_INVALID_ARGUMENT },  { EISDIR, RPC_INVALID_ARGUMENT },
                { EINVAL, RPC_INVALID_ARGUMENT },   { ENAMETOOLONG, RPC_INVALID_ARGUMENT },
                { ELOOP, RPC_INVALID_ARGUMENT },    { E2BIG, RPC_INVALID_ARGUMENT },
                { ERANGE, RPC_OUT_OF_RANGE },       { ENOSPC, RPC_RESOURCE_EXHAUSTED },
                { EDQUOT, RPC_RESOURCE_EXHAUSTED }, { EBUSY, RPC_RESOURCE_EXHAUSTED },
                { EAGAIN, RPC_RESOURCE_EXHAUSTED }, { EMFILE, RPC_RESOURCE_EXHAUSTED },
                { ENOMEM, RPC_RESOURCE_EXHAUSTED }, { ENOTEMPTY, RPC_FAILED_PRECONDITION },
                { EXDEV, RPC_FAILED_PRECONDITION }, { EOPNOTSUPP, RPC_UNIMPLEMENTED },
                { ENOSYS, RPC_UNIMPLEMENTED },      { ENOTCONN, RPC_UNAVAILABLE },
                { EPIPE, RPC_UNAVAILABLE },         { ECONNRESET, RPC_UNAVAILABLE },
                { ECONNREFUSED, RPC_UNAVAILABLE },  { EPROTO, RPC_UNAVAILABLE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(map); i++)
                if (map[i].err_no == -r)
                        return map[i].code;
        return RPC_INTERNAL;
}
