/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Power cuts on a container that is full.  A file of unwritten blocks takes all
 * but a little, so that every operation is short of space: some are refused,
 * the rest must be as safe as ever, and opening and deleting always work (I8).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/crash/episode.h"

#define MIB (UINT64_C(1) << 20)
#define MIB_BLOCKS (MIB / BLOCK_BYTES)
#define LARGEST (40 * MIB)
#define STEP (UINT64_C(256) << 10)
#define SETTLE_COMMITS 4
#define LEFT_MAX (UINT64_C(512) << 10)

static const struct workload_params params = {
	.max_inodes = 60,
	.max_blocks = UINT64_MAX,
	.max_folder = 40,
	.max_offset = 1u << 20,
	.max_write = 50000,
	.max_xattr = 5000,
	.xattr_names = 6,
	.no_zeros = true,
	.odd_times = true,
};

static void choose_shape(struct testvol_shape *s, struct rng *r)
{
	uint64_t mib = 33 + rng_below(r, 4);

	testvol_shape_random(s, r);
	if (rng_one_in(r, 2))
		s->limit_blocks = mib * MIB_BLOCKS;
	else
		s->host_bytes = mib * MIB;
}

/* Make the file @size bytes of reserved blocks; *fits: it is. */
static bool set_ballast(struct episode *e, inum_t ino, uint64_t size,
			bool *fits)
{
	struct op op = { .kind = OP_FALLOCATE, .ino = ino, .len = size };
	struct attr attr;

	/* Refused, it leaves the file empty. */
	if (!lockstep_do(&e->l, &op) ||
	    fsapi_refmodel.getattr(e->l.m, ino, &attr))
		return false;
	*fits = attr.size >= size;
	return true;
}

/* Commits, after which what was freed is free. */
static bool settle(struct episode *e)
{
	struct op touch = { .kind = OP_SETATTR,
			    .ino = VOLUME_ROOT,
			    .what = VOLUME_SET_MTIME_NOW };
	struct op sync = { .kind = OP_SYNC };

	for (int i = 0; i < SETTLE_COMMITS; i++)
		if (!lockstep_do(&e->l, &touch) || !lockstep_do(&e->l, &sync))
			return false;
	return true;
}

/* The largest that fits, but for a random rest: from above, step by step. */
static bool fill(struct episode *e, struct rng *r)
{
	uint64_t size = LARGEST, left = rng_below(r, LEFT_MAX);
	struct op op = { .kind = OP_CREATE, .dir = VOLUME_ROOT };
	struct attr attr;
	bool fits = false;

	strcpy(op.name, BALLAST);
	op.set.mode = S_IFREG | 0600;
	if (!lockstep_do(&e->l, &op) ||
	    fsapi_refmodel.lookup(e->l.m, VOLUME_ROOT, BALLAST, &attr))
		return false;
	while (!fits && size > STEP) {
		size -= STEP;
		if (!set_ballast(e, attr.ino, size, &fits) || !settle(e))
			return false;
	}
	op = (struct op){ .kind = OP_TRUNCATE,
			  .ino = attr.ino,
			  .what = VOLUME_SET_SIZE };
	op.set.size = size > left ? size - left : 0;
	op.set.size -= op.set.size % BLOCK_BYTES;
	return lockstep_do(&e->l, &op) && settle(e);
}

/* A disk that is full, closed in order, and what is on it. */
static bool make_full(struct crash_run *run, struct testvol *t, struct rng *r,
		      struct emudev **d, struct refmodel **m)
{
	struct episode e;
	bool ok;

	ok = episode_open(&e, run, t, emudev_clone(t->d), NULL, 0);
	e.l.allow_full = true;
	emudev_stop_log(e.d);
	ok = ok && fill(&e, r) && episode_close(&e);
	if (ok) {
		*d = emudev_clone(e.d);
		*m = refmodel_clone(e.l.m);
	}
	episode_destroy(&e);
	return ok;
}

bool crash_full_episode(struct crash_run *run)
{
	const struct workload_params *usual = run->params;
	struct rng rng = { run->seed };
	struct testvol_shape shape;
	struct emudev *d = NULL;
	struct refmodel *m = NULL;
	struct workload w;
	struct episode e;
	struct testvol t;
	bool ok;

	run->episodes++;
	run->params = &params;
	testclock_set_ns(TESTCLOCK_START);
	choose_shape(&shape, &rng);
	testvol_make(&t, &shape);
	t.quiet = true;
	ok = make_full(run, &t, &rng, &d, &m);
	if (ok) {
		run->full = true;
		workload_init(&w, run->params, run->seed);
		ok = episode_open(&e, run, &t, d, m, 0);
		ok = ok && episode_random(&e, &w, run->ops);
		episode_abandon(&e);
		ok = ok && episode_try_all(&e);
		episode_destroy(&e);
	}
	run->full = false;
	run->params = usual;
	testvol_destroy(&t);
	return ok;
}
