/* listen.c - see listen.h. No names are resolved: who listens where is the operator's word, not a name server's. */
#include "daemon/listen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/config.h"
#include "http/http.h"

enum { BACKLOG = 4096 };

static int listen_unix(const char *path, char shown[LISTEN_TEXT], struct err *err) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct stat st;
        mode_t old;
        int r = 0;

        if (fd < 0)
                return err_set(err, -errno, ERR_INTERNAL, "listen: %s", strerror(errno));
        if (*path != '/' || str_copy(a.sun_path, sizeof(a.sun_path), path) < 0)
                return err_set(err, -EINVAL, ERR_INVALID,
                               "listen: unix:%.100s: must be an absolute path of at most %zu characters", path,
                               sizeof(a.sun_path) - 1);
        if (lstat(path, &st) == 0 && (!S_ISSOCK(st.st_mode) || unlink(path) < 0))
                return err_set(err, -EEXIST, ERR_INVALID, "listen: %.100s is there and is no socket of ours", path);
        old = umask(0111); /* a key is needed anyway */
        if (bind(fd, (const struct sockaddr *) &a, sizeof(a)) < 0 || listen(fd, BACKLOG) < 0)
                r = -errno;
        (void) umask(old);
        if (r < 0)
                return err_set(err, r, ERR_INVALID, "listen: unix:%.100s: %s", path, strerror(-r));
        (void) snprintf(shown, LISTEN_TEXT, "unix:%s", path);
        return TAKE_FD(fd);
}

/* The address and port of ADDRESS:PORT. */
static int parse(const char *text, struct addr *ret, uint16_t *ret_port) {
        char host[HTTP_HOST_MAX + 1];
        const char *colon = strrchr(text, ':');
        uint64_t port;
        size_t n;

        if (!colon || str_to_u64(colon + 1, UINT16_MAX, &port) < 0)
                return -EINVAL;
        n = (size_t) (colon - text);
        if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
                text++;
                n -= 2;
        } else if (memchr(text, ':', n)) {
                return -EINVAL;
        }
        if (n == 0 || n >= sizeof(host))
                return -EINVAL;
        memcpy(host, text, n);
        host[n] = '\0';
        *ret_port = (uint16_t) port;
        return addr_parse(str_eq(host, "localhost") ? "127.0.0.1" : host, ret);
}

int listen_open(const char *text, char shown[LISTEN_TEXT], struct err *err) {
        static const int on = 1;
        struct sockaddr_storage s = { 0 };
        socklen_t n = sizeof(s);
        AUTO_FD int fd = -1;
        struct addr a;
        uint16_t port;
        char host[ADDR_TEXT];
        bool tls = config_is_tls(text);

        if (tls)
                text += strlen(CONFIG_TLS);
        if (str_has_prefix(text, "unix:") && !tls)
                return listen_unix(text + 5, shown, err);
        if (parse(text, &a, &port) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "listen: '%.60s' is not ADDRESS:PORT or unix:PATH", text);
        n = (socklen_t) addr_to_sockaddr(&a, port, &s);
        fd = socket(s.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
            bind(fd, (const struct sockaddr *) &s, n) < 0 || listen(fd, BACKLOG) < 0)
                return err_set(err, -errno, ERR_INVALID, "listen: %.60s: %s", text, strerror(errno));
        n = sizeof(s);
        if (getsockname(fd, (struct sockaddr *) &s, &n) < 0 ||
            addr_from_sockaddr((const struct sockaddr *) &s, &a, &port) < 0)
                return err_set(err, -EIO, ERR_INTERNAL, "listen: %.60s: has no address", text);
        addr_text(&a, host);
        (void) snprintf(shown, LISTEN_TEXT, a.family == ADDR_V6 ? "%s[%s]:%u" : "%s%s:%u", tls ? CONFIG_TLS : "", host,
                        port);
        return TAKE_FD(fd);
}
