/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names, units and help texts of all numbers, made from the .def files, and
 * the percentiles that every rendering shows.
 */
#ifndef STATS_NAMES_H
#define STATS_NAMES_H

#include "stats/stats.h"

struct stats_name {
	const char *name;
	const char *unit; /* NULL for operations and timers */
	const char *help;
};

extern const struct stats_name stats_op_name[STATS_OP_NR];
extern const struct stats_name stats_timer_name[STATS_TIMER_NR];
extern const struct stats_name stats_counter_name[STATS_COUNTER_NR];
extern const struct stats_name stats_gauge_name[STATS_GAUGE_NR];

struct stats_percentile {
	double percent;	     /* as histogram_percentile() takes it */
	const char *heading; /* for people: "p99.9" */
	const char *key;     /* for programs: "p99_9" */
};

enum {
	STATS_PERCENTILE_NR = 6
};
extern const struct stats_percentile stats_percentile[STATS_PERCENTILE_NR];

#endif
