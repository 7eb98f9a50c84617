/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What cipher/ does when the library or the kernel fails: each operation is
 * run again and again, and its first, second, third... call that can fail does
 * so, until it runs through.  Every failure must come back as an error that
 * the header names, and leave nothing open; the address sanitizer's leak check
 * sees the rest, since this is a plain program (TL8).
 *
 * The linker puts the functions here in front of the real ones.
 */
#include <errno.h>
#include <gcrypt.h>
#include <pthread.h>
#include <sys/random.h>

#include "cipher/kdf.h"
#include "cipher/keyslot.h"
#include "cipher/scheme.h"
#include "cipher/seal.h"
#include "cipher/tag.h"
#include "plain.h"
#include "support.h"

static struct {
	/* Calls until one fails; 0: none does. */
	unsigned int countdown;
	gcry_err_code_t code; /* of the library's failure */
	bool fired;
	bool no_threads;
	bool interrupted; /* the next getrandom() */
	unsigned int zero_draws;
	/* What is open now. */
	long nr_ciphers, nr_digests, nr_kdfs, nr_secrets;
} world;

/* clang-format off: it takes WRAP() for a call. */

static bool fails(void)
{
	if (!world.countdown || --world.countdown)
		return false;
	world.fired = true;
	return true;
}

static gcry_error_t failure(void)
{
	return gcry_error(world.code);
}

/* Declared first, as the real ones are elsewhere. */
#define WRAP(type, name, parameters)   \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters

WRAP(gcry_error_t, gcry_cipher_open,
     (gcry_cipher_hd_t * hd, int algo, int mode, unsigned int flags))
{
	gcry_error_t err;

	if (fails())
		return failure();
	err = __real_gcry_cipher_open(hd, algo, mode, flags);
	world.nr_ciphers += !err;
	return err;
}

WRAP(void, gcry_cipher_close, (gcry_cipher_hd_t hd))
{
	world.nr_ciphers -= hd != NULL;
	__real_gcry_cipher_close(hd);
}

WRAP(gcry_error_t, gcry_cipher_setkey,
     (gcry_cipher_hd_t hd, const void *key, size_t len))
{
	return fails() ? failure() : __real_gcry_cipher_setkey(hd, key, len);
}

WRAP(gcry_error_t, gcry_cipher_setiv,
     (gcry_cipher_hd_t hd, const void *iv, size_t len))
{
	return fails() ? failure() : __real_gcry_cipher_setiv(hd, iv, len);
}

WRAP(gcry_error_t, gcry_cipher_ctl,
     (gcry_cipher_hd_t hd, int command, void *buf, size_t len))
{
	return fails() ? failure()
		       : __real_gcry_cipher_ctl(hd, command, buf, len);
}

WRAP(gcry_error_t, gcry_cipher_encrypt,
     (gcry_cipher_hd_t hd, void *out, size_t out_len, const void *in,
      size_t in_len))
{
	return fails() ? failure()
		       : __real_gcry_cipher_encrypt(hd, out, out_len, in,
						    in_len);
}

WRAP(gcry_error_t, gcry_cipher_decrypt,
     (gcry_cipher_hd_t hd, void *out, size_t out_len, const void *in,
      size_t in_len))
{
	return fails() ? failure()
		       : __real_gcry_cipher_decrypt(hd, out, out_len, in,
						    in_len);
}

WRAP(gcry_error_t, gcry_cipher_authenticate,
     (gcry_cipher_hd_t hd, const void *bytes, size_t len))
{
	return fails() ? failure()
		       : __real_gcry_cipher_authenticate(hd, bytes, len);
}

WRAP(gcry_error_t, gcry_cipher_gettag,
     (gcry_cipher_hd_t hd, void *tag, size_t len))
{
	return fails() ? failure() : __real_gcry_cipher_gettag(hd, tag, len);
}

WRAP(gcry_error_t, gcry_md_open,
     (gcry_md_hd_t * md, int algo, unsigned int flags))
{
	gcry_error_t err;

	if (fails())
		return failure();
	err = __real_gcry_md_open(md, algo, flags);
	world.nr_digests += !err;
	return err;
}

WRAP(void, gcry_md_close, (gcry_md_hd_t md))
{
	world.nr_digests -= md != NULL;
	__real_gcry_md_close(md);
}

WRAP(gcry_error_t, gcry_md_setkey,
     (gcry_md_hd_t md, const void *key, size_t len))
{
	return fails() ? failure() : __real_gcry_md_setkey(md, key, len);
}

