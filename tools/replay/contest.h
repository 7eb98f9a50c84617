/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The same trace on several contestants, round after round:
 *
 *	round 1:  host  none  aes-128-xts  aes-256-xts ...
 *	round 2:  none  aes-128-xts  aes-256-xts ...  host
 *	round 3:  aes-128-xts  aes-256-xts ...  host  none
 *
 * Interleaved, so that what changes with time (other programs, a disk's own
 * cache, heat) falls on all alike; rotated, so that nobody is always the
 * first.  Each starts from a new container, filled, unmounted and mounted
 * again, with the caches dropped.
 */
#ifndef TOOLS_REPLAY_CONTEST_H
#define TOOLS_REPLAY_CONTEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/histogram.h"
#include "tools/replay/plan.h"
#include "tools/replay/run.h"

#define CONTEST_ROUNDS_MAX 100
#define CONTEST_ROWS_MAX 256

/* What one run came to.  X(name, JSON key and CSV column) */
#define SAMPLE_FIELDS(X)                       \
	X(average, "average_bytes_per_second") \
	X(min, "min_bytes_per_second")         \
	X(max, "max_bytes_per_second")         \
	X(burst, "burst_bytes_per_second")     \
	X(iops, "iops")                        \
	X(access, "access_ns")                 \
	X(p50, "p50_ns")                       \
	X(p99, "p99_ns")                       \
	X(cpu, "cpu_ns")                       \
	X(elapsed, "elapsed_ns")

struct sample {
#define X(name, key) uint64_t name;
	SAMPLE_FIELDS(X)
#undef X
};

enum sample_field {
#define X(name, key) SAMPLE_##name,
	SAMPLE_FIELDS(X)
#undef X
	SAMPLE_NR,
};

/* "iops"; static. */
const char *sample_key(enum sample_field field);
uint64_t sample_get(const struct sample *s, enum sample_field field);

struct contestant {
	const char *dir;    /* in which its folder is made */
	const char *scheme; /* NULL: the folder itself, without encryption */
	bool integrity;
	char name[64]; /* "aes-256-xts+integrity", "host folder" */

	size_t nr_samples;
	struct sample sample[CONTEST_ROUNDS_MAX];
	struct histogram service; /* of reads and writes of all rounds */
	/* Of the last run. */
	uint64_t window_ns, burst_window_ns;
};

enum contest_cache {
	CONTEST_DROPPED, /* the whole machine's, by root */
	CONTEST_ADVISED, /* posix_fadvise(2) on our own files, a wish */
};

struct contest {
	/* Set by the user; all live on. */
	struct plan *plan;
	const struct run_options *options;
	const atomic_bool *interrupt;
	struct contestant *row;
	size_t nr_rows;
	unsigned int nr_rounds;
	bool show_progress;

	/* Set on the way. */
	unsigned int rounds_done;
	enum contest_cache cache;
};

/*
 * Run all rounds.  TOOL_DONE; TOOL_INTERRUPTED, where the rounds that were
 * finished count; or another code after a message.
 */
enum tool_exit contest_run(struct contest *c);

/* Which row is @nth in round @round (from 0) of @nr_rows. */
size_t contest_order(size_t nr_rows, unsigned int round, size_t nth);

/* ---- over the rounds ---- */

struct spread {
	uint64_t median, min, max;
};
/* 0 samples: all zero. */
struct spread contest_spread(const struct contestant *row,
			     enum sample_field field);

/* Lower is better: latencies and CPU time. */
bool sample_is_cost(enum sample_field field);

/*
 * How much worse @row is than @base by their medians, in thousandths of a
 * percent: (base - x) / base where more is better, (x - base) / base where less
 * is.  Positive: worse.  Returns whether there is such a number.
 */
bool contest_hit(const struct contestant *row, const struct contestant *base,
		 enum sample_field field, int64_t *milli_percent);

/*
 * Whether the difference may be nothing but noise: the ranges of their rounds
 * overlap.  With fewer than two rounds that can't be told: true.
 */
bool contest_in_noise(const struct contestant *row,
		      const struct contestant *base, enum sample_field field);

/*
 * The row of the same folder that @row is compared with: `none` without
 * integrity, or the folder itself.  NULL: none.
 */
const struct contestant *contest_base(const struct contest *c,
				      const struct contestant *row);
const struct contestant *contest_host(const struct contest *c,
				      const struct contestant *row);

#endif
