/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * TL5: in FIPS mode libgcrypt refuses some of what we need, each thing at
 * another time.  It must come back as -ENOSYS when a key is made, so that the
 * user is told, and never as an I/O error of a block.
 */
#include <errno.h>
#include <gcrypt.h>

#include "cipher/scheme.h"
#include "cipher/seal.h"
#include "cipher/tag.h"
#include "plain.h"
#include "support.h"

static void tl5_xts_with_equal_halves_is_enosys(struct tally *t)
{
	const struct scheme *xts = scheme_by_name("aes-256-xts");
	auto_secret struct secret zero = SECRET_EMPTY;
	auto_secret struct secret good = secret_filled(64, 1);
	struct scheme_key *k;

	CHECK(t, secret_new(&zero, 64) == 0);
	CHECK(t, scheme_key_new(&k, xts, 4096, &zero, 1) == -ENOSYS);
	CHECK(t, scheme_key_new(&k, xts, 4096, &good, 1) == 0);
	scheme_key_free(k);
}

static void tl5_tag_is_enosys(struct tally *t)
{
	auto_secret struct secret key = secret_filled(TAG_KEY_BYTES, 1);
	struct tag_key *k;

	CHECK(t, tag_key_new(&k, &key, 1) == -ENOSYS);
	CHECK(t, !k);
}

static void tl5_self_test_is_enosys(struct tally *t)
{
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++)
		CHECK(t, scheme_self_test(s) == -ENOSYS);
}

/* As for a cipher that the library was built without. */
static void tl5_forbidden_cipher_is_enosys(struct tally *t)
{
	struct scheme serpent = *scheme_by_name("aes-256-xts");
	auto_secret struct secret key = secret_filled(64, 1);
	struct scheme_key *k;

	serpent.algo = GCRY_CIPHER_SERPENT256;
	CHECK(t, scheme_key_new(&k, &serpent, 4096, &key, 1) == -ENOSYS);
	CHECK(t, !k);
}

int main(void)
{
	struct tally t = { 0 };

	setenv("LIBGCRYPT_FORCE_FIPS_MODE", "1", 1);
	start_cipher();
	if (!gcry_fips_mode_active()) {
		puts("skipped: this libgcrypt has no FIPS mode");
		return 77;
	}
	tl5_xts_with_equal_halves_is_enosys(&t);
	tl5_tag_is_enosys(&t);
	tl5_self_test_is_enosys(&t);
	tl5_forbidden_cipher_is_enosys(&t);
	return tally_end(&t);
}
