/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bytes of a trace, unpacked on the way: what gzip, xz, zstd, bzip2 or
 * lz4 made is told by its first bytes, never by its name.  Read once, front to
 * back, with a buffer of fixed size.
 */
#ifndef TOOLS_REPLAY_INPUT_H
#define TOOLS_REPLAY_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "tools/replay/span.h"

/* A longer line is no line of a trace; it is skipped and said to be so. */
#define INPUT_LINE_MAX 65536

struct input;

struct input_line {
	struct span text; /* without the end of line; valid until the next */
	uint64_t number;  /* from 1 */
	bool too_long;	  /* text is empty then */
};

/*
 * Begin to read what @fd gives from where it stands; the descriptor stays the
 * caller's.  Returns 0 or -ENOMEM; what else is wrong comes with the first
 * read.
 */
must_check int input_open(struct input **out, int fd);
void input_close(struct input *in);

/*
 * The first bytes that were not yet read, up to INPUT_LINE_MAX of them, fewer
 * only at the end.  Returns 0 or -EIO.
 */
must_check int input_peek(struct input *in, struct span *bytes);

/*
 * The next line; one that ends with the file and not with LF is one as well.
 * Returns 1, 0 at the end, or -EIO.
 */
must_check int input_line(struct input *in, struct input_line *line);

/* After -EIO: what is wrong, "truncated gzip input"; valid until closed. */
const char *input_error(const struct input *in);

#endif
