/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>

#include "cipher/kdf_raw.h"
#include "support.h"

static const struct kdf_cost least = { 1, 8, 1 };

TestSuite(kdf, .init = start_cipher);

/* Section 5.3: all inputs, four lanes, which threads compute here. */
Test(kdf, tl1_rfc_9106_argon2id)
{
	uint8_t password[32], salt[16], key[8], ad[12], want[32];
	const struct argon2_input in = {
		.password = password,
		.password_len = sizeof(password),
		.salt = salt,
		.salt_len = sizeof(salt),
		.key = key,
		.key_len = sizeof(key),
		.ad = ad,
		.ad_len = sizeof(ad),
	};
	const struct kdf_cost cost = { 3, 32, 4 };
	auto_secret struct secret out = SECRET_EMPTY;

	memset(password, 1, sizeof(password));
	memset(salt, 2, sizeof(salt));
	memset(key, 3, sizeof(key));
	memset(ad, 4, sizeof(ad));
	from_hex("0d640df58d78766c08c037a34a8b53c9"
		 "d01ef0452d75b65eb52520e96b01e659",
		 want);
	cr_assert_eq(kdf_argon2id_raw(&in, &cost, 32, &out), 0);
	cr_assert_arr_eq(out.bytes, want, 32);
}

/* The library would take each of these, or cut it to something else. */
Test(kdf, tl1_cost_out_of_bounds_is_erange)
{
	static const struct kdf_cost bad[] = {
		{ 0, 1024, 4 },
		{ 1, 31, 4 },
		{ 1, 7, 1 },
		{ 1, 0, 1 },
		{ 1, KDF_MEMORY_KIB_MAX + 1, 4 },
		{ 1, 1024, 0 },
		{ 1, 1024, KDF_LANES_MAX + 1 },
		{ 1, 1024, UINT32_MAX },
	};
	static const uint8_t salt[KDF_SALT_BYTES];
	auto_secret struct secret password = secret_filled(8, 1);
	struct secret out;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(kdf_cost_check(&bad[i]), -ERANGE, "%zu", i);
		cr_assert_eq(kdf_argon2id(&password, salt, &bad[i], 32, &out),
			     -ERANGE, "%zu", i);
		cr_assert_null(out.bytes);
	}
}

Test(kdf, cost_at_the_bounds_is_good)
{
	static const struct kdf_cost good[] = {
		{ 1, 8, 1 },
		{ UINT32_MAX, 8, 1 },
		{ 1, 8 * KDF_LANES_MAX, KDF_LANES_MAX },
		{ 1, KDF_MEMORY_KIB_MAX, 1 },
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_assert_eq(kdf_cost_check(&good[i]), 0, "%zu", i);
}

Test(kdf, empty_password_is_einval)
{
	static const uint8_t salt[KDF_SALT_BYTES];
	const struct secret empty = SECRET_EMPTY;
	auto_secret struct secret password = secret_filled(8, 1);
	struct secret out;

	cr_assert_eq(kdf_argon2id(&empty, salt, &least, 32, &out), -EINVAL);
	cr_assert_null(out.bytes);
	cr_assert_eq(kdf_argon2id(&password, salt, &least, 3, &out), -EINVAL);
}

/* One input changed at a time gives another key. */
Test(kdf, every_input_counts)
{
	uint8_t salt[KDF_SALT_BYTES] = { 0 };
	auto_secret struct secret password = secret_filled(8, 1);
	struct secret keys[6];
	const struct kdf_cost more_passes = { 2, 64, 1 };
	const struct kdf_cost more_memory = { 1, 68, 1 };
	const struct kdf_cost more_lanes = { 1, 64, 2 };
	const struct kdf_cost base = { 1, 64, 1 };

	cr_assert_eq(kdf_argon2id(&password, salt, &base, 32, &keys[0]), 0);
	cr_assert_eq(kdf_argon2id(&password, salt, &more_passes, 32, &keys[1]),
		     0);
	cr_assert_eq(kdf_argon2id(&password, salt, &more_memory, 32, &keys[2]),
		     0);
	cr_assert_eq(kdf_argon2id(&password, salt, &more_lanes, 32, &keys[3]),
		     0);
	salt[KDF_SALT_BYTES - 1] = 1;
	cr_assert_eq(kdf_argon2id(&password, salt, &base, 32, &keys[4]), 0);
	password.bytes[7] ^= 1;
	cr_assert_eq(kdf_argon2id(&password, salt, &base, 32, &keys[5]), 0);

	for (size_t i = 0; i < 6; i++)
		for (size_t j = 0; j < i; j++)
			cr_assert(memcmp(keys[i].bytes, keys[j].bytes, 32),
				  "%zu and %zu", i, j);
	for (size_t i = 0; i < 6; i++)
		secret_wipe(&keys[i]);
}

Test(kdf, calibrate_stays_within_its_bounds)
{
	static const uint32_t kib_max[] = { 32, 1024, 16384, 65536 };
	struct kdf_cost c;

	for (size_t i = 0; i < 4; i++) {
		cr_assert_eq(kdf_calibrate(20, kib_max[i], &c), 0);
		cr_assert_eq(kdf_cost_check(&c), 0);
		cr_assert_leq(c.memory_kib, kib_max[i]);
		/* Memory first: passes only once all memory is used. */
		cr_assert(c.passes == 1 || c.memory_kib == kib_max[i]);
	}
}

Test(kdf, calibrate_of_no_time_is_the_least_that_defends)
{
	struct kdf_cost c;

	cr_assert_eq(kdf_calibrate(0, 65536, &c), 0);
	cr_assert_eq(c.passes, 1);
	cr_assert_eq(c.memory_kib, 8192);
}

Test(kdf, calibrate_with_impossible_memory_is_erange)
{
	struct kdf_cost c;

	cr_assert_eq(kdf_calibrate(10, 31, &c), -ERANGE);
	cr_assert_eq(kdf_calibrate(10, 0, &c), -ERANGE);
	cr_assert_eq(kdf_calibrate(10, KDF_MEMORY_KIB_MAX + 1, &c), -ERANGE);
}
