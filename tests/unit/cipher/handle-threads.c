/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Keys that many threads share, with fewer handles than threads: nobody gets
 * another's handle, and who waits is woken.  Plain, to run under
 * ThreadSanitizer.
 */
#include <pthread.h>

#include "cipher/kdf.h"
#include "cipher/scheme.h"
#include "cipher/seal.h"
#include "cipher/tag.h"
#include "plain.h"
#include "support.h"

enum {
	THREADS = 8,
	HANDLES = 3,
	ROUNDS = 300,
	SECTORS = 2,
	SECTOR = 512
};
#define LEN (SECTORS * SECTOR)

struct keys {
	struct scheme_key *scheme;
	struct tag_key *tag;
	struct seal_key *seal;
	struct hint_key *hint;
	struct prf_key *prf;
	uint64_t name_hash;
	struct nonce_source src;
};

struct worker {
	pthread_t thread;
	struct keys *keys;
	unsigned int number;
	int errors;
};

/* Every result is checked by undoing it, amid the others' work. */
static int work_once(struct keys *k, unsigned int seed)
{
	uint8_t plain[LEN], out[LEN], back[LEN];
	uint8_t tweak[TWEAK_BYTES], tag[TAG_BYTES];
	struct nonce n = { seed, seed };
	int errors = 0;

	fill(plain, sizeof(plain), seed);
	scheme_tweak(k->scheme, seed, 0, tweak);
	errors += scheme_encrypt(k->scheme, tweak, SECTORS, plain, out) != 0;
	errors += tag_compute(k->tag, n, out, LEN, tag) != 0;
	errors += tag_verify(k->tag, n, out, LEN, tag) != 0;
	errors += scheme_decrypt(k->scheme, tweak, SECTORS, out, back) != 0;
	errors += memcmp(plain, back, LEN) != 0;

	errors += seal_message(k->seal, &k->src, "aad", 3, plain, LEN, out, &n,
			       tag) != 0;
	errors += seal_open(k->seal, n, "aad", 3, out, LEN, back, tag) != 0;
	errors += memcmp(plain, back, LEN) != 0;

	errors += hint_encrypt(k->hint, tweak, plain, out) != 0;
	errors += hint_decrypt(k->hint, tweak, out, back) != 0;
	errors += memcmp(plain, back, HINT_BYTES) != 0;
	errors += prf_hash(k->prf, "name", 4) != k->name_hash;
	return errors;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned int i = 0; i < ROUNDS; i++)
		w->errors += work_once(w->keys, w->number * ROUNDS + i);
	return NULL;
}

static void open_keys(struct tally *t, struct keys *k, const struct scheme *s)
{
	auto_secret struct secret data = secret_filled(s->key_bytes, 1);
	auto_secret struct secret other = secret_filled(32, 2);

	CHECK(t, scheme_key_new(&k->scheme, s, SECTOR, &data, HANDLES) == 0);
	CHECK(t, tag_key_new(&k->tag, &other, HANDLES) == 0);
	CHECK(t, seal_key_new(&k->seal, &other, 1) == 0);
	CHECK(t, hint_key_new(&k->hint, &other, HANDLES) == 0);
	CHECK(t, prf_key_new(&k->prf, other.bytes) == 0);
	k->name_hash = prf_hash(k->prf, "name", 4);
	CHECK(t, nonce_source_init(&k->src) == 0);
}

static void close_keys(struct keys *k)
{
	nonce_source_destroy(&k->src);
	prf_key_free(k->prf);
	hint_key_free(k->hint);
	seal_key_free(k->seal);
	tag_key_free(k->tag);
	scheme_key_free(k->scheme);
}

static void run_scheme(struct tally *t, const struct scheme *s)
{
	struct worker workers[THREADS];
	struct keys keys;

	open_keys(t, &keys, s);
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .keys = &keys, .number = i };
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		CHECK(t, workers[i].errors == 0);
	}
	close_keys(&keys);
}

int main(void)
{
	const struct scheme *s;
	struct tally t = { 0 };

	start_cipher();
	for (size_t i = 0; (s = scheme_at(i)); i++)
		run_scheme(&t, s);
	return tally_end(&t);
}
