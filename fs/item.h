/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Items: what each type may look like on disk, and the in-memory forms of
 * those that have one.  The only file besides node.c that knows disk_ structs of
 * format_tree.h is item.c.
 */
#ifndef FS_ITEM_H
#define FS_ITEM_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "fs/format_tree.h"
#include "fs/node.h"
#include "fs/ptr.h"
#include "fs/types.h"

/*
 * Whether (@key, @value of @len bytes) may stand in a node of @tree at
 * @level: known type, right length, fields in bounds, reserved bytes zero.
 * Returns 0 or -EUCLEAN.
 */
must_check int item_validate(uint64_t tree, unsigned int level,
			     const struct key *key, const void *value,
			     size_t len);

/* In-memory form of an inode's item. */
struct inode_item {
	uint32_t mode, nlink, uid, gid;
	uint64_t size;
	uint64_t blocks;	/* of 4096 bytes */
	uint64_t rdev;
	struct timespec atime, mtime, ctime, btime;
	inum_t parent;
	uint64_t entries;
};

void inode_item_encode(const struct inode_item *i, struct disk_inode *d);
/* @d was validated. */
void inode_item_decode(const struct disk_inode *d, struct inode_item *i);

/* In-memory form of an extent; tags apart. */
struct extent {
	uint64_t logical;	/* first block in the file */
	block_t block;		/* first block in the container */
	uint64_t birth;
	struct nonce nonce;	/* of the first block */
	uint32_t nr;		/* blocks */
	uint16_t key_id;
	uint16_t flags;		/* enum extent_flags */
};

static inline size_t extent_bytes(uint32_t nr, uint16_t flags)
{
	return sizeof(struct disk_extent) +
	       (flags & EXTENT_TAGGED ? (size_t)nr * 16 : 0);
}

#define EXTENT_ITEM_BYTES_MAX \
	(sizeof(struct disk_extent) + EXTENT_WINDOW_BLOCKS * 16)

/* Returns the length of the value; @tags may be NULL if untagged. */
size_t extent_encode(const struct extent *e, const uint8_t *tags, void *out);
/* *tags points into @value. */
void extent_decode(const struct key *key, const void *value,
		   struct extent *e, const uint8_t **tags);

#endif
