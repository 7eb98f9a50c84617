/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One mount, as the request handlers see it.  Only for fs/fuse_*.c.
 *
 * Names that begin with fuse_ are libfuse's here, but for what fs/fuse.h
 * declares.
 */
#ifndef FS_FUSE_FS_H
#define FS_FUSE_FS_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/fuse.h"
#include "fs/fuse_lookup.h"
#include "fs/fuse_notify.h"
#include "fs/fuse_virtual.h"
#include "fs/volume.h"
#include "stats/stats.h"

/* Seconds: what only we change needs no asking (and libfuse takes it). */
#define FOREVER 1e9

struct fuse_fs {
	/* Constant while served. */
	const struct fuse_params *p;
	struct volume *volume;
	struct lookup_table *lookups;
	struct virtual_files *virtuals;
	struct fuse_session *session;
	struct notifier *notifier;
	pthread_key_t buffer_key; /* struct buffer of each thread */
	int init_fd;		  /* eventfd: INIT has come */

	/* Set by INIT, before the first other request. */
	bool writeback;
	bool no_open, no_opendir;
};

struct fuse_fs *fs_of(fuse_req_t req);

/* A request on its way to its one reply. */
struct call {
	struct fuse_fs *fs;
	fuse_req_t req;
	enum stats_op op;
	uint64_t start_ns;
};

struct call call_begin(fuse_req_t req, enum stats_op op);

/*
 * Count the operation; before the reply, so that whoever got the reply finds
 * it in the statistics.
 */
void call_count(const struct call *c, int err, uint64_t bytes);

/* Count, and reply with an error or, for 0, a bare success. */
void call_end(const struct call *c, int err);

/* The same without counting, for virtual files and what has no operation. */
void reply_error(fuse_req_t req, int err);

/* Numbers are never used twice, so one is enough. */
#define GENERATION 1

/* Whether a mask tells the permissions of what has @mode; what they are. */
bool mode_is_masked(const struct fuse_override *o, mode_t mode);
mode_t shown_mode(const struct fuse_override *o, mode_t mode);

/* Attributes as they are shown. */
void attr_to_stat(const struct fuse_fs *fs, const struct attr *a,
		  struct stat *st);
void virtual_to_stat(const struct fuse_fs *fs, const struct virtual_attr *a,
		     struct stat *st);

/* An entry with a reference more, to be given back if no reply takes it. */
must_check int entry_get(struct fuse_fs *fs, const struct attr *a,
			 struct fuse_entry_param *e);
/* @n references less; the last one lets a file without a name go. */
void fs_put(struct fuse_fs *fs, inum_t ino, uint64_t n);

/*
 * Whether @name in @dir is one of our virtual files now: a real entry wins.
 * The kind, or VIRTUAL_NONE.
 */
enum virtual_kind fs_virtual(struct fuse_fs *fs, fuse_ino_t dir,
			     const char *name);

/*
 * At least @size bytes that belong to the calling thread until it asks again;
 * page-aligned.  NULL if there is no memory.
 */
void *fs_buffer(struct fuse_fs *fs, size_t size);
void fs_buffer_free(void *buffer);

/* Request handlers, by file. */
extern const struct fuse_lowlevel_ops fs_ops;

/* fuse_dir.c */
void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		struct fuse_file_info *fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi);

/* fuse_file.c */
void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	     struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
	      off_t offset, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
	      struct fuse_file_info *fi);
void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
		  off_t length, struct fuse_file_info *fi);
void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
	      struct fuse_file_info *fi);

/* fuse_xattr.c */
void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		 const char *value, size_t size, int flags);
void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

/* fuse_control.c */
void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
	      struct fuse_file_info *fi, unsigned int flags, const void *in,
	      size_t in_size, size_t out_size);

#endif
