"""Honest work: finds primes, writes them to /out and says so."""
import hashlib

LIMIT = 200_000

sieve = bytearray([1]) * LIMIT
sieve[0:2] = b"\0\0"
for i in range(2, int(LIMIT**0.5) + 1):
    if sieve[i]:
        sieve[i * i::i] = bytes(len(sieve[i * i::i]))
primes = [i for i in range(LIMIT) if sieve[i]]
text = "\n".join(map(str, primes)) + "\n"
with open("/out/primes.txt", "w", encoding="ascii") as out:
    out.write(text)
print(f"{len(primes)} primes below {LIMIT}, written to /out/primes.txt, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}")
