/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * TM7: threads that draw nonces together, over the end of sessions, never get
 * one twice and never a run that crosses 2^32.  Plain, to run under
 * ThreadSanitizer.
 *
 * Each source begins a few draws before the end of its session, and all
 * threads cross that end at the same time; every run that was handed out is
 * written down, then all are sorted and must not overlap.
 */
#include <pthread.h>

#include "cipher/nonce.h"
#include "plain.h"
#include "support.h"

enum {
	THREADS = 8,
	DRAWS = 200, /* of one thread */
	ROUNDS = 50, /* sessions' ends that are crossed */
	RUN_MAX = 64,
};

#define COUNTERS (UINT64_C(1) << 32)

struct run {
	struct nonce first;
	uint64_t nr;
};

struct drawer {
	pthread_t thread;
	struct nonce_source *src;
	pthread_barrier_t *start;
	unsigned int seed;
	int err;
	struct run runs[DRAWS];
};

/* Sessions 1, 2, 3: called under the source's lock, so this needs none. */
static uint64_t last_session;
static int count_session(uint64_t *session)
{
	*session = ++last_session;
	return 0;
}

static void *draw(void *arg)
{
	struct drawer *d = arg;

	pthread_barrier_wait(d->start);
	for (size_t i = 0; i < DRAWS; i++) {
		struct run *r = &d->runs[i];

		r->nr = 1 + (unsigned int)rand_r(&d->seed) % RUN_MAX;
		if (nonce_draw(d->src, r->nr, &r->first))
			d->err = 1;
	}
	return NULL;
}

static int compare_runs(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->first.session != y->first.session)
		return x->first.session < y->first.session ? -1 : 1;
	if (x->first.counter != y->first.counter)
		return x->first.counter < y->first.counter ? -1 : 1;
	return 0;
}

static void expect_apart(struct tally *t, struct run *runs, size_t nr)
{
	bool crosses = false, overlap = false;

	qsort(runs, nr, sizeof(*runs), compare_runs);
	for (size_t i = 0; i < nr; i++) {
		const struct run *r = &runs[i], *next = &runs[i + 1];
		uint64_t end = r->first.counter + r->nr;

		crosses |= end > COUNTERS;
		overlap |= i + 1 < nr &&
			   r->first.session == next->first.session &&
			   end > next->first.counter;
	}
	CHECK(t, !crosses);
	CHECK(t, !overlap);
}

static void draw_over_the_end(struct tally *t, unsigned int round)
{
	static struct drawer drawers[THREADS];
	static struct run runs[THREADS * DRAWS];
	pthread_barrier_t start;
	struct nonce_source src;
	int errors = 0;

	CHECK(t, nonce_source_init(&src) == 0);
	src.draw_session = count_session;
	src.session = ++last_session;
	/* Some rounds end in the middle of the crowd, some at its start. */
	src.next = COUNTERS - round * RUN_MAX * 4 - 1;
	pthread_barrier_init(&start, NULL, THREADS);

	for (unsigned int i = 0; i < THREADS; i++) {
		drawers[i].src = &src;
		drawers[i].start = &start;
		drawers[i].seed = round * THREADS + i;
		drawers[i].err = 0;
		pthread_create(&drawers[i].thread, NULL, draw, &drawers[i]);
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(drawers[i].thread, NULL);
		errors += drawers[i].err;
		memcpy(runs + i * DRAWS, drawers[i].runs,
		       sizeof(drawers[i].runs));
	}
	CHECK(t, errors == 0);
	expect_apart(t, runs, THREADS * DRAWS);
	/* The end was crossed, once. */
	CHECK(t, src.session == last_session);
	pthread_barrier_destroy(&start);
	nonce_source_destroy(&src);
}

int main(void)
{
	struct tally t = { 0 };

	start_cipher();
	for (unsigned int round = 0; round < ROUNDS; round++) {
		const uint64_t before = last_session;

		draw_over_the_end(&t, round);
		CHECK(&t, last_session == before + 2);
	}
	return tally_end(&t);
}
