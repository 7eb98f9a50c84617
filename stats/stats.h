/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Recording: what the rest of the program calls, tens of nanoseconds a call.
 * Each thread writes to its own slot with relaxed atomics; reading sums the
 * slots.  Counters only grow from mount to unmount.
 *
 * Lists of operations, timers, counters and gauges come from the .def files,
 * from which names, units, help texts and enums are all made.
 */
#ifndef STATS_STATS_H
#define STATS_STATS_H

#include <stddef.h>
#include <stdint.h>

struct stats;
struct stats_snapshot;

/* File system operations: count, errors, bytes, latency. */
enum stats_op {
#define OP(name, help) STATS_OP_##name,
#include "stats/ops.def"
#undef OP
	STATS_OP_NR
};

/* Things inside that take time and move bytes: count, bytes, latency. */
enum stats_timer {
#define TIMER(name, help) STATS_TIMER_##name,
#include "stats/timers.def"
#undef TIMER
	STATS_TIMER_NR
};

enum stats_counter {
#define COUNTER(name, unit, help) STATS_##name,
#include "stats/counters.def"
#undef COUNTER
	STATS_COUNTER_NR
};

/* Values of the moment, asked for when a snapshot is taken. */
enum stats_gauge {
#define GAUGE(name, unit, help) STATS_GAUGE_##name,
#include "stats/gauges.def"
#undef GAUGE
	STATS_GAUGE_NR
};

/*
 * Starts the uptime.  Returns NULL if there is no memory or the process has
 * used up its pthread keys (one each).
 */
struct stats *stats_new(void);

/*
 * @s may be NULL.  No thread may be recording or taking a snapshot, and none
 * that ever recorded may be ending just now: join it first, or let it live.
 */
void stats_free(struct stats *s);

/* CLOCK_MONOTONIC in ns. */
uint64_t stats_now(void);

/*
 * All recording calls are thread-safe, never block and do nothing when @s is
 * NULL.
 *
 * @error  0 or negative errno: counted as an error if not 0
 * @bytes  moved for the caller by this operation; 0 where that means nothing
 */
void stats_op(struct stats *s, enum stats_op op, uint64_t ns, int error,
	      uint64_t bytes);
void stats_time(struct stats *s, enum stats_timer t, uint64_t ns,
		uint64_t bytes);
void stats_count(struct stats *s, enum stats_counter c, uint64_t n);

#endif
