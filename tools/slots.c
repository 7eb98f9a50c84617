/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One table of names, and two renderings.
 */
#include <stdio.h>

#include "fs/header.h"
#include "tools/json.h"
#include "tools/slots.h"
#include "tools/units.h"

static const char *const kind_names[] = {
	[KEYSLOT_EMPTY] = "empty",
	[KEYSLOT_PASSWORD] = "password",
	[KEYSLOT_RECOVERY] = "recovery-key",
	[KEYSLOT_KEY_FILE] = "key-file",
	[KEYSLOT_PASSWORD_KEY_FILE] = "password-and-key-file",
	[KEYSLOT_TPM2] = "tpm2",
	[KEYSLOT_FIDO2] = "fido2",
	[KEYSLOT_PKCS11] = "pkcs11",
	[KEYSLOT_EXTERNAL] = "external-secret",
};

static const char *const kdf_names[] = {
	[KDF_ARGON2ID] = "argon2id",
	[KDF_HKDF_SHA256] = "hkdf-sha-256",
};

const char *slot_kind_name(uint16_t kind)
{
	if (kind >= sizeof(kind_names) / sizeof(kind_names[0]))
		return "unknown";
	return kind_names[kind];
}

static const char *kdf_name(uint16_t kdf)
{
	if (kdf >= sizeof(kdf_names) / sizeof(kdf_names[0]) || !kdf_names[kdf])
		return "unknown";
	return kdf_names[kdf];
}

void slot_text(const struct keyslot *slot, char out[static SLOT_TEXT_BYTES])
{
	const struct kdf_cost *cost = &slot->cost;
	char memory[UNITS_TEXT_BYTES];

	units_format_size((uint64_t)cost->memory_kib * 1024, memory);
	if (slot->kdf == KDF_ARGON2ID)
		snprintf(out, SLOT_TEXT_BYTES,
			 "%s, argon2id, memory %s, passes %u, lanes %u",
			 slot_kind_name(slot->kind), memory, cost->passes,
			 cost->lanes);
	else
		snprintf(out, SLOT_TEXT_BYTES, "%s, %s",
			 slot_kind_name(slot->kind), kdf_name(slot->kdf));
}

static struct json_object *slot_json(unsigned int index,
				     const struct keyslot *slot)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "index", index);
	json_add_text(o, "kind", slot_kind_name(slot->kind));
	json_add_text(o, "kdf", kdf_name(slot->kdf));
	json_add_number(o, "memory_kib", slot->cost.memory_kib);
	json_add_number(o, "passes", slot->cost.passes);
	json_add_number(o, "lanes", slot->cost.lanes);
	json_add_number(o, "key_id", slot->key_id);
	return o;
}

struct json_object *slots_json(const struct header *h)
{
	struct json_object *array = json_object_new_array();

	for (unsigned int i = 0; i < HEADER_SLOTS; i++)
		if (h->slot[i].kind != KEYSLOT_EMPTY)
			json_object_array_add(array, slot_json(i, &h->slot[i]));
	return array;
}
