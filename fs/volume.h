/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The front door of fs/: a mounted container as a POSIX file system, in our
 * own types, without FUSE.
 *
 * Every function is thread-safe and returns 0 or negative errno.  Any of them
 * may also return -EIO (device), -EBADMSG / -EUCLEAN (damage; FUSE shows both as
 * EIO), -ENOMEM, and those that change something -EROFS, -ENOSPC, -EDQUOT.
 * What fails has changed nothing, unless said otherwise.
 *
 * Names are 1 to 255 bytes, any but '/' and NUL, NUL-terminated; "." and ".."
 * only where said.  Permission checks are the caller's business (the kernel's
 * default_permissions); ownership rules of new files are ours.
 *
 * An inode without a name lives on, as an orphan, until volume_reap().
 * Durability: what volume_fsync() or volume_sync() returned 0 for is there after
 * any crash; other changes are there after at most the commit interval, in
 * order and each whole or not at all, but for these, of which a crash may show a
 * first part: writes of more than 1 MiB, cuts that leave part of a block (its
 * rest is zeroed first), and holes, reservations and removals of many blocks.
 */
#ifndef FS_VOLUME_H
#define FS_VOLUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "fs/types.h"

struct container;
struct header;
struct header_keys;
struct nonce_source;
struct stats;
struct volume;

#define VOLUME_ROOT 1		/* inode number of the root folder */
#define NAME_BYTES_MAX 255
#define SYMLINK_BYTES_MAX 4095
#define XATTR_BYTES_MAX 65536
#define FILE_BYTES_MAX INT64_MAX

struct volume_format_params {
	uint64_t limit_blocks;	/* largest size the container may grow to; 0: none */
	uid_t uid;		/* owner of the root folder, mode 0700 */
	gid_t gid;
};

/*
 * Write an empty file system (commit 1) and the header copies into a container
 * just made with container_create(); durable when it returns.
 */
must_check int volume_format(struct container *c, struct header *h,
			     const struct header_keys *keys,
			     struct nonce_source *src,
			     const struct volume_format_params *p);

enum volume_atime {
	VOLUME_RELATIME,
	VOLUME_NOATIME,
	VOLUME_STRICTATIME,
};

struct volume_options {
	size_t cache_bytes;		/* nodes and inodes; 0: 128 MiB */
	unsigned int commit_seconds;	/* 0: no timer (tests) */
	bool read_only;
	enum volume_atime atime;
	unsigned int max_node_items;	/* tests: fan-out; 0: what fits */
	struct stats *stats;		/* may be NULL */
	/*
	 * Called with one line for the user (damage found, read-only now, an
	 * older header); rate-limited; never a name or content.  May be NULL.
	 */
	void (*report)(void *arg, const char *line);
	void *report_arg;
	/* Tests: the clock for time stamps; NULL: CLOCK_REALTIME. */
	void (*now)(struct timespec *ts);
};

/*
 * Open the newest complete commit.  @c, @h and @keys stay the caller's and must
 * outlive the volume.  Unless read-only, starts the commit thread and sweeps
 * orphans left by a crash.  The mount's first commit, with its first change,
 * says "in use".
 *
 * Returns 0; -EUCLEAN or -EBADMSG: no superblock or tree that can be used.
 */
must_check int volume_open(struct volume **out, struct container *c,
			   const struct header *h,
			   const struct header_keys *keys,
			   const struct volume_options *o);

/*
 * Sweep orphans, commit, mark as clean, and free everything, whatever the
 * result.  Returns 0 or the error that kept the last changes from the disk.
 */
int volume_close(struct volume *v);

/* As the power cut does: free all memory, write nothing (tests). */
void volume_abandon(struct volume *v);

struct attr {
	inum_t ino;
	uint32_t mode;			/* type and permissions, as st_mode */
	uint32_t nlink;
	uint32_t uid, gid;
	uint64_t rdev;
	uint64_t size;			/* bytes */
	uint64_t blocks;		/* of 512 bytes, held by its data */
	struct timespec atime, mtime, ctime, btime;
};

/* Who makes a new file. */
struct volume_cred {
	uid_t uid;
	gid_t gid;
};

