/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>

#include "cipher/nonce.h"
#include "support.h"

#define LAST UINT64_C(0xffffffff)

static uint64_t drawn;
static int next_session(uint64_t *session)
{
	*session = ++drawn;
	return 0;
}

static int no_session(uint64_t *session)
{
	return -EAGAIN;
}

static struct nonce_source src;

/* Session 7, sessions 1, 2 and so on after it. */
static void start_source(void)
{
	start_cipher();
	cr_assert_eq(nonce_source_init(&src), 0);
	src.draw_session = next_session;
	src.session = 7;
	src.next = 0;
}

static void end_source(void)
{
	nonce_source_destroy(&src);
}

TestSuite(nonce, .init = start_source, .fini = end_source);

static void expect_draw(uint64_t nr, uint64_t session, uint32_t counter)
{
	struct nonce n;

	cr_assert_eq(nonce_draw(&src, nr, &n), 0);
	cr_assert_eq(n.session, session);
	cr_assert_eq(n.counter, counter);
}

Test(nonce, sessions_have_63_bits_and_differ)
{
	struct nonce_source other;

	cr_assert_eq(nonce_source_init(&other), 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t a, b;

		cr_assert_eq(other.draw_session(&a), 0);
		cr_assert_eq(other.draw_session(&b), 0);
		cr_assert_eq((a | b) >> 63, 0);
		cr_assert(a && b && a != b);
	}
	nonce_source_destroy(&other);
}

Test(nonce, runs_follow_each_other)
{
	expect_draw(1, 7, 0);
	expect_draw(10, 7, 1);
	expect_draw(1, 7, 11);
}

Test(nonce, run_may_end_at_the_last_counter)
{
	src.next = LAST - 3;
	expect_draw(4, 7, (uint32_t)LAST - 3);
	expect_draw(1, 1, 0);
}

Test(nonce, run_that_would_cross_begins_a_session)
{
	src.next = LAST - 3;
	expect_draw(5, 1, 0);
	expect_draw(1, 1, 5);
}

Test(nonce, run_may_be_a_whole_session)
{
	expect_draw(LAST + 1, 7, 0);
	expect_draw(LAST + 1, 1, 0);
	expect_draw(1, 2, 0);
	expect_draw(LAST + 1, 3, 0);
}

Test(nonce, error_of_the_generator_comes_back)
{
	struct nonce n;

	src.next = LAST - 3;
	src.draw_session = no_session;
	cr_assert_eq(nonce_draw(&src, 5, &n), -EAGAIN);
	/* What is left of the session was not lost, and not given out. */
	expect_draw(4, 7, (uint32_t)LAST - 3);
	cr_assert_eq(nonce_draw(&src, 1, &n), -EAGAIN);
	src.draw_session = next_session;
	expect_draw(1, 1, 0);
}

Test(nonce, encoding_is_little_endian)
{
	const struct nonce n = { UINT64_C(0x0102030405060708), 0x0a0b0c0d };
	uint8_t got[NONCE_BYTES], want[NONCE_BYTES];

	nonce_encode(n, got);
	from_hex("08070605040302010d0c0b0a", want);
	cr_assert_arr_eq(got, want, NONCE_BYTES);
}
