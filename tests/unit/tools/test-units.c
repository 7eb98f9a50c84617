/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sizes and times as people write them. */
#include <criterion/criterion.h>
#include <errno.h>

#include "tools/units.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

Test(units, sizes)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "1K", 1024 },
		{ "16M", 16 << 20 },
		{ "16m", 16 << 20 },
		{ "3G", UINT64_C(3) << 30 },
		{ "2T", UINT64_C(2) << 40 },
		{ "64KiB", 65536 },
		{ "64kB", 65536 },
		{ "007K", 7168 },
		{ "9223372036854775807", INT64_MAX },
		{ "8388607T", UINT64_C(8388607) << 40 },
	};
	uint64_t bytes;

	for (size_t i = 0; i < NR(good); i++) {
		cr_expect_eq(units_parse_size(good[i].text, &bytes), 0, "%s",
			     good[i].text);
		cr_expect_eq(bytes, good[i].bytes, "%s", good[i].text);
	}
}

Test(units, what_is_no_size)
{
	static const char *const bad[] = {
		"",	     "K",    "-1",  "+1",  " 1",  "1 ",	   "1.5G",
		"1,5",	     "0x10", "1KK", "1X",  "1Ki", "1KiBs", "\xc4\xb1",
		"1\xc4\xb1", "1e6",  "1P",  "M16", "1b",
	};
	uint64_t bytes = 7;

	for (size_t i = 0; i < NR(bad); i++)
		cr_expect_eq(units_parse_size(bad[i], &bytes), -EINVAL, "'%s'",
			     bad[i]);
	cr_expect_eq(bytes, 7);
}

Test(units, sizes_that_do_not_fit)
{
	static const char *const large[] = {
		"9223372036854775808",
		"18446744073709551616",
		"8388608T",
		"99999999999999999999999999999999K",
	};
	uint64_t bytes;

	for (size_t i = 0; i < NR(large); i++)
		cr_expect_eq(units_parse_size(large[i], &bytes), -ERANGE, "%s",
			     large[i]);
}

Test(units, seconds)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {
		{ "0", 0 },	      { "1", 1000 },	  { "2.5", 2500 },
		{ "0.05", 50 },	      { "0.001", 1 },	  { "0.0001", 1 },
		{ "0.000000001", 1 }, { "1.0001", 1001 }, { "20s", 20000 },
		{ "1.5m", 90000 },    { "2h", 7200000 },  { "0.5h", 1800000 },
	};
	uint64_t ms;

	for (size_t i = 0; i < NR(good); i++) {
		cr_expect_eq(units_parse_seconds(good[i].text, &ms), 0, "%s",
			     good[i].text);
		cr_expect_eq(ms, good[i].ms, "%s", good[i].text);
	}
}

Test(units, what_is_no_time)
{
	static const char *const bad[] = {
		"",    ".5",  "5.",	      "1,5",   "-1",  "+1",
		" 1",  "1 ",  "1d",	      "1ms",   "1e3", "0x1",
		"inf", "nan", "0.0000000001", "1.2.3", "1M",
	};
	uint64_t ms;

	for (size_t i = 0; i < NR(bad); i++)
		cr_expect_eq(units_parse_seconds(bad[i], &ms), -EINVAL, "'%s'",
			     bad[i]);
	cr_expect_eq(units_parse_seconds("316224001", &ms), -ERANGE);
	cr_expect_eq(units_parse_seconds("100000h", &ms), -ERANGE);
	cr_expect_eq(units_parse_seconds("99999999999999999999", &ms), -ERANGE);
}

Test(units, numbers)
{
	uint64_t n;

	cr_expect_eq(units_parse_number("12", 12, &n), 0);
	cr_expect_eq(n, 12);
	cr_expect_eq(units_parse_number("13", 12, &n), -ERANGE);
	cr_expect_eq(units_parse_number("5", 3, &n), -ERANGE);
	cr_expect_eq(units_parse_number("18446744073709551615", UINT64_MAX, &n),
		     0);
	cr_expect_eq(n, UINT64_MAX);
	cr_expect_eq(units_parse_number("18446744073709551616", UINT64_MAX, &n),
		     -ERANGE);
	cr_expect_eq(units_parse_number("-1", 12, &n), -EINVAL);
	cr_expect_eq(units_parse_number("1K", 12, &n), -EINVAL);
	cr_expect_eq(units_parse_number("", 12, &n), -EINVAL);
}

Test(units, sizes_for_people)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },		{ 1023, "1023 B" },
		{ 1024, "1 KiB" },	{ 1536, "1.5 KiB" },
		{ 32 << 20, "32 MiB" }, { UINT64_MAX, "15.9 EiB" },
	};
	char text[UNITS_TEXT_BYTES];

	for (size_t i = 0; i < NR(cases); i++) {
		units_format_size(cases[i].bytes, text);
		cr_expect_str_eq(text, cases[i].text);
	}
}
