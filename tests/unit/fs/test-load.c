/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opening: which commit is taken, and what is said of the others.
 */
#include "unitvol.h"

#include "fs/container.h"

static struct unitvol t;

static void start_load(void)
{
	unitvol_start(&t, 4, true);
}

static void end_load(void)
{
	unitvol_end(&t);
}

TestSuite(load, .init = start_load, .fini = end_load, .timeout = 60);

static bool is_there(const char *name)
{
	struct attr a;
	int err = volume_lookup(t.v, VOLUME_ROOT, name, &a);

	cr_assert(!err || err == -ENOENT);
	return !err;
}

/* Two commits, and the blocks that only the second has written. */
static unsigned int two_commits(block_t *written, unsigned int room)
{
	unsigned int nr = 0;
	char name[16];

	for (unsigned int i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "old%u", i);
		unitvol_write(&t, unitvol_file(&t, name), 0, 1, 1);
	}
	unitvol_sync(&t);
	emudev_rebase(t.d);
	unitvol_write(&t, unitvol_file(&t, "new"), 0, 1, 2);
	unitvol_unlink(&t, "old7");
	unitvol_sync(&t);
	for (uint64_t i = 0; i < emudev_nr_events(t.d); i++) {
		struct emudev_event e = emudev_event_at(t.d, i);

		/* Nodes are of four blocks, data is of one. */
		if (e.type == EMUDEV_FLUSH)
			break;
		cr_assert_lt(nr, room);
		written[nr++] = e.block;
	}
	return nr;
}

static int try_open(void)
{
	t.said[0] = '\0';
	return volume_open(&t.v, emudev_container(t.d), &t.h, &t.keys, &t.o);
}

/* The disk had not written what it said it had. */
Test(load, TD9_lost_node_of_the_newest_commit)
{
	block_t written[200];
	unsigned int nr = two_commits(written, 200), back = 0;
	struct emudev *before = t.d;
	static const uint8_t zeros[BLOCK_BYTES];

	unitvol_abandon(&t);
	for (unsigned int i = 0; i < nr; i++) {
		t.d = emudev_clone(before);
		emudev_poke(t.d, written[i], 0, zeros, sizeof(zeros));
		cr_assert_eq(try_open(), 0, "block %lu", written[i]);
		if (unitvol_said(&t, "going back to the one before")) {
			back++;
			cr_assert(is_there("old7"));
			cr_assert(!is_there("new"));
		} else {
			cr_assert(is_there("new"));
			cr_assert(!is_there("old7"));
		}
		/* It goes on from there, above all numbers there were. */
		unitvol_file(&t, "more");
		unitvol_close(&t);
		if (back)
			unitvol_must_be_clean(&t);
		unitvol_open(&t);
		cr_assert(is_there("more"));
		unitvol_abandon(&t);
		emudev_free(t.d);
	}
	/* All blocks but the one of data. */
	cr_assert_eq(back, nr - 1);
	t.d = before;
}

/* What a header change copies is no more complete than it was before. */
Test(load, TD9_a_header_change_does_not_hide_the_commit_before)
{
	block_t written[200];
	unsigned int nr = two_commits(written, 200);
	static const uint8_t zeros[BLOCK_BYTES];
	struct nonce_source src;

	cr_assert_gt(nr, 1);
	unitvol_abandon(&t);
	cr_assert_eq(nonce_source_init(&src), 0);
	/* The last thing written before the flush is the volume tree's root. */
	emudev_poke(t.d, written[nr - 1], 0, zeros, sizeof(zeros));
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(super_replace_header(&t.h, &t.keys, &src,
						  emudev_container(t.d)),
			     0);
	nonce_source_destroy(&src);
	cr_assert_eq(try_open(), 0);
	cr_assert(unitvol_said(&t, "going back to the one before"));
	cr_assert(is_there("old7"));
	cr_assert(!is_there("new"));
}

