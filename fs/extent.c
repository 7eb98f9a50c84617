/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fs/extent.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

int extent_list_init(struct extent_list *l, unsigned int blocks)
{
	*l = (struct extent_list){ .room = blocks };
	l->e = calloc(blocks, sizeof(*l->e));
	l->tags = malloc((size_t)blocks * 16);
	if (l->e && l->tags)
		return 0;
	extent_list_destroy(l);
	return -ENOMEM;
}

void extent_list_destroy(struct extent_list *l)
{
	free(l->e);
	free(l->tags);
	*l = (struct extent_list){ 0 };
}

const uint8_t *extent_list_tags(const struct extent_list *l, unsigned int i)
{
	size_t blocks = 0;

	while (i-- > 0)
		blocks += l->e[i].nr;
	return l->tags + blocks * 16;
}

unsigned int extent_paths(const struct volume *v, unsigned int items)
{
	/*
	 * Neighbouring items share leaves: at least two in each of a test's
	 * tiny ones, a hundred in a real one.  A path is 15 nodes or more.
	 */
	return 1 + items / (v->store.max_items == UINT_MAX ? 500 : 12);
}

static uint64_t end_of(const struct extent *e)
{
	return e->logical + e->nr;
}

/* Keep only [from, to) of @e; @tags (may be NULL) moves along. */
static void cut_to(struct extent *e, const uint8_t **tags, uint64_t from,
		   uint64_t to)
{
	uint64_t skip = from > e->logical ? from - e->logical : 0;

	if (end_of(e) > to)
		e->nr -= (uint32_t)(end_of(e) - to);
	assert(skip < e->nr);
	e->logical += skip;
	e->block += skip;
	if (!(e->flags & EXTENT_UNWRITTEN))
		e->nonce.counter += (uint32_t)skip;
	e->nr -= (uint32_t)skip;
	if (tags && *tags)
		*tags += skip * 16;
}

static bool is_extent_of(const struct tree_pos *pos, inum_t inum)
{
	return pos->key.inum == inum && pos->key.type == ITEM_EXTENT;
}

/* Position of the first item that ends above @logical. */
static int first_above(struct txn *t, inum_t inum, uint64_t logical,
		       struct tree_pos *pos)
{
	struct key key = key_of(inum, ITEM_EXTENT, logical);
	struct extent e;
	int err = tree_prev(&t->v->ft, &key, pos, &t->fault);

	if (!err && is_extent_of(pos, inum)) {
		extent_decode(&pos->key, pos->value, &e, NULL);
		if (end_of(&e) > logical)
			return 0;
	}
	if (err && err != -ENOENT)
		return err;
	err = tree_next(&t->v->ft, &key, pos, &t->fault);
	if (!err && !is_extent_of(pos, inum))
		err = -ENOENT;
	return err;
}

int extent_at_or_after(struct txn *t, inum_t inum, uint64_t logical,
		       struct extent *e)
{
	struct tree_pos pos;
	int err = first_above(t, inum, logical, &pos);

	if (!err)
		extent_decode(&pos.key, pos.value, e, NULL);
	return err;
}

int extent_list_get(struct txn *t, inum_t inum, uint64_t first,
		    unsigned int nr, struct extent_list *l)
{
	uint64_t at = first, end = first + nr;
	size_t blocks = 0;

	assert(nr <= l->room);
	l->nr = 0;
	while (at < end) {
		struct extent *e = &l->e[l->nr];
		const uint8_t *tags;
		struct tree_pos pos;
		int err = first_above(t, inum, at, &pos);

		if (err == -ENOENT)
			return 0;
		if (err)
			return err;
		extent_decode(&pos.key, pos.value, e, &tags);
		if (e->logical >= end)
			return 0;
		cut_to(e, &tags, at, end);
		if (e->flags & EXTENT_TAGGED)
			memcpy(l->tags + blocks * 16, tags,
			       (size_t)e->nr * 16);
		blocks += e->nr;
		at = end_of(e);
		l->nr++;
	}
	return 0;
}

int extent_prepare(struct txn *t, inum_t inum, uint64_t first, uint64_t nr)
{
	struct key low = key_of(inum, ITEM_EXTENT, first);
	struct key high = key_of(inum, ITEM_EXTENT, first + nr);
	struct tree_pos pos;
	/* The one before may reach into the range, or be merged with. */
	int err = tree_prev(&t->v->ft, &low, &pos, &t->fault);

	if (!err)
		low = pos.key;
	if (err && err != -ENOENT)
		return err;
	return tree_prepare_range(&t->v->ft, &low, &high, &t->fault);
}

static void put_extent(struct txn *t, inum_t inum, const struct extent *e,
		       const uint8_t *tags)
{
	struct key key = key_of(inum, ITEM_EXTENT, e->logical);
	uint8_t item[EXTENT_ITEM_BYTES_MAX];
	size_t len = extent_encode(e, tags, item);

	tree_put(&t->v->ft, &key, item, len);
}

/*
 * Take [first, end) out of the extent at @pos: keep what sticks out on either
 * side, free the middle.
 */
