/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tables of names: nothing but the .def files, once more. */
#include <assert.h>

#include "stats/names.h"

/*
 * The page for people is 100 columns wide and its tables have no room for
 * more than this.
 */
#define FITS_TABLE(name) \
	static_assert(sizeof(#name) - 1 <= 15, #name ": a long name");
#define FITS_LIST(name, unit, help)                                       \
	static_assert(sizeof(#name) - 1 <= 22 && sizeof(unit) - 1 <= 7 && \
			      sizeof(help) - 1 <= 47,                     \
		      #name ": name, unit or help longer than 22, 7, 47");

#define OP(name, help) FITS_TABLE(name)
#include "stats/ops.def"
#undef OP
#define TIMER(name, help) FITS_TABLE(name)
#include "stats/timers.def"
#undef TIMER
#define COUNTER(name, unit, help) FITS_LIST(name, unit, help)
#include "stats/counters.def"
#undef COUNTER
#define GAUGE(name, unit, help) FITS_LIST(name, unit, help)
#include "stats/gauges.def"
#undef GAUGE

const struct stats_name stats_op_name[STATS_OP_NR] = {
#define OP(name, help) { #name, NULL, help },
#include "stats/ops.def"
#undef OP
};

const struct stats_name stats_timer_name[STATS_TIMER_NR] = {
#define TIMER(name, help) { #name, NULL, help },
#include "stats/timers.def"
#undef TIMER
};

const struct stats_name stats_counter_name[STATS_COUNTER_NR] = {
#define COUNTER(name, unit, help) { #name, unit, help },
#include "stats/counters.def"
#undef COUNTER
};

const struct stats_name stats_gauge_name[STATS_GAUGE_NR] = {
#define GAUGE(name, unit, help) { #name, unit, help },
#include "stats/gauges.def"
#undef GAUGE
};

const struct stats_percentile stats_percentile[STATS_PERCENTILE_NR] = {
	{ .percent = 50, .heading = "p50", .key = "p50" },
	{ .percent = 90, .heading = "p90", .key = "p90" },
	{ .percent = 95, .heading = "p95", .key = "p95" },
	{ .percent = 99, .heading = "p99", .key = "p99" },
	{ .percent = 99.9, .heading = "p99.9", .key = "p99_9" },
	{ .percent = 99.99, .heading = "p99.99", .key = "p99_99" },
};
