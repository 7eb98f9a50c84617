/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Key slots in a header: what opens, what does not, and what hostile ones can
 * do.
 */
#include <criterion/criterion.h>

#include "fs/header_format.h"
#include "fs/header_keys.h"
#include "support.h"

static struct made m;
static const struct kdf_cost no_cost;

static void start_made(void)
{
	make_container(&m);
}

static void end_made(void)
{
	destroy_container(&m);
}

TestSuite(slots, .init = start_made, .fini = end_made);

static int set_slot(unsigned int index, enum keyslot_kind kind,
		    const char *text, const struct kdf_cost *cost)
{
	auto_secret struct secret s = secret_text(text);

	return header_set_slot(&m.h, &m.keys, index, kind, &s, cost, &m.src);
}

/* Through the container and back. */
static void write_and_read(struct header *h)
{
	must(header_write_copy(&m.h, &m.keys, m.c, 0));
	must(header_write_copy(&m.h, &m.keys, m.c, 1));
	must(header_read(h, m.c));
}

static int unlock(const char *text, uint32_t kinds, unsigned int *slot)
{
	auto_secret struct secret s = secret_text(text);
	struct header_keys keys;
	struct header h;
	int err;

	write_and_read(&h);
	err = header_unlock_kinds(&h, kinds, &s, &keys, 1);
	if (slot)
		*slot = keys.slot;
	header_keys_destroy(&keys);
	header_destroy(&h);
	return err;
}

static int unlock_any(const char *text)
{
	return unlock(text, HEADER_ALL_KINDS, NULL);
}

Test(slots, only_the_right_secret_opens)
{
	cr_assert_eq(unlock_any(OLD_PASSWORD), 0);
	cr_assert_eq(unlock_any("the old passwore"), -EACCES);
	cr_assert_eq(unlock_any(""), -EACCES);
}

Test(slots, sixteen_secrets_open)
{
	char text[32];
	unsigned int slot;

	for (unsigned int i = 1; i < HEADER_SLOTS; i++) {
		snprintf(text, sizeof(text), "secret number %u", i);
		cr_assert_eq(set_slot(i, KEYSLOT_PASSWORD, text, &cheap), 0);
	}
	for (unsigned int i = 1; i < HEADER_SLOTS; i++) {
		snprintf(text, sizeof(text), "secret number %u", i);
		cr_assert_eq(unlock(text, HEADER_ALL_KINDS, &slot), 0);
		cr_assert_eq(slot, i);
	}
	cr_assert_eq(unlock_any(OLD_PASSWORD), 0);
}

Test(slots, every_kind_opens)
{
	static const enum keyslot_kind kinds[] = {
		KEYSLOT_PASSWORD,	   KEYSLOT_RECOVERY, KEYSLOT_KEY_FILE,
		KEYSLOT_PASSWORD_KEY_FILE, KEYSLOT_EXTERNAL,
	};

	for (size_t i = 0; i < 5; i++) {
		cr_assert_eq(set_slot(5, kinds[i], "a secret", &cheap), 0);
		cr_assert_eq(unlock("a secret", 1u << kinds[i], NULL), 0);
		cr_assert_eq(unlock("a secret", ~(1u << kinds[i]), NULL),
			     -EACCES);
	}
}

Test(slots, password_slots_come_first)
{
	unsigned int slot;

	cr_assert_eq(set_slot(0, KEYSLOT_KEY_FILE, "same", &cheap), 0);
	cr_assert_eq(set_slot(9, KEYSLOT_PASSWORD, "same", &cheap), 0);
	cr_assert_eq(unlock("same", HEADER_ALL_KINDS, &slot), 0);
	cr_assert_eq(slot, 9);
}

Test(slots, change_replaces_the_secret)
{
	cr_assert_eq(set_slot(0, KEYSLOT_PASSWORD, NEW_PASSWORD, &cheap), 0);
	cr_assert_eq(unlock_any(OLD_PASSWORD), -EACCES);
	cr_assert_eq(unlock_any(NEW_PASSWORD), 0);
}

