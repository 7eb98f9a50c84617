/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Argon2id with its lanes in threads, several at a time: the same key as with
 * the lanes one after the other, whatever the order.  Plain, to run under
 * ThreadSanitizer.
 */
#include <gcrypt.h>
#include <pthread.h>

#include "cipher/kdf.h"
#include "plain.h"
#include "support.h"

enum {
	THREADS = 3,
	KEY_BYTES = 32
};

static const struct kdf_cost costs[] = {
	{ 1, 256, 1 },
	{ 2, 512, 2 },
	{ 3, 256, 4 },
	{ 1, 1024, KDF_LANES_MAX },
};
#define NR_COSTS (sizeof(costs) / sizeof(costs[0]))

static const uint8_t salt[KDF_SALT_BYTES] = "some salt";

/* As the library does it on its own, in this thread. */
static bool derive_in_order(const struct kdf_cost *c, uint8_t *out)
{
	const unsigned long param[] = { KEY_BYTES, c->passes, c->memory_kib,
					c->lanes };
	gcry_kdf_hd_t kdf;
	bool ok;

	if (gcry_kdf_open(&kdf, GCRY_KDF_ARGON2, GCRY_KDF_ARGON2ID, param, 4,
			  "password", 8, salt, sizeof(salt), NULL, 0, NULL, 0))
		return false;
	ok = !gcry_kdf_compute(kdf, NULL) &&
	     !gcry_kdf_final(kdf, KEY_BYTES, out);
	gcry_kdf_close(kdf);
	return ok;
}

static void *derive(void *arg)
{
	bool *ok = arg;

	*ok = true;
	for (size_t i = 0; i < NR_COSTS; i++) {
		auto_secret struct secret password = SECRET_EMPTY;
		auto_secret struct secret out = SECRET_EMPTY;
		uint8_t want[KEY_BYTES];

		*ok &= !secret_copy(&password, "password", 8);
		*ok &= !kdf_argon2id(&password, salt, &costs[i], KEY_BYTES,
				     &out);
		*ok &= derive_in_order(&costs[i], want);
		*ok = *ok && !memcmp(out.bytes, want, KEY_BYTES);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	bool ok[THREADS];
	struct tally t = { 0 };

	start_cipher();
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, derive, &ok[i]);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK(&t, ok[i]);
	}
	return tally_end(&t);
}
