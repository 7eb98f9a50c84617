/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Windows without an operation count as well, with 0 bytes, but are not
 * walked: a gap of a day is one step.
 */
#include "tools/replay/rate.h"

#define NS_PER_S UINT64_C(1000000000)

const uint64_t rate_width_ns[RATE_WIDTH_NR] = { 1000000, 10000000, 100000000,
						1000000000 };

/* Close all windows of width @w before the one that has number @index. */
static void advance(struct rate *r, int w, uint64_t index)
{
	typeof(r->width[0]) *const at = &r->width[w];

	if (index <= at->index)
		return;
	if (!at->index || at->bytes < at->min)
		at->min = at->bytes;
	if (at->bytes > at->max)
		at->max = at->bytes;
	if (index > at->index + 1)
		at->min = 0;
	at->index = index;
	at->bytes = 0;
}

void rate_add(struct rate *r, uint64_t at_ns, uint64_t bytes)
{
	for (int w = 0; w < RATE_WIDTH_NR; w++) {
		advance(r, w, at_ns / rate_width_ns[w]);
		r->width[w].bytes += bytes;
	}
}

static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)bytes * NS_PER_S / ns);
}

void rate_end(struct rate *r, uint64_t end_ns, struct rate_summary *out)
{
	int w = RATE_WIDTH_NR - 1, burst;

	for (int i = 0; i < RATE_WIDTH_NR; i++)
		advance(r, i, end_ns / rate_width_ns[i]);
	while (w && r->width[w].index < RATE_WINDOWS_MIN)
		w--;
	burst = w ? w - 1 : 0;
	*out = (struct rate_summary){
		.window_ns = rate_width_ns[w],
		.nr_windows = r->width[w].index,
		.min = per_second(r->width[w].min, rate_width_ns[w]),
		.max = per_second(r->width[w].max, rate_width_ns[w]),
		.burst_window_ns = rate_width_ns[burst],
		.burst = per_second(r->width[burst].max, rate_width_ns[burst]),
	};
}
