/* socket.c - sockets, whole messages and sealed memory. No message is ever read in part: too long is an error. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "ipc/ipc.h"

enum { BACKLOG = 64, SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static int address(const char *path, struct sockaddr_un *ret, struct err *err) {
        int fd;

        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        if (str_copy(ret->sun_path, sizeof(ret->sun_path), path) < 0 || !path[0])
                return err_set(err, -ENAMETOOLONG, ERR_INVALID, "socket %.150s: the path has more than %zu characters",
                               path, sizeof(ret->sun_path) - 1);
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        return fd < 0 ? err_set(err, -errno, ERR_INTERNAL, "socket: %s", strerror(errno)) : fd;
}

int ipc_listen(const char *path, mode_t mode, struct err *err) {
        struct sockaddr_un a;
        AUTO_FD int fd = address(path, &a, err);
        mode_t old;
        int r;

        if (fd < 0)
                return fd;
        if (unlink(path) < 0 && errno != ENOENT)
                return err_set(err, -errno, ERR_INTERNAL, "socket %.150s: %s", path, strerror(errno));
        /* The mode is in place before anybody can connect: a chmod() afterwards would leave a gap. */
        old = umask(0777 & ~mode);
        r = bind(fd, (const struct sockaddr *) &a, sizeof(a)) < 0 ? -errno : 0;
        (void) umask(old);
        if (r == 0 && listen(fd, BACKLOG) < 0)
                r = -errno;
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "socket %.150s: %s", path, strerror(-r)) : TAKE_FD(fd);
}

int ipc_peer_get(int fd, struct ipc_peer *ret, struct err *err) {
        struct ucred c;
        socklen_t n = sizeof(c);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0 || n != sizeof(c))
                return err_set(err, -EPERM, ERR_DENIED, "socket: the peer has no credentials");
        *ret = (struct ipc_peer){ .pid = c.pid, .uid = c.uid, .gid = c.gid };
        return 0;
}

int ipc_accept(int listen_fd, struct ipc_peer *ret, struct err *err) {
        AUTO_FD int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        int r;

        if (fd < 0)
                return err_set(err, -errno, ERR_INTERNAL, "socket: accept: %s", strerror(errno));
        r = ipc_peer_get(fd, ret, err);
        return r < 0 ? r : TAKE_FD(fd);
}

int ipc_connect(const char *path, struct err *err) {
        struct sockaddr_un a;
        AUTO_FD int fd = address(path, &a, err);

        if (fd < 0)
                return fd;
        if (connect(fd, (const struct sockaddr *) &a, sizeof(a)) < 0)
                return err_set(err, -errno, ERR_NOT_FOUND, "socket %.150s: %s", path, strerror(errno));
        return TAKE_FD(fd);
}

int ipc_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds) {
        union {
                struct cmsghdr head;
                char space[CMSG_SPACE(sizeof(int) * IPC_FDS)];
        } control = { .space = { 0 } };
        struct iovec io = { .iov_base = (void *) p, .iov_len = n };
        struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
        ssize_t k;

        if (n > IPC_MAX || n_fds > IPC_FDS)
                return -EMSGSIZE;
        if (n_fds > 0) {
                m.msg_control = control.space;
                m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                                 .cmsg_type = SCM_RIGHTS,
                                                 .cmsg_len = CMSG_LEN(sizeof(int) * n_fds) };
                memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * n_fds);
        }
        do
                k = sendmsg(fd, &m, MSG_NOSIGNAL);
        while (k < 0 && errno == EINTR);
        return k < 0 ? -errno : 0;
}

void ipc_msg_done(struct ipc_msg *m) {
        for (size_t i = 0; i < m->n_fds; i++)
                own_closep(&m->fds[i]);
        m->n_fds = 0;
}

/* All descriptors that came, so that none stays open unnoticed. */
static void take_fds(struct msghdr *m, struct ipc_msg *ret) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                size_t n = c->cmsg_len > CMSG_LEN(0) ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < n; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                        if (ret->n_fds < IPC_FDS)
                                ret->fds[ret->n_fds++] = fd;
                        else
                                (void) close(fd);
                }
        }
}

int ipc_recv(int fd, struct ipc_msg *ret) {
        union {
                struct cmsghdr head;
                char space[CMSG_SPACE(sizeof(int) * IPC_FDS)];
        } control = { .space = { 0 } };
        struct iovec io = { .iov_base = ret->bytes, .iov_len = sizeof(ret->bytes) };
        struct msghdr m = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space)
        };
        bool reset = false;
        ssize_t n;

        ret->n = ret->n_fds = 0;
        /* Reset: the peer closed with our replies unread. That is told once; what it sent before is still there. */
        while ((n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC)) < 0 && (errno == EINTR || (errno == ECONNRESET && !reset)))
                reset |= errno == ECONNRESET;
        if (n < 0)
                return errno == ECONNRESET ? 0 : -errno;
        take_fds(&m, ret);
        /* An empty message and the end look the same here, and neither is a request. */
        if (n == 0 || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
                ipc_msg_done(ret);
                return n == 0 ? 0 : -EBADMSG;
        }
        ret->n = (size_t) n;
        return 1;
}

int ipc_blob_make(const void *p, size_t n, struct err *err) {
        AUTO_FD int fd = memfd_create("gabion", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int r = fd < 0 ? -errno : 0;

        if (n > IPC_BLOB_MAX)
                return err_set(err, -EFBIG, ERR_LIMIT, "message: %zu bytes are too many", n);
        if (r == 0)
                r = fd_write_all(fd, p, n);
        if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
                r = -errno;
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "message: %s", strerror(-r)) : TAKE_FD(fd);
}

int ipc_blob_read(int fd, size_t max, char **ret, size_t *ret_n, struct err *err) {
        AUTO_FREE char *text = NULL;
        struct stat st;
        int seals = fcntl(fd, F_GET_SEALS);
        size_t have = 0;

        /* Without the seals its owner could change it between our check and our use, or make it shrink under us. */
        if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0)
                return err_set(err, -EBADMSG, ERR_PEER, "message: the descriptor is not sealed memory");
        if (max > IPC_BLOB_MAX || (size_t) st.st_size > max)
                return err_set(err, -EFBIG, ERR_LIMIT, "message: %lld bytes are too many", (long long) st.st_size);
        text = malloc((size_t) st.st_size + 1);
        if (!text)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "message: out of memory");
        while (have < (size_t) st.st_size) {
                ssize_t k = pread(fd, text + have, (size_t) st.st_size - have, (off_t) have);

                if (k <= 0)
                        return err_set(err, -EIO, ERR_INTERNAL, "message: sealed memory cannot be read");
                have += (size_t) k;
        }
        text[have] = '\0';
        *ret = TAKE_PTR(text);
        *ret_n = have;
        return 0;
}
