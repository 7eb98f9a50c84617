/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Each function reads at most len bytes and treats every byte value alike.
 */
#include <errno.h>
#include <string.h>

#include "tools/replay/span.h"

#define NS_PER_S UINT64_C(1000000000)

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* tolower() obeys the locale: in Turkish 'I' is not 'i'. */
static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

struct span span_trim(struct span s)
{
	while (s.len && is_blank(s.at[0])) {
		s.at++;
		s.len--;
	}
	while (s.len && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

bool span_is(struct span s, const char *word)
{
	return strlen(word) == s.len && memcmp(s.at, word, s.len) == 0;
}

bool span_is_nocase(struct span s, const char *word)
{
	if (strlen(word) != s.len)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (lower(s.at[i]) != lower(word[i]))
			return false;
	return true;
}

bool span_begins(struct span s, const char *prefix)
{
	const size_t len = strlen(prefix);

	return s.len >= len && memcmp(s.at, prefix, len) == 0;
}

size_t span_fields(struct span s, char separator, struct span *field,
		   size_t max)
{
	size_t nr = 0;

	for (;;) {
		const char *const end =
			nr + 1 < max ? memchr(s.at, separator, s.len) : NULL;
		const size_t len = end ? (size_t)(end - s.at) : s.len;

		field[nr++] = span_trim((struct span){ s.at, len });
		if (!end)
			return nr;
		s.at += len + 1;
		s.len -= len + 1;
	}
}

size_t span_words(struct span s, struct span *word, size_t max)
{
	size_t nr = 0;

	s = span_trim(s);
	while (s.len && nr < max) {
		size_t len = 0;

		while (len < s.len && !is_blank(s.at[len]))
			len++;
		if (nr + 1 == max)
			len = s.len;
		word[nr++] = (struct span){ s.at, len };
		s.at += len;
		s.len -= len;
		s = span_trim(s);
	}
	return nr;
}

int span_number(struct span s, uint64_t *number)
{
	uint64_t n = 0;

	if (!s.len)
		return -EINVAL;
	for (size_t i = 0; i < s.len; i++) {
		if (!is_digit(s.at[i]))
			return -EINVAL;
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(s.at[i] - '0'), &n))
			return -ERANGE;
	}
	*number = n;
	return 0;
}

int span_seconds(struct span s, uint64_t *ns)
{
	const char *const point = memchr(s.at, '.', s.len);
	const size_t whole = point ? (size_t)(point - s.at) : s.len;
	uint64_t seconds, fraction = 0, unit = NS_PER_S;
	int err;

	err = span_number((struct span){ s.at, whole }, &seconds);
	if (err)
		return err;
	if (point && whole + 1 == s.len)
		return -EINVAL;
	for (size_t i = whole + 1; i < s.len; i++) {
		if (!is_digit(s.at[i]))
			return -EINVAL;
		unit /= 10;
		fraction += unit * (uint64_t)(s.at[i] - '0');
	}
	if (__builtin_mul_overflow(seconds, NS_PER_S, &seconds) ||
	    __builtin_add_overflow(seconds, fraction, ns))
		return -ERANGE;
	return 0;
}
