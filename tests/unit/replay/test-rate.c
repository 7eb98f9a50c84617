/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Min, max and burst rates by windows, and how numbers are written. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/replay/format.h"
#include "tools/replay/rate.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

Test(rate, the_widest_windows_of_which_there_are_ten)
{
	static const struct {
		uint64_t run_ns, window_ns, nr;
	} cases[] = {
		{ 10 * S, S, 10 },
		{ 3600 * S, S, 3600 },
		{ 10 * S - 1, 100 * MS, 99 },
		{ 100 * MS, 10 * MS, 10 },
		{ 5 * MS, MS, 5 },
		{ MS - 1, MS, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rate r = { 0 };
		struct rate_summary s;

		rate_end(&r, cases[i].run_ns, &s);
		cr_expect_eq(s.window_ns, cases[i].window_ns, "%zu", i);
		cr_expect_eq(s.nr_windows, cases[i].nr, "%zu", i);
		cr_expect_eq(s.max, 0);
	}
}

Test(rate, an_even_run_has_one_rate)
{
	struct rate r = { 0 };
	struct rate_summary s;

	for (uint64_t t = 0; t < 20 * S; t += MS / 2)
		rate_add(&r, t, 1000);
	rate_end(&r, 20 * S, &s);
	cr_expect_eq(s.min, 2000000);
	cr_expect_eq(s.max, 2000000);
	cr_expect_eq(s.burst, 2000000);
	cr_expect_eq(s.burst_window_ns, 100 * MS);
}

Test(rate, bursts_and_pauses)
{
	struct rate r = { 0 };
	struct rate_summary s;

	/* 1 MB in the first tenth of a second, one byte a second later. */
	rate_add(&r, 50 * MS, 1000000);
	for (uint64_t t = 1; t < 12; t++)
		rate_add(&r, t * S, 1);
	rate_end(&r, 12 * S + MS, &s);
	cr_expect_eq(s.nr_windows, 12);
	cr_expect_eq(s.max, 1000000);
	cr_expect_eq(s.min, 1);
	cr_expect_eq(s.burst, 10000000);

	/* A gap of a day is a rate of 0, and no day of work. */
	rate_add(&r, 86400 * S, 1);
	rate_end(&r, 86401 * S, &s);
	cr_expect_eq(s.min, 0);
}

Test(rate, one_that_comes_late_counts_with_the_last)
{
	struct rate r = { 0 };
	struct rate_summary s;

	rate_add(&r, 2 * MS, 7);
	rate_add(&r, MS, 5);
	rate_end(&r, 3 * MS, &s);
	cr_expect_eq(s.max, 12000);
	cr_expect_eq(s.min, 0);
}

Test(rate, times_and_rates_for_people)
{
	char out[FORMAT_BYTES];

	format_ns(812, out);
	cr_expect_str_eq(out, "812 ns");
	format_ns(5312, out);
	cr_expect_str_eq(out, "5.31 us");
	format_ns(12449999, out);
	cr_expect_str_eq(out, "12.4 ms");
	format_ns(UINT64_MAX, out);
	cr_expect_str_eq(out, "18446744073 s");
	format_mb(25149999, out);
	cr_expect_str_eq(out, "25.1");
	format_milli(-12345, out);
	cr_expect_str_eq(out, "-12.3");
	format_milli(-40, out);
	cr_expect_str_eq(out, "0.0");
	cr_expect_eq(format_rate(5, 0), 0);
	cr_expect_eq(format_rate(UINT64_MAX, 1), UINT64_MAX);
}
