/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * When each operation of a trace is due, counted from the start of a replay.
 *
 * Due times are sums of whole nanoseconds of the trace, scaled once: nothing
 * is added on the way that an operation took, so nothing drifts.  A time below
 * the one before it is due at once with it and counted.
 */
#ifndef TOOLS_REPLAY_SCHEDULE_H
#define TOOLS_REPLAY_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum schedule_mode {
	SCHEDULE_MAX,	/* nothing is ever due: as fast as possible */
	SCHEDULE_TIMES, /* as recorded, scaled */
	SCHEDULE_RATE,	/* so many a second, whatever was recorded */
};

struct schedule {
	/* Set by the user; the rest zero. */
	enum schedule_mode mode;
	uint64_t speed_milli; /* TIMES: 1000 is as recorded, 2000 twice as
				 fast; above 0 */
	uint64_t rate;	      /* RATE: operations a second; above 0 */
	uint64_t max_idle_ns; /* TIMES: cut longer gaps to it; 0: none */

	/* Of the trace, before scaling. */
	bool started;
	uint64_t last_ns, elapsed_ns;
	uint64_t nr;
	uint64_t clamped; /* times below the one before */
	uint64_t cut;	  /* gaps that were longer than max_idle_ns */
};

/* When the next record, recorded at @time_ns, is due; stops at 2^64 - 1. */
uint64_t schedule_due(struct schedule *s, uint64_t time_ns);

/* The trace begins again: its first record follows on the last one. */
void schedule_again(struct schedule *s);

#endif
