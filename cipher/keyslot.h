/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Key slots: the master key wrapped under what a person knows or has.  Plain
 * values in and out; where they lie on disk is fs/header.c's business.
 */
#ifndef CIPHER_KEYSLOT_H
#define CIPHER_KEYSLOT_H

#include <stdint.h>

#include "cipher/defs.h"
#include "cipher/kdf.h"
#include "cipher/nonce.h"
#include "cipher/seal.h"

#define MASTER_KEY_BYTES 64

/* On-disk numbers.  5 to 7 (TPM2, FIDO2, PKCS#11) and beyond are reserved. */
enum keyslot_kind {
	KEYSLOT_EMPTY = 0,
	KEYSLOT_PASSWORD = 1,
	KEYSLOT_RECOVERY = 2,
	KEYSLOT_KEY_FILE = 3,
	KEYSLOT_PASSWORD_KEY_FILE = 4,
	KEYSLOT_TPM2 = 5,
	KEYSLOT_FIDO2 = 6,
	KEYSLOT_PKCS11 = 7,
	KEYSLOT_EXTERNAL = 8,
};

/* On-disk numbers. */
enum kdf_id {
	KDF_ARGON2ID = 1,    /* everything that people choose */
	KDF_HKDF_SHA256 = 2, /* only secrets of 128 bits or more we made */
};

struct keyslot {
	uint16_t kind; /* enum keyslot_kind */
	uint16_t kdf;  /* enum kdf_id */
	uint16_t key_id;
	struct kdf_cost cost; /* zero for HKDF */
	uint8_t salt[KDF_SALT_BYTES];
	struct nonce nonce;
	uint8_t wrapped[MASTER_KEY_BYTES];
	uint8_t tag[SEAL_TAG_BYTES];
};

/*
 * What the wrapping authenticates besides the slot's own kind, KDF, cost, salt
 * and key id.  The AAD is 74 bytes, numbers little-endian: UUID 16, format
 * version 4, index 4, kind 2, KDF 2, passes 4, memory 4, lanes 4, salt 32, key
 * id 2.
 */
struct keyslot_place {
	uint8_t uuid[16];
	uint32_t format_version;
	uint32_t index; /* of the slot, 0 to 15 */
};

/*
 * Wrap @master under @secret: salt and nonce are drawn, the rest of *slot
 * (kind, kdf, key_id, cost) is given.
 *
 * Returns 0; -ERANGE if the cost is out of bounds; -EINVAL for an empty or
 * unknown kind or KDF, an empty secret, HKDF for anything but an external
 * secret of 16 bytes or more, or a master key of another length; -ENOMEM,
 * -ENOSYS, -EIO, or the error of the random generator.
 */
must_check int keyslot_wrap(struct keyslot *slot,
			    const struct keyslot_place *place,
			    const struct secret *secret,
			    const struct secret *master,
			    struct nonce_source *src);

/*
 * Unwrap into @master, made here.  Returns 0; -EACCES if the secret is not
 * this slot's; -ERANGE if the cost is out of bounds (a damaged or hostile
 * header); -EOPNOTSUPP for a kind or KDF of a later version; -EINVAL for an
 * empty slot; -ENOMEM, -ENOSYS, -EIO.  *master is empty after an error.
 */
must_check int keyslot_unwrap(const struct keyslot *slot,
			      const struct keyslot_place *place,
			      const struct secret *secret,
			      struct secret *master);

#endif
