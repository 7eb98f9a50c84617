/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The operations of fs/volume.h as a table of functions, so that a random
 * workload can drive a volume, the reference model and a folder of the host
 * alike.  Contracts are those of fs/volume.h; inode numbers are each file
 * system's own.
 */
#ifndef TESTS_SUPPORT_FSAPI_H
#define TESTS_SUPPORT_FSAPI_H

#include "fs/volume.h"

typedef bool (*fsapi_emit)(void *arg, const struct volume_dirent *e);

/* @fs of each function is what the table's maker says it is. */
struct fsapi_ops {
	const char *name;
	int (*lookup)(void *fs, inum_t dir, const char *name, struct attr *out);
	int (*getattr)(void *fs, inum_t ino, struct attr *out);
	int (*setattr)(void *fs, inum_t ino, unsigned int what,
		       const struct attr *in, struct attr *out);
	int (*create)(void *fs, inum_t dir, const char *name, uint32_t mode,
		      uint64_t rdev, const struct volume_cred *cred,
		      struct attr *out);
	int (*symlink)(void *fs, inum_t dir, const char *name,
		       const char *target, const struct volume_cred *cred,
		       struct attr *out);
	int (*readlink)(void *fs, inum_t ino, char *buf);
	int (*link)(void *fs, inum_t ino, inum_t dir, const char *name,
		    struct attr *out);
	int (*unlink)(void *fs, inum_t dir, const char *name, inum_t *gone);
	int (*rmdir)(void *fs, inum_t dir, const char *name, inum_t *gone);
	int (*rename)(void *fs, inum_t dir, const char *name, inum_t new_dir,
		      const char *new_name, unsigned int flags, inum_t *gone);
	void (*reap)(void *fs, inum_t ino);
	int (*read)(void *fs, inum_t ino, uint64_t offset, size_t len,
		    void *buf, size_t *nr);
	int (*write)(void *fs, inum_t ino, uint64_t offset, size_t len,
		     const void *buf, unsigned int flags);
	int (*fallocate)(void *fs, inum_t ino, int mode, uint64_t offset,
			 uint64_t len);
	int (*lseek)(void *fs, inum_t ino, uint64_t offset, int whence,
		     uint64_t *out);
	int (*readdir)(void *fs, inum_t dir, uint64_t cookie,
		       unsigned int flags, fsapi_emit emit, void *arg);
	int (*getxattr)(void *fs, inum_t ino, const char *name, void *buf,
			size_t size, size_t *len);
	int (*setxattr)(void *fs, inum_t ino, const char *name,
			const void *value, size_t len, int flags);
	int (*listxattr)(void *fs, inum_t ino, char *buf, size_t size,
			 size_t *len);
	int (*removexattr)(void *fs, inum_t ino, const char *name);
	int (*fsync)(void *fs, inum_t ino);
	int (*sync)(void *fs);
};

struct fsapi {
	const struct fsapi_ops *ops;
	void *fs;
	inum_t root; /* the folder that is looked at; 0: VOLUME_ROOT */
};

/* @fs is a struct volume. */
extern const struct fsapi_ops fsapi_volume;

#endif
