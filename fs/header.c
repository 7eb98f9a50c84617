/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Headers: made, read, unlocked, changed and written.  Bytes are the business
 * of header_format.c, keys that of header_keys.c.
 *
 * Both copies are the same bytes.  Only one is written at a time, and the next
 * after a flush, so that one is good at each instant; of two good ones the
 * newer counts.
 */
#include "fs/header.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/container.h"
#include "fs/format.h"
#include "fs/header_format.h"
#include "fs/header_keys.h"

#define NODE_LOG2_DEFAULT 14
#define FIRST_KEY_ID 1
#define MASTER_KEY_ID 1

static const block_t copy_block[2] = { HEADER_A_BLOCK, HEADER_B_BLOCK };

/* Slots */

/* What deriving costs in time: memory, as often as it is passed over. */
static uint64_t slot_work(const struct keyslot *s)
{
	if (s->kind == KEYSLOT_EMPTY || s->kdf != KDF_ARGON2ID)
		return 0;
	return (uint64_t)s->cost.passes * s->cost.memory_kib;
}

static struct keyslot_place place_of(const struct header *h, unsigned int index)
{
	struct keyslot_place place = {
		.format_version = h->format_version,
		.index = index,
	};

	memcpy(place.uuid, h->uuid, sizeof(place.uuid));
	return place;
}

static bool cost_is_zero(const struct kdf_cost *c)
{
	return c->passes == 0 && c->memory_kib == 0 && c->lanes == 0;
}

/* Kind, KDF and costs of a slot to be; keyslot_wrap() judges the rest. */
static int plan_slot(const struct header *h, unsigned int index,
		     enum keyslot_kind kind, const struct kdf_cost *cost,
		     struct keyslot *slot)
{
	bool hkdf = kind == KEYSLOT_EXTERNAL && cost_is_zero(cost);
	uint64_t left = HEADER_KDF_SUM_KIB;

	if (index >= HEADER_SLOTS)
		return -EINVAL;

	*slot = (struct keyslot){
		.kind = (uint16_t)kind,
		.kdf = hkdf ? KDF_HKDF_SHA256 : KDF_ARGON2ID,
		.key_id = MASTER_KEY_ID,
		.cost = *cost,
	};
	/* Refuse what could not be tried later, after the other slots. */
	for (unsigned int i = 0; i < HEADER_SLOTS; i++)
		if (i != index && slot_work(&h->slot[i]) <= left)
			left -= slot_work(&h->slot[i]);
	return slot_work(slot) > left ? -ERANGE : 0;
}

/* Nothing of what stood in the slot before shall be left. */
static int randomize_slot(struct header *h, unsigned int index)
{
	uint8_t fresh[HEADER_SLOT_BYTES];
	int err = random_bytes(fresh, sizeof(fresh));

	if (!err)
		memcpy(header_raw_slot(h, index), fresh, sizeof(fresh));
	return err;
}

int header_set_slot(struct header *h, const struct header_keys *keys,
		    unsigned int index, enum keyslot_kind kind,
		    const struct secret *secret, const struct kdf_cost *cost,
		    struct nonce_source *src)
{
	struct keyslot_place place = place_of(h, index);
	struct keyslot slot;
	int err;

	err = plan_slot(h, index, kind, cost, &slot);
	if (!err)
		err = keyslot_wrap(&slot, &place, secret, &keys->master, src);
	if (!err)
		err = randomize_slot(h, index);
	if (!err)
		h->slot[index] = slot;
	return err;
}

int header_clear_slot(struct header *h, unsigned int index)
{
	int err;

	if (index >= HEADER_SLOTS)
		return -EINVAL;
	err = randomize_slot(h, index);
	if (!err)
		h->slot[index] = (struct keyslot){ .kind = KEYSLOT_EMPTY };
	return err;
}

/* Making */

static int check_params(const struct header_params *p)
{
	if (!header_label_ok(p->label))
		return -EINVAL;
	if (p->sector_bytes != 512 && p->sector_bytes != 4096)
		return -EINVAL;
	if (p->node_log2 && (p->node_log2 < 14 || p->node_log2 > 16))
		return -EINVAL;
	return 0;
}

/* A random (version 4) UUID, RFC 4122. */
static int draw_uuid(uint8_t uuid[static UUID_BYTES])
{
	int err = random_bytes(uuid, UUID_BYTES);

	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return err;
}

