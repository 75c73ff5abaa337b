/* limits_life.h - the attempts of group I that are no plain load; limits.c has the table. */
#pragma once

struct probe_canaries;
struct probe_result;

void life_sparse(const struct probe_canaries *c, struct probe_result *r);
void life_files(const struct probe_canaries *c, struct probe_result *r);
void life_mq(const struct probe_canaries *c, struct probe_result *r);
void life_msg(const struct probe_canaries *c, struct probe_result *r);
void life_cpu(const struct probe_canaries *c, struct probe_result *r);
void life_orphan(const struct probe_canaries *c, struct probe_result *r);
void life_zombies_left(const struct probe_canaries *c, struct probe_result *r);
void life_kill(const struct probe_canaries *c, struct probe_result *r);
void life_core(const struct probe_canaries *c, struct probe_result *r);
void life_namespaces(const struct probe_canaries *c, struct probe_result *r);
void life_signal_init(const struct probe_canaries *c, struct probe_result *r);
void life_signal_others(const struct probe_canaries *c, struct probe_result *r);
void life_control_forks(const struct probe_canaries *c, struct probe_result *r);
void life_control_memory(const struct probe_canaries *c, struct probe_result *r);
