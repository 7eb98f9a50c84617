/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Text and JSON of one run.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "stats/names.h"
#include "tools/json.h"
#include "tools/replay/format.h"
#include "tools/replay/report.h"
#include "tools/units.h"

bool report_is_faithful(const struct run_result *r)
{
	return r->engine.late * 100 <= r->engine.lateness.count;
}

enum tool_exit report_exit(const struct run_result *r)
{
	const struct engine_result *e = &r->engine;

	if (r->nr_wrong)
		return tool_fail(TOOL_VERIFY_FAILED, NULL,
				 "%" PRIu64 " reads gave other bytes than were "
				 "written, the first in file %04" PRIu32
				 " at offset %" PRIu64,
				 r->nr_wrong, r->wrong_target, r->wrong_offset);
	if (r->sync_error)
		return tool_fail(TOOL_FAILED, NULL,
				 "what was written could not be synced: %s",
				 strerrordesc_np(-r->sync_error));
	for (unsigned int i = 0; i < e->nr_error_kinds; i++)
		if (e->error[i].err == -ENOSPC)
			return tool_fail(TOOL_NO_SPACE, NULL,
					 "no space left during the replay");
	if (e->nr_errors)
		return tool_fail(TOOL_FAILED, NULL,
				 "%" PRIu64 " operations failed; the report "
				 "names the errors",
				 e->nr_errors);
	return e->interrupted ? TOOL_INTERRUPTED : TOOL_DONE;
}

/* ---- text ---- */

static const struct {
	double percent;
	const char *heading;
} columns[] = {
	{ 50, "p50" },	   { 90, "p90" },	{ 99, "p99" },
	{ 99.9, "p99.9" }, { 99.99, "p99.99" },
};

#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void print_heading(FILE *out, const char *what)
{
	fprintf(out, "%-13s %8s %7s", what, "count", "mean");
	for (size_t i = 0; i < NR_COLUMNS; i++)
		fprintf(out, " %7s", columns[i].heading);
	fprintf(out, " %7s\n", "max");
}

static void print_histogram(FILE *out, const char *name,
			    const struct histogram *h)
{
	char text[FORMAT_BYTES];

	if (!h->count)
		return;
	format_ns(histogram_mean(h), text);
	fprintf(out, "  %-11s %8" PRIu64 " %7s", name, h->count, text);
	for (size_t i = 0; i < NR_COLUMNS; i++) {
		format_ns(histogram_percentile(h, columns[i].percent), text);
		fprintf(out, " %7s", text);
	}
	format_ns(h->max, text);
	fprintf(out, " %7s\n", text);
}

static void print_latencies(FILE *out, const struct run *r)
{
	const struct run_result *res = &r->result;

	print_heading(out, "Service time");
	for (int k = 0; k < ENGINE_KINDS; k++)
		print_histogram(out, trace_op_name(k),
				&res->engine.kind[k].service);
	if (!r->timed)
		return;
	print_heading(out, "Response time");
	for (int k = 0; k < ENGINE_KINDS; k++)
		print_histogram(out, trace_op_name(k),
				&res->engine.kind[k].response);
	print_histogram(out, "lateness", &res->engine.lateness);
}

static void print_mode(FILE *out, const struct run *r)
{
	const struct run_options *o = r->options;
	char factor[FORMAT_BYTES];

	fputs("Mode: ", out);
	if (o->rate.given) {
		fprintf(out, "%llu operations a second", o->rate.value);
	} else if (r->timed) {
		format_milli((int64_t)o->speed.milli, factor);
		fprintf(out, "recorded times at speed %s", factor);
	} else {
		fputs("as fast as possible (closed loop)", out);
	}
	fprintf(out, ", depth %u, %s\n", r->depth,
		o->plan.direct ? "direct I/O" : "through the page cache");
}

static void print_files(FILE *out, const struct run *r, const char *dir)
{
	char fill[UNITS_TEXT_BYTES];

	units_format_size(plan_bytes(r->plan), fill);
	fprintf(out, "Files: %" PRIu32 " in %s, --fit %s, ", r->plan->nr_files,
		dir, fit_word(r->plan->fit.policy));
	if (r->options->no_fill)
		fputs("nothing filled before\n", out);
	else
		fprintf(out, "%s filled before and dropped from the cache\n",
			fill);
}

static void print_throughput(FILE *out, const struct run_result *r)
{
	const struct rate_summary *s = &r->rate;
	char text[4][FORMAT_BYTES], window[2][FORMAT_BYTES];

	format_mb(format_rate(run_bytes(r), r->whole_ns), text[0]);
	format_mb(s->min, text[1]);
	format_mb(s->max, text[2]);
	format_mb(s->burst, text[3]);
	format_ns(s->window_ns, window[0]);
	format_ns(s->burst_window_ns, window[1]);
	fprintf(out, "MB/s: average %s", text[0]);
	if (s->nr_windows)
		fprintf(out,
			", min %s, max %s (of %" PRIu64 " windows of %s), "
			"burst %s (best %s)",
			text[1], text[2], s->nr_windows, window[0], text[3],
			window[1]);
	fprintf(out, "; IOPS: %" PRIu64 "\n",
		format_rate(run_operations(r), r->whole_ns));
}

