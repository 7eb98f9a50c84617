/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reading headers: whole ones, damaged ones, forged ones.
 */
#include <criterion/criterion.h>

#include "fs/container.h"
#include "fs/format.h"
#include "fs/header_format.h"
#include "support.h"

static struct made m;

static void start_made(void)
{
	make_container(&m);
}

static void end_made(void)
{
	destroy_container(&m);
}

TestSuite(header, .init = start_made, .fini = end_made);

static const block_t copy_at[2] = { HEADER_A_BLOCK, HEADER_B_BLOCK };

/* Whole headers */

Test(header, says_what_was_asked_for)
{
	struct header h;

	cr_assert_eq(header_read(&h, m.c), 0);
	cr_assert_eq(h.format_version, FORMAT_VERSION);
	cr_assert_arr_eq(h.uuid, m.h.uuid, UUID_BYTES);
	cr_assert_str_eq(h.label, "the label");
	cr_assert_eq(h.sequence, 1);
	cr_assert_eq(h.node_log2, 14);
	cr_assert_eq(h.key[0].key_id, 1);
	cr_assert_eq(h.key[0].scheme, SCHEME_AES_256_XTS);
	cr_assert_eq(h.key[0].sector_bytes, 4096);
	cr_assert(h.key[0].integrity);
	cr_assert_eq(h.key[1].key_id, 0);
	cr_assert_eq(h.slot[0].kind, KEYSLOT_PASSWORD);
	cr_assert_eq(h.slot[0].cost.memory_kib, 8);
	cr_assert_eq(h.slot[1].kind, KEYSLOT_EMPTY);
	cr_assert(h.copy_ok[0] && h.copy_ok[1]);
	cr_assert(header_copies_agree(&h));
	header_destroy(&h);
}

Test(header, copies_are_the_same_bytes)
{
	uint8_t a[BLOCK_BYTES], b[BLOCK_BYTES];

	for (block_t i = 0; i < HEADER_BLOCKS; i++) {
		emudev_peek(m.d, HEADER_A_BLOCK + i, a);
		emudev_peek(m.d, HEADER_B_BLOCK + i, b);
		cr_assert_arr_eq(a, b, BLOCK_BYTES);
	}
}

/* TC3: an area of zeros would show how much of it is used. */
Test(header, unused_bytes_are_random)
{
	unsigned int zero_runs = 0;

	for (size_t i = 512; i < HEADER_AREA_BYTES; i += 16) {
		static const uint8_t zeros[16];

		if (i >= HEADER_KEY_TABLE && i < HEADER_KEY_TABLE + 2048)
			continue;
		zero_runs += memcmp(m.h.raw + i, zeros, 16) == 0;
	}
	cr_assert_eq(zero_runs, 0);
}

/* Sealed with the keys of one unlocking, opened with those of another. */
static void expect_same_keys(const struct key_set *a, const struct key_set *b)
{
	uint8_t in[BLOCK_BYTES] = "content", out[BLOCK_BYTES];
	uint8_t back[BLOCK_BYTES], tag[16];
	uint8_t tweak[TWEAK_BYTES] = { 1 };
	struct nonce n;

	cr_assert_eq(a->key_id, b->key_id);
	cr_assert_eq(a->scheme, b->scheme);
	cr_assert_eq(a->sector_bytes, b->sector_bytes);
	cr_assert_eq(
		seal_message(a->node, &m.src, "a", 1, in, 64, out, &n, tag), 0);
	cr_assert_eq(seal_open(b->node, n, "a", 1, out, 64, back, tag), 0);
	cr_assert_eq(seal_open(b->super, n, "a", 1, out, 64, back, tag),
		     -EBADMSG);
	cr_assert_eq(seal_message(a->super, &m.src, "a", 1, in, 64, out, &n,
				  tag),
		     0);
	cr_assert_eq(seal_open(b->super, n, "a", 1, out, 64, back, tag), 0);

	cr_assert_eq(scheme_encrypt(a->data, tweak,
				    BLOCK_BYTES / a->sector_bytes, in, out),
		     0);
	cr_assert_eq(scheme_decrypt(b->data, tweak,
				    BLOCK_BYTES / a->sector_bytes, out, back),
		     0);
	cr_assert_arr_eq(in, back, BLOCK_BYTES);

	cr_assert_eq(hint_encrypt(a->salvage, tweak, in, out), 0);
	cr_assert_eq(hint_decrypt(b->salvage, tweak, out, back), 0);
	cr_assert_arr_eq(in, back, HINT_BYTES);

	cr_assert_eq(a->integrity, b->integrity);
	if (!a->integrity) {
		cr_assert(!a->tag && !b->tag);
		return;
	}
	cr_assert_eq(tag_compute(a->tag, n, in, sizeof(in), tag), 0);
	cr_assert_eq(tag_verify(b->tag, n, in, sizeof(in), tag), 0);
}

