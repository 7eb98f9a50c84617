/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>

#include "fs/ptr.h"

static struct ptr some_ptr(void)
{
	return (struct ptr){
		.block = 0x0102030405060708,
		.second = 0x1112131415161718,
		.birth = 0x2122232425262728,
		.nonce = { 0x3132333435363738, 0x41424344 },
		.key_id = 0x5152,
		.level = 12,
		.log2_bytes = 16,
		.tag = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
			 16 },
	};
}

Test(ptr, survives_encoding)
{
	struct ptr p = some_ptr(), q;
	struct disk_ptr d;

	ptr_encode(&p, &d);
	cr_assert_eq(d.block.b[0], 0x08);
	cr_assert_eq(ptr_decode(&d, &q), 0);
	cr_assert_eq(q.block, p.block);
	cr_assert_eq(q.second, p.second);
	cr_assert_eq(q.birth, p.birth);
	cr_assert_eq(q.nonce.session, p.nonce.session);
	cr_assert_eq(q.nonce.counter, p.nonce.counter);
	cr_assert_eq(q.key_id, p.key_id);
	cr_assert_eq(q.level, p.level);
	cr_assert_eq(q.log2_bytes, p.log2_bytes);
	cr_assert_arr_eq(q.tag, p.tag, sizeof(q.tag));
}

Test(ptr, without_a_node_is_all_zero)
{
	static const struct disk_ptr zeros;
	struct ptr p = some_ptr(), q;
	struct disk_ptr d;

	p.block = 0;
	ptr_encode(&p, &d);
	cr_assert_arr_eq((uint8_t *)&d, (const uint8_t *)&zeros, sizeof(d));
	cr_assert_eq(ptr_decode(&d, &q), 0);
	cr_assert_eq(q.block, 0);

	d.tag[15] = 1;
	cr_assert_eq(ptr_decode(&d, &q), -EUCLEAN);
}

static void expect_refused(struct ptr p)
{
	struct disk_ptr d;
	struct ptr q;

	ptr_encode(&p, &d);
	cr_assert_eq(ptr_decode(&d, &q), -EUCLEAN);
}

Test(ptr, out_of_bounds_is_refused)
{
	struct ptr p;

	p = some_ptr(), p.level = 13, expect_refused(p);
	p = some_ptr(), p.log2_bytes = 13, expect_refused(p);
	p = some_ptr(), p.log2_bytes = 17, expect_refused(p);
	p = some_ptr(), p.nonce.session = 1ull << 63, expect_refused(p);
	p = some_ptr(), p.key_id = 0, expect_refused(p);
	p = some_ptr(), p.second = p.block, expect_refused(p);
}
