/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Copy-on-write B+trees over nodes in memory.
 *
 * A change makes the nodes from the root to the leaf dirty: a clean node is
 * taken out of the cache and its block freed by this epoch, a frozen one (of
 * the commit being written) is cloned.  Raising tree->epoch freezes all that is
 * dirty.
 *
 *	live root* ---- leaf A (clean, cache)
 *	     \--------- leaf B* (epoch e+1)      * in memory only
 *	frozen root* -- leaf B  (epoch e, being written)
 *
 * Nothing here does I/O.  Where a node is not in memory, functions return
 * -EAGAIN and say which one in *fault; the caller drops the lock, reads it
 * (txn.c) and starts its operation again from the top.  So an operation first
 * prepares (tree_prepare) every path it will change and changes only then: the
 * changing functions never fail.
 *
 * All under LOCK_TREE.
 */
#ifndef FS_TREE_H
#define FS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/node.h"
#include "fs/node_store.h"
#include "fs/ptr.h"
#include "fs/range.h"

/* A node that is wanted and not in memory. */
struct fault {
	struct ptr ptr;
	uint64_t tree;
	struct key low, high;
};

struct tree {
	/* Constant. */
	uint64_t id;
	struct node_store *store;
	/* Under LOCK_TREE. */
	uint64_t epoch;
	struct ptr root_ptr;	/* while root is NULL */
	struct node *root;	/* in memory, referenced */
	unsigned int height;	/* levels, at least 1 */
	struct node_list dirty;	/* of this epoch; each referenced */
	size_t nr_dirty;
	struct range_vec *frees; /* where blocks of replaced nodes go */
};

void tree_init(struct tree *t, uint64_t id, struct node_store *store);
/* Start with an empty leaf (a new container).  Returns 0 or -ENOMEM. */
must_check int tree_init_empty(struct tree *t);
/* Start from what is on disk. */
void tree_init_ptr(struct tree *t, const struct ptr *root);
/* Drop everything in memory. */
void tree_destroy(struct tree *t);

/* Where an item is; valid until the tree changes or the lock is dropped. */
struct tree_pos {
	struct node *leaf;
	unsigned int index;
	struct key key;
	const void *value;
	size_t len;
};

/* The item with @key: 0, -ENOENT, -EAGAIN. */
must_check int tree_find(struct tree *t, const struct key *key,
			 struct tree_pos *pos, struct fault *fault);
/* The first item with a key not below @key: 0, -ENOENT (none), -EAGAIN. */
must_check int tree_next(struct tree *t, const struct key *key,
			 struct tree_pos *pos, struct fault *fault);
/* The last item with a key not above @key: 0, -ENOENT (none), -EAGAIN. */
must_check int tree_prev(struct tree *t, const struct key *key,
			 struct tree_pos *pos, struct fault *fault);

/*
 * All nodes on the way to @key are in memory, and those that would take over if
 * its leaf became empty: 0 or -EAGAIN.
 */
must_check int tree_prepare(struct tree *t, const struct key *key,
			    struct fault *fault);
/* The same for the whole range, ends included. */
must_check int tree_prepare_range(struct tree *t, const struct key *first,
				  const struct key *last, struct fault *fault);

/*
 * Visit the leaf of *from, through nodes younger than @birth only: -EAGAIN
 * makes the caller read those that are missing.  Moves *from past what was
 * seen; *last: that was all.
 */
must_check int tree_walk_young(struct tree *t, uint64_t birth,
			       struct key *from, bool *last,
			       struct fault *fault);

/* How many nodes a change of one path may make dirty at most. */
unsigned int tree_worst_nodes(const struct tree *t);

/*
 * Insert or replace.  The path was prepared; nodes were promised, and room in
 * *frees reserved, tree_worst_nodes() each.
 */
void tree_put(struct tree *t, const struct key *key, const void *value,
	      size_t len);
/* Remove an item that is there; prepared and promised likewise. */
void tree_remove(struct tree *t, const struct key *key);
/* Make the leaf of @key dirty without changing it. */
void tree_touch(struct tree *t, const struct key *key);
/* The value of an item in a dirty leaf, to be changed in place. */
void *tree_value_mut(struct tree *t, const struct key *key, size_t len);

/*
 * Freeze: what is dirty becomes @frozen (appended, each still referenced),
 * *root its root with a reference (NULL: nothing was changed), and the next
 * change belongs to @epoch.
 */
void tree_freeze(struct tree *t, uint64_t epoch, struct node_list *frozen,
		 struct node **root);
/*
 * A frozen node is on disk now: it becomes clean, enters the cache unless it
 * was replaced in the live tree, and loses the list's reference.
 */
void tree_thaw(struct tree *t, struct node *n);
/* After all were thawed: a root that is still the frozen one is clean too. */
void tree_thaw_root(struct tree *t);

#endif
