/* files_look.h - reading, opening and listing for the attempts on files, limits and information. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct probe_canaries;
struct probe_result;

/* Inode numbers of the namespaces that the kernel makes at boot; they are fixed. */
#define LOOK_NS_TIME 0xeffffffaul
#define LOOK_NS_CGROUP 0xeffffffbul
#define LOOK_NS_PID 0xeffffffcul
#define LOOK_NS_UTS 0xeffffffeul
#define LOOK_NS_IPC 0xeffffffful

/* Up to cap - 1 bytes of a file, NUL-terminated. The length, or a negative errno with buf = "". */
ssize_t look_read(const char *path, char *buf, size_t cap);
/* Opens and closes again: 0 or a negative errno. Never creates, never truncates. */
int look_open(const char *path, int flags);
/* For writing. "Busy" is answered before a read-only mount is looked at, so that one is asked for by itself. */
int look_write(const char *path);
/* Does the file hold this text (in its first 64 KiB)? Counts as "no" when the text is "". */
bool look_has(const char *path, const char *text);
/* Is this process in the namespace ("ipc", "uts", ...) that the kernel made at boot? */
bool look_ns_is_initial(const char *name, unsigned long ino);
/* Calls fn for the names in a directory but . and .., until it returns true. True if some call did. */
bool look_each(const char *dir, bool (*fn)(const char *dir, const char *name, void *arg), void *arg);
/* The same for the number-named entries of /proc; fn gets the pid. */
bool look_each_pid(bool (*fn)(pid_t pid, void *arg), void *arg);
/* Calls fn for each line of a file (its first 64 KiB), until it returns true. fn may change the line. */
bool look_each_line(const char *path, bool (*fn)(char *line, void *arg), void *arg);
/* As probe_judge(), but what is not there counts as stopped: used where the thing exists for sure outside. */
void look_judge(struct probe_result *r, long ret, const char *note);
/* It worked, and is allowed on purpose. */
void look_accepted(struct probe_result *r, const char *note);
