/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a mounted volume is made of.  Private to fs/; volume.h is the door.
 */
#ifndef FS_VOL_H
#define FS_VOL_H

#include <bsd/sys/queue.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cipher/nonce.h"
#include "fs/header.h"
#include "fs/hostfree.h"
#include "fs/item.h"
#include "fs/locks.h"
#include "fs/space.h"
#include "fs/super.h"
#include "fs/tree.h"
#include "fs/volume.h"
#include "stats/stats.h"

struct container;
struct prf_key;

#define INUM_FIRST 1024		/* 2 to 1023 are reserved */

struct inode {
	/* Constant while in memory. */
	inum_t inum;
	uint32_t type;		/* S_IFMT bits of its mode */
	/* LOCK_INODE: shared by writers of whole blocks, else exclusive. */
	pthread_rwlock_t data_lock;

	/* All below: LOCK_TREE. */
	unsigned int refs;	/* users outside the lock */
	bool gone;		/* deleted; lives only for its users */
	bool listed;		/* in the list of dirty ones */
	struct inode_item i;
	/*
	 * Times that stand in until the kernel, which writes its cache back,
	 * sends its own; what it last knew, should it send none (attr.h).
	 */
	bool provisional;
	uint64_t provisional_epoch;
	struct timespec told_mtime, told_ctime;
	TAILQ_ENTRY(inode) provisional_link;
	/* Where the next block of a file that grows would fit. */
	uint64_t append_logical;
	block_t append_block;
	struct nonce append_nonce;
	uint32_t append_nonces;	/* drawn for this inode and not used */
	LIST_ENTRY(inode) hash_link;
	TAILQ_ENTRY(inode) lru_link;
	TAILQ_ENTRY(inode) dirty_link;
};

TAILQ_HEAD(inode_list, inode);

struct inode_table {
	LIST_HEAD(inode_bucket, inode) *buckets;
	size_t nr_buckets, nr, limit;
	struct inode_list lru;	/* oldest first */
	struct inode_list dirty; /* of the live epoch */
	size_t nr_dirty;
	struct inode_list provisional; /* oldest first */
};

/* The thread that commits by the clock and deletes what has no name. */
struct worker {
	pthread_t thread;
	bool running;		/* constant while the volume is open */
	/* A leaf lock. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop, hurry;
	inum_t *reap;
	size_t nr_reap, room_reap;
};

struct volume {
	/* Constant while open. */
	struct container *c;
	const struct header *h;
	const struct header_keys *keys;
	const struct key_set *key;	/* for new writes */
	struct volume_options o;
	struct nonce_source nonces;
	struct prf_key *names;		/* hash of directory entries */
	uint8_t dir_seed[32];

	pthread_mutex_t lock;		/* LOCK_TREE, for all of these */
	struct node_store store;
	struct tree vt, ft;		/* volume tree, file tree */
	struct space space;
	struct inode_table inodes;
	inum_t next_inum;
	uint64_t unwritten;		/* blocks mapped and never written */
	uint64_t promised_nodes;	/* to operations under way */
	uint64_t promised_blocks;
	unsigned int nr_waiting;	/* operations, for promises to end */
	pthread_cond_t promise_ended;
	uint64_t changes;		/* operations since opening */
	uint64_t durable_changes;	/* of them in durable commits */
	uint64_t durable;		/* last durable commit */
	struct node_list frozen;	/* file nodes of the commit being made */
	struct node *frozen_root;	/* their root, referenced, or NULL */
	int error;			/* made it read-only; 0 while well */

	pthread_mutex_t commit_lock;	/* LOCK_COMMIT */
	struct super super;		/* the durable one */
	bool super_written;		/* by this mount */

	pthread_mutex_t grow_lock;	/* LOCK_GROW */

	struct worker worker;
	struct hostfree hostfree;
	atomic_uint reports;		/* made, for the rate limit */
};

static inline void vol_lock(struct volume *v)
{
	lock_take(&v->lock, LOCK_TREE);
}

static inline void vol_unlock(struct volume *v)
{
	lock_drop(&v->lock, LOCK_TREE);
}

/* One line to the user, rate-limited; counted as damage if @err says so. */
void vol_report(struct volume *v, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* An error after which what reached the disk is unknown: no more writes. */
void vol_fail(struct volume *v, int err, const char *what);

/* The time stamp for now. */
struct timespec vol_now(struct volume *v);

#endif
