/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libarchive's "raw" format is a stream without an archive around it; with its
 * filters it unpacks whatever the stream is packed with.  Filters that start
 * other programs (lrzip, grzip) are not among those enabled: a trace comes
 * from anywhere.
 */
#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay/input.h"

#define READ_BYTES 65536

/*
 * buffer:  ....[start ........ end)....
 *	        ^ next unread byte
 * A line is at most INPUT_LINE_MAX, so room for two always holds one whole.
 */
struct input {
	struct archive *a;
	bool at_end;
	char error[256];
	uint64_t line;
	size_t start, end;
	char buffer[2 * INPUT_LINE_MAX + READ_BYTES];
};

static int fail(struct input *in)
{
	const char *text = archive_error_string(in->a);
	const int err = archive_errno(in->a);

	/* Of the two its texts say least about. */
	if (!text)
		text = "can't be read";
	else if (strncmp(text, "Error reading fd", 16) == 0 && err > 0)
		text = strerrordesc_np(err);
	else if (strstr(text, "No progress is possible"))
		text = "truncated xz input";
	snprintf(in->error, sizeof(in->error), "%s", text);
	in->at_end = true;
	return -EIO;
}

int input_open(struct input **out, int fd)
{
	struct input *in = calloc(1, sizeof(*in));
	struct archive_entry *entry;
	int err;

	if (!in)
		return -ENOMEM;
	in->a = archive_read_new();
	if (!in->a) {
		free(in);
		return -ENOMEM;
	}
	archive_read_support_filter_gzip(in->a);
	archive_read_support_filter_xz(in->a);
	archive_read_support_filter_zstd(in->a);
	archive_read_support_filter_bzip2(in->a);
	archive_read_support_filter_lz4(in->a);
	archive_read_support_format_raw(in->a);
	archive_read_support_format_empty(in->a);

	err = archive_read_open_fd(in->a, fd, READ_BYTES);
	if (err == ARCHIVE_OK)
		err = archive_read_next_header(in->a, &entry);
	if (err == ARCHIVE_EOF)
		in->at_end = true;
	else if (err != ARCHIVE_OK && err != ARCHIVE_WARN)
		(void)fail(in);
	*out = in;
	return 0;
}

void input_close(struct input *in)
{
	if (!in)
		return;
	archive_read_free(in->a);
	free(in);
}

const char *input_error(const struct input *in)
{
	return in->error;
}

/*
 * Add what can be had to the buffer.  Returns whether something came; an error
 * is kept for when what came before it was used up.
 */
static bool fill(struct input *in)
{
	la_ssize_t got;

	if (in->at_end)
		return false;
	if (in->start) {
		memmove(in->buffer, in->buffer + in->start,
			in->end - in->start);
		in->end -= in->start;
		in->start = 0;
	}
	assert(sizeof(in->buffer) - in->end >= READ_BYTES);
	got = archive_read_data(in->a, in->buffer + in->end, READ_BYTES);
	if (got < 0)
		(void)fail(in);
	else if (got == 0)
		in->at_end = true;
	else
		in->end += (size_t)got;
	return got > 0;
}

int input_peek(struct input *in, struct span *bytes)
{
	while (in->end - in->start < INPUT_LINE_MAX && fill(in))
		continue;
	bytes->at = in->buffer + in->start;
	bytes->len = in->end - in->start;
	if (bytes->len > INPUT_LINE_MAX)
		bytes->len = INPUT_LINE_MAX;
	return !bytes->len && *in->error ? -EIO : 0;
}

/*
 * Bytes before the next LF, with *@found telling whether there is one; reads
 * on until there is, or the line is too long.
 */
static size_t find_end(struct input *in, bool *found)
{
	size_t seen = 0;

	for (;;) {
		const size_t have = in->end - in->start;
		const char *const lf = memchr(in->buffer + in->start + seen,
					      '\n', have - seen);

		*found = lf;
		if (lf)
			return (size_t)(lf - (in->buffer + in->start));
		seen = have;
		if (have > INPUT_LINE_MAX || !fill(in))
			return have;
	}
}

/* Forget the rest of a line that is too long, up to its LF. */
static void skip_line(struct input *in)
{
	bool found = false;

	while (!found) {
		const size_t len = find_end(in, &found);

		in->start += len + (found ? 1 : 0);
		if (!found && !fill(in))
			return;
	}
}

int input_line(struct input *in, struct input_line *line)
{
	bool found;
	size_t len = find_end(in, &found);

	/* The last line of a stream that broke off is only a part. */
	if (!found && *in->error)
		return -EIO;
	if (!found && !len)
		return 0;
	*line = (struct input_line){
		.number = ++in->line,
		.text = { in->buffer + in->start, len },
	};
	if (len > INPUT_LINE_MAX) {
		line->text.len = 0;
		line->too_long = true;
		skip_line(in);
		return 1;
	}
	in->start += len + (found ? 1 : 0);
	if (len && line->text.at[len - 1] == '\r')
		line->text.len--;
	return 1;
}
