/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Messages, and what the errors of the layers below mean to a person.
 *
 * The two statics are the program's only mutable globals: what it is called
 * and where it speaks to.  Both are set before there are threads.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "stats/utf8.h"
#include "tools/tool.h"

static const char *command_name = "";
static void (*message_sink)(int priority, const char *line);

void tool_set_command(const char *name)
{
	command_name = name;
}

const char *tool_command_name(void)
{
	return command_name;
}

void tool_set_sink(void (*sink)(int priority, const char *line))
{
	message_sink = sink;
}

/* Room for a path of 4096 bytes and what is said about it. */
#define LINE_BYTES 8192

/*
 * One write(2), so that lines of several threads or processes stay whole.
 * Nobody is left to hear that it failed.
 */
static void write_stderr(const char *line)
{
	char buf[LINE_BYTES + 64];
	int len;

	len = snprintf(buf, sizeof(buf), "tusk%s%s: %s\n",
		       *command_name ? " " : "", command_name, line);
	if (len < 0)
		return;
	if ((size_t)len >= sizeof(buf))
		len = sizeof(buf) - 1;

	const ssize_t nr = write(STDERR_FILENO, buf, len);

	(void)nr;
}

static void say(int priority, const char *what, const char *severity,
		const char *format, va_list args)
	__attribute__((format(printf, 4, 0)));

static void say(int priority, const char *what, const char *severity,
		const char *format, va_list args)
{
	char line[LINE_BYTES], clean[LINE_BYTES];
	const int saved = errno;
	int len;

	len = snprintf(line, sizeof(line), "%s%s%s", what ? what : "",
		       what ? ": " : "", severity);
	if (len >= 0 && (size_t)len < sizeof(line))
		vsnprintf(line + len, sizeof(line) - len, format, args);
	utf8_clean(clean, sizeof(clean), sizeof(clean), line);

	if (message_sink)
		message_sink(priority, clean);
	else
		write_stderr(clean);
	errno = saved;
}

void tool_warn(const char *what, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(LOG_WARNING, what, "warning: ", format, args);
	va_end(args);
}

void tool_note(const char *what, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(LOG_NOTICE, what, "", format, args);
	va_end(args);
}

enum tool_exit tool_fail(enum tool_exit code, const char *what,
			 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(LOG_ERR, what, "", format, args);
	va_end(args);
	return code;
}

/*
 * The first row that fits wins, so a stage's own rows stand before those of
 * TOOL_AT_ANY.
 */
