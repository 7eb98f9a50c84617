/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>

#include "fs/format.h"
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

TestSuite(super, .init = start_made, .fini = end_made);

static struct super full_super(uint64_t commit)
{
	struct super sb = made_super(commit);

	sb.limit_blocks = 1 << 20;
	sb.compat = 1, sb.ro_compat = 2, sb.incompat = 4;
	sb.anchor = (struct super_anchor){ 8, 77, "the chain's 16 b" };
	sb.nr_log = SUPER_LOG_EXTENTS;
	for (unsigned int i = 0; i < SUPER_LOG_EXTENTS; i++) {
		sb.log[i].first = 5000 + 10 * i;
		sb.log[i].nr = i + 1;
	}
	return sb;
}

static void seal(struct super *sb, uint8_t out[static BLOCK_BYTES])
{
	must(super_seal(sb, m.h.uuid, &m.keys, &m.src, out));
}

static int open_in(const uint8_t in[static BLOCK_BYTES], unsigned int slot)
{
	struct super sb;

	return super_open(&sb, m.h.uuid, &m.keys, slot, in);
}

Test(super, survives_sealing)
{
	struct super sb = full_super(130), got;
	uint8_t bytes[BLOCK_BYTES];

	seal(&sb, bytes);
	cr_assert_eq(super_open(&got, m.h.uuid, &m.keys, 2, bytes), 0);
	cr_assert_eq(got.commit, 130);
	cr_assert_eq(got.root.block, sb.root.block);
	cr_assert_eq(got.root.second, sb.root.second);
	cr_assert_arr_eq(got.root.tag, sb.root.tag, 16);
	cr_assert_eq(got.nr_blocks, sb.nr_blocks);
	cr_assert_eq(got.limit_blocks, 1 << 20);
	cr_assert_eq(got.header_sequence, 1);
	cr_assert(got.compat == 1 && got.ro_compat == 2 && got.incompat == 4);
	cr_assert(got.clean);
	cr_assert_eq(got.anchor.position, 8);
	cr_assert_eq(got.anchor.sequence, 77);
	cr_assert_arr_eq(got.anchor.chain, sb.anchor.chain, 16);
	cr_assert_eq(got.nr_log, SUPER_LOG_EXTENTS);
	cr_assert_eq(got.log[7].first, 5070);
	cr_assert_eq(got.log[7].nr, 8);
	cr_assert_eq(got.nonce.session, sb.nonce.session);
	cr_assert_eq(got.nonce.counter, sb.nonce.counter);
	cr_assert_arr_eq(got.tag, sb.tag, 16);
}

Test(super, nonce_is_new_each_time)
{
	struct super sb = full_super(1);
	uint8_t bytes[BLOCK_BYTES];
	struct nonce first;

	seal(&sb, bytes);
	first = sb.nonce;
	seal(&sb, bytes);
	cr_assert(first.session != sb.nonce.session ||
		  first.counter != sb.nonce.counter);
}

