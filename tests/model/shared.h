/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What many threads do to the same files and folders at one time.  Nobody can
 * say what the result of each operation is, but:
 *
 *   - every block of a shared file says which file and block it is, so what a
 *     read gives is one version of that block, cut off and followed by zeros
 *     at most;
 *   - names that nobody removes are found by every lookup, and by every reader
 *     of their folder exactly once (C03);
 *   - errors are those that a race can bring.
 */
#ifndef TESTS_MODEL_SHARED_H
#define TESTS_MODEL_SHARED_H

#include <stdbool.h>

#include "fs/volume.h"
#include "tests/support/rng.h"

#define SHARED_FILES 4
#define SHARED_FOLDERS 4
#define SHARED_STAY 150

struct shared {
	struct volume *v;
	bool may_be_full;	  /* -ENOSPC is no wrong answer to what grows */
	inum_t dir;		  /* holds all of it */
	inum_t stay[SHARED_STAY]; /* names "stay-NNN" in it, never removed */
	inum_t file[SHARED_FILES];     /* "file-NNN", never removed */
	inum_t folder[SHARED_FOLDERS]; /* "folder-NNN", moved about */
};

/* Make all of it.  False, said on stderr, if that fails; so below. */
must_check bool shared_make(struct shared *s, struct volume *v);

/* One random operation, with checks; *what gets its name before it begins. */
must_check bool shared_step(struct shared *s, struct rng *rng,
			    _Atomic(const char *) *what);

/* When all is quiet, or after a remount. */
must_check bool shared_check(struct shared *s);

#endif
