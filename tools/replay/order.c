/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A binary heap over (time, order of arrival), the least at its root.
 */
#include <assert.h>

#include "tools/replay/order.h"

static bool is_before(const struct order *o, size_t a, size_t b)
{
	if (o->heap[a].rec.time_ns != o->heap[b].rec.time_ns)
		return o->heap[a].rec.time_ns < o->heap[b].rec.time_ns;
	return o->heap[a].sequence < o->heap[b].sequence;
}

static void swap(struct order *o, size_t a, size_t b)
{
	const typeof(o->heap[0]) kept = o->heap[a];

	o->heap[a] = o->heap[b];
	o->heap[b] = kept;
}

void order_put(struct order *o, const struct trace_record *rec)
{
	size_t i = o->nr++;

	assert(i < ORDER_WINDOW);
	o->heap[i].rec = *rec;
	o->heap[i].sequence = o->sequence++;
	while (i && is_before(o, i, (i - 1) / 2)) {
		swap(o, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

bool order_take(struct order *o, struct trace_record *rec)
{
	size_t i = 0;

	if (!o->nr)
		return false;
	*rec = o->heap[0].rec;
	o->heap[0] = o->heap[--o->nr];
	for (;;) {
		size_t least = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++)
			if (child < o->nr && is_before(o, child, least))
				least = child;
		if (least == i)
			return true;
		swap(o, i, least);
		i = least;
	}
}
