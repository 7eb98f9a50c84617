/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Changing the size of a file.  Bytes past the end of file in the last block
 * are always zero (TD6), so a cut inside a block writes that block anew.
 */
#include <errno.h>
#include <string.h>

#include "fs/blocks.h"
#include "fs/extent.h"
#include "fs/file.h"
#include "fs/orphan.h"
#include "fs/vol.h"

/* Whether blocks with content lie beyond the size. */
static int written_beyond(struct volume *v, struct inode *in, bool *yes)
{
	uint64_t at = blocks_of(file_size(v, in));
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		while (!(err = extent_at_or_after(&t, in->inum, at, &e)) &&
		       e.flags & EXTENT_UNWRITTEN)
			at = e.logical + e.nr;
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	*yes = !err;
	return err == -ENOENT ? 0 : err;
}

/*
 * A cut that met an error left old blocks beyond the size.  They must go before
 * the size grows over them, or what was cut off would be there again.  The
 * caller holds data_lock exclusively.
 */
int file_finish_cut(struct volume *v, struct inode *in)
{
	bool yes;
	int err = written_beyond(v, in, &yes);

	return err || !yes ? err : orphan_cut_locked(v, in);
}

struct size_change {
	uint64_t size;
	void (*change)(void *arg, struct inode *in);
	void *arg;
};

static void size_done(void *arg, struct inode *in)
{
	struct size_change *c = arg;

	in->i.size = c->size;
	c->change(c->arg, in);
}

/*
 * Set the size alone; *more: it was cut, and extents lie beyond it now.  (A
 * size that grows leaves what was reserved beyond the end.)
 */
static int set_size(struct volume *v, struct inode *in, struct size_change *c,
		    bool *more)
{
	uint64_t end = (c->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_DELETE, 2, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = in->gone ? -ENOENT
			       : extent_at_or_after(&t, in->inum, end, &e);
		*more = !err && c->size <= in->i.size;
		if (err == -ENOENT && !in->gone)
			err = 0;
		if (!err)
			err = inode_prepare(&t, in);
		if (!err)
			err = orphan_prepare(&t, in->inum);
		if (!err)
			err = txn_ready(&t, 0);
	} while (txn_retry(&t, &err));
	if (!err) {
		size_done(c, in);
		inode_dirty(&t, in);
		if (*more)
			orphan_put(&t, in->inum);
	}
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

/*
 * The size stays, so that a crash after this shows zeros where the cut was
 * about to come.
 */
int file_zero_in_block(struct volume *v, struct inode *in, uint64_t from,
		       uint64_t to)
{
	uint64_t first = from / BLOCK_BYTES;
	uint8_t block[BLOCK_BYTES];
	bool written;
	int err = blocks_written(v, in, first, &written);

	if (err || !written)
		return err;
	err = blocks_read(v, in->inum, first, 1, block);
	if (err)
		return err;
	memset(block + from % BLOCK_BYTES, 0, to - from);
	return blocks_put(v, TXN_OVERWRITE, in, first, 1, block, blocks_keep,
			  NULL);
}

/* The last block written anew, cut at @size, with the size in one step. */
static int cut_in_block(struct volume *v, struct inode *in,
			struct size_change *c)
{
	uint64_t first = c->size / BLOCK_BYTES;
	size_t keep = c->size % BLOCK_BYTES;
	uint8_t block[BLOCK_BYTES];
	int err = blocks_read(v, in->inum, first, 1, block);

	if (err)
		return err;
	memset(block + keep, 0, BLOCK_BYTES - keep);
	return blocks_put(v, TXN_OVERWRITE, in, first, 1, block, size_done, c);
}

/* Whether anything is mapped from block @end on. */
static int any_beyond(struct volume *v, struct inode *in, uint64_t end,
		      bool *yes)
{
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = extent_at_or_after(&t, in->inum, end, &e);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	*yes = !err;
	return err == -ENOENT ? 0 : err;
}

int file_set_size(struct volume *v, struct inode *in, uint64_t size,
		  void (*change)(void *arg, struct inode *in), void *arg)
{
	struct size_change c = { size, change, arg };
	uint64_t end = (size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	bool more = false, written = false;
	int err = 0;

	if (size > file_size(v, in))
		err = file_finish_cut(v, in);
	else if (size < file_size(v, in) && size % BLOCK_BYTES)
		err = blocks_written(v, in, size / BLOCK_BYTES, &written);
	if (!err && written)
		err = any_beyond(v, in, end, &more);
	if (err)
		return err;
	if (written && !more)
		return cut_in_block(v, in, &c);
	/*
	 * A cut inside a block that has blocks behind it goes in steps, each of
	 * which a crash may show: zeros up to the block's end, then the size
	 * with a mark that there is work left, then the rest.
	 */
	if (written)
		err = file_zero_in_block(v, in, size, end * BLOCK_BYTES);
	if (!err)
		err = set_size(v, in, &c, &more);
	if (!err && more)
		err = orphan_cut_locked(v, in);
	return err;
}
