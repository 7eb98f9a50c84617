/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>
#include <gcrypt.h>

#include "cipher/scheme.h"
#include "support.h"

TestSuite(selftest, .init = start_cipher);

Test(selftest, every_scheme_passes)
{
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++)
		cr_assert_eq(scheme_self_test(s), 0, "%s", s->name);
}

/* A scheme with another's code or cipher, as a wrong build might have it. */
Test(selftest, wrong_code_is_eio)
{
	const struct scheme *s;

	for (size_t i = 1; (s = scheme_at(i)); i++) {
		struct scheme wrong = *s;
		const struct scheme *other;

		other = scheme_by_name(strstr(s->name, "xts") ? "aes-128-cbc"
							      : "aes-128-xts");
		wrong.ops = other->ops;
		cr_assert_eq(scheme_self_test(&wrong), -EIO, "%s", s->name);

		wrong = *s;
		wrong.algo = strstr(s->name, "128") ? GCRY_CIPHER_CAMELLIA128
						    : GCRY_CIPHER_CAMELLIA256;
		cr_assert_eq(scheme_self_test(&wrong), -EIO, "%s", s->name);
	}
}

Test(selftest, scheme_without_a_vector_is_eio)
{
	struct scheme unknown = *scheme_by_name("aes-256-xts");

	unknown.id = 99;
	cr_assert_eq(scheme_self_test(&unknown), -EIO);
}
