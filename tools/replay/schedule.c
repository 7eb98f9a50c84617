/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * 128 bits for what is in between: the product of a long trace and a factor.
 */
#include "tools/replay/schedule.h"

#define NS_PER_S UINT64_C(1000000000)

static uint64_t scale(uint64_t n, uint64_t times, uint64_t by)
{
	const unsigned __int128 r = (unsigned __int128)n * times / by;

	return r > UINT64_MAX ? UINT64_MAX : (uint64_t)r;
}

static void advance(struct schedule *s, uint64_t time_ns)
{
	uint64_t gap;

	if (!s->started) {
		s->started = true;
		s->last_ns = time_ns;
		return;
	}
	if (time_ns < s->last_ns) {
		s->clamped++;
		return;
	}
	gap = time_ns - s->last_ns;
	s->last_ns = time_ns;
	if (s->max_idle_ns && gap > s->max_idle_ns) {
		s->cut++;
		gap = s->max_idle_ns;
	}
	if (__builtin_add_overflow(s->elapsed_ns, gap, &s->elapsed_ns))
		s->elapsed_ns = UINT64_MAX;
}

uint64_t schedule_due(struct schedule *s, uint64_t time_ns)
{
	const uint64_t nr = s->nr++;

	switch (s->mode) {
	case SCHEDULE_MAX:
		return 0;
	case SCHEDULE_RATE:
		return scale(nr, NS_PER_S, s->rate);
	case SCHEDULE_TIMES:
		break;
	}
	advance(s, time_ns);
	return scale(s->elapsed_ns, 1000, s->speed_milli);
}

void schedule_again(struct schedule *s)
{
	s->started = false;
}
