/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What commands do about lines that are no valid record: the first few are
 * shown with their number and the reason, all are counted, and --strict ends
 * at the first.
 */
#ifndef TOOLS_REPLAY_BAD_LINES_H
#define TOOLS_REPLAY_BAD_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/replay/trace.h"
#include "tools/tool.h"

#define BAD_LINES_SHOWN 5

struct bad_lines {
	bool strict;
	uint64_t nr;
};

/* trace_next() gave READER_BAD: TOOL_DONE, or how to end. */
enum tool_exit bad_lines_take(struct bad_lines *b, const struct trace *t);

/* After the last: how many were not shown. */
void bad_lines_end(const struct bad_lines *b);

/* trace_open(), trace_rewind() or trace_next() failed; returns how to end. */
enum tool_exit trace_say_failure(const struct trace *t);

#endif
