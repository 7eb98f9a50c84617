/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Contents of an emulated disk: an array of blocks of which copies are cheap.
 *
 *	image -> top[] -> page of 64 -> block of 4096 bytes
 *
 * Pages and blocks are counted references; a page that is shared is copied
 * before it changes, a block never changes.  No block at all: zeros.
 */
#ifndef TESTS_SUPPORT_EMUIMAGE_H
#define TESTS_SUPPORT_EMUIMAGE_H

#include <stdint.h>

#include "fs/types.h"

struct emublock {
	unsigned int refs; /* atomic */
	uint8_t bytes[BLOCK_BYTES];
};

struct emupage;

struct emuimage {
	uint64_t nr_blocks;
	uint64_t nr_pages;
	struct emupage **top;
};

/* A block that cannot be read.  Counted like the others, never freed. */
extern struct emublock emublock_bad;

/* A new block with one reference; @bytes NULL: zeros. */
struct emublock *emublock_new(const uint8_t *bytes);
struct emublock *emublock_get(struct emublock *b);
void emublock_put(struct emublock *b);

void emuimage_init(struct emuimage *i, uint64_t nr_blocks);
void emuimage_destroy(struct emuimage *i);
/* @to is not initialised. */
void emuimage_clone(struct emuimage *to, const struct emuimage *from);
/* To at least @nr_blocks, with zeros. */
void emuimage_grow(struct emuimage *i, uint64_t nr_blocks);

/* NULL: zeros.  Not a new reference. */
struct emublock *emuimage_at(const struct emuimage *i, block_t block);
/* Takes a new reference to @b, which may be NULL. */
void emuimage_set(struct emuimage *i, block_t block, struct emublock *b);

#endif
