/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * All locks of fs/, in the order in which they may be taken: a thread that holds
 * one takes only those of a higher rank.  Builds with assertions check it.
 *
 *	LOCK_INODE	inode->data_lock; a file's data against its size
 *	LOCK_COMMIT	volume->commit_lock; one commit at a time
 *	LOCK_GROW	volume->grow_lock; one growth of the container at a time
 *	LOCK_TREE	volume->lock; trees, space, inodes.  Held for
 *			microseconds, never over I/O or ciphers
 *
 * Below these are leaves that call nothing: those of the nonce source, of key
 * pools, of the container, of the worker's queue and of hostfree.
 */
#ifndef FS_LOCKS_H
#define FS_LOCKS_H

#include <assert.h>
#include <pthread.h>

enum lock_rank {
	LOCK_INODE = 1 << 0,
	LOCK_COMMIT = 1 << 1,
	LOCK_GROW = 1 << 2,
	LOCK_TREE = 1 << 3,
};

#ifndef NDEBUG
extern _Thread_local unsigned int locks_held;

static inline void lock_rank_enter(enum lock_rank rank)
{
	assert(locks_held < (unsigned int)rank);
	locks_held |= rank;
}

static inline void lock_rank_leave(enum lock_rank rank)
{
	assert(locks_held & rank);
	locks_held &= ~(unsigned int)rank;
}
#else
static inline void lock_rank_enter(enum lock_rank rank)
{
}

static inline void lock_rank_leave(enum lock_rank rank)
{
}
#endif

static inline void lock_take(pthread_mutex_t *m, enum lock_rank rank)
{
	lock_rank_enter(rank);
	pthread_mutex_lock(m);
}

static inline void lock_drop(pthread_mutex_t *m, enum lock_rank rank)
{
	pthread_mutex_unlock(m);
	lock_rank_leave(rank);
}

#endif
