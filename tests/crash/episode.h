/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A life of a volume that is cut off everywhere.
 *
 * While operations run on a volume and on the reference model, the emulated
 * disk records each write and flush, and the model's state after each
 * operation is kept as a hash.  Afterwards the disk is looked at as a power cut
 * would have left it, after every event and with what was not yet flushed lost,
 * torn or reordered.  Each such disk must be clean to check, must open, and
 * must show exactly one of the states that existed, not older than the last
 * one that a finished sync or fsync promised.
 *
 * Some of these disks go on living as an episode of their own: operations after
 * recovery, and power cuts during it.
 */
#ifndef TESTS_CRASH_EPISODE_H
#define TESTS_CRASH_EPISODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tests/support/lockstep.h"
#include "tests/support/testvol.h"
#include "tests/support/workload.h"

#define EPISODE_DEPTH_MAX 3

/* One run of the program: what all its episodes share. */
struct crash_run {
	uint64_t seed; /* of the episode, to repeat it */
	uint64_t ops;  /* of an episode */
	const struct workload_params *params;
	bool full;		  /* containers are: space may be refused */
	unsigned int reorderings; /* tried at each event */
	unsigned int go_on;	  /* one in so many images lives on */
	time_t end;
	bool verbose;
	struct rng rng; /* choices that are not the workload's */

	uint64_t images, episodes, deeper, failures;
	uint64_t count[OP_NR];
	size_t nr_seen, room_seen; /* distinct images */
	uint64_t *seen;
};

/* State number n is the one after operation n; 0: as opened. */
struct record {
	uint64_t ev_start, ev_end; /* events when it began and had ended */
	uint64_t digest;
	int64_t clock_ns;
	bool promise; /* all up to here is durable once it has ended */
	/* Where there was no space: the model as it was left.  Else NULL. */
	struct refmodel *model;
	struct op op;
};

struct episode {
	struct crash_run *run;
	const struct testvol *t; /* keys and shape; its disk is not used */
	struct emudev *d;	 /* ours, with the log of events */
	struct volume *v;
	struct refmodel *start; /* state 0 */
	struct lockstep l;
	size_t nr; /* records, at least 1 */
	struct record *rec;
	unsigned int depth;
	/* Instead of comparing hashes; NULL: compare. */
	bool (*legal)(struct episode *e, struct volume *v, size_t low,
		      size_t high);
	void *legal_arg;
};

/*
 * Begin on @d, which becomes the episode's.  @m is what it shows (taken over);
 * NULL: whatever it shows is right, it must be nothing but a root.  Returns
 * false after saying why it does not open.
 */
must_check bool episode_open(struct episode *e, struct crash_run *run,
			     const struct testvol *t, struct emudev *d,
			     struct refmodel *m, unsigned int depth);

/* Do and record an operation.  False: the answer is wrong. */
must_check bool episode_do(struct episode *e, const struct op *op);
/* @nr random ones, with a sync or fsync every few. */
must_check bool episode_random(struct episode *e, struct workload *w,
			       uint64_t nr);
/* Close in order: a promise, too. */
must_check bool episode_close(struct episode *e);
void episode_abandon(struct episode *e);

/*
 * The image after the first @nr_events is made and tried.  Counts; prints and
 * returns false if it is not a legal one.
 */
must_check bool episode_try(struct episode *e, uint64_t nr_events,
			    enum emudev_policy policy, uint64_t seed);
/* All events, and samples of what may have been lost, until time is up. */
must_check bool episode_try_all(struct episode *e);

/* Is what @v shows one of the states from @low to @high?  Else -1, said. */
must_check long episode_state_of(struct episode *e, struct volume *v,
				 size_t low, size_t high);

void episode_destroy(struct episode *e);

/* The file that fills a container, in the root. */
#define BALLAST "ballast"

/* How to repeat it, on stderr. */
void crash_repeat(const struct crash_run *run);
bool crash_time_is_up(const struct crash_run *run);

/* The parts of the program; each false after a failure was printed. */
must_check bool crash_random_episode(struct crash_run *run);
must_check bool crash_full_episode(struct crash_run *run);
must_check bool crash_scenarios(struct crash_run *run);
must_check bool crash_faults(struct crash_run *run);

#endif
