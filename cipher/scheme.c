/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table of schemes, and what all of them share: sizes are checked when a
 * key is made, tweaks are counted here, and a family sees one sector at a
 * time.  A new cipher is a row here, not new code.
 */
#include "cipher/scheme.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cipher/bytes.h"
#include "cipher/family.h"
#include "cipher/secret.h"

#define SECTOR_BYTES_MAX (16u << 20) /* libgcrypt's limit for XTS */

struct scheme_key {
	const struct scheme *scheme;
	uint32_t sector_bytes;
	struct pool *pool; /* NULL for a scheme without a key */
};

static int none_copy(struct handle *h, const uint8_t *tweak, size_t len,
		     const uint8_t *in, uint8_t *out)
{
	if (in != out)
		memcpy(out, in, len);
	return 0;
}

static const struct scheme_ops none_ops = {
	.unit = TWEAK_COUNTS_BYTES,
	.sector_min = 16,
	.sector_granule = 16,
	.encrypt = none_copy,
	.decrypt = none_copy,
};

/* clang-format off */
static const struct scheme schemes[] = {
	{ SCHEME_NONE, "none",
	  0, &none_ops, GCRY_CIPHER_NONE },
	{ SCHEME_AES_128_XTS, "aes-128-xts",
	  32, &xts_ops, GCRY_CIPHER_AES128 },
	{ SCHEME_AES_256_XTS, "aes-256-xts",
	  64, &xts_ops, GCRY_CIPHER_AES256 },
	{ SCHEME_AES_128_CBC, "aes-128-cbc",
	  16, &cbc_ops, GCRY_CIPHER_AES128 },
	{ SCHEME_AES_256_CBC, "aes-256-cbc",
	  32, &cbc_ops, GCRY_CIPHER_AES256 },
	{ SCHEME_AES_128_CBC_ELEPHANT, "aes-128-cbc-elephant",
	  32, &elephant_ops, GCRY_CIPHER_AES128 },
	{ SCHEME_AES_256_CBC_ELEPHANT, "aes-256-cbc-elephant",
	  64, &elephant_ops, GCRY_CIPHER_AES256 },
};
/* clang-format on */
#define NR_SCHEMES (sizeof(schemes) / sizeof(schemes[0]))

const struct scheme *scheme_at(size_t index)
{
	return index < NR_SCHEMES ? &schemes[index] : NULL;
}

const struct scheme *scheme_by_name(const char *name)
{
	for (size_t i = 0; i < NR_SCHEMES; i++)
		if (!strcmp(schemes[i].name, name))
			return &schemes[i];
	return NULL;
}

const struct scheme *scheme_by_id(uint16_t id)
{
	for (size_t i = 0; i < NR_SCHEMES; i++)
		if (schemes[i].id == id)
			return &schemes[i];
	return NULL;
}

static int open_pool(struct scheme_key *k, const struct secret *key,
		     unsigned int nr_handles)
{
	if (!k->scheme->ops->open)
		return 0;
	return k->scheme->ops->open(&k->pool, nr_handles, k->scheme->algo,
				    key->bytes, key->len);
}

int scheme_key_new(struct scheme_key **out, const struct scheme *scheme,
		   uint32_t sector_bytes, const struct secret *key,
		   unsigned int nr_handles)
{
	const struct scheme_ops *ops = scheme->ops;
	struct scheme_key *k;
	int err;

	*out = NULL;
	if (sector_bytes < ops->sector_min || sector_bytes > SECTOR_BYTES_MAX ||
	    sector_bytes % ops->sector_granule || key->len != scheme->key_bytes)
		return -EINVAL;

	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->scheme = scheme;
	k->sector_bytes = sector_bytes;
	err = open_pool(k, key, nr_handles);
	if (err) {
		free(k);
		return err;
	}
	*out = k;
	return 0;
}

void scheme_key_free(struct scheme_key *k)
{
	if (!k)
		return;
	pool_free(k->pool);
	free(k);
}

/* By how much the tweak's low half grows with each sector. */
static uint64_t tweak_step(const struct scheme_key *k)
{
	return k->scheme->ops->unit == TWEAK_COUNTS_SECTORS ? 1
							    : k->sector_bytes;
}

void scheme_tweak(const struct scheme_key *k, uint64_t session,
		  uint64_t offset_bytes, uint8_t tweak[static TWEAK_BYTES])
{
	/* The top bit tells the halves of Elephant's sector key apart. */
	assert(!(session >> 63));
	assert(offset_bytes % k->sector_bytes == 0);

	put_le64(tweak, offset_bytes / k->sector_bytes * tweak_step(k));
	put_le64(tweak + 8, session);
}

typedef int (*sector_fn)(struct handle *h, const uint8_t *tweak, size_t len,
			 const uint8_t *in, uint8_t *out);

static int for_each_sector(const struct scheme_key *k, sector_fn fn,
			   struct handle *h, const uint8_t *first, size_t nr,
			   const uint8_t *in, uint8_t *out)
{
	const uint64_t low = get_le64(first), step = tweak_step(k);
	const size_t len = k->sector_bytes;
	uint8_t tweak[TWEAK_BYTES];

	memcpy(tweak, first, sizeof(tweak));
	for (size_t i = 0; i < nr; i++) {
		int err;

		put_le64(tweak, low + i * step);
		err = fn(h, tweak, len, in + i * len, out + i * len);
		if (err)
			return err;
	}
	return 0;
}

static int run(struct scheme_key *k, sector_fn fn, const uint8_t *first,
	       size_t nr, const uint8_t *in, uint8_t *out)
{
	struct handle *h = NULL;
	int err;

	if (!nr)
		return 0;
	if (nr - 1 > (UINT64_MAX - get_le64(first)) / tweak_step(k))
		return -EOVERFLOW;

	if (k->pool)
		h = pool_get(k->pool);
	err = for_each_sector(k, fn, h, first, nr, in, out);
	if (k->pool)
		pool_put(k->pool, h);
	return err;
}

int scheme_encrypt(struct scheme_key *k,
		   const uint8_t tweak[static TWEAK_BYTES], size_t nr,
		   const void *in, void *out)
{
	return run(k, k->scheme->ops->encrypt, tweak, nr, in, out);
}

int scheme_decrypt(struct scheme_key *k,
		   const uint8_t tweak[static TWEAK_BYTES], size_t nr,
		   const void *in, void *out)
{
	return run(k, k->scheme->ops->decrypt, tweak, nr, in, out);
}
