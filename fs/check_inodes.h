/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The checker's book of inodes: what each says of itself against what names and
 * extents say of it.
 */
#ifndef FS_CHECK_INODES_H
#define FS_CHECK_INODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/types.h"

struct volume;

struct check_inode {
	inum_t inum;
	/* By its own item. */
	uint64_t size, want_blocks, want_entries;
	inum_t parent;
	uint32_t mode, nlink;
	bool there;
	/* By others. */
	bool orphan, beyond;
	uint8_t named_type;
	uint32_t names, folders;
	inum_t named_in;		/* of a folder */
	uint64_t blocks, entries;
};

/* A hash table whose entries do not move. */
struct check_inodes {
	struct check_inode **slot;
	size_t room, nr;
	bool failed;			/* no memory once */
};

must_check int check_inodes_init(struct check_inodes *t);
void check_inodes_destroy(struct check_inodes *t);
/* The entry of @inum, made if need be; NULL if there is no memory. */
struct check_inode *check_inode_at(struct check_inodes *t, inum_t inum);
bool check_inodes_ok(const struct check_inodes *t);
/* Call @say for each thing that does not add up. */
void check_inodes_compare(struct check_inodes *t,
			  void (*say)(void *arg, inum_t inum,
				      const char *what),
			  void *arg);

/*
 * A path of @inum from the volume's root, to be freed; NULL if it has none or
 * it cannot be found.
 */
char *check_path(struct volume *v, inum_t inum);

#endif
