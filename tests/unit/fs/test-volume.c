/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The front door at its edges: nonces at the end of a session, times of any
 * year, the largest sizes.
 */
#include "unitvol.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>

#include "fs/extent.h"

static struct unitvol t;

static void start_plain(void)
{
	unitvol_start(&t, 0, true);
}

static void start_untagged(void)
{
	unitvol_start(&t, 0, false);
}

static void end_volume(void)
{
	unitvol_end(&t);
}

TestSuite(volume, .init = start_plain, .fini = end_volume, .timeout = 60);
TestSuite(volume_untagged, .init = start_untagged, .fini = end_volume,
	  .timeout = 60);

/* ---- nonces */

static _Atomic uint64_t next_session = 1000;

static int draw_session(uint64_t *session)
{
	*session = next_session++;
	return 0;
}

/* @left more counters in this session. */
static void near_the_end(uint64_t left)
{
	pthread_mutex_lock(&t.v->nonces.lock);
	t.v->nonces.draw_session = draw_session;
	t.v->nonces.next = ((uint64_t)1 << 32) - left;
	pthread_mutex_unlock(&t.v->nonces.lock);
}

/* No run of the file goes past 2^32, and no nonce is there twice. */
static void nonces_must_be_unique(inum_t ino, unsigned int blocks)
{
	static struct nonce seen[4096];
	struct extent_list l;
	unsigned int nr = 0;
	struct txn x;
	int err;

	must(extent_list_init(&l, blocks));
	must(txn_begin(&x, t.v, TXN_READ, 0, 0));
	txn_lock(&x);
	do {
		err = extent_list_get(&x, ino, 0, blocks, &l);
	} while (txn_retry(&x, &err));
	must(err);
	for (unsigned int i = 0; i < l.nr; i++) {
		const struct extent *e = &l.e[i];

		cr_assert_leq((uint64_t)e->nonce.counter + e->nr,
			      (uint64_t)1 << 32);
		for (uint32_t j = 0; j < e->nr; j++)
			seen[nr++] = (struct nonce){ e->nonce.session,
						     e->nonce.counter + j };
	}
	cr_assert_eq(nr, blocks);
	for (unsigned int i = 0; i < nr; i++)
		for (unsigned int j = 0; j < i; j++)
			cr_assert(seen[i].session != seen[j].session ||
				  seen[i].counter != seen[j].counter);
	txn_unlock(&x);
	txn_end(&x);
	extent_list_destroy(&l);
}

static void across_the_end(uint64_t left, unsigned int piece)
{
	inum_t ino = unitvol_file(&t, "file");
	uint64_t session = t.v->nonces.session;

	near_the_end(left);
	for (unsigned int at = 0; at < 200; at += piece)
		unitvol_write(&t, ino, at, piece, (uint8_t)(at / piece + 1));
	cr_assert_neq(t.v->nonces.session, session);
	nonces_must_be_unique(ino, 200);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
	unitvol_open(&t);
	for (unsigned int at = 0; at < 200; at++)
		cr_assert_eq(unitvol_read(&t, ino, at),
			     (uint8_t)(at / piece + 1));
	unitvol_unlink(&t, "file");
	volume_reap(t.v, ino);
}

Test(volume, TM7_sessions_end_at_2_to_32)
{
	static const uint64_t left[] = { 0, 1, 63, 64, 65, 100, 128, 199 };

	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		across_the_end(left[i], 1);
		across_the_end(left[i], 10);
		across_the_end(left[i], 100);
		across_the_end(left[i], 200);
	}
}

Test(volume_untagged, TM7_sessions_end_at_2_to_32)
{
	across_the_end(100, 1);
	across_the_end(100, 200);
}

static void *write_some(void *arg)
{
	inum_t ino = *(inum_t *)arg;

	for (unsigned int i = 0; i < 100; i++)
		unitvol_write(&t, ino, i, 1, (uint8_t)(ino + i));
	return NULL;
}

