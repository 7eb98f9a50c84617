/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Small types that every file of fs/ shares.
 */
#ifndef FS_TYPES_H
#define FS_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"

#define BLOCK_BYTES 4096u
#define BLOCK_SHIFT 12

/* Number of a 4096-byte block of the container; 0 is the header, so "none". */
typedef uint64_t block_t;

/* Inode number. */
typedef uint64_t inum_t;

#define UUID_BYTES 16

/*
 * Error codes of fs/, all negative errno:
 *   -EIO       the device or host failed
 *   -EBADMSG   authentication failed: not what we wrote
 *   -EUCLEAN   authentic, or not yet authenticated, but structurally wrong
 *   -EROFS     read-only, by option or after an error
 *   -ENOSPC    container or host is full
 * and the usual POSIX ones for operations.
 */

#endif
