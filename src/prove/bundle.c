/*
 * bundle.c - an OCI bundle in a directory of its own. The configuration is bundle.json, compiled in: what engines set
 * when they are asked to harden a container, and the limits of our own default policy.
 */
#include "prove/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "probe/probe.h"

/* Where id 0 of a container is on the host; below the ids that our own sandboxes use. */
enum { FIRST_ID = 0x6fff0000, IDS = 65536, OPEN_DIRS = 16 };

extern const char gabion_bundle_config[];
extern const size_t gabion_bundle_config_size;

const char *bundle_config(void) {
        static char text[8192];

        if (!text[0])
                (void) snprintf(text, sizeof(text), "%.*s", (int) gabion_bundle_config_size, gabion_bundle_config);
        return text;
}

static int oops(struct err *err, const char *what) {
        return err_set(err, -errno, ERR_INTERNAL, "bundle: %s: %s", what, strerror(errno));
}

static struct json *map(void) {
        struct json *o = json_new_object();

        json_set_int(o, "containerID", 0);
        json_set_int(o, "hostID", geteuid() == 0 ? FIRST_ID : geteuid());
        json_set_int(o, "size", geteuid() == 0 ? IDS : 1);
        return o;
}

static int config_write(const char *dir, const char *const *argv, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        AUTO_FD int fd = -1;
        char path[64];
        struct json *process, *linux_part, *args = json_new_array();
        int r = json_parse("bundle.json", gabion_bundle_config, gabion_bundle_config_size, &doc, err);

        for (size_t i = 0; argv[i]; i++)
                json_add_str(args, argv[i]);
        process = json_get(doc, "process");
        linux_part = json_get(doc, "linux");
        json_set(process, "args", args);
        json_add(json_get(linux_part, "uidMappings"), map());
        json_add(json_get(linux_part, "gidMappings"), map());
        if (geteuid() != 0) { /* an ordinary user has one id to map, and no control groups to give limits with */
                json_set_int(json_get(process, "user"), "uid", 0);
                json_set_int(json_get(process, "user"), "gid", 0);
                json_set(linux_part, "resources", json_new_object());
        }
        if (r == 0)
                r = json_text(doc, true, &text, err);
        if (!text)
                return r < 0 ? r : err_set(err, -ENOMEM, ERR_INTERNAL, "bundle: out of memory");
        (void) snprintf(path, sizeof(path), "%s/config.json", dir);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        return fd < 0 || fd_write_all(fd, text, strlen(text)) < 0 ? oops(err, path) : 0;
}

static int rootfs_make(const char *dir, struct err *err) {
        static const char *const dirs[] = { "",    "dev", "etc", "home", "home/user", "proc",
                                            "run", "sys", "tmp", "var",  "var/tmp" };
        uid_t owner = geteuid() == 0 ? FIRST_ID : geteuid(); /* as if the image had been unpacked for this map */
        AUTO_FD int fd = -1;
        char path[80];

        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                (void) snprintf(path, sizeof(path), "%s/rootfs/%s", dir, dirs[i]);
                if (mkdir(path, 0755) < 0 || chown(path, owner, (gid_t) (geteuid() == 0 ? owner : getegid())) < 0)
                        return oops(err, path);
        }
        (void) snprintf(path, sizeof(path), "%s/rootfs/probe", dir);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
        return fd < 0 || fd_write_all(fd, gabion_probe_image, gabion_probe_image_size) < 0 ? oops(err, path) : 0;
}

int bundle_make(struct bundle *b, const char *const *argv, struct err *err) {
        int r;

        *b = (struct bundle){ .dir = "/tmp/gabion-bundle.XXXXXX" };
        if (!mkdtemp(b->dir)) {
                b->dir[0] = '\0';
                return oops(err, "directory below /tmp");
        }
        if (chmod(b->dir, 0711) < 0) /* a container's root is nobody here, and must reach rootfs */
                return oops(err, b->dir);
        r = rootfs_make(b->dir, err);
        return r < 0 ? r : config_write(b->dir, argv, err);
}

static int on_file(const char *path, const struct stat *st, int kind, struct FTW *at) {
        (void) st;
        (void) at;
        (void) (kind == FTW_DP || kind == FTW_DNR ? rmdir(path) : unlink(path));
        return 0;
}

static const char *group_name; /* nftw() hands nothing on */

static int on_group(const char *path, const struct stat *st, int kind, struct FTW *at) {
        (void) st;
        (void) at;
        if (kind == FTW_DP && strstr(path, group_name))
                (void) rmdir(path); /* refused while anything is in it */
        return 0;
}

void bundle_remove(struct bundle *b, const char *name) {
        if (!b->dir[0])
                return;
        /* FTW_MOUNT: what an engine may have left mounted there is not ours to empty. */
        (void) nftw(b->dir, on_file, OPEN_DIRS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        group_name = name;
        if (geteuid() == 0)
                (void) nftw("/sys/fs/cgroup", on_group, OPEN_DIRS, FTW_DEPTH | FTW_PHYS);
}
