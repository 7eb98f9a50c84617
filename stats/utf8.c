/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Validating UTF-8, by the table of well-formed byte sequences (RFC 3629). */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "stats/utf8.h"

/* The bytes that may come second narrow with some first ones. */
static bool second_is_valid(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0:
		return second >= 0xa0 && second <= 0xbf;
	case 0xed:
		return second >= 0x80 && second <= 0x9f;
	case 0xf0:
		return second >= 0x90 && second <= 0xbf;
	case 0xf4:
		return second >= 0x80 && second <= 0x8f;
	default:
		return second >= 0x80 && second <= 0xbf;
	}
}

size_t utf8_length(const char *s)
{
	const unsigned char *b = (const unsigned char *)s;
	size_t len;

	if (b[0] < 0x80)
		return 1;
	if (b[0] < 0xc2 || b[0] > 0xf4)
		return 0;
	len = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	if (!second_is_valid(b[0], b[1]))
		return 0;
	/* Stops at the NUL, which is no continuation. */
	for (size_t i = 2; i < len; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

static bool is_control(const char *s)
{
	const unsigned char *b = (const unsigned char *)s;

	return b[0] < 0x20 || b[0] == 0x7f || (b[0] == 0xc2 && b[1] < 0xa0);
}

char *utf8_clean(char *to, size_t size, size_t max_chars, const char *from)
{
	char *end = to;

	assert(size > 0);
	for (size_t n = 0; from && *from && n < max_chars; n++) {
		size_t len = utf8_length(from);
		const char *put = from;

		from += len ? len : 1;
		if (!len || is_control(put)) {
			put = "?";
			len = 1;
		}
		if (len >= size - (size_t)(end - to))
			break;
		memcpy(end, put, len);
		end += len;
	}
	*end = '\0';
	return to;
}
