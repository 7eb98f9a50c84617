/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How much work a header can make of one secret.  Nothing is derived here:
 * keyslot_unwrap() is replaced by a function that notes what it would cost.
 */
#include <criterion/criterion.h>

#include "support.h"

int __wrap_keyslot_unwrap(const struct keyslot *slot,
			  const struct keyslot_place *place,
			  const struct secret *secret, struct secret *key);

static unsigned int order[HEADER_SLOTS], nr_tried;
static uint64_t work;
static int answer = -EACCES;

int __wrap_keyslot_unwrap(const struct keyslot *slot,
			  const struct keyslot_place *place,
			  const struct secret *secret, struct secret *key)
{
	cr_assert_lt(nr_tried, HEADER_SLOTS);
	order[nr_tried++] = place->index;
	work += (uint64_t)slot->cost.passes * slot->cost.memory_kib;
	*key = SECRET_EMPTY;
	return answer;
}

static struct made m;

static void start_made(void)
{
	make_container(&m);
}

static void end_made(void)
{
	destroy_container(&m);
}

TestSuite(tries, .init = start_made, .fini = end_made);

static void fill_slots(uint32_t passes, uint32_t memory_kib)
{
	for (unsigned int i = 0; i < HEADER_SLOTS; i++) {
		m.h.slot[i] = m.h.slot[0];
		m.h.slot[i].cost = (struct kdf_cost){ passes, memory_kib, 1 };
	}
}

Test(tries, work_of_all_slots_together_is_bounded)
{
	/* A fifth of the limit each. */
	fill_slots(1u << 13, (1u << 16) / 5);
	cr_assert_eq(try_password(&m.h, "x"), -ERANGE);
	cr_assert_eq(nr_tried, 5);
	cr_assert_leq(work, HEADER_KDF_SUM_KIB);
}

Test(tries, cheaper_slots_are_tried_after_one_that_was_too_much)
{
	fill_slots(1, 8);
	m.h.slot[3].cost = (struct kdf_cost){ 128, 4u << 20, 1 };
	m.h.slot[4].cost = (struct kdf_cost){ UINT32_MAX, 4u << 20, 1 };
	cr_assert_eq(try_password(&m.h, "x"), -ERANGE);
	cr_assert_eq(nr_tried, HEADER_SLOTS - 2);
	cr_assert_leq(work, HEADER_KDF_SUM_KIB);
}

Test(tries, usual_costs_are_all_tried)
{
	fill_slots(8, 1u << 20);
	cr_assert_eq(try_password(&m.h, "x"), -EACCES);
	cr_assert_eq(nr_tried, HEADER_SLOTS);
}

Test(tries, passwords_come_first_then_the_rest_in_order)
{
	static const unsigned int expected[] = { 1, 3, 0, 2 };

	fill_slots(1, 8);
	for (unsigned int i = 4; i < HEADER_SLOTS; i++)
		m.h.slot[i].kind = KEYSLOT_EMPTY;
	m.h.slot[0].kind = KEYSLOT_RECOVERY;
	m.h.slot[2].kind = KEYSLOT_EXTERNAL;
	cr_assert_eq(try_password(&m.h, "x"), -EACCES);
	cr_assert_eq(nr_tried, 4);
	cr_assert_arr_eq(order, expected, sizeof(expected));
}

Test(tries, what_kept_us_from_trying_is_reported)
{
	fill_slots(1, 8);
	answer = -ENOMEM;
	cr_assert_eq(try_password(&m.h, "x"), -ENOMEM);
	nr_tried = 0;
	answer = -EIO;
	cr_assert_eq(try_password(&m.h, "x"), -EIO);
	nr_tried = 0;
	answer = -EOPNOTSUPP;
	cr_assert_eq(try_password(&m.h, "x"), -EACCES);
}
