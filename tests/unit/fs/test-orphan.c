/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Inodes without a name and files being cut: the work is done in steps, and
 * whatever step a crash comes after, the next mount does the rest.
 */
#include "unitvol.h"

#include "fs/orphan.h"

static struct unitvol t;

static void start_plain(void)
{
	unitvol_start(&t, 0, true);
}

static void start_small(void)
{
	unitvol_start(&t, 5, true);
}

static void end_orphan(void)
{
	unitvol_end(&t);
}

TestSuite(orphan, .init = start_plain, .fini = end_orphan, .timeout = 60);
TestSuite(orphan_small, .init = start_small, .fini = end_orphan,
	  .timeout = 100);

/* A file of @nr extents, every other block of it. */
static inum_t make_holed(const char *name, unsigned int nr)
{
	inum_t ino = unitvol_file(&t, name);

	for (unsigned int i = 0; i < nr; i++)
		unitvol_write(&t, ino, 2 * i, 1, (uint8_t)(1 + i % 200));
	return ino;
}

static uint64_t orphans(void)
{
	struct check_options o = { .report = unitvol_say, .report_arg = &t };
	struct check_result r;

	t.said[0] = '\0';
	must(check_container(emudev_container(t.d), &t.h, &t.keys, &o, &r));
	cr_assert_eq(r.errors, 0, "%s", t.said);
	return r.orphans;
}

static void set_size(inum_t ino, uint64_t size, int want)
{
	struct attr a = { .size = size };

	cr_assert_eq(volume_setattr(t.v, ino, VOLUME_SET_SIZE, &a, &a), want);
}

Test(orphan, file_of_many_extents_goes_in_steps)
{
	inum_t ino = make_holed("file", 900);
	uint64_t changes;

	unitvol_sync(&t);
	cr_assert_eq(t.v->space.owned_data, 900);
	unitvol_unlink(&t, "file");
	unitvol_sync(&t);
	cr_assert_eq(orphans(), 1);
	changes = t.v->changes;
	volume_reap(t.v, ino);
	/* 256 a step, and the inode. */
	cr_assert_geq(t.v->changes, changes + 4);
	cr_assert_eq(t.v->space.owned_data, 0);
	unitvol_sync(&t);
	cr_assert_eq(orphans(), 0);
	cr_assert_eq(volume_getattr(t.v, ino, &(struct attr){ 0 }), -ENOENT);
}

Test(orphan, who_has_a_name_is_not_reaped)
{
	inum_t ino = make_holed("file", 3);

	volume_reap(t.v, ino);
	cr_assert_eq(unitvol_read(&t, ino, 4), 3);
	volume_reap(t.v, 999999);
}

Test(orphan, all_kinds_are_swept_when_opening)
{
	struct attr a;
	inum_t dir, link, file;
	size_t len;

	dir = unitvol_make(&t, VOLUME_ROOT, "dir", S_IFDIR | 0755);
	file = make_holed("file", 20);
	must(volume_symlink(t.v, VOLUME_ROOT, "link", t.h.label, &unitvol_cred,
			    &a));
	link = a.ino;
	unitvol_make(&t, VOLUME_ROOT, "fifo", S_IFIFO | 0600);
	must(volume_setxattr(t.v, file, "user.a", t.said, 5000, 0));
	must(volume_setxattr(t.v, dir, "user.b", t.said, 10, 0));
	must(volume_rmdir(t.v, VOLUME_ROOT, "dir", NULL));
	unitvol_unlink(&t, "file");
	unitvol_unlink(&t, "link");
	unitvol_unlink(&t, "fifo");
	/* In use, they still work. */
	must(volume_getxattr(t.v, file, "user.a", NULL, 0, &len));
	cr_assert_eq(unitvol_read(&t, file, 2), 2);
	unitvol_sync(&t);
	cr_assert_eq(orphans(), 4);

	unitvol_reopen(&t);
	cr_assert_eq(volume_getattr(t.v, dir, &a), -ENOENT);
	cr_assert_eq(volume_getattr(t.v, link, &a), -ENOENT);
	cr_assert_eq(volume_getattr(t.v, file, &a), -ENOENT);
	cr_assert_eq(t.v->space.owned_data, 0);
	unitvol_close(&t);
	cr_assert_eq(orphans(), 0);
}

