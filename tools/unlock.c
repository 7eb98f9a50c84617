/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Open, read the header, unlock; with what to say at each step.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tools/unlock.h"

void tool_close(struct tool_container *t)
{
	if (t->has_keys)
		header_keys_destroy(&t->keys);
	if (t->has_header)
		header_destroy(&t->header);
	if (t->c)
		container_close(t->c);
	memset(t, 0, sizeof(*t));
}

static enum tool_exit fail_open(const char *path, int err, int holder)
{
	if (err == -EBUSY && holder > 0)
		return tool_fail(TOOL_IN_USE, path,
				 "in use by process %d; unmount it first",
				 holder);
	return tool_fail_errno(TOOL_AT_OPEN, path, err);
}

static enum tool_exit fail_header(const char *path, int err,
				  const struct header *h)
{
	if (err == -EOPNOTSUPP && h->format_version != FORMAT_VERSION)
		return tool_fail(TOOL_UNSUPPORTED, path,
				 "has format version %" PRIu32
				 ", this tusk knows version %d; use the "
				 "version of tuskfs that made it",
				 h->format_version, FORMAT_VERSION);
	if (err == -EOPNOTSUPP)
		return tool_fail(TOOL_UNSUPPORTED, path,
				 "uses features that this tusk does not know "
				 "(incompatible features 0x%" PRIx64 "); use a "
				 "later version",
				 h->incompat);
	return tool_fail_errno(TOOL_AT_HEADER, path, err);
}

static void warn_of_lost_copy(const struct tool_container *t)
{
	static const char *const names[2] = { "first (at 0)",
					      "second (at 16 MiB)" };

	for (int i = 0; i < 2; i++)
		if (!t->header.copy_ok[i])
			tool_warn(t->path,
				  "the %s copy of its header is damaged, the "
				  "other is used; see 'tusk check'",
				  names[i]);
}

enum tool_exit tool_open_container(struct tool_container *t, const char *path,
				   enum container_access access,
				   unsigned int wait_seconds)
{
	enum tool_exit code;
	int holder = 0;
	int err;

	memset(t, 0, sizeof(*t));
	err = container_open(&t->c, path, access, wait_seconds, &holder);
	if (err) {
		t->c = NULL;
		return fail_open(path, err, holder);
	}
	t->path = path;
	/* Even after an error it may hold memory. */
	t->has_header = true;
	err = header_read(&t->header, t->c);
	if (err) {
		code = fail_header(path, err, &t->header);
		tool_close(t);
		return code;
	}
	return TOOL_DONE;
}

enum tool_exit tool_start_cipher(unsigned int nr_threads)
{
	enum secret_memory memory;

	if (cipher_init(cipher_pool_bytes(nr_threads, 1) + PASSWORD_POOL_BYTES,
			&memory))
		return tool_fail(TOOL_FAILED, NULL,
				 "libgcrypt is too old, 1.10 is needed");
	if (memory == SECRET_MEMORY_UNLOCKED)
		tool_warn(NULL, "keys cannot be locked in memory and may reach "
				"swap; raise 'ulimit -l'");
	return TOOL_DONE;
}

enum tool_exit tool_unlock(struct tool_container *t,
			   const struct password_source *src,
			   const struct password_request *r,
			   unsigned int nr_handles, struct secret *secret)
{
	auto_secret struct secret password = SECRET_EMPTY;
	enum tool_exit code;
	int err;

	code = password_read(src, r, &password);
	if (code != TOOL_DONE)
		return code;
	err = header_unlock(&t->header, &password, &t->keys, nr_handles);
	if (err)
		return tool_fail_errno(TOOL_AT_UNLOCK, t->path, err);
	t->has_keys = true;
	if (!t->quiet)
		warn_of_lost_copy(t);
	if (secret) {
		*secret = password;
		password = SECRET_EMPTY;
	}
	return TOOL_DONE;
}
