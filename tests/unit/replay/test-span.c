/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cutting lines and reading numbers, exactly. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tools/replay/span.h"

#define S(text) ((struct span){ (text), strlen(text) })

Test(span, numbers)
{
	uint64_t n = 0;

	cr_expect_eq(span_number(S("18446744073709551615"), &n), 0);
	cr_expect_eq(n, UINT64_MAX);
	cr_expect_eq(span_number(S("18446744073709551616"), &n), -ERANGE);
	cr_expect_eq(span_number(S(""), &n), -EINVAL);
	cr_expect_eq(span_number(S("-1"), &n), -EINVAL);
	cr_expect_eq(span_number(S("+1"), &n), -EINVAL);
	cr_expect_eq(span_number(S("1 "), &n), -EINVAL);
	cr_expect_eq(span_number(S("0x10"), &n), -EINVAL);
	cr_expect_eq(span_number(S("1e3"), &n), -EINVAL);
}

Test(span, seconds_are_whole_nanoseconds)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "0", 0 },
		{ "1", 1000000000 },
		{ "0.000000001", 1 },
		{ "0.1", 100000000 },
		{ "17.25", UINT64_C(17250000000) },
		{ "4.3459652639", UINT64_C(4345965263) },
		{ "1577808067.717617", UINT64_C(1577808067717617000) },
		{ "18446744073.709551615", UINT64_MAX },
	};
	uint64_t ns = 0;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		cr_expect_eq(span_seconds(S(good[i].text), &ns), 0);
		cr_expect_eq(ns, good[i].ns, "%s", good[i].text);
	}
	cr_expect_eq(span_seconds(S("18446744073.709551616"), &ns), -ERANGE);
	cr_expect_eq(span_seconds(S("1."), &ns), -EINVAL);
	cr_expect_eq(span_seconds(S(".5"), &ns), -EINVAL);
	cr_expect_eq(span_seconds(S("1,5"), &ns), -EINVAL);
	cr_expect_eq(span_seconds(S("1.2.3"), &ns), -EINVAL);
}

Test(span, fields_and_words)
{
	struct span f[3];

	cr_expect_eq(span_fields(S("a, b ,c,d"), ',', f, 3), 3);
	cr_expect(span_is(f[1], "b"));
	cr_expect(span_is(f[2], "c,d"));
	cr_expect_eq(span_fields(S(""), ',', f, 3), 1);
	cr_expect_eq(f[0].len, 0);
	cr_expect_eq(span_words(S("  x\t y  z w "), f, 3), 3);
	cr_expect(span_is(f[0], "x"));
	cr_expect(span_is(f[2], "z w"));
	cr_expect_eq(span_words(S("   "), f, 3), 0);
	cr_expect(span_is_nocase(S("wRITE"), "Write"));
	cr_expect_not(span_is(S("write"), "Write"));
	cr_expect(span_begins(S("CPU0 (x):"), "CPU"));
}
