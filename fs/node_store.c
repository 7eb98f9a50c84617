/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fs/node_store.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "stats/stats.h"

int node_store_init(struct node_store *s, unsigned int log2_bytes,
		    size_t limit_bytes, unsigned int max_items)
{
	size_t node_bytes = ((size_t)1 << log2_bytes) * 9 / 8;

	*s = (struct node_store){
		.log2_bytes = log2_bytes,
		.max_items = max_items ? max_items : UINT_MAX,
		.limit_nodes = limit_bytes / node_bytes,
		.nr_buckets = 64,
	};
	if (s->limit_nodes < 8)
		s->limit_nodes = 8;
	while (s->nr_buckets < s->limit_nodes)
		s->nr_buckets *= 2;
	s->buckets = calloc(s->nr_buckets, sizeof(*s->buckets));
	if (!s->buckets)
		return -ENOMEM;
	TAILQ_INIT(&s->lru);
	TAILQ_INIT(&s->spare);
	LIST_INIT(&s->loads);
	return 0;
}

static struct node_bucket *bucket_of(struct node_store *s, block_t block)
{
	return &s->buckets[(block * 0x9e3779b97f4a7c15ull >> 20) &
			   (s->nr_buckets - 1)];
}

void node_store_remove(struct node_store *s, struct node *n)
{
	assert(n->cached);
	LIST_REMOVE(n, hash_link);
	if (!n->refs)
		TAILQ_REMOVE(&s->lru, n, lru_link);
	n->cached = false;
	s->nr_cached--;
}

static void destroy_node(struct node_store *s, struct node *n)
{
	s->nr_nodes--;
	node_free(n);
}

void node_store_forget(struct node_store *s)
{
	struct node *n;

	while ((n = TAILQ_FIRST(&s->lru))) {
		node_store_remove(s, n);
		destroy_node(s, n);
	}
}

void node_store_destroy(struct node_store *s)
{
	struct node *n;

	if (!s->buckets)
		return;
	node_store_forget(s);
	while ((n = TAILQ_FIRST(&s->spare))) {
		TAILQ_REMOVE(&s->spare, n, lru_link);
		destroy_node(s, n);
	}
	assert(!s->nr_nodes);
	free(s->buckets);
	s->buckets = NULL;
}

int node_store_promise(struct node_store *s, size_t nr)
{
	while (s->nr_spare < s->nr_promised + nr) {
		struct node *n = node_new(s->log2_bytes);

		if (!n)
			return -ENOMEM;
		s->nr_nodes++;
		TAILQ_INSERT_TAIL(&s->spare, n, lru_link);
		s->nr_spare++;
	}
	s->nr_promised += nr;
	return 0;
}

void node_store_release(struct node_store *s, size_t nr)
{
	assert(s->nr_promised >= nr);
	s->nr_promised -= nr;
	/* Keep a few for the next operation. */
	while (s->nr_spare > s->nr_promised + 64) {
		struct node *n = TAILQ_LAST(&s->spare, node_list);

		TAILQ_REMOVE(&s->spare, n, lru_link);
		s->nr_spare--;
		destroy_node(s, n);
	}
}

static struct node *take(struct node_store *s, size_t keep)
{
	struct node *n = TAILQ_FIRST(&s->spare);

	if (n && s->nr_spare > keep) {
		TAILQ_REMOVE(&s->spare, n, lru_link);
		s->nr_spare--;
	} else {
		n = node_new(s->log2_bytes);
		if (!n)
			return NULL;
		s->nr_nodes++;
	}
	n->max_items = s->max_items;
	return n;
}

struct node *node_store_take(struct node_store *s)
{
	return take(s, s->nr_promised);
}

struct node *node_store_take_promised(struct node_store *s)
{
	struct node *n = take(s, 0);

	assert(n);
	return n;
}

void node_store_give(struct node_store *s, struct node *n)
{
	assert(!n->refs && !n->cached);
	TAILQ_INSERT_HEAD(&s->spare, n, lru_link);
	s->nr_spare++;
	/*
	 * Promises are kept with what is spare, so give back freely; the
	 * surplus goes when the next promise ends.
	 */
}

struct node *node_store_find(struct node_store *s, block_t block)
{
	struct node *n;

	LIST_FOREACH(n, bucket_of(s, block), hash_link)
		if (n->ptr.block == block) {
			stats_count(s->stats, STATS_node_hits, 1);
			if (!n->refs) {
				TAILQ_REMOVE(&s->lru, n, lru_link);
				TAILQ_INSERT_TAIL(&s->lru, n, lru_link);
			}
			return n;
		}
	return NULL;
}

void node_store_add(struct node_store *s, struct node *n)
{
	assert(!n->cached && !n->epoch && n->ptr.block);
	LIST_INSERT_HEAD(bucket_of(s, n->ptr.block), n, hash_link);
	n->cached = true;
	s->nr_cached++;
	if (!n->refs)
		TAILQ_INSERT_TAIL(&s->lru, n, lru_link);
}

void node_store_shrink(struct node_store *s)
{
	while (s->nr_cached > s->limit_nodes) {
		struct node *n = TAILQ_FIRST(&s->lru);

		if (!n)
			return;
		node_store_remove(s, n);
		if (s->nr_spare < s->nr_promised + 64)
			node_store_give(s, n);
		else
			destroy_node(s, n);
	}
}

void node_hold(struct node_store *s, struct node *n)
{
	if (!n->refs && n->cached)
		TAILQ_REMOVE(&s->lru, n, lru_link);
	n->refs++;
}

void node_put(struct node_store *s, struct node *n)
{
	assert(n->refs);
	if (--n->refs)
		return;
	if (n->cached) {
		TAILQ_INSERT_TAIL(&s->lru, n, lru_link);
		return;
	}
	for (unsigned int i = 0; n->level && i < n->nr; i++)
		if (n->child[i])
			node_put(s, n->child[i]);
	n->nr = 0;
	node_store_give(s, n);
}

void node_store_spoil_loads(struct node_store *s, block_t block)
{
	struct node_load *l;

	LIST_FOREACH(l, &s->loads, link)
		if (l->block == block)
			l->stale = true;
}
