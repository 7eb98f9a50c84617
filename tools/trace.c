/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk trace info: what a trace holds, without doing any I/O of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/json.h"
#include "tools/replay/bad_lines.h"
#include "tools/replay/options.h"
#include "tools/replay/totals.h"
#include "tools/replay/touched.h"
#include "tools/replay/trace.h"
#include "tools/units.h"

#define NS_PER_S UINT64_C(1000000000)

struct trace_info {
	bool tsv, json, strict;
	struct reader_options reader;

	struct trace trace;
	struct trace_totals totals;
	struct touched *touched;
	bool touched_all; /* or there was too much to keep */
	struct bad_lines bad;
};

/* ---- one line of tab-separated values ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "a+b+c"; tabs and the like in a name must not make columns. */
static void print_files(const struct trace *t)
{
	for (size_t i = 0; i < t->nr_files; i++) {
		if (i)
			putchar('+');
		for (const char *c = base_name(t->file[i].path); *c; c++)
			putchar((unsigned char)*c < ' ' || *c == 127 ? '?'
								     : *c);
	}
}

static void print_number(uint64_t n)
{
	printf("\t%" PRIu64, n);
}

static void print_times(const struct trace_info *s)
{
	const struct trace_totals *t = &s->totals;

	if (trace_times(&s->trace) != READER_TIMES || !t->records) {
		fputs("\t-\t-\t-", stdout);
		return;
	}
	print_number(t->first_ns);
	print_number(t->last_ns);
	print_number(t->last_ns - t->first_ns);
}

static void print_tsv(const struct trace_info *s)
{
	const struct trace_totals *t = &s->totals;
	char format[TRACE_FORMAT_BYTES];

	puts("format\tfiles\trecords\treads\twrites\ttrims\tflushes\t"
	     "bytes_read\tbytes_written\tbytes_trimmed\tmin_off\tmax_off\t"
	     "max_end\tfirst_ns\tlast_ns\tspan_ns\ttargets\tzero_len\t"
	     "out_of_order\tbad_lines");
	trace_format_name(&s->trace, format);
	printf("%s\t", format);
	print_files(&s->trace);
	print_number(t->records);
	for (int op = TRACE_READ; op <= TRACE_FLUSH; op++)
		print_number(t->count[op]);
	for (int op = TRACE_READ; op <= TRACE_TRIM; op++)
		print_number(t->bytes[op]);
	print_number(t->min_offset);
	print_number(t->max_offset);
	print_number(t->max_end);
	print_times(s);
	print_number(s->trace.targets.nr);
	print_number(t->zero_length);
	print_number(t->out_of_order);
	print_number(s->bad.nr);
	putchar('\n');
}

/* ---- JSON ---- */

static void add_by_op(struct json_object *o, const char *key,
		      const uint64_t number[TRACE_OP_NR], int last)
{
	struct json_object *by = json_object_new_object();

	for (int op = TRACE_READ; op <= last; op++)
		json_add_number(by, trace_op_name(op), number[op]);
	json_object_object_add(o, key, by);
}

static void add_sizes(struct json_object *o, const struct trace_totals *t)
{
	struct json_object *sizes = json_object_new_array();

	for (unsigned int i = 0; i <= 64; i++) {
		struct json_object *row;

		if (!t->size_class[i])
			continue;
		row = json_object_new_object();
		json_add_number(row, "from_bytes",
				i ? UINT64_C(1) << (i - 1) : 0);
		json_add_number(row, "count", t->size_class[i]);
		json_object_array_add(sizes, row);
	}
	json_object_object_add(o, "sizes", sizes);
}

static void add_times(struct json_object *o, const struct trace_info *s)
{
	const struct trace_totals *t = &s->totals;

	if (trace_times(&s->trace) != READER_TIMES)
		return;
	json_add_number(o, "first_ns", t->first_ns);
	json_add_number(o, "last_ns", t->last_ns);
	json_add_number(o, "span_ns", t->last_ns - t->first_ns);
}

static enum tool_exit print_json(const struct trace_info *s)
{
	const struct trace_totals *t = &s->totals;
	struct json_object *o = json_object_new_object();
	struct json_object *files = json_object_new_array();
	struct json_object *targets = json_object_new_array();
	char format[TRACE_FORMAT_BYTES];