Test(header, every_scheme_gives_the_same_keys_again)
{
	auto_secret struct secret s = secret_text("secret");
	const struct scheme *scheme;

	for (size_t i = 0; (scheme = scheme_at(i)); i++) {
		struct header_params p = made_params();
		struct header_keys keys, again;
		struct header h, read;

		p.scheme = scheme;
		p.integrity = i % 2;
		p.sector_bytes = i % 3 ? 4096 : 512;
		p.node_log2 = 14 + i % 3;
		must(header_new(&h, &keys, &p, &s, &m.src, 2));
		must(header_write_copy(&h, &keys, m.c, 0));
		must(header_write_copy(&h, &keys, m.c, 1));
		must(header_read(&read, m.c));
		must(header_unlock(&read, &s, &again, 2));
		cr_assert_eq(read.node_log2, h.node_log2);
		cr_assert_eq(again.nr_sets, 1);
		cr_assert_eq(again.active, 0);
		expect_same_keys(&keys.set[0], &again.set[0]);
		cr_assert_eq(header_key_set(&again, 1), &again.set[0]);
		cr_assert_null(header_key_set(&again, 2));
		header_keys_destroy(&keys);
		header_keys_destroy(&again);
		header_destroy(&h);
		header_destroy(&read);
	}
}

Test(header, wrong_parameters_are_refused)
{
	auto_secret struct secret s = secret_text("secret");
	struct header_params p;
	struct header_keys keys;
	struct header h;
	char label[LABEL_BYTES_MAX + 2];

	memset(label, 'a', sizeof(label));
	label[LABEL_BYTES_MAX + 1] = 0;
	p = made_params(), p.label = label;
	cr_assert_eq(header_new(&h, &keys, &p, &s, &m.src, 1), -EINVAL);
	p = made_params(), p.label = "red\x1b[31m";
	cr_assert_eq(header_new(&h, &keys, &p, &s, &m.src, 1), -EINVAL);
	p = made_params(), p.label = "c1 \xc2\x9b";
	cr_assert_eq(header_new(&h, &keys, &p, &s, &m.src, 1), -EINVAL);
	p = made_params(), p.sector_bytes = 1024;
	cr_assert_eq(header_new(&h, &keys, &p, &s, &m.src, 1), -EINVAL);
	p = made_params(), p.node_log2 = 13;
	cr_assert_eq(header_new(&h, &keys, &p, &s, &m.src, 1), -EINVAL);
	p = made_params(), p.cost.lanes = 17;
	cr_assert_eq(header_new(&h, &keys, &p, &s, &m.src, 1), -ERANGE);
	cr_assert_null(h.raw);
	cr_assert_eq(keys.nr_sets, 0);

	label[LABEL_BYTES_MAX] = 0;
	p = made_params(), p.label = label;
	cr_assert_eq(header_new(&h, &keys, &p, &s, &m.src, 1), 0);
	cr_assert_str_eq(h.label, label);
	header_keys_destroy(&keys);
	header_destroy(&h);
}

Test(header, uuid_is_written_as_usual)
{
	static const uint8_t uuid[UUID_BYTES] = {
		0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
		0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
	};
	char text[37];

	uuid_format(uuid, text);
	cr_assert_str_eq(text, "00112233-4455-6677-8899-aabbccddeeff");
	uuid_format(m.h.uuid, text);
	cr_assert_eq(text[14], '4');
}

