/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Paths, copy-on-write, splits and merges.
 */
#include "fs/tree.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding */

void tree_init(struct tree *t, uint64_t id, struct node_store *store)
{
	*t = (struct tree){ .id = id, .store = store, .height = 1 };
	TAILQ_INIT(&t->dirty);
}

static void join_dirty(struct tree *t, struct node *n)
{
	n->epoch = t->epoch;
	n->refs++;
	TAILQ_INSERT_TAIL(&t->dirty, n, dirty_link);
	t->nr_dirty++;
}

int tree_init_empty(struct tree *t)
{
	struct node *n = node_store_take(t->store);

	if (!n)
		return -ENOMEM;
	node_reset(n, t->id, 0);
	join_dirty(t, n);
	n->refs++;
	t->root = n;
	t->height = 1;
	return 0;
}

void tree_init_ptr(struct tree *t, const struct ptr *root)
{
	t->root_ptr = *root;
	t->height = root->level + 1u;
}

void tree_destroy(struct tree *t)
{
	struct node *n;

	while ((n = TAILQ_FIRST(&t->dirty))) {
		TAILQ_REMOVE(&t->dirty, n, dirty_link);
		node_put(t->store, n);
	}
	t->nr_dirty = 0;
	if (t->root)
		node_put(t->store, t->root);
	t->root = NULL;
}

static struct node *cached_node(struct tree *t, const struct ptr *p)
{
	struct node *n = node_store_find(t->store, p->block);

	/*
	 * A block has one owner, so what is cached for it is what we want, or
	 * the pointer is wrong: reading will tell.
	 */
	return n && n->tree == t->id && n->ptr.birth == p->birth &&
			       n->level == p->level
		       ? n
		       : NULL;
}

static int get_root(struct tree *t, struct node **out, struct fault *fault)
{
	*out = t->root ? t->root : cached_node(t, &t->root_ptr);
	if (*out)
		return 0;
	*fault = (struct fault){ t->root_ptr, t->id, KEY_MIN, KEY_MAX };
	return -EAGAIN;
}

/* Upper end of the range of child @i, where @n's own ends at @high. */
static struct key child_high(const struct node *n, unsigned int i,
			     const struct key *high)
{
	return i + 1 < n->nr ? node_key(n, i + 1) : *high;
}

static struct node *resident_child(struct tree *t, const struct node *n,
				   unsigned int i, struct ptr *p)
{
	size_t len;
	int err;

	if (n->child[i])
		return n->child[i];
	err = ptr_decode(node_value(n, i, &len), p);
	assert(!err); /* validated when the node was opened */
	return cached_node(t, p);
}

static int get_child(struct tree *t, const struct node *n, unsigned int i,
		     const struct key *high, struct node **out,
		     struct fault *fault)
{
	struct ptr p;

	*out = resident_child(t, n, i, &p);
	if (*out)
		return 0;
	*fault = (struct fault){ p, t->id, node_key(n, i),
				 child_high(n, i, high) };
	return -EAGAIN;
}

/* The leaf for @key, and where its range ends and (for tree_prev) begins. */
static int find_leaf(struct tree *t, const struct key *key, struct node **leaf,
		     struct key *high, struct key *low, struct fault *fault)
{
	struct node *n;
	int err = get_root(t, &n, fault);

	*high = KEY_MAX;
	*low = KEY_MIN;
	while (!err && n->level) {
		unsigned int i = node_child_index(n, key);
		struct key end = child_high(n, i, high);
		struct node *child;

		err = get_child(t, n, i, high, &child, fault);
		if (err)
			break;
		*high = end;
		if (i)
			*low = node_key(n, i);
		n = child;
	}
	*leaf = n;
	return err;
}

static void set_pos(struct tree_pos *pos, struct node *leaf, unsigned int i)
{
	pos->leaf = leaf;
	pos->index = i;
	pos->key = node_key(leaf, i);
	pos->value = node_value(leaf, i, &pos->len);
}

int tree_find(struct tree *t, const struct key *key, struct tree_pos *pos,
	      struct fault *fault)
{
	struct key high, low;
	struct node *leaf;
	unsigned int i;
	bool equal;
	int err = find_leaf(t, key, &leaf, &high, &low, fault);

