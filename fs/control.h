/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a mount tells about itself: ioctls on its root folder, for tusk's own
 * commands.  They need neither the root folder's lock nor, for INFO, the disk,
 * so they answer where a look-up in the root would wait.
 *
 * Anybody who can open the root folder may ask; nothing here is secret from
 * them.  Numbers and layouts are kept: commands and daemon may be of different
 * versions while a mount outlives an update.
 */
#ifndef FS_CONTROL_H
#define FS_CONTROL_H

#include <stdint.h>
#include <sys/ioctl.h>

#include "fs/types.h"

#define CONTROL_VERSION 1

enum control_flag {
	CONTROL_READ_ONLY = 1 << 0, /* mounted so, or after an error */
};

/* Strings are NUL-terminated; unused bytes are zero. */
struct control_info {
	uint32_t version; /* CONTROL_VERSION */
	int32_t pid;	  /* of the daemon, in its name space */
	uint32_t flags;	  /* enum control_flag */
	uint32_t sector_bytes;
	uint64_t commit; /* last durable one */
	uint64_t start_unix_seconds;
	uint64_t epoch_id; /* random, names this mount */
	uint8_t uuid[UUID_BYTES];
	char program[32]; /* version of the daemon */
	char label[64];
	char scheme[40];
	char container[4096]; /* absolute path; as it was then */
	uint8_t reserved[64];
};
_Static_assert(sizeof(struct control_info) == 4352, "kept between versions");

#define CONTROL_IOC_INFO _IOR('T', 0x80, struct control_info)

/*
 * Return when all that reached the daemon is durable; a failed flush is
 * reported as its errno.  What the kernel still holds is syncfs(2)'s business,
 * to be called first.
 */
#define CONTROL_IOC_SYNC _IO('T', 0x81)

#endif
