/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The histogram's arithmetic.  What must hold after each call: count is the
 * sum of all buckets, and every counted value lies within min and max.
 */
#include <assert.h>
#include <float.h>
#include <math.h>

#include "stats/histogram.h"

static_assert(HISTOGRAM_BUCKETS == 3776, "as drawn in the header");

/* How far the values of bucket @index were shifted right to find it. */
static unsigned int bucket_shift(size_t index)
{
	size_t group = index >> HISTOGRAM_SUB_BITS;

	return group ? (unsigned int)group - 1 : 0;
}

uint64_t histogram_bucket_low(size_t index)
{
	unsigned int shift = bucket_shift(index);

	assert(index < HISTOGRAM_BUCKETS);
	return (uint64_t)(index - ((size_t)shift << HISTOGRAM_SUB_BITS))
	       << shift;
}

uint64_t histogram_bucket_high(size_t index)
{
	return histogram_bucket_low(index) +
	       (((uint64_t)1 << bucket_shift(index)) - 1);
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t multiply_saturating(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Widen min and max of @h, which holds @h->count values, to low and high. */
static void widen(struct histogram *h, uint64_t low, uint64_t high)
{
	if (!h->count || low < h->min)
		h->min = low;
	if (!h->count || high > h->max)
		h->max = high;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	histogram_add_n(h, value, 1);
}

void histogram_add_n(struct histogram *h, uint64_t value, uint64_t n)
{
	if (!n)
		return;
	widen(h, value, value);
	h->bucket[histogram_index(value)] += n;
	h->count += n;
	h->sum = add_saturating(h->sum, multiply_saturating(value, n));
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	size_t last;

	if (!from->count)
		return;
	widen(to, from->min, from->max);
	last = histogram_index(from->max);
	for (size_t i = histogram_index(from->min); i <= last; i++)
		to->bucket[i] += from->bucket[i];
	to->count += from->count;
	to->sum = add_saturating(to->sum, from->sum);
}

/*
 * Nearest rank, from 1 to count.  99.9 % of 1000 has to be 999, but 99.9 is
 * no binary fraction and its double lies a trifle above: without the slack
 * the rank would be rounded up to 1000, the maximum.
 */
static uint64_t rank_of(uint64_t count, double percent)
{
	double exact = percent / 100 * (double)count;
	double rank = ceil(exact - exact * 4 * DBL_EPSILON);

	if (rank < 1)
		return 1;
	/* (double)count may be 2^64, which no uint64_t holds. */
	return rank >= (double)count ? count : (uint64_t)rank;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

static uint64_t bucket_middle(size_t index)
{
	uint64_t low = histogram_bucket_low(index);

	return low + (histogram_bucket_high(index) - low) / 2;
}

uint64_t histogram_percentile(const struct histogram *h, double percent)
{
	uint64_t rank, seen = 0;
	size_t i;

	if (!h->count || percent >= 100)
		return h->max;
	rank = rank_of(h->count, percent);
	if (rank == 1)
		return h->min;
	if (rank == h->count)
		return h->max;

	for (i = histogram_index(h->min); i < HISTOGRAM_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank)
			break;
	}
	assert(i < HISTOGRAM_BUCKETS);
	return clamp(bucket_middle(i), h->min, h->max);
}

uint64_t histogram_mean(const struct histogram *h)
{
	if (!h->count)
		return 0;
	return clamp(h->sum / h->count, h->min, h->max);
}
