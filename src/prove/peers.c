/*
 * peers.c - how other sandboxes are called for a comparison: the ordinary hardened options of each, as its own manual
 * suggests them, and nothing that its default would refuse. They are shown in the report's help, so that nobody has to
 * guess what was compared.
 */
#include "base/own.h"
#include "base/str.h"
#include "prove/prove.h"

static const struct {
        const char *name, *command;
} peers[] = {
        { "bwrap",
          "bwrap --unshare-all --unshare-user --disable-userns --die-with-parent --new-session --clearenv --cap-drop ALL "
          "--uid 1000 --gid 1000 --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib "
          "--symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --tmpfs /home --ro-bind {probe} /probe "
          "/probe {args}" },
        { "firejail",
          "firejail --quiet --noprofile --seccomp --caps.drop=all --nonewprivs --noroot --net=none --private-dev "
          "--private {}" },
};

const char *prove_peer(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(peers); i++)
                if (str_eq(peers[i].name, name))
                        return peers[i].command;
        return NULL;
}

const char *prove_peer_name(size_t i) {
        return i < ARRAY_SIZE(peers) ? peers[i].name : NULL;
}
