/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>

#include "fs/range.h"

static struct range_vec v;

TestSuite(range);

Test(range, merges_only_what_continues_the_last_one)
{
	v = RANGE_VEC_EMPTY;
	cr_assert_eq(range_vec_reserve(&v, 5), 0);
	range_vec_add(&v, 100, 4, 7);
	range_vec_add(&v, 104, 4, 7);
	cr_assert_eq(v.nr, 1);
	cr_assert_eq(v.r[0].nr, 8);
	/* Another birth; a gap; what lies in front. */
	range_vec_add(&v, 108, 1, 8);
	range_vec_add(&v, 110, 1, 8);
	range_vec_add(&v, 109, 1, 8);
	cr_assert_eq(v.nr, 4);
	cr_assert_eq(v.blocks, 11);
	cr_assert_eq(v.r[3].start, 109);
	range_vec_destroy(&v);
	cr_assert_eq(v.r, NULL);
	cr_assert_eq(v.blocks, 0);
}

Test(range, a_length_never_wraps)
{
	v = RANGE_VEC_EMPTY;
	cr_assert_eq(range_vec_reserve(&v, 2), 0);
	range_vec_add(&v, 1, UINT32_MAX, 7);
	range_vec_add(&v, 1ull + UINT32_MAX, 1, 7);
	cr_assert_eq(v.nr, 2);
	cr_assert_eq(v.blocks, (uint64_t)UINT32_MAX + 1);
	range_vec_destroy(&v);
}

Test(range, reserved_room_is_there)
{
	v = RANGE_VEC_EMPTY;
	for (block_t i = 0; i < 1000; i++) {
		cr_assert_eq(range_vec_reserve(&v, 3), 0);
		cr_assert_geq(v.room, v.nr + 3);
		range_vec_add(&v, 2 * i, 1, 0);
	}
	for (block_t i = 0; i < 1000; i++)
		cr_assert_eq(v.r[i].start, 2 * i);
	/* Adding within the room never moves the array. */
	struct range *before = v.r;

	while (v.nr < v.room)
		range_vec_add(&v, 10000 + 2 * v.nr, 1, 0);
	cr_assert_eq(v.r, before);
	range_vec_destroy(&v);
}
