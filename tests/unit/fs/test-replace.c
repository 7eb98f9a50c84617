/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Replacing the header: at each instant the old or the new secret opens, and
 * an older header put back is seen.
 */
#include <criterion/criterion.h>

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

TestSuite(replace, .init = start_made, .fini = end_made);

static void change_password(void)
{
	auto_secret struct secret s = secret_text(NEW_PASSWORD);

	must(header_set_slot(&m.h, &m.keys, 0, KEYSLOT_PASSWORD, &s, &cheap,
			     &m.src));
}

static int replace(struct emudev *d)
{
	return super_replace_header(&m.h, &m.keys, &m.src, emudev_container(d));
}

/* What a mount sees. */
struct seen {
	struct header h;
	int old, new; /* what trying the passwords returned */
	struct super sb;
	unsigned int nr;
};

static void look(struct emudev *d, struct seen *s)
{
	struct container *c = emudev_container(d);
	unsigned int unreadable;

	must(header_read(&s->h, c));
	s->old = try_password(&s->h, OLD_PASSWORD);
	s->new = try_password(&s->h, NEW_PASSWORD);
	must(super_read_all(&s->sb, 1, &s->nr, &unreadable, s->h.uuid, &m.keys,
			    c));
	header_destroy(&s->h);
}

Test(replace, only_the_new_secret_opens)
{
	struct seen s;

	change_password();
	cr_assert_eq(replace(m.d), 0);
	cr_assert_eq(m.h.sequence, 2);
	look(m.d, &s);
	cr_assert_eq(s.old, -EACCES);
	cr_assert_eq(s.new, 0);
	cr_assert_eq(s.sb.header_sequence, 2);
	cr_assert_eq(s.sb.commit, 2);
	cr_assert_eq(s.sb.root.block, m.sb.root.block);
	cr_assert(s.sb.clean);

	/* In either copy alone, too. */
	for (unsigned int copy = 0; copy < 2; copy++) {
		auto_emudev struct emudev *d = emudev_clone(m.d);

		emudev_spoil(d, copy ? HEADER_B_BLOCK : HEADER_A_BLOCK);
		look(d, &s);
		cr_assert_eq(s.old, -EACCES);
		cr_assert_eq(s.new, 0);
	}
}

/*
 * What must hold of any disk that a crash during the change left: either
 * password opens (one of them), the superblock is there, and it never says
 * more than the header it would be compared with.
 */
static void expect_sound(struct emudev *d, uint64_t cut, uint64_t seed)
{
	struct seen s;

	look(d, &s);
	cr_assert((s.old == 0) != (s.new == 0), "cut %lu seed %lu",
		  (unsigned long)cut, (unsigned long)seed);
	cr_assert_eq(s.nr, 1);
	cr_assert_leq(s.sb.header_sequence, s.new ? 1 : 2, "cut %lu seed %lu",
		      (unsigned long)cut, (unsigned long)seed);
}

Test(replace, cut_after_any_event_leaves_one_secret, .timeout = 100)
{
	uint64_t nr;

	change_password();
	cr_assert_eq(replace(m.d), 0);
	nr = emudev_nr_events(m.d);
	cr_assert_eq(nr, 2 * HEADER_BLOCKS + 2 + 3);

	for (uint64_t cut = 0; cut <= nr; cut++)
		for (int policy = EMUDEV_KEEP; policy <= EMUDEV_REORDER_BAD;
		     policy++) {
			auto_emudev struct emudev *d = emudev_image_at(
				m.d, cut, (enum emudev_policy)policy, cut);

			expect_sound(d, cut, (uint64_t)policy);
		}
}

Test(replace, reordered_at_each_flush_leaves_one_secret, .timeout = 100)
{
	change_password();
	cr_assert_eq(replace(m.d), 0);

	for (uint64_t cut = 0; cut < emudev_nr_events(m.d); cut++) {
		if (emudev_event_at(m.d, cut).type != EMUDEV_FLUSH)
			continue;
		for (uint64_t seed = 0; seed < 100; seed++) {
			auto_emudev struct emudev *d = emudev_image_at(
				m.d, cut, EMUDEV_REORDER_BAD, seed);

			expect_sound(d, cut, seed);
		}
	}
}

