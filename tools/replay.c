/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk replay: a trace on any folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/commands.h"
#include "tools/json.h"
#include "tools/replay/format.h"
#include "tools/replay/report.h"
#include "tools/replay/run.h"

#define NS_PER_S UINT64_C(1000000000)
#define LONG_S (UINT64_C(6) * 3600)

struct replay {
	struct run_options options;
	const char *json;
	bool keep;

	const char *dir;
	struct plan plan;
	struct run run;
};

static enum tool_exit check_dir(const char *dir)
{
	struct stat st;

	if (stat(dir, &st))
		return tool_fail(TOOL_FAILED, dir, "%s",
				 strerrordesc_np(errno));
	if (!S_ISDIR(st.st_mode))
		return tool_fail(TOOL_USAGE, dir,
				 "is not a folder; the last argument is the "
				 "folder to replay in");
	return TOOL_DONE;
}

/*
 * How long it will take, before it does: a wrong unit shows here.  Only a
 * message, and only where the times count.
 */
static void say_length(const struct replay *s)
{
	const struct trace_totals *t = &s->plan.totals;
	const struct run_options *o = &s->options;
	char text[FORMAT_BYTES];
	uint64_t span = t->last_ns - t->first_ns;

	if (!o->speed.given || o->speed.max)
		return;
	span = (uint64_t)((unsigned __int128)span * 1000 / o->speed.milli);
	format_ns(span, text);
	tool_note(s->plan.trace.file[0].path,
		  "%" PRIu64 " records in %s at this speed%s", t->records, text,
		  o->max_idle.given ? ", before long gaps are cut" : "");
	if (span / NS_PER_S > LONG_S && !o->runtime.given && !o->max_idle.given)
		tool_warn(NULL,
			  "that is long; --speed, --max-idle and --runtime "
			  "shorten it");
}

static enum tool_exit report(const struct replay *s)
{
	enum tool_exit code = TOOL_DONE;

	if (!s->json || strcmp(s->json, "-") != 0)
		report_text(stdout, &s->run, s->dir);
	if (s->json)
		code = report_write_json(report_json(&s->run, s->dir), s->json);
	code = tool_finish_output(code);
	return code == TOOL_DONE ? report_exit(&s->run.result) : code;
}

static enum tool_exit run_in(struct replay *s)
{
	enum tool_exit code, end;

	s->run = (struct run){
		.plan = &s->plan,
		.options = &s->options,
		.interrupt = run_catch_signals(),
		.show_progress = isatty(STDERR_FILENO),
		.folder.fd = -1,
	};
	say_length(s);
	code = run_prepare(&s->run, s->dir);
	if (code == TOOL_DONE) {
		code = run_start(&s->run);
		if (code == TOOL_DONE)
			code = report(s);
	}
	if (s->keep && s->run.folder.path)
		tool_note(s->run.folder.path, "kept");
	end = run_end(&s->run, s->keep ? FOLDER_KEEP : FOLDER_REMOVE);
	return code == TOOL_DONE ? end : code;
}

static enum tool_exit replay_run(void *state, char **args)
{
	struct replay *s = state;
	enum tool_exit code;
	size_t nr = 0;

	while (args[nr + 1])
		nr++;
	s->dir = args[nr];
	code = check_dir(s->dir);
	if (code == TOOL_DONE)
		code = plan_make(&s->plan, args, nr, &s->options.plan);
	if (code == TOOL_DONE)
		code = run_check(&s->plan, &s->options);
	if (code == TOOL_DONE)
		code = run_in(s);
	plan_destroy(&s->plan);
	return code;
}

static const struct tool_option replay_options[] = {
	RUN_OPTIONS(offsetof(struct replay, options)),
	{ "verify", 0, NULL, offsetof(struct replay, options.verify),
	  option_flag,
	  "Check what is read, and all that was touched once more in the end. "
	  " It costs time of the processor.  Where the trace has trims, zeros "
	  "pass; an older version of the same bytes can't be told." },
	{ "json", 0, "FILE", offsetof(struct replay, json), option_string,
	  "Write the report as JSON too; '-': to standard output, in place of "
	  "the text." },
	{ "keep", 0, NULL, offsetof(struct replay, keep), option_flag,
	  "Leave the files that were worked on." },
	{ 0 },
};

static const char *const replay_text[] = {
	"Replay a trace: do what it recorded again, on files in a new folder "
	"in DIR, one for each of its devices or files.  DIR may be on any "
	"file system.  Nothing else is read or written, and the folder is "
	"removed in the end.",
	"Before the clock starts the files get their size, all that the trace "
	"touches is filled with random bytes, and the page cache lets go of "
	"them.  The clock stops when all that was written is on the disk "
	"(fsync).",
	"MB are 10^6 bytes.  min and max are the slowest and the fastest of "
	"the windows of equal length that the run is cut into (1 s; shorter "
	"if there are not ten of them); burst is the best window of a tenth "
	"of that.  Service time is from the begin of an operation to its end; "
	"response time, with --speed X or --rate, from when it was due. "
	" Ctrl-C ends with a report of what was done, status 130.",
	NULL,
};

static const char *const replay_examples[] = {
	"tusk replay mail.csv.gz ~/Private",
	"tusk replay --speed 1 --max-idle 1 trace.blkparse /mnt/disk",
	"tusk replay --depth 8 --runtime 60 --loops 100 job.iolog .",
	NULL,
};

const struct tool_command replay_command = {
	.name = "replay",
	.args = "TRACE... DIR",
	.min_args = 2,
	.max_args = TRACE_FILES_MAX,
	.summary = "do what a trace recorded, on files in a folder",
	.text = replay_text,
	.examples = replay_examples,
	.options = replay_options,
	.more_help = run_help,
	.state_bytes = sizeof(struct replay),
	.run = replay_run,
};
