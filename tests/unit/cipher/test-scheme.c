/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>

#include "cipher/bytes.h"
#include "cipher/scheme.h"
#include "support.h"

#define SESSION UINT64_C(0x1122334455667788)

TestSuite(scheme, .init = start_cipher);

static struct scheme_key *new_key(const struct scheme *s, uint32_t sector)
{
	auto_secret struct secret key = secret_filled(s->key_bytes, s->id);
	struct scheme_key *k;

	cr_assert_eq(scheme_key_new(&k, s, sector, &key, 2), 0, "%s", s->name);
	return k;
}

Test(scheme, table_is_found_by_name_and_id)
{
	const struct scheme *s;
	size_t i;

	for (i = 0; (s = scheme_at(i)); i++) {
		cr_assert_eq(scheme_by_name(s->name), s);
		cr_assert_eq(scheme_by_id(s->id), s);
		cr_assert_leq(s->key_bytes, SCHEME_KEY_MAX);
	}
	cr_assert_eq(i, 7);
	cr_assert_null(scheme_at(SIZE_MAX));
	cr_assert_null(scheme_by_name("aes-192-xts"));
	cr_assert_null(scheme_by_name(""));
	cr_assert_null(scheme_by_id(7));
	cr_assert_null(scheme_by_id(UINT16_MAX));
}

/* On-disk numbers: whoever changes one breaks every container. */
Test(scheme, numbers_and_key_sizes_are_fixed)
{
	static const struct {
		const char *name;
		uint16_t id;
		unsigned int key_bytes;
	} rows[] = {
		{ "none", 0, 0 },
		{ "aes-128-xts", 1, 32 },
		{ "aes-256-xts", 2, 64 },
		{ "aes-128-cbc", 3, 16 },
		{ "aes-256-cbc", 4, 32 },
		{ "aes-128-cbc-elephant", 5, 32 },
		{ "aes-256-cbc-elephant", 6, 64 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct scheme *s = scheme_by_name(rows[i].name);

		cr_assert_not_null(s, "%s", rows[i].name);
		cr_assert_eq(s->id, rows[i].id);
		cr_assert_eq(s->key_bytes, rows[i].key_bytes);
	}
}

static void expect_einval(const struct scheme *s, uint32_t sector,
			  size_t key_len, unsigned int nr_handles)
{
	auto_secret struct secret key = secret_filled(key_len, 1);
	struct scheme_key *k;

	cr_assert_eq(scheme_key_new(&k, s, sector, &key, nr_handles), -EINVAL,
		     "%s, sector %u, key %zu, handles %u", s->name, sector,
		     key_len, nr_handles);
	cr_assert_null(k);
}

Test(scheme, wrong_sizes_are_einval)
{
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++) {
		expect_einval(s, 0, s->key_bytes, 1);
		expect_einval(s, 8, s->key_bytes, 1);
		expect_einval(s, (16u << 20) + 16, s->key_bytes, 1);
		expect_einval(s, 4096, s->key_bytes + 1, 1);
		if (s->id == SCHEME_NONE)
			continue;
		expect_einval(s, 4096, 0, 1);
		expect_einval(s, 4096, s->key_bytes / 2, 1);
		expect_einval(s, 4096, s->key_bytes, 0);
	}
	expect_einval(scheme_by_id(SCHEME_AES_128_CBC), 520, 16, 1);
	expect_einval(scheme_by_id(SCHEME_AES_128_CBC_ELEPHANT), 16, 32, 1);
}

Test(scheme, tl6_more_handles_than_memory_is_enomem)
{
	const struct scheme *s = scheme_by_name("aes-256-xts");
	auto_secret struct secret key = secret_filled(s->key_bytes, 1);
	struct scheme_key *k;

	/* Twice: the first failure gave everything back. */
	for (int i = 0; i < 2; i++)
		cr_assert_eq(scheme_key_new(&k, s, 4096, &key, 10000), -ENOMEM);
	cr_assert_null(k);
	scheme_key_free(new_key(s, 4096));
	scheme_key_free(NULL);
}

