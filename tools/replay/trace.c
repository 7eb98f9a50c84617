/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Few files, so the least head is looked for, not kept in a heap.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/replay/trace.h"

static int fail(struct trace *t, const struct trace_file *f, int err,
		const char *reason)
{
	t->bad_path = f->path;
	t->bad_line = 0;
	t->bad_reason = reason ? reason : strerrordesc_np(-err);
	return err;
}

/* A file without a name, gone with its descriptor. */
static int open_unnamed(void)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets any */
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd;

	if (!dir || !*dir)
		dir = "/var/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/tusk-trace-XXXXXX", dir) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		const ssize_t done = write(fd, data, len);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		data += done;
		len -= (size_t)done;
	}
	return 0;
}

/*
 * What can't be read twice (a pipe) is copied, packed as it is, to where it
 * can.
 */
static int spool(struct trace_file *f)
{
	char buffer[65536];
	const int to = open_unnamed();
	int err = to < 0 ? to : 0;

	while (!err) {
		const ssize_t got = read(f->fd, buffer, sizeof(buffer));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err = -errno;
		if (got <= 0)
			break;
		err = write_all(to, buffer, (size_t)got);
	}
	if (!err && lseek(to, 0, SEEK_SET) < 0)
		err = -errno;
	if (err) {
		if (to >= 0)
			close(to);
		return err;
	}
	if (f->own_fd)
		close(f->fd);
	f->fd = to;
	f->own_fd = true;
	return 0;
}

static int open_file(struct trace *t, struct trace_file *f,
		     enum trace_passes passes)
{
	int err = 0;

	if (strcmp(f->path, "-") == 0) {
		f->fd = STDIN_FILENO;
	} else {
		f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		f->own_fd = true;
	}
	if (f->fd < 0)
		return fail(t, f, -errno, NULL);
	if (passes == TRACE_AGAIN && lseek(f->fd, 0, SEEK_CUR) < 0)
		err = spool(f);
	return err ? fail(t, f, err, NULL) : 0;
}

static int start_reader(struct trace *t, struct trace_file *f)
{
	int err;

	f->have_head = f->ended = false;
	err = reader_open(&f->reader, f->fd, &t->targets, &t->options);
	if (err)
		return fail(t, f, err, f->reader.error);
	if (f->reader.format != t->file[0].reader.format)
		return fail(t, f, -EINVAL,
			    "is not of the format of the file before it");
	return 0;
}

int trace_open(struct trace *t, char *const *paths, size_t nr,
	       const struct reader_options *o, enum trace_passes passes)
{
	int err = 0;

	*t = (struct trace){ .options = *o };
	t->file = calloc(nr + 1, sizeof(*t->file));
	if (!t->file) {
		t->bad_path = paths[0];
		t->bad_reason = strerrordesc_np(ENOMEM);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr && !err; i++) {
		struct trace_file *f = &t->file[t->nr_files++];

		f->path = paths[i];
		f->fd = -1;
		if (t->nr_files > TRACE_FILES_MAX)
			err = fail(t, f, -E2BIG, "is one file too many");
		if (!err)
			err = open_file(t, f, passes);
		if (!err)
			err = start_reader(t, f);
	}
	return err;
}

void trace_close(struct trace *t)
{
	for (size_t i = 0; i < t->nr_files; i++) {
		reader_close(&t->file[i].reader);
		if (t->file[i].own_fd && t->file[i].fd >= 0)
			close(t->file[i].fd);
	}
	free(t->file);
	targets_destroy(&t->targets);
	*t = (struct trace){ 0 };
}

int trace_rewind(struct trace *t)
{
	for (size_t i = 0; i < t->nr_files; i++) {
		struct trace_file *f = &t->file[i];

		reader_close(&f->reader);
		if (lseek(f->fd, 0, SEEK_SET) < 0)
			return fail(t, f, -errno, NULL);
	}
	for (size_t i = 0; i < t->nr_files; i++) {
		const int err = start_reader(t, &t->file[i]);

		if (err)
			return err;
	}
	return 0;
}

/* READER_RECORD: it has a head; READER_END: it has ended. */
static enum reader_result fetch(struct trace *t, struct trace_file *f)
{
	enum reader_result result;

	if (f->have_head)
		return READER_RECORD;
	if (f->ended)
		return READER_END;
	result = reader_next(&f->reader, &f->head);
	f->have_head = result == READER_RECORD;
	f->ended = result == READER_END || result == READER_FAILED;
	t->bad_path = f->path;
	if (result == READER_BAD) {
		t->bad_line = f->reader.bad_line;
		t->bad_reason = f->reader.bad_reason;
	} else if (result == READER_FAILED) {
		t->bad_line = 0;
		t->bad_reason = f->reader.error;
	}
	return result;
}

enum reader_result trace_next(struct trace *t, struct trace_record *rec)
{
	struct trace_file *least = NULL;

	for (size_t i = 0; i < t->nr_files; i++) {
		struct trace_file *f = &t->file[i];
		const enum reader_result result = fetch(t, f);

		if (result == READER_BAD || result == READER_FAILED)
			return result;
		if (result == READER_RECORD &&
		    (!least || f->head.time_ns < least->head.time_ns))
			least = f;
	}
	if (!least)
		return READER_END;
	*rec = least->head;
	least->have_head = false;
	return READER_RECORD;
}

void trace_format_name(const struct trace *t,
		       char out[static TRACE_FORMAT_BYTES])
{
	const struct reader *r = &t->file[0].reader;

	if (r->event)
		snprintf(out, TRACE_FORMAT_BYTES, "%s(%c)", r->format->name,
			 r->event);
	else
		snprintf(out, TRACE_FORMAT_BYTES, "%s", r->format->name);
}

enum reader_times trace_times(const struct trace *t)
{
	enum reader_times best = READER_NO_TIMES;

	for (size_t i = 0; i < t->nr_files; i++)
		if (t->file[i].reader.times > best)
			best = t->file[i].reader.times;
	return best;
}
