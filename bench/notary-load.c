/*
 * notary-load.c - writers for the measurements and crash tests of the notary.
 *
 * usage: notary-load SOCKET WRITERS EVENTS WINDOW [print]
 * Each writer appends EVENTS events and waits for the acknowledgement after every WINDOW of them. With "print" it says
 * the ids of acknowledged events, a line per event, at once: whatever was printed must be found in the log. At the end
 * (without "print") one JSON object: events, seconds, and the times of single windows in microseconds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "notary/notary.h"

enum { WAIT_MS = 20000, MOST = 1 << 20 };

static uint64_t *times; /* of windows, shared by the writers */

static int by_value(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

static int window_send(struct notary_client *c, uint64_t from, uint64_t n, char (*ids)[AUDIT_ID], struct err *err) {
        for (uint64_t i = 0; i < n; i++) {
                struct audit_event ev;
                int r;

                audit_event_init(&ev, AUDIT_NET_CONTACT, "load", "k3v9x2m4q8r7t1w5z6ab");
                audit_object(&ev, "api.example.com");
                ev.port = 443;
                ev.decision = AUDIT_ALLOWED;
                audit_text(&ev, "protocol", "tcp");
                audit_number(&ev, "index", (int64_t) (from + i));
                memcpy(ids[i], ev.id, AUDIT_ID);
                r = notary_append(c, &ev, err);
                if (r < 0)
                        return r;
        }
        return notary_wait(c, WAIT_MS, err);
}

static int write_all(const char *path, unsigned writer, uint64_t events, uint64_t window, bool print) {
        char(*ids)[AUDIT_ID] = calloc(window, AUDIT_ID);
        struct notary_client c;
        struct err err = { 0 };
        uint64_t n_windows = (events + window - 1) / window;
        int r = ids ? notary_connect(path, &c, &err) : -ENOMEM;

        for (uint64_t k = 0; r == 0 && k < n_windows; k++) {
                uint64_t start = clock_mono_ns(), n = k + 1 < n_windows ? window : events - k * window;

                r = window_send(&c, k * window, n, ids, &err);
                times[writer * n_windows + k] = clock_mono_ns() - start;
                for (uint64_t i = 0; r == 0 && print && i < n; i++)
                        if (printf("%s\n", ids[i]) < 0 || fflush(stdout) != 0)
                                r = -EIO;
        }
        if (r < 0 && !print)
                (void) fprintf(stderr, "notary-load: %s\n", err.msg);
        free(ids);
        return r < 0;
}

int main(int argc, char **argv) {
        uint64_t writers, events, window, start, n;
        double seconds;
        int status, failed = 0;

        if (argc < 5 || str_to_u64(argv[2], 64, &writers) < 0 || str_to_u64(argv[3], MOST, &events) < 0 ||
            str_to_u64(argv[4], MOST, &window) < 0 || window == 0 || writers == 0 || events == 0) {
                (void) fprintf(stderr, "usage: notary-load SOCKET WRITERS EVENTS WINDOW [print]\n");
                return 2;
        }
        n = writers * ((events + window - 1) / window);
        times = mmap(NULL, n * sizeof(*times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (times == MAP_FAILED)
                return 2;
        start = clock_mono_ns();
        for (unsigned i = 0; i < writers; i++)
                if (fork() == 0)
                        _exit(write_all(argv[1], i, events, window, argc > 5));
        while (wait(&status) > 0)
                failed |= status != 0;
        if (argc > 5)
                return failed;
        seconds = (double) (clock_mono_ns() - start) / 1e9;
        qsort(times, n, sizeof(*times), by_value);
        (void) printf("{\"writers\": %llu, \"events\": %llu, \"window\": %llu, \"seconds\": %.3f, "
                      "\"events_per_second\": %.0f, \"window_p50_us\": %.1f, \"window_p99_us\": %.1f}\n",
                      (unsigned long long) writers, (unsigned long long) (writers * events),
                      (unsigned long long) window, seconds, (double) (writers * events) / seconds,
                      (double) times[n / 2] / 1e3, (double) times[n * 99 / 100] / 1e3);
        return failed;
}
