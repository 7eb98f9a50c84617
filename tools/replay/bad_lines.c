/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One place for the wording, which tests look for.
 */
#include <inttypes.h>

#include "tools/replay/bad_lines.h"

enum tool_exit bad_lines_take(struct bad_lines *b, const struct trace *t)
{
	b->nr++;
	if (b->strict)
		return tool_fail(TOOL_FAILED, t->bad_path,
				 "line %" PRIu64 " %s; --strict ends here",
				 t->bad_line, t->bad_reason);
	if (b->nr <= BAD_LINES_SHOWN)
		tool_warn(t->bad_path, "line %" PRIu64 " %s; skipped",
			  t->bad_line, t->bad_reason);
	return TOOL_DONE;
}

void bad_lines_end(const struct bad_lines *b)
{
	if (b->nr > BAD_LINES_SHOWN)
		tool_warn(NULL, "%" PRIu64 " more bad lines were skipped",
			  b->nr - BAD_LINES_SHOWN);
}

enum tool_exit trace_say_failure(const struct trace *t)
{
	return tool_fail(TOOL_FAILED, t->bad_path, "%s", t->bad_reason);
}