Test(header, text_shows_what_people_ask_for)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	header_to_text(&m.h, f);
	fclose(f);
	cr_assert(strstr(text, "\"the label\""));
	cr_assert(strstr(text, "key 1: active, aes-256-xts"));
	cr_assert(strstr(text, "slot 0: password"));
	cr_assert_null(strstr(text, "slot 1"));
	free(text);
}

/* Damage */

static int read_error(struct emudev *d)
{
	struct header h;
	int err = header_read(&h, emudev_container(d));

	header_destroy(&h);
	return err;
}

/* Reads and unlocks; the first error of the two. */
static int open_error(struct emudev *d)
{
	struct header h;
	int err = header_read(&h, emudev_container(d));

	if (!err)
		err = try_password(&h, OLD_PASSWORD);
	header_destroy(&h);
	return err;
}

Test(header, zeros_are_no_container)
{
	auto_emudev struct emudev *d = emudev_new(DISK_BYTES, DISK_BYTES);

	cr_assert_eq(read_error(d), -ENOMSG);
}

Test(header, what_is_too_small_is_no_container)
{
	auto_emudev struct emudev *a = emudev_new(0, DISK_BYTES);
	auto_emudev struct emudev *b = emudev_new(BLOCK_BYTES, DISK_BYTES);

	cr_assert_eq(read_error(a), -ENOMSG);
	cr_assert_eq(read_error(b), -ENOMSG);
}

Test(header, one_unreadable_copy_does_not_matter)
{
	for (unsigned int copy = 0; copy < 2; copy++) {
		auto_emudev struct emudev *d = emudev_clone(m.d);
		struct header h;

		emudev_spoil(d, copy_at[copy] + 20);
		cr_assert_eq(header_read(&h, emudev_container(d)), 0);
		cr_assert_eq(h.copy_ok[copy], false);
		cr_assert_eq(h.copy_ok[!copy], true);
		cr_assert_not(header_copies_agree(&h));
		cr_assert_eq(try_password(&h, OLD_PASSWORD), 0);
		header_destroy(&h);
	}
}

Test(header, two_unreadable_copies_are_an_io_error)
{
	emudev_spoil(m.d, HEADER_A_BLOCK);
	emudev_spoil(m.d, HEADER_B_BLOCK);
	cr_assert_eq(read_error(m.d), -EIO);
}

Test(header, two_damaged_copies_are_damage)
{
	emudev_flip_bit(m.d, HEADER_A_BLOCK + 30, 77);
	emudev_flip_bit(m.d, HEADER_B_BLOCK + 3, 1);
	cr_assert_eq(read_error(m.d), -EUCLEAN);
	/* Even where one does not look like a container any more. */
	emudev_flip_bit(m.d, HEADER_A_BLOCK, 0);
	cr_assert_eq(read_error(m.d), -EUCLEAN);
	emudev_flip_bit(m.d, HEADER_B_BLOCK, 0);
	cr_assert_eq(read_error(m.d), -ENOMSG);
}

/*
 * Bits to flip: many of what has a meaning (all bits of a byte come in turn,
 * @step being odd), and some of the rest.
 */
static size_t next_bit(size_t bit, size_t step)
{
	size_t byte = bit / 8 % HEADER_SLOT_BYTES;
	bool meaning = bit / 8 < 512 ||
		       (bit / 8 >= HEADER_KEY_TABLE &&
			bit / 8 < HEADER_KEY_TABLE + 256) ||
		       (bit / 8 >= HEADER_SLOT_TABLE &&
			bit / 8 < HEADER_SLOT_TABLE + 2 * HEADER_SLOT_BYTES &&
			byte < 160);

	return bit + (meaning ? step : 4093);
}

