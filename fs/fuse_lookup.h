/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How often the kernel was told each inode, less what it gave back: its
 * reference count, kept by us.  16 bytes an inode the kernel holds, apart from
 * any cache: the kernel may hold millions.
 *
 * All functions are thread-safe.
 */
#ifndef FS_FUSE_LOOKUP_H
#define FS_FUSE_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/types.h"

struct lookup_table;

/* Returns NULL if there is no memory. */
struct lookup_table *lookup_new(void);
void lookup_free(struct lookup_table *t);

/*
 * One more reply that names @ino (not 0).  Call it before the reply is sent:
 * the kernel may give the reference back before that call returns.
 * Returns 0 or -ENOMEM.
 */
must_check int lookup_get(struct lookup_table *t, inum_t ino);

/*
 * The kernel gave back @n references.  Returns how many are left; at 0 nobody
 * refers to @ino any more.  More than there are counts as all.
 */
uint64_t lookup_put(struct lookup_table *t, inum_t ino, uint64_t n);

/* Whether the kernel holds @ino. */
bool lookup_held(struct lookup_table *t, inum_t ino);

/* How many inodes the kernel holds. */
uint64_t lookup_nr(struct lookup_table *t);

#endif
