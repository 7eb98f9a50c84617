/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What recording costs: nanoseconds a call, by one thread and by two at once
 * (each call of each thread counts, so that the same number means that they
 * do not disturb each other).  Beside it, for scale, the clock, which every
 * measured operation reads twice; and what a snapshot and its renderings cost.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats/snapshot.h"
#include "stats/stats.h"

enum {
	CALLS = 5000000,
	ROUNDS = 5,
	PAGES = 20
};

struct run {
	struct stats *stats;
	void (*call)(struct stats *s, uint64_t i);
	uint64_t ns;
	pthread_barrier_t *barrier;
};

static void call_op(struct stats *s, uint64_t i)
{
	/* Spread over buckets as real latencies are: 20 us to 1 ms. */
	stats_op(s, STATS_OP_read, 20000 + i * 7919 % 1000000, 0, 131072);
}

static void call_time(struct stats *s, uint64_t i)
{
	stats_time(s, STATS_TIMER_encrypt, 30000 + i * 7919 % 10000, 131072);
}

static void call_count(struct stats *s, uint64_t i)
{
	stats_count(s, STATS_node_hits, 1);
}

static void call_clock(struct stats *s, uint64_t i)
{
	(void)stats_now();
}

static void *measure(void *arg)
{
	struct run *run = arg;
	uint64_t start;

	pthread_barrier_wait(run->barrier);
	start = stats_now();
	for (uint64_t i = 0; i < CALLS; i++)
		run->call(run->stats, i);
	run->ns = stats_now() - start;
	return NULL;
}

/* The slower thread's ns per call, of the best of some rounds. */
static double best(struct stats *s, void (*call)(struct stats *, uint64_t),
		   unsigned int threads)
{
	double least = 1e9;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct run run[2];
		pthread_t thread[2];
		pthread_barrier_t barrier;
		uint64_t ns = 0;

		pthread_barrier_init(&barrier, NULL, threads);
		for (unsigned int i = 0; i < threads; i++) {
			run[i] = (struct run){ s, call, 0, &barrier };
			if (pthread_create(&thread[i], NULL, measure, &run[i]))
				exit(1);
		}
		for (unsigned int i = 0; i < threads; i++) {
			pthread_join(thread[i], NULL);
			if (run[i].ns > ns)
				ns = run[i].ns;
		}
		pthread_barrier_destroy(&barrier);
		if ((double)ns / CALLS < least)
			least = (double)ns / CALLS;
	}
	return least;
}

static void print_call(struct stats *s, const char *name,
		       void (*call)(struct stats *, uint64_t))
{
	printf("%-12s %6.1f ns a call, two threads %6.1f ns\n", name,
	       best(s, call, 1), best(s, call, 2));
}

static void print_pages(struct stats *s)
{
	struct stats_snapshot *now = calloc(1, sizeof(*now));
	uint64_t start, taken, text, json, prom;

	if (!now)
		exit(1);
	start = stats_now();
	for (unsigned int i = 0; i < PAGES; i++)
		stats_snapshot_take(s, now);
	taken = stats_now();
	for (unsigned int i = 0; i < PAGES; i++)
		free(stats_render_text(now));
	text = stats_now();
	for (unsigned int i = 0; i < PAGES; i++)
		free(stats_render_json(now));
	json = stats_now();
	for (unsigned int i = 0; i < PAGES; i++)
		free(stats_render_prometheus(now));
	prom = stats_now();
	printf("snapshot     %6.1f us\ntext         %6.1f us\n"
	       "json         %6.1f us\nprometheus   %6.1f us\n",
	       (double)(taken - start) / 1e3 / PAGES,
	       (double)(text - taken) / 1e3 / PAGES,
	       (double)(json - text) / 1e3 / PAGES,
	       (double)(prom - json) / 1e3 / PAGES);
	free(now);
}

int main(void)
{
	struct stats *s = stats_new();

	if (!s)
		return 1;
	print_call(s, "stats_op", call_op);
	print_call(s, "stats_time", call_time);
	print_call(s, "stats_count", call_count);
	print_call(s, "stats_now", call_clock);
	print_pages(s);
	stats_free(s);
	return 0;
}
