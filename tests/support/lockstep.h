/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Two file systems in step: the reference model and another one do each
 * operation, and what they answer and show must agree.
 */
#ifndef TESTS_SUPPORT_LOCKSTEP_H
#define TESTS_SUPPORT_LOCKSTEP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "tests/support/fsapi.h"
#include "tests/support/refmodel.h"
#include "tests/support/workload.h"

/*
 * A clock that only moves when it is told to; for volume_options.now too.  It
 * starts at TESTCLOCK_START.
 */
#define TESTCLOCK_START (INT64_C(1600000000) * 1000000000)
void testclock_now(struct timespec *ts);
void testclock_tick(void);
int64_t testclock_ns(void);
void testclock_set_ns(int64_t ns);

/* -EIO and -EROFS from the other file system: */
enum lockstep_faults {
	LOCKSTEP_NO_FAULTS,    /* are wrong */
	LOCKSTEP_CHECK_FAULTS, /* may be, and then nothing has changed */
	LOCKSTEP_SKIP_FAULTS,  /* may be, and nothing is sure after that */
};

struct lockstep {
	struct refmodel *m;
	struct fsapi other;
	struct inomap map;
	unsigned int flags; /* enum op_compare_flags */
	bool allow_full;    /* -ENOSPC and -EDQUOT may be met */
	enum lockstep_faults faults;
	bool verbose; /* print each operation before it is done */
	/* Called before each operation, after the tick; may be NULL. */
	void (*before)(void *arg);
	void *before_arg;

	uint64_t step;
	uint64_t count[OP_NR],
		failed[OP_NR]; /* failed: an error, as expected */
	uint64_t nr_faults;    /* operations that met one */
	uint64_t full;	       /* times there was no space */
};

/* Takes over @m, whose root is that of @other. */
void lockstep_init(struct lockstep *l, struct refmodel *m,
		   const struct fsapi *other);
void lockstep_destroy(struct lockstep *l);

/*
 * Do @op on both.  Returns false after printing what differs to stderr; a
 * change that met a full container is undone in the model (a write: as far as
 * it came).
 */
must_check bool lockstep_do(struct lockstep *l, const struct op *op);

/* Compare all that both show; @flags of treesnap.h.  As above. */
must_check bool lockstep_compare(struct lockstep *l, unsigned int flags);

/* One line: how often each kind was done. */
void lockstep_print_counts(const struct lockstep *l);

#endif
