/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Data of regular files: what volume_read(), volume_write() and the change of
 * a size are made of.
 */
#ifndef FS_FILE_H
#define FS_FILE_H

#include "fs/inode.h"

/*
 * Set the size, with the other changes that @change makes to the inode in the
 * same transaction (LOCK_TREE held).  The caller holds @in, and its data_lock
 * exclusively.  Returns 0 or negative errno.
 */
must_check int file_set_size(struct volume *v, struct inode *in, uint64_t size,
			     void (*change)(void *arg, struct inode *in),
			     void *arg);

/*
 * A cut that met an error left old blocks beyond the size.  They must go before
 * the size grows over them, or what was cut off would be there again.  The
 * caller holds data_lock exclusively.
 */
must_check int file_finish_cut(struct volume *v, struct inode *in);

/*
 * Zero [from, to) within one block, if that has content; the size stays.  The
 * caller holds data_lock exclusively.
 */
must_check int file_zero_in_block(struct volume *v, struct inode *in,
				  uint64_t from, uint64_t to);

/* The inode, held, or an error.  Give it back with file_put(). */
must_check int file_get(struct volume *v, inum_t ino, struct inode **out);
/* The same, and -EISDIR or -EINVAL for what is no regular file. */
must_check int file_get_regular(struct volume *v, inum_t ino,
				struct inode **out);
/* Its size now; takes LOCK_TREE. */
uint64_t file_size(struct volume *v, const struct inode *in);
void file_put(struct volume *v, struct inode *in);

/* data_lock with its rank. */
void file_lock_shared(struct inode *in);
void file_lock_exclusive(struct inode *in);
void file_unlock(struct inode *in);

#endif