Test(volume, TM7_sessions_end_with_threads)
{
	inum_t ino[4];
	pthread_t thread[4];

	for (unsigned int i = 0; i < 4; i++)
		ino[i] = unitvol_file(&t, (char[2]){ (char)('a' + i), 0 });
	near_the_end(150);
	for (unsigned int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, write_some, &ino[i]);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	cr_assert_geq(t.v->nonces.session, 1000);
	for (unsigned int i = 0; i < 4; i++) {
		nonces_must_be_unique(ino[i], 100);
		for (unsigned int j = 0; j < 100; j++)
			cr_assert_eq(unitvol_read(&t, ino[i], j),
				     (uint8_t)(ino[i] + j));
	}
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
}

/* The random generator fails: the write does, and nothing is wrong. */
static int no_session(uint64_t *session)
{
	return -EIO;
}

Test(volume, failing_random_generator)
{
	inum_t ino = unitvol_file(&t, "file");
	char block[BLOCK_BYTES] = { 1 };

	unitvol_write(&t, ino, 0, 1, 1);
	near_the_end(0);
	t.v->nonces.draw_session = no_session;
	cr_assert_eq(volume_write(t.v, ino, 100 * BLOCK_BYTES, sizeof(block),
				  block, 0),
		     -EIO);
	t.v->nonces.draw_session = draw_session;
	cr_assert(!volume_is_read_only(t.v));
	cr_assert_eq(t.v->space.owned_data, 1);
	unitvol_write(&t, ino, 100, 1, 2);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
}

/* ---- times */

static void times(struct timespec at, struct timespec mt)
{
	inum_t ino = unitvol_file(&t, "file");
	struct attr a = { .atime = at, .mtime = mt }, b;

	must(volume_setattr(t.v, ino, VOLUME_SET_ATIME | VOLUME_SET_MTIME, &a,
			    &b));
	unitvol_close(&t);
	unitvol_open(&t);
	must(volume_getattr(t.v, ino, &b));
	cr_assert_eq(b.atime.tv_sec, at.tv_sec);
	cr_assert_eq(b.atime.tv_nsec, at.tv_nsec);
	cr_assert_eq(b.mtime.tv_sec, mt.tv_sec);
	cr_assert_eq(b.mtime.tv_nsec, mt.tv_nsec);
	unitvol_unlink(&t, "file");
}

Test(volume, times_of_any_year)
{
	/* 1969, 1901, 1; 2038, 2106, 292277026596. */
	times((struct timespec){ -1, 999999999 },
	      (struct timespec){ 2147483648, 0 });
	times((struct timespec){ -2147483649, 1 },
	      (struct timespec){ 4294967296, 1 });
	times((struct timespec){ -62135596800, 0 },
	      (struct timespec){ INT64_MAX, 999999999 });
	times((struct timespec){ INT64_MIN, 0 }, (struct timespec){ 0, 0 });
}

Test(volume, access_times_of_any_year)
{
	struct attr a = {
		.atime = { INT64_MIN + 1, 0 },
		.mtime = { INT64_MIN, 0 },
		.ctime = { INT64_MIN, 0 },
	}, b;
	inum_t ino = unitvol_file(&t, "file");

	unitvol_write(&t, ino, 0, 1, 1);
	t.v->o.atime = VOLUME_RELATIME;
	must(volume_setattr(t.v, ino,
			    VOLUME_SET_ATIME | VOLUME_SET_MTIME |
				    VOLUME_SET_CTIME,
			    &a, &b));
	cr_assert_eq(unitvol_read(&t, ino, 0), 1);
	must(volume_getattr(t.v, ino, &b));
	cr_assert_gt(b.atime.tv_sec, 1000000000);
	/* And one that lies ahead stays. */
	a.atime.tv_sec = INT64_MAX;
	must(volume_setattr(t.v, ino,
			    VOLUME_SET_ATIME | VOLUME_SET_MTIME |
				    VOLUME_SET_CTIME,
			    &a, &b));
	cr_assert_eq(unitvol_read(&t, ino, 0), 1);
	must(volume_getattr(t.v, ino, &b));
	cr_assert_eq(b.atime.tv_sec, INT64_MAX);
}

/* ---- sizes */

