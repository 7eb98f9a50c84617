/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A tree node in memory: sorted items in a slotted page that has the layout of
 * the sealed payload on disk,
 *
 *	| head | slot 0 | slot 1 | ... free ... | value 1 | value 0 |
 *	                          ^slots' end    ^heap
 *
 * so that a node that was read, authenticated and validated is used as it is.
 * Internal nodes hold pointers (struct disk_ptr) as values, keyed by the lowest
 * key of the child; while a child is changed, child[] names it in memory.
 *
 * No locking here: all callers hold the volume's lock (LOCK_TREE), or own the
 * node alone.
 */
#ifndef FS_NODE_H
#define FS_NODE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/format_tree.h"
#include "fs/ptr.h"
#include "fs/types.h"

struct key_set;
struct nonce_source;

struct key {
	uint64_t inum;
	uint64_t offset;
	uint8_t type;
};

#define KEY_MIN ((struct key){ 0, 0, 0 })
#define KEY_MAX ((struct key){ UINT64_MAX, UINT64_MAX, UINT8_MAX })

static inline struct key key_of(uint64_t inum, uint8_t type, uint64_t offset)
{
	return (struct key){ inum, offset, type };
}

/* <0, 0, >0: by inode, then type, then offset. */
static inline int key_cmp(const struct key *a, const struct key *b)
{
	if (a->inum != b->inum)
		return a->inum < b->inum ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return 0;
}

struct node {
	/* Place on disk; block is 0 while it has none. */
	struct ptr ptr;
	uint64_t tree;
	struct key low;
	/*
	 * 0: clean, as on disk.  Equal to its tree's epoch: may be changed.
	 * Below that: frozen, part of the commit that is being written.
	 */
	uint64_t epoch;
	unsigned int level;
	unsigned int nr;	/* items */
	unsigned int max_items;	/* tests: fan-out; else UINT_MAX */
	uint32_t bytes;		/* of the payload */
	uint32_t heap;		/* lowest position of a value */
	uint32_t garbage;	/* bytes between heap and end not in use */
	unsigned int refs;	/* parents in memory, pins, lists */
	bool superseded;	/* frozen, and replaced in the live tree */
	bool cached;		/* in the cache's hash */
	LIST_ENTRY(node) hash_link;
	TAILQ_ENTRY(node) lru_link;	/* in the cache, while refs == 0 */
	TAILQ_ENTRY(node) dirty_link;	/* in its tree's list */
	struct node **child;	/* internal: nr entries, NULL where clean */
	uint8_t *buf;		/* payload */
};

TAILQ_HEAD(node_list, node);

/* An empty node of size 1 << @log2_bytes; NULL if there is no memory. */
struct node *node_new(unsigned int log2_bytes);
void node_free(struct node *n);
/* Start anew as an empty node of @tree at @level. */
void node_reset(struct node *n, uint64_t tree, unsigned int level);
/* Make @to a copy of @from's content; children are not referenced here. */
void node_copy(struct node *to, const struct node *from);

static inline unsigned int node_blocks(const struct node *n)
{
	return (1u << n->ptr.log2_bytes) >> BLOCK_SHIFT;
}

static inline const struct disk_item *node_items(const struct node *n)
{
	return (const struct disk_item *)(n->buf + sizeof(struct disk_node));
}

struct key node_key(const struct node *n, unsigned int i);

static inline const void *node_value(const struct node *n, unsigned int i,
				     size_t *len)
{
	const struct disk_item *s = &node_items(n)[i];

	*len = le16_get(s->len);
	return n->buf + le16_get(s->pos);
}

/* The value's bytes, to be changed in place without changing its length. */
void *node_value_mut(struct node *n, unsigned int i);

/*
 * Index of the first item whose key is not below @key, and whether it is equal.
 */
unsigned int node_search(const struct node *n, const struct key *key,
			 bool *equal);
/* Internal: index of the child whose range holds @key (0 if below all). */
unsigned int node_child_index(const struct node *n, const struct key *key);

/* Whether one more item with a value of @len bytes fits. */
bool node_fits(const struct node *n, size_t len);
/* Bytes in use by items, slots included. */
uint32_t node_used(const struct node *n);
/* Longest value that an item may have: a quarter of the payload. */
size_t node_value_max(const struct node *n);

/* Insert before index @i; the caller made sure that it fits. */
void node_insert(struct node *n, unsigned int i, const struct key *key,
		 const void *value, size_t len);
void node_remove(struct node *n, unsigned int i);
/* Another value, of any length that fits (node_fits_replace). */
bool node_fits_replace(const struct node *n, unsigned int i, size_t len);
void node_replace(struct node *n, unsigned int i, const void *value,
		  size_t len);
/* Internal: change the key of entry @i. */
void node_set_key(struct node *n, unsigned int i, const struct key *key);

/* Move items [@from, nr) of @left to the empty node @right, children too. */
void node_move_tail(struct node *left, unsigned int from, struct node *right);
/* Append all items of @right to @left; they fit.  @right becomes empty. */
void node_append_all(struct node *left, struct node *right);

/*
 * Seal @n for its place (ptr.block, ptr.birth are set) into 1 << log2 bytes at
 * @out; ptr's nonce, key id and tag are set.  Pointers of changed children are
 * taken from child[].
 *
 * @scratch  as large as the payload
 *
 * Returns 0 or negative errno of the cipher.  Reads the node without changing
 * its content.
 */
must_check int node_seal(struct node *n, const uint8_t uuid[static UUID_BYTES],
			 const struct key_set *keys, struct nonce_source *src,
			 uint8_t *scratch, uint8_t *out);

/*
 * Open what is at @in (as read from the place @p names) into @n, and validate
 * it: identity, level, birth, item order and bounds, each item's own rules.
 *
 * @low, @high  range that the parent gives it: low <= keys < high
 *
 * Returns 0, -EBADMSG, -EUCLEAN, -EIO.
 */
must_check int node_open(struct node *n, const struct ptr *p, uint64_t tree,
			 const struct key *low, const struct key *high,
			 const uint8_t uuid[static UUID_BYTES],
			 const struct key_set *keys, const uint8_t *in);

#endif
