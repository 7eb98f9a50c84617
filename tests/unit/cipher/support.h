/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the tests of cipher/ share: known answers as hexadecimal text, and keys
 * that are as good as any.
 */
#ifndef TESTS_UNIT_CIPHER_SUPPORT_H
#define TESTS_UNIT_CIPHER_SUPPORT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cipher/secret.h"

/* For tests that are not about memory: no limits are changed. */
static inline void start_cipher(void)
{
	enum secret_memory memory;

	if (cipher_init(0, &memory))
		abort();
}

/* Decode @hex into @out, which has room for all of it; returns bytes. */
static inline size_t from_hex(const char *hex, uint8_t *out)
{
	size_t len = strlen(hex) / 2;

	for (size_t i = 0; i < len; i++) {
		unsigned int byte;

		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			abort();
		out[i] = (uint8_t)byte;
	}
	return len;
}

static inline struct secret secret_from_hex(const char *hex)
{
	struct secret s;

	if (secret_new(&s, strlen(hex) / 2))
		abort();
	from_hex(hex, s.bytes);
	return s;
}

/* Bytes that differ from each other and with @seed; the halves differ too. */
static inline void fill(void *bytes, size_t len, unsigned int seed)
{
	uint8_t *b = bytes;

	for (size_t i = 0; i < len; i++)
		b[i] = (uint8_t)(i * 7 + (i >> 8) * 3 + seed * 31 + 1);
}

static inline struct secret secret_filled(size_t len, unsigned int seed)
{
	struct secret s;

	if (secret_new(&s, len))
		abort();
	fill(s.bytes, len, seed);
	return s;
}

#endif
