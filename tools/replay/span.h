/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Pieces of a line of text that is not ours: cut, compared and read as numbers
 * without a NUL at the end, without the locale, and without floating point, in
 * which times since 1601 lose their last digits.
 */
#ifndef TOOLS_REPLAY_SPAN_H
#define TOOLS_REPLAY_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"

struct span {
	const char *at;
	size_t len;
};

/* Without blanks and tabs (and a CR at the end) on both sides. */
struct span span_trim(struct span s);

/* Equal to @word: exactly, or but for the case of ASCII letters. */
bool span_is(struct span s, const char *word);
bool span_is_nocase(struct span s, const char *word);
bool span_begins(struct span s, const char *prefix);

/*
 * Cut @s at each @separator into at most @max fields, trimmed; the last takes
 * the rest.  Returns how many there are, 1 or more.
 */
size_t span_fields(struct span s, char separator, struct span *field,
		   size_t max);

/* The same at runs of blanks and tabs; none at the ends.  May return 0. */
size_t span_words(struct span s, struct span *word, size_t max);

/* Decimal digits and nothing else.  Returns 0, -EINVAL or -ERANGE. */
must_check int span_number(struct span s, uint64_t *number);

/*
 * Decimal seconds, "17", "17.25", as nanoseconds; digits after the ninth are
 * dropped.  Returns 0, -EINVAL or -ERANGE.
 */
must_check int span_seconds(struct span s, uint64_t *ns);

#endif
