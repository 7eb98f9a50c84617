/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the second reader needs of arithmetic: "Conventions", the key
 * derivation functions, and the ciphers as "Data blocks" defines them.
 */
#include "tests/compat/second.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint8_t *image;
uint64_t image_blocks;

void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("second-reader: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void want(bool ok, const char *what, uint64_t where)
{
	if (!ok)
		die("%s (%" PRIu64 ")", what, where);
}

void library(gcry_error_t err)
{
	if (err)
		die("libgcrypt: %s", gcry_strerror(err));
}

void *get_memory(size_t len)
{
	void *p = calloc(1, len ? len : 1);

	if (!p)
		die("no memory");
	return p;
}

/* ---- numbers, and the rest of "Conventions" */

static uint64_t get(const uint8_t *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

uint16_t u16(const uint8_t *p)
{
	return (uint16_t)get(p, 2);
}

uint32_t u32(const uint8_t *p)
{
	return (uint32_t)get(p, 4);
}

uint64_t u64(const uint8_t *p)
{
	return get(p, 8);
}

uint8_t *put(uint8_t *p, uint64_t v, unsigned int bytes)
{
	for (; bytes--; v >>= 8)
		*p++ = (uint8_t)v;
	return p;
}

uint8_t *put_bytes(uint8_t *p, const void *bytes, size_t len)
{
	memcpy(p, bytes, len);
	return p + len;
}

bool zero(const uint8_t *p, size_t len)
{
	while (len--)
		if (*p++)
			return false;
	return true;
}

const uint8_t *block_at(uint64_t block, uint64_t nr)
{
	if (block >= image_blocks || nr > image_blocks - block)
		die("block %" PRIu64 " lies outside of the file", block);
	return image + block * BLOCK;
}

void sha256(const void *p, size_t len, uint8_t out[static 32])
{
	gcry_md_hash_buffer(GCRY_MD_SHA256, out, p, len);
}

void hmac(const uint8_t *key, size_t key_len, const uint8_t *p, size_t len,
	  uint8_t out[static 32])
{
	gcry_md_hd_t md;

	library(gcry_md_open(&md, GCRY_MD_SHA256, GCRY_MD_FLAG_HMAC));
	library(gcry_md_setkey(md, key, key_len));
	gcry_md_write(md, p, len);
	memcpy(out, gcry_md_read(md, GCRY_MD_SHA256), 32);
	gcry_md_close(md);
}

/* RFC 5869 */
void hkdf(const uint8_t *ikm, size_t ikm_len, const uint8_t salt[static 32],
	  const uint8_t *info, size_t info_len, uint8_t *out, size_t len)
{
	uint8_t prk[32], t[32], message[32 + 128 + 1];
	size_t t_len = 0;

	hmac(salt, 32, ikm, ikm_len, prk);
	for (uint8_t i = 1; len; i++) {
		uint8_t *end = put_bytes(message, t, t_len);
		size_t n = len < 32 ? len : 32;

		end = put_bytes(end, info, info_len);
		*end++ = i;
		hmac(prk, 32, message, (size_t)(end - message), t);
		t_len = 32;
		out = put_bytes(out, t, n);
		len -= n;
	}
}

void argon2id(const uint8_t *secret, size_t len, const uint8_t *salt,
	      const unsigned long cost[static 4], uint8_t *out)
{
	gcry_kdf_hd_t hd;

	library(gcry_kdf_open(&hd, GCRY_KDF_ARGON2, GCRY_KDF_ARGON2ID, cost, 4,
			      secret, len, salt, 32, NULL, 0, NULL, 0));
	library(gcry_kdf_compute(hd, NULL));
	library(gcry_kdf_final(hd, cost[0], out));
	gcry_kdf_close(hd);
}

static void nonce_bytes(struct nonce n, uint8_t out[static 12])
{
	put(put(out, n.session, 8), n.counter, 4);
}

bool unseal(const uint8_t key[static 32], struct nonce n, const uint8_t *aad,
	    size_t aad_len, const uint8_t *in, size_t len, uint8_t *out,
	    const uint8_t tag[static 16])
{
	gcry_cipher_hd_t hd;
	gcry_error_t err;
	uint8_t iv[12];

	nonce_bytes(n, iv);
	library(gcry_cipher_open(&hd, GCRY_CIPHER_AES256,
				 GCRY_CIPHER_MODE_GCM_SIV, 0));
	library(gcry_cipher_setkey(hd, key, 32));
	library(gcry_cipher_setiv(hd, iv, 12));
	library(gcry_cipher_authenticate(hd, aad, aad_len));
	library(gcry_cipher_set_decryption_tag(hd, (void *)tag, 16));
	err = gcry_cipher_decrypt(hd, out, len, in, len);
	gcry_cipher_close(hd);
	if (err && gcry_err_code(err) != GPG_ERR_CHECKSUM)
		library(err);
	return !err;
}

void gmac(const uint8_t key[static 32], struct nonce n, const uint8_t *p,
	  size_t len, uint8_t tag[static 16])
{
	gcry_cipher_hd_t hd;
	uint8_t iv[12];

	nonce_bytes(n, iv);
	library(gcry_cipher_open(&hd, GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_GCM,
				 0));
	library(gcry_cipher_setkey(hd, key, 32));
	library(gcry_cipher_setiv(hd, iv, 12));
	library(gcry_cipher_authenticate(hd, p, len));
	library(gcry_cipher_gettag(hd, tag, 16));
	gcry_cipher_close(hd);
}

static int aes(size_t key_len)
{
	return key_len == 16 ? GCRY_CIPHER_AES128 : GCRY_CIPHER_AES256;
}

static void ecb(const uint8_t *key, size_t key_len, const uint8_t in[static 16],
		uint8_t out[static 16])
{
	gcry_cipher_hd_t hd;

	library(gcry_cipher_open(&hd, aes(key_len), GCRY_CIPHER_MODE_ECB, 0));
	library(gcry_cipher_setkey(hd, key, key_len));
	library(gcry_cipher_encrypt(hd, out, 16, in, 16));
	gcry_cipher_close(hd);
}

/* CBC whose IV is the encrypted tweak. */
void cbc(const uint8_t *key, size_t key_len, const uint8_t tweak[static 16],
	 const uint8_t *in, size_t len, uint8_t *out)
{
	gcry_cipher_hd_t hd;
	uint8_t iv[16];

	ecb(key, key_len, tweak, iv);
	library(gcry_cipher_open(&hd, aes(key_len), GCRY_CIPHER_MODE_CBC, 0));
	library(gcry_cipher_setkey(hd, key, key_len));
	library(gcry_cipher_setiv(hd, iv, 16));
	library(gcry_cipher_decrypt(hd, out, len, in, len));
	gcry_cipher_close(hd);
}

void xts(const uint8_t *key, size_t key_len, const uint8_t tweak[static 16],
	 const uint8_t *in, size_t len, uint8_t *out)
{
	gcry_cipher_hd_t hd;

	library(gcry_cipher_open(&hd, aes(key_len / 2), GCRY_CIPHER_MODE_XTS,
				 0));
	library(gcry_cipher_setkey(hd, key, key_len));
	library(gcry_cipher_setiv(hd, tweak, 16));
	library(gcry_cipher_decrypt(hd, out, len, in, len));
	gcry_cipher_close(hd);
}

static uint32_t rotate(uint32_t v, unsigned int by)
{
	return by ? v << by | v >> (32 - by) : v;
}

static void diffuse(uint32_t *d, size_t n, unsigned int rounds, size_t two,
		    size_t five, const unsigned int by[static 4])
{
	while (rounds--)
		for (size_t i = 0; i < n; i++)
			d[i] += d[(i + two) % n] ^
				rotate(d[(i + five) % n], by[i % 4]);
}

void elephant(const uint8_t *key, size_t key_len,
	      const uint8_t tweak[static 16], const uint8_t *in, size_t len,
	      uint8_t *out)
{
	static const unsigned int ra[4] = { 9, 0, 13, 0 };
	static const unsigned int rb[4] = { 0, 10, 0, 25 };
	size_t half = key_len / 2, n = len / 4;
	uint8_t ks[32], second[16];
	uint32_t d[BLOCK / 4];

	cbc(key, half, tweak, in, len, out);
	for (size_t i = 0; i < n; i++)
		d[i] = u32(out + 4 * i);
	diffuse(d, n, 3, 2, 5, rb);
	diffuse(d, n, 5, n - 2, n - 5, ra);
	for (size_t i = 0; i < n; i++)
		put(out + 4 * i, d[i], 4);

	memcpy(second, tweak, 16);
	second[15] |= 0x80;
	ecb(key + half, half, tweak, ks);
	ecb(key + half, half, second, ks + 16);
	for (size_t i = 0; i < len; i++)
		out[i] ^= ks[i % 32];
}
