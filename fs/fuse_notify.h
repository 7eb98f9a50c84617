/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * With write-back caching the kernel holds data that we have not seen, and two
 * of its answers are wrong while a file is open:
 *
 *  - SEEK_DATA and SEEK_HOLE come to us without the dirty pages having been
 *    written first, so new data looks like a hole, and cp makes it one.
 *  - st_blocks stays what it was when the file was opened, often 0, which tar
 *    takes for a file without any data.
 *
 * So the kernel is asked to write what lies in a hole before a seek is
 * answered, and told to ask for attributes again after a write.  Both are
 * notifications, which may wait for requests that need an answer from us;
 * hence a thread of their own, never a request handler.
 *
 * All functions are thread-safe.
 */
#ifndef FS_FUSE_NOTIFY_H
#define FS_FUSE_NOTIFY_H

#include <stdint.h>

#include "cipher/defs.h"
#include "fs/types.h"

struct call;
struct fuse_fs;
struct notifier;

/* Starts the thread.  Returns 0 or negative errno. */
must_check int notifier_new(struct notifier **out, struct fuse_fs *fs);

/* Answers what is still waiting, ends the thread.  NULL is harmless. */
void notifier_free(struct notifier *n);

/*
 * Answer request *c (copied), an lseek(2) with SEEK_DATA or SEEK_HOLE, when the
 * kernel's data is known.  Returns 0; -ENOMEM: not taken, the caller replies.
 */
must_check int notifier_seek(struct notifier *n, const struct call *c,
			     inum_t ino, uint64_t offset, int whence);

/* The kernel's cache wrote to @ino: its attributes have changed. */
void notifier_written(struct notifier *n, inum_t ino);

#endif
