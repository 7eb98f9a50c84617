/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The clock of a run stops when its data is on the disk: until then a write
 * has only moved bytes to memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/replay/options.h"
#include "tools/replay/run.h"
#include "tools/replay/source.h"
#include "tools/units.h"

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define DEPTH_TIMED 32
#define SPEED_MAX 1000000 /* times */

/* ---- options ---- */

enum tool_exit option_fit(void *field, const struct tool_option *o,
			  const char *value)
{
	char words[128] = "";
	size_t len = 0;

	for (int i = 0; i < FIT_POLICY_NR; i++) {
		if (strcmp(fit_word(i), value) == 0) {
			*(enum fit_policy *)field = i;
			return TOOL_DONE;
		}
		len += (size_t)snprintf(words + len, sizeof(words) - len,
					"%s%s", i ? ", " : "", fit_word(i));
	}
	return tool_fail(TOOL_USAGE, NULL, "--%s: '%s' is not one of %s",
			 o->name, value, words);
}

enum tool_exit option_fit_size(void *field, const struct tool_option *o,
			       const char *value)
{
	const struct option_number *n = field;
	const enum tool_exit code = option_size(field, o, value);

	if (code == TOOL_DONE && n->value < FIT_SIZE_MIN)
		return tool_fail(TOOL_USAGE, NULL, "--%s: '%s' is under 1M",
				 o->name, value);
	return code;
}

enum tool_exit option_speed(void *field, const struct tool_option *o,
			    const char *value)
{
	struct run_speed *s = field;
	uint64_t milli;

	*s = (struct run_speed){ .given = true };
	if (strcmp(value, "max") == 0) {
		s->max = true;
		return TOOL_DONE;
	}
	/* A factor is written like seconds, and has as many digits. */
	if (strpbrk(value, "smh") || units_parse_seconds(value, &milli) ||
	    !milli || milli > SPEED_MAX * UINT64_C(1000))
		return tool_fail(TOOL_USAGE, NULL,
				 "--%s: '%s' is neither 'max' nor a factor "
				 "like 1, 2 or 0.5",
				 o->name, value);
	s->milli = milli;
	return TOOL_DONE;
}

enum tool_exit option_depth(void *field, const struct tool_option *o,
			    const char *value)
{
	const struct option_number *n = field;
	const enum tool_exit code = option_count(field, o, value);

	if (code == TOOL_DONE && n->value > ENGINE_DEPTH_MAX)
		return tool_fail(TOOL_USAGE, NULL, "--%s: at most %d", o->name,
				 ENGINE_DEPTH_MAX);
	return code;
}

void run_help(FILE *out)
{
	fputs("\nPolicies of --fit:\n", out);
#define X(name, word, text)             \
	fprintf(out, "  %-10s ", word); \
	command_wrap(out, text, 13, 13);
	FIT_POLICIES(X)
#undef X
	reader_help(out);
}

/* ---- signals ---- */

static atomic_bool interrupted;

static void on_signal(int sig)
{
	atomic_store(&interrupted, true);
}

