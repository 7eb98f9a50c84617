/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Many threads record while snapshots are taken: no number ever falls, each
 * snapshot agrees with itself, and in the end all sums are exact.  Meant for
 * ThreadSanitizer, and so no Criterion test.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats/slot.h"
#include "stats/snapshot.h"
#include "stats/stats.h"

static unsigned int passed, failed;

static void check(bool ok, const char *what)
{
	if (ok) {
		passed++;
	} else {
		failed++;
		printf("failed: %s\n", what);
	}
}

static void *must(void *memory)
{
	if (!memory) {
		puts("no memory");
		abort();
	}
	return memory;
}

static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	int err = pthread_create(thread, NULL, run, arg);

	if (err) {
		printf("pthread_create: error %d\n", err);
		abort();
	}
}

static struct stats_snapshot *take(struct stats *s)
{
	struct stats_snapshot *now = must(calloc(1, sizeof(*now)));

	stats_snapshot_take(s, now);
	return now;
}

enum {
	WRITERS = 8,
	READERS = 2,
	CALLS = 20000
};

struct shared {
	struct stats *stats;
	atomic_bool done;
	pthread_barrier_t barrier;
};

/* Call @i of any writer: all numbers follow from it. */
static void record_one(struct stats *s, uint64_t i)
{
	uint64_t ns = 1000 + i * 37 % 100000;

	stats_op(s, STATS_OP_read, ns, i % 10 ? 0 : -5, 4096);
	stats_time(s, STATS_TIMER_decrypt, ns / 2, 4096);
	stats_count(s, STATS_node_hits, i % 3);
}

static void *writer(void *arg)
{
	struct shared *shared = arg;

	for (uint64_t i = 0; i < CALLS; i++)
		record_one(shared->stats, i);
	return NULL;
}

/* What one snapshot must hold, whatever is recorded meanwhile. */
static bool is_consistent(const struct stats_series *s)
{
	const struct histogram *h = &s->latency;
	uint64_t sum = 0, p50 = histogram_percentile(h, 50);

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum += h->bucket[i];
	return sum == h->count && s->count == h->count &&
	       s->errors <= s->count && s->bytes <= 4096 * s->count &&
	       h->min <= p50 && p50 <= h->max &&
	       h->sum <= (double)h->count * (double)h->max;
}

static bool is_not_less(const struct stats_snapshot *now,
			const struct stats_snapshot *before)
{
	const struct stats_series *a = &before->op[STATS_OP_read];
	const struct stats_series *b = &now->op[STATS_OP_read];

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (b->latency.bucket[i] < a->latency.bucket[i])
			return false;
	return b->count >= a->count && b->errors >= a->errors &&
	       b->bytes >= a->bytes && b->latency.sum >= a->latency.sum &&
	       b->latency.max >= a->latency.max &&
	       now->counter[STATS_node_hits] >=
		       before->counter[STATS_node_hits] &&
	       now->uptime_ns >= before->uptime_ns;
}

/* Returns NULL if a snapshot was wrong. */
static void *reader(void *arg)
{
	struct shared *shared = arg;
	struct stats_snapshot *before = take(shared->stats);
	bool ok = true;

	while (!atomic_load(&shared->done)) {
		struct stats_snapshot *now = take(shared->stats);

		ok = ok && is_consistent(&now->op[STATS_OP_read]) &&
		     is_consistent(&now->timer[STATS_TIMER_decrypt]) &&
		     is_not_less(now, before);
		free(before);
		before = now;
	}
	free(before);
	return ok ? arg : NULL;
}

/* All numbers after record_one() was called for 0 to @calls - 1, @times. */
static void check_exact(struct stats *s, uint64_t calls, uint64_t times,
			const char *what)
{
	struct stats *alone = must(stats_new());
	struct stats_snapshot *got = take(s), *one;
	const struct stats_series *a, *b;
	bool same = true;

	for (uint64_t i = 0; i < calls; i++)
		record_one(alone, i);
	one = take(alone);
	a = &got->op[STATS_OP_read];
	b = &one->op[STATS_OP_read];
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		same = same &&
		       a->latency.bucket[i] == b->latency.bucket[i] * times;
	check(same, what);
	check(a->count == b->count * times && a->count == calls * times, what);
	check(a->errors == b->errors * times, what);
	check(a->bytes == b->bytes * times, what);
	check(a->latency.sum == b->latency.sum * times, what);
	check(a->latency.min == b->latency.min, what);
	check(a->latency.max == b->latency.max, what);
	check(got->timer[STATS_TIMER_decrypt].bytes ==
		      one->timer[STATS_TIMER_decrypt].bytes * times,
	      what);
	check(got->counter[STATS_node_hits] ==
		      one->counter[STATS_node_hits] * times,
	      what);
	free(got);
	free(one);
	stats_free(alone);
}

