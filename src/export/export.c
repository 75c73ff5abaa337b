/* export.c - see export.h. Severities and fields as docs/audit.md has them in a table. */
#include "export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"

#define ENTERPRISE "32473" /* the number that RFC 5612 sets aside for examples; ours when there is one */

enum { FACILITY_AUDIT = 13, SEVERITIES = 7 };

static const char *const forms[EXPORT_FORMS] = { "ocsf", "syslog", "cef", "otlp", "hec", "webhook" };
/* By OCSF severity: syslog, CEF, OTLP. */
static const struct {
        int syslog, cef, otlp;
        const char *text;
} severities[SEVERITIES] = {
        { 6, 2, 9, "Unknown" }, { 6, 2, 9, "Informational" }, { 5, 4, 10, "Low" },    { 4, 6, 13, "Medium" },
        { 3, 8, 17, "High" },   { 2, 9, 18, "Critical" },     { 1, 10, 21, "Fatal" },
};

/* What the forms need of a record. */
struct parts {
        struct json *doc;
        const char *id, *code, *tenant, *host, *denial, *sandbox, *object, *version;
        uint64_t time_ms, seq;
        int severity;
};

const char *export_form_name(enum export_form f) {
        return f < EXPORT_FORMS ? forms[f] : "?";
}

enum export_form export_form_find(const char *name) {
        size_t i = 0;

        while (i < EXPORT_FORMS && !str_eq(forms[i], name))
                i++;
        return (enum export_form) i;
}

static const char *or_empty(const char *s) {
        return s ? s : "";
}

static int parts_get(const char *line, size_t n, struct parts *ret, struct err *err) {
        const struct json *metadata, *device;
        int64_t severity;

        if (json_parse("record", line, n, &ret->doc, err) < 0)
                return err->code;
        metadata = json_get(ret->doc, "metadata");
        device = json_get(ret->doc, "device");
        severity = json_get_int(ret->doc, "severity_id", 0);
        ret->id = or_empty(json_get_str(metadata, "uid"));
        ret->code = or_empty(json_get_str(metadata, "event_code"));
        ret->tenant = or_empty(json_get_str(metadata, "tenant_uid"));
        ret->version = or_empty(json_get_str(json_get(metadata, "product"), "version"));
        ret->host = or_empty(json_get_str(device, "hostname"));
        ret->sandbox = or_empty(json_get_str(json_get(device, "container"), "uid"));
        ret->denial = or_empty(json_get_str(ret->doc, "status_code"));
        ret->object = or_empty(json_get_str(json_get(ret->doc, "unmapped"), "object"));
        ret->time_ms = (uint64_t) json_get_int(ret->doc, "time", 0);
        ret->seq = (uint64_t) json_get_int(metadata, "sequence", 0);
        ret->severity = severity > 0 && severity < SEVERITIES ? (int) severity : 0;
        if (!ret->id[0] || !ret->code[0])
                return err_set(err, -EBADMSG, ERR_INVALID, "export: it is not a record of an audit log");
        return 0;
}

static void parts_done(struct parts *p) {
        p->doc = json_free(p->doc);
}

/* --- syslog and CEF --- */

/* A header field: printable ASCII without spaces, or a dash. */
static void put_token(struct buf *to, const char *s, size_t most) {
        size_t n = 0;

        for (; *s && n < most; s++, n++)
                buf_add(to, *s > 0x20 && *s < 0x7f ? s : "_", 1);
        if (n == 0)
                buf_add(to, "-", 1);
}

static void put_escaped(struct buf *to, const char *s, const char *special) {
        for (; *s; s++) {
                if (strchr(special, *s))
                        buf_add(to, "\\", 1);
                buf_add(to, s, 1);
        }
}

static void put_header(struct buf *to, const struct parts *p) {
        char time[CLOCK_TEXT];

        clock_rfc3339_at(time, p->time_ms);
        buf_addf(to, "<%d>1 %s ", FACILITY_AUDIT * 8 + severities[p->severity].syslog, time);
        put_token(to, p->host, 255);
        buf_addf(to, " gabion - ");
        put_token(to, p->code, 32);
        buf_addf(to, " ");
}

static void put_param(struct buf *to, const char *name, const char *value) {
        if (!value[0])
                return;
        buf_addf(to, " %s=\"", name);
        put_escaped(to, value, "\"\\]");
        buf_addf(to, "\"");
}

static void put_syslog(struct buf *to, const struct parts *p, const char *line, size_t n) {
        put_header(to, p);
        buf_addf(to, "[gabion@" ENTERPRISE);
        put_param(to, "event", p->id);
        put_param(to, "code", p->denial);
        put_param(to, "tenant", p->tenant);
        put_param(to, "sandbox", p->sandbox);
        buf_addf(to, " seq=\"%" PRIu64 "\"] \xef\xbb\xbf", p->seq);
        buf_add(to, line, n);
}

