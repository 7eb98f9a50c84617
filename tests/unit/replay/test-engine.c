/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * T01, S07: the engine by a clock that moves only when the engine sleeps or the
 * target works.  One thread, so every number is exact.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "tools/replay/engine.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* A trace of @nr writes, one every @gap_ns; each takes @service_ns. */
struct world {
	uint64_t now;
	uint64_t nr, gap_ns, service_ns;
	uint64_t stall_at, stall_ns; /* one that takes longer */
	uint64_t fail_at;
	int fail_with;
	uint64_t given, done;
};

static uint64_t world_now(void *arg)
{
	const struct world *w = arg;

	return w->now;
}

static void world_sleep(void *arg, uint64_t until, const atomic_bool *stop)
{
	struct world *w = arg;

	if (until > w->now)
		w->now = until;
}

static int world_next(void *arg, struct engine_io *io)
{
	struct world *w = arg;

	if (w->given == w->nr)
		return 0;
	*io = (struct engine_io){
		.due_ns = w->given * w->gap_ns,
		.op = TRACE_WRITE,
		.nr = 1,
		.piece = { { 4096 * (w->given % 1000), 4096 } },
	};
	w->given++;
	return 1;
}

static int world_run(void *arg, unsigned int thread, const struct engine_io *io)
{
	struct world *w = arg;

	w->now += w->service_ns;
	if (w->done++ == w->stall_at && w->stall_ns)
		w->now += w->stall_ns;
	return w->fail_with && w->done - 1 == w->fail_at ? w->fail_with : 0;
}

static atomic_bool interrupt;

static struct engine_params params(struct world *w, bool timed)
{
	/* Some time after the clock's own start. */
	w->now = 12345 * S;
	atomic_store(&interrupt, false);
	return (struct engine_params){
		.source = { world_next, w },
		.target = { world_run, w },
		.clock = { world_now, world_sleep, w },
		.depth = 1,
		.timed = timed,
		.interrupt = &interrupt,
	};
}

static struct engine_result *run(struct engine_params p)
{
	struct engine_result *r = malloc(sizeof(*r));

	cr_assert_eq(engine_run(&p, r), 0);
	return r;
}

Test(engine, t01_ten_seconds_take_ten_seconds)
{
	static const uint64_t services[] = { 1 * US, 500 * US };

	for (int i = 0; i < 2; i++) {
		struct world w = { .nr = 10000,
				   .gap_ns = MS,
				   .service_ns = services[i] };
		struct engine_result *r = run(params(&w, true));

		cr_expect_eq(r->elapsed_ns, 9999 * MS + services[i]);
		cr_expect_eq(r->late, 0);
		cr_expect_eq(r->lateness.max, 0);
		cr_expect_eq(r->kind[TRACE_WRITE].count, 10000);
		cr_expect_eq(r->kind[TRACE_WRITE].bytes, 10000 * 4096);
		cr_expect_eq(r->last_due_ns, 9999 * MS);
		free(r);
	}
}

Test(engine, t01_a_stall_moves_no_later_operation)
{
	struct world w = { .nr = 10000,
			   .gap_ns = MS,
			   .service_ns = 100 * US,
			   .stall_at = 3000,
			   .stall_ns = 2 * S };
	struct engine_result *r = run(params(&w, true));

	/* Caught up long before the end, which is where it was to be. */
	cr_expect_eq(r->elapsed_ns, 9999 * MS + 100 * US);
	cr_expect_eq(r->lateness.max, 2 * S + 100 * US - MS);
	cr_expect_gt(r->late, 2000);
	cr_expect_lt(r->late, 2300);
	cr_expect_geq(r->late, r->very_late);
	free(r);
}

Test(engine, t01_too_slow_a_target_is_late_and_said_to_be)
{
	struct world w = { .nr = 1000, .gap_ns = MS, .service_ns = 2 * MS };
	struct engine_result *r = run(params(&w, true));

	cr_expect_eq(r->elapsed_ns, 2 * S);
	cr_expect_eq(r->lateness.max, 999 * MS);
	cr_expect_eq(r->late, 998);
	free(r);
}

