/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How much work a guess at a password shall be: --kdf-time and --kdf-memory.
 */
#ifndef TOOLS_COST_H
#define TOOLS_COST_H

#include "cipher/kdf.h"
#include "tools/command.h"

/* Zero-filled: the defaults. */
struct cost_choice {
	struct option_number time;   /* milliseconds */
	struct option_number memory; /* bytes */
};

/* Rows of an option table for the struct cost_choice at @offset. */
/* clang-format off */
#define COST_OPTIONS(offset)                                                   \
	{ "kdf-time", 0, "SECONDS",                                            \
	  (offset) + offsetof(struct cost_choice, time), option_seconds,       \
	  "Time that trying one password shall take on this machine, up to "   \
	  "60 (default 1)." },                                                 \
	{ "kdf-memory", 0, "SIZE",                                             \
	  (offset) + offsetof(struct cost_choice, memory), option_size,        \
	  "Memory that it shall take, 8M to 4G (default: as much as the time " \
	  "allows, up to 1G or a quarter of the RAM)." }
/* clang-format on */

/*
 * Refuse what is out of bounds, before anything is asked or opened.  Returns
 * TOOL_DONE, or TOOL_USAGE after a message.
 */
must_check enum tool_exit cost_check(const struct cost_choice *choice);

/*
 * Measure this machine and set *cost.  Memory that was asked for is taken
 * exactly, however long it takes.  Returns TOOL_DONE, or another code after
 * a message about @what.  Takes about twice the time of one password.
 */
must_check enum tool_exit cost_measure(const struct cost_choice *choice,
				       const char *what, struct kdf_cost *cost);

/*
 * Warn if what was chosen is weaker than the defaults are anywhere.  At the
 * end of a command, so that a failure is told in one line.
 */
void cost_warn(const struct cost_choice *choice, const char *what);

#endif