Test(super, no_flipped_bit_gets_through)
{
	struct super sb = full_super(5);
	uint8_t bytes[BLOCK_BYTES];

	seal(&sb, bytes);
	for (size_t bit = 0; bit < BLOCK_BYTES * 8;
	     bit += bit < 1024 ? 1 : 37) {
		int err;

		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		err = open_in(bytes, 5);
		cr_assert(err == -ENOMSG || err == -EUCLEAN || err == -EBADMSG,
			  "bit %zu: %d", bit, err);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	cr_assert_eq(open_in(bytes, 5), 0);
}

Test(super, belongs_to_its_slot_and_container)
{
	struct super sb = full_super(5), got;
	uint8_t bytes[BLOCK_BYTES], other[UUID_BYTES];

	seal(&sb, bytes);
	cr_assert_eq(open_in(bytes, 6), -EUCLEAN);
	memcpy(other, m.h.uuid, sizeof(other));
	other[0] ^= 1;
	cr_assert_eq(super_open(&got, other, &m.keys, 5, bytes), -ENOMSG);
	/* Changed to fit, it is not authentic. */
	memcpy(bytes + 8, other, sizeof(other));
	cr_assert_eq(super_open(&got, other, &m.keys, 5, bytes), -EBADMSG);
}

Test(super, never_written_slot_holds_none)
{
	uint8_t bytes[BLOCK_BYTES] = { 0 };

	cr_assert_eq(open_in(bytes, 0), -ENOMSG);
	cr_assert_eq(random_bytes(bytes, sizeof(bytes)), 0);
	cr_assert_eq(open_in(bytes, 0), -ENOMSG);
}

Test(super, unknown_key_is_not_authentic)
{
	struct super sb = full_super(5);
	uint8_t bytes[BLOCK_BYTES];

	m.keys.set[0].key_id = 2;
	seal(&sb, bytes);
	m.keys.set[0].key_id = 1;
	cr_assert_eq(open_in(bytes, 5), -EBADMSG);
}

/* A mistake of ours would be authentic, too. */
Test(super, out_of_bounds_is_damage)
{
	uint8_t bytes[BLOCK_BYTES];
	struct super sb;

#define EXPECT_DAMAGE(change)                                          \
	do {                                                           \
		sb = full_super(5);                                    \
		change;                                                \
		seal(&sb, bytes);                                      \
		cr_assert_eq(open_in(bytes, sb.commit % 64), -EUCLEAN, \
			     #change);                                 \
	} while (0)

	EXPECT_DAMAGE(sb.commit = 0);
	EXPECT_DAMAGE(sb.header_sequence = 0);
	EXPECT_DAMAGE(sb.nr_blocks = CONTAINER_BLOCKS_MIN - 1);
	EXPECT_DAMAGE(sb.nr_blocks = UINT64_MAX);
	EXPECT_DAMAGE(sb.limit_blocks = UINT64_MAX);
	EXPECT_DAMAGE(sb.root.block = 0);
	EXPECT_DAMAGE(sb.root.block = FIXED_BLOCKS - 1);
	EXPECT_DAMAGE(sb.root.block = HEADER_B_BLOCK - 3);
	EXPECT_DAMAGE(sb.root.block = HEADER_B_BLOCK + FIXED_BLOCKS - 1);
	EXPECT_DAMAGE(sb.root.block = sb.nr_blocks - 3);
	EXPECT_DAMAGE(sb.root.block = UINT64_MAX);
	EXPECT_DAMAGE(sb.root.second = 1);
	EXPECT_DAMAGE(sb.root.birth = 6);
	EXPECT_DAMAGE(sb.root.level = 13);
	EXPECT_DAMAGE(sb.log[3].first = 0);
	EXPECT_DAMAGE(sb.log[3].nr = 0);
	EXPECT_DAMAGE(sb.log[3].nr = UINT64_MAX);
}

/* Bytes with one right form, sealed with another. */
static void reseal(uint8_t bytes[static BLOCK_BYTES], size_t offset,
		   uint8_t value)
{
	struct disk_super *d = (struct disk_super *)bytes;
	struct seal_key *key = m.keys.set[0].super;
	uint8_t body[sizeof(d->sealed)];
	struct nonce n = { le64_get(d->clear.session),
			   le32_get(d->clear.counter) };

	must(seal_open(key, n, d, 32, d->sealed, sizeof(body), body, d->tag));
	body[offset] = value;
	must(seal_message(key, &m.src, d, 32, body, sizeof(body), d->sealed, &n,
			  d->tag));
	d->clear.session = le64_of(n.session);
	d->clear.counter = le32_of(n.counter);
}

Test(super, roots_must_agree_and_the_rest_be_zero)
{
	static const struct {
		size_t offset;
		uint8_t value;
	} wrong[] = {
		{ offsetof(struct disk_super_body, commit), 6 },
		{ offsetof(struct disk_super_body, flags), 3 },
		{ offsetof(struct disk_super_body, nr_log), 7 },
		{ offsetof(struct disk_super_body, nr_log), 9 },
		{ offsetof(struct disk_super_body, nr_log) + 3, 255 },
		{ offsetof(struct disk_super_body, root_again), 1 },
		{ offsetof(struct disk_super_body, zero), 1 },
		{ sizeof(struct disk_super_body) - 1, 1 },
	};
	uint8_t bytes[BLOCK_BYTES];
	struct super sb = full_super(5);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		seal(&sb, bytes);
		reseal(bytes, wrong[i].offset, wrong[i].value);
		cr_assert_eq(open_in(bytes, 5), -EUCLEAN, "%zu", i);
	}
	seal(&sb, bytes);
	reseal(bytes, offsetof(struct disk_super_body, flags), 0);
	cr_assert_eq(open_in(bytes, 5), 0);
}

/* The rings */

static struct super found[RING_SLOTS + 1];
static unsigned int nr_found, unreadable;

static void read_all(unsigned int max)
{
	cr_assert_eq(super_read_all(found, max, &nr_found, &unreadable,
				    m.h.uuid, &m.keys, m.c),
		     0);
}

/* Commits up to @last, as a mount makes them. */
static void commit_until(uint64_t last)
{
	while (m.sb.commit < last) {
		struct super next = m.sb;

		next.commit++;
		must(super_write(&next, &m.sb, m.h.uuid, &m.keys, &m.src, m.c));
		must(container_flush(m.c));
		m.sb = next;
	}
}

Test(super, rings_hold_the_last_64_newest_first)
{
	read_all(RING_SLOTS);
	cr_assert_eq(nr_found, 1);
	cr_assert_eq(found[0].commit, 1);

	commit_until(150);
	read_all(RING_SLOTS + 1);
	cr_assert_eq(nr_found, RING_SLOTS);
	for (unsigned int i = 0; i < nr_found; i++)
		cr_assert_eq(found[i].commit, 150 - i);
	cr_assert_eq(unreadable, 0);

	read_all(3);
	cr_assert_eq(nr_found, 3);
	cr_assert_eq(found[2].commit, 148);
	read_all(1);
	cr_assert_eq(nr_found, 1);
	cr_assert_eq(found[0].commit, 150);
}

Test(super, one_ring_is_enough)
{
	commit_until(10);
	emudev_flip_bit(m.d, RING_A_BLOCK + 10, 3000);
	emudev_spoil(m.d, RING_B_BLOCK + 9);
	read_all(4);
	cr_assert_eq(nr_found, 4);
	cr_assert_eq(found[0].commit, 10);
	cr_assert_eq(found[1].commit, 9);
	cr_assert_eq(unreadable, 2);

	emudev_flip_bit(m.d, RING_B_BLOCK + 10, 3);
	read_all(4);
	cr_assert_eq(found[0].commit, 9);
	/* Without its magic it does not look like one any more. */
	cr_assert_eq(unreadable, 2);
}

Test(super, foreign_one_is_not_taken)
{
	uint8_t bytes[BLOCK_BYTES];
	struct super sb = made_super(30);
	struct made other;

	make_container(&other);
	must(super_seal(&sb, other.h.uuid, &other.keys, &other.src, bytes));
	emudev_poke(m.d, RING_A_BLOCK + 30, 0, bytes, sizeof(bytes));
	read_all(4);
	cr_assert_eq(nr_found, 1);
	cr_assert_eq(unreadable, 1);
	destroy_container(&other);
}

Test(super, write_errors_are_returned)
{
	struct super next = m.sb;

	next.commit++;
	emudev_fail(m.d, EMUDEV_OP_WRITE, 2, 1, -EIO);
	cr_assert_eq(super_write(&next, &m.sb, m.h.uuid, &m.keys, &m.src, m.c),
		     -EIO);
	emudev_fail(m.d, EMUDEV_OP_READ, 1, UINT64_MAX, -EIO);
	cr_assert_eq(super_write(&next, &m.sb, m.h.uuid, &m.keys, &m.src, m.c),
		     -EIO);
}

/* TD12: two writers on one container */

static int commit_as(struct super *last)
{
	struct super next = *last;
	int err;

	next.commit++;
	err = super_write(&next, last, m.h.uuid, &m.keys, &m.src, m.c);
	if (!err)
		*last = next;
	return err;
}

Test(super, TD12_second_writer_is_noticed_by_both)
{
	struct super a = m.sb, b = m.sb;
	uint64_t events;

	cr_assert_eq(commit_as(&a), 0);
	events = emudev_nr_events(m.d);
	cr_assert_eq(commit_as(&b), -ESTALE);
	cr_assert_eq(emudev_nr_events(m.d), events);
	cr_assert_eq(commit_as(&a), 0);
	cr_assert_eq(commit_as(&b), -ESTALE);
}

Test(super, TD12_replaced_superblock_is_noticed)
{
	struct super a, forged;
	uint8_t bytes[BLOCK_BYTES];

	commit_until(5);
	a = m.sb;
	forged = m.sb;
	must(super_seal(&forged, m.h.uuid, &m.keys, &m.src, bytes));
	emudev_poke(m.d, RING_B_BLOCK + 5, 0, bytes, sizeof(bytes));
	cr_assert_eq(commit_as(&a), -ESTALE);

	emudev_poke(m.d, RING_B_BLOCK + 5, 0, "gone", 4);
	cr_assert_eq(commit_as(&a), 0);
	emudev_poke(m.d, RING_A_BLOCK + 6, 0, "gone", 4);
	emudev_poke(m.d, RING_B_BLOCK + 6, 0, "gone", 4);
	cr_assert_eq(commit_as(&a), -ESTALE);
}

Test(super, TD12_writer_that_came_a_whole_ring_further)
{
	struct super a = m.sb;

	commit_until(1 + RING_SLOTS);
	cr_assert_eq(commit_as(&a), -ESTALE);
}

Test(super, damaged_copy_of_the_last_one_is_no_second_writer)
{
	for (unsigned int i = 0; i < 2; i++) {
		block_t ring = i ? RING_B_BLOCK : RING_A_BLOCK;

		emudev_flip_bit(m.d, ring + m.sb.commit, 999);
		cr_assert_eq(commit_as(&m.sb), 0);
		emudev_spoil(m.d, ring + m.sb.commit);
		cr_assert_eq(commit_as(&m.sb), 0);
	}
}

Test(super, cut_anywhere_shows_the_old_or_the_new)
{
	struct super old;

	commit_until(70);
	old = m.sb;
	emudev_rebase(m.d);
	cr_assert_eq(commit_as(&m.sb), 0);
	cr_assert_eq(emudev_nr_events(m.d), 2);

	for (uint64_t cut = 0; cut <= 2; cut++)
		for (uint64_t seed = 0; seed < 200; seed++) {
			auto_emudev struct emudev *d = emudev_image_at(
				m.d, cut, EMUDEV_REORDER_BAD, seed);
			struct container *c = emudev_container(d);
			struct super next;

			must(super_read_all(found, 1, &nr_found, &unreadable,
					    m.h.uuid, &m.keys, c));
			cr_assert_eq(nr_found, 1);
			cr_assert(found[0].commit == old.commit ||
				  found[0].commit == m.sb.commit);
			/* And life goes on from there. */
			next = found[0];
			next.commit++;
			cr_assert_eq(super_write(&next, &found[0], m.h.uuid,
						 &m.keys, &m.src, c),
				     0, "cut %lu seed %lu", (unsigned long)cut,
				     (unsigned long)seed);
		}
}

Test(super, text_shows_what_people_ask_for)
{
	struct super sb = full_super(12);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	super_to_text(&sb, f);
	fclose(f);
	cr_assert(strstr(text, "commit 12 (clean)"));
	cr_assert(strstr(text, "log: blocks 5070 to 5077"));
	free(text);
}
