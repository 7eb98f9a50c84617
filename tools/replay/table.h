/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a comparison came to: text for a terminal, JSON and CSV for programs.
 * REPLAY.md says how it is read.
 */
#ifndef TOOLS_REPLAY_TABLE_H
#define TOOLS_REPLAY_TABLE_H

#include <json-c/json.h>
#include <stdio.h>

#include "tools/replay/contest.h"
#include "tools/replay/machine.h"

#define TABLE_JSON_VERSION 1

/* @columns_wide: of a line; what does not fit goes into a second table. */
void table_text(FILE *out, const struct contest *c, const struct machine *m,
		unsigned int columns_wide);

/* To be put by the caller. */
struct json_object *table_json(const struct contest *c,
			       const struct machine *m);

/* A header and a line for each run.  0 or negative errno. */
must_check int table_csv(FILE *out, const struct contest *c);

/* How the caches were emptied, for people; static. */
const char *table_cache_text(const struct contest *c);

#endif
