/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Labels of any bytes become UTF-8 without control characters. */
#include <criterion/criterion.h>

#include "stats/utf8.h"

static const char *clean(const char *from)
{
	static char buf[64];

	return utf8_clean(buf, sizeof(buf), sizeof(buf), from);
}

Test(utf8, valid_text_stays)
{
	static const char text[] = "a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x98";

	cr_assert_str_eq(clean(text), text);
	cr_assert_eq(utf8_length("a"), 1);
	cr_assert_eq(utf8_length("\xc3\xa9"), 2);
	cr_assert_eq(utf8_length("\xe2\x82\xac"), 3);
	cr_assert_eq(utf8_length("\xf4\x8f\xbf\xbf"), 4);
}

Test(utf8, invalid_bytes_become_question_marks)
{
	cr_assert_str_eq(clean("\xffz"), "?z");
	cr_assert_str_eq(clean("\x80z"), "?z");
	cr_assert_str_eq(clean("\xc0\xaf"), "??");	     /* overlong */
	cr_assert_str_eq(clean("\xe0\x80\xaf"), "???");	     /* overlong */
	cr_assert_str_eq(clean("\xed\xa0\x80"), "???");	     /* surrogate */
	cr_assert_str_eq(clean("\xf0\x80\x80\x80"), "????"); /* overlong */
	cr_assert_str_eq(clean("\xf4\x90\x80\x80"), "????"); /* too large */
	cr_assert_str_eq(clean("\xe2\x82"), "??");	     /* cut off */
	cr_assert_str_eq(clean("\xe2\x82z"), "??z");
}

Test(utf8, control_characters_become_question_marks)
{
	cr_assert_str_eq(clean("a\n\x1b[2Jb\x7f"), "a??[2Jb?");
	cr_assert_str_eq(clean("\xc2\x9bz\xc2\xa0"), "?z\xc2\xa0");
}

Test(utf8, cuts_between_characters)
{
	char buf[6];

	cr_assert_str_eq(utf8_clean(buf, sizeof(buf), 99, "abcdef"), "abcde");
	cr_assert_str_eq(utf8_clean(buf, sizeof(buf), 99, "abcd\xc3\xa9"),
			 "abcd");
	cr_assert_str_eq(utf8_clean(buf, sizeof(buf), 2, "\xc3\xa9\xc3\xa9x"),
			 "\xc3\xa9\xc3\xa9");
	cr_assert_str_eq(utf8_clean(buf, 1, 99, "abc"), "");
}

Test(utf8, null_is_empty)
{
	cr_assert_str_eq(clean(NULL), "");
	cr_assert_str_eq(clean(""), "");
}