Test(engine, s07_a_stall_shows_in_response_not_in_service)
{
	struct world w = { .nr = 10000,
			   .gap_ns = MS,
			   .service_ns = 10 * US,
			   .stall_at = 5000,
			   .stall_ns = S };
	struct engine_result *r = run(params(&w, true));
	const struct engine_kind *k = &r->kind[TRACE_WRITE];

	/* About 1000 of 10000 were due in it: p99 is 0.9 s. */
	cr_expect_geq(histogram_percentile(&k->response, 99), 880 * MS);
	cr_expect_leq(histogram_percentile(&k->response, 99), 920 * MS);
	cr_expect_eq(k->response.max, S + 10 * US);
	cr_expect_leq(histogram_percentile(&k->service, 99.9), 11 * US);
	cr_expect_eq(k->service.max, S + 10 * US);
	free(r);
}

Test(engine, s07_as_fast_as_possible_has_service_time_only)
{
	struct world w = { .nr = 100, .gap_ns = S, .service_ns = MS };
	struct engine_result *r = run(params(&w, false));

	cr_expect_eq(r->elapsed_ns, 100 * MS);
	cr_expect_eq(r->kind[TRACE_WRITE].service.count, 100);
	cr_expect_eq(r->kind[TRACE_WRITE].response.count, 0);
	cr_expect_eq(r->lateness.count, 0);
	cr_expect_eq(r->max_in_flight, 1);
	free(r);
}

Test(engine, the_ramp_is_done_and_not_counted)
{
	struct world w = { .nr = 100, .service_ns = MS };
	struct engine_params p = params(&w, false);
	struct engine_result *r;

	p.ramp_ns = 30 * MS;
	r = run(p);
	cr_expect_eq(r->ramp_count, 30);
	cr_expect_eq(r->kind[TRACE_WRITE].count, 70);
	cr_expect_eq(r->elapsed_ns, 70 * MS);
	free(r);
}

Test(engine, the_runtime_ends_it)
{
	struct world w = { .nr = 100, .service_ns = MS };
	struct engine_params p = params(&w, false);
	struct engine_result *r;

	p.runtime_ns = 20 * MS;
	r = run(p);
	cr_expect_eq(r->kind[TRACE_WRITE].count, 20);
	free(r);

	/* Not an hour of sleep for what is due in an hour. */
	w = (struct world){ .nr = 2, .gap_ns = 3600 * S, .service_ns = MS };
	p = params(&w, true);
	p.runtime_ns = S;
	r = run(p);
	cr_expect_eq(r->kind[TRACE_WRITE].count, 1);
	cr_expect_eq(w.now, 12345 * S + S);
	free(r);
}

Test(engine, errors_are_counted_by_kind)
{
	struct world w = {
		.nr = 100, .service_ns = MS, .fail_at = 40, .fail_with = -EIO
	};
	struct engine_result *r = run(params(&w, false));

	cr_expect_eq(r->nr_errors, 1);
	cr_expect_eq(r->error[0].err, -EIO);
	cr_expect_eq(r->kind[TRACE_WRITE].count, 99);
	free(r);
}

Test(engine, the_first_error_ends_it_if_asked)
{
	struct world w = {
		.nr = 100, .service_ns = MS, .fail_at = 40, .fail_with = -EIO
	};
	struct engine_params p = params(&w, false);
	struct engine_result *r;

	p.stop_on_error = true;
	r = run(p);
	cr_expect_eq(r->kind[TRACE_WRITE].count, 40);
	free(r);
	/* What a file system does not know is no reason to end. */
	w = (struct world){ .nr = 100,
			    .fail_at = 40,
			    .fail_with = -EOPNOTSUPP };
	p = params(&w, false);
	p.stop_on_error = true;
	r = run(p);
	cr_expect_eq(r->kind[TRACE_WRITE].count, 99);
	free(r);
}

Test(engine, an_interrupt_leaves_a_valid_result)
{
	struct world w = { .nr = 100, .service_ns = MS };
	struct engine_params p = params(&w, false);
	struct engine_result *r;

	atomic_store(&interrupt, true);
	r = run(p);
	cr_expect(r->interrupted);
	cr_expect_eq(r->kind[TRACE_WRITE].count, 0);
	cr_expect_eq(r->elapsed_ns, 0);
	free(r);
}
