/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The block traces of Microsoft Research Cambridge (SNIA IOTTA 388):
 *
 *	Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
 *
 * Timestamp counts 100 ns since 1601-01-01 (Windows' FILETIME).  In
 * nanoseconds it needs all 64 bits, which is why time_ns has no sign; the
 * epoch stays 1601, and a replay only takes differences.  Rows are nearly in
 * order.  Some copies have a header row.
 */
#include <errno.h>
#include <stdio.h>

#include "tools/replay/reader.h"

#define NS_PER_TICK UINT64_C(100)
#define DETECT_LINES 20

enum {
	MSR_TIME,
	MSR_HOST,
	MSR_DISK,
	MSR_TYPE,
	MSR_OFFSET,
	MSR_SIZE,
	MSR_RESPONSE,
	MSR_NR,
};

static bool is_header(struct span first)
{
	return span_is_nocase(first, "Timestamp");
}

/* NULL, or what is wrong. */
static const char *parse_msr(const struct span field[MSR_NR],
			     struct trace_record *rec)
{
	uint64_t response;

	if (span_number(field[MSR_TIME], &rec->time_ns))
		return "its time is not a number";
	if (__builtin_mul_overflow(rec->time_ns, NS_PER_TICK, &rec->time_ns))
		return "its time does not fit into 64 bits";
	if (span_is_nocase(field[MSR_TYPE], "Read"))
		rec->op = TRACE_READ;
	else if (span_is_nocase(field[MSR_TYPE], "Write"))
		rec->op = TRACE_WRITE;
	else
		return "its type is neither Read nor Write";
	if (span_number(field[MSR_OFFSET], &rec->offset))
		return "its offset is not a number";
	if (span_number(field[MSR_SIZE], &rec->length))
		return "its size is not a number";
	if (rec->offset > INT64_MAX || rec->length > INT64_MAX - rec->offset)
		return "ends beyond 2^63 bytes";
	/* Not used, but a row without one was cut off. */
	if (span_number(field[MSR_RESPONSE], &response))
		return "its response time is not a number";
	return NULL;
}

static bool msr_detect(struct span bytes)
{
	struct span line, field[MSR_NR + 1];

	for (int i = 0; i < DETECT_LINES && reader_peek_line(&bytes, &line);
	     i++) {
		struct trace_record rec;

		if (span_fields(line, ',', field, MSR_NR + 1) == MSR_NR &&
		    !parse_msr(field, &rec))
			return true;
	}
	return false;
}

/* Host and disk together: several hosts have a disk 0. */
static enum reader_result take_target(struct reader *r, uint64_t line,
				      const struct span field[MSR_NR],
				      struct trace_record *rec)
{
	const struct span host = field[MSR_HOST], disk = field[MSR_DISK];
	char name[256];
	int len;

	if (host.len + disk.len + 2 > sizeof(name))
		return reader_bad(r, line, "its host name is too long");
	len = snprintf(name, sizeof(name), "%.*s.%.*s", (int)host.len, host.at,
		       (int)disk.len, disk.at);
	return reader_target(r, line, (struct span){ name, (size_t)len }, rec);
}

static enum reader_result msr_next(struct reader *r, struct trace_record *rec)
{
	struct span field[MSR_NR + 1];
	struct input_line line;
	const char *reason;

	r->times = READER_TIMES;
	do {
		const enum reader_result result = reader_line(r, &line);

		if (result != READER_RECORD)
			return result;
		if (span_fields(line.text, ',', field, MSR_NR + 1) != MSR_NR)
			return reader_bad(r, line.number,
					  "does not have seven fields");
	} while (is_header(field[MSR_TIME]));

	reason = parse_msr(field, rec);
	if (reason)
		return reader_bad(r, line.number, reason);
	return take_target(r, line.number, field, rec);
}

const struct reader_format msr_format = {
	.name = "msr",
	.summary = "MSR Cambridge CSV (SNIA IOTTA)",
	.detect = msr_detect,
	.next = msr_next,
};
