/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bench-cipher [SECONDS]: MB/s (10^6 bytes) of each scheme, direction and
 * sector size, of tags and of seals, on one thread.
 *
 * Each number is the best of a few short runs, since what disturbs a run only
 * ever makes it slower.  The data is 128 KiB, as a large FUSE write is: it fits
 * the second cache, so this is the cipher and not the memory.  SECONDS is for
 * each number, 0.2 unless given.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cipher/scheme.h"
#include "cipher/seal.h"
#include "cipher/secret.h"
#include "cipher/tag.h"

enum {
	BUF_BYTES = 128 << 10,
	RUNS = 4,
	BLOCK = 4096,
	NODE = 16384
};

static uint8_t in[BUF_BYTES], out[BUF_BYTES];

/* What is measured: one pass over a buffer, by whichever of the keys. */
struct job {
	struct scheme_key *scheme;
	struct tag_key *tag;
	struct seal_key *seal;
	struct nonce_source src;
	uint32_t unit; /* bytes of a sector, block or node */
	struct nonce nonce;
	uint8_t tag_bytes[TAG_BYTES];
};

typedef int (*pass_fn)(struct job *j);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "bench-cipher: %s: error %d\n", what, -err);
	exit(1);
}

static double measure_once(pass_fn pass, struct job *j, double seconds)
{
	const double start = now();
	double elapsed;
	size_t nr = 0;

	do {
		must(pass(j), "pass");
		nr++;
		elapsed = now() - start;
	} while (elapsed < seconds);
	return (double)nr * BUF_BYTES / elapsed / 1e6;
}

static double measure(pass_fn pass, struct job *j, double seconds)
{
	double best = 0;

	must(pass(j), "first pass");
	for (int i = 0; i < RUNS; i++) {
		double mbps = measure_once(pass, j, seconds / RUNS);

		if (mbps > best)
			best = mbps;
	}
	return best;
}

static int pass_encrypt(struct job *j)
{
	static const uint8_t tweak[TWEAK_BYTES] = { 1 };

	return scheme_encrypt(j->scheme, tweak, BUF_BYTES / j->unit, in, out);
}

static int pass_decrypt(struct job *j)
{
	static const uint8_t tweak[TWEAK_BYTES] = { 1 };

	return scheme_decrypt(j->scheme, tweak, BUF_BYTES / j->unit, in, out);
}

static int pass_tag(struct job *j)
{
	int err = 0;

	for (size_t i = 0; !err && i < BUF_BYTES; i += j->unit)
		err = tag_compute(j->tag, j->nonce, in + i, j->unit,
				  j->tag_bytes);
	return err;
}

static int pass_seal(struct job *j)
{
	int err = 0;

	for (size_t i = 0; !err && i < BUF_BYTES; i += j->unit)
		err = seal_message(j->seal, &j->src, NULL, 0, in + i, j->unit,
				   out + i, &j->nonce, j->tag_bytes);
	return err;
}

/* The same node each time: the one that was sealed last. */
static int pass_open(struct job *j)
{
	const uint8_t *last = out + BUF_BYTES - j->unit;
	static uint8_t back[NODE];
	int err = 0;

	for (size_t i = 0; !err && i < BUF_BYTES; i += j->unit)
		err = seal_open(j->seal, j->nonce, NULL, 0, last, j->unit, back,
				j->tag_bytes);
	return err;
}

static void print_row(const char *what, uint32_t unit, const char *direction,
		      double mbps)
{
	printf("%-22s %6u %-8s %9.0f\n", what, unit, direction, mbps);
	fflush(stdout);
}

static void bench_scheme(const struct scheme *s, uint32_t sector,
			 double seconds)
{
	auto_secret struct secret key = SECRET_EMPTY;
	struct job j = { .unit = sector };

	must(secret_new(&key, s->key_bytes), "key");
	for (size_t i = 0; i < key.len; i++)
		key.bytes[i] = (uint8_t)i;
	must(scheme_key_new(&j.scheme, s, sector, &key, 1), s->name);
	print_row(s->name, sector, "encrypt",
		  measure(pass_encrypt, &j, seconds));
	print_row(s->name, sector, "decrypt",
		  measure(pass_decrypt, &j, seconds));
	scheme_key_free(j.scheme);
}

static void bench_tag(double seconds)
{
	auto_secret struct secret key = SECRET_EMPTY;
	struct job j = { .unit = BLOCK };

	must(secret_new(&key, TAG_KEY_BYTES), "key");
	must(tag_key_new(&j.tag, &key, 1), "tag");
	print_row("tag", BLOCK, "compute", measure(pass_tag, &j, seconds));
	tag_key_free(j.tag);
}

static void bench_seal(double seconds)
{
	auto_secret struct secret key = SECRET_EMPTY;
	struct job j = { .unit = NODE };

	must(secret_new(&key, SEAL_KEY_BYTES), "key");
	must(seal_key_new(&j.seal, &key, 1), "seal");
	must(nonce_source_init(&j.src), "nonce");
	print_row("seal", NODE, "seal", measure(pass_seal, &j, seconds));
	print_row("seal", NODE, "open", measure(pass_open, &j, seconds));
	nonce_source_destroy(&j.src);
	seal_key_free(j.seal);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.2;
	enum secret_memory memory;
	const struct scheme *s;

	must(cipher_init(0, &memory), "libgcrypt");
	printf("%-22s %6s %-8s %9s\n", "scheme", "unit", "", "MB/s");
	for (size_t i = 0; (s = scheme_at(i)); i++) {
		bench_scheme(s, 512, seconds);
		bench_scheme(s, 4096, seconds);
	}
	bench_tag(seconds);
	bench_seal(seconds);
	return 0;
}
