/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Data of regular files: what volume_read(), volume_write() and the change of
 * a size are made of.
 */
#ifndef FS_FILE_H
#define FS_FILE_H

#include "fs/inode.h"

/* Largest piece that one transaction reads or writes, in blocks. */
#define FILE_CHUNK_BLOCKS 256u

/*
 * Set the size, with the other changes that @change makes to the inode in the
 * same transaction (LOCK_TREE held).  The caller holds @in, and its data_lock
 * exclusively.  Returns 0 or negative errno.
 */
must_check int file_set_size(struct volume *v, struct inode *in, uint64_t size,
			     void (*change)(void *arg, struct inode *in),
			     void *arg);

/* The inode, held, or an error.  Give it back with file_put(). */
must_check int file_get(struct volume *v, inum_t ino, struct inode **out);
void file_put(struct volume *v, struct inode *in);

/* data_lock with its rank. */
void file_lock_shared(struct inode *in);
void file_lock_exclusive(struct inode *in);
void file_unlock(struct inode *in);

#endif
