/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What all formats share: finding out which it is, lines, and the bounds that
 * every record keeps.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay/reader.h"

/* In the order in which they are asked: sure marks before mere shapes. */
static const struct reader_format *const formats[] = {
	&fio_format,
	&blkparse_format,
	&msr_format,
	&fio1_format,
};

#define NR_FORMATS (sizeof(formats) / sizeof(formats[0]))

const struct reader_format *reader_format_at(size_t index)
{
	return index < NR_FORMATS ? formats[index] : NULL;
}

const struct reader_format *reader_format_by_name(const char *name)
{
	for (size_t i = 0; i < NR_FORMATS; i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

const char *trace_op_name(enum trace_op op)
{
	static const char *const names[TRACE_OP_NR] = {
		[TRACE_READ] = "read",	 [TRACE_WRITE] = "write",
		[TRACE_TRIM] = "trim",	 [TRACE_FLUSH] = "flush",
		[TRACE_OPEN] = "open",	 [TRACE_CLOSE] = "close",
		[TRACE_OTHER] = "other",
	};

	return names[op];
}

bool reader_peek_line(struct span *bytes, struct span *line)
{
	const char *lf;

	if (!bytes->len)
		return false;
	lf = memchr(bytes->at, '\n', bytes->len);
	line->at = bytes->at;
	line->len = lf ? (size_t)(lf - bytes->at) : bytes->len;
	bytes->at += line->len + (lf ? 1 : 0);
	bytes->len -= line->len + (lf ? 1 : 0);
	*line = span_trim(*line);
	return true;
}

static int detect(struct reader *r)
{
	struct span bytes;
	int err;

	err = input_peek(r->in, &bytes);
	if (err) {
		r->error = input_error(r->in);
		return err;
	}
	for (size_t i = 0; i < NR_FORMATS && !r->format; i++)
		if (formats[i]->detect(bytes))
			r->format = formats[i];
	if (!r->format && !bytes.len)
		r->error = "it is empty";
	else if (!r->format)
		r->error = "its format is not recognised";
	return r->format ? 0 : -ENOMSG;
}

int reader_open(struct reader *r, int fd, struct targets *targets,
		const struct reader_options *o)
{
	int err;

	*r = (struct reader){
		.format = o->format,
		.targets = targets,
		.event = o->event,
	};
	err = input_open(&r->in, fd);
	if (!err && !r->format)
		err = detect(r);
	if (err) {
		if (!r->error)
			r->error = strerrordesc_np(-err);
		return err;
	}
	/* One byte at least: calloc(0) may be NULL. */
	r->state = calloc(1, r->format->state_bytes + 1);
	if (!r->state) {
		r->error = strerrordesc_np(ENOMEM);
		return -ENOMEM;
	}
	return 0;
}

void reader_close(struct reader *r)
{
	input_close(r->in);
	free(r->state);
	*r = (struct reader){ 0 };
}

enum reader_result reader_bad(struct reader *r, uint64_t line,
			      const char *reason)
{
	r->bad_line = line;
	r->bad_reason = reason;
	return READER_BAD;
}

enum reader_result reader_line(struct reader *r, struct input_line *line)
{
	for (;;) {
		const int got = input_line(r->in, line);

		if (got < 0) {
			r->error = input_error(r->in);
			return READER_FAILED;
		}
		if (!got)
			return READER_END;
		if (line->too_long)
			return reader_bad(r, line->number,
					  "longer than 65536 bytes");
		if (memchr(line->text.at, '\0', line->text.len))
			return reader_bad(r, line->number, "holds a NUL byte");
		line->text = span_trim(line->text);
		if (line->text.len)
			return READER_RECORD;
	}
}

enum reader_result reader_target(struct reader *r, uint64_t line,
				 struct span name, struct trace_record *rec)
{
	switch (targets_get(r->targets, name, &rec->target)) {
	case 0:
		return READER_RECORD;
	case -E2BIG:
		return reader_bad(r, line, "more than 65536 targets");
	default:
		r->error = strerrordesc_np(ENOMEM);
		return READER_FAILED;
	}
}

enum reader_result reader_next(struct reader *r, struct trace_record *rec)
{
	enum reader_result result;

	*rec = (struct trace_record){ 0 };
	result = r->format->next(r, rec);
	if (result != READER_RECORD)
		return result;
	assert(rec->op < TRACE_OP_NR && rec->target < r->targets->nr);
	assert(rec->offset <= INT64_MAX &&
	       rec->length <= INT64_MAX - rec->offset);
	return READER_RECORD;
}