WRAP(gcry_error_t, gcry_kdf_open,
     (gcry_kdf_hd_t * kdf, int algo, int subalgo, const unsigned long *param,
      unsigned int nr, const void *pass, size_t pass_len, const void *salt,
      size_t salt_len, const void *key, size_t key_len, const void *ad,
      size_t ad_len))
{
	gcry_error_t err;

	if (fails())
		return failure();
	err = __real_gcry_kdf_open(kdf, algo, subalgo, param, nr, pass,
				   pass_len, salt, salt_len, key, key_len, ad,
				   ad_len);
	world.nr_kdfs += !err;
	return err;
}

WRAP(gcry_error_t, gcry_kdf_compute,
     (gcry_kdf_hd_t kdf, const gcry_kdf_thread_ops_t *ops))
{
	return fails() ? failure() : __real_gcry_kdf_compute(kdf, ops);
}

WRAP(gcry_error_t, gcry_kdf_final, (gcry_kdf_hd_t kdf, size_t len, void *out))
{
	return fails() ? failure() : __real_gcry_kdf_final(kdf, len, out);
}

WRAP(void, gcry_kdf_close, (gcry_kdf_hd_t kdf))
{
	world.nr_kdfs--;
	__real_gcry_kdf_close(kdf);
}

WRAP(void *, gcry_calloc_secure, (size_t nr, size_t size))
{
	void *p = fails() ? NULL : __real_gcry_calloc_secure(nr, size);

	world.nr_secrets += p != NULL;
	return p;
}

WRAP(void, gcry_free, (void *p))
{
	world.nr_secrets -= p != NULL;
	__real_gcry_free(p);
}

WRAP(void *, calloc, (size_t nr, size_t size))
{
	return fails() ? NULL : __real_calloc(nr, size);
}

WRAP(ssize_t, getrandom, (void *buf, size_t len, unsigned int flags))
{
	if (world.interrupted) {
		world.interrupted = false;
		errno = EINTR;
		return -1;
	}
	if (fails()) {
		errno = EAGAIN;
		return -1;
	}
	if (world.zero_draws) {
		world.zero_draws--;
		memset(buf, 0, len);
		return (ssize_t)len;
	}
	/* Short counts are allowed, and must be gone on from. */
	return __real_getrandom(buf, len > 3 ? 3 : len, flags);
}

WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*fn)(void *),
      void *arg))
{
	return world.no_threads ? EAGAIN
				: __real_pthread_create(thread, attr, fn, arg);
}

/* clang-format on */

/* Operations, each whole: what it opens, it closes. */

static struct secret key16, key32, key64;
static uint8_t data[1024], out[1024], tag[16];
static const uint8_t tweak[TWEAK_BYTES] = { 1 };
static const struct nonce nonce = { 1, 2 };

static struct scheme_key *scheme_key;
static struct tag_key *tag_key;
static struct seal_key *seal_key;
static struct hint_key *hint_key;
static struct nonce_source src;
static struct keyslot slot;
static const struct keyslot_place place = { .index = 1 };

static const struct secret *key_of(const struct scheme *s)
{
	return s->key_bytes == 16   ? &key16
	       : s->key_bytes == 32 ? &key32
				    : &key64;
}

static const struct scheme *scheme;

static int new_scheme_key(void)
{
	struct scheme_key *k;
	int err = scheme_key_new(&k, scheme, 512, key_of(scheme), 3);

	scheme_key_free(k);
	return err;
}

static int encrypt(void)
{
	return scheme_encrypt(scheme_key, tweak, 2, data, out);
}

static int decrypt(void)
{
	return scheme_decrypt(scheme_key, tweak, 2, data, out);
}

static int self_test(void)
{
	return scheme_self_test(scheme);
}

static int new_tag_key(void)
{
	struct tag_key *k;
	int err = tag_key_new(&k, &key32, 2);

	tag_key_free(k);
	return err;
}

static int compute_tag(void)
{
	return tag_compute(tag_key, nonce, data, sizeof(data), tag);
}

static int verify_tag(void)
{
	return tag_verify(tag_key, nonce, data, sizeof(data), tag);
}

static int new_seal_key(void)
{
	struct seal_key *k;
	int err = seal_key_new(&k, &key32, 2);

	seal_key_free(k);
	return err;
}

static struct nonce sealed_nonce;

static int seal(void)
{
	return seal_message(seal_key, &src, "aad", 3, data, sizeof(data), out,
			    &sealed_nonce, tag);
}

static int open_sealed(void)
{
	uint8_t back[sizeof(data)];
	int err;

	memset(back, 1, sizeof(back));
	err = seal_open(seal_key, sealed_nonce, "aad", 3, out, sizeof(out),
			back, tag);
	/* Nothing of an unfinished message is left. */
	for (size_t i = 0; err && i < sizeof(back); i++)
		if (back[i])
			return -ENOTRECOVERABLE;
	return err;
}