static void print_time(FILE *out, const struct run_result *r)
{
	char text[FORMAT_BYTES];

	format_ns(r->engine.elapsed_ns, text);
	fprintf(out, "Time: %s", text);
	if (r->synced) {
		format_ns(r->sync_ns, text);
		fprintf(out, ", and %s to write out (fsync)", text);
	}
	format_ns(r->user_ns, text);
	fprintf(out, "; CPU of the replayer: %s user", text);
	format_ns(r->system_ns, text);
	fprintf(out, ", %s system\n", text);
}

static void print_if(FILE *out, uint64_t nr, const char *what)
{
	if (nr)
		fprintf(out, "  %" PRIu64 " %s\n", nr, what);
}

static void print_remarks(FILE *out, const struct run_result *r)
{
	const struct engine_result *e = &r->engine;

	if (r->bad_lines || r->zero_length || r->skipped || r->split ||
	    r->cut || r->rounded || r->clamped || r->idle_cut ||
	    e->ramp_count || e->order_waits || e->nr_errors)
		fputs("Of all:\n", out);
	print_if(out, r->bad_lines, "bad lines of the trace, left out");
	print_if(out, r->zero_length, "of no length, not sent");
	print_if(out, r->skipped, "beyond --size, left out");
	print_if(out, r->split, "across the end of --size, sent in two parts");
	print_if(out, r->cut, "longer than there is room, cut");
	print_if(out, r->rounded, "rounded out to whole 4096-byte blocks");
	print_if(out, r->clamped, "recorded before the one before them");
	print_if(out, r->idle_cut, "gaps cut to --max-idle");
	print_if(out, e->ramp_count, "during --ramp, done and not counted");
	print_if(out, e->order_waits,
		 "waited for one before them on the same bytes");
	for (unsigned int i = 0; i < e->nr_error_kinds; i++)
		fprintf(out, "  %" PRIu64 " failed: %s\n", e->error[i].count,
			strerrordesc_np(-e->error[i].err));
}

static void print_verdict(FILE *out, const struct run *r)
{
	const struct engine_result *e = &r->result.engine;
	char due[FORMAT_BYTES];

	if (!r->timed || !e->lateness.count)
		return;
	format_ns(e->last_due_ns, due);
	fprintf(out,
		"Late by more than 1 ms: %" PRIu64 ", by more than 10 ms: "
		"%" PRIu64 ", of %" PRIu64 "; the last was due at %s\n",
		e->late, e->very_late, e->lateness.count, due);
	fputs(report_is_faithful(&r->result)
		      ? "Verdict: the times were kept\n"
		      : "Verdict: the times were NOT kept (more than 1 % were "
			"late): read this as a measure of capacity, or use "
			"more --depth\n",
	      out);
}

void report_text(FILE *out, const struct run *r, const char *dir)
{
	const struct run_result *res = &r->result;

	if (res->engine.interrupted)
		fputs("Interrupted: this is what was done until then\n", out);
	fprintf(out, "Trace: %s, %" PRIu64 " records\n", r->plan->format,
		r->plan->totals.records);
	print_files(out, r, dir);
	print_mode(out, r);
	print_time(out, res);
	print_throughput(out, res);
	print_latencies(out, r);
	print_verdict(out, r);
	if (r->options->verify)
		fprintf(out, "Verified: %" PRIu64 " reads were wrong%s\n",
			res->nr_wrong,
			res->checked ? ", the files read again in the end "
				       "included"
				     : "");
	print_remarks(out, res);
}

/* ---- JSON ---- */

struct json_object *report_histogram(const struct histogram *h)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "count", h->count);
	json_add_number(o, "mean_ns", histogram_mean(h));
	json_add_number(o, "min_ns", h->min);
	for (int i = 0; i < STATS_PERCENTILE_NR; i++) {
		char key[32];

		snprintf(key, sizeof(key), "%s_ns", stats_percentile[i].key);
		json_add_number(
			o, key,
			histogram_percentile(h, stats_percentile[i].percent));
	}
	json_add_number(o, "max_ns", h->max);
	return o;
}

static struct json_object *json_operations(const struct run *r)
{
	struct json_object *o = json_object_new_object();

	for (int k = 0; k < ENGINE_KINDS; k++) {
		const struct engine_kind *kind = &r->result.engine.kind[k];
		struct json_object *row = json_object_new_object();

		json_add_number(row, "count", kind->count);
		json_add_number(row, "bytes", kind->bytes);
		json_object_object_add(row, "service",
				       report_histogram(&kind->service));
		if (r->timed)
			json_object_object_add(
				row, "response",
				report_histogram(&kind->response));
		json_object_object_add(o, trace_op_name(k), row);
	}
	return o;
}

static struct json_object *json_throughput(const struct run_result *r)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "average_bytes_per_second",
			format_rate(run_bytes(r), r->whole_ns));
	json_add_number(o, "min_bytes_per_second", r->rate.min);
	json_add_number(o, "max_bytes_per_second", r->rate.max);
	json_add_number(o, "window_ns", r->rate.window_ns);
	json_add_number(o, "windows", r->rate.nr_windows);
	json_add_number(o, "burst_bytes_per_second", r->rate.burst);
	json_add_number(o, "burst_window_ns", r->rate.burst_window_ns);
	json_add_number(o, "iops", format_rate(run_operations(r), r->whole_ns));
	return o;
}

