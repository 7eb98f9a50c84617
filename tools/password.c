/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Passwords from files, descriptors and the terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <readpassphrase.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stats/utf8.h"
#include "tools/password.h"

/* 1: a byte; 0: the end; or negative errno. */
static int read_byte(int fd, uint8_t *byte)
{
	ssize_t nr;

	do {
		nr = read(fd, byte, 1);
	} while (nr < 0 && errno == EINTR);
	return nr < 0 ? -errno : (int)nr;
}

/*
 * Whether another byte is there to be read right now.  Never waits: somebody
 * who types the password, or a writer that keeps its pipe open, has nothing
 * more to say.
 */
static bool byte_follows(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t byte;

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN) &&
	       read_byte(fd, &byte) == 1;
}

/*
 * Read up to and including the first LF, or up to the end.  *@len counts the
 * bytes before it and may exceed PASSWORD_BYTES_MAX by one, a CR that @line
 * then ends with.
 */
static int read_line(int fd, uint8_t *line, size_t *len, bool *ended_by_lf)
{
	size_t nr = 0;
	uint8_t *byte;

	*ended_by_lf = false;
	for (;;) {
		int got;

		if (nr > PASSWORD_BYTES_MAX + 1)
			return -E2BIG;
		byte = line + nr;
		got = read_byte(fd, byte);
		if (got < 0)
			return got;
		*ended_by_lf = got && *byte == '\n';
		if (!got || *ended_by_lf)
			break;
		nr++;
	}
	if (*ended_by_lf && nr && line[nr - 1] == '\r')
		nr--;
	*len = nr;
	return !nr ? -ENODATA : nr > PASSWORD_BYTES_MAX ? -E2BIG : 0;
}

static int read_secret_line(int fd, struct secret *out, bool *ended_by_lf)
{
	auto_secret struct secret line = SECRET_EMPTY;
	size_t len;
	int err;

	/* The longest password, CR, LF, and one that proves it too long. */
	err = secret_new(&line, PASSWORD_BYTES_MAX + 3);
	if (!err)
		err = read_line(fd, line.bytes, &len, ended_by_lf);
	return err ? err : secret_copy(out, line.bytes, len);
}

int password_read_fd(int fd, struct secret *out, bool *more_follows)
{
	bool ended_by_lf;
	int err;

	err = read_secret_line(fd, out, &ended_by_lf);
	if (more_follows)
		*more_follows = !err && ended_by_lf && byte_follows(fd);
	return err;
}

static enum tool_exit fail_source(const struct password_request *r,
				  const char *name, int err)
{
	static const struct {
		int err;
		const char *text;
	} texts[] = {
		{ ENODATA, "no password in it: it is empty, or its first line "
			   "is" },
		{ E2BIG, "the password in it is longer than 4096 bytes" },
		{ EBADF, "not open for reading" },
		{ EISDIR, "a folder, not a file with a password" },
		{ ENOENT, "no such file" },
		{ EAGAIN, "non-blocking, and nothing to read" },
	};

	if (err == -ENOMEM)
		return tool_fail_errno(TOOL_AT_ANY, r->what, err);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].err == -err)
			return tool_fail(TOOL_USAGE, name, "%s", texts[i].text);
	return tool_fail(TOOL_USAGE, name, "the password cannot be read: %s",
			 strerrordesc_np(-err));
}

static enum tool_exit read_source(int fd, const char *name,
				  const struct password_request *r,
				  struct secret *out)
{
	bool more = false;
	int err;

	err = password_read_fd(fd, out, r->more_follows ? NULL : &more);
	if (err)
		return fail_source(r, name, err);
	if (more)
		tool_warn(name, "only its first line is the password; more "
				"follows and is ignored");
	return TOOL_DONE;
}

static enum tool_exit read_file(const char *path,
				const struct password_request *r,
				struct secret *out)
{
	enum tool_exit code;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return fail_source(r, path, -errno);
	code = read_source(fd, path, r, out);
	close(fd);
	return code;
}

