/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A trace: one or several files of one format, as one stream ordered by time.
 * Files are merged: the record with the least time first, of equal ones that
 * of the file named first; the order within a file stays as it is.
 */
#ifndef TOOLS_REPLAY_TRACE_H
#define TOOLS_REPLAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "tools/replay/reader.h"
#include "tools/replay/record.h"
#include "tools/replay/targets.h"

/* Each is open all the time. */
#define TRACE_FILES_MAX 256

enum trace_passes {
	TRACE_ONCE,
	TRACE_AGAIN, /* for trace_rewind(): stdin is copied to a file */
};

struct trace_file {
	const char *path; /* the caller's; "-": stdin */
	int fd;
	bool own_fd;
	struct reader reader;
	bool have_head, ended;
	struct trace_record head;
};

struct trace {
	struct trace_file *file;
	size_t nr_files;
	struct targets targets;
	struct reader_options options;

	/* After READER_BAD and READER_FAILED, and where opening fails. */
	const char *bad_path;
	uint64_t bad_line;
	const char *bad_reason;
};

/*
 * Open the @nr files at @paths, which must live on.  Returns 0 or negative
 * errno with bad_path and bad_reason set; *@t is to be closed in either case.
 */
must_check int trace_open(struct trace *t, char *const *paths, size_t nr,
			  const struct reader_options *o,
			  enum trace_passes passes);
void trace_close(struct trace *t);

/* From the start again; names keep their numbers.  Returns like trace_open() */
must_check int trace_rewind(struct trace *t);

must_check enum reader_result trace_next(struct trace *t,
					 struct trace_record *rec);

/* "fio v3", "blkparse(Q)"; known after the first record.  Into @out. */
#define TRACE_FORMAT_BYTES 32
void trace_format_name(const struct trace *t,
		       char out[static TRACE_FORMAT_BYTES]);

/* What its records' times are good for; known after the first record. */
enum reader_times trace_times(const struct trace *t);

#endif
