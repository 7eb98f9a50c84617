/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The thread that commits by the clock and deletes what has no name.
 */
#ifndef FS_WORKER_H
#define FS_WORKER_H

#include "fs/types.h"

struct volume;

/* Returns 0 or negative errno.  Without it nothing is done by the clock. */
must_check int worker_start(struct volume *v);
/* Ends the thread; what it was asked to delete stays an orphan. */
void worker_stop(struct volume *v);
/* Delete @inum soon.  Returns 0, or -ENOMEM: it stays an orphan. */
must_check int worker_reap(struct volume *v, inum_t inum);

#endif
