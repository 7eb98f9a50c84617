/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread whose turn it is takes the next operation, numbers it, enters it as
 * in flight and gives up its turn.  Then it sleeps until the operation is due,
 * waits for those of a lower number that conflict with it, and does it.  The
 * one with the lowest number never waits, so all come to their end; one that
 * waits keeps no other waiting but those that conflict with it.
 *
 * Sleeping after the turn costs a thread for each operation that is due soon,
 * and keeps the hand-over from thread to thread out of the lateness.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/replay/engine.h"

#define NS_PER_S UINT64_C(1000000000)
#define PROGRESS_MS 500
/* A sleep is this long at most, so that an interrupt is seen. */
#define SLICE_NS UINT64_C(50000000)
/* Closer to its end a sleep is done by looking at the clock. */
#define SPIN_NS UINT64_C(60000)

struct engine;

struct worker {
	struct engine *e;
	pthread_t thread;
	unsigned int nr;
	/* Under e->lock; its own thread may read io without. */
	bool busy;
	uint64_t number;
	struct engine_io io;
	/* Its own until it is joined. */
	struct engine_kind kind[ENGINE_KINDS];
	struct histogram lateness;
	uint64_t late, very_late, ramp_count, all_busy;
	uint64_t last_end, last_due;
	unsigned int max_in_flight;
};

struct engine {
	const struct engine_params *p;
	struct worker *worker;
	uint64_t start; /* by the clock; constant while threads run */
	atomic_bool stop;
	atomic_uint in_flight; /* begun; those that wait to be due are not */

	/* Before lock. */
	pthread_mutex_t turn;
	/* Under turn. */
	bool source_ended;
	uint64_t taken;

	pthread_mutex_t lock;
	pthread_cond_t settled; /* an operation ended */
	pthread_cond_t ended;	/* a thread ended */
	/* Under lock. */
	unsigned int nr_running;
	uint64_t done;
	struct engine_result *out;
};

/* ---- the real clock ---- */

static uint64_t real_now(void *arg)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void real_sleep(void *arg, uint64_t until, const atomic_bool *stop)
{
	uint64_t now;

	while ((now = real_now(arg)) < until && !atomic_load(stop)) {
		uint64_t wake = until - now > SLICE_NS ? now + SLICE_NS : until;
		struct timespec t;

		if (until - now <= SPIN_NS)
			continue;
		wake -= SPIN_NS;
		t.tv_sec = (time_t)(wake / NS_PER_S);
		t.tv_nsec = (long)(wake % NS_PER_S);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
}

const struct engine_clock engine_real_clock = { real_now, real_sleep, NULL };

/* ---- order ---- */

static bool changes(const struct engine_io *io)
{
	return io->op == TRACE_WRITE || io->op == TRACE_TRIM;
}

static bool overlap(const struct engine_io *a, const struct engine_io *b)
{
	for (unsigned int i = 0; i < a->nr; i++) {
		for (unsigned int j = 0; j < b->nr; j++) {
			const struct fit_extent *x = &a->piece[i];
			const struct fit_extent *y = &b->piece[j];

			if (x->offset < y->offset + y->length &&
			    y->offset < x->offset + x->length)
				return true;
		}
	}
	return false;
}

/* Whether @io must wait for @other, which was taken before it. */
static bool conflict(const struct engine_io *io, const struct engine_io *other)
{
	if (io->target != other->target)
		return false;
	if (io->op == TRACE_FLUSH || (io->flags & TRACE_PREFLUSH))
		return changes(other);
	return (changes(io) || changes(other)) && overlap(io, other);
}

static bool is_blocked_locked(const struct engine *e, const struct worker *w)
{
	for (unsigned int i = 0; i < e->p->depth; i++) {
		const struct worker *other = &e->worker[i];

		if (other->busy && other->number < w->number &&
		    conflict(&w->io, &other->io))
			return true;
	}
	return false;
}

/* Until nothing that was taken before it is in its way. */
static void wait_for_order(struct engine *e, const struct worker *w)
{
	bool waited = false;

	if (e->p->depth == 1)
		return;
	pthread_mutex_lock(&e->lock);
	while (is_blocked_locked(e, w)) {
		waited = true;
		pthread_cond_wait(&e->settled, &e->lock);
	}
	e->out->order_waits += waited;
	pthread_mutex_unlock(&e->lock);
}

/* ---- taking an operation ---- */

static bool is_over(struct engine *e)
{
	if (atomic_load(e->p->interrupt))
		atomic_store(&e->stop, true);
	return atomic_load(&e->stop);
}

/* Enter @io as in flight: the turn is held. */
static void enter(struct engine *e, struct worker *w,
		  const struct engine_io *io)
{
	assert(io->op < ENGINE_KINDS && io->nr <= 2);
	pthread_mutex_lock(&e->lock);
	w->io = *io;
	w->number = e->taken++;
	w->busy = true;
	pthread_mutex_unlock(&e->lock);
}

/* Whether there was one, which is w->io then. */
static bool take(struct engine *e, struct worker *w)
{
	struct engine_io io;
	int got = 0;

	pthread_mutex_lock(&e->turn);
	if (!e->source_ended && !is_over(e)) {
		got = e->p->source.next(e->p->source.arg, &io);
		e->source_ended = got <= 0;
		if (got > 0)
			enter(e, w, &io);
		else
			e->out->source_error = got;
	}
	pthread_mutex_unlock(&e->turn);
	return got > 0;
}

/* ---- counting ---- */

static void count_error_locked(struct engine *e, int err)
{
	struct engine_result *out = e->out;
	unsigned int i;

	out->nr_errors++;
	if (e->p->stop_on_error && err != -EOPNOTSUPP)
		atomic_store(&e->stop, true);
	for (i = 0; i < out->nr_error_kinds; i++)
		if (out->error[i].err == err)
			break;
	if (i == ENGINE_ERRORS_MAX)
		return;
	if (i == out->nr_error_kinds)
		out->error[out->nr_error_kinds++].err = err;
	out->error[i].count++;
}

static uint64_t bytes_of(const struct engine_io *io)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < io->nr; i++)
		bytes += io->piece[i].length;
	return bytes;
}

