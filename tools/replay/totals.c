/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sums are of 64 bits: 2^64 bytes are more than any trace moved.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay/totals.h"

void totals_destroy(struct trace_totals *t)
{
	free(t->target);
	memset(t, 0, sizeof(*t));
}

static int need_target(struct trace_totals *t, uint32_t id)
{
	struct target_totals *grown;
	uint32_t room = t->room ? t->room : 16;

	if (id < t->nr_targets)
		return 0;
	while (room <= id)
		room *= 2;
	if (room != t->room) {
		grown = reallocarray(t->target, room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + t->room, 0, (room - t->room) * sizeof(*grown));
		t->target = grown;
		t->room = room;
	}
	t->nr_targets = id + 1;
	return 0;
}

static void add_time(struct trace_totals *t, uint64_t ns)
{
	if (!t->records) {
		t->first_ns = t->last_ns = ns;
	} else {
		if (ns < t->previous_ns)
			t->out_of_order++;
		if (ns < t->first_ns)
			t->first_ns = ns;
		if (ns > t->last_ns)
			t->last_ns = ns;
	}
	t->previous_ns = ns;
}

static void add_extent(struct trace_totals *t, const struct trace_record *rec)
{
	struct target_totals *of = &t->target[rec->target];
	const uint64_t end = rec->offset + rec->length;

	if (!t->extents++)
		t->min_offset = rec->offset;
	if (rec->offset < t->min_offset)
		t->min_offset = rec->offset;
	if (rec->offset > t->max_offset)
		t->max_offset = rec->offset;
	if (end > t->max_end)
		t->max_end = end;
	if (end > of->max_end)
		of->max_end = end;
}

/* Of a read or a write. */
static void add_shape(struct trace_totals *t, const struct trace_record *rec)
{
	struct target_totals *of = &t->target[rec->target];
	const uint64_t odd = rec->offset | rec->length;

	if (!rec->length)
		t->zero_length++;
	t->size_class[rec->length ? 64 - __builtin_clzll(rec->length) : 0]++;
	t->odd_512 += odd % 512 != 0;
	t->odd_4096 += odd % 4096 != 0;
	t->sequential += of->records && rec->offset == of->last_end;
	of->last_end = rec->offset + rec->length;
	of->records++;
}

int totals_add(struct trace_totals *t, const struct trace_record *rec)
{
	const int err = need_target(t, rec->target);

	if (err)
		return err;
	add_time(t, rec->time_ns);
	t->records++;
	t->count[rec->op]++;
	t->bytes[rec->op] += rec->length;
	if (rec->op <= TRACE_TRIM)
		add_extent(t, rec);
	if (rec->op <= TRACE_WRITE)
		add_shape(t, rec);
	return 0;
}
