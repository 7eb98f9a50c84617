/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One file of a trace as a stream of records, whatever its format.
 *
 * A format is a row: how its first bytes look, and how to get the next record
 * out of the input.  A line that is no valid record is not the end: it comes
 * back as READER_BAD with its number and a reason, and reading goes on.
 *
 * Not a record, and not bad: blank lines, comments, header rows (repeated ones
 * too), and what a format has beside operations.
 */
#ifndef TOOLS_REPLAY_READER_H
#define TOOLS_REPLAY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "tools/replay/input.h"
#include "tools/replay/record.h"
#include "tools/replay/targets.h"

enum reader_result {
	READER_RECORD,
	READER_BAD, /* see bad_line and bad_reason */
	READER_END,
	READER_FAILED, /* nothing more can be read; see error */
};

/* What the times of a format are good for. */
enum reader_times {
	READER_NO_TIMES,
	READER_WAITS, /* kept for replay; not first and last time of a trace */
	READER_TIMES,
};

struct reader;

struct reader_format {
	const char *name;    /* for --format and EXPECTED's first column */
	const char *summary; /* for help */
	/* Whether a file that begins with @bytes is one; need not be whole. */
	bool (*detect)(struct span bytes);
	/* Of the reader's state: allocated before, zero-filled. */
	size_t state_bytes;
	/* Fill *@r; returns as reader_next(), which checks the record. */
	enum reader_result (*next)(struct reader *r, struct trace_record *rec);
};

/* All rows; NULL past the end. */
const struct reader_format *reader_format_at(size_t index);
/* NULL if there is none. */
const struct reader_format *reader_format_by_name(const char *name);

struct reader_options {
	const struct reader_format *format; /* NULL: to be detected */
	char event; /* which events of a block trace count; 0: the best */
};

struct reader {
	const struct reader_format *format;
	struct input *in;
	struct targets *targets; /* the caller's */
	void *state;

	/* Set by the format, at the latest with its first record. */
	enum reader_times times;
	char event;	     /* of a block trace: 'Q', 'D', 'C'; else 0 */
	const char *version; /* "v2"; NULL: there is but one */

	/* After READER_BAD. */
	uint64_t bad_line;
	const char *bad_reason; /* static */
	/* After READER_FAILED, and where opening fails. */
	const char *error;
};

/*
 * Begin to read @fd, which stays the caller's, as does @targets: names found
 * are added to it.  Returns 0, -ENOMEM, -EIO (see @error) or -ENOMSG: no
 * format fits.  *@r is to be closed in either case.
 */
must_check int reader_open(struct reader *r, int fd, struct targets *targets,
			   const struct reader_options *o);
void reader_close(struct reader *r);

/* The next record. */
must_check enum reader_result reader_next(struct reader *r,
					  struct trace_record *rec);

/* ---- for formats ---- */

/*
 * The next line that is not blank.  Returns READER_RECORD; READER_BAD for one
 * that is too long or holds a NUL byte; READER_END; READER_FAILED.
 */
must_check enum reader_result reader_line(struct reader *r,
					  struct input_line *line);

/* Say that @line is bad, because of static @reason. */
enum reader_result reader_bad(struct reader *r, uint64_t line,
			      const char *reason);

/* Number the target @name in *@rec; READER_RECORD, or what is to be returned */
must_check enum reader_result reader_target(struct reader *r, uint64_t line,
					    struct span name,
					    struct trace_record *rec);

/* The next line of @bytes for detection; false at their end. */
bool reader_peek_line(struct span *bytes, struct span *line);

extern const struct reader_format fio_format;
extern const struct reader_format fio1_format;
extern const struct reader_format msr_format;
extern const struct reader_format blkparse_format;

#endif
