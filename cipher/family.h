/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a family of schemes (XTS, CBC, Elephant) is to the table in scheme.c.
 * Private to cipher/.
 */
#ifndef CIPHER_FAMILY_H
#define CIPHER_FAMILY_H

#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "cipher/pool.h"

/* What a tweak's low half counts. */
enum tweak_unit {
	TWEAK_COUNTS_SECTORS,
	TWEAK_COUNTS_BYTES,
};

struct scheme_ops {
	enum tweak_unit unit;
	/* Sectors are a multiple of granule and at least min, in bytes. */
	uint32_t sector_min;
	uint32_t sector_granule;

	/* As pool_new(); NULL if the family needs no handles. */
	int (*open)(struct pool **out, unsigned int nr, int algo,
		    const uint8_t *key, size_t key_len);
	/* One sector of @len bytes; @out is @in or apart.  0 or -EIO. */
	int (*encrypt)(struct handle *h, const uint8_t *tweak, size_t len,
		       const uint8_t *in, uint8_t *out);
	int (*decrypt)(struct handle *h, const uint8_t *tweak, size_t len,
		       const uint8_t *in, uint8_t *out);
};

extern const struct scheme_ops xts_ops, cbc_ops, elephant_ops;

#endif
