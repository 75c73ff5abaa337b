#!/bin/sh
# Honest work, for machines without python3: finds primes, writes them to /out and says so.
set -eu
limit=20000
seq 2 $limit | factor | awk 'NF == 2 { print $2 }' >/out/primes.txt
echo "$(wc -l </out/primes.txt) primes below $limit, written to /out/primes.txt"
