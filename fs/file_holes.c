/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Holes, and blocks without content: fallocate(2) and lseek(2).
 */
#include <errno.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "fs/blocks.h"
#include "fs/extent.h"
#include "fs/file.h"
#include "fs/vol.h"

/* ---- making holes */

struct hole_change {
	struct timespec now;
	uint64_t end;
};

static void touch_times(void *arg, struct inode *in)
{
	const struct hole_change *c = arg;

	in->i.mtime = in->i.ctime = c->now;
	if (in->i.size < c->end)
		in->i.size = c->end;
}

static int cut_step(struct volume *v, struct inode *in, uint64_t *at,
		    uint64_t end)
{
	unsigned int max = blocks_chunk(v);
	uint64_t next = end;
	struct txn t;
	/* A hole in the middle of an extent makes two of it. */
	int err = txn_begin(&t, v, TXN_OVERWRITE, 1 + extent_paths(v, max), 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = in->gone ? -ENOENT : inode_prepare(&t, in);
		if (!err)
			err = extent_cut(&t, in, *at, end, max, &next);
		if (!err)
			inode_dirty(&t, in);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	*at = next;
	return err;
}

/* Make [from, to) read as zeros, without touching the size. */
static int zero_range(struct volume *v, struct inode *in, uint64_t from,
		      uint64_t to)
{
	uint64_t first = (from + BLOCK_BYTES - 1) / BLOCK_BYTES;
	uint64_t end = to / BLOCK_BYTES;
	int err = 0;

	if (first > end)
		return file_zero_in_block(v, in, from, to);
	if (from % BLOCK_BYTES)
		err = file_zero_in_block(v, in, from, first * BLOCK_BYTES);
	if (!err && to % BLOCK_BYTES)
		err = file_zero_in_block(v, in, end * BLOCK_BYTES, to);
	while (!err && first < end)
		err = cut_step(v, in, &first, end);
	return err;
}

static int change_inode(struct volume *v, struct inode *in,
			void (*change)(void *arg, struct inode *in), void *arg)
{
	struct txn t;
	int err = txn_begin(&t, v, TXN_DELETE, 1, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = in->gone ? -ENOENT : inode_prepare(&t, in);
		if (!err)
			err = txn_ready(&t, 0);
	} while (txn_retry(&t, &err));
	if (!err) {
		change(arg, in);
		inode_dirty(&t, in);
	}
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

/* ---- blocks without content */

/* Most blocks that one transaction maps as unwritten. */
#define UNWRITTEN_BLOCKS 4096u

/* The first hole in [at, end), cut to a step; *nr is 0 if there is none. */
static int find_hole(struct volume *v, struct inode *in, uint64_t at,
		     uint64_t end, uint64_t *first, unsigned int *nr)
{
	uint64_t most = v->store.max_items == UINT32_MAX ? UNWRITTEN_BLOCKS
							 : 16;
	struct extent e = { 0 };
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	*first = at;
	txn_lock(&t);
	do {
		while (!(err = extent_at_or_after(&t, in->inum, *first, &e)) &&
		       e.logical <= *first && *first < end)
			*first = e.logical + e.nr;
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	if (err && err != -ENOENT)
		return err;
	if (!err && e.logical < end)
		end = e.logical;
	*nr = *first >= end	    ? 0
	      : end - *first < most ? (unsigned int)(end - *first)
				    : (unsigned int)most;
	return 0;
}

/* Blocks of [first, end) that have no place yet. */
static int count_holes(struct volume *v, struct inode *in, uint64_t first,
		       uint64_t end, uint64_t *blocks)
{
	uint64_t at = first;
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	*blocks = 0;
	txn_lock(&t);
	do {
		err = 0;
		while (at < end) {
			err = extent_at_or_after(&t, in->inum, at, &e);
			if (err == -EAGAIN)
				break;
			if (err || e.logical >= end) {
				*blocks += end - at;
				break;
			}
			if (e.logical > at)
				*blocks += e.logical - at;
			at = e.logical + e.nr;
		}
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err == -ENOENT ? 0 : err;
}

/* Map all holes of [first, end), or none if there is no room for them. */
static int fill_holes(struct volume *v, struct inode *in, uint64_t first,
		      uint64_t end)
{
	struct volume_statfs fs;
	uint64_t blocks;
	unsigned int nr;
	int err = count_holes(v, in, first, end, &blocks);

	if (!err)
		err = volume_statfs(v, &fs);
	if (!err && blocks > fs.free)
		err = -ENOSPC;
	while (!err && blocks && first < end) {
		err = find_hole(v, in, first, end, &first, &nr);
		if (err || !nr)
			break;
		err = blocks_reserve(v, in, first, nr);
		first += nr;
	}
	return err;
}

static int fallocate_locked(struct volume *v, struct inode *in, int mode,
			    uint64_t offset, uint64_t end)
{
	struct hole_change change = { .now = vol_now(v) };
	uint64_t size = file_size(v, in);
	int err = 0;

	if (end > size && !(mode & FALLOC_FL_KEEP_SIZE))
		err = file_finish_cut(v, in);
	/* Past the end there is nothing but zeros. */
	if (!err && mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) &&
	    offset < blocks_of(size) * BLOCK_BYTES)
		err = zero_range(v, in, offset,
				 end < size ? end
					    : blocks_of(size) * BLOCK_BYTES);
	/* Unwritten blocks beyond the end are given up as well. */
	if (!err && mode & FALLOC_FL_PUNCH_HOLE && end > size) {
		uint64_t at = blocks_of(offset > size ? offset : size);

		while (!err && at < end / BLOCK_BYTES)
			err = cut_step(v, in, &at, end / BLOCK_BYTES);
	}
	if (!err && !(mode & FALLOC_FL_PUNCH_HOLE))
		err = fill_holes(v, in, offset / BLOCK_BYTES, blocks_of(end));
	if (err)
		return err;
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		change.end = end;
	return change_inode(v, in, touch_times, &change);
}

int volume_fallocate(struct volume *v, inum_t ino, int mode, uint64_t offset,
		     uint64_t len)
{
	struct inode *in;
	int err;

	switch (mode) {
	case 0:
	case FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_ZERO_RANGE:
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (!len || offset > FILE_BYTES_MAX)
		return -EINVAL;
	if (len > FILE_BYTES_MAX - offset)
		return -EFBIG;
	/* Else it would seem to be full. */
	if (volume_is_read_only(v))
		return -EROFS;
	err = file_get_regular(v, ino, &in);
	if (err)
		return err == -EINVAL ? -ENODEV : err;
	file_lock_exclusive(in);
	err = fallocate_locked(v, in, mode, offset, offset + len);
	file_unlock(in);
	file_put(v, in);
	return err;
}

/* ---- finding holes */

static int seek(struct txn *t, const struct inode *in, uint64_t offset,
		int whence, uint64_t *out)
{
	uint64_t at = offset / BLOCK_BYTES, end;
	struct extent e;
	int err;

	if (offset >= in->i.size)
		return -ENXIO;
	end = (in->i.size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	for (; at < end; at = e.logical + e.nr) {
		bool hole;

		err = extent_at_or_after(t, in->inum, at, &e);
		if (err && err != -ENOENT)
			return err;
		hole = err || e.logical > at || e.flags & EXTENT_UNWRITTEN;
		if (whence == SEEK_HOLE && hole)
			break;
		if (whence == SEEK_DATA && err)
			return -ENXIO;
		if (whence == SEEK_DATA && !(e.flags & EXTENT_UNWRITTEN)) {
			if (e.logical > at)
				at = e.logical;
			break;
		}
	}
	if (whence == SEEK_DATA && at >= end)
		return -ENXIO;
	*out = at * BLOCK_BYTES > offset ? at * BLOCK_BYTES : offset;
	if (*out > in->i.size)
		*out = in->i.size;
	return 0;
}

int volume_lseek(struct volume *v, inum_t ino, uint64_t offset, int whence,
		 uint64_t *out)
{
	struct inode *in;
	struct txn t;
	int err;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	err = file_get_regular(v, ino, &in);
	if (err)
		return err;
	err = txn_begin(&t, v, TXN_READ, 0, 0);
	if (!err) {
		txn_lock(&t);
		do {
			err = seek(&t, in, offset, whence, out);
		} while (txn_retry(&t, &err));
		txn_unlock(&t);
		txn_end(&t);
	}
	file_put(v, in);
	return err;
}
