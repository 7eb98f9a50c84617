/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What all commands of `tusk` share: exit codes, messages, and the table that
 * turns an errno of the layers below into both.  Beside it:
 *
 *	command.h	the table row of a command, and its options
 *	units.h		sizes and times as people write them
 *	password.h	where a password comes from
 *	unlock.h	open a container, read its header, unlock it
 *
 * Only tools/ prints.  Data goes to stdout, messages to stderr: one line each,
 * `tusk mount: vault.tusk: what is wrong; what to do`.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdbool.h>

#include "cipher/defs.h"

/*
 * The contract with scripts; the numbers never change.  X(name, number, what
 * `tusk help` and the manual say)
 */
#define TOOL_EXITS(X)                                                          \
	X(TOOL_DONE, 0, "done")                                                \
	X(TOOL_FAILED, 1, "failed for another reason, which the message says") \
	X(TOOL_USAGE, 2, "wrong usage, or no password to be had")              \
	X(TOOL_WRONG_SECRET, 3, "wrong password or key")                       \
	X(TOOL_DAMAGED, 4, "the container is damaged")                         \
	X(TOOL_IN_USE, 5, "the container is in use")                           \
	X(TOOL_NO_CONTAINER, 6, "not a container")                             \
	X(TOOL_MOUNT_POINT, 7, "the mount point is unfit")                     \
	X(TOOL_NO_FUSE, 8, "FUSE is unavailable")                              \
	X(TOOL_NO_SPACE, 9, "no space left")                                   \
	X(TOOL_UNSUPPORTED, 10, "a version or feature that this tusk lacks")   \
	X(TOOL_REPAIRED, 11, "damage was found and repaired")                  \
	X(TOOL_VERIFY_FAILED, 12, "verification failed")                       \
	X(TOOL_INTERRUPTED, 130, "interrupted")

enum tool_exit {
#define X(name, number, text) name = (number),
	TOOL_EXITS(X)
#undef X
};

/*
 * Name of the running command ("mount"), put in front of every message; the
 * string must live on.  Set once by tusk.c.
 */
void tool_set_command(const char *name);
const char *tool_command_name(void);

/*
 * Where messages go from now on, in place of stderr: a daemon sends them to
 * syslog.  @priority is one of syslog(3): LOG_ERR, LOG_WARNING, LOG_NOTICE.
 * @line has no newline and no control characters.  NULL: stderr again.  Call
 * it before threads start.  @sink must be thread-safe.
 */
void tool_set_sink(void (*sink)(int priority, const char *line));

/*
 * Print one line about @what (a path as the user gave it; NULL: nothing in
 * particular).  Control characters, in names from outside, become '?'.
 * Never fails, keeps errno, may be called by any thread.
 */
void tool_warn(const char *what, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tool_note(const char *what, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for an error; returns @code, so that callers can return it. */
enum tool_exit tool_fail(enum tool_exit code, const char *what,
			 const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * What was being done when an error came: one errno may mean several things.
 * TOOL_AT_ANY stands for "none of the others".
 */
enum tool_stage {
	TOOL_AT_ANY,
	TOOL_AT_OPEN,	/* container_open() */
	TOOL_AT_CREATE, /* container_create(), volume_format() */
	TOOL_AT_HEADER, /* header_read() */
	TOOL_AT_UNLOCK, /* header_unlock() */
	TOOL_AT_VOLUME, /* volume_open(), check_container() */
	TOOL_AT_CHANGE, /* super_replace_header() */
};

/*
 * Say what negative errno @err means for @what at @stage, by the table in
 * tool.c; returns the exit code to end with.
 */
enum tool_exit tool_fail_errno(enum tool_stage stage, const char *what,
			       int err);

/* The row's text and exit code without printing (tests); @text is static. */
enum tool_exit tool_explain(enum tool_stage stage, int err, const char **text);

/*
 * From here to its end the process is not ended by SIGHUP, SIGINT, SIGQUIT and
 * SIGTERM: for the short time in which a command writes what must be whole or
 * not be.  They stay blocked, as what was done then has to be told.
 */
void tool_hold_signals(void);

/* Whether one of them came since. */
bool tool_signal_came(void);

/*
 * Flush stdout at the end of a command that printed data: a full disk behind
 * a redirection must not look like success.  Returns @code, or TOOL_FAILED
 * after a message.
 */
enum tool_exit tool_finish_output(enum tool_exit code);

/*
 * One line of data on stdout, with a newline; control characters in it become
 * '?', since file names from a container may hold terminal sequences.
 */
void tool_print_line(const char *line);

#endif
