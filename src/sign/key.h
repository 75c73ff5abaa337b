/* key.h - a key in memory. Private to sign/. */
#pragma once

#include <sodium.h>

#include "sign/sign.h"

struct sign_key {
        uint8_t pub[crypto_sign_PUBLICKEYBYTES];
        uint8_t secret[crypto_sign_SECRETKEYBYTES];
};

_Static_assert(SIGN_PUBLIC == crypto_sign_PUBLICKEYBYTES && SIGN_BYTES == crypto_sign_BYTES, "one size");
