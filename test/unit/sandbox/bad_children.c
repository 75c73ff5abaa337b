/* bad_children.c - what tools/check-child must find: libc in a child, two calls away from its body. */
#include <unistd.h>

int child_main(void *arg);
int child_hold(void *arg);
int janitor_main(void *arg);
int maker_main(void *arg);
int listener_main(void *arg);
int filler_main(void *arg);
int visitor_main(void *arg);

static int __attribute__((noinline)) helper(const char *path) {
        return chdir(path); /* a failure would write the supervisor's errno */
}

int child_main(void *arg) {
        return helper(arg ? "/" : ".") + 1;
}

int child_hold(void *arg) {
        return arg != NULL;
}

int maker_main(void *arg) {
        return arg != NULL;
}

int listener_main(void *arg) {
        return arg == NULL;
}

int filler_main(void *arg) {
        return arg != NULL;
}

int visitor_main(void *arg) {
        return arg == NULL;
}

int janitor_main(void *arg) {
        return arg == NULL;
}