/* The first thing that is done after opening: no room was made before. */
Test(orphan, one_without_data_is_swept_first_thing)
{
	unitvol_file(&t, "empty");
	unitvol_unlink(&t, "empty");
	unitvol_sync(&t);
	unitvol_reopen(&t);
	unitvol_close(&t);
	cr_assert_eq(orphans(), 0);
}

Test(orphan, cut_of_a_file_without_a_name_leaves_it)
{
	inum_t ino = make_holed("file", 20);

	unitvol_unlink(&t, "file");
	set_size(ino, 3 * BLOCK_BYTES, 0);
	cr_assert_eq(unitvol_read(&t, ino, 2), 2);
	unitvol_sync(&t);
	cr_assert_eq(orphans(), 1);
	volume_reap(t.v, ino);
	unitvol_sync(&t);
	cr_assert_eq(orphans(), 0);
}

Test(orphan, mark_of_nobody_does_not_keep_from_opening)
{
	unitvol_plant(&t, key_of(0, ITEM_ORPHAN, 4711), "", 0);
	make_holed("file", 2);
	unitvol_unlink(&t, "file");
	unitvol_sync(&t);
	unitvol_reopen(&t);
	/* Others are swept all the same. */
	cr_assert_eq(t.v->space.owned_data, 0);
}

/* Block of the leaf that has the extent at @logical. */
static block_t leaf_block(inum_t ino, uint64_t logical)
{
	struct key key = key_of(ino, ITEM_EXTENT, logical);
	struct tree_pos pos;
	block_t block;
	struct txn x;
	int err;

	must(txn_begin(&x, t.v, TXN_READ, 0, 0));
	txn_lock(&x);
	do {
		err = tree_find(&t.v->ft, &key, &pos, &x.fault);
	} while (txn_retry(&x, &err));
	must(err);
	block = pos.leaf->ptr.block;
	txn_unlock(&x);
	txn_end(&x);
	return block;
}

Test(orphan_small, one_that_is_damaged_does_not_keep_from_opening)
{
	inum_t bad = make_holed("bad", 40);
	inum_t good = make_holed("good", 40);
	block_t block;
	size_t nr;

	unitvol_unlink(&t, "bad");
	unitvol_unlink(&t, "good");
	unitvol_sync(&t);
	block = leaf_block(bad, 40);
	/* Old enough not to be walked when opening. */
	for (unsigned int i = 0; i < 3; i++)
		unitvol_press(&t);
	unitvol_abandon(&t);
	emudev_flip_bit(t.d, block, 8000);
	unitvol_open(&t);
	cr_assert(unitvol_said(&t, "cannot be used"), "%s", t.said);
	cr_assert_eq(volume_getattr(t.v, good, &(struct attr){ 0 }), -ENOENT);
	cr_assert_eq(volume_read(t.v, bad, 40 * BLOCK_BYTES, 1, t.said, &nr),
		     -EBADMSG);
	unitvol_file(&t, "new");
	cr_assert_eq(volume_close(t.v), 0);
	t.v = NULL;
}

/*
 * Reads of nodes fail in turn, in a cache of eight nodes: the work stops there.
 */
Test(orphan_small, deletion_may_stop_after_any_step)
{
	struct emudev *before;
	unsigned int nth, steps = 0;

	inum_t ino = make_holed("file", 60);

	must(volume_setxattr(t.v, ino, "user.a", t.said, 8000, 0));
	unitvol_sync(&t);
	unitvol_abandon(&t);
	before = t.d;
	for (nth = 1;; nth += 3) {
		uint64_t calls;
		bool failed;

		t.d = emudev_clone(before);
		/* Opening sweeps, so the name goes while it is open. */
		t.o.cache_bytes = 1;
		unitvol_open(&t);
		unitvol_unlink(&t, "file");
		emudev_fail(t.d, EMUDEV_OP_READ, nth, 1, -EIO);
		calls = emudev_nr_calls(t.d, EMUDEV_OP_READ);
		volume_reap(t.v, ino);
		failed = emudev_nr_calls(t.d, EMUDEV_OP_READ) - calls >= nth;
		emudev_fail(t.d, EMUDEV_OP_READ, UINT64_MAX, 1, -EIO);
		unitvol_sync(&t);
		cr_assert_eq(orphans(), failed ? 1 : 0);
		steps += t.v->space.owned_data != 0 &&
			 t.v->space.owned_data != 60;
		unitvol_reopen(&t);
		cr_assert_eq(t.v->space.owned_data, 0);
		unitvol_close(&t);
		cr_assert_eq(orphans(), 0);
		emudev_free(t.d);
		if (!failed)
			break;
	}
	/* It did stop in the middle of the data. */
	cr_assert_geq(steps, 2);
	t.d = before;
}

