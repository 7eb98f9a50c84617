/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which 4096-byte blocks of which target a trace reads or writes: its working
 * set, what has to be filled before a replay, and where each block goes when
 * the gaps are left out.
 *
 * A bitmap in chunks of 4096 blocks (16 MiB), made where something is touched:
 * memory depends on the addresses, not on the number of operations.
 */
#ifndef TOOLS_REPLAY_TOUCHED_H
#define TOOLS_REPLAY_TOUCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"

#define TOUCHED_BLOCK 4096
/* 140 MiB of memory; 4 TiB that are written as a whole. */
#define TOUCHED_CHUNKS_MAX (1U << 18)

struct touched;

struct touched *touched_new(void);
void touched_free(struct touched *t);

/*
 * Add the blocks of @length bytes at @offset; nothing if @length is 0.
 * Returns 0, -ENOMEM, or -E2BIG once TOUCHED_CHUNKS_MAX is reached: then what
 * is counted is too little.  Not after touched_seal().
 */
must_check int touched_add(struct touched *t, uint32_t target, uint64_t offset,
			   uint64_t length);

/* Blocks so far, of all targets. */
uint64_t touched_blocks(const struct touched *t);

/* End adding: what follows is only allowed from here on. */
void touched_seal(struct touched *t);

/* How many touched blocks of @target lie before @block. */
uint64_t touched_rank(const struct touched *t, uint32_t target, uint64_t block);

/* Whether @block is touched. */
bool touched_has(const struct touched *t, uint32_t target, uint64_t block);

/*
 * The next run of touched blocks of @target at or behind @from, cut at chunks.
 * Returns its length in blocks and its start in *@start; 0: there is none.
 */
uint64_t touched_next(const struct touched *t, uint32_t target, uint64_t from,
		      uint64_t *start);

#endif
