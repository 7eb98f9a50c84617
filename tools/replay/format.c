/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * printf()'s %f has the locale's decimal point, which programs that read a
 * report don't expect.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/replay/format.h"

#define NS_PER_S UINT64_C(1000000000)

/* Three digits of @n / @unit, rounded to nearest. */
static void three_digits(uint64_t n, uint64_t unit, const char *name,
			 char out[static FORMAT_BYTES])
{
	const uint64_t hundredths =
		(uint64_t)(((unsigned __int128)n * 100 + unit / 2) / unit);

	if (hundredths < 1000)
		snprintf(out, FORMAT_BYTES, "%" PRIu64 ".%02" PRIu64 " %s",
			 hundredths / 100, hundredths % 100, name);
	else if (hundredths < 10000)
		snprintf(out, FORMAT_BYTES, "%" PRIu64 ".%" PRIu64 " %s",
			 hundredths / 100, hundredths % 100 / 10, name);
	else
		snprintf(out, FORMAT_BYTES, "%" PRIu64 " %s", hundredths / 100,
			 name);
}

void format_ns(uint64_t ns, char out[static FORMAT_BYTES])
{
	static const struct {
		uint64_t unit;
		const char *name;
	} units[] = { { NS_PER_S, "s" }, { 1000000, "ms" }, { 1000, "us" } };

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (ns >= units[i].unit) {
			three_digits(ns, units[i].unit, units[i].name, out);
			return;
		}
	}
	snprintf(out, FORMAT_BYTES, "%" PRIu64 " ns", ns);
}

void format_mb(uint64_t bytes, char out[static FORMAT_BYTES])
{
	const uint64_t tenths = bytes / 100000 + (bytes % 100000 >= 50000);

	snprintf(out, FORMAT_BYTES, "%" PRIu64 ".%" PRIu64, tenths / 10,
		 tenths % 10);
}

void format_milli(int64_t milli, char out[static FORMAT_BYTES])
{
	const uint64_t size = milli < 0 ? -(uint64_t)milli : (uint64_t)milli;
	const uint64_t tenths = (size + 50) / 100;

	snprintf(out, FORMAT_BYTES, "%s%" PRIu64 ".%" PRIu64,
		 milli < 0 && tenths ? "-" : "", tenths / 10, tenths % 10);
}

uint64_t format_rate(uint64_t bytes, uint64_t ns)
{
	const unsigned __int128 r =
		ns ? (unsigned __int128)bytes * NS_PER_S / ns : 0;

	return r > UINT64_MAX ? UINT64_MAX : (uint64_t)r;
}
