/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The mounts of tuskfs on this machine, as the kernel lists them, and what
 * their daemons say.
 */
#ifndef TOOLS_MOUNTS_H
#define TOOLS_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fs/control.h"
#include "tools/tool.h"

struct mount_entry {
	dev_t dev;
	char *dir;    /* absolute */
	char *type;   /* "fuse.tuskfs" */
	char *source; /* the container as it was given */
	bool ours;    /* by its type: "fuse" (nosubtype) may be ours too */
	bool read_only;
	uid_t user; /* who mounted it, 0 if that is not told; and its group */
	gid_t group;
};

struct mounts {
	struct mount_entry *entry;
	size_t nr;
};

/*
 * Read /proc/self/mountinfo.  Returns 0 or negative errno; *m is to be
 * destroyed in either case.
 */
must_check int mounts_read(struct mounts *m);
void mounts_destroy(struct mounts *m);

/* Fill @e from one line of mountinfo (tests).  Returns whether it is one. */
bool mounts_parse_line(char *line, struct mount_entry *e);
void mount_entry_destroy(struct mount_entry *e);

/* What is on top at @dir, or NULL. */
const struct mount_entry *mounts_find(const struct mounts *m, const char *dir);

/*
 * The absolute path of @dir, which may be a mount whose daemon is dead or
 * hangs: neither is asked.  To be freed; NULL with errno set.
 */
char *mounts_resolve(const char *dir);

#define MOUNTS_ANSWER_MS 5000

/*
 * Ask the daemon behind @e, waiting at most MOUNTS_ANSWER_MS; the calling
 * process never gets stuck.  Root asks in the name of who mounted it, where
 * only that one is let in.
 *
 * Returns 0; -ENOTCONN: it is dead; -ETIMEDOUT: it does not answer; -ENOTTY:
 * not a mount of ours; -EACCES: not permitted to ask; or other errno.
 */
must_check int mounts_ask(const struct mount_entry *e,
			  struct control_info *info);

#endif
