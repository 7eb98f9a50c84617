/* SPDX-License-Identifier: GPL-3.0-or-later */
/* T09: a trace beyond the target, by each policy. */
#include <criterion/criterion.h>

#include "tests/support/rng.h"
#include "tools/replay/fit.h"
#include "tools/replay/touched.h"

#define GIB (UINT64_C(1) << 30)

static struct fit_result map(const struct fit *f, enum trace_op op,
			     uint64_t offset, uint64_t length)
{
	const struct trace_record rec = { .op = op,
					  .offset = offset,
					  .length = length };
	struct fit_result out;

	fit_map(f, &rec, &out);
	return out;
}

static void expect_one(const struct fit_result *r, uint64_t offset,
		       uint64_t length)
{
	cr_assert_eq(r->nr, 1);
	cr_expect_eq(r->piece[0].offset, offset);
	cr_expect_eq(r->piece[0].length, length);
}

Test(fit, t09_grow_keeps_every_address)
{
	const struct fit f = { .policy = FIT_GROW };
	struct fit_result r = map(&f, TRACE_WRITE, UINT64_C(1) << 40, 513);

	expect_one(&r, UINT64_C(1) << 40, 513);
	cr_expect_eq(fit_file_size(&f, 0, (UINT64_C(1) << 40) + 513),
		     (UINT64_C(1) << 40) + 4096);
	cr_expect_eq(fit_file_size(&f, 0, INT64_MAX),
		     (uint64_t)INT64_MAX - 4095);
}

Test(fit, t09_no_length_is_nothing_to_do)
{
	for (int policy = 0; policy < FIT_POLICY_NR; policy++) {
		const struct fit f = { .policy = policy, .size = GIB };

		cr_expect_eq(map(&f, TRACE_READ, 5, 0).nr, 0);
		cr_expect_eq(map(&f, TRACE_FLUSH, 0, 0).nr, 0);
	}
}

Test(fit, t09_skip_leaves_out_what_ends_beyond)
{
	const struct fit f = { .policy = FIT_SKIP, .size = GIB };
	struct fit_result r = map(&f, TRACE_WRITE, UINT64_C(1) << 40, 1);

	cr_expect(r.skipped);
	cr_expect_eq(r.nr, 0);
	r = map(&f, TRACE_WRITE, GIB - 511, 512);
	cr_expect(r.skipped);
	r = map(&f, TRACE_WRITE, GIB - 512, 512);
	cr_expect_not(r.skipped);
	expect_one(&r, GIB - 512, 512);
}

Test(fit, t09_wrap_splits_at_the_end)
{
	const struct fit f = { .policy = FIT_WRAP, .size = GIB };
	struct fit_result r =
		map(&f, TRACE_READ, (UINT64_C(1) << 40) + 511, 513);

	expect_one(&r, 511, 513);
	r = map(&f, TRACE_READ, 5 * GIB - 1, (1 << 20) + 7);
	cr_assert_eq(r.nr, 2);
	cr_expect(r.split);
	cr_expect_eq(r.piece[0].offset, GIB - 1);
	cr_expect_eq(r.piece[0].length, 1);
	cr_expect_eq(r.piece[1].offset, 0);
	cr_expect_eq(r.piece[1].length, (1 << 20) + 6);
	r = map(&f, TRACE_TRIM, 77, GIB + 1);
	cr_expect(r.cut);
	expect_one(&r, 0, GIB);
}

Test(fit, t09_scale_keeps_proportions)
{
	const uint64_t end[] = { 16 * GIB, 4096 };
	const struct fit f = { .policy = FIT_SCALE, .size = GIB, .end = end };
	struct trace_record rec = {
		.op = TRACE_READ, .target = 1, .offset = 100, .length = 200
	};
	struct fit_result r = map(&f, TRACE_READ, 8 * GIB + 17, 4096);

	expect_one(&r, GIB / 2 + 17, 4096);
	r = map(&f, TRACE_READ, 16 * GIB - 4096, 4096);
	cr_expect_leq(r.piece[0].offset + r.piece[0].length, GIB);
	/* A target that fits stays as it is. */
	fit_map(&f, &rec, &r);
	expect_one(&r, 100, 200);
}

Test(fit, t09_compact_closes_the_gaps)
{
	struct touched *t = touched_new();
	const struct fit f = { .policy = FIT_COMPACT, .touched = t };
	struct fit_result r;

	cr_assert_eq(touched_add(t, 0, UINT64_C(1) << 40, 8192), 0);
	cr_assert_eq(touched_add(t, 0, 4096 * 7 + 100, 5), 0);
	touched_seal(t);
	r = map(&f, TRACE_READ, 4096 * 7 + 100, 5);
	expect_one(&r, 100, 5);
	r = map(&f, TRACE_WRITE, UINT64_C(1) << 40, 8192);
	expect_one(&r, 4096, 8192);
	r = map(&f, TRACE_WRITE, (UINT64_C(1) << 40) + 4095, 2);
	expect_one(&r, 4096 + 4095, 2);
	/* A trim over all of it punches what there is. */
	r = map(&f, TRACE_TRIM, 0, UINT64_C(1) << 50);
	expect_one(&r, 0, 3 * 4096);
	cr_expect_eq(map(&f, TRACE_TRIM, 0, 4096).nr, 0);
	cr_expect_eq(fit_file_size(&f, 0, UINT64_C(1) << 41), 3 * 4096);
	touched_free(t);
}

Test(fit, t09_direct_rounds_out_to_blocks)
{
	const struct fit f = { .policy = FIT_GROW, .whole_blocks = true };
	struct fit_result r = map(&f, TRACE_READ, 511, 1);

	expect_one(&r, 0, 4096);
	cr_expect(r.rounded);
	r = map(&f, TRACE_WRITE, 4095, (1 << 20) + 7);
	expect_one(&r, 0, (1 << 20) + 8192);
	r = map(&f, TRACE_WRITE, 8192, 4096);
	cr_expect_not(r.rounded);
}

/* Whatever comes, no piece leaves the file. */
Test(fit, t09_all_pieces_are_inside)
{
	struct rng rng = { .state = 3 };

	for (int i = 0; i < 20000; i++) {
		const uint64_t length = rng_next(&rng) >> rng_below(&rng, 64);
		const uint64_t offset =
			(rng_next(&rng) >> rng_below(&rng, 64)) >> 1;
		const uint64_t room = (uint64_t)INT64_MAX - offset;
		const uint64_t len = length < room ? length : room;
		const uint64_t end[] = { offset + len };
		const struct fit f = {
			.policy = rng_one_in(&rng, 2) ? FIT_WRAP : FIT_SCALE,
			.size = (1 + rng_below(&rng, 1000)) * 4096,
			.whole_blocks = rng_one_in(&rng, 2),
			.end = end,
		};
		const uint64_t size = fit_file_size(&f, 0, end[0]);
		const struct fit_result r = map(&f, TRACE_WRITE, offset, len);

		cr_assert_eq(size % 4096, 0);
		for (unsigned int p = 0; p < r.nr; p++) {
			cr_assert_gt(r.piece[p].length, 0);
			cr_assert_leq(r.piece[p].length, size);
			cr_assert_leq(r.piece[p].offset,
				      size - r.piece[p].length, "%d: policy %d",
				      i, f.policy);
		}
	}
}
