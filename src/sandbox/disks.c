/*
 * disks.c - which block devices an I/O limit must name. Throttling acts on whole disks; for a partition the
 * directory above it in sysfs names the disk. What lies on no block device (overlay, network) cannot be throttled here.
 */
#include "sandbox/disks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

static bool disk_of(dev_t dev, uint32_t ret[2]) {
        char dir[48], path[80], text[32];
        uint64_t major_nr, minor_nr;
        char *colon;
        bool part;
        int n;

        (void) snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u", major(dev), minor(dev));
        (void) snprintf(path, sizeof(path), "%s/partition", dir);
        part = access(path, F_OK) == 0;
        (void) snprintf(path, sizeof(path), "%s/%sdev", dir, part ? "../" : "");
        n = fd_read_at(AT_FDCWD, path, text, sizeof(text));
        if (n <= 0)
                return false;
        text[n - 1] = '\0';
        colon = strchr(text, ':');
        if (!colon)
                return false;
        *colon = '\0';
        if (str_to_u64(text, UINT32_MAX, &major_nr) < 0 || str_to_u64(colon + 1, UINT32_MAX, &minor_nr) < 0)
                return false;
        ret[0] = (uint32_t) major_nr;
        ret[1] = (uint32_t) minor_nr;
        return true;
}

/* Whoever makes one sandbox after the other asks for the same disk each time, and it does not move. */
static bool disk_known(dev_t dev, uint32_t ret[2]) {
        static uint32_t disk[2];
        static dev_t of;
        static bool known;

        if (!known || of != dev) {
                known = disk_of(dev, disk);
                of = dev;
        }
        memcpy(ret, disk, sizeof(disk));
        return known;
}

static void disk_add(struct cgroup_limits *l, dev_t dev) {
        uint32_t disk[2];

        if (l->n_io_devices == CGROUP_DEVICES || !disk_known(dev, disk))
                return;
        for (size_t i = 0; i < l->n_io_devices; i++)
                if (memcmp(l->io_devices[i], disk, sizeof(disk)) == 0)
                        return;
        memcpy(l->io_devices[l->n_io_devices++], disk, sizeof(disk));
}

void disks_find(const struct plan *plan, struct cgroup_limits *l) {
        struct stat st;

        l->n_io_devices = 0;
        if (stat("/usr", &st) == 0)
                disk_add(l, st.st_dev);
        for (size_t i = 0; i < plan->n_mounts; i++)
                if (plan->mounts[i].fd >= 0 && fstat(plan->mounts[i].fd, &st) == 0)
                        disk_add(l, st.st_dev);
}
