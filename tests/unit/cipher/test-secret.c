/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>

#include "support.h"

TestSuite(secret, .init = start_cipher);

Test(secret, new_is_zero_filled)
{
	static const uint8_t zero[100];
	auto_secret struct secret s = SECRET_EMPTY;

	cr_assert_eq(secret_new(&s, sizeof(zero)), 0);
	cr_assert_eq(s.len, sizeof(zero));
	cr_assert_arr_eq(s.bytes, zero, sizeof(zero));
}

Test(secret, of_no_bytes_is_empty)
{
	struct secret s;

	cr_assert_eq(secret_new(&s, 0), 0);
	cr_assert_null(s.bytes);
	cr_assert_eq(secret_copy(&s, NULL, 0), 0);
	cr_assert_eq(s.len, 0);
}

Test(secret, copy_has_the_bytes)
{
	auto_secret struct secret s = SECRET_EMPTY;

	cr_assert_eq(secret_copy(&s, "open sesame", 11), 0);
	cr_assert_eq(s.len, 11);
	cr_assert_arr_eq(s.bytes, "open sesame", 11);
}

Test(secret, wipe_empties_and_may_come_twice)
{
	struct secret s;

	cr_assert_eq(secret_copy(&s, "x", 1), 0);
	secret_wipe(&s);
	cr_assert_null(s.bytes);
	cr_assert_eq(s.len, 0);
	secret_wipe(&s);
}

/* Also TL6: the pool of locked memory never grows by memory that is not. */
Test(secret, tl6_too_large_is_enomem)
{
	struct secret s;

	cr_assert_eq(secret_new(&s, 64u << 20), -ENOMEM);
	cr_assert_null(s.bytes);
	cr_assert_eq(secret_copy(&s, &s, 64u << 20), -ENOMEM);
}

Test(secret, equal_looks_at_every_byte)
{
	uint8_t a[33], b[33];

	fill(a, sizeof(a), 1);
	for (size_t i = 0; i < sizeof(a); i++) {
		memcpy(b, a, sizeof(a));
		cr_assert(secret_equal(a, b, sizeof(a)));
		b[i] ^= 0x80;
		cr_assert_not(secret_equal(a, b, sizeof(a)), "byte %zu", i);
		cr_assert(secret_equal(a, b, i));
	}
}

Test(secret, wipe_bytes_leaves_zeros)
{
	static const uint8_t zero[40];
	uint8_t bytes[40];

	fill(bytes, sizeof(bytes), 1);
	secret_wipe_bytes(bytes, sizeof(bytes));
	cr_assert_arr_eq(bytes, zero, sizeof(zero));
}

Test(secret, random_bytes_fill_all_and_differ)
{
	enum {
		LEN = 1000
	}; /* more than one getrandom() promises */
	uint8_t a[LEN + 1] = { 0 }, b[LEN] = { 0 };

	cr_assert_eq(random_bytes(a, LEN), 0);
	cr_assert_eq(random_bytes(b, LEN), 0);
	cr_assert_eq(random_bytes(b, 0), 0);
	cr_assert(memcmp(a, b, LEN));
	/* 16 zeros in a row: once in 10^35 runs. */
	for (size_t i = 0; i + 16 <= LEN; i++) {
		static const uint8_t zero[16];

		cr_assert(memcmp(a + i, zero, 16), "unfilled at %zu", i);
	}
	cr_assert_eq(a[LEN], 0, "one byte too many");
}

Test(secret, second_init_reports_the_same)
{
	enum secret_memory first, second;

	cr_assert_eq(cipher_init(0, &first), 0);
	cr_assert_eq(cipher_init(123456, &second), 0);
	cr_assert_eq(first, second);
}
