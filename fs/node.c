/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Slotted pages, and their way to and from the disk.  Nothing of a node is
 * used before node_open() has authenticated and validated it (I4).
 */
#include "fs/node.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cipher/scheme.h"
#include "cipher/seal.h"
#include "fs/header.h"
#include "fs/item.h"

#define HEAD sizeof(struct disk_node)
#define SLOT sizeof(struct disk_item)

static struct disk_item *items_mut(struct node *n)
{
	return (struct disk_item *)(n->buf + HEAD);
}

static struct key key_decode(const struct disk_key *d)
{
	return (struct key){ le64_get(d->inum), le64_get(d->offset), d->type };
}

static struct disk_key key_encode(const struct key *k)
{
	return (struct disk_key){ le64_of(k->inum), k->type,
				  le64_of(k->offset) };
}

/* Most children that an internal node has room for. */
static size_t children_max(size_t payload)
{
	return (payload - HEAD) / (SLOT + sizeof(struct disk_ptr));
}

struct node *node_new(unsigned int log2_bytes)
{
	size_t payload = ((size_t)1 << log2_bytes) - HINT_BYTES;
	struct node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->buf = malloc(payload);
	n->child = calloc(children_max(payload), sizeof(struct node *));
	if (!n->buf || !n->child) {
		node_free(n);
		return NULL;
	}
	n->bytes = (uint32_t)payload;
	n->ptr.log2_bytes = (uint8_t)log2_bytes;
	n->max_items = UINT_MAX;
	n->heap = n->bytes;
	return n;
}

void node_free(struct node *n)
{
	if (!n)
		return;
	assert(!n->refs && !n->cached);
	free(n->buf);
	free(n->child);
	free(n);
}

void node_reset(struct node *n, uint64_t tree, unsigned int level)
{
	uint8_t log2_bytes = n->ptr.log2_bytes;

	n->ptr = (struct ptr){ .log2_bytes = log2_bytes,
			       .level = (uint8_t)level };
	n->tree = tree;
	n->level = level;
	n->low = KEY_MIN;
	n->epoch = 0;
	n->nr = 0;
	n->heap = n->bytes;
	n->garbage = 0;
	n->superseded = false;
}

void node_copy(struct node *to, const struct node *from)
{
	assert(to->bytes == from->bytes);
	node_reset(to, from->tree, from->level);
	to->low = from->low;
	to->nr = from->nr;
	to->max_items = from->max_items;
	to->heap = from->heap;
	to->garbage = from->garbage;
	memcpy(to->buf + HEAD, from->buf + HEAD, from->nr * SLOT);
	memcpy(to->buf + from->heap, from->buf + from->heap,
	       from->bytes - from->heap);
	if (from->level)
		memcpy(to->child, from->child, from->nr * sizeof(*to->child));
}

struct key node_key(const struct node *n, unsigned int i)
{
	assert(i < n->nr);
	return key_decode(&node_items(n)[i].key);
}

void *node_value_mut(struct node *n, unsigned int i)
{
	assert(i < n->nr);
	return n->buf + le16_get(node_items(n)[i].pos);
}

unsigned int node_search(const struct node *n, const struct key *key,
			 bool *equal)
{
	unsigned int lo = 0, hi = n->nr;

	*equal = false;
	while (lo < hi) {
		unsigned int mid = lo + (hi - lo) / 2;
		struct key k = node_key(n, mid);
		int c = key_cmp(&k, key);

		if (c < 0) {
			lo = mid + 1;
		} else {
			hi = mid;
			if (!c)
				*equal = true;
		}
	}
	return lo;
}

unsigned int node_child_index(const struct node *n, const struct key *key)
{
	bool equal;
	unsigned int i = node_search(n, key, &equal);

	assert(n->level && n->nr);
	return equal ? i : i ? i - 1 : 0;
}

uint32_t node_used(const struct node *n)
{
	return (uint32_t)(n->nr * SLOT + (n->bytes - n->heap) - n->garbage);
}

