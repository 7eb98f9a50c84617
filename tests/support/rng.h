/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Repeatable randomness for tests: the same seed gives the same numbers on
 * every machine (splitmix64).  Never for keys.
 */
#ifndef TESTS_SUPPORT_RNG_H
#define TESTS_SUPPORT_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint64_t rng_next(struct rng *r)
{
	r->state += 0x9e3779b97f4a7c15ull;
	return rng_mix(r->state);
}

/* 0 to @n - 1; the bias of the remainder does not matter here. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_next(r) % n;
}

static inline bool rng_one_in(struct rng *r, uint64_t n)
{
	return rng_below(r, n) == 0;
}

/* @len bytes that depend on @pattern alone; pattern 0 is all zeros. */
static inline void rng_fill(void *buf, size_t len, uint64_t pattern)
{
	struct rng r = { pattern };
	uint8_t *p = buf;
	uint64_t x;

	if (!pattern) {
		memset(buf, 0, len);
		return;
	}
	for (; len >= sizeof(x); p += sizeof(x), len -= sizeof(x)) {
		x = rng_next(&r);
		memcpy(p, &x, sizeof(x));
	}
	x = rng_next(&r);
	if (len)
		memcpy(p, &x, len);
}

/* A quick 64-bit hash of bytes, to be told from all others met in a test. */
static inline uint64_t rng_hash(uint64_t h, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	uint64_t x;

	h ^= len;
	for (; len >= sizeof(x); p += sizeof(x), len -= sizeof(x)) {
		memcpy(&x, p, sizeof(x));
		h = rng_mix(h ^ x) + 0x9e3779b97f4a7c15ull;
	}
	x = 0;
	if (len)
		memcpy(&x, p, len);
	return rng_mix(h ^ x) + 0x9e3779b97f4a7c15ull;
}

#endif
