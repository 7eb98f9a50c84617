/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How much the host can still give, asked by a thread of its own: the host may
 * hang, and statfs and /stats must answer all the same.
 */
#ifndef FS_HOSTFREE_H
#define FS_HOSTFREE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/types.h"

struct container;

struct hostfree {
	struct container *c;	/* constant */
	pthread_t thread;
	bool running;		/* constant once started */
	/* A leaf lock, for the rest. */
	pthread_mutex_t lock;
	pthread_cond_t asked, answered;
	bool stop;
	uint64_t wanted, done;	/* numbers of the last question and answer */
	uint64_t nr_blocks;	/* the answer */
};

void hostfree_init(struct hostfree *h, struct container *c);
/* Start the thread; without it each question asks the host itself. */
must_check int hostfree_start(struct hostfree *h);
void hostfree_destroy(struct hostfree *h);

/*
 * Blocks that the host had free now or, if it does not answer within a tenth of
 * a second, when it last did.  0 for a device, or if it cannot be told.
 */
uint64_t hostfree_blocks(struct hostfree *h);

#endif
