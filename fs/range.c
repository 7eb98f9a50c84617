/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fs/range.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int range_vec_reserve(struct range_vec *v, size_t more)
{
	size_t room = v->room ? v->room : 64;
	struct range *r;

	if (v->nr + more <= v->room)
		return 0;
	while (room < v->nr + more)
		room *= 2;
	r = reallocarray(v->r, room, sizeof(*r));
	if (!r)
		return -ENOMEM;
	v->r = r;
	v->room = room;
	return 0;
}

void range_vec_add(struct range_vec *v, block_t start, uint32_t nr,
		   uint64_t birth)
{
	struct range *last = v->nr ? &v->r[v->nr - 1] : NULL;

	v->blocks += nr;
	if (last && last->birth == birth && last->start + last->nr == start &&
	    last->nr <= UINT32_MAX - nr) {
		last->nr += nr;
		return;
	}
	assert(v->nr < v->room);
	v->r[v->nr++] = (struct range){ start, birth, nr };
}

void range_vec_destroy(struct range_vec *v)
{
	free(v->r);
	*v = RANGE_VEC_EMPTY;
}
