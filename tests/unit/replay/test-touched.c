/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The map of touched blocks against an array of flags. */
#include <criterion/criterion.h>
#include <errno.h>

#include "tests/support/rng.h"
#include "tools/replay/touched.h"

#define BLOCKS 20000
#define TARGETS 3

static unsigned char flags[TARGETS][BLOCKS];

static void fill(struct touched *t, struct rng *rng)
{
	for (int i = 0; i < 300; i++) {
		const uint32_t target = (uint32_t)rng_below(rng, TARGETS);
		const uint64_t offset = rng_below(rng, BLOCKS * 4096 - 300000);
		const uint64_t length = rng_below(rng, 300000);

		cr_assert_eq(touched_add(t, target, offset, length), 0);
		for (uint64_t b = offset / 4096;
		     length && b <= (offset + length - 1) / 4096; b++)
			flags[target][b] = 1;
	}
}

static void check_target(const struct touched *t, uint32_t target)
{
	uint64_t rank = 0, from = 0, start, nr;

	for (uint64_t b = 0; b < BLOCKS; b++) {
		if (b % 97 == 0)
			cr_assert_eq(touched_rank(t, target, b), rank);
		cr_assert_eq(touched_has(t, target, b), flags[target][b]);
		rank += flags[target][b];
	}
	cr_assert_eq(touched_rank(t, target, INT64_MAX), rank);
	while ((nr = touched_next(t, target, from, &start)) > 0) {
		for (uint64_t b = from; b < start; b++)
			cr_assert_not(flags[target][b]);
		for (uint64_t b = start; b < start + nr; b++)
			cr_assert(flags[target][b]);
		rank -= nr;
		from = start + nr;
	}
	cr_assert_eq(rank, 0, "all runs together are all blocks");
}

Test(touched, agrees_with_an_array)
{
	struct rng rng = { .state = 5 };
	struct touched *t = touched_new();
	uint64_t all = 0;

	fill(t, &rng);
	for (int i = 0; i < TARGETS; i++)
		for (int b = 0; b < BLOCKS; b++)
			all += flags[i][b];
	cr_expect_eq(touched_blocks(t), all);
	touched_seal(t);
	for (uint32_t i = 0; i < TARGETS; i++)
		check_target(t, i);
	cr_expect_eq(touched_rank(t, TARGETS, 5), 0);
	touched_free(t);
}

Test(touched, nothing_and_too_much)
{
	struct touched *t = touched_new();
	uint64_t start;

	cr_expect_eq(touched_add(t, 0, 5, 0), 0);
	cr_expect_eq(touched_blocks(t), 0);
	cr_expect_eq(touched_add(t, 0, INT64_MAX - 1, 1), 0);
	cr_expect_eq(touched_add(t, 0, 0, UINT64_C(1) << 62), -E2BIG);
	touched_seal(t);
	cr_expect_eq(touched_next(t, 1, 0, &start), 0);
	touched_free(t);
}
