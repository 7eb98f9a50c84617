/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The map of a file: which of its blocks lie where, under which nonce, with
 * which tags.
 *
 * All under LOCK_TREE.
 */
#ifndef FS_EXTENT_H
#define FS_EXTENT_H

#include "fs/inode.h"
#include "fs/item.h"

#define LOGICAL_MAX ((uint64_t)1 << 51)

/* A copy of what is mapped in a range, in order; holes are left out. */
struct extent_list {
	unsigned int nr, room;
	struct extent *e;
	uint8_t *tags;		/* 16 bytes a block of room, in order of e[] */
};

/* For up to @blocks blocks.  Returns 0 or -ENOMEM. */
must_check int extent_list_init(struct extent_list *l, unsigned int blocks);
void extent_list_destroy(struct extent_list *l);
/* Position in l->tags of the first tag of extent @i. */
const uint8_t *extent_list_tags(const struct extent_list *l, unsigned int i);

/* What is mapped in [first, first + nr), cut to it.  0 or -EAGAIN. */
must_check int extent_list_get(struct txn *t, inum_t inum, uint64_t first,
			       unsigned int nr, struct extent_list *l);

/* The first extent that ends above @logical: 0, -ENOENT, -EAGAIN. */
must_check int extent_at_or_after(struct txn *t, inum_t inum,
				  uint64_t logical, struct extent *e);

/* All that extent_replace() will look at in the range.  0 or -EAGAIN. */
must_check int extent_prepare(struct txn *t, inum_t inum, uint64_t first,
			      uint64_t nr);

/*
 * Map [first, first + nr) to @l (which covers it wholly, or is empty: a hole),
 * freeing what was there, and count in->i.blocks.  Prepared; room for
 * 2 * nr + 2 ranges.  Blocks of @l become owned and born in this epoch.
 */
void extent_replace(struct txn *t, struct inode *in, uint64_t first,
		    uint64_t nr, const struct extent_list *l);

/*
 * Unmap at most @max extents that lie in [first, end), from the first on.
 * *next is where to go on, @end if all is done.  Prepares by itself: nothing was
 * changed when it returns -EAGAIN or -ENOMEM.
 */
must_check int extent_cut(struct txn *t, struct inode *in, uint64_t first,
			  uint64_t end, unsigned int max, uint64_t *next);

/* How many paths to promise for @items items in one range of keys. */
unsigned int extent_paths(const struct volume *v, unsigned int items);

#endif
