/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Setters, in the manner of command.c.
 */
#include <stdint.h>
#include <string.h>

#include "tools/replay/options.h"
#include "tools/units.h"

enum tool_exit option_format(void *field, const struct tool_option *o,
			     const char *value)
{
	const struct reader_format *found = reader_format_by_name(value);
	char names[256] = "";
	size_t len = 0;

	if (found) {
		*(const struct reader_format **)field = found;
		return TOOL_DONE;
	}
	for (size_t i = 0; reader_format_at(i) && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len,
					"%s%s", i ? ", " : "",
					reader_format_at(i)->name);
	return tool_fail(TOOL_USAGE, NULL, "--%s: '%s' is not one of %s",
			 o->name, value, names);
}

enum tool_exit option_event(void *field, const struct tool_option *o,
			    const char *value)
{
	if (strlen(value) != 1 || !strchr("QDC", *value))
		return tool_fail(TOOL_USAGE, NULL,
				 "--%s: '%s' is not one of Q, D, C", o->name,
				 value);
	*(char *)field = *value;
	return TOOL_DONE;
}

enum tool_exit option_count(void *field, const struct tool_option *o,
			    const char *value)
{
	struct option_number *n = field;
	uint64_t count;

	if (units_parse_number(value, UINT32_MAX, &count) || !count)
		return tool_fail(TOOL_USAGE, NULL,
				 "--%s: '%s' is not a whole number above 0",
				 o->name, value);
	*n = (struct option_number){ true, count };
	return TOOL_DONE;
}

void reader_help(FILE *out)
{
	fputs("\nFormats:\n", out);
	for (size_t i = 0; reader_format_at(i); i++)
		fprintf(out, "  %-10s %s\n", reader_format_at(i)->name,
			reader_format_at(i)->summary);
}
