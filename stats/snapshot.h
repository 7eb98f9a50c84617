/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One moment's numbers as a plain struct, and its renderings: pure functions
 * of it.
 */
#ifndef STATS_SNAPSHOT_H
#define STATS_SNAPSHOT_H

#include <stdint.h>

#include "stats/histogram.h"
#include "stats/stats.h"

struct stats_series {
	uint64_t count;	 /* the same as latency.count */
	uint64_t errors; /* operations only */
	uint64_t bytes;
	struct histogram latency; /* ns */
};

/* What names the mount; strings are the caller's and outlive the snapshot. */
struct stats_identity {
	const char *version; /* of the program */
	const char *uuid;
	const char *label;
	const char *scheme;
	uint32_t sector_bytes;
	int integrity;	   /* 0 or 1 */
	uint64_t epoch_id; /* random, one per mount */
	uint64_t start_unix_seconds;
};

struct stats_snapshot {
	struct stats_identity identity;
	uint64_t uptime_ns; /* monotonic, since the mount */
	struct stats_series op[STATS_OP_NR];
	struct stats_series timer[STATS_TIMER_NR];
	uint64_t counter[STATS_COUNTER_NR];
	uint64_t gauge[STATS_GAUGE_NR];
};

/*
 * Sum all threads' slots into *@out.  identity and gauge are left to the
 * caller.  Thread-safe, takes no lock that a recording thread holds.  The
 * struct has more than a MiB: not for the stack.
 *
 * Of what is being recorded meanwhile, a part may be in it, but always so
 * that errors and bytes belong to counted operations, and that no number is
 * smaller than in a snapshot taken before.  All zero if @s is NULL.
 */
void stats_snapshot_take(struct stats *s, struct stats_snapshot *out);

/*
 * The whole text, NUL-terminated, to be freed by the caller; NULL if there is
 * no memory.  The text is for people (100 columns); the JSON is versioned, and
 * documented in STATS.md; Prometheus' is its text format 0.0.4.
 */
char *stats_render_text(const struct stats_snapshot *s);
char *stats_render_json(const struct stats_snapshot *s);
char *stats_render_prometheus(const struct stats_snapshot *s);

#endif
