/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A column is a row of a table of columns: heading, width, and what it shows of
 * a contestant.  As many as fit stand side by side.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tools/command.h"
#include "tools/json.h"
#include "tools/replay/format.h"
#include "tools/replay/report.h"
#include "tools/replay/table.h"

#define NAME_COLUMNS 25
/* Shorter runs mostly measure how a run begins and ends. */
#define SHORT_NS UINT64_C(2000000000)

/* ---- text ---- */

enum compared_with {
	WITH_NOTHING,
	WITH_BASE, /* none, without integrity */
	WITH_HOST, /* the folder itself */
};

struct column {
	const char *heading[2];
	unsigned int width;
	enum sample_field field;
	enum compared_with with;
	void (*show)(const struct column *col, const struct contest *c,
		     const struct contestant *row,
		     char out[static FORMAT_BYTES]);
};

static void show_mb(const struct column *col, const struct contest *c,
		    const struct contestant *row, char out[static FORMAT_BYTES])
{
	format_mb(contest_spread(row, col->field).median, out);
}

static void show_number(const struct column *col, const struct contest *c,
			const struct contestant *row,
			char out[static FORMAT_BYTES])
{
	snprintf(out, FORMAT_BYTES, "%" PRIu64,
		 contest_spread(row, col->field).median);
}

static void show_ns(const struct column *col, const struct contest *c,
		    const struct contestant *row, char out[static FORMAT_BYTES])
{
	format_ns(contest_spread(row, col->field).median, out);
}

/* Half of what lies between the least and the greatest, in % of the median */
static void show_spread(const struct column *col, const struct contest *c,
			const struct contestant *row,
			char out[static FORMAT_BYTES])
{
	const struct spread s = contest_spread(row, col->field);

	if (row->nr_samples < 2 || !s.median) {
		snprintf(out, FORMAT_BYTES, "-");
		return;
	}
	format_milli((int64_t)((unsigned __int128)(s.max - s.min) * 50000 /
			       s.median),
		     out);
}

static void show_hit(const struct column *col, const struct contest *c,
		     const struct contestant *row,
		     char out[static FORMAT_BYTES])
{
	const struct contestant *base = col->with == WITH_BASE
						? contest_base(c, row)
						: contest_host(c, row);
	char number[FORMAT_BYTES - 2];
	char full[FORMAT_BYTES];
	int64_t hit;

	if (base == row || !contest_hit(row, base, col->field, &hit)) {
		snprintf(out, FORMAT_BYTES, "-");
		return;
	}
	format_milli(hit, full);
	snprintf(number, sizeof(number), "%.28s", full);
	snprintf(out, FORMAT_BYTES, "%s%s",
		 contest_in_noise(row, base, col->field) && row->nr_samples > 1
			 ? "~"
			 : "",
		 number);
}

static const struct column columns[] = {
	{ { "MB/s", "average" }, 8, SAMPLE_average, 0, show_mb },
	{ { "", "+- %" }, 6, SAMPLE_average, 0, show_spread },
	{ { "hit %", "none" }, 7, SAMPLE_average, WITH_BASE, show_hit },
	{ { "hit %", "host" }, 7, SAMPLE_average, WITH_HOST, show_hit },
	{ { "MB/s", "min" }, 7, SAMPLE_min, 0, show_mb },
	{ { "MB/s", "max" }, 8, SAMPLE_max, 0, show_mb },
	{ { "MB/s", "burst" }, 8, SAMPLE_burst, 0, show_mb },
	{ { "", "IOPS" }, 8, SAMPLE_iops, 0, show_number },
	{ { "access", "time" }, 9, SAMPLE_access, 0, show_ns },
	{ { "", "+- %" }, 6, SAMPLE_access, 0, show_spread },
	{ { "hit %", "none" }, 7, SAMPLE_access, WITH_BASE, show_hit },
	{ { "hit %", "host" }, 7, SAMPLE_access, WITH_HOST, show_hit },
	{ { "", "p50" }, 9, SAMPLE_p50, 0, show_ns },
	{ { "", "p99" }, 9, SAMPLE_p99, 0, show_ns },
	{ { "CPU", "time" }, 9, SAMPLE_cpu, 0, show_ns },
	{ { "hit %", "none" }, 7, SAMPLE_cpu, WITH_BASE, show_hit },
};

#define NR_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* How many columns from @first on fit; one at least. */
static size_t that_fit(size_t first, unsigned int width)
{
	unsigned int used = NAME_COLUMNS + columns[first].width + 1;
	size_t nr = 1;

	while (first + nr < NR_COLUMNS &&
	       used + columns[first + nr].width + 1 <= width) {
		used += columns[first + nr].width + 1;
		nr++;
	}
	return nr;
}