static int new_hint_key(void)
{
	struct hint_key *k;
	int err = hint_key_new(&k, &key32, 2);

	hint_key_free(k);
	return err;
}

static int encrypt_hint(void)
{
	return hint_encrypt(hint_key, tweak, data, out);
}

static int decrypt_hint(void)
{
	return hint_decrypt(hint_key, tweak, data, out);
}

static int new_prf_key(void)
{
	struct prf_key *k;
	int err = prf_key_new(&k, key32.bytes);

	prf_key_free(k);
	return err;
}

static int hkdf(void)
{
	auto_secret struct secret okm = SECRET_EMPTY;
	int err = kdf_hkdf(&key32, "salt", 4, "info", 4, 70, &okm);

	return err && okm.bytes ? -ENOTRECOVERABLE : err;
}

static int argon2id(void)
{
	const struct kdf_cost cost = { 1, 32, 4 };
	auto_secret struct secret key = SECRET_EMPTY;
	int err = kdf_argon2id(&key32, data, &cost, 32, &key);

	return err && key.bytes ? -ENOTRECOVERABLE : err;
}

static int calibrate(void)
{
	struct kdf_cost cost;

	return kdf_calibrate(1, 1024, &cost);
}

static int wrap(void)
{
	slot = (struct keyslot){ .kind = KEYSLOT_PASSWORD,
				 .kdf = KDF_ARGON2ID,
				 .cost = { 1, 32, 4 } };
	return keyslot_wrap(&slot, &place, &key32, &key64, &src);
}

static int wrap_external(void)
{
	struct keyslot s = {
		.kind = KEYSLOT_EXTERNAL,
		.kdf = KDF_HKDF_SHA256,
	};

	return keyslot_wrap(&s, &place, &key32, &key64, &src);
}

static int unwrap(void)
{
	auto_secret struct secret master = SECRET_EMPTY;
	int err = keyslot_unwrap(&slot, &place, &key32, &master);

	return err && master.bytes ? -ENOTRECOVERABLE : err;
}

static int new_nonce_source(void)
{
	struct nonce_source s;
	int err = nonce_source_init(&s);

	if (!err)
		nonce_source_destroy(&s);
	return err;
}

static int draw_random(void)
{
	return random_bytes(out, 20);
}

static int copy_secret(void)
{
	auto_secret struct secret s = SECRET_EMPTY;

	return secret_copy(&s, data, 20);
}

/* What each may return when something fails. */
enum {
	MAY_EIO = 1,
	MAY_ENOMEM = 2,
	MAY_ENOSYS = 4,
	MAY_EAGAIN = 8,
	MAY_NEW = MAY_EIO | MAY_ENOMEM | MAY_ENOSYS,
};

struct operation {
	const char *name;
	int (*run)(void);
	unsigned int may;
};

static bool is_allowed(unsigned int may, int err)
{
	return (err == -EIO && may & MAY_EIO) ||
	       (err == -ENOMEM && may & MAY_ENOMEM) ||
	       (err == -ENOSYS && may & MAY_ENOSYS) ||
	       (err == -EAGAIN && may & MAY_EAGAIN);
}

static bool nothing_left_open(const typeof(world) *before)
{
	return world.nr_ciphers == before->nr_ciphers &&
	       world.nr_digests == before->nr_digests &&
	       world.nr_kdfs == before->nr_kdfs &&
	       world.nr_secrets == before->nr_secrets;
}

/* Returns whether the @n-th call existed. */
static bool run_with_failure(struct tally *t, const struct operation *op,
			     unsigned int n, gcry_err_code_t code)
{
	const typeof(world) before = world;
	bool good;
	int err;

	world.countdown = n;
	world.code = code;
	world.fired = false;
	err = op->run();
	world.countdown = 0;

	good = world.fired ? is_allowed(op->may, err) : !err;
	good = good && nothing_left_open(&before);
	if (!good)
		printf("%s: call %u failed with %d: %s\n", op->name, n,
		       (int)code, strerror(-err));
	CHECK(t, good);
	return world.fired;
}

