/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A label is whatever bytes its user once gave; what we render it into has to
 * be UTF-8, or no JSON parser takes it, and must not steer a terminal.
 */
#ifndef STATS_UTF8_H
#define STATS_UTF8_H

#include <stddef.h>

/*
 * Length in bytes, 1 to 4, of the character that the NUL-terminated @s begins
 * with; 0 if that is not valid UTF-8 (an overlong form, a surrogate, a stray
 * or missing byte, beyond U+10FFFF).
 */
size_t utf8_length(const char *s);

/*
 * Copy @from to @to, cut after @max_chars characters and wherever @size bytes
 * with their NUL are full, never within a character.  Each invalid byte and
 * each control character (C0, DEL, C1) becomes a question mark.  NULL counts
 * as "".  Returns @to.
 */
char *utf8_clean(char *to, size_t size, size_t max_chars, const char *from);

#endif