	trace_format_name(&s->trace, format);
	json_add_number(o, "version", 1);
	json_add_text(o, "format", format);
	for (size_t i = 0; i < s->trace.nr_files; i++)
		json_object_array_add(files, json_text(s->trace.file[i].path));
	json_object_object_add(o, "files", files);
	json_add_number(o, "records", t->records);
	add_by_op(o, "count", t->count, TRACE_FLUSH);
	add_by_op(o, "bytes", t->bytes, TRACE_TRIM);
	json_add_number(o, "min_offset", t->min_offset);
	json_add_number(o, "max_offset", t->max_offset);
	json_add_number(o, "max_end", t->max_end);
	add_times(o, s);
	for (uint32_t i = 0; i < s->trace.targets.nr; i++)
		json_object_array_add(targets,
				      json_text(s->trace.targets.name[i]));
	json_object_object_add(o, "targets", targets);
	json_add_number(o, "zero_length", t->zero_length);
	json_add_number(o, "out_of_order", t->out_of_order);
	json_add_number(o, "bad_lines", s->bad.nr);
	json_add_number(o, "sequential", t->sequential);
	json_add_number(o, "unaligned_512", t->odd_512);
	json_add_number(o, "unaligned_4096", t->odd_4096);
	json_add_number(o, "touched_bytes",
			touched_blocks(s->touched) * TOUCHED_BLOCK);
	json_add_bool(o, "touched_complete", s->touched_all);
	add_sizes(o, t);
	return json_print(o, TOOL_DONE);
}

/* ---- text ---- */

static void print_op(const struct trace_totals *t, enum trace_op op)
{
	char size[UNITS_TEXT_BYTES];

	units_format_size(t->bytes[op], size);
	printf("  %-10s %10" PRIu64, trace_op_name(op), t->count[op]);
	if (op == TRACE_FLUSH)
		putchar('\n');
	else
		printf("   %s\n", size);
}

static void print_share(const char *what, uint64_t part, uint64_t whole)
{
	const uint64_t tenths =
		whole ? (uint64_t)((unsigned __int128)part * 1000 / whole) : 0;

	printf("  %-26s %" PRIu64 ".%" PRIu64 " %%\n", what, tenths / 10,
	       tenths % 10);
}

static void print_span(const struct trace_info *s)
{
	const struct trace_totals *t = &s->totals;
	const uint64_t span = t->last_ns - t->first_ns;

	if (trace_times(&s->trace) != READER_TIMES || !t->records) {
		puts("Time: the trace has none");
		return;
	}
	printf("Time: %" PRIu64 ".%09" PRIu64 " s", span / NS_PER_S,
	       span % NS_PER_S);
	if (span)
		printf(", %" PRIu64 " records a second",
		       (uint64_t)((unsigned __int128)t->records * NS_PER_S /
				  span));
	printf("; %" PRIu64 " out of order\n", t->out_of_order);
}

static void print_sizes(const struct trace_totals *t)
{
	const uint64_t all = t->count[TRACE_READ] + t->count[TRACE_WRITE];
	char from[UNITS_TEXT_BYTES], label[UNITS_TEXT_BYTES + 8];

	puts("Sizes of reads and writes:");
	for (unsigned int i = 0; i <= 64; i++) {
		if (!t->size_class[i])
			continue;
		units_format_size(i ? UINT64_C(1) << (i - 1) : 0, from);
		snprintf(label, sizeof(label), "from %s", from);
		print_share(label, t->size_class[i], all);
	}
}

static void print_text(const struct trace_info *s)
{
	const struct trace_totals *t = &s->totals;
	const uint64_t all = t->count[TRACE_READ] + t->count[TRACE_WRITE];
	const char *version = s->trace.file[0].reader.version;
	char format[TRACE_FORMAT_BYTES], size[UNITS_TEXT_BYTES];

	trace_format_name(&s->trace, format);
	printf("Format: %s%s%s, %s\n", format, version ? " " : "",
	       version ? version : "", s->trace.file[0].reader.format->summary);
	printf("Records: %" PRIu64 ", of %" PRIu32 " target%s; %" PRIu64
	       " bad line%s\n",
	       t->records, s->trace.targets.nr,
	       s->trace.targets.nr == 1 ? "" : "s", s->bad.nr,
	       s->bad.nr == 1 ? "" : "s");
	for (int op = TRACE_READ; op <= TRACE_FLUSH; op++)
		print_op(t, op);
	print_span(s);
	units_format_size(t->max_end, size);
	printf("Size a target needs: %s", size);
	units_format_size(touched_blocks(s->touched) * TOUCHED_BLOCK, size);
	printf("; read or written of all: %s%s\n",
	       s->touched_all ? "" : "more than ", size);
	puts("Reads and writes:");
	print_share("following on the last one", t->sequential, all);
	print_share("not in whole 512 bytes", t->odd_512, all);
	print_share("not in whole 4096 bytes", t->odd_4096, all);
	print_share("of no length", t->zero_length, all);
	print_sizes(t);
}

