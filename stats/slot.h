/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where threads record, shared by stats.c (which writes) and snapshot.c
 * (which reads).  Not for others.
 *
 * A slot is written by one thread at a time, so adding is a plain load and
 * store and no locked instruction; readers see each number whole.  One slot
 * per stats is the exception, shared by the threads that could not get their
 * own.  A slot is a mapping of more than a MiB of which only the touched
 * pages exist: an operation whose times spread over 1 us to 10 ms has 3 to 4
 * pages per thread.
 *
 * The order that makes a snapshot fit together: a writer widens max and min,
 * then counts in a bucket, then adds to sum, bytes and errors, each with
 * release.  A reader goes the other way, with acquire.  So whatever bytes and
 * errors it saw belong to operations that it also counts, and all it counts
 * lies in the buckets from min to max.
 */
#ifndef STATS_SLOT_H
#define STATS_SLOT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stats/histogram.h"
#include "stats/stats.h"

/* Operations first, then timers. */
enum {
	STATS_SERIES_NR = STATS_OP_NR + STATS_TIMER_NR
};

struct stats_slot_series {
	_Alignas(64) _Atomic uint64_t max;
	/* ~min: for it, as for max, 0 is "none yet", which a mapping gives. */
	_Atomic uint64_t min_inverted;
	_Atomic uint64_t sum;
	_Atomic uint64_t bytes;
	_Atomic uint64_t errors;
	_Alignas(64) _Atomic uint64_t bucket[HISTOGRAM_BUCKETS];
};

struct stats_slot {
	/* Constant once the slot is in the list. */
	struct stats_slot *next;
	bool shared;

	/* Set by the thread that takes it, cleared by its destructor. */
	_Atomic bool taken;

	_Atomic uint64_t counter[STATS_COUNTER_NR];
	struct stats_slot_series series[STATS_SERIES_NR];
};

struct stats {
	uint64_t start_ns;
	pthread_key_t key;	   /* of the calling thread's slot */
	struct stats_slot *shared; /* also in the list, never given out */

	/* All slots.  They are added in front and stay until stats_free(). */
	struct stats_slot *_Atomic slots;
	atomic_uint nr_slots;
};

#endif
