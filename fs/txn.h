/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Operations on the trees: admission, the lock, and the reading of nodes that
 * are not in memory.
 *
 *	err = txn_begin(&t, v, TXN_GROW, 3, 0);
 *	if (err)
 *		return err;
 *	txn_lock(&t);
 *	do {
 *		err = look up; prepare every path; txn_ready(); change;
 *	} while (txn_retry(&t, &err));
 *	txn_unlock(&t);
 *	txn_end(&t);
 *
 * Everything an operation may need is promised before it takes the lock or
 * changes anything (DESIGN.md, "Space"), so nothing can fail half-way.
 */
#ifndef FS_TXN_H
#define FS_TXN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/tree.h"
#include "fs/types.h"

struct volume;

enum txn_class {
	TXN_READ,	/* changes nothing */
	TXN_GROW,	/* needs new space: -ENOSPC when there is none */
	TXN_OVERWRITE,	/* replaces own blocks: waits for commits */
	TXN_DELETE,	/* gives space up: admitted on a full volume */
};

struct txn {
	struct volume *v;
	enum txn_class class;
	size_t nodes;		/* promised */
	uint32_t blocks;	/* promised data blocks, not yet taken */
	uint32_t unwritten;	/* of them will be mapped as unwritten */
	struct fault fault;
	struct node **pin;	/* nodes read for this operation */
	size_t nr_pins, room_pins;
	struct node *pins[16];	/* first room */
};

/*
 * Reserve an operation's worst case; may commit and wait.  The caller holds no
 * lock above LOCK_INODE.
 *
 * @paths   items in different places of the file tree that it will change
 * @blocks  data blocks that it will allocate
 *
 * Returns 0, -EROFS, -ENOSPC, -ENOMEM.
 */
must_check int txn_begin(struct txn *t, struct volume *v, enum txn_class class,
			 unsigned int paths, uint32_t blocks);
/* TXN_GROW for blocks that are mapped without being written. */
must_check int txn_begin_unwritten(struct txn *t, struct volume *v,
				   unsigned int paths, uint32_t blocks);
/* The same without waiting and without blocks: -EBUSY instead. */
must_check int txn_begin_now(struct txn *t, struct volume *v,
			     enum txn_class class, unsigned int paths);
void txn_end(struct txn *t);

void txn_lock(struct txn *t);
void txn_unlock(struct txn *t);

/*
 * With the lock held, after a body returned *err: if that is -EAGAIN, read the
 * missing node (the lock is dropped meanwhile) and return true: do it again.
 * Else, or if reading failed (*err says why), false; the lock is held.
 */
bool txn_retry(struct txn *t, int *err);

/* Let go of the nodes read so far.  Under the lock. */
void txn_unpin(struct txn *t);

/*
 * The last step before the first change: room for the deltas of all promised
 * nodes and @ranges more.  Returns 0 or -ENOMEM.
 */
must_check int txn_ready(struct txn *t, size_t ranges);

/* Allocated blocks are no longer promised. */
void txn_took(struct txn *t, uint32_t blocks);

/* Blocks that could still be promised to growing operations, under the lock. */
uint64_t txn_available(struct volume *v);

/* Largest number of nodes a commit writes, and what is kept free for them. */
uint64_t txn_commit_nodes(const struct volume *v);

/*
 * Make the container larger by some MiB, unless it is no longer @seen blocks
 * large.  Caller holds nothing above LOCK_INODE.  Returns 0, -ENOSPC (limit,
 * host, device), -EIO, -ENOMEM.
 */
must_check int txn_grow_container(struct volume *v, uint64_t seen);

#endif
