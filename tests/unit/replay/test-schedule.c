/* SPDX-License-Identifier: GPL-3.0-or-later */
/* T01, T09: when each operation is due, and in which order they come. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/support/rng.h"
#include "tools/replay/order.h"
#include "tools/replay/schedule.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

Test(schedule, t01_due_times_are_differences_to_the_first)
{
	static const struct {
		uint64_t speed_milli, last_ns;
	} cases[] = {
		{ 1000, 9999 * MS },
		{ 2000, 9999 * MS / 2 },
		{ 500, 9999 * MS * 2 },
		{ 3000, 9999 * MS / 3 },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct schedule s = { .mode = SCHEDULE_TIMES,
				      .speed_milli = cases[c].speed_milli };
		uint64_t due = 0;

		/* MSR's epoch: 1.28e19 is near the end of 64 bits. */
		for (uint64_t i = 0; i < 10000; i++)
			due = schedule_due(&s, UINT64_C(12816637200306162900) +
						       i * MS);
		cr_expect_eq(due, cases[c].last_ns, "no rounding adds up");
	}
}

Test(schedule, t01_as_fast_as_possible_and_by_rate)
{
	struct schedule max = { .mode = SCHEDULE_MAX };
	struct schedule rate = { .mode = SCHEDULE_RATE, .rate = 3 };
	uint64_t due = 0;

	cr_expect_eq(schedule_due(&max, 5 * S), 0);
	cr_expect_eq(schedule_due(&max, 9 * S), 0);
	for (int i = 0; i <= 3000; i++)
		due = schedule_due(&rate, 0);
	cr_expect_eq(due, 1000 * S);
}

Test(schedule, t09_a_time_below_the_one_before_is_due_with_it)
{
	static const uint64_t times[] = { 5, 3, 9, 9, 0, 10 };
	static const uint64_t want[] = { 0, 0, 4, 4, 4, 5 };
	struct schedule s = { .mode = SCHEDULE_TIMES, .speed_milli = 1000 };

	for (int i = 0; i < 6; i++)
		cr_expect_eq(schedule_due(&s, times[i]), want[i], "%d", i);
	cr_expect_eq(s.clamped, 2);
}

Test(schedule, gaps_are_cut_before_they_are_scaled)
{
	struct schedule s = { .mode = SCHEDULE_TIMES,
			      .speed_milli = 2000,
			      .max_idle_ns = S };

	schedule_due(&s, 0);
	cr_expect_eq(schedule_due(&s, 100 * S), S / 2);
	cr_expect_eq(schedule_due(&s, 101 * S), S);
	cr_expect_eq(s.cut, 1);
}

Test(schedule, the_next_loop_follows_on_the_last)
{
	struct schedule s = { .mode = SCHEDULE_TIMES, .speed_milli = 1000 };

	schedule_due(&s, 7 * S);
	cr_expect_eq(schedule_due(&s, 9 * S), 2 * S);
	schedule_again(&s);
	cr_expect_eq(schedule_due(&s, 7 * S), 2 * S);
	cr_expect_eq(schedule_due(&s, 9 * S), 4 * S);
}

Test(schedule, absurd_times_stop_at_the_end)
{
	struct schedule s = { .mode = SCHEDULE_TIMES, .speed_milli = 1 };

	schedule_due(&s, 0);
	cr_expect_eq(schedule_due(&s, UINT64_MAX), UINT64_MAX);
	schedule_again(&s);
	schedule_due(&s, 0);
	cr_expect_eq(schedule_due(&s, UINT64_MAX), UINT64_MAX);
}

Test(schedule, t09_the_window_sorts_and_keeps_equal_ones_in_order)
{
	static const uint64_t times[] = { 5, 3, 9, 9, 0 };
	static const uint64_t want[] = { 0, 3, 5, 9, 9 };
	struct order *o = calloc(1, sizeof(*o));
	struct trace_record rec = { 0 };

	for (int i = 0; i < 5; i++) {
		rec.time_ns = times[i];
		rec.offset = (uint64_t)i;
		order_put(o, &rec);
	}
	for (int i = 0; i < 5; i++) {
		cr_assert(order_take(o, &rec));
		cr_expect_eq(rec.time_ns, want[i]);
		if (i >= 3)
			cr_expect_eq(rec.offset, (uint64_t)i - 1);
	}
	cr_expect_not(order_take(o, &rec));
	free(o);
}

Test(schedule, a_full_window_comes_out_sorted)
{
	struct order *o = calloc(1, sizeof(*o));
	struct rng rng = { .state = 4 };
	struct trace_record rec = { 0 }, last = { 0 };

	for (uint64_t i = 0; !order_full(o); i++) {
		rec.time_ns = rng_below(&rng, 500);
		rec.offset = i;
		order_put(o, &rec);
	}
	while (order_take(o, &rec)) {
		cr_assert(rec.time_ns > last.time_ns ||
			  (rec.time_ns == last.time_ns &&
			   rec.offset >= last.offset));
		last = rec;
	}
	free(o);
}