static void test_recording_while_reading(void)
{
	struct shared shared = { .stats = must(stats_new()) };
	pthread_t w[WRITERS], r[READERS];

	for (size_t i = 0; i < READERS; i++)
		start(&r[i], reader, &shared);
	for (size_t i = 0; i < WRITERS; i++)
		start(&w[i], writer, &shared);
	for (size_t i = 0; i < WRITERS; i++)
		pthread_join(w[i], NULL);
	atomic_store(&shared.done, true);
	for (size_t i = 0; i < READERS; i++) {
		void *ok = NULL;

		pthread_join(r[i], &ok);
		check(ok, "snapshots agree with themselves and only grow");
	}
	check_exact(shared.stats, CALLS, WRITERS, "sums of all threads");
	stats_free(shared.stats);
}

static void *short_life(void *arg)
{
	record_one(arg, 0);
	record_one(arg, 1);
	return NULL;
}

/* Two threads at a time, many times: slots are taken over, with their sums. */
static void test_short_lived_threads(void)
{
	enum {
		ROUNDS = 1000
	};
	struct stats *s = must(stats_new());
	pthread_t a, b;

	for (size_t i = 0; i < ROUNDS; i++) {
		start(&a, short_life, s);
		start(&b, short_life, s);
		pthread_join(a, NULL);
		pthread_join(b, NULL);
	}
	check_exact(s, 2, 2 * ROUNDS, "sums of threads that ended");
	check(atomic_load(&s->nr_slots) <= 2, "slots are taken over");
	stats_free(s);
}

static void *all_alive(void *arg)
{
	struct shared *shared = arg;

	record_one(shared->stats, 0);
	/* None may end before all have begun. */
	pthread_barrier_wait(&shared->barrier);
	for (uint64_t i = 1; i < 20; i++)
		record_one(shared->stats, i);
	return NULL;
}

/* Beyond 256 threads alive at once they share a slot, and lose nothing. */
static void test_more_threads_than_slots(void)
{
	enum {
		THREADS = 300
	};
	struct shared shared = { .stats = must(stats_new()) };
	pthread_t thread[THREADS];

	pthread_barrier_init(&shared.barrier, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		start(&thread[i], all_alive, &shared);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&shared.barrier);
	check_exact(shared.stats, 20, THREADS, "sums of sharing threads");
	check(atomic_load(&shared.stats->nr_slots) == 256, "slots are bounded");
	stats_free(shared.stats);
}

static void *late_destructor_value;

/* Records at the end of its thread, maybe after the slot was given back. */
static void record_late(void *arg)
{
	stats_count(arg, STATS_node_misses, 1);
}

static void *record_and_end(void *arg)
{
	pthread_key_t *key = late_destructor_value;

	stats_count(arg, STATS_node_misses, 1);
	pthread_setspecific(*key, arg);
	return NULL;
}

static void test_recording_from_destructors(void)
{
	struct stats *s = must(stats_new());
	struct stats_snapshot *now;
	pthread_key_t key;
	pthread_t thread;

	if (pthread_key_create(&key, record_late))
		abort();
	late_destructor_value = &key;
	for (size_t i = 0; i < 10; i++) {
		start(&thread, record_and_end, s);
		pthread_join(thread, NULL);
	}
	now = take(s);
	check(now->counter[STATS_node_misses] == 20,
	      "destructors of threads may record");
	check(atomic_load(&s->nr_slots) == 1, "and give the slot back");
	free(now);
	pthread_key_delete(key);
	stats_free(s);
}

int main(void)
{
	test_recording_while_reading();
	test_short_lived_threads();
	test_more_threads_than_slots();
	test_recording_from_destructors();
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
