/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attributes that operations change on the side.
 */
#ifndef FS_ATTR_H
#define FS_ATTR_H

#include <time.h>

#include "fs/types.h"

struct inode;
struct inode_item;
struct volume;

/* @ino was read: move its atime as the mount's policy says; errors are lost. */
void attr_accessed(struct volume *v, inum_t ino);

/*
 * Under write-back caching a write may come long after the kernel has taken its
 * time stamp, and that time is sent apart, or not at all if it is the one that
 * the kernel was told last.  A crash in between would leave new data under an
 * old mtime, which backup programs skip (TD8).  So the time of the write stands
 * in, and is settled later: replaced by the kernel's, or taken back.
 *
 * attr_times_stand_in() and attr_times_told() are called under LOCK_TREE, the
 * latter when final times have come.  attr_settle() takes back what has stood in
 * since before the last commit, or all; its caller holds nothing.
 */
void attr_times_stand_in(struct volume *v, struct inode *in,
			 const struct timespec *now);
void attr_times_told(struct volume *v, struct inode *in);

enum attr_settle {
	ATTR_SETTLE_OLD,
	ATTR_SETTLE_ALL,
};
must_check int attr_settle(struct volume *v, enum attr_settle which);
/* The same for one inode, if it is in memory. */
must_check int attr_settle_one(struct volume *v, inum_t ino);

/* Clear setuid, and setgid where the group may execute. */
void attr_kill_suidgid(struct inode_item *i);

#endif