static enum tool_exit fail_terminal(const struct password_request *r, int err)
{
	if (err == EINTR)
		return tool_fail(TOOL_INTERRUPTED, NULL, "interrupted");
	return tool_fail(TOOL_USAGE, r->what,
			 "no terminal to ask for the password at; give "
			 "--%spassword-file or --%spassword-fd",
			 r->prefix, r->prefix);
}

/* One prompt; *@line is a string in secret memory of one fixed size. */
static enum tool_exit ask(const struct password_request *r, const char *prompt,
			  struct secret *line)
{
	size_t len;

	if (secret_new(line, PASSWORD_BYTES_MAX + 2))
		return tool_fail_errno(TOOL_AT_ANY, r->what, -ENOMEM);
	if (!readpassphrase(prompt, (char *)line->bytes, line->len,
			    RPP_ECHO_OFF | RPP_REQUIRE_TTY))
		return fail_terminal(r, errno);
	len = strlen((char *)line->bytes);
	if (!len)
		return tool_fail(TOOL_USAGE, r->what, "the password is empty");
	if (len > PASSWORD_BYTES_MAX)
		return tool_fail(TOOL_USAGE, r->what,
				 "the password is longer than 4096 bytes");
	return TOOL_DONE;
}

#define PROMPT_BYTES 256

/* @what may hold anything, also what would steer the terminal. */
static void make_prompt(char out[static PROMPT_BYTES], const char *words,
			const char *what)
{
	char name[PROMPT_BYTES / 2];

	utf8_clean(name, sizeof(name), sizeof(name), what);
	snprintf(out, PROMPT_BYTES, "%s %s: ", words, name);
}

static enum tool_exit ask_terminal(const struct password_request *r,
				   struct secret *out)
{
	auto_secret struct secret first = SECRET_EMPTY;
	auto_secret struct secret again = SECRET_EMPTY;
	char prompt[PROMPT_BYTES];
	enum tool_exit code;

	make_prompt(prompt,
		    r->kind == PASSWORD_NEW ? "New password for"
					    : "Password for",
		    r->what);
	code = ask(r, prompt, &first);
	if (code != TOOL_DONE)
		return code;
	if (r->kind == PASSWORD_NEW) {
		make_prompt(prompt, "Repeat the new password for", r->what);
		code = ask(r, prompt, &again);
		if (code != TOOL_DONE)
			return code;
		if (!secret_equal(first.bytes, again.bytes, first.len))
			return tool_fail(TOOL_FAILED, r->what,
					 "the two passwords differ; nothing "
					 "was done");
	}
	if (secret_copy(out, first.bytes, strlen((char *)first.bytes)))
		return tool_fail_errno(TOOL_AT_ANY, r->what, -ENOMEM);
	return TOOL_DONE;
}

enum tool_exit password_source_check(const struct password_source *src,
				     const struct password_request *r)
{
	if (!src->file || !src->fd.given)
		return TOOL_DONE;
	return tool_fail(TOOL_USAGE, NULL,
			 "--%spassword-file and --%spassword-fd exclude each "
			 "other",
			 r->prefix, r->prefix);
}

enum tool_exit password_read(const struct password_source *src,
			     const struct password_request *r,
			     struct secret *out)
{
	char name[32];

	if (src->file)
		return read_file(src->file, r, out);
	if (src->fd.given) {
		snprintf(name, sizeof(name), "descriptor %d", src->fd.fd);
		return read_source(src->fd.fd, name, r, out);
	}
	return ask_terminal(r, out);
}

static bool stat_source(const struct password_source *src, struct stat *st)
{
	if (src->file)
		return stat(src->file, st) == 0;
	return src->fd.given && fstat(src->fd.fd, st) == 0;
}

bool password_source_same_file(const struct password_source *a,
			       const struct password_source *b)
{
	struct stat sa, sb;

	if (a->fd.given && b->fd.given && !a->file && !b->file)
		return false;
	return stat_source(a, &sa) && stat_source(b, &sb) &&
	       sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}