/* All but keys and slots. */
static int begin_header(struct header *h, const struct header_params *p)
{
	int err;

	h->raw = malloc(HEADER_AREA_BYTES);
	if (!h->raw)
		return -ENOMEM;
	/* Whoever looks cannot tell used bytes from unused ones. */
	err = random_bytes(h->raw, HEADER_AREA_BYTES);
	if (!err)
		err = draw_uuid(h->uuid);

	h->format_version = FORMAT_VERSION;
	h->sequence = 1;
	h->node_log2 = p->node_log2 ? p->node_log2 : NODE_LOG2_DEFAULT;
	memcpy(h->label, p->label, strlen(p->label) + 1);
	return err;
}

static int draw_master(struct secret *master)
{
	int err = secret_new(master, MASTER_KEY_BYTES);

	return err ? err : random_bytes(master->bytes, master->len);
}

static int fill_header(struct header *h, struct header_keys *keys,
		       const struct header_params *p,
		       const struct secret *secret, struct nonce_source *src,
		       unsigned int nr_handles)
{
	int err;

	err = begin_header(h, p);
	if (!err)
		err = draw_master(&keys->master);
	if (err)
		return err;

	h->key[0] = (struct header_key){
		.key_id = FIRST_KEY_ID,
		.state = HEADER_KEY_ACTIVE,
		.scheme = p->scheme->id,
		.sector_bytes = p->sector_bytes,
		.integrity = p->integrity,
	};
	err = header_row_new(h, &h->key[0], &keys->master, src);
	if (!err)
		err = header_set_slot(h, keys, 0, p->kind, secret, &p->cost,
				      src);
	if (!err)
		err = header_keys_make(h, keys, nr_handles);
	return err;
}

int header_new(struct header *h, struct header_keys *keys,
	       const struct header_params *p, const struct secret *secret,
	       struct nonce_source *src, unsigned int nr_handles)
{
	int err;

	memset(h, 0, sizeof(*h));
	memset(keys, 0, sizeof(*keys));
	err = check_params(p);
	if (!err)
		err = fill_header(h, keys, p, secret, src, nr_handles);
	if (err) {
		header_keys_destroy(keys);
		header_destroy(h);
	}
	return err;
}

void header_destroy(struct header *h)
{
	free(h->raw);
	memset(h, 0, sizeof(*h));
}

/* Reading */

/* A copy that was cut short: damage if it was one, else not ours. */
static int read_stump(struct container *c, unsigned int copy)
{
	uint8_t block[BLOCK_BYTES];
	int err = container_read(c, copy_block[copy], 1, block);

	if (err)
		return err;
	return memcmp(block, HEADER_MAGIC, sizeof(HEADER_MAGIC) - 1)
		       ? -ENOMSG : -EUCLEAN;
}

/* One copy; @h is empty.  Returns as header_read(). */
static int read_copy(struct header *h, struct container *c, unsigned int copy)
{
	uint64_t nr = container_nr_blocks(c);
	int err;

	if (nr < copy_block[copy] + HEADER_BLOCKS)
		return nr > copy_block[copy] ? read_stump(c, copy) : -ENOMSG;
	h->raw = malloc(HEADER_AREA_BYTES);
	if (!h->raw)
		return -ENOMEM;

	err = container_read(c, copy_block[copy], HEADER_BLOCKS, h->raw);
	return err ? err : header_decode(h);
}

/* Did the copy decode so far that its sequence means something? */
static bool copy_counts(int err)
{
	return err == 0 || err == -EOPNOTSUPP;
}

/* Which copy to take, given what reading them returned. */
static unsigned int choose_copy(const struct header copies[static 2],
				const int errs[static 2])
{
	/* From what to report best to what to report last. */
	static const int by_weight[] = { -ENOMEM, -EUCLEAN, -EIO, -ENOMSG };

	if (copy_counts(errs[0]) && copy_counts(errs[1]))
		return copies[1].sequence > copies[0].sequence;
	if (copy_counts(errs[0]) || copy_counts(errs[1]))
		return copy_counts(errs[1]);

	for (size_t i = 0; i < sizeof(by_weight) / sizeof(*by_weight); i++)
		for (unsigned int copy = 0; copy < 2; copy++)
			if (errs[copy] == by_weight[i])
				return copy;
	return 0;
}

int header_read(struct header *h, struct container *c)
{
	struct header copies[2] = { 0 };
	unsigned int chosen;
	int errs[2];

	for (unsigned int i = 0; i < 2; i++)
		errs[i] = read_copy(&copies[i], c, i);

	chosen = choose_copy(copies, errs);
	for (unsigned int i = 0; i < 2; i++) {
		copies[chosen].copy_ok[i] = errs[i] == 0;
		copies[chosen].copy_sequence[i] = errs[i] ? 0
							  : copies[i].sequence;
	}
	*h = copies[chosen];
	header_destroy(&copies[!chosen]);
	return errs[chosen];
}

/* Unlocking */

/*
 * Of the reasons why no slot opened, the one to report: what kept us from
 * trying at all says more than a wrong secret.
 */
