/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whatever bytes come in: an answer, never a crash (the sanitizers look on). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/rng.h"
#include "tests/unit/replay/text-trace.h"

static struct text_trace t;

static void read_as_each(const void *bytes, size_t len)
{
	text_read_bytes(&t, bytes, len, NULL);
	for (size_t i = 0; reader_format_at(i); i++) {
		const struct reader_options o = { reader_format_at(i), 0 };

		text_read_bytes(&t, bytes, len, &o);
		cr_assert_eq(t.err, 0);
	}
}

Test(hostile, random_bytes)
{
	struct rng rng = { .state = 1 };
	unsigned char bytes[5000];

	for (int round = 0; round < 200; round++) {
		const size_t len = rng_below(&rng, sizeof(bytes));

		for (size_t i = 0; i < len; i++)
			bytes[i] = (unsigned char)rng_next(&rng);
		read_as_each(bytes, len);
	}
}

static const char *const good[] = {
	"fio version 3 iolog\n1 /a read 0 512\n2 /a wait 1 0\n3 /a sync 0 0\n",
	"fio version 2 iolog\n/a add\n/a read 0 512\n/a wait 5 0\n",
	"128166372003061629,h,0,Read,0,512,1\n",
	"  8,0 0 1 0.000000001 7  Q FWFS 100 + 16 [0]\nTotal (8,0):\n",
	"0, 0, 4096\n",
};

Test(hostile, good_lines_with_damage)
{
	struct rng rng = { .state = 2 };
	char bytes[256];

	for (int round = 0; round < 3000; round++) {
		const char *from = good[rng_below(&rng, 5)];
		size_t len = strlen(from);

		memcpy(bytes, from, len);
		for (size_t n = 1 + rng_below(&rng, 3); n; n--)
			bytes[rng_below(&rng, len)] = (char)rng_next(&rng);
		len -= rng_below(&rng, 4);
		read_as_each(bytes, len);
	}
}

Test(hostile, lines_of_a_mebibyte)
{
	const size_t len = 1 << 20;
	static const char tail[] = "\n2 /a read 0 512\n";
	static const char head[] = "fio version 3 iolog\n1 /a read 0 512\n";
	const size_t all = sizeof(head) - 1 + len + sizeof(tail) - 1;
	char *bytes = malloc(all);

	memcpy(bytes, head, sizeof(head) - 1);
	memset(bytes + sizeof(head) - 1, 'x', len);
	memcpy(bytes + sizeof(head) - 1 + len, tail, sizeof(tail) - 1);
	text_read_bytes(&t, bytes, all, NULL);
	cr_expect_eq(t.nr, 2);
	cr_assert_eq(t.nr_bad, 1);
	cr_expect_eq(t.bad_line[0], 3);
	cr_expect(strstr(t.bad_reason[0], "longer"));
	/* The same without an end of line. */
	text_read_bytes(&t, bytes, sizeof(head) - 1 + len, NULL);
	cr_expect_eq(t.nr, 1);
	cr_expect_eq(t.nr_bad, 1);
	free(bytes);
}

/* A line of exactly the longest size, and of one byte more. */
Test(hostile, the_longest_line)
{
	char *bytes = malloc(INPUT_LINE_MAX + 100);
	int len = sprintf(bytes, "fio version 3 iolog\n");
	char *line = bytes + len;

	for (int extra = 0; extra < 2; extra++) {
		const size_t all = INPUT_LINE_MAX + (size_t)extra;

		memset(line, ' ', all);
		memcpy(line, "1 /a read 0 512", 15);
		line[all] = '\n';
		text_read_bytes(&t, bytes, (size_t)len + all + 1, NULL);
		cr_expect_eq(t.nr, extra ? 0 : 1);
		cr_expect_eq(t.nr_bad, extra ? 1 : 0);
	}
	free(bytes);
}

Test(hostile, nul_bytes)
{
	static const char text[] = "fio version 3 iolog\n1 /a\0b read 0 512\n"
				   "2 /a read 0 512\n";

	text_read_bytes(&t, text, sizeof(text) - 1, NULL);
	cr_expect_eq(t.nr, 1);
	cr_assert_eq(t.nr_bad, 1);
	cr_expect(strstr(t.bad_reason[0], "NUL"));
}

/* gzip of "fio version 3 iolog\n1 /a read 0 512\n", whole and cut. */
Test(hostile, a_packed_trace_that_ends_early)
{
	static const unsigned char packed[] = {
		0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
		0x4b, 0xcb, 0xcc, 0x57, 0x28, 0x4b, 0x2d, 0x2a, 0xce, 0xcc,
		0xcf, 0x53, 0x30, 0x56, 0xc8, 0xcc, 0xcf, 0xc9, 0x4f, 0xe7,
		0x32, 0x54, 0xd0, 0x4f, 0x54, 0x28, 0x4a, 0x4d, 0x4c, 0x51,
		0x30, 0x50, 0x30, 0x35, 0x34, 0xe2, 0x02, 0x00, 0x23, 0x54,
		0x0c, 0xca, 0x24, 0x00, 0x00, 0x00,
	};

	text_read_bytes(&t, packed, sizeof(packed), NULL);
	cr_expect_eq(t.nr, 1);
	cr_expect_not(t.failed);
	for (size_t len = 18; len < sizeof(packed); len++) {
		const struct reader_options o = { reader_format_by_name("fio"),
						  0 };

		text_read_bytes(&t, packed, len, &o);
		cr_expect(t.err || t.failed, "cut to %zu", len);
	}
}
