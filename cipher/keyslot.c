/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A slot's key encryption key comes from the secret by the slot's KDF; the
 * master key is sealed under it, and everything that says how to get there is
 * authenticated with it.  So a slot cannot be moved, weakened or given to
 * another container without failing to open.
 */
#include "cipher/keyslot.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "cipher/bytes.h"
#include "cipher/secret.h"

#define HKDF_SECRET_BYTES_MIN 16 /* 128 bits */

static const char hkdf_label[] = "tuskfs key slot";

/* UUID, version, index, kind, KDF, its parameters, salt, key id. */
#define AAD_BYTES (16 + 4 + 4 + 2 + 2 + 3 * 4 + KDF_SALT_BYTES + 2)

static void encode_aad(const struct keyslot *slot,
		       const struct keyslot_place *place,
		       uint8_t aad[static AAD_BYTES])
{
	memcpy(aad, place->uuid, 16);
	put_le32(aad + 16, place->format_version);
	put_le32(aad + 20, place->index);
	put_le16(aad + 24, slot->kind);
	put_le16(aad + 26, slot->kdf);
	put_le32(aad + 28, slot->cost.passes);
	put_le32(aad + 32, slot->cost.memory_kib);
	put_le32(aad + 36, slot->cost.lanes);
	memcpy(aad + 40, slot->salt, KDF_SALT_BYTES);
	put_le16(aad + 40 + KDF_SALT_BYTES, slot->key_id);
}

static bool is_known_kind(uint16_t kind)
{
	switch (kind) {
	case KEYSLOT_PASSWORD:
	case KEYSLOT_RECOVERY:
	case KEYSLOT_KEY_FILE:
	case KEYSLOT_PASSWORD_KEY_FILE:
	case KEYSLOT_EXTERNAL:
		return true;
	default:
		return false;
	}
}

/* HKDF costs a guess nothing, so only what no person chose may use it. */
static bool is_known_kdf(const struct keyslot *slot)
{
	if (slot->kdf == KDF_HKDF_SHA256)
		return slot->kind == KEYSLOT_EXTERNAL;
	return slot->kdf == KDF_ARGON2ID;
}

static int check_slot(const struct keyslot *slot)
{
	const struct kdf_cost *c = &slot->cost;

	if (slot->kind == KEYSLOT_EMPTY)
		return -EINVAL;
	if (!is_known_kind(slot->kind) || !is_known_kdf(slot))
		return -EOPNOTSUPP;
	if (slot->kdf == KDF_ARGON2ID)
		return kdf_cost_check(c);
	return c->passes || c->memory_kib || c->lanes ? -ERANGE : 0;
}

static bool is_secret_long_enough(const struct keyslot *slot,
				  const struct secret *secret)
{
	if (slot->kdf == KDF_HKDF_SHA256)
		return secret->len >= HKDF_SECRET_BYTES_MIN;
	return secret->len >= 1;
}

static int derive_kek(const struct keyslot *slot, const struct secret *secret,
		      struct secret *kek)
{
	if (slot->kdf == KDF_ARGON2ID)
		return kdf_argon2id(secret, slot->salt, &slot->cost,
				    SEAL_KEY_BYTES, kek);
	return kdf_hkdf(secret, slot->salt, sizeof(slot->salt), hkdf_label,
			sizeof(hkdf_label) - 1, SEAL_KEY_BYTES, kek);
}

/* The slot's sealing key, one handle. */
static int open_kek(const struct keyslot *slot, const struct secret *secret,
		    struct seal_key **out)
{
	auto_secret struct secret kek = SECRET_EMPTY;
	int err = derive_kek(slot, secret, &kek);

	return err ? err : seal_key_new(out, &kek, 1);
}

int keyslot_wrap(struct keyslot *slot, const struct keyslot_place *place,
		 const struct secret *secret, const struct secret *master,
		 struct nonce_source *src)
{
	uint8_t aad[AAD_BYTES];
	struct seal_key *kek;
	int err;

	err = check_slot(slot);
	if (err)
		return err == -EOPNOTSUPP ? -EINVAL : err;
	if (master->len != MASTER_KEY_BYTES ||
	    !is_secret_long_enough(slot, secret))
		return -EINVAL;

	err = random_bytes(slot->salt, sizeof(slot->salt));
	if (err)
		return err;
	err = open_kek(slot, secret, &kek);
	if (err)
		return err;
	encode_aad(slot, place, aad);
	err = seal_message(kek, src, aad, sizeof(aad), master->bytes,
			   MASTER_KEY_BYTES, slot->wrapped, &slot->nonce,
			   slot->tag);
	seal_key_free(kek);
	return err;
}

static int open_wrapped(struct seal_key *kek, const struct keyslot *slot,
			const struct keyslot_place *place,
			struct secret *master)
{
	uint8_t aad[AAD_BYTES];
	int err = secret_new(master, MASTER_KEY_BYTES);

	if (err)
		return err;
	encode_aad(slot, place, aad);
	err = seal_open(kek, slot->nonce, aad, sizeof(aad), slot->wrapped,
			MASTER_KEY_BYTES, master->bytes, slot->tag);
	if (err)
		secret_wipe(master);
	return err == -EBADMSG ? -EACCES : err;
}

int keyslot_unwrap(const struct keyslot *slot,
		   const struct keyslot_place *place,
		   const struct secret *secret, struct secret *master)
{
	struct seal_key *kek;
	int err;

	*master = SECRET_EMPTY;
	err = check_slot(slot);
	if (err)
		return err;
	if (!is_secret_long_enough(slot, secret))
		return -EACCES;
	err = open_kek(slot, secret, &kek);
	if (err)
		return err;
	err = open_wrapped(kek, slot, place, master);
	seal_key_free(kek);
	return err;
}
