/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Commits as the disk sees them, and what any error in one leads to.
 */
#include "unitvol.h"

#include <stdatomic.h>

#include "fs/container.h"
#include "fs/worker.h"

static struct unitvol t;

static void start_plain(void)
{
	unitvol_start(&t, 0, true);
}

static void start_small(void)
{
	unitvol_start(&t, 4, true);
}

static void end_commit(void)
{
	unitvol_end(&t);
}

TestSuite(commit, .init = start_plain, .fini = end_commit, .timeout = 100);
TestSuite(commit_small, .init = start_small, .fini = end_commit,
	  .timeout = 100);

/* ---- the order of writes */

static bool in_ring(block_t b)
{
	return (b >= RING_A_BLOCK && b < RING_A_BLOCK + RING_SLOTS) ||
	       (b >= RING_B_BLOCK && b < RING_B_BLOCK + RING_SLOTS);
}

/* What the two newest commits reach: nothing of that may be written. */
static uint64_t reached[2][2][REGION_WORDS];

static void clear(const struct range_vec *v)
{
	for (size_t i = 0; i < v->nr; i++)
		for (block_t b = v->r[i].start; b < v->r[i].start + v->r[i].nr;
		     b++)
			reached[0][b / REGION_BLOCKS][b % REGION_BLOCKS / 64] &=
				~(1ull << (b % 64));
}

/* Of the newest: all that is taken in its image but the freed lists. */
static void note_reached(void)
{
	struct space *s = &t.v->space;
	struct fault fault;
	struct freed *f;

	memcpy(reached[1], reached[0], sizeof(reached[0]));
	for (size_t i = 0; i < s->nr_regions && i < 2; i++) {
		must(space_load(s, &t.v->vt, i, &fault));
		memcpy(reached[0][i], s->region[i].disk, REGION_BLOCKS / 8);
	}
	TAILQ_FOREACH(f, &s->freed, link) {
		clear(&f->data);
		clear(&f->nodes);
	}
}

static bool is_reached(unsigned int which, block_t b)
{
	return reached[which][b / REGION_BLOCKS][b % REGION_BLOCKS / 64] >>
		       (b % 64) &
	       1;
}

/* Data and nodes, flush, both superblocks, flush: that and nothing else. */
static void must_be_in_order(uint64_t number)
{
	uint64_t nr = emudev_nr_events(t.d), i = 0, nodes = 0;
	block_t slot = number % RING_SLOTS;
	bool a = false, b = false;

	for (; i < nr; i++, nodes++) {
		struct emudev_event e = emudev_event_at(t.d, i);

		if (e.type != EMUDEV_WRITE)
			break;
		cr_assert(!in_ring(e.block));
		cr_assert(!is_reached(0, e.block), "block %lu", e.block);
		/* Should the disk have lied, the one before must be whole. */
		cr_assert(!is_reached(1, e.block), "block %lu", e.block);
	}
	cr_assert_gt(nodes, 0);
	cr_assert_lt(i, nr);
	cr_assert_eq(emudev_event_at(t.d, i++).type, EMUDEV_FLUSH);
	for (unsigned int j = 0; j < 2; j++, i++) {
		struct emudev_event e = emudev_event_at(t.d, i);

		cr_assert_eq(e.type, EMUDEV_WRITE);
		a = a || e.block == RING_A_BLOCK + slot;
		b = b || e.block == RING_B_BLOCK + slot;
	}
	cr_assert(a && b);
	cr_assert_eq(emudev_event_at(t.d, i++).type, EMUDEV_FLUSH);
	cr_assert_eq(i, nr);
}

Test(commit, I1_order_of_writes_and_flushes)
{
	inum_t ino = unitvol_file(&t, "file");

	for (unsigned int round = 0; round < 80; round++) {
		uint64_t number = volume_commit_number(t.v) + 1;

		note_reached();
		emudev_rebase(t.d);
		unitvol_write(&t, ino, round % 5, 3, (uint8_t)round);
		unitvol_sync(&t);
		cr_assert_eq(volume_commit_number(t.v), number);
		must_be_in_order(number);
	}
}