static void punch_one(struct txn *t, struct inode *in,
		      const struct tree_pos *pos, uint64_t first, uint64_t end)
{
	uint8_t copy[EXTENT_ITEM_BYTES_MAX];
	struct key key = pos->key;
	struct extent old, part;
	const uint8_t *tags, *part_tags;

	assert(pos->len <= sizeof(copy));
	memcpy(copy, pos->value, pos->len);
	extent_decode(&key, copy, &old, &tags);

	part = old;
	cut_to(&part, NULL, first, end);
	space_free(&t->v->space, part.block, part.nr, part.birth);
	/* The number came from the disk: a wrong one must not wrap. */
	if (part.flags & EXTENT_UNWRITTEN)
		t->v->unwritten -= part.nr < t->v->unwritten
					   ? part.nr : t->v->unwritten;
	stats_count(t->v->o.stats, STATS_blocks_freed, part.nr);
	in->i.blocks -= part.nr;

	if (old.logical < first) {
		part = old;
		part_tags = tags;
		cut_to(&part, &part_tags, old.logical, first);
		put_extent(t, in->inum, &part, part_tags);
	} else {
		tree_remove(&t->v->ft, &key);
	}
	if (end_of(&old) > end) {
		part = old;
		part_tags = tags;
		cut_to(&part, &part_tags, end, end_of(&old));
		put_extent(t, in->inum, &part, part_tags);
	}
}

/* @b continues @a in every respect, and may be one item with it. */
static bool continues(const struct extent *a, const struct extent *b)
{
	if (end_of(a) != b->logical || a->block + a->nr != b->block ||
	    a->birth != b->birth || a->key_id != b->key_id ||
	    a->flags != b->flags)
		return false;
	/* What was never written has no nonces. */
	if (!(a->flags & EXTENT_UNWRITTEN) &&
	    (a->nonce.session != b->nonce.session ||
	     (uint64_t)a->nonce.counter + a->nr != b->nonce.counter))
		return false;
	if (a->flags & EXTENT_TAGGED)
		return b->logical % EXTENT_WINDOW_BLOCKS != 0;
	return a->nr <= UINT32_MAX - b->nr;
}

/* Add one extent that lies within a window (if tagged), merged to the left. */
static void add_one(struct txn *t, inum_t inum, const struct extent *e,
		    const uint8_t *tags)
{
	struct key key = key_of(inum, ITEM_EXTENT, e->logical);
	uint8_t joined[EXTENT_WINDOW_BLOCKS * 16];
	const uint8_t *left_tags;
	struct tree_pos pos;
	struct extent left;

	/* A merge is a saving, not a duty: no fault is worth it here. */
	if (!tree_prev(&t->v->ft, &key, &pos, &t->fault) &&
	    is_extent_of(&pos, inum)) {
		extent_decode(&pos.key, pos.value, &left, &left_tags);
		if (continues(&left, e)) {
			if (left.flags & EXTENT_TAGGED) {
				memcpy(joined, left_tags, left.nr * 16u);
				memcpy(joined + left.nr * 16u, tags,
				       e->nr * 16u);
			}
			left.nr += e->nr;
			put_extent(t, inum, &left, joined);
			return;
		}
	}
	put_extent(t, inum, e, tags);
}

static void add_all(struct txn *t, struct inode *in,
		    const struct extent_list *l)
{
	const uint8_t *tags = l->tags;

	for (unsigned int i = 0; i < l->nr; i++) {
		struct extent left = l->e[i];

		space_own(&t->v->space, left.block, left.nr);
		if (left.flags & EXTENT_UNWRITTEN)
			t->v->unwritten += left.nr;
		in->i.blocks += left.nr;
		left.birth = t->v->ft.epoch;
		while (left.nr) {
			struct extent e = left;
			uint32_t room = EXTENT_WINDOW_BLOCKS -
				(uint32_t)(e.logical % EXTENT_WINDOW_BLOCKS);

			if (e.flags & EXTENT_TAGGED && e.nr > room)
				e.nr = room;
			add_one(t, in->inum, &e, tags);
			tags += (size_t)e.nr * 16;
			if (e.nr == left.nr)
				break;
			cut_to(&left, NULL, end_of(&e), end_of(&left));
		}
	}
}

void extent_replace(struct txn *t, struct inode *in, uint64_t first,
		    uint64_t nr, const struct extent_list *l)
{
	uint64_t end = first + nr;
	struct tree_pos pos;
	struct extent e;
	int err;

	while (!(err = first_above(t, in->inum, first, &pos))) {
		extent_decode(&pos.key, pos.value, &e, NULL);
		if (e.logical >= end)
			break;
		punch_one(t, in, &pos, first, end);
	}
	/* Prepared; only what lies beyond the range may be missing. */
	assert(!err || err == -ENOENT || err == -EAGAIN);
	if (l)
		add_all(t, in, l);
}

int extent_cut(struct txn *t, struct inode *in, uint64_t first, uint64_t end,
	       unsigned int max, uint64_t *next)
{
	uint64_t at = first;
	unsigned int nr;
	struct extent e;
	int err = 0;

	for (nr = 0; nr < max; nr++) {
		err = extent_at_or_after(t, in->inum, at, &e);
		if (err || e.logical >= end)
			break;
		at = end_of(&e);
	}
	if (err && err != -ENOENT)
		return err;
	*next = nr < max || at > end ? end : at;
	if (!nr)
		return txn_ready(t, 0);	/* the caller goes on to the inode */
	err = extent_prepare(t, in->inum, first, *next - first);
	if (!err)
		err = txn_ready(t, nr);
	if (err)
		return err;
	extent_replace(t, in, first, *next - first, NULL);
	return 0;
}
