/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a replay needs to know of a trace before it starts, from reading it
 * once (for some --fit policies twice): its totals, how large each file must
 * be, and which blocks have to be there.  A plan serves many runs.
 */
#ifndef TOOLS_REPLAY_PLAN_H
#define TOOLS_REPLAY_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/command.h"
#include "tools/replay/bad_lines.h"
#include "tools/replay/fit.h"
#include "tools/replay/totals.h"
#include "tools/replay/touched.h"
#include "tools/replay/trace.h"

struct plan_options {
	struct reader_options reader;
	enum fit_policy fit;
	struct option_number size; /* FIT_SIZE_DEFAULT */
	bool strict;
	bool direct;
};

struct plan {
	struct trace trace;
	struct trace_totals totals;
	struct bad_lines bad;
	struct fit fit;
	uint32_t nr_files;
	uint64_t *end;		 /* by target: where the trace ends */
	uint64_t *size;		 /* by target: of the file */
	struct touched *raw;	 /* blocks of the trace; sealed */
	struct touched *touched; /* blocks of the files; sealed */
	char format[TRACE_FORMAT_BYTES];
	enum reader_times times;
};

/*
 * Read the @nr files at @paths.  TOOL_DONE, or an exit code after a message;
 * *@p is to be destroyed in either case.
 */
enum tool_exit plan_make(struct plan *p, char *const *paths, size_t nr,
			 const struct plan_options *o);
void plan_destroy(struct plan *p);

/* Bytes that its files need where they are filled. */
uint64_t plan_bytes(const struct plan *p);

/* TOOL_NO_SPACE after a message if @dir has less than that and a reserve. */
enum tool_exit plan_check_space(const struct plan *p, const char *dir);

#endif
