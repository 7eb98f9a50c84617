/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * AES-CBC + Elephant diffuser: N. Ferguson, "AES-CBC + Elephant diffuser: A
 * Disk Encryption Algorithm for Windows Vista", 2006.
 *
 *	encrypt:  plaintext -> XOR Ks -> A -> B -> CBC -> ciphertext
 *
 * and the reverse to decrypt.  The diffusers have no key; they make every bit
 * of the sector depend on every other before CBC.  A sector is n words d[0] to
 * d[n-1] of 32 bits, little-endian, all indices modulo n.  Each step changes
 * one word by two others, as they are at that moment:
 *
 *	A:  d[i] +- (d[i-2] ^ rol(d[i-5], RA[i % 4]))    RA = 9, 0, 13, 0
 *	B:  d[i] +- (d[i+2] ^ rol(d[i+5], RB[i % 4]))    RB = 0, 10, 0, 25
 *
 * decrypting walks up and adds, encrypting walks down and subtracts.  So A
 * decrypting and B encrypting read words that were changed just before: a
 * serial chain, whose last five words stay in registers here.  A encrypting
 * and B decrypting read words that are still unchanged, but for the first five
 * words of the walk's end, which meet the beginning again.
 *
 * Four words at a time, since the rotations repeat after four.
 */
#include "cipher/elephant.h"

#include <assert.h>
#include <errno.h>

#include "cipher/bytes.h"
#include "cipher/cbc.h"
#include "cipher/family.h"
#include "cipher/secret.h"

#define WORD_BYTES 4
#define A_ROUNDS 5
#define B_ROUNDS 3

static const unsigned int a_rotation[4] = { 9, 0, 13, 0 };
static const unsigned int b_rotation[4] = { 0, 10, 0, 25 };

/* The mask keeps the shift by 32 - 0 defined; compilers see a rotation. */
static inline uint32_t rol(uint32_t x, unsigned int bits)
{
	return x << bits | x >> (-bits & 31);
}

static inline uint32_t word(const uint8_t *d, size_t i)
{
	return get_le32(d + i * WORD_BYTES);
}

static inline void set_word(uint8_t *d, size_t i, uint32_t v)
{
	put_le32(d + i * WORD_BYTES, v);
}

/* One step by the book, where indices wrap around. */
static void a_encrypt_step(uint8_t *d, size_t n, size_t i)
{
	uint32_t p2 = word(d, (i + n - 2) % n);
	uint32_t p5 = word(d, (i + n - 5) % n);

	set_word(d, i, word(d, i) - (p2 ^ rol(p5, a_rotation[i % 4])));
}

static void b_decrypt_step(uint8_t *d, size_t n, size_t i)
{
	uint32_t p2 = word(d, (i + 2) % n);
	uint32_t p5 = word(d, (i + 5) % n);

	set_word(d, i, word(d, i) + (p2 ^ rol(p5, b_rotation[i % 4])));
}

/* Words i to i + 3, i >= 8; they need none of each other's new values. */
static inline void a_encrypt_four(uint8_t *d, size_t i)
{
	uint32_t m5 = word(d, i - 5), m4 = word(d, i - 4);
	uint32_t m3 = word(d, i - 3), m2 = word(d, i - 2);
	uint32_t m1 = word(d, i - 1);
	uint32_t d0 = word(d, i), d1 = word(d, i + 1);

	set_word(d, i + 3, word(d, i + 3) - (d1 ^ m2));
	set_word(d, i + 2, word(d, i + 2) - (d0 ^ rol(m3, 13)));
	set_word(d, i + 1, d1 - (m1 ^ m4));
	set_word(d, i, d0 - (m2 ^ rol(m5, 9)));
}

/* Words i to i + 3, i + 8 < n. */
static inline void b_decrypt_four(uint8_t *d, size_t i)
{
	uint32_t d2 = word(d, i + 2), d3 = word(d, i + 3);
	uint32_t p4 = word(d, i + 4), p5 = word(d, i + 5);
	uint32_t p6 = word(d, i + 6), p7 = word(d, i + 7);
	uint32_t p8 = word(d, i + 8);

	set_word(d, i, word(d, i) + (d2 ^ p5));
	set_word(d, i + 1, word(d, i + 1) + (d3 ^ rol(p6, 10)));
	set_word(d, i + 2, d2 + (p4 ^ p7));
	set_word(d, i + 3, d3 + (p5 ^ rol(p8, 25)));
}

static void a_encrypt_round(uint8_t *d, size_t n)
{
	size_t i = n;

	for (; i > 8; i -= 4)
		a_encrypt_four(d, i - 4);
	while (i-- > 0)
		a_encrypt_step(d, n, i);
}

static void b_decrypt_round(uint8_t *d, size_t n)
{
	size_t i = 0;

	for (; i + 8 < n; i += 4)
		b_decrypt_four(d, i);
	for (; i < n; i++)
		b_decrypt_step(d, n, i);
}

static void a_decrypt_round(uint8_t *d, size_t n)
{
	/* mK is the word K before the next one. */
	uint32_t m1 = word(d, n - 1), m2 = word(d, n - 2);
	uint32_t m3 = word(d, n - 3), m4 = word(d, n - 4);
	uint32_t m5 = word(d, n - 5);

	for (size_t i = 0; i < n; i += 4) {
		uint32_t d0 = word(d, i) + (m2 ^ rol(m5, 9));
		uint32_t d1 = word(d, i + 1) + (m1 ^ m4);
		uint32_t d2 = word(d, i + 2) + (d0 ^ rol(m3, 13));
		uint32_t d3 = word(d, i + 3) + (d1 ^ m2);

		set_word(d, i, d0);
		set_word(d, i + 1, d1);
		set_word(d, i + 2, d2);
		set_word(d, i + 3, d3);
		m5 = m1;
		m4 = d0;
		m3 = d1;
		m2 = d2;
		m1 = d3;
	}
}