	if (err)
		return err;
	i = node_search(leaf, key, &equal);
	if (!equal)
		return -ENOENT;
	set_pos(pos, leaf, i);
	return 0;
}

int tree_next(struct tree *t, const struct key *key, struct tree_pos *pos,
	      struct fault *fault)
{
	struct key from = *key;

	/* Leaves are never empty but for a lone root: two steps at most. */
	for (;;) {
		struct key high, low;
		struct node *leaf;
		unsigned int i;
		bool equal;
		int err = find_leaf(t, &from, &leaf, &high, &low, fault);

		if (err)
			return err;
		i = node_search(leaf, &from, &equal);
		if (i < leaf->nr) {
			set_pos(pos, leaf, i);
			return 0;
		}
		if (!key_cmp(&high, &KEY_MAX))
			return -ENOENT;
		from = high;
	}
}

/* The key right below @k; false if there is none. */
static bool key_before(struct key *k)
{
	if (k->offset--)
		return true;
	if (k->type--)
		return true;
	return k->inum-- != 0;
}

int tree_prev(struct tree *t, const struct key *key, struct tree_pos *pos,
	      struct fault *fault)
{
	struct key from = *key;

	for (;;) {
		struct key high, low;
		struct node *leaf;
		unsigned int i;
		bool equal;
		int err = find_leaf(t, &from, &leaf, &high, &low, fault);

		if (err)
			return err;
		i = node_search(leaf, &from, &equal);
		if (equal || i) {
			set_pos(pos, leaf, equal ? i : i - 1);
			return 0;
		}
		from = low;
		if (!key_before(&from))
			return -ENOENT;
	}
}

/* What one operation takes at most from leaves it prepares key by key. */
#define SINGLE_REMOVALS_MAX 8u

/*
 * A leaf that becomes empty goes, and one next to it takes its range over: that
 * one must be in memory, too, or the same operation could not put anything
 * there any more.
 */
static int prepare_below(struct tree *t, const struct key *low,
			 struct fault *fault)
{
	struct key from = *low, end, begin;
	struct node *leaf;

	if (!key_before(&from))
		return 0;
	return find_leaf(t, &from, &leaf, &end, &begin, fault);
}

static int prepare_above(struct tree *t, const struct key *high,
			 struct fault *fault)
{
	struct key end, begin;
	struct node *leaf;

	if (!key_cmp(high, &KEY_MAX))
		return 0;
	return find_leaf(t, high, &leaf, &end, &begin, fault);
}

int tree_prepare(struct tree *t, const struct key *key, struct fault *fault)
{
	struct key high, low;
	struct node *leaf;
	int err = find_leaf(t, key, &leaf, &high, &low, fault);

	if (err || leaf->nr > SINGLE_REMOVALS_MAX)
		return err;
	err = prepare_below(t, &low, fault);
	return err ? err : prepare_above(t, &high, fault);
}

int tree_prepare_range(struct tree *t, const struct key *first,
		       const struct key *last, struct fault *fault)
{
	struct key from = *first, high, low;
	struct node *leaf;
	int err = find_leaf(t, &from, &leaf, &high, &low, fault);

	if (!err)
		err = prepare_below(t, &low, fault);
	while (!err && key_cmp(&high, last) <= 0 && key_cmp(&high, &KEY_MAX)) {
		from = high;
		err = find_leaf(t, &from, &leaf, &high, &low, fault);
	}
	return err ? err : prepare_above(t, &high, fault);
}

int tree_walk_young(struct tree *t, uint64_t birth, struct key *from,
		    bool *last, struct fault *fault)
{
	struct key high = KEY_MAX;
	struct node *n;
	int err = get_root(t, &n, fault);

	while (!err && n->level) {
		unsigned int i = node_child_index(n, from);
		struct key end = child_high(n, i, &high);
		struct node *child;
		struct ptr p;
		size_t len;

		err = ptr_decode(node_value(n, i, &len), &p);
		if (!err && p.birth < birth) {
			/* As old as that: the walk need not go there. */
			high = end;
			break;
		}
		if (!err)
			err = get_child(t, n, i, &high, &child, fault);
		if (err)
			break;
		high = end;
		n = child;
	}
	*last = !key_cmp(&high, &KEY_MAX);
	if (!err)
		*from = high;
	return err;
}

