/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One run of a plan in a folder, in three steps:
 *
 *	run_prepare()	makes and fills the files
 *	run_start()	replays the trace on them and writes all out
 *	run_end()	removes them
 *
 * Between the first two the file system may be unmounted and mounted again.
 */
#ifndef TOOLS_REPLAY_RUN_H
#define TOOLS_REPLAY_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/command.h"
#include "tools/replay/engine.h"
#include "tools/replay/folder.h"
#include "tools/replay/options.h"
#include "tools/replay/plan.h"
#include "tools/replay/schedule.h"

struct run_speed {
	bool given, max;
	uint64_t milli; /* 1000: as recorded */
};

struct run_options {
	struct plan_options plan;
	struct run_speed speed;	   /* default: max */
	struct option_number rate; /* operations a second */
	struct option_number depth;
	struct option_number ramp, runtime, max_idle; /* milliseconds */
	struct option_number loops;
	struct option_number seed;
	bool no_fill, keep_going, verify;
};

/* Of all the fields above; @at: where the struct is. */
#define RUN_OPTION(at, field) ((at) + offsetof(struct run_options, field))

enum tool_exit option_fit(void *field, const struct tool_option *o,
			  const char *value); /* enum fit_policy */
enum tool_exit option_fit_size(void *field, const struct tool_option *o,
			       const char *value); /* struct option_number */
enum tool_exit option_speed(void *field, const struct tool_option *o,
			    const char *value); /* struct run_speed */
enum tool_exit option_depth(void *field, const struct tool_option *o,
			    const char *value); /* struct option_number */

/* Rows of `replay` and `compare`. */
/* clang-format off */
#define RUN_OPTIONS(at)                                                        \
	{ "speed", 0, "X|max", RUN_OPTION(at, speed),                          \
	  option_speed,                                                        \
	  "How fast: max (the default), as fast as possible; 1, as "           \
	  "recorded; 2, twice as fast; 0.5, half as fast." },                  \
	{ "rate", 0, "N", RUN_OPTION(at, rate),                                \
	  option_count,                                                        \
	  "N operations a second, evenly, whatever was recorded." },           \
	{ "depth", 0, "N", RUN_OPTION(at, depth),                              \
	  option_depth,                                                        \
	  "How many operations may be in flight: threads, 1 to 256 "           \
	  "(default: 1 for --speed max, else 32)." },                          \
	{ "fit", 0, "POLICY", RUN_OPTION(at, plan.fit),                        \
	  option_fit,                                                          \
	  "Where offsets go; see below." },                                    \
	{ "size", 0, "BYTES", RUN_OPTION(at, plan.size),                       \
	  option_fit_size,                                                     \
	  "Largest file for --fit wrap, scale, skip and strict, 1M "           \
	  "or more (default: 1G)." },                                          \
	{ "direct", 0, NULL, RUN_OPTION(at, plan.direct),                      \
	  option_flag,                                                         \
	  "Past the page cache (O_DIRECT); operations are rounded "            \
	  "out to whole blocks of 4096 bytes." },                              \
	{ "no-fill", 0, NULL, RUN_OPTION(at, no_fill),                         \
	  option_flag,                                                         \
	  "Leave out what is done before the start: writing random "           \
	  "bytes to all that the trace reads or writes.  Reads of "            \
	  "what was never written are then holes, which cost "                 \
	  "nothing." },                                                        \
	{ "ramp", 0, "TIME", RUN_OPTION(at, ramp),                             \
	  option_seconds,                                                      \
	  "Don't count what begins in the first seconds." },                   \
	{ "runtime", 0, "TIME", RUN_OPTION(at, runtime),                       \
	  option_seconds,                                                      \
	  "End after so many seconds (behind the ramp)." },                    \
	{ "loops", 0, "N", RUN_OPTION(at, loops),                              \
	  option_count,                                                        \
	  "Replay the trace N times, one after another." },                    \
	{ "max-idle", 0, "TIME", RUN_OPTION(at, max_idle),                     \
	  option_seconds,                                                      \
	  "Cut longer gaps of the trace to this, with --speed X." },           \
	{ "keep-going", 0, NULL, RUN_OPTION(at, keep_going),                   \
	  option_flag,                                                         \
	  "Go on after an error of an operation; they are counted." },         \
	{ "seed", 0, "N", RUN_OPTION(at, seed),                                \
	  option_count,                                                        \
	  "Of the random bytes that are written (default: 1)." },              \
	{ "strict", 0, NULL, RUN_OPTION(at, plan.strict),                      \
	  option_flag,                                                         \
	  "End at the first line that is no valid record, with "               \
	  "status 1." },                                                       \
	READER_OPTIONS(RUN_OPTION(at, plan.reader))
/* clang-format on */

/* The policies, for --help. */
void run_help(FILE *out);

/* Of several engines' results, or one; read only. */
struct run_result {
	struct engine_result engine;
	struct rate_summary rate;
	uint64_t sync_ns;  /* of the fsync at the end; in rate and average */
	uint64_t whole_ns; /* elapsed_ns + sync_ns */
	uint64_t user_ns, system_ns; /* this process's CPU time */
	int sync_error;
	bool synced;
	bool checked; /* --verify: the files were read again in the end */
	uint64_t nr_wrong;
	uint32_t wrong_target; /* of the first */
	uint64_t wrong_offset;
	/* From the source. */
	uint64_t bad_lines, zero_length, skipped, split, cut, rounded;
	uint64_t clamped, idle_cut, loops;
};

struct run {
	/* Set by the user; they live on. */
	struct plan *plan;
	const struct run_options *options;
	const atomic_bool *interrupt;

	struct folder folder;
	bool timed;
	unsigned int depth;
	bool show_progress;
	const char *label; /* in front of progress; NULL: none */
	uint64_t shown_percent;
	struct run_result result;
};

/* What the options ask for that can't be: before any work. */
enum tool_exit run_check(const struct plan *p, const struct run_options *o);

/* All: TOOL_DONE, or an exit code after a message. */
enum tool_exit run_prepare(struct run *r, const char *dir);
enum tool_exit run_start(struct run *r);
enum tool_exit run_end(struct run *r, enum folder_end end);

/* Reads and writes together. */
uint64_t run_operations(const struct run_result *r);
uint64_t run_bytes(const struct run_result *r);
/* Into @out, which is large. */
void run_both(const struct run_result *r, struct engine_kind *out);

/* SIGINT, SIGTERM and SIGHUP set the flag that comes back; call it once. */
const atomic_bool *run_catch_signals(void);

#endif