static void print_headings(FILE *out, size_t first, size_t nr)
{
	for (int line = 0; line < 2; line++) {
		fprintf(out, "%-*s", NAME_COLUMNS, "");
		for (size_t i = first; i < first + nr; i++)
			fprintf(out, " %*s", (int)columns[i].width,
				columns[i].heading[line]);
		fputc('\n', out);
	}
}

static void print_row(FILE *out, const struct contest *c,
		      const struct contestant *row, size_t first, size_t nr)
{
	char text[FORMAT_BYTES];

	fprintf(out, "%-*s", NAME_COLUMNS, row->name);
	for (size_t i = first; i < first + nr; i++) {
		columns[i].show(&columns[i], c, row, text);
		fprintf(out, " %*s", (int)columns[i].width, text);
	}
	fputc('\n', out);
}

static void print_rows(FILE *out, const struct contest *c, size_t first,
		       size_t nr)
{
	for (size_t i = 0; i < c->nr_rows; i++) {
		char type[MACHINE_TEXT];

		if (!i || strcmp(c->row[i].dir, c->row[i - 1].dir) != 0) {
			machine_file_system(c->row[i].dir, type);
			fprintf(out, "in %s (%s)\n", c->row[i].dir, type);
		}
		print_row(out, c, &c->row[i], first, nr);
	}
}

const char *table_cache_text(const struct contest *c)
{
	return c->cache == CONTEST_DROPPED
		       ? "the machine's page cache dropped before each run"
		       : "clean pages of the files given back before each run "
			 "(not root: whether the kernel did is its affair)";
}

__attribute__((format(printf, 2, 3))) static void
print_wrapped(FILE *out, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	command_wrap(out, text, 0, 0);
}

static void print_method(FILE *out, const struct contest *c)
{
	const struct run_options *o = c->options;
	char window[2][FORMAT_BYTES];

	format_ns(c->row[0].window_ns, window[0]);
	format_ns(c->row[0].burst_window_ns, window[1]);
	print_wrapped(out,
		      "Trace: %s, %" PRIu64 " records of %" PRIu32
		      " target%s; --fit %s, %s, %s",
		      c->plan->format, c->plan->totals.records,
		      c->plan->nr_files, c->plan->nr_files == 1 ? "" : "s",
		      fit_word(c->plan->fit.policy),
		      o->plan.direct ? "direct I/O" : "through the page cache",
		      o->no_fill ? "files with holes" : "files filled before");
	print_wrapped(out,
		      "Rounds: %u, each from a new container, mounted anew; %s",
		      c->rounds_done, table_cache_text(c));
	print_wrapped(
		out,
		"Medians of the rounds; +- %% is half their range. MB are "
		"10^6 bytes; min and max are windows of %s, burst one of "
		"%s. Time includes writing out (fsync).",
		window[0], window[1]);
}

static void print_legend(FILE *out, const struct contest *c)
{
	const uint64_t elapsed =
		contest_spread(&c->row[0], SAMPLE_elapsed).median;
	char text[FORMAT_BYTES];

	fputc('\n', out);
	print_wrapped(out,
		      "hit %%: how much worse than 'none' (no encryption of "
		      "data, no integrity), and than the host folder; negative "
		      "is better. Access time is the mean of reads and writes; "
		      "CPU time that of the replayer and the daemon.");
	print_wrapped(out, "%s",
		      c->rounds_done < 2
			      ? "One round tells nothing about noise: use "
				"--rounds 3 or more."
			      : "~: inside the noise, as the ranges of both "
				"rows' rounds overlap.");
	format_ns(elapsed, text);
	if (elapsed < SHORT_NS)
		print_wrapped(out,
			      "A run took %s: --loops N makes it longer, and "
			      "the noise smaller.",
			      text);
}

void table_text(FILE *out, const struct contest *c, const struct machine *m,
		unsigned int columns_wide)
{
	size_t nr;

	machine_text(out, m);
	print_method(out, c);
	for (size_t first = 0; first < NR_COLUMNS; first += nr) {
		nr = that_fit(first, columns_wide);
		fputc('\n', out);
		print_headings(out, first, nr);
		print_rows(out, c, first, nr);
	}
	print_legend(out, c);
}

/* ---- JSON ---- */

static struct json_object *json_sample(const struct sample *s)
{
	struct json_object *o = json_object_new_object();

	for (int f = 0; f < SAMPLE_NR; f++)
		json_add_number(o, sample_key(f), sample_get(s, f));
	return o;
}

