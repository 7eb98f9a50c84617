/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The files that a replay works on: one for each target of a trace, in a new
 * folder of its own.  Nothing else is ever opened, written or removed.
 */
#ifndef TOOLS_REPLAY_FOLDER_H
#define TOOLS_REPLAY_FOLDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "tools/replay/engine.h"
#include "tools/replay/pattern.h"

struct touched;

enum folder_cache {
	FOLDER_BUFFERED,
	FOLDER_DIRECT, /* O_DIRECT: past the kernel's page cache */
};

struct folder {
	char *path;  /* of the new folder */
	int fd;	     /* of it; -1: none */
	uint32_t nr; /* files, "0000" and so on */
	int *file;   /* their descriptors; -1: not open */
	unsigned int nr_threads;
	char **buffer; /* for each thread: FOLDER_CHUNK bytes */
	char *random;  /* what is written: 2 * FOLDER_CHUNK bytes */

	/* Set by the user after folder_make(), before anything is written. */
	bool verify; /* write the pattern, and check what is read */
	struct pattern pattern;

	bool have_lock;
	pthread_mutex_t lock;
	/* Under lock while threads run. */
	uint64_t nr_wrong; /* pieces of FOLDER_CHUNK at most */
	uint32_t wrong_target;
	uint64_t wrong_offset; /* of the first wrong byte that was found */
};

/* An operation is done in pieces of this size at most. */
#define FOLDER_CHUNK (UINT64_C(1) << 20)

/*
 * Make a folder in @dir with a file of each of the @nr @size (with holes), for
 * @nr_threads threads.  @seed: what random bytes are written.  Returns 0 or
 * negative errno (-EFBIG: the file system has no files of that size; -EMFILE:
 * too many); *@f is to be destroyed in either case.
 */
must_check int folder_make(struct folder *f, const char *dir, uint32_t nr,
			   const uint64_t *size, unsigned int nr_threads,
			   uint64_t seed);

/*
 * Write random bytes into all blocks of @touched (sealed), in order.
 * @progress may be NULL.  Returns 0, -EINTR once *@interrupt is set, or other
 * negative errno.
 */
must_check int folder_fill(struct folder *f, const struct touched *touched,
			   const atomic_bool *interrupt,
			   void (*progress)(void *arg, uint64_t blocks),
			   void *arg);

/*
 * With @f->verify: read all blocks of @touched and check them.  Returns 0,
 * -EINTR or another errno of reading; what is wrong is in nr_wrong.
 */
must_check int folder_check(struct folder *f, const struct touched *touched,
			    const atomic_bool *interrupt);

/* fsync all files.  Returns the first error. */
must_check int folder_sync(struct folder *f);

/*
 * Close the files and open them again, as @how; what was cached of them is
 * dropped as far as an ordinary user may.  0 or negative errno (-EINVAL: no
 * direct I/O there).
 */
must_check int folder_reopen(struct folder *f, enum folder_cache how);

/* Only close the files: before their file system is unmounted. */
void folder_close(struct folder *f);

/* Open the folder at f->path again, after it was mounted elsewhere. */
must_check int folder_find(struct folder *f, enum folder_cache how);

enum folder_end {
	FOLDER_REMOVE, /* the files and the folder */
	FOLDER_KEEP,
};
/* Returns 0, or negative errno if not all could be removed. */
int folder_destroy(struct folder *f, enum folder_end end);

/* As engine_target.run */
int folder_run(void *folder, unsigned int thread, const struct engine_io *io);

#endif
