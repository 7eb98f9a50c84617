/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * AES-256-GCM-SIV (RFC 8452) by libgcrypt, which wants a reset between
 * messages, then nonce, associated data, the expected tag when opening, and
 * the whole message in one call.  Both directions destroy the output on
 * failure, so they never work in place.
 */
#include "cipher/seal.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cipher/pool.h"
#include "cipher/seal_raw.h"
#include "cipher/secret.h"

struct seal_key {
	struct pool *pool;
};

int seal_key_new(struct seal_key **out, const struct secret *key,
		 unsigned int nr_handles)
{
	struct seal_key *k;
	int err;

	*out = NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	err = pool_new_aes256(&k->pool, nr_handles, GCRY_CIPHER_MODE_GCM_SIV,
			      key);
	if (err) {
		free(k);
		return err;
	}
	*out = k;
	return 0;
}

void seal_key_free(struct seal_key *k)
{
	if (!k)
		return;
	pool_free(k->pool);
	free(k);
}

static bool apart(const void *a, const void *b, size_t len)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y ? y - x >= len : x - y >= len;
}

/* Returns 0 or -EIO. */
static int begin(gcry_cipher_hd_t hd, struct nonce nonce, const void *aad,
		 size_t aad_len)
{
	uint8_t iv[NONCE_BYTES];

	nonce_encode(nonce, iv);
	if (gcry_cipher_reset(hd) || gcry_cipher_setiv(hd, iv, sizeof(iv)))
		return -EIO;
	if (aad_len && gcry_cipher_authenticate(hd, aad, aad_len))
		return -EIO;
	return 0;
}

static int siv_encrypt(gcry_cipher_hd_t hd, struct nonce nonce, const void *aad,
		       size_t aad_len, const void *in, size_t len, void *out,
		       uint8_t *tag)
{
	if (begin(hd, nonce, aad, aad_len) ||
	    gcry_cipher_encrypt(hd, out, len, in, len) ||
	    gcry_cipher_gettag(hd, tag, SEAL_TAG_BYTES))
		return -EIO;
	return 0;
}

static int siv_decrypt(gcry_cipher_hd_t hd, struct nonce nonce, const void *aad,
		       size_t aad_len, const void *in, size_t len, void *out,
		       const uint8_t *tag)
{
	gcry_error_t err;

	if (begin(hd, nonce, aad, aad_len) ||
	    gcry_cipher_set_decryption_tag(hd, (void *)tag, SEAL_TAG_BYTES))
		return -EIO;
	err = gcry_cipher_decrypt(hd, out, len, in, len);
	if (gcry_err_code(err) == GPG_ERR_CHECKSUM)
		return -EBADMSG;
	return err ? -EIO : 0;
}

int seal_message_raw(struct seal_key *k, struct nonce nonce, const void *aad,
		     size_t aad_len, const void *in, size_t len, void *out,
		     uint8_t tag[static SEAL_TAG_BYTES])
{
	struct handle *h;
	int err;

	assert(apart(in, out, len));
	h = pool_get(k->pool);
	err = siv_encrypt(h->data, nonce, aad, aad_len, in, len, out, tag);
	pool_put(k->pool, h);
	return err;
}

int seal_message(struct seal_key *k, struct nonce_source *src, const void *aad,
		 size_t aad_len, const void *in, size_t len, void *out,
		 struct nonce *nonce, uint8_t tag[static SEAL_TAG_BYTES])
{
	int err;

	assert(len >= 1 && len <= 65536);
	err = nonce_draw(src, 1, nonce);
	if (err)
		return err;
	return seal_message_raw(k, *nonce, aad, aad_len, in, len, out, tag);
}

int seal_open(struct seal_key *k, struct nonce nonce, const void *aad,
	      size_t aad_len, const void *in, size_t len, void *out,
	      const uint8_t tag[static SEAL_TAG_BYTES])
{
	struct handle *h;
	int err;

	assert(apart(in, out, len));
	h = pool_get(k->pool);
	err = siv_decrypt(h->data, nonce, aad, aad_len, in, len, out, tag);
	pool_put(k->pool, h);
	/* The library zeroes it too; here it is a promise. */
	if (err)
		memset(out, 0, len);
	return err;
}