/* ---- the command ---- */

static enum tool_exit add_record(struct trace_info *s,
				 const struct trace_record *rec)
{
	int err = totals_add(&s->totals, rec);

	if (!err && s->touched_all && rec->op <= TRACE_WRITE)
		err = touched_add(s->touched, rec->target, rec->offset,
				  rec->length);
	if (err == -E2BIG) {
		s->touched_all = false;
		err = 0;
	}
	return err ? tool_fail_errno(TOOL_AT_ANY, NULL, err) : TOOL_DONE;
}

static enum tool_exit read_all(struct trace_info *s)
{
	enum tool_exit code = TOOL_DONE;

	while (code == TOOL_DONE) {
		struct trace_record rec;

		switch (trace_next(&s->trace, &rec)) {
		case READER_RECORD:
			code = add_record(s, &rec);
			break;
		case READER_BAD:
			code = bad_lines_take(&s->bad, &s->trace);
			break;
		case READER_FAILED:
			return trace_say_failure(&s->trace);
		case READER_END:
			bad_lines_end(&s->bad);
			return TOOL_DONE;
		}
	}
	return code;
}

static enum tool_exit print(const struct trace_info *s)
{
	if (s->json)
		return print_json(s);
	if (s->tsv)
		print_tsv(s);
	else
		print_text(s);
	return tool_finish_output(TOOL_DONE);
}

static enum tool_exit trace_info_run(void *state, char **args)
{
	struct trace_info *s = state;
	enum tool_exit code;
	size_t nr = 0;

	if (s->tsv && s->json)
		return tool_fail(TOOL_USAGE, NULL,
				 "--tsv and --json exclude each other");
	while (args[nr])
		nr++;
	s->bad.strict = s->strict;
	s->touched_all = true;
	s->touched = touched_new();
	if (!s->touched)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	if (trace_open(&s->trace, args, nr, &s->reader, TRACE_ONCE))
		code = trace_say_failure(&s->trace);
	else
		code = read_all(s);
	if (code == TOOL_DONE)
		code = print(s);
	trace_close(&s->trace);
	totals_destroy(&s->totals);
	touched_free(s->touched);
	return code;
}

static const struct tool_option trace_info_options[] = {
	{ "tsv", 0, NULL, offsetof(struct trace_info, tsv), option_flag,
	  "A header line and one line of tab-separated numbers." },
	{ "json", 0, NULL, offsetof(struct trace_info, json), option_flag,
	  "The same and more as JSON; numbers are exact." },
	{ "strict", 0, NULL, offsetof(struct trace_info, strict), option_flag,
	  "End at the first line that is no valid record, with status 1." },
	READER_OPTIONS(offsetof(struct trace_info, reader)),
	{ 0 },
};

static const char *const trace_info_text[] = {
	"Read a trace and say what it holds: how many operations of which "
	"kind, their bytes, addresses, sizes and times.  No I/O of the trace "
	"is done.",
	"Several files are one trace, merged by time.  '-' is standard input. "
	" What is packed with gzip, xz, zstd, bzip2 or lz4 is unpacked on the "
	"way.  Lines that are no valid record are counted and skipped, the "
	"first five of them shown.",
	NULL,
};

static const char *const trace_info_examples[] = {
	"tusk trace info mail-server.csv.gz",
	"tusk trace info --tsv job.iolog",
	"xzcat trace.xz | tusk trace info --json -",
	NULL,
};

const struct tool_command trace_info_command = {
	.name = "trace info",
	.args = "FILE...",
	.min_args = 1,
	.max_args = TRACE_FILES_MAX,
	.summary = "say what a trace holds, without any I/O of it",
	.text = trace_info_text,
	.examples = trace_info_examples,
	.options = trace_info_options,
	.more_help = reader_help,
	.state_bytes = sizeof(struct trace_info),
	.run = trace_info_run,
};
