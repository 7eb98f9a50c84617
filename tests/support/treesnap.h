/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Everything that a file system shows, in one plain array: taken from a
 * volume, the reference model or a host folder alike, then compared or hashed.
 * Inode numbers differ between file systems and are not part of it; which
 * names are links to one inode is.
 */
#ifndef TESTS_SUPPORT_TREESNAP_H
#define TESTS_SUPPORT_TREESNAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/support/fsapi.h"

struct snap_block {
	uint64_t index; /* offset / 4096; blocks of zeros are left out */
	uint64_t hash;
};

struct snap_xattr {
	char *name;
	size_t len;
	uint64_t hash;
};

struct snap_entry {
	char *path; /* "" is the root */
	struct attr attr;
	size_t first_link; /* entry that showed this inode first */
	char *target;
	size_t nr_xattrs;
	struct snap_xattr *xattrs; /* sorted by name */
	size_t nr_blocks;
	struct snap_block *blocks;
};

struct snap {
	size_t nr;
	struct snap_entry *entry; /* folder by folder, names sorted */
	char error[512];
};

enum snap_flags {
	SNAP_TIMES = 1 << 0, /* compare and hash time stamps, but atime */
	SNAP_ATIME = 1 << 2,
	SNAP_SPACE = 1 << 1, /* and the blocks that files hold */
};

/*
 * Walk all of @fs from its root, which need not be the file system's.  Returns 0, or the negative errno of an
 * operation that failed, named in s->error; free it in any case.
 */
must_check int snap_take(struct snap *s, const struct fsapi *fs);
void snap_free(struct snap *s);

uint64_t snap_digest(const struct snap *s, unsigned int flags);

/* Print the first difference to @out and return false if there is one. */
bool snap_equal(const struct snap *a, const char *a_name, const struct snap *b,
		const char *b_name, unsigned int flags, FILE *out);

/* A name or path with its strange bytes as \xNN; @out of at least 16 bytes. */
const char *snap_quote(const char *name, char *out, size_t size);

#endif
