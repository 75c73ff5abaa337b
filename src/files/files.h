/*
 * files.h - a worker: serves one connection about files with the rights of the process it runs in. Part of the agent's
 * program, so it is static and has no heap; docs/protocol/agent.md says what it answers.
 */
#pragma once

/* Serves until the host closes the connection or breaks the rules, then ends the process. Takes fd. */
_Noreturn void files_run(int fd);