const atomic_bool *run_catch_signals(void)
{
	/* The second one ends the process, should an operation hang. */
	const struct sigaction action = { .sa_handler = on_signal,
					  .sa_flags = SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	return &interrupted;
}

/* ---- progress ---- */

static uint64_t percent(uint64_t part, uint64_t whole)
{
	if (part >= whole)
		return 100;
	return (uint64_t)((unsigned __int128)part * 100 / whole);
}

/* One line that is written over; cleared by progress_end(). */
static void show(const struct run *r, const char *what, uint64_t part,
		 uint64_t whole, uint64_t elapsed_ns)
{
	const uint64_t left =
		part && part < whole
			? (uint64_t)((unsigned __int128)elapsed_ns *
				     (whole - part) / part / NS_PER_S)
			: 0;

	fprintf(stderr, "\r%s%s%s %3" PRIu64 " %%", r->label ? r->label : "",
		r->label ? ": " : "", what, percent(part, whole));
	if (elapsed_ns)
		fprintf(stderr, ", %" PRIu64 " s, about %" PRIu64 " s left",
			elapsed_ns / NS_PER_S, left);
	fputs("\033[K", stderr);
}

static void progress_end(const struct run *r)
{
	if (r->show_progress)
		fputs("\r\033[K", stderr);
}

static void show_fill(void *arg, uint64_t blocks)
{
	struct run *r = arg;
	const uint64_t now = percent(blocks, touched_blocks(r->plan->touched));

	/* It comes with every run of blocks: only what changes is shown. */
	if (now != r->shown_percent)
		show(r, "filling", blocks, touched_blocks(r->plan->touched), 0);
	r->shown_percent = now;
}

static uint64_t nr_loops(const struct run_options *o)
{
	return o->loops.given ? o->loops.value : 1;
}

static void show_replay(void *arg, uint64_t done, uint64_t elapsed_ns)
{
	const struct run *r = arg;
	const uint64_t runtime = r->options->runtime.value * NS_PER_MS;
	const uint64_t all = r->plan->totals.records * nr_loops(r->options);

	if (runtime && percent(elapsed_ns, runtime) > percent(done, all))
		show(r, "replaying", elapsed_ns, runtime, elapsed_ns);
	else
		show(r, "replaying", done, all, elapsed_ns);
}

/* ---- the steps ---- */

enum tool_exit run_check(const struct plan *p, const struct run_options *o)
{
	const bool timed = o->speed.given && !o->speed.max;

	if (timed && o->rate.given)
		return tool_fail(TOOL_USAGE, NULL,
				 "--speed and --rate exclude each other");
	if (timed && p->times == READER_NO_TIMES)
		return tool_fail(TOOL_USAGE, p->trace.file[0].path,
				 "the trace has no times; use --speed max or "
				 "--rate");
	if (o->verify && o->no_fill)
		return tool_fail(TOOL_USAGE, NULL,
				 "--verify and --no-fill exclude each other: "
				 "holes can't be checked");
	if (o->max_idle.given && !timed)
		return tool_fail(TOOL_USAGE, NULL,
				 "--max-idle is for --speed with a factor");
	return TOOL_DONE;
}

static enum tool_exit fail_make(const char *dir, int err)
{
	switch (err) {
	case -EFBIG:
		return tool_fail(TOOL_FAILED, dir,
				 "its file system has no files as large as the "
				 "trace needs; use --fit compact, wrap or "
				 "scale");
	case -EMFILE:
		return tool_fail(TOOL_FAILED, NULL,
				 "the trace has more targets than files may be "
				 "open; raise 'ulimit -n'");
	case -ENOSPC:
		return tool_fail_errno(TOOL_AT_ANY, dir, err);
	default:
		return tool_fail(TOOL_FAILED, dir, "can't make files: %s",
				 strerrordesc_np(-err));
	}
}

static enum tool_exit fill(struct run *r)
{
	int err = 0;

	if (!r->options->no_fill)
		err = folder_fill(&r->folder, r->plan->touched, r->interrupt,
				  r->show_progress ? show_fill : NULL, r);
	if (!err)
		err = folder_sync(&r->folder);
	progress_end(r);
	if (err == -EINTR)
		return tool_fail(TOOL_INTERRUPTED, NULL,
				 "interrupted while filling the files");
	if (err == -ENOSPC)
		return tool_fail_errno(TOOL_AT_ANY, r->folder.path, err);
	if (err)
		return tool_fail(TOOL_FAILED, r->folder.path,
				 "can't be filled: %s", strerrordesc_np(-err));
	return TOOL_DONE;
}

static enum folder_cache cache_of(const struct run *r)
{
	return r->options->plan.direct ? FOLDER_DIRECT : FOLDER_BUFFERED;
}

enum tool_exit run_prepare(struct run *r, const char *dir)
{
	const struct run_options *o = r->options;
	enum tool_exit code;
	int err;

	r->timed = (o->speed.given && !o->speed.max) || o->rate.given;
	r->depth = r->timed ? DEPTH_TIMED : 1;
	if (o->depth.given)
		r->depth = (unsigned int)o->depth.value;
	code = plan_check_space(r->plan, dir);
	if (code != TOOL_DONE)
		return code;
	err = folder_make(&r->folder, dir, r->plan->nr_files, r->plan->size,
			  r->depth, o->seed.given ? o->seed.value : 1);
	if (err)
		return fail_make(dir, err);
	r->folder.verify = o->verify;
	r->folder.pattern = (struct pattern){
		.seed = o->seed.given ? o->seed.value : 1,
		.holes = r->plan->totals.count[TRACE_TRIM] > 0,
	};
	code = fill(r);
	if (code != TOOL_DONE)
		return code;
	err = folder_reopen(&r->folder, cache_of(r));
	if (err == -EINVAL && o->plan.direct)
		return tool_fail(TOOL_FAILED, dir,
				 "its file system has no direct I/O");
	return err ? fail_make(dir, err) : TOOL_DONE;
}

static void set_schedule(const struct run *r, struct schedule *s)
{
	const struct run_options *o = r->options;

	if (o->rate.given) {
		s->mode = SCHEDULE_RATE;
		s->rate = o->rate.value;
	} else if (r->timed) {
		s->mode = SCHEDULE_TIMES;
		s->speed_milli = o->speed.milli;
		s->max_idle_ns = o->max_idle.value * NS_PER_MS;
	}
}

static uint64_t ns_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_usec * 1000;
}

