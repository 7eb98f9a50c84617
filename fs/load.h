/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a superblock to trees and space in memory.
 */
#ifndef FS_LOAD_H
#define FS_LOAD_H

#include "fs/vol.h"

/*
 * Choose the newest superblock whose commit is complete and load what it says.
 * Writes nothing.  Returns 0, -EUCLEAN or -EBADMSG (none can be used), -EIO,
 * -ENOMEM.
 */
must_check int load_newest(struct volume *v);

/* Forget what was loaded. */
void load_undo(struct volume *v);

#endif