size_t node_value_max(const struct node *n)
{
	return (n->bytes - HEAD) / 4 - SLOT;
}

bool node_fits(const struct node *n, size_t len)
{
	return n->nr < n->max_items &&
	       HEAD + node_used(n) + SLOT + len <= n->bytes;
}

bool node_fits_replace(const struct node *n, unsigned int i, size_t len)
{
	size_t old = le16_get(node_items(n)[i].len);

	return HEAD + node_used(n) - old + len <= n->bytes;
}

/* Squeeze out the garbage: values in slot order, from the end down. */
static void compact_into(const struct node *n, uint8_t *out)
{
	const struct disk_item *from = node_items(n);
	struct disk_item *to = (struct disk_item *)(out + HEAD);
	uint32_t heap = n->bytes;

	for (unsigned int i = 0; i < n->nr; i++) {
		uint16_t len = le16_get(from[i].len);

		heap -= len;
		memcpy(out + heap, n->buf + le16_get(from[i].pos), len);
		to[i] = from[i];
		to[i].pos = le16_of((uint16_t)heap);
	}
	memset(out + HEAD + n->nr * SLOT, 0, heap - (HEAD + n->nr * SLOT));
}

static void compact(struct node *n)
{
	uint8_t *copy = malloc(n->bytes);

	/*
	 * Want of memory is not an error here: shift values one by one, from
	 * the highest position down, which needs none.
	 */
	if (copy) {
		compact_into(n, copy);
		memcpy(n->buf + HEAD, copy + HEAD, n->bytes - HEAD);
		free(copy);
		n->heap = n->bytes - (n->bytes - n->heap - n->garbage);
		n->garbage = 0;
		return;
	}
	uint32_t limit = n->bytes, heap = n->bytes;
	for (unsigned int done = 0; done < n->nr; done++) {
		struct disk_item *best = NULL;

		for (unsigned int i = 0; i < n->nr; i++) {
			struct disk_item *s = &items_mut(n)[i];

			/* An empty one may stand where another begins. */
			if (le16_get(s->len) && le16_get(s->pos) < limit &&
			    (!best || le16_get(s->pos) > le16_get(best->pos)))
				best = s;
		}
		if (!best)
			break;
		limit = le16_get(best->pos);
		heap -= le16_get(best->len);
		memmove(n->buf + heap, n->buf + limit, le16_get(best->len));
		best->pos = le16_of((uint16_t)heap);
	}
	for (unsigned int i = 0; i < n->nr; i++)
		if (!le16_get(items_mut(n)[i].len))
			items_mut(n)[i].pos = le16_of((uint16_t)heap);
	n->heap = heap;
	n->garbage = 0;
}

/* Room for a value of @len bytes beside @nr_slots slots; its position. */
static uint32_t take_heap(struct node *n, size_t len, unsigned int nr_slots)
{
	if (n->heap < HEAD + nr_slots * SLOT + len)
		compact(n);
	assert(n->heap >= HEAD + nr_slots * SLOT + len);
	n->heap -= (uint32_t)len;
	return n->heap;
}

void node_insert(struct node *n, unsigned int i, const struct key *key,
		 const void *value, size_t len)
{
	struct disk_item *slots;
	uint32_t pos;

	assert(i <= n->nr && HEAD + node_used(n) + SLOT + len <= n->bytes);
	pos = take_heap(n, len, n->nr + 1);
	memcpy(n->buf + pos, value, len);
	slots = items_mut(n);
	memmove(&slots[i + 1], &slots[i], (n->nr - i) * SLOT);
	slots[i] = (struct disk_item){ key_encode(key), 0,
				       le16_of((uint16_t)pos),
				       le16_of((uint16_t)len) };
	if (n->level) {
		memmove(&n->child[i + 1], &n->child[i],
			(n->nr - i) * sizeof(*n->child));
		n->child[i] = NULL;
	}
	n->nr++;
}