Test(header, any_flipped_bit_is_found_and_made_good, .timeout = 60)
{
	for (size_t bit = 0; bit < HEADER_AREA_BYTES * 8;
	     bit = next_bit(bit, 5)) {
		block_t block = bit / 8 / BLOCK_BYTES;
		unsigned int copy = bit % 2;
		struct header h;

		emudev_flip_bit(m.d, copy_at[copy] + block,
				bit % (BLOCK_BYTES * 8));
		cr_assert_eq(header_read(&h, m.c), 0, "bit %zu", bit);
		cr_assert_eq(h.copy_ok[copy], false, "bit %zu", bit);
		cr_assert_eq(h.sequence, 1);
		header_destroy(&h);
		emudev_flip_bit(m.d, copy_at[copy] + block,
				bit % (BLOCK_BYTES * 8));
	}
	cr_assert_eq(open_error(m.d), 0);
}

/* Forgery: whoever changes the header can make the checksum anew. */

/* Write m.h.raw, with a right checksum, to both copies. */
static void put_forged(void)
{
	header_set_checksum(&m.h);
	must(container_write(m.c, HEADER_A_BLOCK, HEADER_BLOCKS, m.h.raw));
	must(container_write(m.c, HEADER_B_BLOCK, HEADER_BLOCKS, m.h.raw));
}