Test(commit, nothing_to_do_writes_nothing)
{
	inum_t ino = unitvol_file(&t, "file");

	unitvol_sync(&t);
	emudev_rebase(t.d);
	unitvol_sync(&t);
	must(volume_fsync(t.v, ino));
	cr_assert_eq(emudev_nr_events(t.d), 0);
	/* Under pressure for space a commit is made all the same. */
	unitvol_press(&t);
	cr_assert_gt(emudev_nr_events(t.d), 0);
}

Test(commit, clean_is_only_what_was_closed)
{
	struct check_options o = { 0 };
	struct check_result r;

	unitvol_file(&t, "a");
	unitvol_sync(&t);
	must(check_container(emudev_container(t.d), &t.h, &t.keys, &o, &r));
	cr_assert(!r.was_clean);
	unitvol_close(&t);
	must(check_container(emudev_container(t.d), &t.h, &t.keys, &o, &r));
	cr_assert(r.was_clean);
	/* Even when nothing was done since, so that it is known next time. */
	unitvol_open(&t);
	unitvol_file(&t, "b");
	unitvol_sync(&t);
	must(check_container(emudev_container(t.d), &t.h, &t.keys, &o, &r));
	cr_assert(!r.was_clean);
	unitvol_close(&t);
	must(check_container(emudev_container(t.d), &t.h, &t.keys, &o, &r));
	cr_assert(r.was_clean);
}

/* ---- errors */

static void must_be_read_only(int err)
{
	struct attr a;
	size_t nr;
	char byte;

	cr_assert(volume_is_read_only(t.v));
	/* Every later fsync says so; it is never tried again. */
	cr_assert_eq(volume_sync(t.v), err);
	cr_assert_eq(volume_fsync(t.v, VOLUME_ROOT), err);
	cr_assert_eq(volume_create(t.v, VOLUME_ROOT, "later", S_IFREG | 0600, 0,
				   &unitvol_cred, &a),
		     -EROFS);
	must(volume_lookup(t.v, VOLUME_ROOT, "file", &a));
	cr_assert_eq(volume_write(t.v, a.ino, 0, 1, "x", 0), -EROFS);
	cr_assert_eq(volume_setattr(t.v, a.ino, VOLUME_SET_MODE, &a, &a),
		     -EROFS);
	cr_assert_eq(volume_unlink(t.v, VOLUME_ROOT, "file", NULL), -EROFS);
	must(volume_read(t.v, a.ino, 0, 1, &byte, &nr));
	cr_assert_eq(nr, 1);
	cr_assert(unitvol_said(&t, "read-only from now on"), "%s", t.said);
}

/* Let call number @nth of @op fail in a commit, for each there is. */
static void each_call_fails(enum emudev_op op)
{
	struct emudev *before;
	inum_t ino = unitvol_file(&t, "file");

	unitvol_write(&t, ino, 0, 40, 1);
	unitvol_close(&t);
	before = t.d;
	for (unsigned int nth = 1;; nth++) {
		uint64_t calls;
		int err;

		t.d = emudev_clone(before);
		unitvol_open(&t);
		unitvol_write(&t, ino, 0, 20, 2);
		for (unsigned int i = 0; i < 12; i++) {
			char name[16];

			snprintf(name, sizeof(name), "new%u", i);
			unitvol_file(&t, name);
		}
		calls = emudev_nr_calls(t.d, op);
		emudev_fail(t.d, op, nth, 1, -EIO);
		err = volume_sync(t.v);
		calls = emudev_nr_calls(t.d, op) - calls;
		if (calls < nth) {
			cr_assert_eq(err, 0);
			emudev_free(t.d);
			t.d = before;
			volume_abandon(t.v);
			t.v = NULL;
			cr_assert_gt(nth, 2);
			return;
		}
		cr_assert_eq(err, -EIO, "%u", nth);
		must_be_read_only(-EIO);
		cr_assert_eq(volume_close(t.v), -EIO);
		t.v = NULL;
		/* The old or the new state, and sound. */
		unitvol_open(&t);
		cr_assert(unitvol_read(&t, ino, 39) == 1);
		cr_assert(unitvol_read(&t, ino, 5) == 1 ||
			  unitvol_read(&t, ino, 5) == 2);
		unitvol_close(&t);
		unitvol_must_be_clean(&t);
		emudev_free(t.d);
	}
}