void node_remove(struct node *n, unsigned int i)
{
	struct disk_item *slots = items_mut(n);

	assert(i < n->nr);
	if (le16_get(slots[i].pos) == n->heap)
		n->heap += le16_get(slots[i].len);
	else
		n->garbage += le16_get(slots[i].len);
	memmove(&slots[i], &slots[i + 1], (n->nr - i - 1) * SLOT);
	if (n->level)
		memmove(&n->child[i], &n->child[i + 1],
			(n->nr - i - 1) * sizeof(*n->child));
	n->nr--;
	if (!n->nr) {
		n->heap = n->bytes;
		n->garbage = 0;
	}
}

void node_replace(struct node *n, unsigned int i, const void *value,
		  size_t len)
{
	struct disk_item *s = &items_mut(n)[i];
	size_t old = le16_get(s->len);
	uint32_t pos;

	assert(i < n->nr && node_fits_replace(n, i, len));
	if (len == old) {
		memcpy(n->buf + le16_get(s->pos), value, len);
		return;
	}
	n->garbage += (uint32_t)old;
	s->len = le16_of(0);
	pos = take_heap(n, len, n->nr);
	memcpy(n->buf + pos, value, len);
	s->pos = le16_of((uint16_t)pos);
	s->len = le16_of((uint16_t)len);
}

void node_set_key(struct node *n, unsigned int i, const struct key *key)
{
	assert(i < n->nr);
	items_mut(n)[i].key = key_encode(key);
}

void node_move_tail(struct node *left, unsigned int from, struct node *right)
{
	assert(!right->nr && right->level == left->level && from <= left->nr);
	for (unsigned int i = from; i < left->nr; i++) {
		struct key k = node_key(left, i);
		size_t len;
		const void *value = node_value(left, i, &len);

		node_insert(right, right->nr, &k, value, len);
		if (left->level)
			right->child[right->nr - 1] = left->child[i];
	}
	while (left->nr > from)
		node_remove(left, left->nr - 1);
}

void node_append_all(struct node *left, struct node *right)
{
	for (unsigned int i = 0; i < right->nr; i++) {
		struct key k = node_key(right, i);
		size_t len;
		const void *value = node_value(right, i, &len);

		node_insert(left, left->nr, &k, value, len);
		if (left->level)
			left->child[left->nr - 1] = right->child[i];
	}
	right->nr = 0;
	right->heap = right->bytes;
	right->garbage = 0;
}

/* What is authenticated beside the payload: container, tree, key. */
struct node_aad {
	uint8_t uuid[UUID_BYTES];
	le64 tree;
	le16 key_id;
};
static_assert(sizeof(struct node_aad) == 26, "FORMAT.md, Nodes");

static struct node_aad make_aad(const uint8_t uuid[static UUID_BYTES],
				uint64_t tree, uint16_t key_id)
{
	struct node_aad aad = { .tree = le64_of(tree),
				.key_id = le16_of(key_id) };

	memcpy(aad.uuid, uuid, UUID_BYTES);
	return aad;
}

/* Tweak of the hint: the first block's number; the session is inside. */
static void hint_tweak(const struct ptr *p, uint8_t tweak[static TWEAK_BYTES])
{
	le64 low = le64_of(p->block), high = le64_of(0);

	memcpy(tweak, &low, 8);
	memcpy(tweak + 8, &high, 8);
}