Test(slots, removed_one_leaves_no_trace)
{
	uint8_t before[HEADER_SLOT_BYTES];
	uint8_t *now = header_raw_slot(&m.h, 0);
	unsigned int same = 0;

	memcpy(before, now, sizeof(before));
	cr_assert_eq(header_clear_slot(&m.h, 0), 0);
	cr_assert_eq(unlock_any(OLD_PASSWORD), -EACCES);
	for (size_t i = 2; i < sizeof(before); i++)
		same += before[i] == now[i];
	cr_assert_lt(same, 100);
	cr_assert_eq(now[0] | now[1], 0);
	cr_assert_eq(header_clear_slot(&m.h, HEADER_SLOTS), -EINVAL);
}

Test(slots, impossible_ones_are_refused_and_change_nothing)
{
	const struct kdf_cost slow = { 1u << 30, 8, 1 };
	const struct kdf_cost half = { 1u << 15, 1u << 14, 1 };

	cr_assert_eq(set_slot(HEADER_SLOTS, KEYSLOT_PASSWORD, "x", &cheap),
		     -EINVAL);
	cr_assert_eq(set_slot(0, KEYSLOT_EMPTY, "x", &cheap), -EINVAL);
	cr_assert_eq(set_slot(0, KEYSLOT_TPM2, "x", &cheap), -EINVAL);
	cr_assert_eq(set_slot(0, KEYSLOT_PASSWORD, "", &cheap), -EINVAL);
	cr_assert_eq(set_slot(0, KEYSLOT_PASSWORD, "x", &no_cost), -ERANGE);
	cr_assert_eq(set_slot(0, KEYSLOT_PASSWORD, "x", &slow), -ERANGE);
	cr_assert_eq(set_slot(0, KEYSLOT_EXTERNAL, "15 bytes of it.", &no_cost),
		     -EINVAL);
	cr_assert_eq(unlock_any(OLD_PASSWORD), 0);

	/* Alone it would be in bounds; with the others it is too much. */
	m.h.slot[1] = m.h.slot[2] = m.h.slot[0];
	m.h.slot[1].cost = half;
	cr_assert_eq(set_slot(2, KEYSLOT_PASSWORD, "x", &half), -ERANGE);
}

Test(slots, generated_secret_needs_no_argon2)
{
	cr_assert_eq(
		set_slot(3, KEYSLOT_EXTERNAL, "16 bytes of it..", &no_cost), 0);
	cr_assert_eq(m.h.slot[3].kdf, KDF_HKDF_SHA256);
	cr_assert_eq(unlock_any("16 bytes of it.."), 0);
	cr_assert_eq(unlock_any("16 bytes of it.,"), -EACCES);
}

/* Hostile costs.  All would take years, or more memory than there is. */
Test(slots, hostile_costs_are_never_tried)
{
	static const struct kdf_cost hostile[] = {
		{ 0, 8, 1 },	       { 1, 7, 1 },
		{ 1, 0, 1 },	       { 1, 8, 0 },
		{ 1, 136, 17 },	       { 1, UINT32_MAX, 1 },
		{ UINT32_MAX, 8, 1 },  { 1, (4u << 20) + 1, 4 },
		{ 1, 8, UINT32_MAX },  { UINT32_MAX, UINT32_MAX, UINT32_MAX },
		{ 129, 4u << 20, 16 },
	};

	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		m.h.slot[0].cost = hostile[i];
		cr_assert_eq(unlock_any(OLD_PASSWORD), -ERANGE, "%zu", i);
	}
}

