/*
 * server-load.c - clients of bench/server.py: as cheap as they can be, so that the server is measured and not they.
 * Each client is a thread with one connection that is kept. Times in milliseconds as JSON on standard output.
 *
 * usage: server-load cycle PORT CLIENTS SECONDS ROUNDS   create, exec of echo, kill, until one of both is reached
 *        server-load exec PORT ROUNDS                    exec of /bin/true in one sandbox
 *        server-load hold PORT COUNT                     creates that many, says "held", ends them at the end of input
 *        server-load spawn ROUNDS PROGRAM [ARGS...]      the same command without a server; its output is waited for
 * GABION_KEY: the API key.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 256, ROUNDS_MAX = 200000, REPLY = 64 << 10, ID = 64, TOKEN = 128, HEAD = 2048 };
enum { CREATE, FIRST, EXEC, KILL, KINDS };

static const char *const names[KINDS] = { "create_ms", "create_to_output_ms", "exec_ms", "kill_ms" };

struct client {
        pthread_t thread;
        int fd;
        unsigned done;
        char reply[REPLY];
};

static struct sockaddr_in server = { .sin_family = AF_INET };
static const char *key;
static double *times[KINDS], until_ms;
static atomic_uint n_times[KINDS], given;
static unsigned rounds;

static double now_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static _Noreturn void die(const char *what, const char *more) {
        fprintf(stderr, "server-load: %s: %.600s\n", what, more);
        exit(1);
}

static void note(int kind, double ms) {
        unsigned at = atomic_fetch_add(&n_times[kind], 1);

        if (at < ROUNDS_MAX)
                times[kind][at] = ms;
}

static void dial(struct client *c) {
        int one = 1;

        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (connect(c->fd, (struct sockaddr *) &server, sizeof(server)) < 0)
                die("connect", strerror(errno));
}

/* Sends a request and reads the whole reply. first: when a piece of standard output was in it. */
static int ask(struct client *c, const char *head, size_t n_head, const char *body, size_t n_body, double *first) {
        char all[HEAD + 1024];
        size_t n = 0, need = 0;
        char *end = NULL, *at;
        bool chunked = false;

        memcpy(all, head, n_head);
        memcpy(all + n_head, body, n_body);
        if (write(c->fd, all, n_head + n_body) != (ssize_t) (n_head + n_body))
                die("write", strerror(errno));
        for (;;) {
                ssize_t got = read(c->fd, c->reply + n, REPLY - 1 - n);

                if (got <= 0)
                        die("the server closed the connection", n ? c->reply : head);
                n += (size_t) got;
                c->reply[n] = '\0';
                if (!end && (end = memmem(c->reply, n, "\r\n\r\n", 4))) {
                        at = strcasestr(c->reply, "\r\ncontent-length:");
                        chunked = !at || at > end;
                        need = (size_t) (end + 4 - c->reply) + (chunked ? 0 : strtoul(at + 17, NULL, 10));
                        if (chunked && !strcasestr(c->reply, "\r\ntransfer-encoding: chunked"))
                                chunked = false; /* 204 */
                }
                if (first && *first == 0 && memmem(c->reply, n, "\"stdout\"", 8))
                        *first = now_ms();
                if (end && (chunked ? n >= need + 5 && memcmp(c->reply + n - 5, "0\r\n\r\n", 5) == 0 : n >= need))
                        return atoi(c->reply + 9);
        }
}

static void field(const char *reply, const char *name, char *dst, size_t cap) {
        const char *at = strstr(reply, name);
        size_t n;

        at = at ? strchr(at + strlen(name), '"') : NULL;
        n = at ? strcspn(at + 1, "\"") : 0;
        if (n == 0 || n >= cap)
                die("no such field", name);
        memcpy(dst, at + 1, n);
        dst[n] = '\0';
}

static void create(struct client *c, char id[ID], char token[TOKEN]) {
        static const char body[] = "{\"templateID\":\"base\",\"timeout\":600}";
        char head[HEAD];
        int n = snprintf(head, sizeof(head),
                         "POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"
                         "Content-Length: %zu\r\n\r\n",
                         key, sizeof(body) - 1);

        if (ask(c, head, (size_t) n, body, sizeof(body) - 1, NULL) != 201)
                die("create", c->reply);
        field(c->reply, "\"sandboxID\"", id, ID);
        field(c->reply, "\"envdAccessToken\"", token, TOKEN);
}

static void run(struct client *c, const char *id, const char *token, const char *program, const char *arg,
                double *first) {
        char head[HEAD], body[512];
        int k, n = snprintf(body + 5, sizeof(body) - 5,
                            "{\"process\":{\"cmd\":\"%s\",\"args\":[%s],\"envs\":{}},\"stdin\":false}", program, arg);
        unsigned be = htonl((unsigned) n);

        body[0] = 0;
        memcpy(body + 1, &be, 4);
        k = snprintf(
                head, sizeof(head),
                "POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\n"
                "X-Access-Token: %s\r\nAuthorization: Basic dXNlcjo=\r\nContent-Type: application/connect+json\r\n"
                "Connect-Protocol-Version: 1\r\nContent-Length: %d\r\n\r\n",
                id, token, n + 5);
        if (ask(c, head, (size_t) k, body, (size_t) n + 5, first) != 200)
                die("exec", c->reply);
        if (!memmem(c->reply, REPLY - 1, "\"exited\":true", 13))
                die("exec: the command has not ended", strstr(c->reply, "\r\n\r\n"));
}

static void end(struct client *c, const char *id) {
        char head[HEAD];
        int n = snprintf(head, sizeof(head), "DELETE /sandboxes/%s HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\n\r\n", id,
                         key);

        if (ask(c, head, (size_t) n, "", 0, NULL) != 204)
                die("kill", c->reply);
}