static int worse_reason(int a, int b)
{
	static const int by_weight[] = { -EIO, -ENOMEM, -ERANGE };

	for (size_t i = 0; i < sizeof(by_weight) / sizeof(*by_weight); i++)
		if (a == by_weight[i] || b == by_weight[i])
			return by_weight[i];
	return -EACCES;
}

/* @work_left: for this slot and those after it. */
static int try_slot(const struct header *h, unsigned int index,
		    const struct secret *secret, uint64_t *work_left,
		    struct header_keys *keys)
{
	const struct keyslot *slot = &h->slot[index];
	struct keyslot_place place = place_of(h, index);
	uint64_t work = slot_work(slot);

	/* What is out of bounds alone costs nothing, so takes nothing. */
	if (slot->kdf == KDF_ARGON2ID && kdf_cost_check(&slot->cost))
		return -ERANGE;
	if (work > *work_left)
		return -ERANGE;
	*work_left -= work;
	keys->slot = index;
	return keyslot_unwrap(slot, &place, secret, &keys->master);
}

/*
 * Two rounds: passwords first, since that is what people have; the rest.
 */
static int open_some_slot(const struct header *h, uint32_t kinds,
			  const struct secret *secret, struct header_keys *keys)
{
	uint64_t work_left = HEADER_KDF_SUM_KIB;
	int reason = -EACCES;

	for (unsigned int n = 0; n < 2 * HEADER_SLOTS; n++) {
		unsigned int i = n % HEADER_SLOTS;
		unsigned int kind = h->slot[i].kind;
		bool first_round = n < HEADER_SLOTS;
		int err;

		if (kind == KEYSLOT_EMPTY || kind > KEYSLOT_EXTERNAL ||
		    !(kinds & 1u << kind))
			continue;
		if ((kind == KEYSLOT_PASSWORD) != first_round)
			continue;

		err = try_slot(h, i, secret, &work_left, keys);
		if (!err)
			return 0;
		reason = worse_reason(reason, err);
	}
	return reason;
}

static int verify_mac(const struct header *h, const struct secret *master)
{
	uint8_t stored[HMAC_BYTES], mac[HMAC_BYTES];
	int err;

	err = header_mac(h, master, mac);
	if (err)
		return err;
	header_get_mac(h, stored);
	return secret_equal(stored, mac, sizeof(mac)) ? 0 : -EBADMSG;
}

int header_unlock_kinds(const struct header *h, uint32_t kinds,
			const struct secret *secret, struct header_keys *keys,
			unsigned int nr_handles)
{
	int err;

	memset(keys, 0, sizeof(*keys));
	err = open_some_slot(h, kinds, secret, keys);
	if (!err)
		err = verify_mac(h, &keys->master);
	if (!err)
		err = header_keys_make(h, keys, nr_handles);
	if (err)
		header_keys_destroy(keys);
	return err;
}

int header_unlock(const struct header *h, const struct secret *secret,
		  struct header_keys *keys, unsigned int nr_handles)
{
	return header_unlock_kinds(h, HEADER_ALL_KINDS, secret, keys,
				   nr_handles);
}

/* Writing */

int header_write_copy(struct header *h, const struct header_keys *keys,
		      struct container *c, unsigned int copy)
{
	uint8_t mac[HMAC_BYTES];
	int err;

	assert(copy < 2);
	header_encode(h);
	err = header_mac(h, &keys->master, mac);
	if (err)
		return err;
	header_set_mac(h, mac);
	header_set_checksum(h);

	h->copy_ok[copy] = false;
	h->copy_sequence[copy] = 0;
	err = container_write(c, copy_block[copy], HEADER_BLOCKS, h->raw);
	if (err)
		return err;
	h->copy_ok[copy] = true;
	h->copy_sequence[copy] = h->sequence;
	return 0;
}

bool header_copies_agree(const struct header *h)
{
	return h->copy_ok[0] && h->copy_ok[1] &&
	       h->copy_sequence[0] == h->copy_sequence[1];
}

int header_repair(struct header *h, const struct header_keys *keys,
		  struct container *c)
{
	for (unsigned int copy = 0; copy < 2; copy++) {
		int err;

		if (h->copy_ok[copy] && h->copy_sequence[copy] == h->sequence)
			continue;
		err = header_write_copy(h, keys, c, copy);
		if (err)
			return err;
	}
	return container_flush(c);
}

void uuid_format(const uint8_t uuid[static UUID_BYTES], char out[static 37])
{
	const uint8_t *u = uuid;

	snprintf(out, 37,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
		 "%02x%02x%02x%02x%02x%02x",
		 u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9],
		 u[10], u[11], u[12], u[13], u[14], u[15]);
}
