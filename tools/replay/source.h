/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a trace to the engine's operations: put in order, given a due time,
 * moved to where they fit, and all of it again for each loop.
 */
#ifndef TOOLS_REPLAY_SOURCE_H
#define TOOLS_REPLAY_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/replay/engine.h"
#include "tools/replay/fit.h"
#include "tools/replay/order.h"
#include "tools/replay/schedule.h"
#include "tools/replay/trace.h"

struct source {
	/* Set by the user, the rest zero; all live on. */
	struct trace *trace; /* at its start */
	const struct fit *fit;
	struct schedule schedule;
	uint64_t loops; /* how often in all; 1 or more */

	/* What was done, for the report. */
	uint64_t loop; /* whole ones that ended */
	uint64_t zero_length, skipped, split, cut, rounded;

	bool drained; /* the trace has no more */
	struct order order;
};

/* As engine_source.next: 1, 0, or -EIO after a message. */
must_check int source_next(void *source, struct engine_io *io);

#endif