Test(volume, eight_exbibytes_of_nothing)
{
	struct attr a = { .size = FILE_BYTES_MAX };
	inum_t ino = unitvol_file(&t, "file");
	uint64_t at;
	size_t nr;
	char buf[100];

	must(volume_setattr(t.v, ino, VOLUME_SET_SIZE, &a, &a));
	cr_assert_eq(a.size, INT64_MAX);
	cr_assert_eq(a.blocks, 0);
	must(volume_read(t.v, ino, INT64_MAX - 10, 100, buf, &nr));
	cr_assert_eq(nr, 10);
	for (unsigned int i = 0; i < 10; i++)
		cr_assert_eq(buf[i], 0);
	must(volume_read(t.v, ino, INT64_MAX, 100, buf, &nr));
	cr_assert_eq(nr, 0);
	must(volume_read(t.v, ino, UINT64_MAX, 100, buf, &nr));
	cr_assert_eq(nr, 0);
	cr_assert_eq(volume_lseek(t.v, ino, 0, SEEK_DATA, &at), -ENXIO);
	must(volume_lseek(t.v, ino, 5, SEEK_HOLE, &at));
	cr_assert_eq(at, 5);
	/* The last byte of all. */
	must(volume_write(t.v, ino, INT64_MAX - 1, 1, "x", 0));
	cr_assert_eq(volume_write(t.v, ino, INT64_MAX, 1, "x", 0), -EFBIG);
	cr_assert_eq(volume_write(t.v, ino, INT64_MAX - 1, 2, "xx", 0), -EFBIG);
	cr_assert_eq(volume_write(t.v, ino, UINT64_MAX, 2, "xx", 0), -EFBIG);
	must(volume_lseek(t.v, ino, 0, SEEK_DATA, &at));
	cr_assert_eq(at, (uint64_t)INT64_MAX / BLOCK_BYTES * BLOCK_BYTES);
	must(volume_lseek(t.v, ino, at, SEEK_HOLE, &at));
	cr_assert_eq(at, INT64_MAX);
	must(volume_read(t.v, ino, INT64_MAX - 2, 9, buf, &nr));
	cr_assert_eq(nr, 2);
	cr_assert_eq(buf[1], 'x');
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
	unitvol_open(&t);
	must(volume_fallocate(t.v, ino,
			      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1,
			      INT64_MAX - 1));
	must(volume_getattr(t.v, ino, &a));
	cr_assert_eq(a.size, INT64_MAX);
	a.size = 3;
	must(volume_setattr(t.v, ino, VOLUME_SET_SIZE, &a, &a));
	a.size = (uint64_t)INT64_MAX + 1;
	cr_assert_eq(volume_setattr(t.v, ino, VOLUME_SET_SIZE, &a, &a), -EFBIG);
	cr_assert_eq(volume_fallocate(t.v, ino, 0, INT64_MAX, 1), -EFBIG);
	cr_assert_eq(volume_fallocate(t.v, ino, 0, 0, 0), -EINVAL);
	cr_assert_eq(volume_fallocate(t.v, ino, 0, 0, INT64_MAX), -ENOSPC);
	cr_assert_eq(volume_fallocate(t.v, ino, FALLOC_FL_COLLAPSE_RANGE, 0,
				      4096),
		     -EOPNOTSUPP);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
}

/* TD6: what is cut off in a block does not come back when the size does. */
Test(volume, TD6_bytes_past_the_end_are_zero)
{
	inum_t ino = unitvol_file(&t, "file");
	struct attr a = { 0 };
	uint8_t buf[2 * BLOCK_BYTES];
	size_t nr;

	for (unsigned int keep = 1; keep < BLOCK_BYTES; keep += 511) {
		unitvol_write(&t, ino, 0, 2, 0xee);
		a.size = keep;
		must(volume_setattr(t.v, ino, VOLUME_SET_SIZE, &a, &a));
		a.size = 2 * BLOCK_BYTES;
		must(volume_setattr(t.v, ino, VOLUME_SET_SIZE, &a, &a));
		must(volume_read(t.v, ino, 0, sizeof(buf), buf, &nr));
		cr_assert_eq(nr, sizeof(buf));
		for (unsigned int i = 0; i < sizeof(buf); i++)
			cr_assert_eq(buf[i], i < keep ? 0xee : 0);
	}
}

/* ---- damage to data */