/* -ENOENT, -ENOTDIR; "." and ".." are understood. */
must_check int volume_lookup(struct volume *v, inum_t dir, const char *name,
			     struct attr *out);

/* -ENOENT if there is no such inode (a stale file handle). */
must_check int volume_getattr(struct volume *v, inum_t ino, struct attr *out);

enum volume_set {
	VOLUME_SET_MODE = 1 << 0,	/* permission bits only */
	VOLUME_SET_UID = 1 << 1,
	VOLUME_SET_GID = 1 << 2,
	VOLUME_SET_SIZE = 1 << 3,
	VOLUME_SET_ATIME = 1 << 4,
	VOLUME_SET_MTIME = 1 << 5,
	VOLUME_SET_CTIME = 1 << 6,	/* else ctime becomes now */
	VOLUME_SET_ATIME_NOW = 1 << 7,
	VOLUME_SET_MTIME_NOW = 1 << 8,
	VOLUME_KILL_SUIDGID = 1 << 9,	/* clear setuid, and setgid if group x */
	/*
	 * The caller keeps the times, as the kernel does under write-back
	 * caching: a size that stays as it is moves none unless they are set.
	 */
	VOLUME_TIMES_ARE_CALLERS = 1 << 10,
};

/*
 * Change the attributes named in @what from @in; *out gets all of them
 * afterwards.  A size change moves mtime too, unless that is set.  -EISDIR or
 * -EINVAL for the size of what is no regular file, -EFBIG.
 */
must_check int volume_setattr(struct volume *v, inum_t ino, unsigned int what,
			      const struct attr *in, struct attr *out);

/*
 * Make a file of any type but a symbolic link (@mode says which; a folder gets
 * its setgid bit and group from a setgid parent, others the group).  -EEXIST,
 * -ENOENT (folder was removed), -ENOTDIR, -ENAMETOOLONG.
 */
must_check int volume_create(struct volume *v, inum_t dir, const char *name,
			     uint32_t mode, uint64_t rdev,
			     const struct volume_cred *cred, struct attr *out);
must_check int volume_symlink(struct volume *v, inum_t dir, const char *name,
			      const char *target,
			      const struct volume_cred *cred,
			      struct attr *out);
/* @buf has SYMLINK_BYTES_MAX + 1 bytes; the target is NUL-terminated. */
must_check int volume_readlink(struct volume *v, inum_t ino, char *buf);

/* -EPERM for a folder, -EMLINK. */
must_check int volume_link(struct volume *v, inum_t ino, inum_t dir,
			   const char *name, struct attr *out);

/*
 * Remove a name.  *gone, if not NULL, gets the inode it named.  -EISDIR /
 * -ENOTDIR, -ENOTEMPTY.
 */
must_check int volume_unlink(struct volume *v, inum_t dir, const char *name,
			     inum_t *gone);
must_check int volume_rmdir(struct volume *v, inum_t dir, const char *name,
			    inum_t *gone);

/*
 * @flags  0 or one of RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT
 *         (<linux/fs.h>; WHITEOUT may be joined with NOREPLACE)
 *
 * *gone, if not NULL, gets the replaced inode, or 0.  The table of errors is
 * rename(2)'s; a folder into its own child is -EINVAL.
 */
must_check int volume_rename(struct volume *v, inum_t dir, const char *name,
			     inum_t new_dir, const char *new_name,
			     unsigned int flags, inum_t *gone);

/*
 * Nobody refers to @ino any more: if it has no name, delete it.  Never fails to
 * the caller's harm: what cannot be deleted now stays an orphan and is swept
 * later.  Returns at once; the work is done in the background.
 */
void volume_reap(struct volume *v, inum_t ino);

/*
 * Read up to @len bytes at @offset; *nr gets how many (less only at the end of
 * file); holes are zeros.  @len at most 16 MiB.  -EIO if a block's tag is wrong
 * (reported and counted).
 */
must_check int volume_read(struct volume *v, inum_t ino, uint64_t offset,
			   size_t len, void *buf, size_t *nr);

