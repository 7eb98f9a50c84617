/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * CBC with IV = E_K(tweak), under the same key as the data; dm-crypt calls it
 * eboiv.  One CBC handle does both: a single block under a zero IV is the bare
 * block cipher.
 */
#include "cipher/cbc.h"

#include <errno.h>

#include "cipher/family.h"

int cbc_encrypt_iv(gcry_cipher_hd_t hd,
		   const uint8_t iv[static CBC_BLOCK_BYTES], size_t len,
		   const void *in, void *out)
{
	if (gcry_cipher_setiv(hd, iv, CBC_BLOCK_BYTES) ||
	    gcry_cipher_encrypt(hd, out, len, in, len))
		return -EIO;
	return 0;
}

int cbc_decrypt_iv(gcry_cipher_hd_t hd,
		   const uint8_t iv[static CBC_BLOCK_BYTES], size_t len,
		   const void *in, void *out)
{
	if (gcry_cipher_setiv(hd, iv, CBC_BLOCK_BYTES) ||
	    gcry_cipher_decrypt(hd, out, len, in, len))
		return -EIO;
	return 0;
}

int cbc_iv(gcry_cipher_hd_t hd, const uint8_t tweak[static CBC_BLOCK_BYTES],
	   uint8_t iv[static CBC_BLOCK_BYTES])
{
	static const uint8_t zero[CBC_BLOCK_BYTES];

	return cbc_encrypt_iv(hd, zero, CBC_BLOCK_BYTES, tweak, iv);
}

int cbc_encrypt_tweak(gcry_cipher_hd_t hd,
		      const uint8_t tweak[static CBC_BLOCK_BYTES], size_t len,
		      const void *in, void *out)
{
	uint8_t iv[CBC_BLOCK_BYTES];
	int err = cbc_iv(hd, tweak, iv);

	return err ? err : cbc_encrypt_iv(hd, iv, len, in, out);
}

int cbc_decrypt_tweak(gcry_cipher_hd_t hd,
		      const uint8_t tweak[static CBC_BLOCK_BYTES], size_t len,
		      const void *in, void *out)
{
	uint8_t iv[CBC_BLOCK_BYTES];
	int err = cbc_iv(hd, tweak, iv);

	return err ? err : cbc_decrypt_iv(hd, iv, len, in, out);
}

static int cbc_open(struct pool **out, unsigned int nr, int algo,
		    const uint8_t *key, size_t key_len)
{
	const struct pool_cipher data = {
		.algo = algo,
		.mode = GCRY_CIPHER_MODE_CBC,
		.key = key,
		.key_len = key_len,
	};

	return pool_new(out, nr, &data, NULL);
}

static int cbc_encrypt(struct handle *h, const uint8_t *tweak, size_t len,
		       const uint8_t *in, uint8_t *out)
{
	return cbc_encrypt_tweak(h->data, tweak, len, in, out);
}

static int cbc_decrypt(struct handle *h, const uint8_t *tweak, size_t len,
		       const uint8_t *in, uint8_t *out)
{
	return cbc_decrypt_tweak(h->data, tweak, len, in, out);
}

const struct scheme_ops cbc_ops = {
	.unit = TWEAK_COUNTS_BYTES,
	.sector_min = CBC_BLOCK_BYTES,
	.sector_granule = CBC_BLOCK_BYTES,
	.open = cbc_open,
	.encrypt = cbc_encrypt,
	.decrypt = cbc_decrypt,
};