static void b_encrypt_round(uint8_t *d, size_t n)
{
	/* pK is the word K - 1 after the last one changed. */
	uint32_t p1 = word(d, 0), p2 = word(d, 1), p3 = word(d, 2);
	uint32_t p4 = word(d, 3), p5 = word(d, 4);

	for (size_t i = n; i > 0; i -= 4) {
		uint32_t d3 = word(d, i - 1) - (p2 ^ rol(p5, 25));
		uint32_t d2 = word(d, i - 2) - (p1 ^ p4);
		uint32_t d1 = word(d, i - 3) - (d3 ^ rol(p3, 10));
		uint32_t d0 = word(d, i - 4) - (d2 ^ p2);

		set_word(d, i - 1, d3);
		set_word(d, i - 2, d2);
		set_word(d, i - 3, d1);
		set_word(d, i - 4, d0);
		p5 = p1;
		p4 = d3;
		p3 = d2;
		p2 = d1;
		p1 = d0;
	}
}

/* Words in a sector that the diffusers can take. */
static size_t count_words(size_t len)
{
	assert(len >= ELEPHANT_SECTOR_MIN && len % CBC_BLOCK_BYTES == 0);
	return len / WORD_BYTES;
}

void elephant_a_encrypt(uint8_t *sector, size_t len)
{
	size_t n = count_words(len);

	for (int round = 0; round < A_ROUNDS; round++)
		a_encrypt_round(sector, n);
}

void elephant_a_decrypt(uint8_t *sector, size_t len)
{
	size_t n = count_words(len);

	for (int round = 0; round < A_ROUNDS; round++)
		a_decrypt_round(sector, n);
}

void elephant_b_encrypt(uint8_t *sector, size_t len)
{
	size_t n = count_words(len);

	for (int round = 0; round < B_ROUNDS; round++)
		b_encrypt_round(sector, n);
}

void elephant_b_decrypt(uint8_t *sector, size_t len)
{
	size_t n = count_words(len);

	for (int round = 0; round < B_ROUNDS; round++)
		b_decrypt_round(sector, n);
}

int elephant_sector_key(gcry_cipher_hd_t ecb,
			const uint8_t tweak[static TWEAK_BYTES],
			uint8_t ks[static ELEPHANT_KEY_BYTES])
{
	memcpy(ks, tweak, TWEAK_BYTES);
	memcpy(ks + TWEAK_BYTES, tweak, TWEAK_BYTES);
	ks[ELEPHANT_KEY_BYTES - 1] |= 0x80;
	if (gcry_cipher_encrypt(ecb, ks, ELEPHANT_KEY_BYTES, NULL, 0))
		return -EIO;
	return 0;
}

void elephant_xor(const uint8_t ks[static ELEPHANT_KEY_BYTES], size_t len,
		  const uint8_t *in, uint8_t *out)
{
	for (size_t i = 0; i < len; i += CBC_BLOCK_BYTES) {
		const uint8_t *half = ks + i % ELEPHANT_KEY_BYTES;

		for (size_t j = 0; j < CBC_BLOCK_BYTES; j++)
			out[i + j] = in[i + j] ^ half[j];
	}
}

static int elephant_encrypt(struct handle *h, const uint8_t *tweak, size_t len,
			    const uint8_t *in, uint8_t *out)
{
	uint8_t ks[ELEPHANT_KEY_BYTES];
	int err = elephant_sector_key(h->second, tweak, ks);

	if (err)
		return err;
	elephant_xor(ks, len, in, out);
	secret_wipe_bytes(ks, sizeof(ks));
	elephant_a_encrypt(out, len);
	elephant_b_encrypt(out, len);
	return cbc_encrypt_tweak(h->data, tweak, len, out, out);
}

static int elephant_decrypt(struct handle *h, const uint8_t *tweak, size_t len,
			    const uint8_t *in, uint8_t *out)
{
	uint8_t ks[ELEPHANT_KEY_BYTES];
	int err = cbc_decrypt_tweak(h->data, tweak, len, in, out);

	if (err)
		return err;
	elephant_b_decrypt(out, len);
	elephant_a_decrypt(out, len);
	err = elephant_sector_key(h->second, tweak, ks);
	if (err)
		return err;
	elephant_xor(ks, len, out, out);
	secret_wipe_bytes(ks, sizeof(ks));
	return 0;
}

static int elephant_open(struct pool **out, unsigned int nr, int algo,
			 const uint8_t *key, size_t key_len)
{
	const size_t half = key_len / 2;
	const struct pool_cipher data = {
		.algo = algo,
		.mode = GCRY_CIPHER_MODE_CBC,
		.key = key,
		.key_len = half,
	};
	const struct pool_cipher sector_key = {
		.algo = algo,
		.mode = GCRY_CIPHER_MODE_ECB,
		.key = key + half,
		.key_len = half,
	};

	return pool_new(out, nr, &data, &sector_key);
}

const struct scheme_ops elephant_ops = {
	.unit = TWEAK_COUNTS_BYTES,
	.sector_min = ELEPHANT_SECTOR_MIN,
	.sector_granule = CBC_BLOCK_BYTES,
	.open = elephant_open,
	.encrypt = elephant_encrypt,
	.decrypt = elephant_decrypt,
};