Test(commit, failing_write_makes_read_only)
{
	each_call_fails(EMUDEV_OP_WRITE);
}

Test(commit_small, failing_write_makes_read_only)
{
	each_call_fails(EMUDEV_OP_WRITE);
}

Test(commit, failing_flush_makes_read_only)
{
	each_call_fails(EMUDEV_OP_FLUSH);
}

/*
 * A flush that failed has lost writes of others, perhaps, and the next will
 * not say so.
 */
Test(commit, failing_flush_of_growth_makes_read_only)
{
	inum_t ino = unitvol_file(&t, "file");

	unitvol_write(&t, ino, 0, 1, 1);
	emudev_fail(t.d, EMUDEV_OP_FLUSH, 1, 1, -EIO);
	cr_assert_eq(txn_grow_container(t.v, t.v->space.nr_blocks), -EIO);
	must_be_read_only(-EIO);
}

Test(commit, failing_write_of_data_makes_read_only)
{
	inum_t ino = unitvol_file(&t, "file");

	unitvol_write(&t, ino, 0, 1, 1);
	emudev_fail(t.d, EMUDEV_OP_WRITE, 1, 1, -EIO);
	cr_assert_eq(volume_write(t.v, ino, 0, 1, "x", 0), -EIO);
	must_be_read_only(-EIO);
	cr_assert_eq(unitvol_read(&t, ino, 0), 1);
}

/* Neither may go on as if it were alone. */
Test(commit, TD12_second_writer_is_noticed)
{
	struct volume *second;

	unitvol_file(&t, "file");
	unitvol_sync(&t);
	must(volume_open(&second, emudev_container(t.d), &t.h, &t.keys, &t.o));
	unitvol_file(&t, "first");
	unitvol_sync(&t);
	must(volume_unlink(second, VOLUME_ROOT, "file", NULL));
	t.said[0] = '\0';
	cr_assert_eq(volume_sync(second), -EIO);
	cr_assert(unitvol_said(&t, "another program has written"), "%s",
		  t.said);
	cr_assert(volume_is_read_only(second));
	cr_assert_eq(volume_sync(second), -EIO);
	volume_abandon(second);
	/* The first one's commit stands, and its next too. */
	unitvol_file(&t, "more");
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
}

Test(commit, TD12_first_writer_notices_the_second)
{
	struct volume *second;

	unitvol_write(&t, unitvol_file(&t, "file"), 0, 1, 1);
	unitvol_sync(&t);
	must(volume_open(&second, emudev_container(t.d), &t.h, &t.keys, &t.o));
	must(volume_unlink(second, VOLUME_ROOT, "file", NULL));
	must(volume_close(second));
	unitvol_file(&t, "late");
	cr_assert_eq(volume_sync(t.v), -EIO);
	must_be_read_only(-EIO);
}

/* ---- the books */

/*
 * FREED lists are cut into items of 150 ranges; writing them frees nodes of
 * the volume tree, which go on that very list.
 */
Test(commit_small, freed_lists_of_every_length_add_up)
{
	inum_t ino = unitvol_file(&t, "file");
	unsigned int at = 0;

	for (unsigned int i = 0; i < 200; i++)
		unitvol_write(&t, ino, 2 * i, 1, 1);
	unitvol_sync(&t);
	for (unsigned int nr = 60; nr < 160; nr++) {
		/* One range each: blocks are far apart since the first time. */
		for (unsigned int i = 0; i < nr; i++, at += 37)
			unitvol_write(&t, ino, 2 * (at % 200), 1, 2);
		unitvol_sync(&t);
		unitvol_must_be_clean(&t);
	}
}