static void run_operation(struct tally *t, const struct operation *op)
{
	static const gcry_err_code_t codes[] = {
		GPG_ERR_INTERNAL,
		GPG_ERR_ENOMEM,
		GPG_ERR_NOT_SUPPORTED,
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		for (unsigned int n = 1; run_with_failure(t, op, n, codes[i]);
		     n++)
			;
}

static void run_schemes(struct tally *t)
{
	static const struct operation operations[] = {
		{ "scheme_key_new", new_scheme_key, MAY_NEW },
		{ "scheme_encrypt", encrypt, MAY_EIO },
		{ "scheme_decrypt", decrypt, MAY_EIO },
		{ "scheme_self_test", self_test, MAY_EIO | MAY_ENOSYS },
	};

	for (size_t i = 1; (scheme = scheme_at(i)); i++) {
		CHECK(t, scheme_key_new(&scheme_key, scheme, 512,
					key_of(scheme), 1) == 0);
		for (size_t j = 0; j < 4; j++)
			run_operation(t, &operations[j]);
		scheme_key_free(scheme_key);
	}
}

static void run_others(struct tally *t)
{
	static const struct operation operations[] = {
		{ "tag_key_new", new_tag_key, MAY_NEW },
		{ "tag_compute", compute_tag, MAY_EIO },
		{ "tag_verify", verify_tag, MAY_EIO },
		{ "seal_key_new", new_seal_key, MAY_NEW },
		{ "seal_message", seal, MAY_EIO },
		{ "seal_open", open_sealed, MAY_EIO },
		{ "hint_key_new", new_hint_key, MAY_NEW },
		{ "hint_encrypt", encrypt_hint, MAY_EIO },
		{ "hint_decrypt", decrypt_hint, MAY_EIO },
		{ "prf_key_new", new_prf_key, MAY_NEW },
		{ "kdf_hkdf", hkdf, MAY_EIO | MAY_ENOMEM },
		{ "kdf_argon2id", argon2id, MAY_NEW },
		{ "kdf_calibrate", calibrate, MAY_NEW },
		{ "keyslot_wrap", wrap, MAY_NEW | MAY_EAGAIN },
		{ "keyslot_wrap", wrap_external, MAY_NEW | MAY_EAGAIN },
		{ "keyslot_unwrap", unwrap, MAY_NEW },
		{ "nonce_source_init", new_nonce_source, MAY_EAGAIN },
		{ "random_bytes", draw_random, MAY_EAGAIN },
		{ "secret_copy", copy_secret, MAY_ENOMEM },
	};

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		run_operation(t, &operations[i]);
}

/* Without threads the lanes are computed in this one: the same key. */
static void tl1_argon2id_without_threads_is_the_same(struct tally *t)
{
	const struct kdf_cost cost = { 2, 64, 4 };
	auto_secret struct secret with = SECRET_EMPTY;
	auto_secret struct secret without = SECRET_EMPTY;

	CHECK(t, kdf_argon2id(&key32, data, &cost, 32, &with) == 0);
	world.no_threads = true;
	CHECK(t, kdf_argon2id(&key32, data, &cost, 32, &without) == 0);
	world.no_threads = false;
	CHECK(t, secret_equal(with.bytes, without.bytes, 32));
}

static void interrupted_draw_is_repeated(struct tally *t)
{
	world.interrupted = true;
	CHECK(t, random_bytes(out, 20) == 0);
	CHECK(t, !world.interrupted);
}

/* 0 is the session of test vectors: a source that draws it draws again. */
static void session_0_is_drawn_again(struct tally *t)
{
	struct nonce_source s;

	world.zero_draws = 2;
	CHECK(t, nonce_source_init(&s) == 0);
	CHECK(t, s.session != 0);
	CHECK(t, world.zero_draws == 0);
	nonce_source_destroy(&s);
}

static void open_keys(struct tally *t)
{
	key16 = secret_filled(16, 1);
	key32 = secret_filled(32, 1);
	key64 = secret_filled(64, 1);
	CHECK(t, nonce_source_init(&src) == 0);
	CHECK(t, tag_key_new(&tag_key, &key32, 1) == 0);
	CHECK(t, seal_key_new(&seal_key, &key32, 1) == 0);
	CHECK(t, hint_key_new(&hint_key, &key32, 1) == 0);
}

static void close_keys(void)
{
	hint_key_free(hint_key);
	seal_key_free(seal_key);
	tag_key_free(tag_key);
	nonce_source_destroy(&src);
	secret_wipe(&key64);
	secret_wipe(&key32);
	secret_wipe(&key16);
}

int main(void)
{
	struct tally t = { 0 };

	start_cipher();
	/* The start looks where the pool is, by functions not in front. */
	world.nr_secrets = 0;
	open_keys(&t);
	run_schemes(&t);
	run_others(&t);
	tl1_argon2id_without_threads_is_the_same(&t);
	interrupted_draw_is_repeated(&t);
	session_0_is_drawn_again(&t);
	close_keys();
	CHECK(&t, !world.nr_ciphers && !world.nr_digests && !world.nr_kdfs &&
			  !world.nr_secrets);
	return tally_end(&t);
}
