/*
 * text.c - a reported call as a short, stable text for events: its name and the one or two arguments that say what
 * was wanted. Invariant: only numbers from the tables below are printed, never an argument that is a pointer, and
 * the text is the same on every architecture.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/own.h"
#include "base/str.h"
#include "seccomp/seccomp.h"

struct word {
        uint32_t value;
        const char *text;
};

#define WORDS(w) w, ARRAY_SIZE(w)

static const struct word namespaces[] = {
        { 0x00020000, "CLONE_NEWNS" },  { 0x02000000, "CLONE_NEWCGROUP" }, { 0x04000000, "CLONE_NEWUTS" },
        { 0x08000000, "CLONE_NEWIPC" }, { 0x10000000, "CLONE_NEWUSER" },   { 0x20000000, "CLONE_NEWPID" },
        { 0x40000000, "CLONE_NEWNET" }, { 0x00000080, "CLONE_NEWTIME" },
};

static const struct word families[] = {
        { 0, "AF_UNSPEC" },      { 1, "AF_UNIX" },      { 2, "AF_INET" },      { 3, "AF_AX25" },
        { 4, "AF_IPX" },         { 5, "AF_APPLETALK" }, { 6, "AF_NETROM" },    { 7, "AF_BRIDGE" },
        { 8, "AF_ATMPVC" },      { 9, "AF_X25" },       { 10, "AF_INET6" },    { 11, "AF_ROSE" },
        { 12, "AF_DECnet" },     { 13, "AF_NETBEUI" },  { 14, "AF_SECURITY" }, { 15, "AF_KEY" },
        { 16, "AF_NETLINK" },    { 17, "AF_PACKET" },   { 18, "AF_ASH" },      { 19, "AF_ECONET" },
        { 20, "AF_ATMSVC" },     { 21, "AF_RDS" },      { 22, "AF_SNA" },      { 23, "AF_IRDA" },
        { 24, "AF_PPPOX" },      { 25, "AF_WANPIPE" },  { 26, "AF_LLC" },      { 27, "AF_IB" },
        { 28, "AF_MPLS" },       { 29, "AF_CAN" },      { 30, "AF_TIPC" },     { 31, "AF_BLUETOOTH" },
        { 32, "AF_IUCV" },       { 33, "AF_RXRPC" },    { 34, "AF_ISDN" },     { 35, "AF_PHONET" },
        { 36, "AF_IEEE802154" }, { 37, "AF_CAIF" },     { 38, "AF_ALG" },      { 39, "AF_NFC" },
        { 40, "AF_VSOCK" },      { 41, "AF_KCM" },      { 42, "AF_QIPCRTR" },  { 43, "AF_SMC" },
        { 44, "AF_XDP" },        { 45, "AF_MCTP" },
};

static const struct word types[] = {
        { 1, "SOCK_STREAM" },    { 2, "SOCK_DGRAM" }, { 3, "SOCK_RAW" },     { 4, "SOCK_RDM" },
        { 5, "SOCK_SEQPACKET" }, { 6, "SOCK_DCCP" },  { 10, "SOCK_PACKET" },
};

static const struct word bpf_commands[] = {
        { 0, "BPF_MAP_CREATE" },
        { 5, "BPF_PROG_LOAD" },
        { 18, "BPF_BTF_LOAD" },
};

static const struct word ptrace_requests[] = {
        { 0, "PTRACE_TRACEME" },
        { 16, "PTRACE_ATTACH" },
        { 0x4206, "PTRACE_SEIZE" },
};

static const struct word keyctl_operations[] = {
        { 0, "KEYCTL_GET_KEYRING_ID" }, { 1, "KEYCTL_JOIN_SESSION_KEYRING" },
        { 2, "KEYCTL_UPDATE" },         { 3, "KEYCTL_REVOKE" },
        { 10, "KEYCTL_SEARCH" },        { 11, "KEYCTL_READ" },
};

/* How one argument of a call is shown. Calls that are not here show only their name. */
static const struct shown {
        const char *call;
        unsigned arg;
        uint32_t mask;
        bool flags; /* bits joined by |, others left out; no text at all if none is set */
        const struct word *words;
        size_t n;
} all_shown[] = {
        { "clone", 0, 0xffffff00, true, WORDS(namespaces) }, /* below are the signal and no flags */
        { "unshare", 0, UINT32_MAX, true, WORDS(namespaces) },
        { "setns", 1, UINT32_MAX, true, WORDS(namespaces) },
        { "socket", 0, UINT32_MAX, false, WORDS(families) },
        { "socket", 1, 0xf, false, WORDS(types) },
        { "bpf", 0, UINT32_MAX, false, WORDS(bpf_commands) },
        { "ptrace", 0, UINT32_MAX, false, WORDS(ptrace_requests) },
        { "keyctl", 0, UINT32_MAX, false, WORDS(keyctl_operations) },
};

struct out {
        char *dst;
        size_t cap, len;
};

static void add(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct out *o, const char *fmt, ...) {
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(o->dst + o->len, o->cap - o->len, fmt, ap);
        va_end(ap);
        if (n > 0)
                o->len = (size_t) n < o->cap - o->len ? o->len + (size_t) n : o->cap - 1;
}

static void add_argument(struct out *o, const struct shown *s, uint32_t value, const char *before) {
        const char *join = before;

        for (size_t i = 0; i < s->n; i++)
                if (s->flags ? (value & s->words[i].value) != 0 : value == s->words[i].value) {
                        add(o, "%s%s", join, s->words[i].text);
                        join = "|";
                }
        if (!s->flags && join == before)
                add(o, "%s%u", before, value);
}

/* Of inet sockets the type is what was refused; any other family is refused as such. */
static bool is_inet(const struct seccomp_event *ev) {
        return (uint32_t) ev->args[0] == 2 || (uint32_t) ev->args[0] == 10;
}

void seccomp_event_text(const struct seccomp_event *ev, char *dst, size_t cap) {
        struct out o = { dst, cap, 0 };
        size_t open;

        if (cap == 0)
                return;
        dst[0] = '\0';
        add(&o, "%s", ev->name);
        open = o.len;
        for (size_t i = 0; i < ARRAY_SIZE(all_shown); i++) {
                const struct shown *s = &all_shown[i];

                if (!str_eq(s->call, ev->name) || (s->words == types && !is_inet(ev)))
                        continue;
                add_argument(&o, s, (uint32_t) ev->args[s->arg] & s->mask, o.len == open ? "(" : ", ");
        }
        if (o.len > open)
                add(&o, ")");
}