enum volume_write_flags {
	/*
	 * Write-back of the kernel's cache: it sends times itself.  Until then,
	 * in case of a crash, mtime and ctime are those of the write; if none
	 * come before volume_fsync() of the file, the second commit by the
	 * clock, or volume_close(), they are again what they were.
	 */
	VOLUME_WRITE_CACHED = 1 << 0,
	VOLUME_WRITE_KILL_SUIDGID = 1 << 1,
};

/*
 * Write all of @len (at most 16 MiB) bytes at @offset, extending the file.
 * -EFBIG.  After an error in the middle of a large write the file has a prefix
 * of the new data, or none.
 */
must_check int volume_write(struct volume *v, inum_t ino, uint64_t offset,
			    size_t len, const void *buf, unsigned int flags);

/*
 * fallocate(2): @mode 0, KEEP_SIZE, PUNCH_HOLE|KEEP_SIZE, ZERO_RANGE
 * [|KEEP_SIZE]; others -EOPNOTSUPP.  After an error a part of the range may have
 * been changed.
 */
must_check int volume_fallocate(struct volume *v, inum_t ino, int mode,
				uint64_t offset, uint64_t len);

/* SEEK_DATA or SEEK_HOLE as lseek(2) has them; -ENXIO past the end. */
must_check int volume_lseek(struct volume *v, inum_t ino, uint64_t offset,
			    int whence, uint64_t *out);

/* One entry of a folder.  Strings live only during the call. */
struct volume_dirent {
	uint64_t cookie;	/* pass it to go on after this entry */
	inum_t ino;
	uint32_t mode;		/* type bits */
	const char *name;	/* NUL-terminated */
	size_t name_len;
	const struct attr *attr; /* NULL unless asked for, or for ".." */
};

enum volume_readdir_flags {
	VOLUME_READDIR_ATTR = 1 << 0,	/* with attributes */
};

/*
 * Call @emit for each entry after @cookie (0: from the start, "." and ".."
 * first), until it returns false or there are no more.  Cookies are stable for
 * an entry's life and below 2^63: entries that stay are neither skipped nor
 * repeated while names come and go.  No lock is held during @emit.
 */
must_check int volume_readdir(struct volume *v, inum_t dir, uint64_t cookie,
			      unsigned int flags,
			      bool (*emit)(void *arg,
					   const struct volume_dirent *e),
			      void *arg);

/*
 * Extended attributes; names of any name space, 1 to 255 bytes.  get and list:
 * *len is the full size; with @size 0 nothing is copied, -ERANGE if it does not
 * fit.  -ENODATA; set: XATTR_CREATE -> -EEXIST, XATTR_REPLACE -> -ENODATA,
 * -E2BIG above 64 KiB.  list gives names, each with its NUL.
 */
must_check int volume_getxattr(struct volume *v, inum_t ino, const char *name,
			       void *buf, size_t size, size_t *len);
must_check int volume_setxattr(struct volume *v, inum_t ino, const char *name,
			       const void *value, size_t len, int flags);
must_check int volume_listxattr(struct volume *v, inum_t ino, char *buf,
				size_t size, size_t *len);
must_check int volume_removexattr(struct volume *v, inum_t ino,
				  const char *name);

struct volume_statfs {
	uint64_t blocks;	/* of 4096 bytes: limit, or used + free */
	uint64_t free;		/* what can be written */
	uint64_t files;		/* 2^32 */
	uint64_t files_free;
	uint64_t fsid;
};

/* No I/O on the container; answers while the disk hangs. */
must_check int volume_statfs(struct volume *v, struct volume_statfs *out);

/* Return when all that was done to @ino (or at all) is durable. */
must_check int volume_fsync(struct volume *v, inum_t ino);
must_check int volume_sync(struct volume *v);

/* Fill gauge[STATS_GAUGE_NR] of a snapshot (but known_inodes). */
void volume_gauges(struct volume *v, uint64_t *gauge);

/* Whether an error has made the volume read-only (or it was opened so). */
bool volume_is_read_only(struct volume *v);

/* Number of the last durable commit. */
uint64_t volume_commit_number(struct volume *v);

#endif
