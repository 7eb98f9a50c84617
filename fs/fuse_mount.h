/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attaching a connection to the FUSE device to a folder.  Done here and not by
 * libfuse, whose mounting knows fewer options and speaks to stderr.
 */
#ifndef FS_FUSE_MOUNT_H
#define FS_FUSE_MOUNT_H

#include <stddef.h>

#include "cipher/defs.h"
#include "fs/fuse.h"

/*
 * Mount at p->mount_point by mount(2) or, where we are not permitted that, by
 * fusermount3.  *fd gets the device, close-on-exec.  Returns 0, or negative
 * errno with *f filled.
 */
must_check int mount_attach(const struct fuse_params *p, int *fd,
			    struct fuse_failure *f);

/*
 * The text of fusermount3's -o, to be freed, or NULL: for tests.  Commas and
 * backslashes of the source are escaped.
 */
char *mount_helper_options(const struct fuse_params *p);

#endif