/* After any cut the change can be made again, from what is there. */
Test(replace, cut_change_can_be_made_again, .timeout = 100)
{
	uint64_t nr;

	change_password();
	cr_assert_eq(replace(m.d), 0);
	nr = emudev_nr_events(m.d);

	for (uint64_t cut = 0; cut <= nr; cut += 5) {
		auto_emudev struct emudev *d = emudev_image_at(
			m.d, cut, EMUDEV_REORDER_BAD, cut + 1000);
		auto_secret struct secret s = secret_text("third");
		struct container *c = emudev_container(d);
		struct header h;

		must(header_read(&h, c));
		must(header_set_slot(&h, &m.keys, 0, KEYSLOT_PASSWORD, &s,
				     &cheap, &m.src));
		cr_assert_eq(super_replace_header(&h, &m.keys, &m.src, c), 0);
		header_destroy(&h);

		must(header_read(&h, c));
		cr_assert(header_copies_agree(&h));
		cr_assert_eq(try_password(&h, "third"), 0);
		cr_assert_eq(try_password(&h, OLD_PASSWORD), -EACCES);
		cr_assert_eq(try_password(&h, NEW_PASSWORD), -EACCES);
		header_destroy(&h);
	}
}

Test(replace, damaged_copy_is_written_first)
{
	struct header h;

	for (unsigned int copy = 0; copy < 2; copy++) {
		block_t at = copy ? HEADER_B_BLOCK : HEADER_A_BLOCK;

		emudev_flip_bit(m.d, at + 1, 1);
		must(header_read(&h, m.c));
		must(super_replace_header(&h, &m.keys, &m.src, m.c));
		cr_assert_eq(emudev_event_at(m.d, 0).block, at);
		header_destroy(&h);
	}
}

Test(replace, older_copy_is_written_first)
{
	struct header h;

	for (unsigned int copy = 0; copy < 2; copy++) {
		m.h.sequence++;
		must(header_write_copy(&m.h, &m.keys, m.c, copy));
		emudev_rebase(m.d);
		must(header_read(&h, m.c));
		must(super_replace_header(&h, &m.keys, &m.src, m.c));
		cr_assert_eq(emudev_event_at(m.d, 0).block,
			     copy ? HEADER_A_BLOCK : HEADER_B_BLOCK);
		m.h.sequence = h.sequence;
		header_destroy(&h);
	}
}

Test(replace, error_at_any_call_leaves_one_secret)
{
	change_password();
	for (enum emudev_op op = EMUDEV_OP_WRITE; op <= EMUDEV_OP_FLUSH; op++)
		for (uint64_t nth = 1; nth <= (op == EMUDEV_OP_WRITE ? 4 : 3);
		     nth++) {
			auto_emudev struct emudev *d = emudev_clone(m.d);

			emudev_fail(d, op, nth, 1, -EIO);
			m.h.sequence = 1;
			m.h.copy_sequence[0] = m.h.copy_sequence[1] = 1;
			m.h.copy_ok[0] = m.h.copy_ok[1] = true;
			cr_assert_eq(replace(d), -EIO);
			expect_sound(d, nth, op);
			/* The same call again finishes the change. */
			cr_assert_eq(replace(d), 0);
		}
}

Test(replace, without_a_superblock_nothing_is_written)
{
	uint64_t events;

	emudev_poke(m.d, RING_A_BLOCK + 1, 0, "gone", 4);
	emudev_poke(m.d, RING_B_BLOCK + 1, 0, "gone", 4);
	events = emudev_nr_events(m.d);
	cr_assert_eq(replace(m.d), -EUCLEAN);
	cr_assert_eq(emudev_nr_events(m.d), events);
	cr_assert_eq(m.h.sequence, 1);
}

/* Who keeps a header from before the change can put it back, not unseen. */
Test(replace, older_header_put_back_is_seen_by_sequence)
{
	uint8_t *old = malloc(HEADER_BLOCKS * BLOCK_BYTES);
	struct seen s;
	struct header h;

	must(container_read(m.c, HEADER_A_BLOCK, HEADER_BLOCKS, old));
	change_password();
	cr_assert_eq(replace(m.d), 0);
	must(container_write(m.c, HEADER_A_BLOCK, HEADER_BLOCKS, old));

	/* One copy alone does not count. */
	look(m.d, &s);
	cr_assert_eq(s.new, 0);

	must(container_write(m.c, HEADER_B_BLOCK, HEADER_BLOCKS, old));
	look(m.d, &s);
	cr_assert_eq(s.old, 0);
	must(header_read(&h, m.c));
	cr_assert_lt(h.sequence, s.sb.header_sequence);

	/* A change from there is above both. */
	cr_assert_eq(super_replace_header(&h, &m.keys, &m.src, m.c), 0);
	cr_assert_eq(h.sequence, 3);
	header_destroy(&h);
	free(old);
}