static void put_pair(struct buf *to, const char *key, const char *value) {
        if (!value[0])
                return;
        buf_addf(to, " %s=", key);
        put_escaped(to, value, "\\=");
}

static void put_cef(struct buf *to, const struct parts *p) {
        static const char *const actions[] = { "unknown", "allowed", "blocked", "observed" };
        const struct json *dst = json_get(p->doc, "dst_endpoint");
        int64_t port = json_get_int(dst, "port", 0), exit_code = json_get_int(p->doc, "exit_code", -1);

        put_header(to, p);
        buf_addf(to, "- CEF:0|Gabion|Gabion|");
        put_escaped(to, p->version, "\\|");
        buf_addf(to, "|");
        put_escaped(to, p->denial[0] ? p->denial : p->code, "\\|");
        buf_addf(to, "|");
        put_escaped(to, p->code, "\\|");
        buf_addf(to, "|%d|rt=%" PRIu64, severities[p->severity].cef, p->time_ms);
        put_pair(to, "act", actions[json_get_int(p->doc, "action_id", 0) & 3]);
        put_pair(to, "dhost", or_empty(json_get_str(dst, "hostname")));
        if (port > 0)
                buf_addf(to, " dpt=%" PRId64, port);
        put_pair(to, "proto", or_empty(json_get_str(json_get(p->doc, "connection_info"), "protocol_name")));
        put_pair(to, "dproc", or_empty(json_get_str(json_get(p->doc, "process"), "name")));
        put_pair(to, "filePath", or_empty(json_get_str(json_get(p->doc, "file"), "path")));
        put_pair(to, "suid", or_empty(json_get_str(json_get(json_get(p->doc, "actor"), "user"), "uid")));
        if (exit_code >= 0)
                buf_addf(to, " cn1Label=exitCode cn1=%" PRId64, exit_code);
        put_pair(to, "externalId", p->id);
        if (p->sandbox[0])
                put_pair(to, "cs1Label", "sandbox");
        put_pair(to, "cs1", p->sandbox);
        if (json_get(p->doc, "policy"))
                put_pair(to, "cs2Label", "policy");
        put_pair(to, "cs2", or_empty(json_get_str(json_get(p->doc, "policy"), "uid")));
        put_pair(to, "cs3Label", "tenant");
        put_pair(to, "cs3", p->tenant);
        put_pair(to, "msg", p->object);
}

/* --- JSON forms --- */

static void attribute_str(struct json_emit *e, const char *key, const char *value) {
        if (!value[0])
                return;
        json_emit_object(e, NULL);
        json_emit_str(e, "key", key);
        json_emit_object(e, "value");
        json_emit_str(e, "stringValue", value);
        json_emit_close(e, '}');
        json_emit_close(e, '}');
}

static void attribute_int(struct json_emit *e, const char *key, int64_t value) {
        char text[24];

        (void) snprintf(text, sizeof(text), "%" PRId64, value); /* 64-bit integers travel as text */
        json_emit_object(e, NULL);
        json_emit_str(e, "key", key);
        json_emit_object(e, "value");
        json_emit_str(e, "intValue", text);
        json_emit_close(e, '}');
        json_emit_close(e, '}');
}

static void put_otlp(struct buf *to, const struct parts *p, const char *line, size_t n) {
        struct json_emit e = { .to = to };
        AUTO_FREE char *body = strndup(line, n);
        char name[80], time[32];

        (void) snprintf(name, sizeof(name), "gabion.%.64s", p->code);
        (void) snprintf(time, sizeof(time), "%" PRIu64 "000000", p->time_ms);
        json_emit_object(&e, NULL);
        json_emit_array(&e, "attributes");
        attribute_str(&e, "gabion.event", p->id);
        attribute_str(&e, "gabion.tenant", p->tenant);
        attribute_str(&e, "gabion.sandbox", p->sandbox);
        attribute_str(&e, "gabion.code", p->denial);
        attribute_str(&e, "gabion.object", p->object);
        attribute_int(&e, "gabion.sequence", (int64_t) p->seq);
        attribute_int(&e, "ocsf.class_uid", json_get_int(p->doc, "class_uid", 0));
        attribute_int(&e, "ocsf.activity_id", json_get_int(p->doc, "activity_id", 0));
        json_emit_close(&e, ']');
        json_emit_object(&e, "body");
        json_emit_str(&e, "stringValue", body ? body : "");
        json_emit_close(&e, '}');
        json_emit_str(&e, "eventName", name);
        json_emit_str(&e, "observedTimeUnixNano", time);
        json_emit_int(&e, "severityNumber", severities[p->severity].otlp);
        json_emit_str(&e, "severityText", severities[p->severity].text);
        json_emit_str(&e, "timeUnixNano", time);
        json_emit_close(&e, '}');
        to->bad |= !body;
}

