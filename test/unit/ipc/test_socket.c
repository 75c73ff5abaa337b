/* Messages arrive whole with their descriptors or not at all; large ones only as memory that nobody can change. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "ipc/ipc.h"

static int ends[2];

static int set_up(void **state) {
        (void) state;
        return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int tear_down(void **state) {
        (void) state;
        own_closep(&ends[0]);
        own_closep(&ends[1]);
        return 0;
}

static int open_fds(void) {
        int n = 0;

        for (int fd = 0; fd < 256; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static void messages_keep_their_bounds(void **state) {
        struct ipc_msg m;

        (void) state;
        assert_int_equal(ipc_send(ends[0], "one", 3, NULL, 0), 0);
        assert_int_equal(ipc_send(ends[0], "second", 6, NULL, 0), 0);
        assert_int_equal(ipc_recv(ends[1], &m), 1);
        assert_int_equal(m.n, 3);
        assert_int_equal(ipc_recv(ends[1], &m), 1);
        assert_memory_equal(m.bytes, "second", 6);
        own_closep(&ends[0]);
        ends[0] = -1;
        assert_int_equal(ipc_recv(ends[1], &m), 0);
}

static void descriptors_travel_and_are_closed_on_exec(void **state) {
        int pipes[2], before;
        struct ipc_msg m;
        char c = 0;

        (void) state;
        assert_int_equal(pipe(pipes), 0);
        assert_int_equal(ipc_send(ends[0], "x", 1, &pipes[1], 1), 0);
        before = open_fds();
        assert_int_equal(ipc_recv(ends[1], &m), 1);
        assert_int_equal(m.n_fds, 1);
        assert_true(fcntl(m.fds[0], F_GETFD) & FD_CLOEXEC);
        assert_int_equal(write(m.fds[0], "y", 1), 1);
        assert_int_equal(read(pipes[0], &c, 1), 1);
        assert_int_equal(c, 'y');
        ipc_msg_done(&m);
        assert_int_equal(open_fds(), before);
        (void) close(pipes[0]);
        (void) close(pipes[1]);
}

static void what_was_sent_before_closing_still_arrives(void **state) {
        struct ipc_msg m;

        (void) state;
        assert_int_equal(ipc_send(ends[0], "one", 3, NULL, 0), 0);
        assert_int_equal(ipc_send(ends[0], "two", 3, NULL, 0), 0);
        assert_int_equal(ipc_send(ends[1], "reply", 5, NULL, 0), 0); /* never read */
        own_closep(&ends[0]);
        ends[0] = -1;
        assert_int_equal(ipc_recv(ends[1], &m), 1);
        assert_int_equal(ipc_recv(ends[1], &m), 1);
        assert_memory_equal(m.bytes, "two", 3);
        assert_int_equal(ipc_recv(ends[1], &m), 0);
}

static void too_long_or_too_many_is_refused_and_leaks_nothing(void **state) {
        static char big[IPC_MAX + 1];
        int many[IPC_FDS + 1] = { 0, 0, 0, 0, 0 }, before = open_fds();
        union {
                struct cmsghdr head;
                char space[CMSG_SPACE(sizeof(many))];
        } control = { .space = { 0 } };
        struct iovec io = { .iov_base = big, .iov_len = 1 };
        struct msghdr h = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space)
        };
        struct ipc_msg m;

        (void) state;
        assert_int_equal(ipc_send(ends[0], big, sizeof(big), NULL, 0), -EMSGSIZE);
        assert_int_equal(ipc_send(ends[0], big, 1, many, IPC_FDS + 1), -EMSGSIZE);
        assert_int_equal(send(ends[0], big, sizeof(big), 0), sizeof(big));
        assert_int_equal(ipc_recv(ends[1], &m), -EBADMSG);
        control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                         .cmsg_type = SCM_RIGHTS,
                                         .cmsg_len = CMSG_LEN(sizeof(many)) };
        memcpy(CMSG_DATA(&control.head), many, sizeof(many));
        assert_int_equal(sendmsg(ends[0], &h, 0), 1);
        assert_int_equal(ipc_recv(ends[1], &m), -EBADMSG);
        assert_int_equal(open_fds(), before);
}

static void peer_is_known_and_the_socket_has_its_mode(void **state) {
        char dir[] = "/tmp/gabion-ipc.XXXXXX", path[64];
        struct ipc_peer peer, server;
        struct err err = { 0 };
        struct stat st;
        int listen_fd, client, at;

        (void) state;
        assert_non_null(mkdtemp(dir));
        (void) snprintf(path, sizeof(path), "%s/s", dir);
        assert_int_equal(ipc_connect(path, &err), -ENOENT);
        listen_fd = ipc_listen(path, 0660, &err);
        assert_true(listen_fd >= 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0660);
        client = ipc_connect(path, &err);
        at = ipc_accept(listen_fd, &peer, &err);
        assert_true(client >= 0 && at >= 0);
        assert_int_equal(peer.uid, geteuid());
        assert_int_equal(peer.pid, getpid());
        assert_int_equal(ipc_peer_get(client, &server, &err), 0);
        assert_int_equal(server.pid, getpid());
        (void) close(listen_fd);
        (void) close(client);
        (void) close(at);
        listen_fd = ipc_listen(path, 0600, &err); /* what a killed server left is replaced */
        assert_true(listen_fd >= 0);
        (void) close(listen_fd);
        (void) unlink(path);
        (void) rmdir(dir);
        assert_int_equal(ipc_connect("", &err), -ENAMETOOLONG);
}

static void blob_comes_back(void **state) {
        static const char text[] = "a larger text";
        struct err err = { 0 };
        AUTO_FD int fd = ipc_blob_make(text, sizeof(text), &err);
        AUTO_FREE char *back = NULL;
        size_t n;

        (void) state;
        assert_true(fd >= 0);
        assert_int_equal(ipc_blob_read(fd, 4, &back, &n, &err), -EFBIG);
        assert_int_equal(ipc_blob_read(fd, 100, &back, &n, &err), 0);
        assert_int_equal(n, sizeof(text));
        assert_string_equal(back, text);
}

static void memory_that_can_change_is_refused(void **state) {
        AUTO_FD int unsealed = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        AUTO_FD int file = open("/dev/null", O_RDWR | O_CLOEXEC);
        AUTO_FREE char *back = NULL;
        struct err err = { 0 };
        size_t n;

        (void) state;
        assert_int_equal(write(unsealed, "x", 1), 1);
        assert_int_equal(ipc_blob_read(unsealed, 100, &back, &n, &err), -EBADMSG);
        assert_int_equal(fcntl(unsealed, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
        assert_int_equal(ipc_blob_read(unsealed, 100, &back, &n, &err), -EBADMSG);
        assert_int_equal(ipc_blob_read(file, 100, &back, &n, &err), -EBADMSG);
        assert_null(back);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(messages_keep_their_bounds, set_up, tear_down),
                cmocka_unit_test_setup_teardown(descriptors_travel_and_are_closed_on_exec, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_was_sent_before_closing_still_arrives, set_up, tear_down),
                cmocka_unit_test_setup_teardown(too_long_or_too_many_is_refused_and_leaks_nothing, set_up, tear_down),
                cmocka_unit_test(peer_is_known_and_the_socket_has_its_mode),
                cmocka_unit_test(blob_comes_back),
                cmocka_unit_test(memory_that_can_change_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