Test(volume, wrong_data_is_never_shown)
{
	inum_t ino = unitvol_file(&t, "file");
	uint8_t *buf = malloc(16 * BLOCK_BYTES);
	struct extent e;
	struct txn x;
	size_t nr;

	unitvol_write(&t, ino, 0, 16, 7);
	unitvol_sync(&t);
	must(txn_begin(&x, t.v, TXN_READ, 0, 0));
	txn_lock(&x);
	must(extent_at_or_after(&x, ino, 0, &e));
	txn_unlock(&x);
	txn_end(&x);
	emudev_flip_bit(t.d, e.block + 9, 12345);
	cr_assert_eq(unitvol_read(&t, ino, 8), 7);
	cr_assert_eq(unitvol_read(&t, ino, 10), 7);
	cr_assert_eq(volume_read(t.v, ino, 9 * BLOCK_BYTES, 1, buf, &nr),
		     -EBADMSG);
	cr_assert(unitvol_said(&t, "blocks 9 to 9 cannot be read"), "%s",
		  t.said);
	cr_assert(!volume_is_read_only(t.v));
	/* A whole block over it heals; a piece cannot. */
	cr_assert_eq(volume_write(t.v, ino, 9 * BLOCK_BYTES, 1, "x", 0),
		     -EBADMSG);
	unitvol_write(&t, ino, 9, 1, 8);
	cr_assert_eq(unitvol_read(&t, ino, 9), 8);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
	free(buf);
}

Test(volume, root_belongs_to_who_made_it)
{
	struct attr a;

	must(volume_getattr(t.v, VOLUME_ROOT, &a));
	cr_assert_eq(a.mode, S_IFDIR | 0700);
	cr_assert_eq(a.uid, 1000);
	cr_assert_eq(a.gid, 100);
	cr_assert_eq(a.nlink, 2);
	cr_assert_eq(volume_getattr(t.v, 2, &a), -ENOENT);
	must(volume_lookup(t.v, VOLUME_ROOT, "..", &a));
	cr_assert_eq(a.ino, VOLUME_ROOT);
}

Test(volume, inode_numbers_are_not_reused)
{
	inum_t last = 0;

	for (unsigned int i = 0; i < 20; i++) {
		inum_t ino = unitvol_file(&t, "file");

		cr_assert_geq(ino, INUM_FIRST);
		cr_assert_gt(ino, last);
		last = ino;
		unitvol_unlink(&t, "file");
		volume_reap(t.v, ino);
		unitvol_close(&t);
		unitvol_open(&t);
	}
}

Test(volume, statfs_tells_what_can_be_written)
{
	struct volume_statfs before, after;
	inum_t ino;
	uint64_t done = 0;

	emudev_set_host_limit(t.d, DISK_BYTES);
	ino = unitvol_file(&t, "file");
	must(volume_statfs(t.v, &before));
	while (done < before.free) {
		unsigned int nr = before.free - done < 256
					  ? (unsigned int)(before.free - done)
					  : 256;

		unitvol_write(&t, ino, done, nr, 1);
		done += nr;
	}
	must(volume_statfs(t.v, &after));
	cr_assert_leq(after.free, 64);
	cr_assert_lt(after.free, before.free);
	cr_assert_eq(after.fsid, before.fsid);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
}

/* Where a folder's chain of parents has no end. */
Test(volume, rename_below_a_loop_of_folders_ends)
{
	inum_t a, b, c;
	struct disk_inode d;
	struct key key;
	int err;

	a = unitvol_make(&t, VOLUME_ROOT, "a", S_IFDIR | 0700);
	b = unitvol_make(&t, a, "b", S_IFDIR | 0700);
	c = unitvol_make(&t, VOLUME_ROOT, "c", S_IFDIR | 0700);
	unitvol_close(&t);
	unitvol_open(&t);
	key = key_of(a, ITEM_INODE, 0);
	cr_assert_eq(unitvol_item(&t, &t.v->ft, key, &d, sizeof(d)),
		     (int)sizeof(d));
	d.parent = le64_of(b);
	unitvol_plant(&t, key, &d, sizeof(d));
	err = volume_rename(t.v, VOLUME_ROOT, "c", b, "c", 0, NULL);
	cr_assert_eq(err, -EUCLEAN);
	must(volume_getattr(t.v, c, &(struct attr){ 0 }));
}

/* Under write-back caching times come apart from the data, or not at all. */