/* A commit made from one that was gone back to, and incomplete as well. */
Test(load, TD9_going_back_past_a_commit_that_was_skipped)
{
	block_t written[200];
	unsigned int nr = two_commits(written, 200);
	static const uint8_t zeros[BLOCK_BYTES];

	cr_assert_gt(nr, 1);
	unitvol_abandon(&t);
	emudev_poke(t.d, written[nr - 1], 0, zeros, sizeof(zeros));
	cr_assert_eq(try_open(), 0);
	unitvol_file(&t, "more");
	unitvol_sync(&t);
	emudev_poke(t.d, t.v->super.root.block, 0, zeros, sizeof(zeros));
	unitvol_abandon(&t);
	cr_assert_eq(try_open(), 0);
	cr_assert(is_there("old7"));
	cr_assert(!is_there("more"));
}

Test(load, TD9_both_newest_commits_lost_is_damage)
{
	block_t written[200];
	unsigned int nr = two_commits(written, 200);
	static const uint8_t zeros[BLOCK_BYTES];

	for (unsigned int i = 0; i < nr; i++)
		emudev_poke(t.d, written[i], 0, zeros, sizeof(zeros));
	emudev_rebase(t.d);
	/* Of the one before too: its root is the oldest thing it needs. */
	unitvol_abandon(&t);
	unitvol_open(&t);
	emudev_poke(t.d, t.v->super.root.block, 0, zeros, sizeof(zeros));
	unitvol_abandon(&t);
	cr_assert_eq(try_open(), -EBADMSG);
	cr_assert_eq(t.v, NULL);
}

Test(load, clean_end_needs_no_walk)
{
	uint64_t calls, walked;

	for (unsigned int i = 0; i < 60; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		unitvol_file(&t, name);
	}
	unitvol_sync(&t);
	calls = emudev_nr_calls(t.d, EMUDEV_OP_READ);
	unitvol_reopen(&t);
	walked = emudev_nr_calls(t.d, EMUDEV_OP_READ) - calls;
	unitvol_file(&t, "one more");
	unitvol_close(&t);
	calls = emudev_nr_calls(t.d, EMUDEV_OP_READ);
	unitvol_open(&t);
	calls = emudev_nr_calls(t.d, EMUDEV_OP_READ) - calls;
	cr_assert_lt(calls + 10, walked);
}

Test(load, container_cut_short_is_damage)
{
	struct emudev *whole, *cut;
	uint8_t block[BLOCK_BYTES];

	must(txn_grow_container(t.v, t.v->space.nr_blocks));
	unitvol_file(&t, "file");
	unitvol_close(&t);
	whole = t.d;
	cut = emudev_new(DISK_BYTES, DISK_BYTES);
	for (block_t b = 0; b < DISK_BYTES / BLOCK_BYTES; b++) {
		emudev_peek(whole, b, block);
		emudev_poke(cut, b, 0, block, sizeof(block));
	}
	emudev_rebase(cut);
	t.d = cut;
	cr_assert_eq(try_open(), -EUCLEAN);
	cr_assert(unitvol_said(&t, "cut short"), "%s", t.said);
	/* Nothing was written to it. */
	cr_assert_eq(emudev_nr_events(cut), 1, "the flush on opening");
	emudev_free(cut);
	t.d = whole;
	unitvol_open(&t);
}

Test(load, no_superblock)
{
	static const uint8_t zeros[BLOCK_BYTES];

	unitvol_close(&t);
	for (block_t b = 0; b < RING_SLOTS; b++) {
		emudev_poke(t.d, RING_A_BLOCK + b, 0, zeros, BLOCK_BYTES);
		emudev_poke(t.d, RING_B_BLOCK + b, 0, zeros, BLOCK_BYTES);
	}
	cr_assert_eq(try_open(), -EUCLEAN);
}

Test(load, no_authentic_superblock)
{
	unitvol_close(&t);
	for (block_t b = 0; b < RING_SLOTS; b++) {
		emudev_flip_bit(t.d, RING_A_BLOCK + b, 8 * 300);
		emudev_flip_bit(t.d, RING_B_BLOCK + b, 8 * 300);
	}
	cr_assert_eq(try_open(), -EBADMSG);
}

