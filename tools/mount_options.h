/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What follows -o: the words of mount(8), of util-linux and systemd, which are
 * obeyed or ignored, and our own.  Any other word is refused: one misspelt
 * must not be taken for granted.
 */
#ifndef TOOLS_MOUNT_OPTIONS_H
#define TOOLS_MOUNT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fs/fuse.h"
#include "fs/volume.h"
#include "tools/tool.h"

/* Zero-filled: the defaults. */
struct mount_options {
	unsigned long flags; /* MS_* of <sys/mount.h> */
	bool allow_other;
	bool nonempty;
	bool no_subtype;
	bool no_writeback;
	bool no_xattr;
	enum fuse_stats_mode stats;
	enum volume_atime atime;
	struct fuse_override override;
	char *password_file;
	uint64_t cache_bytes;	     /* 0: the default */
	unsigned int commit_seconds; /* 0: the default */
};

/*
 * Add the words of @text, separated by commas; a backslash takes the next
 * character as it is.  Later words win.  May be called again.
 *
 * Returns TOOL_DONE, or TOOL_USAGE after a message.
 */
must_check enum tool_exit mount_options_parse(struct mount_options *o,
					      const char *text);

void mount_options_destroy(struct mount_options *o);

/* The table, for people. */
void mount_options_help(FILE *out);

#endif
