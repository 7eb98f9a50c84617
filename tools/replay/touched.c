/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * While adding, a hash table finds a chunk; once sealed the chunks are sorted,
 * know how many blocks lie before them, and are found by bisection.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay/touched.h"

#define CHUNK_BLOCKS 4096
#define WORDS (CHUNK_BLOCKS / 64)

struct chunk {
	uint64_t index;	 /* block / CHUNK_BLOCKS */
	uint64_t before; /* blocks of the target in earlier chunks; sealed */
	uint32_t target;
	uint32_t count;
	uint64_t bits[WORDS];
};

struct touched {
	struct chunk *chunk;
	uint32_t nr, room;
	uint32_t *slot; /* index + 1; 0: free; NULL once sealed */
	uint32_t nr_slots;
	uint32_t last; /* the chunk of the last call: most calls are near it */
	uint64_t blocks;
};

struct touched *touched_new(void)
{
	return calloc(1, sizeof(struct touched));
}

void touched_free(struct touched *t)
{
	if (!t)
		return;
	free(t->chunk);
	free(t->slot);
	free(t);
}

uint64_t touched_blocks(const struct touched *t)
{
	return t->blocks;
}

static uint32_t *find_slot(const struct touched *t, uint32_t target,
			   uint64_t index)
{
	uint64_t h = (index ^ ((uint64_t)target << 40)) *
		     UINT64_C(0x9e3779b97f4a7c15);
	uint32_t i = (uint32_t)(h >> 32) & (t->nr_slots - 1);

	while (t->slot[i]) {
		const struct chunk *c = &t->chunk[t->slot[i] - 1];

		if (c->index == index && c->target == target)
			break;
		i = (i + 1) & (t->nr_slots - 1);
	}
	return &t->slot[i];
}

