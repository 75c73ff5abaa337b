/*
 * trust.h - what a sandbox trusts when egress opens its TLS, or the operator brought certificates along: one bundle in
 * the place where programs look, and the variables by which the others are told.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

struct egressctl;
struct err;

enum { TRUST_BYTES = (4 << 20) + 128 * 1024, TRUST_VARIABLES = 6 };

/* The bundle at `path`, then the certificate of egress (waits until it is ready). buf_done(into) also on failure. */
int trust_bundle(const char *path, struct egressctl *e, struct buf *into, struct err *err);

/* The name of variable i, with its '='. */
const char *trust_variable(size_t i);
