/*
 * skeleton.c - the directories, links, files and nodes of a sandbox's root.
 *
 * Everything belongs to the supervisor's root, which is not mapped inside: no id of the sandbox may change it, even
 * before it is made read-only. The exceptions are the writable places, which belong to the command's user. The targets
 * of mounts are made by the set-up child, so like child.c this file uses no libc.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "sandbox/child.h"

static int file_make(int root_fd, const struct plan_node *n, const char *text, size_t len) {
        int fd = sys_openat(root_fd, n->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, n->mode);
        ssize_t k;

        if (fd < 0)
                return fd;
        k = len > 0 ? sys_write(fd, text, len) : 0;
        (void) sys_close(fd);
        return k == (ssize_t) len ? 0 : k < 0 ? (int) k : -EIO;
}

static int node_make(const struct child *c, int root_fd, const struct plan_node *n) {
        const char *text = n->text ? n->text : c->plan->certificates;

        switch (n->kind) {
        case PLAN_DIR:
                return sys_mkdirat(root_fd, n->path, n->mode);
        case PLAN_LINK:
                return sys_symlinkat(n->text, root_fd, n->path);
        case PLAN_FILE:
                return file_make(root_fd, n, text, strlen(text));
        case PLAN_JAVA_STORE:
                return file_make(root_fd, n, c->plan->java_store, c->plan->n_java_store);
        case PLAN_CHAR:
                return sys_mkcharat(root_fd, n->path, n->mode, n->major, n->minor);
        }
        return -EINVAL;
}

/* A directory that belongs to the command's user, or to root: homes are private, the others are like /tmp. */
static int own_dir(const struct child *c, int root_fd, const struct plan_mount *m) {
        const char *path = m->target + 1;
        bool private = !m->user_owned || strcmp(m->target, c->plan->home) == 0;
        uint32_t owner = m->user_owned ? c->user : c->user - c->plan->uid; /* ids inside are in a row outside too */
        int r = sys_mkdirat(root_fd, path, private ? 0700 : 01777);

        return r < 0 ? r : sys_fchownat(root_fd, path, owner, owner);
}

int skeleton_fill(const struct child *c, int root_fd, const char **ret_where) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < c->plan->n_nodes; i++) {
                *ret_where = c->plan->nodes[i].path;
                r = node_make(c, root_fd, &c->plan->nodes[i]);
        }
        for (size_t i = 0; r == 0 && i < c->plan->n_mounts; i++)
                if (c->plan->mounts[i].kind == PLAN_WRITABLE) {
                        *ret_where = c->plan->mounts[i].target;
                        r = own_dir(c, root_fd, &c->plan->mounts[i]);
                }
        return r;
}

/* Makes one component of a target; what is there already stays as it is. */
static int component(const struct child *c, const char *path, bool is_dir, bool own) {
        int r;

        if (is_dir) {
                r = sys_mkdirat(AT_FDCWD, path, 0755);
        } else {
                r = sys_openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
                if (r >= 0)
                        (void) sys_close(r);
        }
        if (r == -EEXIST)
                return 0;
        return r >= 0 && own ? sys_fchownat(AT_FDCWD, path, c->user, c->user) : r < 0 ? r : 0;
}

int skeleton_target(const struct child *c, size_t mount) {
        const char *target = c->plan->mounts[mount].target + 1;
        bool own = strncmp(target, "home/", 5) == 0 || strncmp(target, "tmp/", 4) == 0;
        size_t n = strlen(target);
        char path[POLICY_PATH];

        if (n >= sizeof(path))
                return -ENAMETOOLONG;
        memcpy(path, target, n + 1);
        for (size_t i = 1; i <= n; i++) {
                bool last = i == n;
                int r;

                if (!last && path[i] != '/')
                        continue;
                path[i] = '\0';
                r = component(c, path, !last || c->piece_is_dir[mount], own);
                if (r < 0)
                        return r;
                path[i] = target[i];
        }
        return 0;
}
