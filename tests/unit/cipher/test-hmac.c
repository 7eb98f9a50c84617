/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>

#include "cipher/bytes.h"
#include "cipher/kdf.h"
#include "support.h"

TestSuite(hmac, .init = start_cipher);
TestSuite(hkdf, .init = start_cipher);
TestSuite(prf, .init = start_cipher);

static void expect_mac(const struct secret *key, const char *text,
		       const char *want_hex)
{
	const size_t half = strlen(text) / 2;
	const struct hmac_piece pieces[] = {
		{ text, half },
		{ NULL, 0 },
		{ text + half, strlen(text) - half },
	};
	uint8_t got[HMAC_BYTES], want[HMAC_BYTES];

	from_hex(want_hex, want);
	cr_assert_eq(hmac_sha256(key, pieces, 3, got), 0);
	cr_assert_arr_eq(got, want, HMAC_BYTES, "%s", text);
}

/* Cases 1, 2 and 6. */
Test(hmac, rfc_4231)
{
	auto_secret struct secret short_key = SECRET_EMPTY;
	auto_secret struct secret jefe = SECRET_EMPTY;
	auto_secret struct secret long_key = SECRET_EMPTY;

	cr_assert_eq(secret_new(&short_key, 20), 0);
	memset(short_key.bytes, 0x0b, short_key.len);
	expect_mac(&short_key, "Hi There",
		   "b0344c61d8db38535ca8afceaf0bf12b"
		   "881dc200c9833da726e9376c2e32cff7");

	cr_assert_eq(secret_copy(&jefe, "Jefe", 4), 0);
	expect_mac(&jefe, "what do ya want for nothing?",
		   "5bdcc146bf60754e6a042426089575c7"
		   "5a003f089d2739839dec58b964ec3843");

	cr_assert_eq(secret_new(&long_key, 131), 0);
	memset(long_key.bytes, 0xaa, long_key.len);
	expect_mac(&long_key,
		   "Test Using Larger Than Block-Size Key - Hash Key First",
		   "60e431591ee0b67f0d8a26aacbf5b77f"
		   "8e0bc6213728c5140546040f0ee37f54");
}

Test(hmac, sha_256_of_abc)
{
	uint8_t got[32], want[32];

	from_hex("ba7816bf8f01cfea414140de5dae2223"
		 "b00361a396177a9cb410ff61f20015ad",
		 want);
	hash_sha256("abc", 3, got);
	cr_assert_arr_eq(got, want, 32);
}

static void expect_okm(const struct secret *ikm, const void *salt,
		       size_t salt_len, const void *info, size_t info_len,
		       const char *want_hex)
{
	auto_secret struct secret okm = SECRET_EMPTY;
	uint8_t want[100];
	size_t len = from_hex(want_hex, want);

	cr_assert_eq(kdf_hkdf(ikm, salt, salt_len, info, info_len, len, &okm),
		     0);
	cr_assert_eq(okm.len, len);
	cr_assert_arr_eq(okm.bytes, want, len);
}

static void count_up(uint8_t *b, size_t len, uint8_t first)
{
	for (size_t i = 0; i < len; i++)
		b[i] = (uint8_t)(first + i);
}

/* The library has no HKDF; ours is the RFC's: cases 1, 2 and 3. */
Test(hkdf, tl1_rfc_5869)
{
	auto_secret struct secret ikm = SECRET_EMPTY;
	auto_secret struct secret long_ikm = SECRET_EMPTY;
	uint8_t salt[80], info[80];

	cr_assert_eq(secret_new(&ikm, 22), 0);
	memset(ikm.bytes, 0x0b, ikm.len);
	count_up(salt, 13, 0x00);
	count_up(info, 10, 0xf0);
	expect_okm(&ikm, salt, 13, info, 10,
		   "3cb25f25faacd57a90434f64d0362f2a"
		   "2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
		   "34007208d5b887185865");

	cr_assert_eq(secret_new(&long_ikm, 80), 0);
	count_up(long_ikm.bytes, 80, 0x00);
	count_up(salt, 80, 0x60);
	count_up(info, 80, 0xb0);
	expect_okm(&long_ikm, salt, 80, info, 80,
		   "b11e398dc80327a1c8e7f78c596a4934"
		   "4f012eda2d4efad8a050cc4c19afa97c"
		   "59045a99cac7827271cb41c65e590e09"
		   "da3275600c2f09b8367793a9aca3db71"
		   "cc30c58179ec3e87c14c01d5c1f3434f"
		   "1d87");

	expect_okm(&ikm, NULL, 0, NULL, 0,
		   "8da4e775a563c18f715f802a063c5a31"
		   "b8a11f5c5ee1879ec3454e5f3c738d2d"
		   "9d201395faa4b61a96c8");
}

Test(hkdf, length_is_1_to_255_hashes)
{
	auto_secret struct secret ikm = secret_filled(32, 1);
	auto_secret struct secret most = SECRET_EMPTY;
	auto_secret struct secret least = SECRET_EMPTY;
	struct secret none;

	cr_assert_eq(kdf_hkdf(&ikm, "s", 1, "i", 1, 255 * 32, &most), 0);
	cr_assert_eq(kdf_hkdf(&ikm, "s", 1, "i", 1, 1, &least), 0);
	cr_assert_eq(most.bytes[0], least.bytes[0]);
	cr_assert_eq(kdf_hkdf(&ikm, "s", 1, "i", 1, 255 * 32 + 1, &none),
		     -EINVAL);
	cr_assert_eq(kdf_hkdf(&ikm, "s", 1, "i", 1, 0, &none), -EINVAL);
	cr_assert_null(none.bytes);
}

Test(hkdf, salt_and_info_count)
{
	auto_secret struct secret ikm = secret_filled(32, 1);
	auto_secret struct secret a = SECRET_EMPTY;
	auto_secret struct secret b = SECRET_EMPTY;
	auto_secret struct secret c = SECRET_EMPTY;

	cr_assert_eq(kdf_hkdf(&ikm, "salt", 4, "info", 4, 32, &a), 0);
	cr_assert_eq(kdf_hkdf(&ikm, "salu", 4, "info", 4, 32, &b), 0);
	cr_assert_eq(kdf_hkdf(&ikm, "salt", 4, "infp", 4, 32, &c), 0);
	cr_assert(memcmp(a.bytes, b.bytes, 32));
	cr_assert(memcmp(a.bytes, c.bytes, 32));
	cr_assert(memcmp(b.bytes, c.bytes, 32));
}

Test(prf, is_hmac_cut_to_8_bytes)
{
	auto_secret struct secret key = secret_filled(32, 1);
	struct prf_key *k;

	cr_assert_eq(prf_key_new(&k, key.bytes), 0);
	for (size_t len = 0; len < 256; len += 15) {
		uint8_t name[256], mac[HMAC_BYTES];
		const struct hmac_piece piece = { name, len };

		fill(name, sizeof(name), 1);
		cr_assert_eq(hmac_sha256(&key, &piece, 1, mac), 0);
		cr_assert_eq(prf_hash(k, name, len), get_le64(mac), "%zu bytes",
			     len);
	}
	prf_key_free(k);
	prf_key_free(NULL);
}
