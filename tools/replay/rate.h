/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Throughput by windows of time, for the least, the greatest and the burst
 * rate of a run of any length: four widths are followed at once and need no
 * memory that grows; which of them is shown is chosen in the end.
 */
#ifndef TOOLS_REPLAY_RATE_H
#define TOOLS_REPLAY_RATE_H

#include <stdint.h>

enum {
	RATE_WIDTH_NR = 4,
	RATE_WINDOWS_MIN = 10, /* of the width that is shown, if there can be */
};
/* 1, 10, 100 and 1000 ms */
extern const uint64_t rate_width_ns[RATE_WIDTH_NR];

/* All zero bytes: nothing has happened. */
struct rate {
	struct {
		uint64_t index;	   /* of the window that is being filled */
		uint64_t bytes;	   /* in it */
		uint64_t min, max; /* bytes, of the @index whole ones before */
	} width[RATE_WIDTH_NR];
};

/*
 * @bytes were done at @at_ns since the start; one that comes after a later one
 * counts with that.
 */
void rate_add(struct rate *r, uint64_t at_ns, uint64_t bytes);

/* Bytes a second, and the windows they were measured in. */
struct rate_summary {
	uint64_t window_ns;  /* of min and max */
	uint64_t nr_windows; /* whole ones */
	uint64_t min, max;
	uint64_t burst_window_ns; /* a tenth of it, or the same at 1 ms */
	uint64_t burst;
};

/*
 * The run ended at @end_ns: a last window that is not whole is left out.  All
 * zero where not even one was whole.
 */
void rate_end(struct rate *r, uint64_t end_ns, struct rate_summary *out);

#endif
