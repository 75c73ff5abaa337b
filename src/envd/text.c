/* text.c - the small texts of the wire. See text.h. */
#include "envd/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/hash.h"
#include "base/own.h"
#include "base/str.h"
#include "sign/sign.h"

void text_signature(char dst[ENVD_SIGNATURE], const char *path, const char *op, const char *user, const char *token,
                    const char *expiration) {
        const char *texts[] = { path, ":", op, ":", user, ":", token, expiration ? ":" : "", expiration };
        struct hash_part parts[ARRAY_SIZE(texts)];
        uint8_t digest[HASH_BYTES];
        char base64[ENVD_SIGNATURE];

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                parts[i] = (struct hash_part){ texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) : 0 };
        hash_parts(digest, parts, ARRAY_SIZE(parts));
        sign_base64(base64, sizeof(base64), digest, sizeof(digest));
        base64[strcspn(base64, "=")] = '\0';
        (void) snprintf(dst, ENVD_SIGNATURE, "v1_%.44s", base64);
}

bool text_is_secret(const char *given, const char *expected) {
        size_t n = strlen(expected);

        return strlen(given) == n && hash_equal(given, expected, n);
}

void text_mode(char dst[ENVD_MODE], uint32_t mode) {
        static const struct {
                uint32_t kind;
                const char *letters;
        } kinds[] = { { S_IFDIR, "d" },  { S_IFLNK, "L" }, { S_IFIFO, "p" },
                      { S_IFSOCK, "S" }, { S_IFBLK, "D" }, { S_IFCHR, "Dc" } };
        static const char bits[] = "rwxrwxrwx";
        char *p = dst;

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if ((mode & S_IFMT) == kinds[i].kind)
                        for (const char *k = kinds[i].letters; *k; k++)
                                *p++ = *k;
        if (mode & S_ISUID)
                *p++ = 'u';
        if (mode & S_ISGID)
                *p++ = 'g';
        if (mode & S_ISVTX)
                *p++ = 't';
        if (p == dst)
                *p++ = '-';
        for (int i = 0; i < 9; i++)
                *p++ = mode & (0400u >> i) ? bits[i] : '-';
        *p = '\0';
}

void text_time(char dst[ENVD_TIME], int64_t seconds, uint32_t nanoseconds) {
        const int64_t first = -62135596800, last = 253402300799; /* the years 1 and 9999 */
        time_t t = seconds < first || seconds > last ? 0 : (time_t) seconds;
        uint32_t ns = nanoseconds < 1000000000 ? nanoseconds : 0;
        char fraction[16] = "";
        struct tm tm = { 0 };

        if (ns % 1000000 == 0 && ns > 0)
                (void) snprintf(fraction, sizeof(fraction), ".%03" PRIu32, ns / 1000000);
        else if (ns % 1000 == 0 && ns > 0)
                (void) snprintf(fraction, sizeof(fraction), ".%06" PRIu32, ns / 1000);
        else if (ns > 0)
                (void) snprintf(fraction, sizeof(fraction), ".%09" PRIu32, ns);
        (void) gmtime_r(&t, &tm);
        (void) snprintf(dst, ENVD_TIME, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", (tm.tm_year + 1900) % 10000,
                        tm.tm_mon % 12 + 1, tm.tm_mday % 100, tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100,
                        fraction);
}

void text_lower(char *s) {
        for (; *s; s++)
                if (*s >= 'A' && *s <= 'Z')
                        *s = (char) (*s - 'A' + 'a');
}

void text_exit(char dst[ENVD_EXIT], bool signalled, uint32_t code) {
        const char *name = signalled && code < 65 ? sigdescr_np((int) code) : NULL;

        if (!signalled) {
                (void) snprintf(dst, ENVD_EXIT, "exit status %" PRIu32, code);
        } else if (!name) {
                (void) snprintf(dst, ENVD_EXIT, "signal: signal %" PRIu32, code);
        } else {
                (void) snprintf(dst, ENVD_EXIT, "signal: %s", name);
                text_lower(dst); /* glibc's words are then Go's */
        }
}

int text_path(char *dst, size_t cap, const char *home, const char *path) {
        const char *parts[2] = { home, path };
        size_t len = 0;

        if (path[0] == '~') {
                if (path[1] && path[1] != '/')
                        return -EINVAL;
                parts[1] = path + 1;
        } else if (path[0] == '/') {
                parts[0] = "";
        }
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                for (const char *p = parts[i]; *p;) {
                        size_t n = strcspn(p, "/");

                        if (n == 2 && p[0] == '.' && p[1] == '.') {
                                while (len > 0 && dst[--len] != '/')
                                        ;
                        } else if (n > 0 && !(n == 1 && p[0] == '.')) {
                                if (len + n + 2 > cap)
                                        return -ENAMETOOLONG;
                                dst[len++] = '/';
                                memcpy(dst + len, p, n);
                                len += n;
                        }
                        p += n + (p[n] == '/');
                }
        if (len == 0)
                dst[len++] = '/';
        dst[len] = '\0';
        return 0;
}

const char *text_name(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash && slash[1] ? slash + 1 : path;
}
