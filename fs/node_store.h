/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Nodes in memory: the cache of clean ones, spare ones, and promises that there
 * will be enough for a change.
 *
 * References of a node: one for each parent in memory that names it in child[]
 * (or tree->root), one for the dirty or frozen list, one for each pin.  A clean
 * node without references stays in the cache until it is evicted; any other
 * without references is spare.
 *
 * All under LOCK_TREE.
 */
#ifndef FS_NODE_STORE_H
#define FS_NODE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "fs/node.h"

struct stats;

/* A node being read, without the lock. */
struct node_load {
	block_t block;
	bool stale;		/* it became dirty meanwhile: drop the copy */
	LIST_ENTRY(node_load) link;
};

/* Clean nodes by block, bounded, least recently used first out; spare nodes. */
struct node_store {
	/* Constant. */
	unsigned int log2_bytes;
	unsigned int max_items;
	size_t limit_nodes;		/* cached ones */
	struct stats *stats;		/* may be NULL */
	size_t nr_buckets;		/* power of two */
	LIST_HEAD(node_bucket, node) *buckets;
	/* Under LOCK_TREE. */
	struct node_list lru;		/* oldest first */
	size_t nr_cached;
	struct node_list spare;
	size_t nr_spare, nr_promised;
	size_t nr_nodes;		/* all that exist */
	LIST_HEAD(, node_load) loads;
};

must_check int node_store_init(struct node_store *s, unsigned int log2_bytes,
			       size_t limit_bytes, unsigned int max_items);
void node_store_destroy(struct node_store *s);
/*
 * Promise that @nr nodes can be made without failing, until
 * node_store_release(@nr).  Returns 0 or -ENOMEM.
 */
must_check int node_store_promise(struct node_store *s, size_t nr);
void node_store_release(struct node_store *s, size_t nr);

/* NULL if it is not there.  Not referenced. */
struct node *node_store_find(struct node_store *s, block_t block);
/* A node that has just been read, with no references yet. */
void node_store_add(struct node_store *s, struct node *n);
/* Evict down to the limit. */
void node_store_shrink(struct node_store *s);
/* It changes: take it out of the cache. */
void node_store_remove(struct node_store *s, struct node *n);
/* What is being read from @block is not the live tree's any more. */
void node_store_spoil_loads(struct node_store *s, block_t block);
/* Drop all that is cached and not referenced. */
void node_store_forget(struct node_store *s);
/* A fresh node for reading into; NULL if there is no memory. */
struct node *node_store_take(struct node_store *s);
/* A fresh node for a change that was promised; never NULL. */
struct node *node_store_take_promised(struct node_store *s);
void node_store_give(struct node_store *s, struct node *n);

/* References; a node without any is evicted sooner or later. */
void node_hold(struct node_store *s, struct node *n);
void node_put(struct node_store *s, struct node *n);

#endif