Test(scheme, tweak_counts_sectors_or_bytes)
{
	const uint64_t offset = UINT64_C(5) * 4096 + 3 * 512;
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++) {
		struct scheme_key *k = new_key(s, 512);
		uint8_t tweak[TWEAK_BYTES];
		bool xts = strstr(s->name, "xts");

		scheme_tweak(k, SESSION, offset, tweak);
		cr_assert_eq(get_le64(tweak), xts ? offset / 512 : offset);
		cr_assert_eq(get_le64(tweak + 8), SESSION);
		scheme_key_free(k);
	}
}

enum {
	MANY = 5
};

/* A run is the same as its sectors alone, each under its own tweak. */
static void expect_run_of_singles(const struct scheme *s, uint32_t sector)
{
	struct scheme_key *k = new_key(s, sector);
	const size_t len = (size_t)MANY * sector;
	const uint64_t start = UINT64_C(16) * sector;
	uint8_t tweak[TWEAK_BYTES];
	/* At odd addresses. */
	uint8_t *plain = malloc(len + 1), *run = malloc(len + 1);
	uint8_t *single = malloc(sector);

	fill(plain + 1, len, 1);
	scheme_tweak(k, SESSION, start, tweak);
	cr_assert_eq(scheme_encrypt(k, tweak, MANY, plain + 1, run + 1), 0);
	for (size_t i = 0; i < MANY; i++) {
		scheme_tweak(k, SESSION, start + i * sector, tweak);
		cr_assert_eq(scheme_encrypt(k, tweak, 1, plain + 1 + i * sector,
					    single),
			     0);
		cr_assert_arr_eq(single, run + 1 + i * sector, sector,
				 "%s, sector %zu of %u bytes", s->name, i,
				 sector);
	}
	scheme_tweak(k, SESSION, start, tweak);
	cr_assert_eq(scheme_decrypt(k, tweak, MANY, run + 1, run + 1), 0);
	cr_assert_arr_eq(run + 1, plain + 1, len, "%s back", s->name);

	free(plain);
	free(run);
	free(single);
	scheme_key_free(k);
}

Test(scheme, run_equals_single_sectors)
{
	static const uint32_t sectors[] = { 32, 48, 512, 4096 };
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++)
		for (size_t j = 0; j < 4; j++)
			expect_run_of_singles(s, sectors[j]);
}

Test(scheme, in_place_equals_apart)
{
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++) {
		struct scheme_key *k = new_key(s, 512);
		uint8_t tweak[TWEAK_BYTES] = { 1 };
		uint8_t a[1024], b[1024];

		fill(a, sizeof(a), 3);
		cr_assert_eq(scheme_encrypt(k, tweak, 2, a, b), 0);
		cr_assert_eq(scheme_encrypt(k, tweak, 2, a, a), 0);
		cr_assert_arr_eq(a, b, sizeof(a), "%s", s->name);
		scheme_key_free(k);
	}
}

Test(scheme, every_cipher_hides_and_none_copies)
{
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++) {
		struct scheme_key *k = new_key(s, 512);
		const uint8_t tweak[TWEAK_BYTES] = { 0 };
		uint8_t a[512], b[512];

		fill(a, sizeof(a), 3);
		cr_assert_eq(scheme_encrypt(k, tweak, 1, a, b), 0);
		cr_assert_eq(!memcmp(a, b, sizeof(a)), s->id == SCHEME_NONE);
		scheme_key_free(k);
	}
}