Test(commit, freed_lists_of_every_length_add_up)
{
	inum_t ino = unitvol_file(&t, "file");
	unsigned int at = 0;

	for (unsigned int i = 0; i < 200; i++)
		unitvol_write(&t, ino, 2 * i, 1, 1);
	unitvol_sync(&t);
	for (unsigned int nr = 120; nr < 155; nr++) {
		for (unsigned int i = 0; i < nr; i++, at += 37)
			unitvol_write(&t, ino, 2 * (at % 200), 1, 2);
		unitvol_sync(&t);
		unitvol_must_be_clean(&t);
	}
}

Test(commit, I8_full_volume_can_be_emptied)
{
	static uint8_t chunk[64 * BLOCK_BYTES];
	inum_t ino;
	struct attr a;
	unsigned int i = 0;
	int err = 0;

	emudev_set_host_limit(t.d, DISK_BYTES);
	ino = unitvol_file(&t, "file");
	for (; !err; i += 64)
		err = volume_write(t.v, ino, (uint64_t)i * BLOCK_BYTES,
				   sizeof(chunk), chunk, 0);
	cr_assert_eq(err, -ENOSPC);
	cr_assert_gt(i, 1000);
	/* Own blocks can still be written, again and again. */
	for (i = 0; i < 300; i++)
		unitvol_write(&t, ino, i % 700, 1, 2);
	unitvol_sync(&t);
	unitvol_must_be_clean(&t);
	unitvol_unlink(&t, "file");
	volume_reap(t.v, ino);
	unitvol_sync(&t);
	cr_assert_eq(t.v->space.owned_data, 0);
	for (i = 0; i < 3; i++)
		unitvol_press(&t);
	cr_assert_eq(t.v->space.held_data, 0);
	unitvol_must_be_clean(&t);
	must(volume_create(t.v, VOLUME_ROOT, "again", S_IFREG, 0, &unitvol_cred,
			   &a));
	unitvol_write(&t, a.ino, 0, 500, 3);
}

/* ---- operations meanwhile */

static atomic_bool enough;

static void *change_all_the_time(void *arg)
{
	const inum_t *ino = arg;
	struct attr a = { 0 };

	for (unsigned int i = 0; !atomic_load(&enough); i++) {
		a.uid = i;
		must(volume_setattr(t.v, ino[i % 60], VOLUME_SET_UID, &a, &a));
		if (i % 4 == 0)
			unitvol_write(&t, ino[i % 60], i % 7, 1, (uint8_t)i);
	}
	return NULL;
}

/* Nodes of a commit are replaced before they have places, and after. */
Test(commit_small, operations_go_on_meanwhile)
{
	pthread_t thread[2];
	inum_t ino[60];
	char name[16];

	for (unsigned int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ino[i] = unitvol_file(&t, name);
	}
	for (unsigned int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, change_all_the_time, ino);
	while (volume_commit_number(t.v) < 100)
		unitvol_sync(&t);
	atomic_store(&enough, true);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
}

/* ---- the clock */

static size_t waiting(void)
{
	size_t nr;

	pthread_mutex_lock(&t.v->worker.lock);
	nr = t.v->worker.nr_reap;
	pthread_mutex_unlock(&t.v->worker.lock);
	return nr;
}

Test(commit, timer_is_not_starved_by_deletions)
{
	time_t start = time(NULL);
	uint64_t number;

	unitvol_close(&t);
	t.o.commit_seconds = 1;
	unitvol_open(&t);
	number = volume_commit_number(t.v);
	unitvol_file(&t, "file");
	/* More to reap than is ever done (what has a name costs a look). */
	while (volume_commit_number(t.v) == number && time(NULL) < start + 5)
		while (waiting() < 20000)
			for (unsigned int i = 0; i < 5000; i++)
				must(worker_reap(t.v, VOLUME_ROOT));
	cr_assert_gt(volume_commit_number(t.v), number);
}
