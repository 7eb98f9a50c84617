/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Keys from passwords (Argon2id, RFC 9106) and from other keys (HKDF-SHA-256,
 * RFC 5869), and the keyed functions that stand on HMAC-SHA-256.
 */
#ifndef CIPHER_KDF_H
#define CIPHER_KDF_H

#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "cipher/secret.h"

#define KDF_SALT_BYTES 32
#define HMAC_BYTES 32

/* Argon2id cost. */
struct kdf_cost {
	uint32_t passes;     /* t, at least 1 */
	uint32_t memory_kib; /* m, 8 * lanes to 4 GiB */
	uint32_t lanes;	     /* p, 1 to 16 */
};

#define KDF_MEMORY_KIB_MAX (4u << 20)
#define KDF_LANES_MAX 16

/* Returns 0 or -ERANGE if @c is out of the bounds above. */
must_check int kdf_cost_check(const struct kdf_cost *c);

/*
 * Argon2id of @password (1 byte or more) into @out, which is made here with
 * @out_len bytes.  Lanes run in parallel threads.
 *
 * Returns 0, -ERANGE (cost), -EINVAL (empty password, or @out_len under 4),
 * -ENOMEM, -ENOSYS, -EIO.
 */
must_check int kdf_argon2id(const struct secret *password,
			    const uint8_t salt[static KDF_SALT_BYTES],
			    const struct kdf_cost *cost, size_t out_len,
			    struct secret *out);

/*
 * The cost that takes about @ms milliseconds on this machine with four lanes:
 * memory first, up to @memory_kib_max, then passes; at least 8 MiB (or the
 * maximum) and one pass, even if that takes longer.  Takes a third of @ms.
 *
 * Returns 0, -ERANGE if @memory_kib_max is under 32 KiB or over 4 GiB, or the
 * error of a trial run.
 */
must_check int kdf_calibrate(uint32_t ms, uint32_t memory_kib_max,
			     struct kdf_cost *cost);

/*
 * HKDF-SHA-256: extract with @salt from @ikm, expand with @info to @out_len
 * bytes (1 to 255 * 32), into @out, made here.  No salt is 32 zeros.  Returns
 * 0, -EINVAL, -ENOMEM or -EIO.
 */
must_check int kdf_hkdf(const struct secret *ikm, const void *salt,
			size_t salt_len, const void *info, size_t info_len,
			size_t out_len, struct secret *out);

/* HMAC-SHA-256 of the concatenation of @nr pieces.  Returns 0 or -EIO. */
struct hmac_piece {
	const void *bytes;
	size_t len;
};
must_check int hmac_sha256(const struct secret *key,
			   const struct hmac_piece *pieces, size_t nr,
			   uint8_t mac[static HMAC_BYTES]);

/* SHA-256 of @len bytes: the header's checksum, not a secret. */
void hash_sha256(const void *bytes, size_t len, uint8_t out[static 32]);

/*
 * A keyed pseudo-random function for hash tables on disk (directory names):
 * the first 8 bytes, little-endian, of HMAC-SHA-256 under 32 bytes of key.
 * Keeps a library handle, so that a call costs about a microsecond.
 */
struct prf_key;
must_check int prf_key_new(struct prf_key **out, const uint8_t key[static 32]);
void prf_key_free(struct prf_key *k);
/* Thread-safe (a lock inside). */
uint64_t prf_hash(struct prf_key *k, const void *bytes, size_t len);

#endif
