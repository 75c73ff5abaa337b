/* route.c - see route.h. Paths are cut at their slashes before anything is decoded, so an encoded slash stays inside
 * its segment. Rows with a literal stand before rows with a parameter in the same place. */
#include "daemon/route.h"

#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "daemon/attempts.h"
#include "daemon/control.h"
#include "daemon/events.h"
#include "daemon/metrics.h"
#include "http/http.h"

enum { SEGMENTS = 8 };

static const struct route routes[] = {
        { "POST", "/sandboxes", VERB_CREATE, control_create_v1 },
        { "POST", "/v2/sandboxes", VERB_CREATE, control_create_v2 },
        { "GET", "/sandboxes", VERB_READ, control_list_v1 },
        { "GET", "/v2/sandboxes", VERB_READ, control_list_v2 },
        { "GET", "/sandboxes/metrics", VERB_READ, control_metrics_many },
        { "GET", "/sandboxes/{sandboxID}", VERB_READ, control_get },
        { "DELETE", "/sandboxes/{sandboxID}", VERB_KILL, control_kill },
        { "POST", "/sandboxes/{sandboxID}/timeout", VERB_UPDATE, control_timeout },
        { "POST", "/sandboxes/{sandboxID}/refreshes", VERB_UPDATE, control_refresh },
        { "POST", "/sandboxes/{sandboxID}/connect", VERB_CONNECT, control_connect_v1 },
        { "POST", "/v2/sandboxes/{sandboxID}/connect", VERB_CONNECT, control_connect_v2 },
        { "PUT", "/sandboxes/{sandboxID}/network", VERB_UPDATE, control_network },
        { "GET", "/sandboxes/{sandboxID}/metrics", VERB_READ, control_metrics },
        { "GET", "/sandboxes/{sandboxID}/logs", VERB_READ, control_logs_v1 },
        { "GET", "/v2/sandboxes/{sandboxID}/logs", VERB_READ, control_logs_v2 },
        { "POST", "/sandboxes/{sandboxID}/pause", VERB_UPDATE, control_no_pause },
        { "POST", "/sandboxes/{sandboxID}/resume", VERB_UPDATE, control_no_pause },
        { "POST", "/sandboxes/{sandboxID}/fork", VERB_CREATE, control_no_pause },
        { "POST", "/sandboxes/{sandboxID}/snapshots", VERB_UPDATE, control_no_pause },
        { "GET", "/snapshots", VERB_READ, control_no_snapshot },

        { "GET", "/templates", VERB_READ, control_templates },
        { "GET", "/templates/aliases/{alias}", VERB_READ, control_alias },
        { "POST", "/templates/tags", VERB_UPDATE, control_no_build },
        { "DELETE", "/templates/tags", VERB_UPDATE, control_no_build },
        { "POST", "/v3/templates", VERB_UPDATE, control_no_build },
        { "POST", "/v2/templates/{templateID}/builds/{buildID}", VERB_UPDATE, control_no_build },
        { "DELETE", "/templates/{templateID}", VERB_UPDATE, control_no_build },
        { "GET", "/volumes", VERB_READ, control_no_volume },
        { "POST", "/volumes", VERB_UPDATE, control_no_volume },
        { "GET", "/secrets", VERB_READ, control_no_secret },
        { "POST", "/secrets", VERB_UPDATE, control_no_secret },

        { "GET", "/teams", VERB_READ, control_teams },
        { "GET", "/api-keys", VERB_KEYS, control_keys },
        { "POST", "/api-keys", VERB_KEYS, control_key_add },
        { "DELETE", "/api-keys/{apiKeyID}", VERB_KEYS, control_key_revoke },

        { "GET", "/health", VERB_OPEN, admin_alive },
        { "GET", "/metrics", VERB_READ, metrics_serve },
        { "GET", "/gabion/v1/health", VERB_OPEN, admin_health },
        { "GET", "/gabion/v1/capacity", VERB_READ, admin_capacity },
        { "GET", "/gabion/v1/events", VERB_AUDIT, events_serve },
        { "GET", "/gabion/v1/sandboxes/{sandboxID}/policy", VERB_AUDIT, admin_policy },
        { "GET", "/gabion/v1/sandboxes/{sandboxID}/evidence", VERB_AUDIT, admin_evidence },
        { "GET", "/gabion/v1/sandboxes/{sandboxID}/denials", VERB_AUDIT, admin_denials },
        { "GET", "/gabion/v1/sandboxes/{sandboxID}/egress", VERB_AUDIT, admin_egress },
        { "GET", "/gabion/v1/sandboxes/{sandboxID}/usage", VERB_AUDIT, admin_usage },
        { "GET", "/gabion/v1/sandboxes/{sandboxID}/dossier", VERB_AUDIT, admin_dossier },
        { "POST", "/gabion/v1/sandboxes/{sandboxID}/check", VERB_AUDIT, admin_check },
        { "GET", "/gabion/v1/audit", VERB_AUDIT, admin_audit },
        { "GET", "/gabion/v1/keys", VERB_KEYS, admin_keys },
        { "POST", "/gabion/v1/keys", VERB_KEYS, admin_key_add },
        { "DELETE", "/gabion/v1/keys/{keyID}", VERB_KEYS, admin_key_revoke },
        { "GET", "/gabion/v1/tenants", VERB_TENANTS, admin_tenants },
        { "POST", "/gabion/v1/tenants", VERB_TENANTS, admin_tenant_add },
        { "GET", "/gabion/v1/tenants/{tenantID}", VERB_TENANTS, admin_tenant_get },
        { "PATCH", "/gabion/v1/tenants/{tenantID}", VERB_TENANTS, admin_tenant_update },
        { "GET", "/gabion/v1/tenants/{tenantID}/keys", VERB_TENANTS, admin_tenant_keys },
        { "POST", "/gabion/v1/tenants/{tenantID}/keys", VERB_TENANTS, admin_tenant_key_add },
        { "DELETE", "/gabion/v1/tenants/{tenantID}/keys/{keyID}", VERB_TENANTS, admin_tenant_key_revoke },
};

