/* id.c - see id.h. */
#include "base/id.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

int id_new(char dst[ID_TEXT]) {
        static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        uint8_t raw[64];
        size_t n = 0;

        while (n < ID_LEN) {
                if (getrandom(raw, sizeof(raw), 0) != (ssize_t) sizeof(raw))
                        return -EIO;
                /* Values from 252 on are thrown away: 252 = 7 * 36, so the rest is uniform. */
                for (size_t i = 0; i < sizeof(raw) && n < ID_LEN; i++)
                        if (raw[i] < 252)
                                dst[n++] = set[raw[i] % 36];
        }
        dst[ID_LEN] = '\0';
        return 0;
}
