/* control.h - the handlers of the control plane, as the table of routes names them. Each answers its request. */
#pragma once

#include <stdbool.h>

struct daemon;
struct request;

/* control_create.c */
void control_create_v1(struct request *q);
void control_create_v2(struct request *q);
/* Somebody waits for it. */
bool control_is_making(const struct daemon *d, const char *id);
/* control_list.c */
void control_list_v1(struct request *q);
void control_list_v2(struct request *q);
/* control_box.c */
void control_get(struct request *q);
void control_kill(struct request *q);
void control_timeout(struct request *q);
void control_refresh(struct request *q);
void control_connect_v1(struct request *q);
void control_connect_v2(struct request *q);
/* control_network.c */
void control_network(struct request *q);
/* control_usage.c */
void control_metrics(struct request *q);
void control_metrics_many(struct request *q);
void control_logs_v1(struct request *q);
void control_logs_v2(struct request *q);
/* control_team.c */
void control_templates(struct request *q);
void control_alias(struct request *q);
void control_teams(struct request *q);
void control_keys(struct request *q);
void control_key_add(struct request *q);
void control_key_revoke(struct request *q);
/* control_later.c: what this build does not do; 501. */
void control_no_pause(struct request *q);
void control_no_snapshot(struct request *q);
void control_no_build(struct request *q);
void control_no_volume(struct request *q);
void control_no_secret(struct request *q);

/* admin_server.c */
void admin_alive(struct request *q);
void admin_health(struct request *q);
void admin_capacity(struct request *q);
/* admin_audit.c */
void admin_audit(struct request *q);
void admin_dossier(struct request *q);
void admin_check(struct request *q);
/* admin_box.c */
void admin_policy(struct request *q);
void admin_evidence(struct request *q);
void admin_usage(struct request *q);
/* admin_tenant.c */
void admin_tenants(struct request *q);
void admin_tenant_add(struct request *q);
void admin_tenant_get(struct request *q);
void admin_tenant_update(struct request *q);
/* admin_key.c: of the caller's tenant, and of any for operators */
void admin_keys(struct request *q);
void admin_key_add(struct request *q);
void admin_key_revoke(struct request *q);
void admin_tenant_keys(struct request *q);
void admin_tenant_key_add(struct request *q);
void admin_tenant_key_revoke(struct request *q);
