/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * fio's I/O logs (fio HOWTO, "Trace file format", and iolog.c):
 *
 *	fio version 2 iolog		fio version 3 iolog
 *	NAME add|open|close		TIME NAME add|open|close
 *	NAME ACTION OFFSET LENGTH	TIME NAME ACTION OFFSET LENGTH
 *
 * TIME is microseconds since the log was opened, in whole numbers.  Version 2
 * has no times but the action "wait", which fio documents as microseconds
 * since the last wait, and obeys as milliseconds since it started, so that an
 * equal or smaller wait does nothing.  We do what fio does.
 *
 * Names have no blanks in what fio writes; lines are taken from their right
 * end, so that other writers' may have.  Version 1 is `rw, offset, length`,
 * without header, name or time.
 */
#include <errno.h>
#include <string.h>

#include "tools/replay/reader.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)

/* One more than a line with a name of many words ever has is not needed. */
#define WORDS_MAX 64

struct fio_state {
	unsigned int version; /* 0: the header was not read yet */
	uint64_t wait_ns;     /* version 2: where the last wait ended */
};

static const struct {
	const char *word;
	enum trace_op op;
	unsigned int flags;
} actions[] = {
	{ "read", TRACE_READ, 0 },
	{ "write", TRACE_WRITE, 0 },
	{ "trim", TRACE_TRIM, 0 },
	{ "sync", TRACE_FLUSH, 0 },
	{ "datasync", TRACE_FLUSH, TRACE_DATA_ONLY },
};

#define NR_ACTIONS (sizeof(actions) / sizeof(actions[0]))

static unsigned int version_of(struct span line)
{
	if (span_is(line, "fio version 2 iolog"))
		return 2;
	return span_is(line, "fio version 3 iolog") ? 3 : 0;
}

static bool fio_detect(struct span bytes)
{
	struct span line;

	return reader_peek_line(&bytes, &line) && version_of(line);
}

/* Offset and length of *@rec from @word[0] and @word[1]; NULL or a reason. */
static const char *read_extent(const struct span word[2],
			       struct trace_record *rec)
{
	if (span_number(word[0], &rec->offset))
		return "its offset is not a number";
	if (span_number(word[1], &rec->length))
		return "its length is not a number";
	if (rec->offset > INT64_MAX || rec->length > INT64_MAX - rec->offset)
		return "ends beyond 2^63 bytes";
	return NULL;
}

/* From the first of the words to the end of the last. */
static struct span join(const struct span *word, size_t nr)
{
	const struct span last = word[nr - 1];

	return (struct span){ word[0].at,
			      (size_t)(last.at + last.len - word[0].at) };
}

static bool is_file_action(struct span word)
{
	return span_is(word, "add") || span_is(word, "open") ||
	       span_is(word, "close");
}

static enum reader_result take_wait(struct reader *r, uint64_t line,
				    struct span value)
{
	struct fio_state *s = r->state;
	uint64_t until;

	if (s->version == 3)
		return reader_bad(r, line, "'wait' is not in version 3");
	if (span_number(value, &until) ||
	    __builtin_mul_overflow(until, NS_PER_MS, &until))
		return reader_bad(r, line, "its wait is not a number");
	if (until > s->wait_ns)
		s->wait_ns = until;
	r->times = READER_WAITS;
	return READER_END;
}

/*
 * One line's words, behind its time.  READER_END stands for a line that is no
 * record: the caller goes on with the next.
 */
static enum reader_result take_words(struct reader *r, uint64_t line,
				     const struct span *word, size_t nr,
				     struct trace_record *rec)
{
	const char *reason;
	size_t i;

	if (nr >= 2 && is_file_action(word[nr - 1]))
		return READER_END;
	if (nr < 4)
		return reader_bad(r, line, "has too few words");
	if (span_is(word[nr - 3], "wait"))
		return take_wait(r, line, word[nr - 2]);
	for (i = 0; i < NR_ACTIONS; i++)
		if (span_is(word[nr - 3], actions[i].word))
			break;
	if (i == NR_ACTIONS)
		return reader_bad(r, line, "has an unknown action");
	reason = read_extent(word + nr - 2, rec);
	if (reason)
		return reader_bad(r, line, reason);
	rec->op = actions[i].op;
	rec->flags = actions[i].flags;
	/* What fio writes there for a sync means nothing. */
	if (rec->op == TRACE_FLUSH)
		rec->offset = rec->length = 0;
	return reader_target(r, line, join(word, nr - 3), rec);
}

static enum reader_result take_line(struct reader *r,
				    const struct input_line *line,
				    struct trace_record *rec)
{
	struct fio_state *s = r->state;
	struct span word[WORDS_MAX];
	size_t nr = span_words(line->text, word, WORDS_MAX), first = 0;

	if (s->version == 3) {
		if (span_number(word[0], &rec->time_ns) ||
		    __builtin_mul_overflow(rec->time_ns, NS_PER_US,
					   &rec->time_ns))
			return reader_bad(r, line->number,
					  "does not begin with a time");
		first = 1;
	} else {
		rec->time_ns = s->wait_ns;
	}
	return take_words(r, line->number, word + first, nr - first, rec);
}

static enum reader_result fio_next(struct reader *r, struct trace_record *rec)
{
	struct fio_state *s = r->state;
	struct input_line line;

	for (;;) {
		enum reader_result result = reader_line(r, &line);

		if (result != READER_RECORD)
			return result;
		/* Logs that were appended to repeat it. */
		if (version_of(line.text)) {
			s->version = version_of(line.text);
			r->version = s->version == 2 ? "v2" : "v3";
			if (s->version == 3)
				r->times = READER_TIMES;
			continue;
		}
		if (!s->version)
			return reader_bad(r, line.number,
					  "stands before the line 'fio version "
					  "N iolog'");
		result = take_line(r, &line, rec);
		if (result != READER_END)
			return result;
	}
}

const struct reader_format fio_format = {
	.name = "fio",
	.summary = "fio's I/O log, versions 2 and 3 (--write_iolog)",
	.detect = fio_detect,
	.state_bytes = sizeof(struct fio_state),
	.next = fio_next,
};

/* ---- version 1 ---- */

/* NULL, or what is wrong. */
static const char *parse_fio1(struct span line, struct trace_record *rec)
{
	struct span field[4];

	if (span_fields(line, ',', field, 4) != 3)
		return "does not have three fields";
	if (span_is(field[0], "0"))
		rec->op = TRACE_READ;
	else if (span_is(field[0], "1"))
		rec->op = TRACE_WRITE;
	else
		return "begins with neither 0 (read) nor 1 (write)";
	return read_extent(field + 1, rec);
}

static bool fio1_detect(struct span bytes)
{
	struct trace_record rec;
	struct span line;

	return reader_peek_line(&bytes, &line) && !parse_fio1(line, &rec);
}

static enum reader_result fio1_next(struct reader *r, struct trace_record *rec)
{
	static const struct span name = { "file", 4 };
	struct input_line line;
	const char *reason;
	enum reader_result result = reader_line(r, &line);

	if (result != READER_RECORD)
		return result;
	reason = parse_fio1(line.text, rec);
	if (reason)
		return reader_bad(r, line.number, reason);
	return reader_target(r, line.number, name, rec);
}

const struct reader_format fio1_format = {
	.name = "fiov1",
	.summary = "fio's I/O log, version 1: rw, offset, length",
	.detect = fio1_detect,
	.next = fio1_next,
};
