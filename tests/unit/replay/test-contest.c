/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The arithmetic of a comparison. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tools/replay/contest.h"

static struct contestant *row_of(const char *scheme, size_t nr,
				 const uint64_t *average,
				 const uint64_t *access)
{
	struct contestant *row = calloc(1, sizeof(*row));

	row->scheme = scheme;
	row->dir = ".";
	row->nr_samples = nr;
	for (size_t i = 0; i < nr; i++) {
		row->sample[i].average = average[i];
		row->sample[i].access = access[i];
	}
	return row;
}

Test(contest, everybody_once_a_round_and_first_in_turn)
{
	for (unsigned int round = 0; round < 7; round++) {
		unsigned int seen = 0;

		for (size_t i = 0; i < 4; i++)
			seen |= 1U << contest_order(4, round, i);
		cr_expect_eq(seen, 15);
		cr_expect_eq(contest_order(4, round, 0), round % 4);
	}
}

Test(contest, medians_and_ranges)
{
	const uint64_t odd[] = { 30, 10, 20 }, even[] = { 1, 2, 10, 4 };
	struct contestant *a = row_of("x", 3, odd, odd);
	struct contestant *b = row_of("x", 4, even, even);
	struct spread s = contest_spread(a, SAMPLE_average);

	cr_expect_eq(s.median, 20);
	cr_expect_eq(s.min, 10);
	cr_expect_eq(s.max, 30);
	cr_expect_eq(contest_spread(b, SAMPLE_average).median, 3);
	a->nr_samples = 0;
	cr_expect_eq(contest_spread(a, SAMPLE_average).max, 0);
	free(a);
	free(b);
}

Test(contest, a_hit_is_positive_where_it_is_worse)
{
	const uint64_t fast[] = { 200, 200 }, slow[] = { 150, 150 };
	struct contestant *base = row_of("none", 2, fast, slow);
	struct contestant *x = row_of("x", 2, slow, fast);
	int64_t hit = 0;

	/* 150 instead of 200 MB/s; 200 ns instead of 150. */
	cr_assert(contest_hit(x, base, SAMPLE_average, &hit));
	cr_expect_eq(hit, 25000);
	cr_assert(contest_hit(x, base, SAMPLE_access, &hit));
	cr_expect_eq(hit, 33333);
	cr_assert(contest_hit(base, x, SAMPLE_average, &hit));
	cr_expect_eq(hit, -33333);
	cr_expect_not(contest_hit(x, NULL, SAMPLE_average, &hit));
	base->sample[0].average = base->sample[1].average = 0;
	cr_expect_not(contest_hit(x, base, SAMPLE_average, &hit));
	free(base);
	free(x);
}

Test(contest, ranges_that_overlap_are_noise)
{
	const uint64_t a[] = { 100, 110, 120 }, b[] = { 119, 130, 140 };
	const uint64_t c[] = { 121, 130, 140 };
	struct contestant *x = row_of("a", 3, a, a);
	struct contestant *y = row_of("b", 3, b, b);
	struct contestant *z = row_of("c", 3, c, c);

	cr_expect(contest_in_noise(x, y, SAMPLE_average));
	cr_expect(contest_in_noise(y, x, SAMPLE_average));
	cr_expect_not(contest_in_noise(x, z, SAMPLE_average));
	z->nr_samples = 1;
	cr_expect(contest_in_noise(x, z, SAMPLE_average));
	free(x);
	free(y);
	free(z);
}

Test(contest, each_folder_has_its_own_base)
{
	struct contestant *rows = calloc(6, sizeof(*rows));
	struct contest c = { .row = rows, .nr_rows = 6 };

	for (int i = 0; i < 6; i++)
		rows[i].dir = i < 3 ? "/a" : "/b";
	for (int i = 1; i < 6; i += 3) {
		rows[i].scheme = "none";
		rows[i + 1].scheme = "none";
		rows[i + 1].integrity = true;
	}
	cr_expect_eq(contest_base(&c, &rows[2]), &rows[1]);
	cr_expect_eq(contest_base(&c, &rows[5]), &rows[4]);
	cr_expect_eq(contest_host(&c, &rows[5]), &rows[3]);
	free(rows);
}
