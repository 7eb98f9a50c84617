/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attributes that operations change on the side.
 */
#ifndef FS_ATTR_H
#define FS_ATTR_H

#include "fs/types.h"

struct inode_item;
struct volume;

/* @ino was read: move its atime as the mount's policy says; errors are lost. */
void attr_accessed(struct volume *v, inum_t ino);

/* Clear setuid, and setgid where the group may execute. */
void attr_kill_suidgid(struct inode_item *i);

#endif
