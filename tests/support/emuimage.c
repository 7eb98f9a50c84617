/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/emuimage.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Small pages: a crash image touches many of them, and copying one counts
 * every block in it (54 us an image with 64, 124 with 512).
 */
#define PAGE_BLOCKS 64u

struct emupage {
	unsigned int refs; /* atomic */
	struct emublock *block[PAGE_BLOCKS];
};

struct emublock emublock_bad = { .refs = 1 };

static void *must(void *p)
{
	if (!p) {
		fputs("emulated disk: no memory\n", stderr);
		abort();
	}
	return p;
}

static void ref(unsigned int *refs)
{
	__atomic_fetch_add(refs, 1, __ATOMIC_RELAXED);
}

/* Was it the last? */
static bool unref(unsigned int *refs)
{
	return __atomic_sub_fetch(refs, 1, __ATOMIC_ACQ_REL) == 0;
}

struct emublock *emublock_new(const uint8_t *bytes)
{
	struct emublock *b = must(malloc(sizeof(*b)));

	b->refs = 1;
	if (bytes)
		memcpy(b->bytes, bytes, sizeof(b->bytes));
	else
		memset(b->bytes, 0, sizeof(b->bytes));
	return b;
}

struct emublock *emublock_get(struct emublock *b)
{
	if (b)
		ref(&b->refs);
	return b;
}

void emublock_put(struct emublock *b)
{
	if (b && unref(&b->refs))
		free(b);
}

static void page_put(struct emupage *p)
{
	if (!p || !unref(&p->refs))
		return;
	for (unsigned int i = 0; i < PAGE_BLOCKS; i++)
		emublock_put(p->block[i]);
	free(p);
}

/* Page @nr for writing: made if it is missing, copied if it is shared. */
static struct emupage *page_own(struct emuimage *i, uint64_t nr)
{
	struct emupage *old = i->top[nr], *p;

	if (old && __atomic_load_n(&old->refs, __ATOMIC_ACQUIRE) == 1)
		return old;

	p = must(calloc(1, sizeof(*p)));
	p->refs = 1;
	for (unsigned int k = 0; old && k < PAGE_BLOCKS; k++)
		p->block[k] = emublock_get(old->block[k]);
	page_put(old);
	i->top[nr] = p;
	return p;
}

void emuimage_init(struct emuimage *i, uint64_t nr_blocks)
{
	*i = (struct emuimage){ 0 };
	emuimage_grow(i, nr_blocks);
}

void emuimage_grow(struct emuimage *i, uint64_t nr_blocks)
{
	uint64_t nr_pages = (nr_blocks + PAGE_BLOCKS - 1) / PAGE_BLOCKS;

	if (nr_blocks <= i->nr_blocks)
		return;
	i->nr_blocks = nr_blocks;
	if (nr_pages == i->nr_pages)
		return;

	i->top = must(realloc(i->top, nr_pages * sizeof(*i->top)));
	memset(i->top + i->nr_pages, 0,
	       (nr_pages - i->nr_pages) * sizeof(*i->top));
	i->nr_pages = nr_pages;
}

void emuimage_destroy(struct emuimage *i)
{
	for (uint64_t k = 0; k < i->nr_pages; k++)
		page_put(i->top[k]);
	free(i->top);
	*i = (struct emuimage){ 0 };
}

void emuimage_clone(struct emuimage *to, const struct emuimage *from)
{
	emuimage_init(to, from->nr_blocks);
	for (uint64_t k = 0; k < from->nr_pages; k++) {
		to->top[k] = from->top[k];
		if (to->top[k])
			ref(&to->top[k]->refs);
	}
}

struct emublock *emuimage_at(const struct emuimage *i, block_t block)
{
	struct emupage *p;

	assert(block < i->nr_blocks);
	p = i->top[block / PAGE_BLOCKS];
	return p ? p->block[block % PAGE_BLOCKS] : NULL;
}

void emuimage_set(struct emuimage *i, block_t block, struct emublock *b)
{
	struct emublock **at;

	assert(block < i->nr_blocks);
	at = &page_own(i, block / PAGE_BLOCKS)->block[block % PAGE_BLOCKS];
	emublock_get(b);
	emublock_put(*at);
	*at = b;
}
