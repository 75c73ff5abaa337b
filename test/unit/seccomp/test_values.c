/* test_values.c - the names in values.txt mean what the system's headers say. */
#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <linux/fs.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/personality.h>
#include <linux/prctl.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/str.h"
#include "model.h"

#define V(name)                                                                                                        \
        { #name, (uint32_t) (name) }

static const struct {
        const char *name;
        uint32_t v;
} known[] = {
        { "NAMESPACE_BITS",
          CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET },
        { "NOT_THREAD_STATE", ~(uint32_t) (CLONE_FS | CLONE_FILES | CLONE_SYSVSEM) },
        { "LISTENER_FLAGS", SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV },
        { "NOT_RESET_ON_FORK", ~(uint32_t) SCHED_RESET_ON_FORK },
        { "SCHED_OTHER", SCHED_NORMAL },
        { "IOPRIO_CLASS_BITS", IOPRIO_CLASS_MASK << IOPRIO_CLASS_SHIFT },
        { "IOPRIO_CLASS_BE", IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT },
        { "IOPRIO_CLASS_IDLE", IOPRIO_CLASS_IDLE << IOPRIO_CLASS_SHIFT },
        { "PERSONALITY_QUERY", UINT32_MAX },
        V(AF_UNIX),
        V(AF_INET),
        V(AF_INET6),
        V(AF_NETLINK),
        V(PF_UNIX),
        V(SOCK_STREAM),
        V(SOCK_DGRAM),
        V(SOCK_RAW),
        V(SOCK_SEQPACKET),
        V(NETLINK_ROUTE),
        V(IPPROTO_IP),
        V(IPPROTO_TCP),
        V(IPPROTO_UDP),
        V(IPPROTO_IPV6),
        V(SOL_SOCKET),
        V(SOL_NETLINK),
        V(SO_ATTACH_FILTER),
        V(SO_ATTACH_BPF),
        V(SO_ATTACH_REUSEPORT_CBPF),
        V(SO_ATTACH_REUSEPORT_EBPF),
        V(TCP_ULP),
        V(UDP_ENCAP),
        V(ADDR_NO_RANDOMIZE),
        V(SECCOMP_SET_MODE_STRICT),
        V(SECCOMP_SET_MODE_FILTER),
        V(SECCOMP_GET_ACTION_AVAIL),
        V(S_IFMT),
        V(S_IFIFO),
        V(S_IFREG),
        V(S_IFSOCK),
        V(SCHED_BATCH),
        V(SCHED_IDLE),
        V(PR_SET_PDEATHSIG),
        V(PR_GET_PDEATHSIG),
        V(PR_GET_DUMPABLE),
        V(PR_SET_DUMPABLE),
        V(PR_GET_KEEPCAPS),
        V(PR_SET_KEEPCAPS),
        V(PR_SET_NAME),
        V(PR_GET_NAME),
        V(PR_GET_SECCOMP),
        V(PR_SET_SECCOMP),
        V(PR_CAPBSET_READ),
        V(PR_GET_SECUREBITS),
        V(PR_SET_TIMERSLACK),
        V(PR_GET_TIMERSLACK),
        V(PR_SET_CHILD_SUBREAPER),
        V(PR_GET_CHILD_SUBREAPER),
        V(PR_SET_NO_NEW_PRIVS),
        V(PR_GET_NO_NEW_PRIVS),
        V(PR_SET_THP_DISABLE),
        V(PR_GET_THP_DISABLE),
        V(PR_SVE_SET_VL),
        V(PR_SVE_GET_VL),
        V(PR_GET_SPECULATION_CTRL),
        V(PR_SET_TAGGED_ADDR_CTRL),
        V(PR_GET_TAGGED_ADDR_CTRL),
        V(PR_SET_VMA),
        V(PR_SET_PTRACER),
        V(TCGETS),
        V(TCSETS),
        V(TCSETSW),
        V(TCSETSF),
        V(TCSBRK),
        V(TCXONC),
        V(TCFLSH),
        V(TIOCSCTTY),
        V(TIOCGPGRP),
        V(TIOCSPGRP),
        V(TIOCOUTQ),
        V(TIOCGWINSZ),
        V(TIOCSWINSZ),
        V(FIONREAD),
        V(TIOCPKT),
        V(FIONBIO),
        V(TIOCNOTTY),
        V(TCSBRKP),
        V(TIOCGSID),
        V(TCGETS2),
        V(TCSETS2),
        V(TCSETSW2),
        V(TCSETSF2),
        V(TIOCGPTN),
        V(TIOCSPTLCK),
        V(TIOCGPTPEER),
        V(FIONCLEX),
        V(FIOCLEX),
        V(FIOASYNC),
        V(SIOCATMARK),
        V(SIOCGIFNAME),
        V(SIOCGIFCONF),
        V(SIOCGIFFLAGS),
        V(SIOCGIFADDR),
        V(SIOCGIFBRDADDR),
        V(SIOCGIFNETMASK),
        V(SIOCGIFMTU),
        V(SIOCGIFHWADDR),
        V(SIOCGIFINDEX),
        V(SIOCETHTOOL),
        V(FICLONE),
};

static void named_values_match_the_headers(void **state) {
        struct model *m = model_new(SECCOMP_TABLES, SECCOMP_ARCH);
        unsigned checked = 0;
        const char *name;
        uint32_t v;

        (void) state;
        for (size_t i = 0; model_value(m, i, &name, &v); i++)
                for (size_t k = 0; k < ARRAY_SIZE(known); k++)
                        if (str_eq(known[k].name, name)) {
                                if (known[k].v != v)
                                        print_error("%s: table %x, headers %x\n", name, v, known[k].v);
                                assert_int_equal(known[k].v, v);
                                checked++;
                        }
        assert_int_equal(checked, ARRAY_SIZE(known));
        (void) model_free(m);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(named_values_match_the_headers) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
