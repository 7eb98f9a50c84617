/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The engine: takes operations from a source, one after another, and has up to
 * @depth threads do them.
 *
 *	closed loop	an operation begins when a thread is free
 *	open loop	an operation begins when it is due, by the clock; only
 *			when all threads are busy it begins late
 *
 * Two times are measured.  Service time is from the begin to the end of an
 * operation; response time from when it was due, which includes what it had to
 * wait because others were slow: a stall of a second shows in the response
 * time of all that were due in it, and in the service time of few.  Lateness
 * is the difference.
 *
 * Operations on the same bytes, one of them a write or a trim, keep their
 * order, and a flush waits for what was written to its target before it.
 *
 * It knows neither files nor clocks: tests give it their own.
 */
#ifndef TOOLS_REPLAY_ENGINE_H
#define TOOLS_REPLAY_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "stats/histogram.h"
#include "tools/replay/fit.h"
#include "tools/replay/rate.h"
#include "tools/replay/record.h"

#define ENGINE_DEPTH_MAX 256
#define ENGINE_KINDS (TRACE_FLUSH + 1) /* read, write, trim, flush */
#define ENGINE_LATE_NS UINT64_C(1000000)
#define ENGINE_VERY_LATE_NS UINT64_C(10000000)

struct engine_io {
	uint64_t due_ns; /* since the start; open loop */
	uint32_t target;
	uint16_t flags;
	uint8_t op;	 /* enum trace_op, up to TRACE_FLUSH */
	unsigned int nr; /* pieces; 0 for a flush */
	struct fit_extent piece[2];
};

struct engine_source {
	/*
	 * The next operation; 1, 0 at the end, or negative errno.  Called by
	 * one thread at a time.
	 */
	int (*next)(void *arg, struct engine_io *io);
	void *arg;
};

struct engine_target {
	/* Do it all.  0 or negative errno; by many threads at a time. */
	int (*run)(void *arg, unsigned int thread, const struct engine_io *io);
	void *arg;
};

struct engine_clock {
	uint64_t (*now)(void *arg); /* ns, of any epoch, never going back */
	/* Return at @until, or soon after *@stop was set. */
	void (*sleep)(void *arg, uint64_t until, const atomic_bool *stop);
	void *arg;
};

/* CLOCK_MONOTONIC. */
extern const struct engine_clock engine_real_clock;

struct engine_params {
	struct engine_source source;
	struct engine_target target;
	struct engine_clock clock;
	unsigned int depth;  /* 1 to ENGINE_DEPTH_MAX */
	bool timed;	     /* open loop */
	uint64_t ramp_ns;    /* what begins before is done and not counted */
	uint64_t runtime_ns; /* counted from the end of the ramp; 0: no limit */
	bool stop_on_error;  /* end at the first that is not "unsupported" */
	/* Set by anyone, a signal handler too, to end soon. */
	const atomic_bool *interrupt;
	/* Called now and then by the calling thread; may be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t elapsed_ns);
	void *progress_arg;
};

/* Errors of one kind, in the order in which they first came. */
#define ENGINE_ERRORS_MAX 8
struct engine_error {
	int err; /* negative errno */
	uint64_t count;
};

struct engine_kind {
	uint64_t count, bytes;		    /* that succeeded */
	struct histogram service, response; /* ns; response: timed only */
};

struct engine_result {
	struct engine_kind kind[ENGINE_KINDS];
	struct histogram lateness; /* ns, of every operation; timed only */
	uint64_t late, very_late;  /* by more than ENGINE_..._NS */
	uint64_t ramp_count;	   /* done and not counted */
	uint64_t max_in_flight;
	uint64_t all_busy;    /* operations that took the last free thread */
	uint64_t order_waits; /* times that one waited for another's end */
	uint64_t nr_errors;
	struct engine_error error[ENGINE_ERRORS_MAX];
	unsigned int nr_error_kinds;
	uint64_t elapsed_ns;  /* from the end of the ramp to the last end */
	uint64_t started_ns;  /* by the clock: the end of the ramp */
	uint64_t last_due_ns; /* of what was done; timed */
	struct rate rate;     /* of reads and writes, from started_ns on */
	bool interrupted;
	int source_error; /* negative errno, or 0 */
};

/*
 * Run until the source ends, the time is over, or it is interrupted.  Returns
 * 0, or -ENOMEM or -EAGAIN if nothing could be started; everything else is in
 * *@out, which is zeroed first (it is large: not for a stack).
 */
must_check int engine_run(const struct engine_params *p,
			  struct engine_result *out);

/* Add @from to @to, as if both had been one. */
void engine_kind_merge(struct engine_kind *to, const struct engine_kind *from);

#endif
