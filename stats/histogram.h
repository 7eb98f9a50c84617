/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A log-linear histogram of 64-bit values, here nearly always nanoseconds.
 *
 * Values below 128 have a bucket each.  From there on every power of two is
 * cut into 64 buckets of equal width:
 *
 *	  value 0 ........ 127 | 128 .... 255 | 256 .... 511 | ...
 *	  width      1         |      2       |      4       | ...
 *	buckets     128        |     64       |     64       | ... = 3776
 *
 * A value is told by the middle of its bucket, which is at most 1/128 (0.8 %)
 * away from it.  The buckets reach to 2^64 - 1: there is no value that is
 * left out or folded into the last one.  Count, sum, least and greatest value
 * are kept exactly.
 *
 * All zero bytes are an empty histogram.  A plain struct: a caller with
 * several threads needs one each and merges them, which loses nothing.
 */
#ifndef STATS_HISTOGRAM_H
#define STATS_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
	HISTOGRAM_SUB_BITS = 6, /* 64 buckets for a power of two */
	HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS,
};

struct histogram {
	uint64_t count;	   /* always the sum of bucket[] */
	uint64_t sum;	   /* stops at 2^64 - 1 */
	uint64_t min, max; /* 0 while count is 0 */
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* The bucket that holds @value. */
static inline size_t histogram_index(uint64_t value)
{
	unsigned int top = 63 - __builtin_clzll(value | 127);
	unsigned int shift = top - HISTOGRAM_SUB_BITS;

	return ((size_t)shift << HISTOGRAM_SUB_BITS) + (size_t)(value >> shift);
}

/* The least and the greatest value that bucket @index holds. */
uint64_t histogram_bucket_low(size_t index);
uint64_t histogram_bucket_high(size_t index);

/* Count @value once, or @n times; @n may be 0. */
void histogram_add(struct histogram *h, uint64_t value);
void histogram_add_n(struct histogram *h, uint64_t value, uint64_t n);

/*
 * Add all of @from to @to, as if its values had been added one by one.  In
 * any order, and however the values were spread, the result is the same.
 */
void histogram_merge(struct histogram *to, const struct histogram *from);

/*
 * The value that @percent of all values do not exceed: for 50 the median, for
 * 99.9 the one that a thousandth exceeds (nearest rank; 0.5 means half a
 * percent, not half).
 *
 * At most 0.8 % from the exact one, never outside min and max; 0 and less
 * give min exactly, 100 and more give max exactly.  0 if nothing was counted.
 */
uint64_t histogram_percentile(const struct histogram *h, double percent);

/* sum / count, rounded down and within min and max; 0 if nothing was counted */
uint64_t histogram_mean(const struct histogram *h);

#endif
