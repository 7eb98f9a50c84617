/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A volume on a folder: mount it, serve it until it is unmounted, end in
 * order.  What the kernel's caches may assume stands at the head of
 * fuse_ops.c.
 *
 * Messages leave through callbacks; nothing here prints.
 */
#ifndef FS_FUSE_H
#define FS_FUSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cipher/defs.h"
#include "fs/types.h"

struct stats;
struct stats_identity;
struct volume;

/* What /proc/self/mountinfo calls our mounts, unless without a subtype. */
#define FUSE_SUBTYPE "tuskfs"

/* How /stats and its kin show in the mount's root folder. */
enum fuse_stats_mode {
	FUSE_STATS_HIDDEN, /* can be opened, are not listed */
	FUSE_STATS_LISTED,
	FUSE_STATS_OFF, /* the names are the user's */
};

/* uid=, gid=, fmask=, dmask=: what is shown in place of what is stored. */
struct fuse_override {
	bool has_uid, has_gid, has_fmask, has_dmask;
	uid_t uid;
	gid_t gid;
	mode_t fmask; /* of all but folders */
	mode_t dmask; /* of folders */
};

struct fuse_params {
	struct volume *volume;
	struct stats *stats;		       /* may be NULL */
	const struct stats_identity *identity; /* for /stats and INFO */
	uint8_t uuid[UUID_BYTES];

	const char *source;	    /* container as given: /proc/mounts */
	const char *container_path; /* absolute: INFO */
	const char *mount_point;    /* absolute and resolved */

	unsigned long mount_flags; /* MS_* of <sys/mount.h> */
	bool allow_other;
	bool no_subtype;   /* type "fuse" in place of "fuse.tuskfs" */
	bool no_writeback; /* write(2) reaches the daemon at once */
	bool no_xattr;	   /* extended attributes: not supported */
	enum fuse_stats_mode stats_mode;
	struct fuse_override override;

	/*
	 * Called once by the calling thread, when the mount has answered its
	 * first requests.
	 */
	void (*ready)(void *arg);
	/* One line for the user, from any thread; never a file's name. */
	void (*report)(void *arg, const char *line);
	void *arg;
};

/* Why there is no mount: each asks for another remedy. */
enum fuse_trouble {
	FUSE_TROUBLE_NONE,
	FUSE_TROUBLE_MOUNT_POINT, /* unfit, or not ours to use */
	FUSE_TROUBLE_UNAVAILABLE, /* no FUSE, or not permitted to use it */
	FUSE_TROUBLE_INTERRUPTED, /* a signal came before it was ready */
	FUSE_TROUBLE_OTHER,
};

struct fuse_failure {
	enum fuse_trouble trouble;
	char text[400]; /* one line: what is wrong; what to do */
};

/*
 * Block the signals that end a mount (TERM, INT, HUP): before any thread
 * starts, volume_open()'s included, so that only fuse_serve() takes them.
 */
void fuse_block_signals(void);

/*
 * Mount, serve, and return when the mount is gone: unmounted by whomever, or by
 * us upon a signal (all that the kernel holds is written first; if the mount
 * is busy it is detached, and whoever uses it gets ENOTCONN after a last
 * sync).  The volume stays open; closing it makes the last changes durable.
 *
 * Returns 0, or negative errno with *f filled: then nothing is mounted.  Needs
 * fuse_block_signals().
 */
must_check int fuse_serve(const struct fuse_params *p, struct fuse_failure *f);

/*
 * Whether mounting can work at all, as far as that can be told beforehand: the
 * device, and for ordinary users the helper and its permission for
 * allow_other.  Returns 0, or negative errno with *f filled.
 */
must_check int fuse_available(bool allow_other, struct fuse_failure *f);

enum fuse_unmount_how {
	FUSE_UNMOUNT,
	FUSE_UNMOUNT_LAZY,  /* detach now, end when nobody uses it */
	FUSE_UNMOUNT_FORCE, /* abort requests in flight; root only */
};

/*
 * Unmount what is mounted at the absolute path @dir: umount2(2), and
 * fusermount3 where we are not permitted that.  Returns 0, -EBUSY, -EINVAL
 * (nothing mounted there), -EPERM, -ENOENT (no fusermount3), or other errno.
 */
must_check int fuse_unmount(const char *dir, enum fuse_unmount_how how);

#endif