static struct json_object *json_spreads(const struct contestant *row)
{
	struct json_object *all = json_object_new_object();

	for (int f = 0; f < SAMPLE_NR; f++) {
		const struct spread s = contest_spread(row, f);
		struct json_object *o = json_object_new_object();

		json_add_number(o, "median", s.median);
		json_add_number(o, "min", s.min);
		json_add_number(o, "max", s.max);
		json_object_object_add(all, sample_key(f), o);
	}
	return all;
}

/* Percent with three digits, as a number; left out where there is none. */
static struct json_object *json_hits(const struct contestant *row,
				     const struct contestant *base)
{
	struct json_object *all = json_object_new_object();

	for (int f = 0; f < SAMPLE_NR; f++) {
		struct json_object *o;
		int64_t hit;

		if (!contest_hit(row, base, f, &hit))
			continue;
		o = json_object_new_object();
		json_object_object_add(o, "milli_percent",
				       json_object_new_int64(hit));
		json_add_bool(o, "in_noise", contest_in_noise(row, base, f));
		json_object_object_add(all, sample_key(f), o);
	}
	return all;
}

static struct json_object *json_row(const struct contest *c,
				    const struct contestant *row)
{
	const struct contestant *base = contest_base(c, row);
	const struct contestant *host = contest_host(c, row);
	struct json_object *o = json_object_new_object();
	struct json_object *rounds = json_object_new_array();
	char type[MACHINE_TEXT];

	machine_file_system(row->dir, type);
	json_add_text(o, "name", row->name);
	json_add_text(o, "dir", row->dir);
	json_add_text(o, "host_file_system", type);
	if (row->scheme) {
		json_add_text(o, "scheme", row->scheme);
		json_add_bool(o, "integrity", row->integrity);
	}
	for (size_t i = 0; i < row->nr_samples; i++)
		json_object_array_add(rounds, json_sample(&row->sample[i]));
	json_object_object_add(o, "rounds", rounds);
	json_object_object_add(o, "over_rounds", json_spreads(row));
	json_object_object_add(o, "service", report_histogram(&row->service));
	if (base && base != row)
		json_object_object_add(o, "hit_against_none",
				       json_hits(row, base));
	if (host && host != row)
		json_object_object_add(o, "hit_against_host",
				       json_hits(row, host));
	json_add_number(o, "window_ns", row->window_ns);
	json_add_number(o, "burst_window_ns", row->burst_window_ns);
	return o;
}

struct json_object *table_json(const struct contest *c, const struct machine *m)
{
	struct json_object *o = json_object_new_object();
	struct json_object *trace = json_object_new_object();
	struct json_object *rows = json_object_new_array();

	json_add_number(o, "version", TABLE_JSON_VERSION);
	json_object_object_add(o, "machine", machine_json(m));
	json_add_text(trace, "format", c->plan->format);
	json_add_number(trace, "records", c->plan->totals.records);
	json_add_number(trace, "targets", c->plan->nr_files);
	json_add_text(trace, "fit", fit_word(c->plan->fit.policy));
	json_add_number(trace, "file_bytes", plan_bytes(c->plan));
	json_object_object_add(o, "trace", trace);
	json_add_bool(o, "direct", c->options->plan.direct);
	json_add_bool(o, "filled", !c->options->no_fill);
	json_add_text(o, "cache", table_cache_text(c));
	json_add_number(o, "rounds", c->rounds_done);
	for (size_t i = 0; i < c->nr_rows; i++)
		json_object_array_add(rows, json_row(c, &c->row[i]));
	json_object_object_add(o, "rows", rows);
	return o;
}

/* ---- CSV ---- */

/* Quoted, as a folder's name may hold a comma. */
static void csv_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

int table_csv(FILE *out, const struct contest *c)
{
	fputs("dir,name,round", out);
	for (int f = 0; f < SAMPLE_NR; f++)
		fprintf(out, ",%s", sample_key(f));
	fputc('\n', out);
	for (unsigned int round = 0; round < c->rounds_done; round++) {
		for (size_t i = 0; i < c->nr_rows; i++) {
			const struct contestant *row = &c->row[i];

			csv_text(out, row->dir);
			fputc(',', out);
			csv_text(out, row->name);
			fprintf(out, ",%u", round + 1);
			for (int f = 0; f < SAMPLE_NR; f++)
				fprintf(out, ",%" PRIu64,
					sample_get(&row->sample[round], f));
			fputc('\n', out);
		}
	}
	return ferror(out) ? -EIO : 0;
}