static void put_hec(struct buf *to, const struct parts *p, const char *line, size_t n) {
        struct json_emit e = { .to = to };
        char source[96];

        (void) snprintf(source, sizeof(source), "gabion:%.64s", p->tenant);
        buf_addf(to, "{\"event\":");
        buf_add(to, line, n);
        buf_addf(to, ",\"host\":");
        json_emit_str(&e, NULL, p->host);
        buf_addf(to, ",\"source\":");
        json_emit_str(&e, NULL, source);
        buf_addf(to, ",\"sourcetype\":\"gabion:ocsf\",\"time\":%" PRIu64 ".%03u}", p->time_ms / 1000,
                 (unsigned) (p->time_ms % 1000));
}

static void put_webhook(struct buf *to, const struct parts *p, const char *line, size_t n) {
        struct json_emit e = { .to = to };
        char time[CLOCK_TEXT];

        clock_rfc3339_at(time, p->time_ms);
        buf_addf(to, "{\"data\":");
        buf_add(to, line, n);
        buf_addf(to, ",\"timestamp\":\"%s\",\"type\":", time);
        json_emit_str(&e, NULL, p->code);
        buf_addf(to, "}");
}

void export_begin(enum export_form f, const char *host, struct buf *to) {
        struct json_emit e = { .to = to };

        if (f != EXPORT_OTLP)
                return;
        buf_addf(to, "{\"resourceLogs\":[{\"resource\":{\"attributes\":[");
        attribute_str(&e, "service.name", "gabion");
        buf_addf(to, ",");
        attribute_str(&e, "host.name", host[0] ? host : "localhost");
        buf_addf(to, "]},\"scopeLogs\":[{\"scope\":{\"name\":\"gabion.audit\"},\"logRecords\":[");
}

int export_add(enum export_form f, const char *line, size_t n, struct buf *to, struct err *err) {
        CLEANUP(parts_done) struct parts p = { 0 };
        int r = parts_get(line, n, &p, err);

        if (r < 0)
                return r;
        switch (f) {
        case EXPORT_OCSF:
                buf_add(to, line, n);
                buf_add(to, "\n", 1);
                break;
        case EXPORT_SYSLOG:
                put_syslog(to, &p, line, n);
                break;
        case EXPORT_CEF:
                put_cef(to, &p);
                break;
        case EXPORT_OTLP:
                if (to->len > 0 && to->p[to->len - 1] == '}')
                        buf_add(to, ",", 1);
                put_otlp(to, &p, line, n);
                break;
        case EXPORT_HEC:
                put_hec(to, &p, line, n);
                break;
        case EXPORT_WEBHOOK:
                put_webhook(to, &p, line, n);
                break;
        case EXPORT_FORMS:
                return err_set(err, -EINVAL, ERR_INVALID, "export: unknown form");
        }
        return to->bad ? err_set(err, -E2BIG, ERR_LIMIT, "export: the batch is too large") : 0;
}

void export_end(enum export_form f, struct buf *to) {
        if (f == EXPORT_OTLP)
                buf_addf(to, "]}]}]}");
}

void export_frame(const char *message, size_t n, struct buf *to) {
        buf_addf(to, "%zu ", n);
        buf_add(to, message, n);
}

int export_key_parse(const char *text, struct export_key *ret, struct err *err) {
        bool secret = str_has_prefix(text, "whsec_");
        ssize_t n = -1;

        ret->ed25519 = str_has_prefix(text, "whsk_");
        if (secret || ret->ed25519)
                n = sign_unbase64(ret->bytes, sizeof(ret->bytes), strchr(text, '_') + 1);
        if ((secret && (n < 24 || n > 64)) || (ret->ed25519 && n != 32 && n != 64) || (!secret && !ret->ed25519))
                return err_set(err, -EINVAL, ERR_INVALID,
                               "webhook key: 'whsec_' and base64 of 24 to 64 bytes, or 'whsk_' and base64 of 32, is "
                               "expected");
        ret->n = (size_t) n;
        return 0;
}

int export_webhook_sign(const struct export_key *k, const char *id, uint64_t time_s, const char *body, size_t n,
                        struct buf *to, struct err *err) {
        struct buf text = BUF_INIT(EXPORT_WEBHOOK_MAX + 256);
        uint8_t sig[SIGN_BYTES];
        char base64[96];

        buf_addf(&text, "%s.%" PRIu64 ".", id, time_s);
        buf_add(&text, body, n);
        if (text.bad || strchr(id, '.')) {
                buf_done(&text);
                return err_set(err, -E2BIG, ERR_LIMIT, "webhook: the body has more than %d bytes", EXPORT_WEBHOOK_MAX);
        }
        if (k->ed25519)
                sign_seed(k->bytes, text.p, text.len, sig);
        else
                sign_hmac(k->bytes, k->n, text.p, text.len, sig);
        sign_base64(base64, sizeof(base64), sig, k->ed25519 ? SIGN_BYTES : HASH_BYTES);
        buf_addf(to, "%s,%s", k->ed25519 ? "v1a" : "v1", base64);
        buf_done(&text);
        return 0;
}
