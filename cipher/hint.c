/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The salvage hint: 64 bytes of AES-256-CBC under the encrypted tweak, as the
 * sector scheme.  Its first 16 bytes are the node's tag, new at every write,
 * so two hints under one tweak do not show what they have in common.
 */
#include "cipher/seal.h"

#include <errno.h>
#include <stdlib.h>

#include "cipher/cbc.h"
#include "cipher/pool.h"
#include "cipher/secret.h"

struct hint_key {
	struct pool *pool;
};

int hint_key_new(struct hint_key **out, const struct secret *key,
		 unsigned int nr_handles)
{
	struct hint_key *k;
	int err;

	*out = NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	err = pool_new_aes256(&k->pool, nr_handles, GCRY_CIPHER_MODE_CBC, key);
	if (err) {
		free(k);
		return err;
	}
	*out = k;
	return 0;
}

void hint_key_free(struct hint_key *k)
{
	if (!k)
		return;
	pool_free(k->pool);
	free(k);
}

int hint_encrypt(struct hint_key *k, const uint8_t tweak[static 16],
		 const void *in, void *out)
{
	struct handle *h = pool_get(k->pool);
	int err = cbc_encrypt_tweak(h->data, tweak, HINT_BYTES, in, out);

	pool_put(k->pool, h);
	return err;
}

int hint_decrypt(struct hint_key *k, const uint8_t tweak[static 16],
		 const void *in, void *out)
{
	struct handle *h = pool_get(k->pool);
	int err = cbc_decrypt_tweak(h->data, tweak, HINT_BYTES, in, out);

	pool_put(k->pool, h);
	return err;
}
