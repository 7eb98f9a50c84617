/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Options that `trace info`, `replay` and `compare` have in common.
 */
#ifndef TOOLS_REPLAY_OPTIONS_H
#define TOOLS_REPLAY_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "tools/command.h"
#include "tools/replay/reader.h"

enum tool_exit
option_format(void *field, const struct tool_option *o,
	      const char *value); /* const struct reader_format * */
enum tool_exit option_event(void *field, const struct tool_option *o,
			    const char *value); /* char */
/* struct option_number: a whole number from 1 to 2^32 - 1 */
enum tool_exit option_count(void *field, const struct tool_option *o,
			    const char *value);

/* Rows for a struct reader_options at @at. */
#define READER_OPTIONS(at)                                                     \
	{ "format",                                                            \
	  0,                                                                   \
	  "F",                                                                 \
	  (at) + offsetof(struct reader_options, format),                      \
	  option_format,                                                       \
	  "What the trace is, where its first lines don't tell; see below." }, \
	{                                                                      \
		"event", 0, "Q|D|C",                                           \
			(at) + offsetof(struct reader_options, event),         \
			option_event,                                          \
			"Which events of a block trace count, each I/O once: " \
			"queued (what was asked for, and the default where "   \
			"there are any), issued to the driver (after merging " \
			"and splitting), or completed."                        \
	}

/* The formats, for --help. */
void reader_help(FILE *out);

#endif
