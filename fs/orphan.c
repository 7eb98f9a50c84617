/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fs/orphan.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "fs/extent.h"
#include "fs/file.h"
#include "fs/vol.h"

static struct key orphan_key(inum_t inum)
{
	return key_of(0, ITEM_ORPHAN, inum);
}

int orphan_prepare(struct txn *t, inum_t inum)
{
	struct key key = orphan_key(inum);

	return tree_prepare(&t->v->ft, &key, &t->fault);
}

void orphan_put(struct txn *t, inum_t inum)
{
	struct key key = orphan_key(inum);

	tree_put(&t->v->ft, &key, "", 0);
}

int orphan_find(struct txn *t, inum_t inum)
{
	struct key key = orphan_key(inum);
	struct tree_pos pos;

	return tree_find(&t->v->ft, &key, &pos, &t->fault);
}

void orphan_remove(struct txn *t, inum_t inum)
{
	struct key key = orphan_key(inum);

	tree_remove(&t->v->ft, &key);
}

/* Items that one step removes. */
static unsigned int step_items(const struct volume *v)
{
	return v->store.max_items == UINT_MAX ? 256 : 12;
}

/* Remove up to @max items that are neither the inode's own nor extents. */
static int remove_others(struct txn *t, inum_t inum, unsigned int max,
			 bool *done)
{
	struct key first = key_of(inum, ITEM_INODE + 1, 0), last = first;
	struct key key[256];
	struct tree_pos pos;
	unsigned int nr = 0;
	int err;

	assert(max <= 256);
	while (nr < max) {
		err = tree_next(&t->v->ft, nr ? &last : &first, &pos,
				&t->fault);
		if (err == -ENOENT || (!err && pos.key.inum != inum))
			break;
		if (err)
			return err;
		if (pos.key.type == ITEM_EXTENT)
			break;
		key[nr] = last = pos.key;
		last.offset++;
		nr++;
	}
	*done = nr < max;
	if (!nr)
		return 0;
	err = tree_prepare_range(&t->v->ft, &first, &key[nr - 1], &t->fault);
	if (!err)
		err = txn_ready(t, 0);
	for (unsigned int i = 0; !err && i < nr; i++)
		tree_remove(&t->v->ft, &key[i]);
	return err;
}

enum work {
	WORK_CUT,	/* what lies beyond the size */
	WORK_ALL,	/* without a name the inode too */
};

/* One step of the work on @in; *done: nothing is left. */
static int step(struct txn *t, struct inode *in, enum work work, bool *done)
{
	unsigned int max = step_items(t->v);
	bool dead = work == WORK_ALL && !in->i.nlink;
	uint64_t from = 0, next;
	bool rest;
	int err;

	*done = false;
	err = orphan_find(t, in->inum);
	if (err == -ENOENT)
		*done = true;
	if (err)
		return *done ? 0 : err;
	if (!dead)
		from = (in->i.size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	err = inode_prepare(t, in);
	if (!err)
		err = extent_cut(t, in, from, LOGICAL_MAX, max, &next);
	if (err)
		return err;
	inode_dirty(t, in);
	if (next < LOGICAL_MAX)
		return 0;
	if (dead) {
		err = remove_others(t, in->inum, max, &rest);
		if (err || !rest)
			return err;
	}
	/* In use without a name: the item is there for that. */
	if (!dead && !in->i.nlink) {
		*done = true;
		return 0;
	}
	err = orphan_prepare(t, in->inum);
	if (!err)
		err = txn_ready(t, 0);
	if (err)
		return err;
	orphan_remove(t, in->inum);
	if (dead)
		inode_delete(t, in);
	*done = true;
	return 0;
}

static int finish_locked(struct volume *v, struct inode *in, enum work work)
{
	bool done = false;
	int err = 0;

	while (!err && !done) {
		unsigned int paths = 3 + 2 * extent_paths(v, step_items(v));
		struct txn t;

		err = txn_begin(&t, v, TXN_DELETE, paths, 0);
		if (err)
			return err;
		txn_lock(&t);
		do {
			/* Steps already made stay made when a later faults. */
			err = in->gone ? 0 : step(&t, in, work, &done);
			done = done || in->gone;
		} while (txn_retry(&t, &err));
		txn_unlock(&t);
		txn_end(&t);
	}
	return err;
}

int orphan_cut_locked(struct volume *v, struct inode *in)
{
	return finish_locked(v, in, WORK_CUT);
}

int orphan_finish(struct volume *v, inum_t inum)
{
	struct inode *in;
	int err = file_get(v, inum, &in);

	if (err == -ENOENT)
		return 0;
	if (err)
		return err;
	file_lock_exclusive(in);
	err = finish_locked(v, in, WORK_ALL);
	file_unlock(in);
	file_put(v, in);
	return err;
}

/* The first that has an item, from @from on; 0: none. */
static int next_orphan(struct volume *v, inum_t from, inum_t *out)
{
	struct key key = orphan_key(from);
	struct tree_pos pos;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	*out = 0;
	txn_lock(&t);
	do {
		err = tree_next(&v->ft, &key, &pos, &t.fault);
	} while (txn_retry(&t, &err));
	if (!err && !pos.key.inum && pos.key.type == ITEM_ORPHAN)
		*out = pos.key.offset;
	txn_unlock(&t);
	txn_end(&t);
	return err == -ENOENT ? 0 : err;
}

int orphan_sweep(struct volume *v)
{
	inum_t inum = 0;
	int err;

	while (!(err = next_orphan(v, inum + 1, &inum)) && inum) {
		err = orphan_finish(v, inum);
		/* One that is damaged keeps its item; the others can go. */
		if (err && err != -EBADMSG && err != -EUCLEAN && err != -EIO)
			break;
	}
	return err;
}