static void count_lateness(struct worker *w, uint64_t late_ns)
{
	histogram_add(&w->lateness, late_ns);
	w->late += late_ns > ENGINE_LATE_NS;
	w->very_late += late_ns > ENGINE_VERY_LATE_NS;
}

/* Of an operation that succeeded, outside the lock. */
static void count(struct worker *w, uint64_t due, uint64_t begin, uint64_t end)
{
	struct engine_kind *k = &w->kind[w->io.op];

	k->count++;
	k->bytes += bytes_of(&w->io);
	histogram_add(&k->service, end - begin);
	if (!w->e->p->timed)
		return;
	histogram_add(&k->response, end - due);
	w->last_due = w->io.due_ns > w->last_due ? w->io.due_ns : w->last_due;
}

/* ---- a thread ---- */

static bool time_is_over(const struct engine *e, uint64_t begin)
{
	const struct engine_params *p = e->p;

	return p->runtime_ns && begin - e->start >= p->ramp_ns &&
	       begin - e->start - p->ramp_ns >= p->runtime_ns;
}

/* When to wake for what is due at @due: not after the end of the time. */
static uint64_t wake_time(const struct engine *e, uint64_t due)
{
	uint64_t last = e->start;

	if (!e->p->runtime_ns ||
	    __builtin_add_overflow(last, e->p->ramp_ns, &last) ||
	    __builtin_add_overflow(last, e->p->runtime_ns, &last))
		return due;
	return due < last ? due : last;
}

static int run_target(struct engine *e, struct worker *w)
{
	const unsigned int nr = atomic_fetch_add(&e->in_flight, 1) + 1;
	int err;

	if (nr > w->max_in_flight)
		w->max_in_flight = nr;
	w->all_busy += nr == e->p->depth;
	err = e->p->target.run(e->p->target.arg, w->nr, &w->io);
	atomic_fetch_sub(&e->in_flight, 1);
	return err;
}

/*
 * Once due, do what w->io is; nothing any more when all is over: then *@end is
 * 0.
 */
static int perform(struct engine *e, struct worker *w, uint64_t *end)
{
	const struct engine_params *p = e->p;
	uint64_t due = e->start, begin;
	bool counted;
	int err;

	if (__builtin_add_overflow(due, w->io.due_ns, &due))
		due = UINT64_MAX;
	if (p->timed)
		p->clock.sleep(p->clock.arg, wake_time(e, due), &e->stop);
	wait_for_order(e, w);
	begin = p->clock.now(p->clock.arg);
	if (time_is_over(e, begin))
		atomic_store(&e->stop, true);
	if (is_over(e)) {
		*end = 0;
		return 0;
	}
	if (due > begin)
		due = begin; /* a clock may wake us a moment early */
	counted = begin - e->start >= p->ramp_ns;
	if (counted && p->timed)
		count_lateness(w, begin - due);
	err = run_target(e, w);
	*end = p->clock.now(p->clock.arg);
	if (counted && !err)
		count(w, due, begin, *end);
	w->ramp_count += !counted;
	w->last_end = *end;
	return err;
}