/* No sector ever changes under half of a short or forgotten tweak. */
Test(scheme, tl3_every_tweak_bit_counts)
{
	const struct scheme *s;

	for (size_t i = 1; (s = scheme_at(i)); i++) {
		struct scheme_key *k = new_key(s, 512);
		uint8_t plain[512] = { 0 }, first[512], other[512];
		uint8_t tweak[TWEAK_BYTES] = { 0 };

		cr_assert_eq(scheme_encrypt(k, tweak, 1, plain, first), 0);
		for (int bit = 0; bit < 128; bit++) {
			tweak[bit / 8] ^= (uint8_t)(1 << bit % 8);
			cr_assert_eq(scheme_encrypt(k, tweak, 1, plain, other),
				     0);
			cr_assert(memcmp(first, other, 512), "%s, bit %d",
				  s->name, bit);
			tweak[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		scheme_key_free(k);
	}
}

/* The library moves the tweak on with each call; we set it each time. */
Test(scheme, tl4_same_tweak_gives_same_sector)
{
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++) {
		struct scheme_key *k = new_key(s, 512);
		const uint8_t tweak[TWEAK_BYTES] = { 9 };
		uint8_t plain[512], first[512], other[512];

		fill(plain, sizeof(plain), 4);
		for (int again = 0; again < 6; again++) {
			cr_assert_eq(scheme_encrypt(k, tweak, 1, plain,
						    again ? other : first),
				     0);
			if (again)
				cr_assert_arr_eq(first, other, 512);
			cr_assert_eq(scheme_decrypt(k, tweak, 1, first, other),
				     0);
			cr_assert_arr_eq(other, plain, 512, "%s", s->name);
		}
		scheme_key_free(k);
	}
}

Test(scheme, tl4_data_unit_may_be_16_mib)
{
	const struct scheme *s = scheme_by_name("aes-256-xts");
	const size_t len = 16u << 20;
	struct scheme_key *k = new_key(s, (uint32_t)len);
	const uint8_t tweak[TWEAK_BYTES] = { 1 };
	uint8_t *data = calloc(1, len);

	cr_assert_eq(scheme_encrypt(k, tweak, 1, data, data), 0);
	cr_assert_eq(scheme_decrypt(k, tweak, 1, data, data), 0);
	for (size_t i = 0; i < len; i += 4093)
		cr_assert_eq(data[i], 0);
	free(data);
	scheme_key_free(k);
}

Test(scheme, tweak_that_would_wrap_is_eoverflow)
{
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++) {
		struct scheme_key *k = new_key(s, 512);
		uint64_t step = strstr(s->name, "xts") ? 1 : 512;
		uint8_t tweak[TWEAK_BYTES];
		uint8_t data[3 * 512] = { 0 };

		put_le64(tweak, UINT64_MAX - 2 * step + 1);
		put_le64(tweak + 8, 0);
		cr_assert_eq(scheme_encrypt(k, tweak, 3, data, data),
			     -EOVERFLOW, "%s", s->name);
		cr_assert_eq(scheme_decrypt(k, tweak, 3, data, data),
			     -EOVERFLOW);
		cr_assert_eq(scheme_encrypt(k, tweak, SIZE_MAX, data, data),
			     -EOVERFLOW);
		cr_assert_eq(scheme_encrypt(k, tweak, 2, data, data), 0);
		scheme_key_free(k);
	}
}

Test(scheme, run_of_nothing_does_nothing)
{
	struct scheme_key *k = new_key(scheme_by_name("aes-128-xts"), 512);
	const uint8_t tweak[TWEAK_BYTES] = { 0 };

	cr_assert_eq(scheme_encrypt(k, tweak, 0, NULL, NULL), 0);
	cr_assert_eq(scheme_decrypt(k, tweak, 0, NULL, NULL), 0);
	scheme_key_free(k);
}

/* One bit of ciphertext: what SCHEMES.md says becomes of the plaintext. */
static size_t count_changed(const struct scheme *s)
{
	struct scheme_key *k = new_key(s, 512);
	const uint8_t tweak[TWEAK_BYTES] = { 5 };
	uint8_t plain[512], data[512];
	size_t changed = 0;

	fill(plain, sizeof(plain), 6);
	cr_assert_eq(scheme_encrypt(k, tweak, 1, plain, data), 0);
	data[256] ^= 1;
	cr_assert_eq(scheme_decrypt(k, tweak, 1, data, data), 0);
	for (size_t i = 0; i < 512; i++)
		changed += plain[i] != data[i];
	scheme_key_free(k);
	return changed;
}

Test(scheme, tc1_damage_spreads_as_documented)
{
	const struct scheme *s;

	for (size_t i = 0; (s = scheme_at(i)); i++) {
		size_t changed = count_changed(s);

		if (s->id == SCHEME_NONE)
			cr_assert_eq(changed, 1);
		else if (strstr(s->name, "elephant"))
			cr_assert_gt(changed, 400, "%zu", changed);
		else if (strstr(s->name, "cbc"))
			cr_assert(changed > 1 && changed <= 17);
		else
			cr_assert(changed > 1 && changed <= 16);
	}
}
