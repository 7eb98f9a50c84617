/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The way every command gets at a container: open and lock it, read its
 * header, ask for the password, unlock; and what to say when a step fails.
 */
#ifndef TOOLS_UNLOCK_H
#define TOOLS_UNLOCK_H

#include <stdbool.h>

#include "fs/container.h"
#include "fs/header.h"
#include "tools/password.h"
#include "tools/tool.h"

/* A container opened by a command.  Zero-filled: nothing is open. */
struct tool_container {
	const char *path; /* as the user gave it; not owned */
	bool quiet;	  /* the caller tells of a lost copy */
	struct container *c;
	bool has_header, has_keys;
	struct header header;
	struct header_keys keys;
};

/* Frees and wipes what there is, keys first, then closes; may be repeated. */
void tool_close(struct tool_container *t);
#define auto_tool_container auto_cleanup(tool_close)

/* How long mount and key change wait for a daemon that is just ending. */
#define TOOL_WAIT_SECONDS 60

/*
 * container_open() and header_read().  Nothing secret is touched yet.
 *
 * Returns TOOL_DONE, or an exit code after a message and with *t closed:
 * TOOL_IN_USE (with the holder's pid), TOOL_NO_CONTAINER, TOOL_DAMAGED,
 * TOOL_UNSUPPORTED, TOOL_FAILED.
 */
must_check enum tool_exit tool_open_container(struct tool_container *t,
					      const char *path,
					      enum container_access access,
					      unsigned int wait_seconds);

/*
 * cipher_init() with a pool for @nr_threads threads and one key, and room for
 * passwords; warns if the pool is not locked.  After the last fork, before
 * password_read() and tool_unlock().  Returns TOOL_DONE or TOOL_FAILED.
 */
must_check enum tool_exit tool_start_cipher(unsigned int nr_threads);

/*
 * Read the password from @src and header_unlock(), with @nr_handles cipher
 * handles a key; @secret, if not NULL, gets the password that opened it (key
 * change compares).  Warns, unless t->quiet is set, if only one of the header's
 * copies is good; not earlier, as a wrong password is told in one line.
 *
 * Returns TOOL_DONE, or an exit code after a message: TOOL_WRONG_SECRET,
 * TOOL_DAMAGED, TOOL_USAGE, TOOL_UNSUPPORTED, TOOL_FAILED.  *t stays open.
 */
must_check enum tool_exit tool_unlock(struct tool_container *t,
				      const struct password_source *src,
				      const struct password_request *r,
				      unsigned int nr_handles,
				      struct secret *secret);

#endif
