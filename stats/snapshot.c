/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Summing the slots of all threads.  Reads only, so that any number of
 * snapshots can be taken at once, while all threads go on recording.  slot.h
 * says in which order, and what that makes sure of.
 */
#include <string.h>

#include "stats/slot.h"
#include "stats/snapshot.h"

static uint64_t read_one(_Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_acquire);
}

static void add_one(uint64_t *to, uint64_t n)
{
	if (__builtin_add_overflow(*to, n, to))
		*to = UINT64_MAX;
}

/*
 * Add the buckets from min to max of one slot: what else is recorded in this
 * very moment belongs to the next snapshot, and pages that no one has written
 * are not touched.
 */
static void add_latency(struct histogram *to, struct stats_slot_series *from)
{
	uint64_t max = read_one(&from->max);
	uint64_t min = ~read_one(&from->min_inverted);
	uint64_t count = 0;
	size_t last;

	/* min > max: nothing yet, or the other one is just being set. */
	if (min > max)
		return;
	last = histogram_index(max);
	for (size_t i = histogram_index(min); i <= last; i++) {
		uint64_t n = read_one(&from->bucket[i]);

		to->bucket[i] += n;
		count += n;
	}
	if (!count)
		return;
	if (!to->count || min < to->min)
		to->min = min;
	if (!to->count || max > to->max)
		to->max = max;
	to->count += count;
}

static void add_series(struct stats_series *to, struct stats_slot_series *from)
{
	add_one(&to->errors, read_one(&from->errors));
	add_one(&to->bytes, read_one(&from->bytes));
	add_one(&to->latency.sum, read_one(&from->sum));
	add_latency(&to->latency, from);
	to->count = to->latency.count;
}

static void add_slot(struct stats_snapshot *out, struct stats_slot *slot)
{
	for (size_t i = 0; i < STATS_OP_NR; i++)
		add_series(&out->op[i], &slot->series[i]);
	for (size_t i = 0; i < STATS_TIMER_NR; i++)
		add_series(&out->timer[i], &slot->series[STATS_OP_NR + i]);
	for (size_t i = 0; i < STATS_COUNTER_NR; i++)
		add_one(&out->counter[i], read_one(&slot->counter[i]));
}

void stats_snapshot_take(struct stats *s, struct stats_snapshot *out)
{
	struct stats_slot *slot;

	memset(out->op, 0, sizeof(out->op));
	memset(out->timer, 0, sizeof(out->timer));
	memset(out->counter, 0, sizeof(out->counter));
	out->uptime_ns = 0;
	if (!s)
		return;

	slot = atomic_load_explicit(&s->slots, memory_order_acquire);
	for (; slot; slot = slot->next)
		add_slot(out, slot);
	out->uptime_ns = stats_now() - s->start_ns;
}
