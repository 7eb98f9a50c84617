/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A trace from bytes in a test, read to its end.
 */
#ifndef TESTS_UNIT_REPLAY_TEXT_TRACE_H
#define TESTS_UNIT_REPLAY_TEXT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/replay/reader.h"

#define TEXT_RECORDS_MAX 64

struct text_trace {
	int err; /* of reader_open() */
	const char *format;
	enum reader_times times;
	char event;
	size_t nr, nr_bad;
	struct trace_record rec[TEXT_RECORDS_MAX];
	char target[TEXT_RECORDS_MAX][64];
	uint64_t bad_line[TEXT_RECORDS_MAX];
	char bad_reason[TEXT_RECORDS_MAX][64];
	bool failed; /* READER_FAILED came */
	char error[128];
	uint32_t nr_targets;
};

static inline int text_fd(const void *bytes, size_t len)
{
	const int fd = memfd_create("trace", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len ||
	    lseek(fd, 0, SEEK_SET))
		_exit(9);
	return fd;
}

static inline void text_take(struct text_trace *t, struct reader *r,
			     const struct trace_record *rec)
{
	if (t->nr < TEXT_RECORDS_MAX) {
		t->rec[t->nr] = *rec;
		strncpy(t->target[t->nr], r->targets->name[rec->target], 63);
	}
	t->nr++;
}

static inline void text_take_bad(struct text_trace *t, const struct reader *r)
{
	if (t->nr_bad < TEXT_RECORDS_MAX) {
		t->bad_line[t->nr_bad] = r->bad_line;
		strncpy(t->bad_reason[t->nr_bad], r->bad_reason, 63);
	}
	t->nr_bad++;
}

/* @o may be NULL. */
static inline void text_read_bytes(struct text_trace *t, const void *bytes,
				   size_t len, const struct reader_options *o)
{
	static const struct reader_options none;
	struct targets targets = { 0 };
	const int fd = text_fd(bytes, len);
	enum reader_result result = READER_END;
	struct trace_record rec;
	struct reader r;

	memset(t, 0, sizeof(*t));
	t->err = reader_open(&r, fd, &targets, o ? o : &none);
	while (!t->err && (result = reader_next(&r, &rec)) != READER_END &&
	       result != READER_FAILED) {
		if (result == READER_BAD)
			text_take_bad(t, &r);
		else
			text_take(t, &r, &rec);
	}
	t->failed = result == READER_FAILED;
	if (r.error)
		strncpy(t->error, r.error, sizeof(t->error) - 1);
	t->format = r.format ? r.format->name : NULL;
	t->times = r.times;
	t->event = r.event;
	t->nr_targets = targets.nr;
	reader_close(&r);
	targets_destroy(&targets);
	close(fd);
}

static inline void text_read(struct text_trace *t, const char *text)
{
	text_read_bytes(t, text, strlen(text), NULL);
}

#endif
