/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The histogram against exact values: known sets are sorted, and the value of
 * the nearest rank is compared with what the histogram says.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "stats/histogram.h"

static const double percents[] = {
	0, 0.01, 0.5, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999, 100,
};

static struct histogram *new_histogram(void)
{
	struct histogram *h = calloc(1, sizeof(*h));

	cr_assert_not_null(h);
	return h;
}

static struct histogram *histogram_of(const uint64_t *value, size_t nr)
{
	struct histogram *h = new_histogram();

	for (size_t i = 0; i < nr; i++)
		histogram_add(h, value[i]);
	return h;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Nearest rank in integers: @percent is a multiple of a thousandth. */
static uint64_t exact_percentile(const uint64_t *sorted, size_t nr,
				 double percent)
{
	uint64_t thousandths = (uint64_t)llround(percent * 1000);
	uint64_t rank = (thousandths * nr + 99999) / 100000;

	return sorted[rank ? rank - 1 : 0];
}

static bool within_one_percent(uint64_t got, uint64_t exact)
{
	uint64_t off = got > exact ? got - exact : exact - got;

	return off <= exact / 100;
}

static void expect_whole(const struct histogram *h)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum += h->bucket[i];
	cr_assert_eq(sum, h->count, "buckets hold %" PRIu64 " of %" PRIu64, sum,
		     h->count);
}

/* Sorts @value. */
static void expect_like_exact(uint64_t *value, size_t nr)
{
	struct histogram *h = histogram_of(value, nr);

	qsort(value, nr, sizeof(*value), compare);
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		uint64_t exact = exact_percentile(value, nr, percents[i]);
		uint64_t got = histogram_percentile(h, percents[i]);

		cr_assert(within_one_percent(got, exact),
			  "p%g of %zu: %" PRIu64 ", exactly %" PRIu64,
			  percents[i], nr, got, exact);
	}
	cr_assert_eq(h->count, nr);
	cr_assert_eq(h->min, value[0]);
	cr_assert_eq(h->max, value[nr - 1]);
	cr_assert_eq(histogram_percentile(h, 0), value[0]);
	cr_assert_eq(histogram_percentile(h, 100), value[nr - 1]);
	expect_whole(h);
	free(h);
}

