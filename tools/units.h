/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Numbers as people write them, read the same way in every locale.
 */
#ifndef TOOLS_UNITS_H
#define TOOLS_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"

/*
 * Digits, then nothing or one of K M G T (either case; powers of 1024; "iB" or
 * "B" may follow).  Returns 0, -EINVAL (not a size; also sign, blanks and
 * fractions) or -ERANGE (above 2^63 - 1).
 */
must_check int units_parse_size(const char *text, uint64_t *bytes);

/*
 * Decimal seconds, "0.05", "1", "2.5", with at most nine digits after the
 * point; then nothing or one of s, m, h.  Returns 0, -EINVAL or -ERANGE (above
 * ten years).  Rounded up to whole milliseconds, so that no positive time
 * becomes 0.
 */
must_check int units_parse_seconds(const char *text, uint64_t *milliseconds);

/* Decimal digits only.  Returns 0, -EINVAL, or -ERANGE above @max. */
must_check int units_parse_number(const char *text, uint64_t max,
				  uint64_t *number);

#define UNITS_TEXT_BYTES 48

/* "1.5 GiB", "512 B": for people; at most one digit after the point. */
void units_format_size(uint64_t bytes, char out[static UNITS_TEXT_BYTES]);

#endif
