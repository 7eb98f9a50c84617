/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where a password comes from: the terminal, a file or a descriptor, never
 * arguments or the environment.  No terminal, no prompt; sources do not mix;
 * one try, never a loop.
 *
 * The password is what stands before the first LF, less one CR before that;
 * NUL is a byte like others; 1 to 4096 bytes.  Its bytes are read one by one
 * into secret memory, so nothing has to be wiped elsewhere, and two passwords
 * can be two lines of one descriptor.
 */
#ifndef TOOLS_PASSWORD_H
#define TOOLS_PASSWORD_H

#include <stdbool.h>
#include <stddef.h>

#include "cipher/defs.h"
#include "cipher/secret.h"
#include "tools/command.h"

#define PASSWORD_BYTES_MAX 4096

/* Secret memory that reading passwords takes, on top of the ciphers'. */
#define PASSWORD_POOL_BYTES (8 * (PASSWORD_BYTES_MAX + 512))

/* Zero-filled: the terminal. */
struct password_source {
	const char *file;    /* --password-file */
	struct option_fd fd; /* --password-fd */
};

/*
 * Rows of an option table for the struct password_source at @offset; @prefix is
 * "" or "new-", @whose is "the password" or "the new password".
 */
/* clang-format off */
#define PASSWORD_OPTIONS(offset, prefix, whose)                                \
	{ prefix "password-file", 0, "FILE",                                   \
	  (offset) + offsetof(struct password_source, file), option_string,    \
	  "Read " whose " from the first line of FILE." },                     \
	{ prefix "password-fd", 0, "N",                                        \
	  (offset) + offsetof(struct password_source, fd), option_fd,          \
	  "Read " whose " from the first line of descriptor N." }
/* clang-format on */

enum password_kind {
	PASSWORD_OLD, /* opens something: asked for once */
	PASSWORD_NEW, /* will be set: at a terminal, asked twice */
};

/* How to ask. */
struct password_request {
	const char *what; /* the container, for messages */
	enum password_kind kind;
	const char *prefix; /* of its options: "" or "new-" */
	/* Another password is read from the same descriptor later. */
	bool more_follows;
};

/*
 * Check that at most one source is named; before anything is opened or
 * asked.  Returns TOOL_DONE or, after a message, TOOL_USAGE.
 */
must_check enum tool_exit
password_source_check(const struct password_source *src,
		      const struct password_request *r);

/*
 * Read one password into @out, made here.  cipher_init() comes first.
 *
 * Returns TOOL_DONE; or, after a message and with @out empty: TOOL_USAGE (no
 * terminal; empty, too long, closed or ended source; no such file),
 * TOOL_FAILED (the two at the terminal differ; out of memory; I/O error).
 */
must_check enum tool_exit password_read(const struct password_source *src,
					const struct password_request *r,
					struct secret *out);

/*
 * The part of password_read() that reads bytes, for tests.  Returns 0 and
 * whether bytes follow the line; -ENODATA (nothing before the line's end or the
 * file's), -E2BIG (above PASSWORD_BYTES_MAX), -ENOMEM, or read(2)'s errno.
 */
must_check int password_read_fd(int fd, struct secret *out, bool *more_follows);

/*
 * Whether both are the same file, by whatever name; false for terminals.  A
 * descriptor named twice is two lines, thus not the same.
 */
bool password_source_same_file(const struct password_source *a,
			       const struct password_source *b);

#endif
