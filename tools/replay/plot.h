/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The picture of a comparison, drawn by gnuplot if it is installed.
 */
#ifndef TOOLS_REPLAY_PLOT_H
#define TOOLS_REPLAY_PLOT_H

#include "tools/replay/contest.h"
#include "tools/replay/machine.h"
#include "tools/tool.h"

/*
 * Write an SVG of average MB/s by row to @path.  TOOL_DONE, or TOOL_FAILED
 * after a message, which says so if gnuplot is missing.
 */
enum tool_exit plot_write(const struct contest *c, const struct machine *m,
			  const char *path);

#endif