static const struct explanation {
	enum tool_stage stage;
	int err;
	enum tool_exit code;
	const char *text;
} explanations[] = {
	{ TOOL_AT_OPEN, EBUSY, TOOL_IN_USE,
	  "in use by another process; unmount it first" },
	{ TOOL_AT_OPEN, ENOENT, TOOL_NO_CONTAINER,
	  "no such file; 'tusk create' makes a container" },
	{ TOOL_AT_OPEN, ENOTDIR, TOOL_NO_CONTAINER,
	  "no such file: a part of the path is not a folder" },
	{ TOOL_AT_OPEN, EISDIR, TOOL_NO_CONTAINER,
	  "a folder, not a container" },
	{ TOOL_AT_OPEN, ENOTBLK, TOOL_NO_CONTAINER,
	  "not a container: neither a regular file nor a block device" },
	{ TOOL_AT_OPEN, EACCES, TOOL_FAILED,
	  "permission denied; see its owner and mode with 'ls -l'" },
	{ TOOL_AT_OPEN, EPERM, TOOL_FAILED,
	  "not permitted; see its attributes with 'lsattr'" },
	{ TOOL_AT_OPEN, EROFS, TOOL_FAILED, "its file system is read-only" },

	{ TOOL_AT_CREATE, EEXIST, TOOL_FAILED,
	  "exists already and is left as it is; choose another name" },
	{ TOOL_AT_CREATE, ENOTEMPTY, TOOL_FAILED,
	  "the device holds something; --overwrite destroys it" },
	{ TOOL_AT_CREATE, EISDIR, TOOL_FAILED,
	  "a folder; name a file to create in it" },
	{ TOOL_AT_CREATE, ENOENT, TOOL_FAILED,
	  "the folder it should be in does not exist; make it first" },
	{ TOOL_AT_CREATE, ENOTDIR, TOOL_FAILED,
	  "a part of the path is not a folder" },
	{ TOOL_AT_CREATE, EACCES, TOOL_FAILED,
	  "permission denied; the folder must be writable" },
	{ TOOL_AT_CREATE, EROFS, TOOL_FAILED, "its file system is read-only" },
	{ TOOL_AT_CREATE, ENOTBLK, TOOL_FAILED,
	  "neither a block device nor a name for a new file" },
	{ TOOL_AT_CREATE, EBUSY, TOOL_IN_USE,
	  "the device is in use; unmount it first" },
	{ TOOL_AT_CREATE, ERANGE, TOOL_FAILED,
	  "the device is smaller than 32 MiB, the smallest container" },
	{ TOOL_AT_CREATE, EFBIG, TOOL_FAILED,
	  "its file system cannot hold a file of this size" },

	{ TOOL_AT_HEADER, ENOMSG, TOOL_NO_CONTAINER,
	  "not a container of tuskfs" },
	{ TOOL_AT_HEADER, EOPNOTSUPP, TOOL_UNSUPPORTED,
	  "made by a later version of tuskfs; use that version" },
	{ TOOL_AT_HEADER, EUCLEAN, TOOL_DAMAGED,
	  "both copies of the header are damaged; put back a backup" },
	{ TOOL_AT_HEADER, EBADMSG, TOOL_DAMAGED,
	  "both copies of the header are damaged; put back a backup" },
	{ TOOL_AT_HEADER, EIO, TOOL_DAMAGED,
	  "its header cannot be read: I/O error" },

	{ TOOL_AT_UNLOCK, EACCES, TOOL_WRONG_SECRET, "wrong password" },
	{ TOOL_AT_UNLOCK, EBADMSG, TOOL_DAMAGED,
	  "the password is right, but the header is not authentic: "
	  "damaged or tampered with; put back a backup" },
	{ TOOL_AT_UNLOCK, ERANGE, TOOL_DAMAGED,
	  "a key slot asks for an absurd amount of work: the header is "
	  "damaged" },
	{ TOOL_AT_UNLOCK, EOPNOTSUPP, TOOL_UNSUPPORTED,
	  "its key slots need a later version of tuskfs" },
	{ TOOL_AT_UNLOCK, ENOSYS, TOOL_UNSUPPORTED,
	  "libgcrypt refuses its cipher (is FIPS mode on?)" },
	{ TOOL_AT_UNLOCK, ENOMEM, TOOL_FAILED,
	  "out of memory while trying the password; free some" },

	{ TOOL_AT_VOLUME, EUCLEAN, TOOL_DAMAGED,
	  "damaged: no usable superblock or tree" },
	{ TOOL_AT_VOLUME, EBADMSG, TOOL_DAMAGED,
	  "damaged: no authentic superblock or tree" },
	{ TOOL_AT_VOLUME, EIO, TOOL_DAMAGED,
	  "damaged: it cannot be read (I/O error)" },
	{ TOOL_AT_VOLUME, EOPNOTSUPP, TOOL_UNSUPPORTED,
	  "made by a later version of tuskfs; use that version" },

	{ TOOL_AT_CHANGE, ESTALE, TOOL_IN_USE,
	  "another process is writing to it; nothing was changed" },
	{ TOOL_AT_CHANGE, EUCLEAN, TOOL_DAMAGED,
	  "damaged: no usable superblock; nothing was changed" },
	{ TOOL_AT_CHANGE, EBADMSG, TOOL_DAMAGED,
	  "damaged: no authentic superblock; nothing was changed" },

	{ TOOL_AT_ANY, ENOSPC, TOOL_NO_SPACE,
	  "no space left on the host; free some" },
	{ TOOL_AT_ANY, EDQUOT, TOOL_NO_SPACE,
	  "the disk quota is used up; free some space" },
	{ TOOL_AT_ANY, EBUSY, TOOL_IN_USE, "in use by another process" },
	{ TOOL_AT_ANY, EUCLEAN, TOOL_DAMAGED, "damaged" },
	{ TOOL_AT_ANY, EBADMSG, TOOL_DAMAGED,
	  "damaged: its content is not authentic" },
	{ TOOL_AT_ANY, ENOMEM, TOOL_FAILED, "out of memory" },
	{ TOOL_AT_ANY, EINTR, TOOL_INTERRUPTED, "interrupted" },
	{ TOOL_AT_ANY, EOPNOTSUPP, TOOL_UNSUPPORTED, "not supported" },
};

enum tool_exit tool_explain(enum tool_stage stage, int err, const char **text)
{
	const size_t nr = sizeof(explanations) / sizeof(explanations[0]);

	for (size_t i = 0; i < nr; i++) {
		const struct explanation *e = &explanations[i];

		if (e->err != -err)
			continue;
		if (e->stage != stage && e->stage != TOOL_AT_ANY)
			continue;
		*text = e->text;
		return e->code;
	}
	*text = strerrordesc_np(-err);
	if (!*text)
		*text = "unknown error";
	return TOOL_FAILED;
}

enum tool_exit tool_fail_errno(enum tool_stage stage, const char *what, int err)
{
	const char *text;
	const enum tool_exit code = tool_explain(stage, err, &text);

	return tool_fail(code, what, "%s", text);
}

static const int held_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

#define NR_HELD (sizeof(held_signals) / sizeof(held_signals[0]))

void tool_hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < NR_HELD; i++)
		sigaddset(&set, held_signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

bool tool_signal_came(void)
{
	sigset_t pending;

	if (sigpending(&pending))
		return false;
	for (size_t i = 0; i < NR_HELD; i++)
		if (sigismember(&pending, held_signals[i]))
			return true;
	return false;
}

enum tool_exit tool_finish_output(enum tool_exit code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	return tool_fail(errno == ENOSPC ? TOOL_NO_SPACE : TOOL_FAILED,
			 "stdout", "cannot be written: %s",
			 strerrordesc_np(errno));
}

void tool_print_line(const char *line)
{
	char clean[LINE_BYTES];

	puts(utf8_clean(clean, sizeof(clean), sizeof(clean), line));
}
