/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Inodes in memory.  They are authoritative: changes are made here and written
 * to the leaves when a commit freezes, so that an unpacked file's five attribute
 * changes cost one walk of the tree.
 *
 * All under LOCK_TREE.
 */
#ifndef FS_INODE_H
#define FS_INODE_H

#include "fs/txn.h"
#include "fs/vol.h"

must_check int inode_table_init(struct inode_table *t, size_t limit);
void inode_table_destroy(struct inode_table *t);
/* Evict clean, unused ones down to the limit.  Not within an operation. */
void inode_table_shrink(struct inode_table *t);

/*
 * The inode, valid until the lock is dropped (inode_hold() to keep it).
 * 0, -ENOENT, -EAGAIN (t->fault), -ENOMEM.
 */
must_check int inode_get(struct txn *t, inum_t inum, struct inode **out);
/* The same, and -ENOTDIR if it is no folder. */
must_check int inode_get_dir(struct txn *t, inum_t inum, struct inode **out);

void inode_hold(struct inode *in);
void inode_put(struct volume *v, struct inode *in);

/* The leaf of @in's item is in memory: 0 or -EAGAIN. */
must_check int inode_prepare(struct txn *t, const struct inode *in);
/* @in->i was or will be changed; the path was prepared and promised. */
void inode_dirty(struct txn *t, struct inode *in);

/*
 * A new inode with @item, in the tree and in memory.  The path of its key was
 * prepared.  Returns NULL if there is no memory; nothing was changed then.
 */
struct inode *inode_new(struct txn *t, inum_t inum,
			const struct inode_item *item);
/* Remove it from tree and memory; prepared. */
void inode_delete(struct txn *t, struct inode *in);

/* At the freeze: write all changed ones into their leaves. */
void inode_flush(struct volume *v);

void inode_attr(const struct inode *in, struct attr *out);

#endif
