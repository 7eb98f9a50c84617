/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Growing arrays of block ranges: what an epoch allocated and what it freed.
 * No locking.
 */
#ifndef FS_RANGE_H
#define FS_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include "fs/types.h"

struct range {
	block_t start;
	uint64_t birth;		/* commit that first reached it */
	uint32_t nr;		/* blocks */
};

struct range_vec {
	struct range *r;
	size_t nr, room;
	uint64_t blocks;	/* in all ranges */
};

#define RANGE_VEC_EMPTY ((struct range_vec){ NULL, 0, 0, 0 })

/* Make room for @more ranges.  Returns 0 or -ENOMEM. */
must_check int range_vec_reserve(struct range_vec *v, size_t more);

/*
 * Append; merged with the last one where that continues it.  Room must have
 * been reserved (each caller's transaction did so before it changed anything).
 */
void range_vec_add(struct range_vec *v, block_t start, uint32_t nr,
		   uint64_t birth);

void range_vec_destroy(struct range_vec *v);

#endif
