/* truststore.h - certificates in the form in which Java reads them; it knows no PEM. */
#pragma once

struct buf;
struct err;

enum { TRUSTSTORE_DER = 64 * 1024 }; /* most bytes of one certificate */

/*
 * Appends every certificate of a PEM text to an empty *into, as a Java key store (JKS, which every version reads; its
 * password is the usual "changeit", but nobody needs it to read). -EINVAL, -E2BIG; a full buffer shows in into->bad.
 */
int truststore_jks(const char *pem, struct buf *into, struct err *err);
