/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * HMAC-SHA-256 and what stands on it.  libgcrypt 1.10 has no HKDF, so RFC 5869
 * is spelled out here.
 */
#include <errno.h>
#include <gcrypt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cipher/bytes.h"
#include "cipher/kdf.h"
#include "cipher/library.h"

#define HKDF_BLOCKS_MAX 255

/* Returns 0, -ENOMEM, -ENOSYS or -EIO. */
static int hmac_open(gcry_md_hd_t *md, const uint8_t *key, size_t len)
{
	gcry_error_t err;

	err = gcry_md_open(md, GCRY_MD_SHA256,
			   GCRY_MD_FLAG_HMAC | GCRY_MD_FLAG_SECURE);
	if (err)
		return library_error(err);
	err = gcry_md_setkey(*md, key, len);
	if (err)
		gcry_md_close(*md);
	return library_error(err);
}

int hmac_sha256(const struct secret *key, const struct hmac_piece *pieces,
		size_t nr, uint8_t mac[static HMAC_BYTES])
{
	gcry_md_hd_t md;

	if (hmac_open(&md, key->bytes, key->len))
		return -EIO;
	for (size_t i = 0; i < nr; i++)
		gcry_md_write(md, pieces[i].bytes, pieces[i].len);
	memcpy(mac, gcry_md_read(md, 0), HMAC_BYTES);
	gcry_md_close(md);
	return 0;
}

/* PRK = HMAC(salt, IKM).  An absent salt is HMAC_BYTES zeros. */
static int extract(const struct secret *ikm, const void *salt, size_t salt_len,
		   struct secret *prk)
{
	static const uint8_t no_salt[HMAC_BYTES];
	const struct hmac_piece piece = { ikm->bytes, ikm->len };
	auto_secret struct secret key = SECRET_EMPTY;
	int err;

	if (salt_len)
		err = secret_copy(&key, salt, salt_len);
	else
		err = secret_copy(&key, no_salt, sizeof(no_salt));
	if (!err)
		err = secret_new(prk, HMAC_BYTES);
	if (!err)
		err = hmac_sha256(&key, &piece, 1, prk->bytes);
	return err;
}

/* T(i) = HMAC(PRK, T(i-1) || info || i), from T(0) = nothing; @out is cut. */
static int expand(const struct secret *prk, const void *info, size_t info_len,
		  struct secret *out)
{
	auto_secret struct secret t = SECRET_EMPTY;
	int err = secret_new(&t, HMAC_BYTES);
	uint8_t i = 1;

	for (size_t done = 0; !err && done < out->len; i++) {
		const struct hmac_piece pieces[] = {
			{ t.bytes, i > 1 ? HMAC_BYTES : 0 },
			{ info, info_len },
			{ &i, 1 },
		};
		size_t n = out->len - done;

		if (n > HMAC_BYTES)
			n = HMAC_BYTES;
		err = hmac_sha256(prk, pieces, 3, t.bytes);
		if (!err)
			memcpy(out->bytes + done, t.bytes, n);
		done += n;
	}
	return err;
}

int kdf_hkdf(const struct secret *ikm, const void *salt, size_t salt_len,
	     const void *info, size_t info_len, size_t out_len,
	     struct secret *out)
{
	auto_secret struct secret prk = SECRET_EMPTY;
	int err;

	*out = SECRET_EMPTY;
	if (!out_len || out_len > HKDF_BLOCKS_MAX * HMAC_BYTES)
		return -EINVAL;
	err = extract(ikm, salt, salt_len, &prk);
	if (!err)
		err = secret_new(out, out_len);
	if (!err)
		err = expand(&prk, info, info_len, out);
	if (err)
		secret_wipe(out);
	return err;
}

void hash_sha256(const void *bytes, size_t len, uint8_t out[static 32])
{
	gcry_md_hash_buffer(GCRY_MD_SHA256, out, bytes, len);
}

struct prf_key {
	pthread_mutex_t lock;
	/* Under lock: a reset brings it back to just after its key. */
	gcry_md_hd_t md;
};

int prf_key_new(struct prf_key **out, const uint8_t key[static 32])
{
	struct prf_key *k = calloc(1, sizeof(*k));
	int err;

	*out = NULL;
	if (!k)
		return -ENOMEM;
	err = hmac_open(&k->md, key, 32);
	if (err) {
		free(k);
		return err;
	}
	pthread_mutex_init(&k->lock, NULL);
	*out = k;
	return 0;
}

void prf_key_free(struct prf_key *k)
{
	if (!k)
		return;
	gcry_md_close(k->md);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

uint64_t prf_hash(struct prf_key *k, const void *bytes, size_t len)
{
	uint64_t hash;

	pthread_mutex_lock(&k->lock);
	gcry_md_reset(k->md);
	gcry_md_write(k->md, bytes, len);
	hash = get_le64(gcry_md_read(k->md, 0));
	pthread_mutex_unlock(&k->lock);
	return hash;
}
