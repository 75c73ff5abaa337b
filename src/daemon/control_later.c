/* control_later.c - calls of the E2B protocol that this build does not serve. They are in the table so that a client is
 * told so, and not that the path is unknown. */
#include "daemon/control.h"
#include "daemon/request.h"

static void no(struct request *q, const char *what) {
        reply_error(q, 501, "not_implemented", "%s are not available in this build", what);
}

void control_no_pause(struct request *q) {
        if (request_box(q))
                no(q, "pause, resume and fork");
}

void control_no_snapshot(struct request *q) {
        no(q, "snapshots");
}

void control_no_build(struct request *q) {
        no(q, "template builds and tags");
}

void control_no_volume(struct request *q) {
        no(q, "volumes");
}

void control_no_secret(struct request *q) {
        no(q, "secrets");
}