static void take_source(struct run_result *to, const struct source *s)
{
	to->zero_length = s->zero_length;
	to->skipped = s->skipped;
	to->split = s->split;
	to->cut = s->cut;
	to->rounded = s->rounded;
	to->clamped = s->schedule.clamped;
	to->idle_cut = s->schedule.cut;
	to->loops = s->loop;
}

/* What was written must be on the disk, or the time means nothing. */
static void write_out(struct run *r)
{
	struct run_result *to = &r->result;
	const struct engine_clock *clock = &engine_real_clock;
	const uint64_t begin = clock->now(clock->arg);

	if (!to->engine.interrupted) {
		to->sync_error = folder_sync(&r->folder);
		to->sync_ns = clock->now(clock->arg) - begin;
		to->synced = true;
	}
	to->whole_ns = to->engine.elapsed_ns + to->sync_ns;
	rate_end(&to->engine.rate, to->whole_ns, &to->rate);
}

static int run_engine(struct run *r, struct source *s)
{
	const struct run_options *o = r->options;
	const struct engine_params p = {
		.source = { source_next, s },
		.target = { folder_run, &r->folder },
		.clock = engine_real_clock,
		.depth = r->depth,
		.timed = r->timed,
		.ramp_ns = o->ramp.value * NS_PER_MS,
		.runtime_ns = o->runtime.value * NS_PER_MS,
		.stop_on_error = !o->keep_going,
		.interrupt = r->interrupt,
		.progress = r->show_progress ? show_replay : NULL,
		.progress_arg = r,
	};
	struct rusage before, after;
	int err;

	getrusage(RUSAGE_SELF, &before);
	err = engine_run(&p, &r->result.engine);
	if (err)
		return err;
	progress_end(r);
	write_out(r);
	getrusage(RUSAGE_SELF, &after);
	r->result.user_ns = ns_of(&after.ru_utime) - ns_of(&before.ru_utime);
	r->result.system_ns = ns_of(&after.ru_stime) - ns_of(&before.ru_stime);
	return 0;
}

/* All that was touched, once more, and not from the cache. */
static enum tool_exit verify(struct run *r)
{
	struct run_result *to = &r->result;
	int err = 0;

	if (!r->options->verify)
		return TOOL_DONE;
	if (!to->engine.interrupted) {
		err = folder_reopen(&r->folder, cache_of(r));
		if (!err)
			err = folder_check(&r->folder, r->plan->touched,
					   r->interrupt);
		to->checked = !err;
	}
	to->nr_wrong = r->folder.nr_wrong;
	to->wrong_target = r->folder.wrong_target;
	to->wrong_offset = r->folder.wrong_offset;
	if (!err || err == -EINTR)
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED, r->folder.path, "can't be read again: %s",
			 strerrordesc_np(-err));
}

enum tool_exit run_start(struct run *r)
{
	struct source *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	s->trace = &r->plan->trace;
	s->fit = &r->plan->fit;
	s->loops = nr_loops(r->options);
	set_schedule(r, &s->schedule);
	if (trace_rewind(&r->plan->trace)) {
		free(s);
		return trace_say_failure(&r->plan->trace);
	}
	memset(&r->result, 0, sizeof(r->result));
	err = run_engine(r, s);
	take_source(&r->result, s);
	r->result.bad_lines = r->plan->bad.nr;
	free(s);
	if (err)
		return tool_fail_errno(TOOL_AT_ANY, NULL, err);
	return r->result.engine.source_error ? TOOL_FAILED : verify(r);
}

enum tool_exit run_end(struct run *r, enum folder_end end)
{
	char *path = r->folder.path ? strdup(r->folder.path) : NULL;
	const int err = folder_destroy(&r->folder, end);
	enum tool_exit code = TOOL_DONE;

	if (err)
		code = tool_fail(TOOL_FAILED, path,
				 "could not be removed: %s; do it yourself",
				 strerrordesc_np(-err));
	free(path);
	return code;
}

/* ---- the result ---- */

uint64_t run_operations(const struct run_result *r)
{
	return r->engine.kind[TRACE_READ].count +
	       r->engine.kind[TRACE_WRITE].count;
}

uint64_t run_bytes(const struct run_result *r)
{
	return r->engine.kind[TRACE_READ].bytes +
	       r->engine.kind[TRACE_WRITE].bytes;
}

void run_both(const struct run_result *r, struct engine_kind *out)
{
	memset(out, 0, sizeof(*out));
	engine_kind_merge(out, &r->engine.kind[TRACE_READ]);
	engine_kind_merge(out, &r->engine.kind[TRACE_WRITE]);
}
