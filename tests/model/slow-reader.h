/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A reader of a folder that takes its time: it fetches some names now and
 * then, while other operations add and remove names.  In the end it must have
 * met each name that was there all the time exactly once (C03).
 */
#ifndef TESTS_MODEL_SLOW_READER_H
#define TESTS_MODEL_SLOW_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/refmodel.h"
#include "tests/support/rng.h"

struct slow_name {
	char *name;
	inum_t ino;
	bool stayed;
	unsigned int seen;
};

struct slow_reader {
	inum_t dir; /* 0: reads nothing */
	uint64_t cookie;
	size_t nr;
	struct slow_name *names; /* sorted */
};

/* Begin to read @dir, as it is in @m. */
void slow_reader_start(struct slow_reader *r, const struct refmodel *m,
		       inum_t dir);
void slow_reader_stop(struct slow_reader *r);

/* To be called after each operation: forget the names that went. */
void slow_reader_watch(struct slow_reader *r, const struct refmodel *m);

/*
 * Fetch up to @nr names of @fs, where the folder has number @fs_dir; at the
 * end of the folder the reader is done and stops.  Returns false, after
 * saying on stderr what is wrong.
 */
must_check bool slow_reader_fetch(struct slow_reader *r, const struct fsapi *fs,
				  inum_t fs_dir, size_t nr);

#endif