Test(slots, hostile_one_does_not_close_the_others)
{
	cr_assert_eq(set_slot(15, KEYSLOT_PASSWORD, NEW_PASSWORD, &cheap), 0);
	for (unsigned int i = 1; i < 15; i++) {
		m.h.slot[i] = m.h.slot[0];
		/* With slot 0 all that may be tried. */
		m.h.slot[i].cost.memory_kib = (1u << 29) - 8;
	}
	cr_assert_eq(unlock_any(NEW_PASSWORD), 0);
	cr_assert_eq(unlock_any("neither"), -ERANGE);
}

Test(slots, of_later_kinds_are_left_alone)
{
	uint8_t before[HEADER_SLOT_BYTES];
	struct header h;

	m.h.slot[4].kind = KEYSLOT_FIDO2;
	memcpy(before, header_raw_slot(&m.h, 4), sizeof(before));
	write_and_read(&h);
	cr_assert_eq(h.slot[4].kind, KEYSLOT_FIDO2);
	cr_assert_eq(try_password(&h, OLD_PASSWORD), 0);
	cr_assert_eq(try_password(&h, "wrong"), -EACCES);

	h.sequence++;
	must(header_write_copy(&h, &m.keys, m.c, 0));
	cr_assert_arr_eq(header_raw_slot(&h, 4) + 2, before + 2,
			 sizeof(before) - 2);
	header_destroy(&h);
}

Test(slots, kinds_nobody_knows_are_skipped)
{
	m.h.slot[4].kind = 40;
	cr_assert_eq(unlock_any(OLD_PASSWORD), 0);
	cr_assert_eq(unlock_any("wrong"), -EACCES);
}

/* A slot is bound to its place. */
Test(slots, moved_one_does_not_open)
{
	m.h.slot[7] = m.h.slot[0];
	must(header_clear_slot(&m.h, 0));
	cr_assert_eq(unlock_any(OLD_PASSWORD), -EACCES);
}

Test(slots, several_key_ids_have_keys_each)
{
	auto_secret struct secret s = secret_text(OLD_PASSWORD);
	struct header_keys keys;
	struct header h;
	uint8_t out[64], back[64], tag[16];
	struct nonce n;

	m.h.key[0].state = HEADER_KEY_OLD;
	m.h.key[5] = (struct header_key){
		.key_id = 9,
		.state = HEADER_KEY_ACTIVE,
		.scheme = SCHEME_AES_128_XTS,
		.sector_bytes = 512,
	};
	must(header_row_new(&m.h, &m.h.key[5], &m.keys.master, &m.src));
	write_and_read(&h);
	must(header_unlock(&h, &s, &keys, 1));

	cr_assert_eq(keys.nr_sets, 2);
	cr_assert_eq(keys.set[keys.active].key_id, 9);
	cr_assert_eq(keys.set[keys.active].sector_bytes, 512);
	cr_assert_null(keys.set[keys.active].tag);
	cr_assert_not_null(header_key_set(&keys, 1)->tag);
	must(seal_message(keys.set[0].node, &m.src, "", 0, "x", 1, out, &n,
			  tag));
	cr_assert_eq(seal_open(keys.set[1].node, n, "", 0, out, 1, back, tag),
		     -EBADMSG);
	header_keys_destroy(&keys);
	header_destroy(&h);
}

/* A row is bound to what its keys are for. */
Test(slots, row_with_another_meaning_does_not_open)
{
	m.h.key[0].sector_bytes = 512;
	cr_assert_eq(unlock_any(OLD_PASSWORD), -EBADMSG);
	m.h.key[0].sector_bytes = 4096;
	m.h.key[0].integrity = false;
	cr_assert_eq(unlock_any(OLD_PASSWORD), -EBADMSG);
	m.h.key[0].integrity = true;
	m.h.key[0].scheme = SCHEME_AES_256_CBC_ELEPHANT;
	cr_assert_eq(unlock_any(OLD_PASSWORD), -EBADMSG);
	m.h.key[0].scheme = SCHEME_AES_256_XTS;
	cr_assert_eq(unlock_any(OLD_PASSWORD), 0);
}
