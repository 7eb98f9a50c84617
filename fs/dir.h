/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Entries of folders as items.  An entry's key is its cookie: 55 bits of a
 * keyed hash of the name and 8 bits that tell names of one hash apart, fixed for
 * the entry's life, so that readdir goes on where it was whatever comes and
 * goes.
 *
 * All under LOCK_TREE, but dir_hash().
 */
#ifndef FS_DIR_H
#define FS_DIR_H

#include "fs/inode.h"

/* Cookies of "." and ".."; those of names are 256 and above. */
#define DIR_COOKIE_SELF 1
#define DIR_COOKIE_PARENT 2

struct dir_name {
	const char *s;
	size_t len;
	uint64_t cookie;	/* the hash's first cookie */
};

struct dir_entry {
	uint64_t cookie;
	inum_t inum;
	uint8_t type;		/* DT_* */
};

/*
 * Check and hash a name.  Takes no lock of ours; do it before LOCK_TREE.
 * Returns 0, -ENAMETOOLONG, or -EINVAL (empty, or with a slash).
 */
must_check int dir_hash(struct volume *v, const char *s, struct dir_name *n);

/* 0, -ENOENT, -EAGAIN. */
must_check int dir_find(struct txn *t, inum_t dir, const struct dir_name *n,
			struct dir_entry *e);

/*
 * The inode that an entry names: 0, -EUCLEAN if it is not there (damage, not
 * absence), -EAGAIN, -ENOMEM.
 */
must_check int dir_entry_inode(struct txn *t, const struct dir_entry *e,
			       struct inode **out);

/*
 * A cookie for a new entry, with its path prepared.  0, -EAGAIN, -ENOSPC (256
 * names of one hash).
 */
must_check int dir_new_cookie(struct txn *t, inum_t dir,
			      const struct dir_name *n, uint64_t *cookie);

/* The path of an entry that is there: 0 or -EAGAIN. */
must_check int dir_prepare(struct txn *t, inum_t dir, uint64_t cookie);

/* Insert, or point an existing entry of that name elsewhere; prepared. */
void dir_put(struct txn *t, inum_t dir, uint64_t cookie,
	     const struct dir_name *n, inum_t inum, uint32_t mode);
void dir_remove(struct txn *t, inum_t dir, uint64_t cookie);

#endif