/* ---- changing */

unsigned int tree_worst_nodes(const struct tree *t)
{
	/* Path, two splits or a merge partner on each level, a new root. */
	return 3 * t->height + 2;
}

/* @n stands in for what *slot named; the references move along. */
static void set_slot(struct tree *t, struct node **slot, struct node *n)
{
	struct node *old = *slot;

	if (old == n)
		return;
	node_hold(t->store, n);
	*slot = n;
	if (old)
		node_put(t->store, old);
}

/*
 * Make @n, named by *slot (NULL while clean), changeable; returns the node
 * that is so from now on.
 */
static struct node *make_dirty(struct tree *t, struct node **slot,
			       struct node *n)
{
	struct node *clone;

	if (n->epoch == t->epoch)
		return n;
	if (!n->epoch) {
		/* Nobody else changes it: what is clean belongs to us alone. */
		set_slot(t, slot, n);
		if (n->cached)
			node_store_remove(t->store, n);
		node_store_spoil_loads(t->store, n->ptr.block);
		range_vec_add(t->frees, n->ptr.block, node_blocks(n),
			      n->ptr.birth);
		n->ptr.block = 0;
		n->superseded = false;
		join_dirty(t, n);
		return n;
	}

	clone = node_store_take_promised(t->store);
	node_copy(clone, n);
	for (unsigned int i = 0; clone->level && i < clone->nr; i++)
		if (clone->child[i])
			node_hold(t->store, clone->child[i]);
	join_dirty(t, clone);
	n->superseded = true;
	if (n->ptr.block)
		range_vec_add(t->frees, n->ptr.block, node_blocks(n),
			      n->ptr.birth);
	set_slot(t, slot, clone);
	return clone;
}

/* Drop a dirty node that nothing names any more. */
static void discard(struct tree *t, struct node *n)
{
	assert(n->epoch == t->epoch && !n->ptr.block);
	TAILQ_REMOVE(&t->dirty, n, dirty_link);
	t->nr_dirty--;
	n->epoch = 0;
	node_put(t->store, n);
}

struct path {
	struct node *node[NODE_LEVEL_MAX + 2];
	unsigned int index[NODE_LEVEL_MAX + 2]; /* of the child taken */
	unsigned int depth;			/* of the leaf */
};

static struct node *dirty_root(struct tree *t)
{
	struct fault fault;
	struct node *n;
	int err = get_root(t, &n, &fault);

	assert(!err); /* prepared */
	return make_dirty(t, &t->root, n);
}

static struct node *dirty_child(struct tree *t, struct node *parent,
				unsigned int i)
{
	struct ptr p;
	struct node *n = resident_child(t, parent, i, &p);

	assert(n); /* prepared */
	return make_dirty(t, &parent->child[i], n);
}

/* Insert child @n into @parent at @i, keyed by its low end. */
static void link_child(struct tree *t, struct node *parent, unsigned int i,
		       struct node *n)
{
	struct disk_ptr none = { 0 };

	node_insert(parent, i, &n->low, &none, sizeof(none));
	set_slot(t, &parent->child[i], n);
}

static void unlink_child(struct tree *t, struct node *parent, unsigned int i)
{
	if (parent->child[i])
		node_put(t->store, parent->child[i]);
	parent->child[i] = NULL;
	node_remove(parent, i);
}

static struct node *new_dirty(struct tree *t, unsigned int level)
{
	struct node *n = node_store_take_promised(t->store);

	node_reset(n, t->id, level);
	join_dirty(t, n);
	return n;
}

static struct node *grow_root(struct tree *t, struct node *old)
{
	struct node *root = new_dirty(t, old->level + 1);

	root->low = old->low;
	link_child(t, root, 0, old);
	set_slot(t, &t->root, root);
	t->height++;
	assert(t->height <= NODE_LEVEL_MAX + 1);
	return root;
}

