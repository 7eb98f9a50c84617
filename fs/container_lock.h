/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * At most one writer has a container open, by whatever path (invariant I6).
 * Two locks on the open file say in which state its owner is:
 *
 *	flock	byte 0		another process that wants it
 *	-----	------		--------------------------------------
 *	free	free		gets it
 *	held	held		is told "in use", at once
 *	held	free		waits: the owner is just ending (or has not
 *				begun to serve, which ends one way or another)
 *
 * Both belong to the inode, so a symbolic link, a hard link or a bind mount
 * leads to the same locks, and to the open file, so they end with the
 * process however it ends.
 */
#ifndef FS_CONTAINER_LOCK_H
#define FS_CONTAINER_LOCK_H

#include "fs/types.h"

enum lock_kind {
	LOCK_SHARED, /* readers: other readers are welcome */
	LOCK_EXCLUSIVE,
};

/*
 * Take the flock on @fd, waiting up to @wait_seconds for an owner that does
 * not serve (any more).
 *
 * Returns 0, -EBUSY (*holder_pid, if not NULL, gets the owner's pid, or 0 if
 * it cannot be found out), or -errno of a file system without locks.
 */
must_check int lock_take(int fd, enum lock_kind kind, unsigned int wait_seconds,
			 int *holder_pid);

/* Lock byte 0 of @fd.  Returns 0, -EBUSY or -errno. */
must_check int lock_serve(int fd, enum lock_kind kind);
void lock_serve_end(int fd);

#endif