int node_seal(struct node *n, const uint8_t uuid[static UUID_BYTES],
	      const struct key_set *keys, struct nonce_source *src,
	      uint8_t *scratch, uint8_t *out)
{
	struct node_aad aad = make_aad(uuid, n->tree, keys->key_id);
	struct disk_node head = {
		.tree = le64_of(n->tree),
		.block = le64_of(n->ptr.block),
		.birth = le64_of(n->ptr.birth),
		.low = key_encode(&n->low),
		.level = (uint8_t)n->level,
		.nr = le16_of((uint16_t)n->nr),
	};
	struct disk_hint hint = { .magic = le64_of(NODE_HINT_MAGIC) };
	uint8_t tweak[TWEAK_BYTES];
	int err;

	assert(n->ptr.block && n->ptr.birth);
	memcpy(head.uuid, uuid, UUID_BYTES);
	compact_into(n, scratch);
	memcpy(scratch, &head, sizeof(head));
	for (unsigned int i = 0; n->level && i < n->nr; i++) {
		struct disk_item *s = (struct disk_item *)(scratch + HEAD) + i;

		if (!n->child[i])
			continue;
		assert(n->child[i]->ptr.block);
		ptr_encode(&n->child[i]->ptr,
			   (struct disk_ptr *)(scratch + le16_get(s->pos)));
	}

	n->ptr.key_id = keys->key_id;
	n->ptr.level = (uint8_t)n->level;
	err = seal_message(keys->node, src, &aad, sizeof(aad), scratch,
			   n->bytes, out + HINT_BYTES, &n->ptr.nonce,
			   n->ptr.tag);
	if (err)
		return err;
	memcpy(hint.tag, n->ptr.tag, sizeof(hint.tag));
	hint.session = le64_of(n->ptr.nonce.session);
	hint.counter = le32_of(n->ptr.nonce.counter);
	hint.key_id = le16_of(keys->key_id);
	hint.log2_bytes = n->ptr.log2_bytes;
	hint_tweak(&n->ptr, tweak);
	return hint_encrypt(keys->salvage, tweak, &hint, out);
}

/* Slots sorted, values inside the heap, free space zero, items sound. */
static int validate_items(struct node *n, const struct key *low,
			  const struct key *high)
{
	uint32_t end = (uint32_t)(HEAD + n->nr * SLOT);
	struct key before = *low;
	uint32_t expect = n->bytes;

	for (unsigned int i = 0; i < n->nr; i++) {
		const struct disk_item *s = &node_items(n)[i];
		struct key k = key_decode(&s->key);
		uint32_t pos = le16_get(s->pos), len = le16_get(s->len);
		int c = key_cmp(&before, &k);

		if (c > 0 || (i && !c) || key_cmp(&k, high) >= 0 || s->zero)
			return -EUCLEAN;
		/* node_seal() lays values out in slot order, without gaps. */
		if (len > expect - end || pos != expect - len)
			return -EUCLEAN;
		expect = pos;
		if (item_validate(n->tree, n->level, &k, n->buf + pos, len))
			return -EUCLEAN;
		before = k;
	}
	n->heap = expect;
	n->garbage = 0;
	for (uint32_t i = end; i < expect; i++)
		if (n->buf[i])
			return -EUCLEAN;
	return 0;
}

int node_open(struct node *n, const struct ptr *p, uint64_t tree,
	      const struct key *low, const struct key *high,
	      const uint8_t uuid[static UUID_BYTES],
	      const struct key_set *keys, const uint8_t *in)
{
	struct node_aad aad = make_aad(uuid, tree, p->key_id);
	struct disk_node head;
	int err;

	node_reset(n, tree, p->level);
	err = seal_open(keys->node, p->nonce, &aad, sizeof(aad),
			in + HINT_BYTES, n->bytes, n->buf, p->tag);
	if (err)
		return err;
	memcpy(&head, n->buf, sizeof(head));
	n->ptr = *p;
	n->low = key_decode(&head.low);
	n->nr = le16_get(head.nr);
	if (memcmp(head.uuid, uuid, UUID_BYTES) ||
	    le64_get(head.tree) != tree || le64_get(head.block) != p->block ||
	    le64_get(head.birth) != p->birth || head.level != p->level ||
	    memcmp(head.zero, (uint8_t[4]){ 0 }, 4) ||
	    key_cmp(low, &n->low) > 0)
		return -EUCLEAN;
	if (n->nr > (n->bytes - HEAD) / SLOT)
		return -EUCLEAN;
	if (n->level && (!n->nr || n->nr > children_max(n->bytes)))
		return -EUCLEAN;
	if (n->level)
		memset(n->child, 0, n->nr * sizeof(*n->child));
	return validate_items(n, &n->low, high);
}