/*
 * Where to split @n for an insertion of @len bytes at @at: in the middle of its
 * bytes, or, when it grows at its end, right there, so that nodes filled in
 * order stay full.
 */
static unsigned int split_index(const struct node *n, unsigned int at)
{
	uint32_t half = node_used(n) / 2, sum = 0;
	unsigned int i;

	if (at == n->nr)
		return n->level ? n->nr - 1 : n->nr;
	if (n->nr >= n->max_items)
		return n->nr / 2;
	for (i = 0; i < n->nr - 1 && sum < half; i++)
		sum += (uint32_t)sizeof(struct disk_item) +
		       le16_get(node_items(n)[i].len);
	return i ? i : 1;
}

/* Split child @i of @parent for @key; both are dirty, the parent has room. */
static void split_child(struct tree *t, struct node *parent, unsigned int i,
			const struct key *key)
{
	struct node *left = parent->child[i];
	struct node *right = new_dirty(t, left->level);
	bool equal;
	unsigned int at = node_search(left, key, &equal);
	unsigned int from = split_index(left, at);

	assert(from < left->nr || at == left->nr);

	right->low = from < left->nr ? node_key(left, from) : *key;
	node_move_tail(left, from, right);
	link_child(t, parent, i + 1, right);
}

static bool has_room(const struct node *n, size_t len)
{
	return node_fits(n, n->level ? sizeof(struct disk_ptr) : len);
}

/* Walk to the leaf of @key, dirty all the way; split what has no room. */
static struct node *descend_for_insert(struct tree *t, const struct key *key,
				       size_t len)
{
	struct node *n = dirty_root(t);

	if (!has_room(n, len))
		n = grow_root(t, n);
	if (key_cmp(key, &n->low) < 0)
		n->low = *key;
	while (n->level) {
		unsigned int i = node_child_index(n, key);
		struct node *child = dirty_child(t, n, i);

		if (key_cmp(key, &child->low) < 0) {
			/* Below everything: only the leftmost range widens. */
			assert(!i);
			child->low = *key;
			node_set_key(n, 0, key);
		}
		/* A middle split of large values may have to be repeated. */
		while (!has_room(child, len)) {
			split_child(t, n, i, key);
			i = node_child_index(n, key);
			child = n->child[i];
		}
		n = child;
	}
	return n;
}

static struct node *descend_dirty(struct tree *t, const struct key *key,
				  struct path *path)
{
	struct node *n = dirty_root(t);

	path->depth = 0;
	path->node[0] = n;
	while (n->level) {
		unsigned int i = node_child_index(n, key);

		path->index[path->depth] = i;
		n = dirty_child(t, n, i);
		path->node[++path->depth] = n;
	}
	return n;
}

void tree_touch(struct tree *t, const struct key *key)
{
	struct path path;

	descend_dirty(t, key, &path);
}

void *tree_value_mut(struct tree *t, const struct key *key, size_t len)
{
	struct path path;
	struct node *leaf = descend_dirty(t, key, &path);
	bool equal;
	unsigned int i = node_search(leaf, key, &equal);
	size_t have;

	assert(equal);
	node_value(leaf, i, &have);
	assert(have == len);
	return node_value_mut(leaf, i);
}

void tree_put(struct tree *t, const struct key *key, const void *value,
	      size_t len)
{
	struct path path;
	struct node *leaf = descend_dirty(t, key, &path);
	bool equal;
	unsigned int i = node_search(leaf, key, &equal);

	assert(len <= node_value_max(leaf));
	if (equal && node_fits_replace(leaf, i, len)) {
		node_replace(leaf, i, value, len);
		return;
	}
	if (equal)
		node_remove(leaf, i);
	leaf = descend_for_insert(t, key, len);
	i = node_search(leaf, key, &equal);
	assert(!equal);
	node_insert(leaf, i, key, value, len);
}

static bool mergeable(const struct node *left, const struct node *right)
{
	uint32_t room = left->bytes - (uint32_t)sizeof(struct disk_node);

	if (left->max_items != UINT_MAX &&
	    left->nr + right->nr > left->max_items * 3 / 4)
		return false;
	return node_used(left) + node_used(right) <= room * 3 / 4;
}