static int grow(struct touched *t)
{
	const uint32_t room = t->room ? t->room * 2 : 64;
	struct chunk *chunk;
	uint32_t *slot;

	chunk = reallocarray(t->chunk, room, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	t->chunk = chunk;
	slot = calloc((size_t)room * 2, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(t->slot);
	t->slot = slot;
	t->nr_slots = room * 2;
	t->room = room;
	for (uint32_t i = 0; i < t->nr; i++)
		*find_slot(t, chunk[i].target, chunk[i].index) = i + 1;
	return 0;
}

static int get_chunk(struct touched *t, uint32_t target, uint64_t index,
		     struct chunk **out)
{
	uint32_t *slot;

	if (t->last < t->nr && t->chunk[t->last].index == index &&
	    t->chunk[t->last].target == target) {
		*out = &t->chunk[t->last];
		return 0;
	}
	if (t->nr == t->room) {
		const int err = grow(t);

		if (err)
			return err;
	}
	slot = find_slot(t, target, index);
	if (!*slot) {
		if (t->nr == TOUCHED_CHUNKS_MAX)
			return -E2BIG;
		memset(&t->chunk[t->nr], 0, sizeof(*t->chunk));
		t->chunk[t->nr].index = index;
		t->chunk[t->nr].target = target;
		*slot = ++t->nr;
	}
	t->last = *slot - 1;
	*out = &t->chunk[t->last];
	return 0;
}

/* Bits @first to @end - 1 of one word. */
static uint64_t mask_of(unsigned int first, unsigned int end)
{
	assert(first < end && end <= 64);
	return (~UINT64_C(0) >> (64 - (end - first))) << first;
}

static void set_bits(struct touched *t, struct chunk *c, unsigned int first,
		     unsigned int end)
{
	while (first < end) {
		const unsigned int word = first / 64, low = first % 64;
		const unsigned int high = end - word * 64 < 64 ? end - word * 64
							       : 64;
		const uint64_t mask = mask_of(low, high);
		const int fresh = __builtin_popcountll(mask & ~c->bits[word]);

		c->bits[word] |= mask;
		c->count += (uint32_t)fresh;
		t->blocks += (uint64_t)fresh;
		first = word * 64 + high;
	}
}

int touched_add(struct touched *t, uint32_t target, uint64_t offset,
		uint64_t length)
{
	uint64_t block = offset / TOUCHED_BLOCK, end;

	assert(length <= UINT64_MAX - offset);
	if (!length)
		return 0;
	end = (offset + length - 1) / TOUCHED_BLOCK + 1;
	while (block < end) {
		const uint64_t index = block / CHUNK_BLOCKS;
		const uint64_t base = index * CHUNK_BLOCKS;
		const uint64_t stop = end - base < CHUNK_BLOCKS ? end - base
								: CHUNK_BLOCKS;
		struct chunk *c;
		const int err = get_chunk(t, target, index, &c);

		if (err)
			return err;
		set_bits(t, c, (unsigned int)(block - base),
			 (unsigned int)stop);
		block = base + stop;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

void touched_seal(struct touched *t)
{
	uint64_t before = 0;

	free(t->slot);
	t->slot = NULL;
	if (t->nr)
		qsort(t->chunk, t->nr, sizeof(*t->chunk), compare);
	for (uint32_t i = 0; i < t->nr; i++) {
		if (i && t->chunk[i].target != t->chunk[i - 1].target)
			before = 0;
		t->chunk[i].before = before;
		before += t->chunk[i].count;
	}
}

/* The first chunk that is not before (@target, @index). */
static uint32_t bisect(const struct touched *t, uint32_t target, uint64_t index)
{
	const struct chunk key = { .target = target, .index = index };
	uint32_t low = 0, high = t->nr;

	assert(!t->slot);
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (compare(&t->chunk[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t touched_rank(const struct touched *t, uint32_t target, uint64_t block)
{
	const uint32_t i = bisect(t, target, block / CHUNK_BLOCKS);
	const unsigned int bit = block % CHUNK_BLOCKS;
	uint64_t rank;

	if (i == t->nr || t->chunk[i].target != target) {
		/* Behind all of the target's. */
		if (!i || t->chunk[i - 1].target != target)
			return 0;
		return t->chunk[i - 1].before + t->chunk[i - 1].count;
	}
	rank = t->chunk[i].before;
	if (t->chunk[i].index != block / CHUNK_BLOCKS)
		return rank;
	for (unsigned int word = 0; word < bit / 64; word++)
		rank += (uint64_t)__builtin_popcountll(t->chunk[i].bits[word]);
	if (bit % 64)
		rank += (uint64_t)__builtin_popcountll(
			t->chunk[i].bits[bit / 64] & mask_of(0, bit % 64));
	return rank;
}

static bool has_bit(const struct chunk *c, unsigned int bit)
{
	return c->bits[bit / 64] >> (bit % 64) & 1;
}

bool touched_has(const struct touched *t, uint32_t target, uint64_t block)
{
	const uint32_t i = bisect(t, target, block / CHUNK_BLOCKS);

	return i < t->nr && t->chunk[i].target == target &&
	       t->chunk[i].index == block / CHUNK_BLOCKS &&
	       has_bit(&t->chunk[i], block % CHUNK_BLOCKS);
}

uint64_t touched_next(const struct touched *t, uint32_t target, uint64_t from,
		      uint64_t *start)
{
	uint32_t i = bisect(t, target, from / CHUNK_BLOCKS);

	for (; i < t->nr && t->chunk[i].target == target; i++) {
		const struct chunk *c = &t->chunk[i];
		const uint64_t base = c->index * CHUNK_BLOCKS;
		unsigned int bit = from > base ? (unsigned int)(from - base)
					       : 0;
		unsigned int end;

		while (bit < CHUNK_BLOCKS && !has_bit(c, bit))
			bit++;
		if (bit == CHUNK_BLOCKS)
			continue;
		for (end = bit; end < CHUNK_BLOCKS && has_bit(c, end); end++)
			continue;
		*start = base + bit;
		return end - bit;
	}
	return 0;
}
