/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * /stats, /stats.json and /stats.prom: files that are made when somebody looks
 * them up.
 *
 * The kernel does not tell us of opens (fuse_ops.c), so a LOOKUP is the moment
 * of the snapshot: it mints a new nodeid with a text that never changes, of
 * exactly the size it says, so that any way of reading it works: mmap, cp,
 * tar, many readers at one time.  The name is never cached, the inode number
 * is always the same.  FORGET frees it.
 *
 * cp and tar look a name up twice and compare; so a second look-up by the same
 * process within 100 ms gets the same file.
 *
 * All functions are thread-safe.
 */
#ifndef FS_FUSE_VIRTUAL_H
#define FS_FUSE_VIRTUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "fs/types.h"

enum virtual_kind {
	VIRTUAL_STATS,
	VIRTUAL_STATS_JSON,
	VIRTUAL_STATS_PROM,
	VIRTUAL_NR,
	VIRTUAL_NONE = -1,
};

#define VIRTUAL_FIRST_ID (UINT64_C(1) << 63) /* no volume's inode */
#define VIRTUAL_LIVE_MAX 4096
#define VIRTUAL_SAME_NS 100000000 /* 100 ms */

struct virtual_files;

struct virtual_params {
	/* The text, to be freed with free(); NULL if there is no memory. */
	char *(*render)(void *arg, enum virtual_kind kind);
	void *arg;
	/* Monotonic ns; tests have their own. */
	uint64_t (*now)(void);
	/* Process of a thread; tests have their own. */
	pid_t (*process_of)(pid_t thread);
};

struct virtual_attr {
	uint64_t st_ino;
	uint64_t size;	      /* bytes */
	struct timespec time; /* of the snapshot */
};

/* The kind called @name, or VIRTUAL_NONE. */
enum virtual_kind virtual_kind(const char *name);
const char *virtual_name(enum virtual_kind kind);
/* Inode number that stat shows: 2 to 5, which no volume uses. */
uint64_t virtual_st_ino(enum virtual_kind kind);

static inline bool virtual_is(uint64_t nodeid)
{
	return nodeid >= VIRTUAL_FIRST_ID;
}

/* Returns NULL if there is no memory. */
struct virtual_files *virtual_new(const struct virtual_params *p);
/* Frees the files still there, too: the kernel forgets nothing at unmount. */
void virtual_free(struct virtual_files *v);

/*
 * A file of @kind for the process that @thread belongs to; one reference more.
 * Returns 0, -ENFILE (VIRTUAL_LIVE_MAX are alive) or -ENOMEM.
 */
must_check int virtual_lookup(struct virtual_files *v, enum virtual_kind kind,
			      pid_t thread, uint64_t *nodeid,
			      struct virtual_attr *out);

/* As above for a file that exists, by its nodeid.  -ESTALE: it is gone. */
must_check int virtual_lookup_id(struct virtual_files *v, uint64_t nodeid,
				 struct virtual_attr *out);

void virtual_forget(struct virtual_files *v, uint64_t nodeid, uint64_t n);

/* Returns 0 or -ESTALE. */
must_check int virtual_getattr(struct virtual_files *v, uint64_t nodeid,
			       struct virtual_attr *out);

/*
 * Call @emit once with up to @size bytes from @offset; they live only during
 * the call.  Returns 0 or -ESTALE (then without a call).
 */
must_check int
virtual_read(struct virtual_files *v, uint64_t nodeid, uint64_t offset,
	     size_t size,
	     void (*emit)(void *arg, const char *bytes, size_t len), void *arg);

#endif