static bool underfull(const struct node *n)
{
	if (n->max_items != UINT_MAX)
		return n->nr <= n->max_items / 3;
	return node_used(n) < n->bytes / 3;
}

/* Join children @i and @i + 1 of @parent if both are here and fit together. */
static bool try_merge(struct tree *t, struct node *parent, unsigned int i)
{
	struct node *left, *right;
	struct ptr p;

	if (i + 1 >= parent->nr)
		return false;
	left = resident_child(t, parent, i, &p);
	right = resident_child(t, parent, i + 1, &p);
	if (!left || !right || !mergeable(left, right))
		return false;
	left = dirty_child(t, parent, i);
	right = dirty_child(t, parent, i + 1);
	/* Children's references move with the entries. */
	node_append_all(left, right);
	unlink_child(t, parent, i + 1);
	discard(t, right);
	return true;
}

/* A root with one child in memory is no use; one with none is an empty leaf. */
static void shrink_root(struct tree *t)
{
	struct node *root = t->root;

	while (root->level && root->nr == 1) {
		struct ptr p;
		struct node *child = resident_child(t, root, 0, &p);

		if (!child)
			return;
		child = dirty_child(t, root, 0);
		set_slot(t, &t->root, child);
		unlink_child(t, root, 0);
		discard(t, root);
		root = child;
		t->height--;
	}
	if (root->level && !root->nr) {
		root->level = 0;
		root->ptr.level = 0;
		root->low = KEY_MIN;
		t->height = 1;
	}
}

static void rebalance(struct tree *t, struct path *path)
{
	for (unsigned int d = path->depth; d > 0; d--) {
		struct node *n = path->node[d];
		struct node *parent = path->node[d - 1];
		unsigned int i = path->index[d - 1];

		if (!n->nr) {
			unlink_child(t, parent, i);
			discard(t, n);
			continue;
		}
		if (!underfull(n))
			break;
		if (!try_merge(t, parent, i) &&
		    (!i || !try_merge(t, parent, i - 1)))
			break;
	}
	shrink_root(t);
}

void tree_remove(struct tree *t, const struct key *key)
{
	struct path path;
	struct node *leaf = descend_dirty(t, key, &path);
	bool equal;
	unsigned int i = node_search(leaf, key, &equal);

	assert(equal);
	node_remove(leaf, i);
	rebalance(t, &path);
}

/* ---- commits */

/* Child @i has its place on disk: name it by that. */
static void settle_child(struct tree *t, struct node *n, unsigned int i)
{
	assert(n->child[i]->ptr.block);
	ptr_encode(&n->child[i]->ptr, node_value_mut(n, i));
	node_put(t->store, n->child[i]);
	n->child[i] = NULL;
}

void tree_freeze(struct tree *t, uint64_t epoch, struct node_list *frozen,
		 struct node **root)
{
	struct node *n;

	assert(epoch > t->epoch);
	/*
	 * Name clean children by what is on disk: one of them may become dirty
	 * in place while its frozen parent is being written.
	 */
	TAILQ_FOREACH(n, &t->dirty, dirty_link)
		for (unsigned int i = 0; n->level && i < n->nr; i++)
			if (n->child[i] && !n->child[i]->epoch)
				settle_child(t, n, i);
	TAILQ_CONCAT(frozen, &t->dirty, dirty_link);
	*root = NULL;
	if (t->nr_dirty) {
		*root = t->root;
		node_hold(t->store, t->root);
	}
	t->nr_dirty = 0;
	t->epoch = epoch;
}

void tree_thaw(struct tree *t, struct node *n)
{
	assert(n->epoch && n->epoch < t->epoch && n->ptr.block);
	n->epoch = 0;
	for (unsigned int i = 0; n->level && i < n->nr; i++)
		if (n->child[i])
			settle_child(t, n, i);
	if (!n->superseded)
		node_store_add(t->store, n);
	node_put(t->store, n);
}

void tree_thaw_root(struct tree *t)
{
	if (!t->root || t->root->epoch)
		return;
	t->root_ptr = t->root->ptr;
	node_put(t->store, t->root);
	t->root = NULL;
}
