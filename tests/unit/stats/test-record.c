/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recording and taking snapshots, from one thread and a few. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "stats/snapshot.h"
#include "stats/stats.h"

static struct stats *new_stats(void)
{
	struct stats *s = stats_new();

	cr_assert_not_null(s);
	return s;
}

/* To be freed. */
static struct stats_snapshot *take(struct stats *s)
{
	struct stats_snapshot *snapshot = calloc(1, sizeof(*snapshot));

	cr_assert_not_null(snapshot);
	stats_snapshot_take(s, snapshot);
	return snapshot;
}

Test(record, operation_has_all_its_numbers)
{
	struct stats *s = new_stats();
	struct stats_snapshot *now;
	const struct stats_series *read;

	stats_op(s, STATS_OP_read, 1000, 0, 4096);
	stats_op(s, STATS_OP_read, 3000, -EIO, 0);
	now = take(s);
	read = &now->op[STATS_OP_read];
	cr_assert_eq(read->count, 2);
	cr_assert_eq(read->errors, 1);
	cr_assert_eq(read->bytes, 4096);
	cr_assert_eq(read->latency.count, 2);
	cr_assert_eq(read->latency.sum, 4000);
	cr_assert_eq(read->latency.min, 1000);
	cr_assert_eq(read->latency.max, 3000);
	cr_assert_eq(now->op[STATS_OP_write].count, 0);
	free(now);
	stats_free(s);
}

Test(record, every_number_has_a_place_of_its_own)
{
	struct stats *s = new_stats();
	struct stats_snapshot *now;

	for (unsigned int i = 0; i < STATS_OP_NR; i++)
		stats_op(s, (enum stats_op)i, 10 + i, 0, 100 + i);
	for (unsigned int i = 0; i < STATS_TIMER_NR; i++)
		stats_time(s, (enum stats_timer)i, 50 + i, 200 + i);
	for (unsigned int i = 0; i < STATS_COUNTER_NR; i++)
		stats_count(s, (enum stats_counter)i, 300 + i);
	now = take(s);
	for (unsigned int i = 0; i < STATS_OP_NR; i++) {
		cr_assert_eq(now->op[i].latency.max, 10 + i);
		cr_assert_eq(now->op[i].bytes, 100 + i);
	}
	for (unsigned int i = 0; i < STATS_TIMER_NR; i++) {
		cr_assert_eq(now->timer[i].latency.max, 50 + i);
		cr_assert_eq(now->timer[i].bytes, 200 + i);
		cr_assert_eq(now->timer[i].errors, 0);
	}
	for (unsigned int i = 0; i < STATS_COUNTER_NR; i++)
		cr_assert_eq(now->counter[i], 300 + i);
	free(now);
	stats_free(s);
}

Test(record, s05_extremes_are_counted)
{
	static const uint64_t value[] = { 0, 1, INT64_MAX, UINT64_MAX };

	for (size_t i = 0; i < 4; i++) {
		struct stats *s = new_stats();
		struct stats_snapshot *now;
		const struct histogram *h;

		stats_time(s, STATS_TIMER_commit, value[i], 0);
		now = take(s);
		h = &now->timer[STATS_TIMER_commit].latency;
		cr_assert_eq(h->count, 1);
		cr_assert_eq(h->min, value[i]);
		cr_assert_eq(h->max, value[i]);
		cr_assert_eq(histogram_percentile(h, 50), value[i]);
		free(now);
		stats_free(s);
	}
}

Test(record, counters_pass_the_powers_where_types_end)
{
	static const unsigned int power[] = { 32, 53, 63 };

	for (size_t i = 0; i < 3; i++) {
		uint64_t n = UINT64_C(1) << power[i];
		struct stats *s = new_stats();
		struct stats_snapshot *now;

		stats_count(s, STATS_node_hits, n - 1);
		stats_op(s, STATS_OP_write, 5, 0, n - 1);
		now = take(s);
		cr_assert_eq(now->counter[STATS_node_hits], n - 1);
		cr_assert_eq(now->op[STATS_OP_write].bytes, n - 1);
		free(now);

		stats_count(s, STATS_node_hits, 2);
		stats_op(s, STATS_OP_write, 5, 0, 2);
		now = take(s);
		cr_assert_eq(now->counter[STATS_node_hits], n + 1);
		cr_assert_eq(now->op[STATS_OP_write].bytes, n + 1);
		free(now);
		stats_free(s);
	}
}

static void *count_almost_all(void *s)
{
	stats_count(s, STATS_node_hits, UINT64_MAX - 1);
	return NULL;
}

/* Within a thread, and over threads. */
Test(record, counters_stop_instead_of_starting_again)
{
	struct stats *s = new_stats();
	struct stats_snapshot *now;
	pthread_t thread;

	stats_count(s, STATS_node_hits, 5);
	cr_assert_eq(pthread_create(&thread, NULL, count_almost_all, s), 0);
	pthread_join(thread, NULL);
	stats_count(s, STATS_node_misses, UINT64_MAX);
	stats_count(s, STATS_node_misses, 1);
	now = take(s);
	cr_assert_eq(now->counter[STATS_node_hits], UINT64_MAX);
	cr_assert_eq(now->counter[STATS_node_misses], UINT64_MAX);
	free(now);
	stats_free(s);
}

Test(record, two_stats_are_apart)
{
	struct stats *a = new_stats(), *b = new_stats();
	struct stats_snapshot *of_a, *of_b;

	stats_count(a, STATS_node_hits, 1);
	stats_count(b, STATS_node_hits, 2);
	of_a = take(a);
	of_b = take(b);
	cr_assert_eq(of_a->counter[STATS_node_hits], 1);
	cr_assert_eq(of_b->counter[STATS_node_hits], 2);
	free(of_a);
	free(of_b);
	stats_free(a);
	stats_free(b);
}

Test(record, null_records_nothing)
{
	struct stats_snapshot *now = take(NULL);

	stats_op(NULL, STATS_OP_read, 1, 0, 1);
	stats_time(NULL, STATS_TIMER_commit, 1, 1);
	stats_count(NULL, STATS_node_hits, 1);
	stats_free(NULL);
	cr_assert_eq(now->op[STATS_OP_read].count, 0);
	cr_assert_eq(now->uptime_ns, 0);
	free(now);
}

Test(record, snapshot_leaves_identity_and_gauges_to_the_caller)
{
	struct stats *s = new_stats();
	struct stats_snapshot *now = take(s);

	now->identity.scheme = "none";
	now->gauge[STATS_GAUGE_data_bytes] = 5;
	now->counter[STATS_node_hits] = 6;
	now->op[STATS_OP_read].latency.max = 7;
	stats_snapshot_take(s, now);
	cr_assert_str_eq(now->identity.scheme, "none");
	cr_assert_eq(now->gauge[STATS_GAUGE_data_bytes], 5);
	cr_assert_eq(now->counter[STATS_node_hits], 0);
	cr_assert_eq(now->op[STATS_OP_read].latency.max, 0);
	free(now);
	stats_free(s);
}

Test(record, uptime_and_clock_move_on)
{
	uint64_t before = stats_now();
	struct stats *s = new_stats();
	struct stats_snapshot *first = take(s), *second = take(s);

	cr_assert(second->uptime_ns >= first->uptime_ns);
	cr_assert(second->uptime_ns <= stats_now() - before);
	free(first);
	free(second);
	stats_free(s);
}

Test(record, errno_is_kept)
{
	struct stats *s = new_stats();

	errno = EXDEV;
	stats_count(s, STATS_node_hits, 1);
	cr_assert_eq(errno, EXDEV);
	stats_free(s);
}
