/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * XTS (IEEE Std 1619), by libgcrypt's bulk functions, one call a sector.
 *
 * The library advances the tweak by one with every call and takes an IV of any
 * length without complaint, so the full 16 bytes are set before each call;
 * that costs 8 ns, and a wrong tweak would be silent.
 */
#include <errno.h>

#include "cipher/family.h"
#include "cipher/library.h"
#include "cipher/scheme.h"

static int xts_open(struct pool **out, unsigned int nr, int algo,
		    const uint8_t *key, size_t key_len)
{
	const struct pool_cipher data = {
		.algo = algo,
		.mode = GCRY_CIPHER_MODE_XTS,
		.key = key,
		.key_len = key_len,
	};

	return pool_new(out, nr, &data, NULL);
}

static int xts_encrypt(struct handle *h, const uint8_t *tweak, size_t len,
		       const uint8_t *in, uint8_t *out)
{
	if (gcry_cipher_setiv(h->data, tweak, TWEAK_BYTES) ||
	    gcry_cipher_encrypt(h->data, out, len, in, len))
		return -EIO;
	return 0;
}

static int xts_decrypt(struct handle *h, const uint8_t *tweak, size_t len,
		       const uint8_t *in, uint8_t *out)
{
	if (gcry_cipher_setiv(h->data, tweak, TWEAK_BYTES) ||
	    gcry_cipher_decrypt(h->data, out, len, in, len))
		return -EIO;
	return 0;
}

const struct scheme_ops xts_ops = {
	.unit = TWEAK_COUNTS_SECTORS,
	.sector_min = 16,
	.sector_granule = 1, /* ciphertext stealing */
	.open = xts_open,
	.encrypt = xts_encrypt,
	.decrypt = xts_decrypt,
};
