/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sector schemes: bytes in, bytes out, of the same length.  A scheme is a row
 * of a table; XTS, CBC and Elephant are families that share code.  SCHEMES.md
 * defines each and says what it protects.
 */
#ifndef CIPHER_SCHEME_H
#define CIPHER_SCHEME_H

#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"

struct secret;
struct scheme_key;

#define TWEAK_BYTES 16
#define SCHEME_KEY_MAX 64

/*
 * On-disk numbers, never reused.  The key of a two-key scheme is key 1 followed
 * by key 2 (XTS: data, tweak; Elephant: CBC, sector key), without a gap.
 */
enum scheme_id {
	SCHEME_NONE = 0,
	SCHEME_AES_128_XTS = 1,
	SCHEME_AES_256_XTS = 2,
	SCHEME_AES_128_CBC = 3,
	SCHEME_AES_256_CBC = 4,
	SCHEME_AES_128_CBC_ELEPHANT = 5,
	SCHEME_AES_256_CBC_ELEPHANT = 6,
};

struct scheme {
	uint16_t id;		      /* enum scheme_id */
	const char *name;	      /* as --scheme has it */
	unsigned int key_bytes;	      /* both keys together; 0 for none */
	const struct scheme_ops *ops; /* private to cipher/ */
	int algo;		      /* private to cipher/ */
};

/* All rows, in the order they are shown; NULL past the end. */
const struct scheme *scheme_at(size_t index);
/* NULL if there is none. */
const struct scheme *scheme_by_name(const char *name);
const struct scheme *scheme_by_id(uint16_t id);

/*
 * A key of @scheme, ready for use by many threads: it keeps up to @nr_handles
 * library handles, made now so that the data path never allocates; a thread
 * that finds none free waits for one.
 *
 * @sector_bytes  512 or 4096: the data unit (for test vectors any multiple of
 *                16 from 32 to 16 MiB works; XTS also takes 16 bytes and what
 *                is no multiple of 16, CBC also 16)
 * @key           scheme->key_bytes long; may be empty for SCHEME_NONE
 * @nr_handles    1 or more
 *
 * Returns 0, -EINVAL for a wrong size, -ENOMEM, -ENOSYS if the library refuses
 * the algorithm (FIPS mode), -EIO if it fails otherwise.
 */
must_check int scheme_key_new(struct scheme_key **out,
			      const struct scheme *scheme,
			      uint32_t sector_bytes, const struct secret *key,
			      unsigned int nr_handles);
void scheme_key_free(struct scheme_key *k);

/*
 * Tweak of the sector that starts @offset_bytes into the counter space: low
 * half @offset_bytes (for XTS divided by the sector size), high half
 * @session, both little-endian.  The block with counter c starts at c * 4096.
 */
void scheme_tweak(const struct scheme_key *k, uint64_t session,
		  uint64_t offset_bytes, uint8_t tweak[static TWEAK_BYTES]);

/*
 * Encrypt or decrypt @nr whole sectors.  The tweak of each following sector is
 * the one before plus 1 (XTS) or plus the sector size (CBC, Elephant).
 *
 * @tweak  of the first sector, raw 16 bytes; no two contents may ever share
 *         one under one key
 * @in     nr * sector size bytes, any alignment
 * @out    may be equal to @in, else must not overlap; undefined after an error
 *
 * Returns 0, -EOVERFLOW if the low half of the tweak would wrap within the
 * run, or -EIO if the library refused.  Thread-safe, never allocates.
 */
must_check int scheme_encrypt(struct scheme_key *k,
			      const uint8_t tweak[static TWEAK_BYTES],
			      size_t nr, const void *in, void *out);
must_check int scheme_decrypt(struct scheme_key *k,
			      const uint8_t tweak[static TWEAK_BYTES],
			      size_t nr, const void *in, void *out);

/*
 * Known-answer test of one scheme, both directions, with built-in vectors;
 * also of the tag, the seal and the key derivation.  Run at every mount.
 * Returns 0, -EIO, or -ENOSYS if the library refuses one of them (FIPS mode).
 */
must_check int scheme_self_test(const struct scheme *scheme);

#endif