Test(orphan_small, cut_may_stop_after_any_step)
{
	struct emudev *before;
	unsigned int nth, steps = 0;
	inum_t ino = make_holed("file", 60);

	unitvol_sync(&t);
	unitvol_abandon(&t);
	before = t.d;
	for (nth = 1;; nth += 3) {
		struct attr a = { .size = 9 * BLOCK_BYTES + 5 };
		uint64_t calls;
		bool failed;
		int err;

		t.d = emudev_clone(before);
		t.o.cache_bytes = 1;
		unitvol_open(&t);
		emudev_fail(t.d, EMUDEV_OP_READ, nth, 1, -EIO);
		calls = emudev_nr_calls(t.d, EMUDEV_OP_READ);
		err = volume_setattr(t.v, ino, VOLUME_SET_SIZE, &a, &a);
		failed = emudev_nr_calls(t.d, EMUDEV_OP_READ) - calls >= nth;
		cr_assert_eq(err, failed ? -EIO : 0);
		emudev_fail(t.d, EMUDEV_OP_READ, UINT64_MAX, 1, -EIO);
		unitvol_sync(&t);
		unitvol_must_be_clean(&t);
		steps += t.v->space.owned_data > 5 &&
			 t.v->space.owned_data < 60;
		unitvol_reopen(&t);
		/* Uncut, or cut for good: never a size with old data behind. */
		must(volume_getattr(t.v, ino, &a));
		if (a.size == 119 * BLOCK_BYTES) {
			cr_assert_eq(t.v->space.owned_data, 60);
		} else {
			cr_assert_eq(a.size, 9 * BLOCK_BYTES + 5);
			cr_assert_eq(t.v->space.owned_data, 5);
		}
		cr_assert_eq(unitvol_read(&t, ino, 8), 5);
		unitvol_close(&t);
		cr_assert_eq(orphans(), 0);
		emudev_free(t.d);
		if (!failed)
			break;
	}
	cr_assert_geq(steps, 1);
	t.d = before;
}

/* What a cut that could not be finished left must not come back. */
Test(orphan_small, growing_shows_nothing_of_an_unfinished_cut)
{
	struct emudev *before;
	inum_t ino = make_holed("file", 60);

	unitvol_sync(&t);
	unitvol_abandon(&t);
	before = t.d;
	for (unsigned int nth = 1;; nth += 2) {
		struct attr a = { .size = 0 };
		uint64_t calls, at;
		int err;

		t.d = emudev_clone(before);
		t.o.cache_bytes = 1;
		unitvol_open(&t);
		emudev_fail(t.d, EMUDEV_OP_READ, nth, 1, -EIO);
		calls = emudev_nr_calls(t.d, EMUDEV_OP_READ);
		err = volume_setattr(t.v, ino, VOLUME_SET_SIZE, &a, &a);
		calls = emudev_nr_calls(t.d, EMUDEV_OP_READ) - calls;
		emudev_fail(t.d, EMUDEV_OP_READ, UINT64_MAX, 1, -EIO);
		must(volume_getattr(t.v, ino, &a));
		if (err && !a.size) {
			if (nth % 3 == 0)
				set_size(ino, 119 * BLOCK_BYTES, 0);
			else if (nth % 3 == 1)
				unitvol_write(&t, ino, 118, 1, 9);
			else
				must(volume_fallocate(t.v, ino, 0,
						      118 * BLOCK_BYTES,
						      BLOCK_BYTES));
			for (at = 0; at < 118; at++)
				cr_assert_eq(unitvol_read(&t, ino, at), 0,
					     "block %lu", at);
			unitvol_close(&t);
			unitvol_must_be_clean(&t);
		}
		unitvol_abandon(&t);
		emudev_free(t.d);
		if (calls < nth)
			break;
	}
	t.d = before;
}
