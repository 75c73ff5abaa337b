/*
 * agent.h - one connection to a sandbox's agent: whole frames in, checked for their form; bytes out. What a frame
 * means, and whether it may come now, is for the owner to say. Callbacks come from the loop only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct ap_head;
struct bufferevent;
struct envd;
struct err;
struct evbuffer;
struct wr;

struct agent_ops {
        size_t frame_max;
        /* Negative: the agent broke its protocol; err says how. body may be changed. */
        int (*on_frame)(void *data, const struct ap_head *head, uint8_t *body, size_t n, struct err *err);
        /* May be NULL. agent_is_full() was true and is no longer. */
        void (*on_room)(void *data);
        /* The connection is gone (err->code -EPROTO: cut because of what came). The agent is freed afterwards. */
        void (*on_down)(void *data, const struct err *err);
};

/* -EAGAIN: too many wait to be accepted. Others: nobody listens there. */
int agent_open(struct envd *e, const char *path, const struct agent_ops *ops, void *data, struct agent **ret,
               struct err *err);
/* Without a socket, for tests of what is done with frames: output goes nowhere. */
int agent_open_nowhere(struct envd *e, const struct agent_ops *ops, void *data, struct agent **ret);
/* Takes whole frames from in and acts on them; what on_input does. */
void agent_feed(struct agent *a, struct evbuffer *in);
/* Ends it without a callback. Accepts NULL; returns NULL. */
struct agent *agent_close(struct agent *a);
/* Another owner. */
void agent_own(struct agent *a, const struct agent_ops *ops, void *data);

/* Where one frame is put together (AP_FRAME_MAX bytes), until agent_send(). */
struct wr agent_frame(void);
/* false: the frame was too long, and nothing was sent. What cannot be sent otherwise is told by on_down(). */
bool agent_send(struct agent *a, const struct wr *w);
/* AP_DATA or AP_STDIN: n bytes from the front of `from` behind a head. */
void agent_send_bytes(struct agent *a, unsigned type, uint32_t id, struct evbuffer *from, size_t n);
bool agent_is_full(struct agent *a);
/* No frame is taken, and soon nothing is read, until agent_resume(). */
void agent_pause(struct agent *a);
void agent_resume(struct agent *a);
/* What follows is no frame: the caller owns the bufferevent, with what has come in its input. The agent is closed. */
struct bufferevent *agent_take(struct agent *a);

/* Frees what was closed; from the top of the loop. */
struct agents_dead;
void agent_reap(struct envd *e);
