/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Inodes without a name, and files being cut: an item says that there is work
 * left, so that a crash at any time leaves it to the next mount.
 */
#ifndef FS_ORPHAN_H
#define FS_ORPHAN_H

#include "fs/inode.h"

/* The path of the item: 0 or -EAGAIN. */
must_check int orphan_prepare(struct txn *t, inum_t inum);
/* Under LOCK_TREE, prepared. */
void orphan_put(struct txn *t, inum_t inum);
/* It need not be there. */
must_check int orphan_find(struct txn *t, inum_t inum);
void orphan_remove(struct txn *t, inum_t inum);

/*
 * Finish the work on @inum: without a name it is deleted, else what lies beyond
 * its size is.  In steps that each fit a commit.  Takes LOCK_INODE; the caller
 * holds nothing.  Returns 0 or negative errno; the item stays then.
 */
must_check int orphan_finish(struct volume *v, inum_t inum);
/*
 * Delete only what lies beyond the size of an inode that is held, with its
 * data_lock held exclusively.  One without a name may still be in use: it, and
 * its item, stay.
 */
must_check int orphan_cut_locked(struct volume *v, struct inode *in);
/* Finish all that have an item, but for those that cannot be read. */
must_check int orphan_sweep(struct volume *v);

#endif