Test(load, one_ring_is_enough)
{
	for (unsigned int ring = 0; ring < 2; ring++) {
		unitvol_file(&t, ring ? "a" : "b");
		unitvol_close(&t);
		for (block_t b = 0; b < RING_SLOTS; b++)
			emudev_spoil(t.d,
				     (ring ? RING_A_BLOCK : RING_B_BLOCK) + b);
		unitvol_open(&t);
		cr_assert(is_there(ring ? "a" : "b"));
		for (unsigned int i = 0; i < 70; i++)
			unitvol_press(&t);
	}
}

Test(load, read_only_writes_nothing)
{
	struct attr a = { 0 };
	inum_t ino = unitvol_file(&t, "file"), gone = unitvol_file(&t, "gone");
	size_t nr;

	unitvol_write(&t, ino, 0, 2, 5);
	unitvol_unlink(&t, "gone");
	unitvol_sync(&t);
	unitvol_abandon(&t);
	emudev_rebase(t.d);
	t.o.read_only = true;
	t.o.atime = VOLUME_STRICTATIME;
	unitvol_open(&t);
	cr_assert(volume_is_read_only(t.v));
	cr_assert_eq(unitvol_read(&t, ino, 1), 5);
	volume_reap(t.v, gone);
	cr_assert_eq(volume_write(t.v, ino, 0, 1, "x", 0), -EROFS);
	cr_assert_eq(volume_setattr(t.v, ino, VOLUME_SET_MODE, &a, &a), -EROFS);
	cr_assert_eq(volume_setattr(t.v, ino, VOLUME_SET_SIZE, &a, &a), -EROFS);
	cr_assert_eq(volume_create(t.v, VOLUME_ROOT, "a", S_IFREG, 0,
				   &unitvol_cred, &a),
		     -EROFS);
	cr_assert_eq(volume_unlink(t.v, VOLUME_ROOT, "file", NULL), -EROFS);
	cr_assert_eq(volume_rename(t.v, VOLUME_ROOT, "file", VOLUME_ROOT, "b",
				   0, NULL),
		     -EROFS);
	cr_assert_eq(volume_link(t.v, ino, VOLUME_ROOT, "l", &a), -EROFS);
	cr_assert_eq(volume_setxattr(t.v, ino, "user.a", "v", 1, 0), -EROFS);
	cr_assert_eq(volume_removexattr(t.v, ino, "user.a"), -EROFS);
	cr_assert_eq(volume_fallocate(t.v, ino, 0, 0, 9999), -EROFS);
	must(volume_sync(t.v));
	must(volume_read(t.v, ino, 0, 0, NULL, &nr));
	unitvol_close(&t);
	cr_assert_eq(emudev_nr_events(t.d), 0);
}

Test(load, older_header_is_noticed)
{
	struct header *h = &t.h;

	unitvol_close(&t);
	unitvol_open(&t);
	cr_assert(!unitvol_said(&t, "older"));
	unitvol_close(&t);
	h->sequence--;
	unitvol_open(&t);
	cr_assert(unitvol_said(&t, "header is older"), "%s", t.said);
}

Test(load, failing_flush_on_opening)
{
	unitvol_close(&t);
	emudev_fail(t.d, EMUDEV_OP_FLUSH, 1, 1, -EIO);
	cr_assert_eq(try_open(), -EIO);
	cr_assert_eq(t.v, NULL);
}

/* Each read fails once: an error or, for one of two rings, none at all. */
Test(load, any_read_may_fail)
{
	unsigned int failed = 0;

	for (unsigned int i = 0; i < 12; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		unitvol_file(&t, name);
	}
	unitvol_sync(&t);
	unitvol_abandon(&t);
	for (unsigned int nth = 1;; nth++) {
		uint64_t calls = emudev_nr_calls(t.d, EMUDEV_OP_READ);
		int err;

		emudev_fail(t.d, EMUDEV_OP_READ, nth, 1, -EIO);
		err = try_open();
		calls = emudev_nr_calls(t.d, EMUDEV_OP_READ) - calls;
		cr_assert(!err || err == -EIO, "%d", err);
		failed += err == -EIO;
		if (!err)
			unitvol_abandon(&t);
		if (calls < nth)
			break;
	}
	cr_assert_geq(failed, 5);
}