const struct route *route_at(size_t i) {
        return i < ARRAY_SIZE(routes) ? &routes[i] : NULL;
}

/* Does the path fit the pattern? Fills args. */
static bool fits(const char *pattern, const char *path, char args[REQUEST_ARGS][REQUEST_ARG]) {
        char segment[REQUEST_ARG];
        size_t n_args = 0;

        while (*pattern == '/') {
                size_t n = strcspn(pattern + 1, "/");

                if (http_path_next(&path, segment, sizeof(segment)) != 1)
                        return false;
                if (pattern[1] == '{') {
                        if (!segment[0] || n_args == REQUEST_ARGS)
                                return false;
                        (void) str_copy(args[n_args++], REQUEST_ARG, segment);
                } else if (strlen(segment) != n || memcmp(segment, pattern + 1, n) != 0) {
                        return false;
                }
                pattern += n + 1;
        }
        return !*path;
}

/* HEAD is GET without a body, which the HTTP layer leaves out. */
static bool is_method(const struct route *r, const char *method) {
        return str_eq(r->method, method) || (str_eq(r->method, "GET") && str_eq(method, "HEAD"));
}

const struct route *route_find(const char *method, const char *path, char args[REQUEST_ARGS][REQUEST_ARG],
                               char allow[ROUTE_ALLOW]) {
        size_t n = 0;

        allow[0] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
                int k;

                if (!fits(routes[i].pattern, path, args))
                        continue;
                if (is_method(&routes[i], method))
                        return &routes[i];
                k = snprintf(allow + n, ROUTE_ALLOW - n, "%s%s", n ? ", " : "", routes[i].method);
                n += k > 0 && (size_t) k < ROUTE_ALLOW - n ? (size_t) k : 0;
        }
        return NULL;
}