static uint64_t random_u64(uint64_t *state)
{
	/* xorshift64 */
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

Test(histogram, s05_all_equal)
{
	uint64_t value[1000];

	for (size_t i = 0; i < 1000; i++)
		value[i] = 123456789;
	expect_like_exact(value, 1000);

	/* All of them, and not only the extremes, are exact then. */
	struct histogram *h = histogram_of(value, 1000);

	cr_assert_eq(histogram_percentile(h, 50), 123456789);
	cr_assert_eq(histogram_mean(h), 123456789);
	free(h);
}

Test(histogram, s05_one_to_a_million)
{
	size_t nr = 1000000;
	uint64_t *value = malloc(nr * sizeof(*value));
	struct histogram *h;

	cr_assert_not_null(value);
	for (size_t i = 0; i < nr; i++)
		value[i] = nr - i;
	expect_like_exact(value, nr);

	h = histogram_of(value, nr);
	cr_assert_eq(h->sum, UINT64_C(500000500000));
	cr_assert_eq(histogram_mean(h), 500000);
	free(h);
	free(value);
}

Test(histogram, s05_two_peaks)
{
	uint64_t value[10000];

	/* 99 % around 50 us, 1 % around 41 s: fio once said 17 s for these. */
	for (size_t i = 0; i < 10000; i++)
		value[i] = i % 100 ? 50000 + i : UINT64_C(41000000000) + i;
	expect_like_exact(value, 10000);
}

Test(histogram, s05_zero)
{
	uint64_t value[] = { 0, 0, 0 };

	expect_like_exact(value, 3);
}

Test(histogram, s05_largest_signed)
{
	uint64_t value[] = { INT64_MAX, 1, INT64_MAX };

	expect_like_exact(value, 3);
}

Test(histogram, s05_nothing_is_beyond_the_range)
{
	uint64_t value[] = { UINT64_MAX, UINT64_MAX - 1, 5 };

	cr_assert_eq(histogram_index(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
	expect_like_exact(value, 3);
}

Test(histogram, s05_empty)
{
	struct histogram *h = new_histogram();

	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		cr_assert_eq(histogram_percentile(h, percents[i]), 0);
	cr_assert_eq(histogram_mean(h), 0);
	cr_assert_eq(h->count, 0);
	free(h);
}

Test(histogram, s05_one_sample)
{
	uint64_t value[] = { 777777 };
	struct histogram *h = histogram_of(value, 1);

	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		cr_assert_eq(histogram_percentile(h, percents[i]), 777777);
	free(h);
}

Test(histogram, s05_percent_is_in_percent)
{
	struct histogram *h = new_histogram();

	/* 0.5 is half a percent, and not the median. */
	histogram_add_n(h, 10, 100);
	histogram_add_n(h, 100, 900);
	cr_assert_eq(histogram_percentile(h, 0.5), 10);
	cr_assert_eq(histogram_percentile(h, 50), 100);
	free(h);
}

Test(histogram, s05_random_sets_of_all_sizes)
{
	static uint64_t value[5000];
	uint64_t seed = 0x7475736b;

	for (size_t nr = 1; nr <= 5000; nr = nr * 3 / 2 + 1) {
		/* Spread over all powers of two. */
		for (size_t i = 0; i < nr; i++) {
			value[i] = random_u64(&seed);
			value[i] >>= random_u64(&seed) % 64;
		}
		expect_like_exact(value, nr);
	}
}

/* 99.9 is no binary fraction: the product is a trifle above 999. */
Test(histogram, rank_is_not_rounded_up_by_the_percents_double)
{
	struct histogram *h = new_histogram();

	histogram_add_n(h, 1, 999);
	histogram_add(h, 1000000);
	cr_assert_eq(histogram_percentile(h, 99.9), 1);
	cr_assert_eq(histogram_percentile(h, 99.91), 1000000);
	free(h);
}

Test(histogram, percents_outside_are_the_extremes)
{
	uint64_t value[] = { 3, 4, 5 };
	struct histogram *h = histogram_of(value, 3);

	cr_assert_eq(histogram_percentile(h, -1), 3);
	cr_assert_eq(histogram_percentile(h, 101), 5);
	free(h);
}

Test(histogram, buckets_are_contiguous_and_narrow)
{
	cr_assert_eq(histogram_bucket_low(0), 0);
	cr_assert_eq(histogram_bucket_high(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t low = histogram_bucket_low(i);
		uint64_t high = histogram_bucket_high(i);

		cr_assert_eq(histogram_index(low), i);
		cr_assert_eq(histogram_index(high), i);
		cr_assert((high - low) / 2 <= low / 100, "bucket %zu", i);
		if (i)
			cr_assert_eq(histogram_bucket_high(i - 1) + 1, low);
	}
}

Test(histogram, merging_is_adding_one_by_one)
{
	struct histogram *whole = new_histogram();
	struct histogram *merged = new_histogram();
	struct histogram *backwards = new_histogram();
	struct histogram *part[4];
	uint64_t seed = 42;

	for (size_t i = 0; i < 4; i++)
		part[i] = new_histogram();
	for (size_t i = 0; i < 10000; i++) {
		uint64_t value = random_u64(&seed) >> (i % 64);

		histogram_add(whole, value);
		/* The last part stays empty. */
		histogram_add(part[i % 3], value);
	}
	for (size_t i = 0; i < 4; i++) {
		histogram_merge(merged, part[i]);
		histogram_merge(backwards, part[3 - i]);
	}
	cr_assert_arr_eq(merged, whole, sizeof(*whole));
	cr_assert_arr_eq(backwards, whole, sizeof(*whole));
	expect_whole(merged);
	for (size_t i = 0; i < 4; i++)
		free(part[i]);
	free(whole);
	free(merged);
	free(backwards);
}

Test(histogram, merging_nothing_into_nothing_is_nothing)
{
	struct histogram *a = new_histogram(), *b = new_histogram();

	histogram_merge(a, b);
	cr_assert_arr_eq(a, b, sizeof(*a));
	free(a);
	free(b);
}

Test(histogram, adding_none_changes_nothing)
{
	struct histogram *h = new_histogram();

	histogram_add_n(h, 5, 0);
	cr_assert_eq(h->count, 0);
	cr_assert_eq(h->max, 0);
	free(h);
}

Test(histogram, counts_near_the_powers_where_types_end)
{
	static const unsigned int power[] = { 32, 53, 63 };

	for (size_t i = 0; i < 3; i++) {
		uint64_t n = UINT64_C(1) << power[i];
		struct histogram *h = new_histogram();

		histogram_add_n(h, 1, n / 2);
		histogram_add_n(h, 3, n / 2 - 1);
		cr_assert_eq(h->count, n - 1);
		cr_assert_eq(h->sum, n / 2 + 3 * (n / 2 - 1));
		cr_assert_eq(histogram_percentile(h, 49.9), 1);
		cr_assert_eq(histogram_percentile(h, 50.1), 3);
		histogram_add_n(h, 3, 2);
		cr_assert_eq(h->count, n + 1);
		cr_assert_eq(histogram_percentile(h, 100), 3);
		free(h);
	}
}

Test(histogram, sum_stops_instead_of_starting_again)
{
	struct histogram *h = new_histogram(), *other = new_histogram();

	histogram_add_n(h, INT64_MAX, 2);
	cr_assert_eq(h->sum, UINT64_MAX - 1);
	histogram_add(h, INT64_MAX);
	cr_assert_eq(h->sum, UINT64_MAX);
	histogram_add_n(other, INT64_MAX, 3);
	cr_assert_eq(other->sum, UINT64_MAX);
	histogram_merge(h, other);
	cr_assert_eq(h->sum, UINT64_MAX);
	cr_assert_eq(h->count, 6);
	cr_assert(histogram_mean(h) <= h->max);
	free(h);
	free(other);
}
