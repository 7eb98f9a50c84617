/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sizes and times, without the C library's number parsers: strtod() obeys the
 * locale's decimal point, and the strto* family accepts blanks, signs and, in
 * its unsigned forms, wraps negative numbers silently.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/units.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Read digits at *@text, at least one, and move on behind them.  Returns 0,
 * -EINVAL or -ERANGE above @max.
 */
static int parse_digits(const char **text, uint64_t max, uint64_t *number)
{
	const char *p = *text;
	uint64_t n = 0;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++) {
		const unsigned int digit = *p - '0';

		if (digit > max || n > (max - digit) / 10)
			return -ERANGE;
		n = n * 10 + digit;
	}
	*text = p;
	*number = n;
	return 0;
}

int units_parse_number(const char *text, uint64_t max, uint64_t *number)
{
	int err = parse_digits(&text, max, number);

	return err ? err : *text ? -EINVAL : 0;
}

/* Powers of 1024, in order. */
static const char size_letters[] = "KMGT";

int units_parse_size(const char *text, uint64_t *bytes)
{
	const char *letter;
	unsigned int shift = 0;
	uint64_t n;
	int err;

	err = parse_digits(&text, INT64_MAX, &n);
	if (err)
		return err;

	if (*text) {
		/* By hand: toupper('i') is not 'I' in Turkish. */
		const char upper = *text & ~0x20;

		letter = strchr(size_letters, upper);
		if (!letter || !upper)
			return -EINVAL;
		shift = 10 * (letter - size_letters + 1);
		text++;
		if (*text && strcmp(text, "B") != 0 && strcmp(text, "iB") != 0)
			return -EINVAL;
	}
	if (n > (uint64_t)INT64_MAX >> shift)
		return -ERANGE;
	*bytes = n << shift;
	return 0;
}

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define SECONDS_MAX (UINT64_C(10) * 366 * 86400)

/* ".05" -> 50000000; no point is no fraction. */
static int parse_fraction(const char **text, uint64_t *ns)
{
	uint64_t unit = NS_PER_S;

	*ns = 0;
	if (**text != '.')
		return 0;
	(*text)++;
	if (!is_digit(**text))
		return -EINVAL;
	for (; is_digit(**text); (*text)++) {
		unit /= 10;
		if (!unit)
			return -EINVAL;
		*ns += unit * (**text - '0');
	}
	return 0;
}

static const struct {
	const char *suffix;
	unsigned int seconds;
} time_units[] = {
	{ "", 1 },
	{ "s", 1 },
	{ "m", 60 },
	{ "h", 3600 },
};

int units_parse_seconds(const char *text, uint64_t *milliseconds)
{
	uint64_t seconds, ns;
	int err;

	err = parse_digits(&text, SECONDS_MAX, &seconds);
	if (!err)
		err = parse_fraction(&text, &ns);
	if (err)
		return err;

	for (size_t i = 0; i < sizeof(time_units) / sizeof(*time_units); i++) {
		const unsigned int factor = time_units[i].seconds;

		if (strcmp(text, time_units[i].suffix) != 0)
			continue;
		if (seconds > SECONDS_MAX / factor)
			return -ERANGE;
		*milliseconds = seconds * factor * 1000 +
				(ns * factor + NS_PER_MS - 1) / NS_PER_MS;
		return 0;
	}
	return -EINVAL;
}

void units_format_size(uint64_t bytes, char out[static UNITS_TEXT_BYTES])
{
	static const char *const names[] = { "B",   "KiB", "MiB", "GiB",
					     "TiB", "PiB", "EiB" };
	uint64_t tenths = 0;
	size_t unit = 0;

	while (bytes >= 1024) {
		tenths = bytes % 1024 * 10 / 1024;
		bytes /= 1024;
		unit++;
	}
	if (tenths)
		snprintf(out, UNITS_TEXT_BYTES, "%llu.%llu %s",
			 (unsigned long long)bytes, (unsigned long long)tenths,
			 names[unit]);
	else
		snprintf(out, UNITS_TEXT_BYTES, "%llu %s",
			 (unsigned long long)bytes, names[unit]);
}