static struct json_object *json_mode(const struct run *r)
{
	const struct run_options *opt = r->options;
	struct json_object *o = json_object_new_object();

	json_add_text(o, "loop", r->timed ? "open" : "closed");
	if (opt->rate.given)
		json_add_number(o, "rate", opt->rate.value);
	else if (r->timed)
		json_add_number(o, "speed_thousandths", opt->speed.milli);
	json_add_number(o, "depth", r->depth);
	json_add_bool(o, "direct", opt->plan.direct);
	json_add_bool(o, "filled", !opt->no_fill);
	json_add_text(o, "fit", fit_word(r->plan->fit.policy));
	json_add_number(o, "file_bytes_filled", plan_bytes(r->plan));
	json_add_number(o, "loops", r->result.loops);
	return o;
}

static struct json_object *json_lateness(const struct run *r)
{
	const struct engine_result *e = &r->result.engine;
	struct json_object *o = report_histogram(&e->lateness);

	json_add_number(o, "over_1_ms", e->late);
	json_add_number(o, "over_10_ms", e->very_late);
	json_add_number(o, "last_due_ns", e->last_due_ns);
	json_add_bool(o, "faithful", report_is_faithful(&r->result));
	return o;
}

static struct json_object *json_remarks(const struct run_result *r)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "bad_lines", r->bad_lines);
	json_add_number(o, "zero_length", r->zero_length);
	json_add_number(o, "skipped", r->skipped);
	json_add_number(o, "split", r->split);
	json_add_number(o, "cut", r->cut);
	json_add_number(o, "rounded", r->rounded);
	json_add_number(o, "out_of_order", r->clamped);
	json_add_number(o, "gaps_cut", r->idle_cut);
	json_add_number(o, "ramp", r->engine.ramp_count);
	json_add_number(o, "order_waits", r->engine.order_waits);
	return o;
}

static struct json_object *json_errors(const struct engine_result *e)
{
	struct json_object *all = json_object_new_array();

	for (unsigned int i = 0; i < e->nr_error_kinds; i++) {
		struct json_object *o = json_object_new_object();

		json_add_text(o, "error", strerrordesc_np(-e->error[i].err));
		json_add_number(o, "count", e->error[i].count);
		json_object_array_add(all, o);
	}
	return all;
}

static struct json_object *json_trace(const struct run *r)
{
	const struct plan *p = r->plan;
	struct json_object *o = json_object_new_object();

	json_add_text(o, "format", p->format);
	json_add_number(o, "records", p->totals.records);
	json_add_number(o, "targets", p->nr_files);
	return o;
}

struct json_object *report_json(const struct run *r, const char *dir)
{
	const struct run_result *res = &r->result;
	struct json_object *o = json_object_new_object();

	json_add_number(o, "version", REPORT_JSON_VERSION);
	json_add_bool(o, "interrupted", res->engine.interrupted);
	json_add_text(o, "dir", dir);
	json_object_object_add(o, "trace", json_trace(r));
	json_object_object_add(o, "mode", json_mode(r));
	json_add_number(o, "elapsed_ns", res->engine.elapsed_ns);
	json_add_number(o, "sync_ns", res->sync_ns);
	json_add_number(o, "cpu_user_ns", res->user_ns);
	json_add_number(o, "cpu_system_ns", res->system_ns);
	json_add_number(o, "max_in_flight", res->engine.max_in_flight);
	json_add_number(o, "all_threads_busy", res->engine.all_busy);
	json_object_object_add(o, "throughput", json_throughput(res));
	json_object_object_add(o, "operations", json_operations(r));
	if (r->timed)
		json_object_object_add(o, "lateness", json_lateness(r));
	json_object_object_add(o, "remarks", json_remarks(res));
	if (r->options->verify) {
		json_add_number(o, "wrong_reads", res->nr_wrong);
		json_add_bool(o, "checked_in_the_end", res->checked);
	}
	json_add_number(o, "errors", res->engine.nr_errors);
	json_object_object_add(o, "error_kinds", json_errors(&res->engine));
	return o;
}

enum tool_exit report_write_json(struct json_object *o, const char *path)
{
	const int flags = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
			  JSON_C_TO_STRING_NOSLASHESCAPE;
	bool ok;
	FILE *out;

	if (strcmp(path, "-") == 0)
		return json_print(o, TOOL_DONE);
	out = fopen(path, "we");
	if (!out) {
		json_object_put(o);
		return tool_fail(TOOL_FAILED, path, "%s",
				 strerrordesc_np(errno));
	}
	ok = fprintf(out, "%s\n", json_object_to_json_string_ext(o, flags)) > 0;
	ok = !fclose(out) && ok;
	json_object_put(o);
	return ok ? TOOL_DONE
		  : tool_fail(TOOL_FAILED, path, "could not be written");
}
