/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * GMAC as GCM without plaintext, the faster of libgcrypt's two ways.  The
 * library would go on without a nonce, take one of any length, and accept a
 * tag of 4 bytes; this file is the only caller, sets 12 bytes every time, and
 * compares all 16 itself.
 */
#include "cipher/tag.h"

#include <errno.h>
#include <stdlib.h>

#include "cipher/pool.h"
#include "cipher/secret.h"

struct tag_key {
	struct pool *pool;
};

static int gmac(gcry_cipher_hd_t hd, const uint8_t *iv, const void *buf,
		size_t len, uint8_t *tag)
{
	/* Setting the nonce also begins a new message. */
	if (gcry_cipher_setiv(hd, iv, NONCE_BYTES) ||
	    gcry_cipher_authenticate(hd, buf, len) ||
	    gcry_cipher_gettag(hd, tag, TAG_BYTES))
		return -EIO;
	return 0;
}

/*
 * In FIPS mode the library opens the cipher, takes our nonce, and refuses the
 * tag at the very end.  Found out now, it is no I/O error of a block later.
 */
static int try_once(struct tag_key *k)
{
	const struct nonce none = { 0, 0 };
	uint8_t tag[TAG_BYTES];

	return tag_compute(k, none, "", 1, tag) ? -ENOSYS : 0;
}

int tag_key_new(struct tag_key **out, const struct secret *key,
		unsigned int nr_handles)
{
	struct tag_key *k;
	int err;

	*out = NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	err = pool_new_aes256(&k->pool, nr_handles, GCRY_CIPHER_MODE_GCM, key);
	if (!err)
		err = try_once(k);
	if (err) {
		tag_key_free(k);
		return err;
	}
	*out = k;
	return 0;
}

void tag_key_free(struct tag_key *k)
{
	if (!k)
		return;
	pool_free(k->pool);
	free(k);
}

int tag_compute(struct tag_key *k, struct nonce nonce, const void *buf,
		size_t len, uint8_t tag[static TAG_BYTES])
{
	uint8_t iv[NONCE_BYTES];
	struct handle *h;
	int err;

	nonce_encode(nonce, iv);
	h = pool_get(k->pool);
	err = gmac(h->data, iv, buf, len, tag);
	pool_put(k->pool, h);
	return err;
}

int tag_verify(struct tag_key *k, struct nonce nonce, const void *buf,
	       size_t len, const uint8_t tag[static TAG_BYTES])
{
	uint8_t right[TAG_BYTES];
	int err = tag_compute(k, nonce, buf, len, right);

	if (!err && !secret_equal(right, tag, TAG_BYTES))
		err = -EBADMSG;
	/* A right tag for wrong data is a forger's, if he can read it. */
	secret_wipe_bytes(right, sizeof(right));
	return err;
}