static void *cycles(void *arg) {
        struct client *c = arg;

        dial(c);
        while (now_ms() < until_ms && atomic_fetch_add(&given, 1) < rounds) {
                char id[ID], token[TOKEN];
                double begin = now_ms(), made, first = 0, ran;

                create(c, id, token);
                made = now_ms();
                run(c, id, token, "/bin/echo", "\"x\"", &first);
                ran = now_ms();
                end(c, id);
                note(CREATE, made - begin);
                note(FIRST, first - begin);
                note(EXEC, ran - made);
                note(KILL, now_ms() - ran);
                c->done++;
        }
        return NULL;
}

static int by_value(const void *a, const void *b) {
        double d = *(const double *) a - *(const double *) b;

        return d < 0 ? -1 : d > 0;
}

static void print_times(void) {
        for (int k = 0; k < KINDS; k++) {
                unsigned n = n_times[k] < ROUNDS_MAX ? n_times[k] : ROUNDS_MAX;

                if (n == 0)
                        continue;
                qsort(times[k], n, sizeof(double), by_value);
                printf("\"%s\": {\"n\": %u, \"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f}, ", names[k], n,
                       times[k][n / 2], times[k][n * 9 / 10], times[k][n * 99 / 100]);
        }
}

static int measure_cycles(unsigned clients, double seconds) {
        static struct client all[CLIENTS_MAX];
        double begin = now_ms(), took;
        unsigned done = 0;

        until_ms = begin + seconds * 1e3;
        for (unsigned i = 0; i < clients; i++)
                if (pthread_create(&all[i].thread, NULL, cycles, &all[i]) != 0)
                        die("thread", strerror(errno));
        for (unsigned i = 0; i < clients; i++) {
                pthread_join(all[i].thread, NULL);
                done += all[i].done;
        }
        took = (now_ms() - begin) / 1e3;
        printf("{");
        print_times();
        printf("\"clients\": %u, \"cycles\": %u, \"seconds\": %.2f, \"cycles_per_s\": %.1f}\n", clients, done, took,
               done / took);
        return 0;
}

static int measure_exec(void) {
        static struct client c;
        char id[ID], token[TOKEN];

        dial(&c);
        create(&c, id, token);
        for (unsigned i = 0; i < rounds; i++) {
                double begin = now_ms();

                run(&c, id, token, "/bin/true", "", NULL);
                note(EXEC, now_ms() - begin);
        }
        end(&c, id);
        printf("{");
        print_times();
        printf("\"rounds\": %u}\n", rounds);
        return 0;
}

static int hold(void) {
        static struct client c;
        char(*ids)[ID] = calloc(rounds, ID), token[TOKEN], byte;

        dial(&c);
        for (unsigned i = 0; i < rounds; i++)
                create(&c, ids[i], token);
        printf("held\n");
        fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
        for (unsigned i = 0; i < rounds; i++)
                end(&c, ids[i]);
        free(ids);
        return 0;
}

extern char **environ;

static int measure_spawn(char **argv) {
        for (unsigned i = 0; i < rounds; i++) {
                posix_spawn_file_actions_t actions;
                double begin = now_ms(), first = 0;
                char bytes[256];
                int pair[2], status;
                pid_t pid;

                if (pipe(pair) < 0)
                        die("pipe", strerror(errno));
                posix_spawn_file_actions_init(&actions);
                posix_spawn_file_actions_adddup2(&actions, pair[1], 1);
                posix_spawn_file_actions_addclose(&actions, pair[0]);
                posix_spawn_file_actions_addclose(&actions, pair[1]);
                if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
                        die("spawn", argv[0]);
                posix_spawn_file_actions_destroy(&actions);
                close(pair[1]);
                while (read(pair[0], bytes, sizeof(bytes)) > 0)
                        first = first > 0 ? first : now_ms();
                close(pair[0]);
                if (waitpid(pid, &status, 0) < 0 || status != 0)
                        die("it failed", argv[0]);
                note(EXEC, now_ms() - begin);
                if (first > 0)
                        note(FIRST, first - begin);
        }
        printf("{");
        print_times();
        printf("\"rounds\": %u}\n", rounds);
        return 0;
}

int main(int argc, char **argv) {
        const char *mode = argc > 1 ? argv[1] : "";

        for (int k = 0; k < KINDS; k++)
                if (!(times[k] = calloc(ROUNDS_MAX, sizeof(double))))
                        die("memory", strerror(errno));
        key = getenv("GABION_KEY") ? getenv("GABION_KEY") : "";
        server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        server.sin_port = htons((uint16_t) (argc > 2 ? atoi(argv[2]) : 0));
        if (argc == 6 && strcmp(mode, "cycle") == 0 && atoi(argv[3]) > 0 && atoi(argv[3]) <= CLIENTS_MAX) {
                rounds = (unsigned) atoi(argv[5]);
                return measure_cycles((unsigned) atoi(argv[3]), atof(argv[4]));
        }
        rounds = (unsigned) (argc > 3 ? atoi(argv[3]) : 0);
        if (argc == 4 && strcmp(mode, "exec") == 0)
                return measure_exec();
        if (argc == 4 && strcmp(mode, "hold") == 0)
                return hold();
        rounds = (unsigned) (argc > 2 ? atoi(argv[2]) : 0);
        if (argc > 3 && strcmp(mode, "spawn") == 0)
                return measure_spawn(argv + 3);
        fprintf(stderr, "usage: server-load cycle PORT CLIENTS SECONDS ROUNDS | exec PORT ROUNDS | hold PORT COUNT | "
                        "spawn ROUNDS PROGRAM [ARGS...]\n");
        return 2;
}