Test(header, no_forged_bit_gets_through, .timeout = 110)
{
	struct disk_header *d = (struct disk_header *)m.h.raw;
	size_t checksum = offsetof(struct disk_header, checksum);

	for (size_t bit = 0; bit < HEADER_AREA_BYTES * 8;
	     bit = next_bit(bit, 7)) {
		int err;

		if (bit / 8 >= checksum && bit / 8 < checksum + 32)
			continue;
		m.h.raw[bit / 8] ^= (uint8_t)(1u << bit % 8);
		put_forged();
		err = open_error(m.d);
		cr_assert(err == -ENOMSG || err == -EUCLEAN ||
				  err == -EOPNOTSUPP || err == -EBADMSG ||
				  err == -EACCES || err == -ERANGE,
			  "bit %zu: %d", bit, err);
		m.h.raw[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	cr_assert_eq(d->magic[1], 'T');
	put_forged();
	cr_assert_eq(open_error(m.d), 0);
}

static struct disk_header *forge(void)
{
	return (struct disk_header *)m.h.raw;
}

Test(header, changed_unknown_bytes_are_not_authentic)
{
	m.h.raw[3 * BLOCK_BYTES + 5] ^= 1;
	put_forged();
	cr_assert_eq(open_error(m.d), -EBADMSG);
}

Test(header, other_uuid_opens_nothing)
{
	forge()->uuid[3] ^= 1;
	put_forged();
	cr_assert_eq(open_error(m.d), -EACCES);
}

Test(header, later_version_is_told_from_damage)
{
	struct header h;

	forge()->format_version = le32_of(FORMAT_VERSION + 1);
	put_forged();
	cr_assert_eq(header_read(&h, m.c), -EOPNOTSUPP);
	cr_assert_eq(h.format_version, FORMAT_VERSION + 1);
	header_destroy(&h);
}

Test(header, unknown_incompatible_feature_is_refused)
{
	struct header h;

	forge()->incompat = le64_of(1ull << 63);
	put_forged();
	cr_assert_eq(header_read(&h, m.c), -EOPNOTSUPP);
	cr_assert_eq(h.incompat, 1ull << 63);
	header_destroy(&h);
}

Test(header, other_unknown_features_are_the_callers_choice)
{
	m.h.compat = 1;
	m.h.ro_compat = 1ull << 40;
	must(header_write_copy(&m.h, &m.keys, m.c, 0));
	must(header_write_copy(&m.h, &m.keys, m.c, 1));
	cr_assert_eq(open_error(m.d), 0);
}

Test(header, unknown_scheme_is_unsupported)
{
	struct disk_key_row *row = (void *)(m.h.raw + HEADER_KEY_TABLE);

	row->scheme = le16_of(999);
	put_forged();
	cr_assert_eq(read_error(m.d), -EOPNOTSUPP);
}

/* Each field that has bounds, outside them. */
Test(header, fields_out_of_bounds_are_damage)
{
	struct disk_key_row *row = (void *)(m.h.raw + HEADER_KEY_TABLE);
	uint8_t *saved = malloc(HEADER_AREA_BYTES);

	memcpy(saved, m.h.raw, HEADER_AREA_BYTES);
#define EXPECT_DAMAGE(change)                                     \
	do {                                                      \
		change;                                           \
		put_forged();                                     \
		cr_assert_eq(read_error(m.d), -EUCLEAN, #change); \
		memcpy(m.h.raw, saved, HEADER_AREA_BYTES);        \
	} while (0)

	EXPECT_DAMAGE(forge()->area_bytes = le32_of(4096));
	EXPECT_DAMAGE(forge()->node_log2 = 13);
	EXPECT_DAMAGE(forge()->node_log2 = 255);
	EXPECT_DAMAGE(forge()->sequence = le64_of(0));
	EXPECT_DAMAGE(memset(forge()->label, 'x', 64));
	EXPECT_DAMAGE(forge()->label[63] = 'x');
	EXPECT_DAMAGE(forge()->label[2] = '\r');
	EXPECT_DAMAGE(forge()->zero1[62] = 1);
	EXPECT_DAMAGE(forge()->zero2[0] = 1);
	EXPECT_DAMAGE(row[0].state = le16_of(3));
	EXPECT_DAMAGE(row[0].state = le16_of(HEADER_KEY_OLD));
	EXPECT_DAMAGE(row[0].sector_bytes = le32_of(0));
	EXPECT_DAMAGE(row[0].integrity = 2);
	EXPECT_DAMAGE(row[0].session = le64_of(UINT64_MAX));
	EXPECT_DAMAGE(row[0].zero2[23] = 1);
	EXPECT_DAMAGE(row[0].key_id = le16_of(0));
	EXPECT_DAMAGE(memset(&row[0], 0, sizeof(*row)));
	EXPECT_DAMAGE(row[15].zero2[0] = 1);
	EXPECT_DAMAGE(row[1] = row[0]);
	EXPECT_DAMAGE(row[1] = row[0]; row[1].key_id = le16_of(2));
	free(saved);
}

/* Which copy counts */

Test(header, newer_copy_counts)
{
	struct header h;

	for (unsigned int copy = 0; copy < 2; copy++) {
		m.h.sequence++;
		must(header_write_copy(&m.h, &m.keys, m.c, copy));
		cr_assert_eq(header_read(&h, m.c), 0);
		cr_assert_eq(h.sequence, m.h.sequence);
		cr_assert_eq(h.copy_sequence[copy], m.h.sequence);
		cr_assert_eq(h.copy_sequence[!copy], m.h.sequence - 1);
		cr_assert_not(header_copies_agree(&h));
		header_destroy(&h);
	}
}

Test(header, repair_makes_both_copies_good)
{
	struct header h;

	for (unsigned int copy = 0; copy < 2; copy++) {
		emudev_flip_bit(m.d, copy_at[copy] + 60, 4);
		must(header_read(&h, m.c));
		cr_assert_not(header_copies_agree(&h));
		cr_assert_eq(header_repair(&h, &m.keys, m.c), 0);
		cr_assert(header_copies_agree(&h));
		header_destroy(&h);

		must(header_read(&h, m.c));
		cr_assert(header_copies_agree(&h));
		cr_assert_eq(h.sequence, 1);
		header_destroy(&h);
	}
	cr_assert_eq(open_error(m.d), 0);
}

Test(header, repair_reports_errors)
{
	struct header h;

	emudev_flip_bit(m.d, HEADER_A_BLOCK, 4);
	must(header_read(&h, m.c));
	emudev_fail(m.d, EMUDEV_OP_WRITE, 1, 1, -EIO);
	cr_assert_eq(header_repair(&h, &m.keys, m.c), -EIO);
	emudev_fail(m.d, EMUDEV_OP_FLUSH, 1, 1, -EIO);
	cr_assert_eq(header_repair(&h, &m.keys, m.c), -EIO);
	header_destroy(&h);
}