static inum_t file_of_2001(const char *name)
{
	inum_t ino = unitvol_file(&t, name);
	const struct attr old = { .mtime = { .tv_sec = 1000000000 },
				  .ctime = { .tv_sec = 1000000001 } };
	struct attr a;

	must_be_0(volume_setattr(t.v, ino, VOLUME_SET_MTIME | VOLUME_SET_CTIME,
				 &old, &a),
		  name);
	return ino;
}

static void write_cached(inum_t ino)
{
	must_be_0(volume_write(t.v, ino, 0, 3, "new", VOLUME_WRITE_CACHED),
		  "write");
}

static bool is_of_2001(inum_t ino)
{
	struct attr a;

	must_be_0(volume_getattr(t.v, ino, &a), "getattr");
	cr_assert_eq(a.mtime.tv_sec == 1000000000, a.ctime.tv_sec == 1000000001,
		     "both or neither");
	return a.mtime.tv_sec == 1000000000;
}

Test(volume, TD8_a_crash_leaves_no_new_data_under_an_old_mtime)
{
	inum_t ino = file_of_2001("f");

	write_cached(ino);
	unitvol_sync(&t);
	unitvol_reopen(&t);
	cr_assert(!is_of_2001(ino));
}

Test(volume, TD8_times_that_the_kernel_does_not_send_stay)
{
	inum_t synced = file_of_2001("synced"), closed = file_of_2001("closed");

	write_cached(synced);
	write_cached(closed);
	cr_assert(!is_of_2001(synced));
	must_be_0(volume_fsync(t.v, synced), "fsync");
	cr_assert(is_of_2001(synced));
	cr_assert(!is_of_2001(closed));
	unitvol_close(&t);
	unitvol_open(&t);
	cr_assert(is_of_2001(synced));
	cr_assert(is_of_2001(closed));
}

Test(volume, TD8_times_that_the_kernel_sends_stay)
{
	inum_t ino = file_of_2001("f");
	const struct attr sent = { .mtime = { .tv_sec = 1500000000 },
				   .ctime = { .tv_sec = 1500000001 } };
	struct attr a;

	write_cached(ino);
	must_be_0(volume_setattr(t.v, ino, VOLUME_SET_MTIME | VOLUME_SET_CTIME,
				 &sent, &a),
		  "setattr");
	must_be_0(volume_fsync(t.v, ino), "fsync");
	unitvol_close(&t);
	unitvol_open(&t);
	must_be_0(volume_getattr(t.v, ino, &a), "getattr");
	cr_assert_eq(a.mtime.tv_sec, 1500000000);
	cr_assert_eq(a.ctime.tv_sec, 1500000001);
}

Test(volume, TD8_a_change_of_mode_in_between_keeps_its_ctime)
{
	inum_t ino = file_of_2001("f");
	const struct attr mode = { .mode = 0600,
				   .ctime = { .tv_sec = 1400000000 } };
	struct attr a;

	write_cached(ino);
	must_be_0(volume_setattr(t.v, ino, VOLUME_SET_MODE | VOLUME_SET_CTIME,
				 &mode, &a),
		  "setattr");
	must_be_0(volume_fsync(t.v, ino), "fsync");
	must_be_0(volume_getattr(t.v, ino, &a), "getattr");
	cr_assert_eq(a.mtime.tv_sec, 1000000000);
	cr_assert_eq(a.ctime.tv_sec, 1400000000);
}

Test(volume, a_size_that_stays_moves_no_time_of_a_caller)
{
	inum_t ino = unitvol_file(&t, "f");
	const struct attr old = { .mtime = { .tv_sec = 1000000000 },
				  .ctime = { .tv_sec = 1000000001 } };
	struct attr a, size = { .size = 0 };

	must_be_0(volume_setattr(t.v, ino, VOLUME_SET_MTIME | VOLUME_SET_CTIME,
				 &old, &a),
		  "times");
	must_be_0(volume_setattr(t.v, ino,
				 VOLUME_SET_SIZE | VOLUME_TIMES_ARE_CALLERS,
				 &size, &a),
		  "same");
	cr_assert(is_of_2001(ino));
	size.size = 1;
	must_be_0(volume_setattr(t.v, ino,
				 VOLUME_SET_SIZE | VOLUME_TIMES_ARE_CALLERS,
				 &size, &a),
		  "more");
	cr_assert(!is_of_2001(ino));
}
