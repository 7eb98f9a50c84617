/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Commits.  FORMAT.md, "Commit", has the order of writes and why it is safe.
 */
#ifndef FS_COMMIT_H
#define FS_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/types.h"

struct volume;

enum commit_why {
	COMMIT_TIMER,
	COMMIT_FSYNC,
	COMMIT_PRESSURE,
	COMMIT_CLOSE,		/* marks the container as clean */
};

/*
 * Return when everything that was done before this call is durable.  Several
 * callers share one commit.  Caller holds nothing above LOCK_INODE.
 *
 * COMMIT_PRESSURE makes a commit even if nothing has changed: freed blocks wait
 * for it.
 *
 * Returns 0, or the error that made the volume read-only.
 */
must_check int commit_sync(struct volume *v, enum commit_why why);

#endif
