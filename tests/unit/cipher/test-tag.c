/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>
#include <gcrypt.h>

#include "cipher/tag.h"
#include "support.h"

static const struct nonce some_nonce = { 0x0102030405060708, 42 };

TestSuite(tag, .init = start_cipher);

static struct tag_key *new_key(void)
{
	auto_secret struct secret key = secret_filled(TAG_KEY_BYTES, 1);
	struct tag_key *k;

	cr_assert_eq(tag_key_new(&k, &key, 2), 0);
	return k;
}

Test(tag, wrong_sizes_are_einval)
{
	auto_secret struct secret shorter = secret_filled(16, 1);
	auto_secret struct secret right = secret_filled(TAG_KEY_BYTES, 1);
	struct tag_key *k;

	cr_assert_eq(tag_key_new(&k, &shorter, 1), -EINVAL);
	cr_assert_null(k);
	cr_assert_eq(tag_key_new(&k, &right, 0), -EINVAL);
	tag_key_free(NULL);
}

Test(tag, tl6_more_handles_than_memory_is_enomem)
{
	auto_secret struct secret key = secret_filled(TAG_KEY_BYTES, 1);
	struct tag_key *k;

	cr_assert_eq(tag_key_new(&k, &key, 10000), -ENOMEM);
	cr_assert_null(k);
}

/* The library's GMAC object is other code than the GCM that we use. */
Test(tag, of_a_block_equals_the_library_s_gmac)
{
	auto_secret struct secret key = secret_filled(TAG_KEY_BYTES, 1);
	struct tag_key *k = new_key();
	uint8_t block[4096], iv[NONCE_BYTES];
	uint8_t got[TAG_BYTES], want[TAG_BYTES];
	size_t len = sizeof(want);
	gcry_mac_hd_t mac;

	fill(block, sizeof(block), 2);
	nonce_encode(some_nonce, iv);
	cr_assert_eq(gcry_mac_open(&mac, GCRY_MAC_GMAC_AES, 0, NULL), 0);
	cr_assert_eq(gcry_mac_setkey(mac, key.bytes, key.len), 0);
	cr_assert_eq(gcry_mac_setiv(mac, iv, sizeof(iv)), 0);
	cr_assert_eq(gcry_mac_write(mac, block, sizeof(block)), 0);
	cr_assert_eq(gcry_mac_read(mac, want, &len), 0);
	gcry_mac_close(mac);

	cr_assert_eq(tag_compute(k, some_nonce, block, sizeof(block), got), 0);
	cr_assert_arr_eq(got, want, TAG_BYTES);
	tag_key_free(k);
}

Test(tag, change_anywhere_is_ebadmsg)
{
	struct tag_key *k = new_key();
	uint8_t block[4096], tag[TAG_BYTES];

	fill(block, sizeof(block), 3);
	cr_assert_eq(tag_compute(k, some_nonce, block, sizeof(block), tag), 0);
	cr_assert_eq(tag_verify(k, some_nonce, block, sizeof(block), tag), 0);
	for (size_t i = 0; i < sizeof(block); i += 61) {
		block[i] ^= 1;
		cr_assert_eq(tag_verify(k, some_nonce, block, sizeof(block),
					tag),
			     -EBADMSG, "byte %zu", i);
		block[i] ^= 1;
	}
	cr_assert_eq(tag_verify(k, some_nonce, block, sizeof(block) - 1, tag),
		     -EBADMSG);
	tag_key_free(k);
}

/* The library's own check is content with the first four bytes. */
Test(tag, tl3_every_byte_of_the_tag_counts)
{
	struct tag_key *k = new_key();
	uint8_t block[512], tag[TAG_BYTES];

	fill(block, sizeof(block), 3);
	cr_assert_eq(tag_compute(k, some_nonce, block, sizeof(block), tag), 0);
	for (size_t i = 0; i < TAG_BYTES; i++) {
		tag[i] ^= 0x10;
		cr_assert_eq(tag_verify(k, some_nonce, block, sizeof(block),
					tag),
			     -EBADMSG, "byte %zu", i);
		tag[i] ^= 0x10;
	}
	tag_key_free(k);
}

/* The library would go on with a zero nonce, or with the one before. */
Test(tag, tl3_every_bit_of_the_nonce_counts)
{
	struct tag_key *k = new_key();
	uint8_t block[512], first[TAG_BYTES], other[TAG_BYTES];

	fill(block, sizeof(block), 3);
	cr_assert_eq(tag_compute(k, some_nonce, block, sizeof(block), first),
		     0);
	for (int bit = 0; bit < 96; bit++) {
		struct nonce n = some_nonce;

		if (bit < 64)
			n.session ^= UINT64_C(1) << bit;
		else
			n.counter ^= UINT32_C(1) << (bit - 64);
		cr_assert_eq(tag_compute(k, n, block, sizeof(block), other), 0);
		cr_assert(memcmp(first, other, TAG_BYTES), "bit %d", bit);
	}
	tag_key_free(k);
}

Test(tag, handle_keeps_nothing_of_the_message_before)
{
	struct tag_key *used = new_key();

	for (unsigned int i = 0; i < 20; i++) {
		struct tag_key *fresh = new_key();
		const struct nonce n = { 5, i / 2 };
		uint8_t block[300], a[TAG_BYTES], b[TAG_BYTES];

		fill(block, sizeof(block), i);
		cr_assert_eq(tag_compute(used, n, block, 1 + 13 * i, a), 0);
		cr_assert_eq(tag_compute(fresh, n, block, 1 + 13 * i, b), 0);
		cr_assert_arr_eq(a, b, TAG_BYTES, "message %u", i);
		tag_key_free(fresh);
	}
	tag_key_free(used);
}