static void settle_locked(struct engine *e, struct worker *w, uint64_t end,
			  int err)
{
	const uint64_t measured = e->start + e->p->ramp_ns;

	w->busy = false;
	e->done += end != 0;
	if (err)
		count_error_locked(e, err);
	else if (end >= measured && w->io.op <= TRACE_WRITE)
		rate_add(&e->out->rate, end - measured, bytes_of(&w->io));
	pthread_cond_broadcast(&e->settled);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct engine *e = w->e;

	while (take(e, w)) {
		uint64_t end;
		const int err = perform(e, w, &end);

		pthread_mutex_lock(&e->lock);
		settle_locked(e, w, end, err);
		pthread_mutex_unlock(&e->lock);
	}
	pthread_mutex_lock(&e->lock);
	e->nr_running--;
	pthread_cond_signal(&e->ended);
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* ---- the whole ---- */

void engine_kind_merge(struct engine_kind *to, const struct engine_kind *from)
{
	to->count += from->count;
	to->bytes += from->bytes;
	histogram_merge(&to->service, &from->service);
	histogram_merge(&to->response, &from->response);
}

static void merge(struct engine *e)
{
	struct engine_result *out = e->out;
	uint64_t last = e->start + e->p->ramp_ns;

	out->started_ns = last;
	for (unsigned int i = 0; i < e->p->depth; i++) {
		const struct worker *w = &e->worker[i];

		for (int k = 0; k < ENGINE_KINDS; k++)
			engine_kind_merge(&out->kind[k], &w->kind[k]);
		histogram_merge(&out->lateness, &w->lateness);
		out->late += w->late;
		out->very_late += w->very_late;
		out->ramp_count += w->ramp_count;
		out->all_busy += w->all_busy;
		if (w->max_in_flight > out->max_in_flight)
			out->max_in_flight = w->max_in_flight;
		if (w->last_end > last)
			last = w->last_end;
		if (w->last_due > out->last_due_ns)
			out->last_due_ns = w->last_due;
	}
	out->elapsed_ns = last - out->started_ns;
	out->interrupted = atomic_load(e->p->interrupt);
}

/* Wait for all threads, and show progress meanwhile. */
static void watch(struct engine *e)
{
	const struct engine_params *p = e->p;

	pthread_mutex_lock(&e->lock);
	while (e->nr_running) {
		struct timespec t;
		uint64_t done;

		if (!p->progress) {
			pthread_cond_wait(&e->ended, &e->lock);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += PROGRESS_MS * 1000000L;
		t.tv_sec += t.tv_nsec / (long)NS_PER_S;
		t.tv_nsec %= (long)NS_PER_S;
		pthread_cond_timedwait(&e->ended, &e->lock, &t);
		done = e->done;
		pthread_mutex_unlock(&e->lock);
		p->progress(p->progress_arg, done,
			    p->clock.now(p->clock.arg) - e->start);
		pthread_mutex_lock(&e->lock);
	}
	pthread_mutex_unlock(&e->lock);
}

/* As many threads as can be had; one is enough. */
static int start_threads(struct engine *e, unsigned int *nr)
{
	int err = 0;

	pthread_mutex_lock(&e->lock);
	for (*nr = 0; *nr < e->p->depth; ++*nr) {
		struct worker *w = &e->worker[*nr];

		w->e = e;
		w->nr = *nr;
		err = pthread_create(&w->thread, NULL, work, w);
		if (err)
			break;
		e->nr_running++;
	}
	pthread_mutex_unlock(&e->lock);
	return *nr ? 0 : -err;
}

static void init(struct engine *e)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&e->turn, NULL);
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->settled, NULL);
	pthread_cond_init(&e->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static void destroy(struct engine *e)
{
	pthread_cond_destroy(&e->ended);
	pthread_cond_destroy(&e->settled);
	pthread_mutex_destroy(&e->lock);
	pthread_mutex_destroy(&e->turn);
	free(e->worker);
}

int engine_run(const struct engine_params *p, struct engine_result *out)
{
	struct engine e = { .p = p, .out = out };
	unsigned int nr;
	int err;

	assert(p->depth >= 1 && p->depth <= ENGINE_DEPTH_MAX);
	memset(out, 0, sizeof(*out));
	e.worker = calloc(p->depth, sizeof(*e.worker));
	if (!e.worker)
		return -ENOMEM;
	init(&e);
	e.start = p->clock.now(p->clock.arg);
	err = start_threads(&e, &nr);
	if (!err) {
		watch(&e);
		for (unsigned int i = 0; i < nr; i++)
			pthread_join(e.worker[i].thread, NULL);
		merge(&e);
	}
	destroy(&e);
	return err;
}
