/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Each read, write and flush of a short life fails in turn, once or from then
 * on.  Nothing may crash or hang; a volume whose write or flush failed is
 * read-only and every later fsync says so; what was promised before is there
 * when the disk is opened again.  Growth is refused in turn as well: then the
 * container is full, deletion works, and nothing is lost.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/crash/episode.h"
#include "tests/support/treesnap.h"

#define NR_OPS 40
#define NR_CRASHES 4  /* disks tried after each life */
#define FAULTS_MAX 40 /* calls of one kind that fail in turn */
#define GROWTHS_MAX 3
#define FILL_BYTES 250000u

struct fault {
	enum emudev_op op;
	uint64_t nth; /* 0: none */
	uint64_t nr;  /* calls that fail: 1, or UINT64_MAX */
};

static const char *const op_text[EMUDEV_OP_NR] = { "read", "write", "flush",
						   "growth" };

static void print_fault(const struct fault *f)
{
	fprintf(stderr, "%s number %" PRIu64 " fails%s\n", op_text[f->op],
		f->nth, f->nr == 1 ? " once" : " from then on");
}

/*
 * On a read-only volume: changes are refused, syncs say that they failed, and
 * nothing crashes.
 */
static bool use_dead(struct episode *e, const struct op *op)
{
	const struct volume_cred root = { 0, 0 };
	struct op other = *op;
	struct op_result r;
	struct attr attr;

	op_translate(&other, &e->l.map);
	op_apply(&other, &e->l.other, &r);
	op_result_free(&r);
	if (!volume_is_read_only(e->v))
		return true;
	if (!volume_fsync(e->v, VOLUME_ROOT) || !volume_sync(e->v)) {
		fprintf(stderr, "a read-only volume promised durability\n");
		return false;
	}
	if (!volume_create(e->v, VOLUME_ROOT, "dead", S_IFREG, 0, &root,
			   &attr)) {
		fprintf(stderr, "a read-only volume was changed\n");
		return false;
	}
	return true;
}

/* A write or flush that failed must have been noticed. */
static bool noticed(struct episode *e, const struct fault *f)
{
	bool met = emudev_nr_calls(e->d, f->op) >= f->nth;

	if (f->op == EMUDEV_OP_READ || !f->nth || !met ||
	    volume_is_read_only(e->v))
		return true;
	fprintf(stderr, "the volume took no notice\n");
	return false;
}

/* Operations up to the fault are compared, those after it only done. */
static bool live(struct episode *e, struct workload *w, const struct fault *f)
{
	bool dead = false, ok = true;

	e->l.faults = f->op == EMUDEV_OP_READ && f->nr == 1
			      ? LOCKSTEP_CHECK_FAULTS
			      : LOCKSTEP_SKIP_FAULTS;
	for (int i = 0; ok && i < NR_OPS; i++) {
		uint64_t before = e->l.nr_faults;
		struct op op;

		workload_next(w, e->l.m, &op);
		if (i % 7 == 6)
			op = (struct op){ .kind = OP_SYNC };
		ok = dead ? use_dead(e, &op) : episode_do(e, &op);
		/* A sync that met the fault has promised nothing. */
		if (e->l.nr_faults != before)
			e->rec[e->nr - 1].promise = false;
		if (volume_is_read_only(e->v) ||
		    (e->l.nr_faults != before && f->nr != 1))
			dead = true;
	}
	return ok && noticed(e, f);
}

static bool try_crashes(struct episode *e)
{
	uint64_t nr = emudev_nr_events(e->d);

	if (!episode_try(e, nr, EMUDEV_KEEP, 0))
		return false;
	for (int i = 0; i < NR_CRASHES; i++)
		if (!episode_try(e, nr, EMUDEV_REORDER, rng_next(&e->run->rng)))
			return false;
	return true;
}

/*
 * One life on a copy of @t's disk; *calls gets how often each kind of call was
 * made, when there is no fault.
 */
static bool one_life(struct crash_run *run, const struct testvol *t,
		     const struct fault *f, uint64_t calls[EMUDEV_OP_NR])
{
	struct emudev *d = emudev_clone(t->d);
	struct workload w;
	struct episode e;
	bool ok;

	run->episodes++;
	testclock_set_ns(TESTCLOCK_START);
	workload_init(&w, run->params, run->seed);
	ok = episode_open(&e, run, t, d, NULL, 0);
	/* From here on: opening without a disk is tried in the units. */
	if (ok && f->nth)
		emudev_fail(d, f->op, f->nth, f->nr, -EIO);
	for (int i = 0; ok && i < EMUDEV_OP_NR; i++)
		calls[i] = emudev_nr_calls(d, i);
	ok = ok && live(&e, &w, f);
	for (int i = 0; ok && i < EMUDEV_OP_NR; i++)
		calls[i] = emudev_nr_calls(d, i) - calls[i];
	episode_abandon(&e);
	ok = ok && try_crashes(&e);
	episode_destroy(&e);
	return ok;
}

static bool each_in_turn(struct crash_run *run, const struct testvol *t,
			 enum emudev_op op, uint64_t nr)
{
	uint64_t step = 1 + nr / FAULTS_MAX, calls[EMUDEV_OP_NR];

	for (uint64_t n = 1; n <= nr && !crash_time_is_up(run); n += step) {
		struct fault once = { op, n, 1 };
		struct fault for_ever = { op, n, UINT64_MAX };

		if (!one_life(run, t, &once, calls)) {
			print_fault(&once);
			return false;
		}
		if (!one_life(run, t, &for_ever, calls)) {
			print_fault(&for_ever);
			return false;
		}
	}
	return true;
}

/* Growth. */

static const struct workload_params large = {
	.max_inodes = 1000,
	.max_blocks = UINT64_MAX,
	.max_folder = 50,
	.max_offset = 1u << 20,
	.max_write = 300000,
	.max_xattr = 3000,
	.xattr_names = 4,
	.no_zeros = true,
};

/* Delete what can be in one pass; *left: folders that were not empty yet. */
static bool delete_in(struct episode *e, inum_t dir, bool *left)
{
	struct refmodel *m = e->l.m;

	for (size_t i = refmodel_nr_entries(m, dir); i-- > 0;) {
		struct op op = { .kind = OP_UNLINK, .dir = dir };
		inum_t ino;

		strcpy(op.name, refmodel_entry(m, dir, i, &ino));
		if (S_ISDIR(refmodel_attr(m, ino)->mode)) {
			op.kind = OP_RMDIR;
			if (refmodel_nr_entries(m, ino)) {
				*left = true;
				continue;
			}
		}
		if (!lockstep_do(&e->l, &op))
			return false;
	}
	return true;
}

static bool delete_all(struct episode *e)
{
	struct refmodel *m = e->l.m;
	bool left;

	do {
		left = false;
		for (inum_t i = VOLUME_ROOT; i < refmodel_inum_end(m); i++)
			if (refmodel_exists(m, i) &&
			    S_ISDIR(refmodel_attr(m, i)->mode) &&
			    !delete_in(e, i, &left))
				return false;
	} while (left);
	return true;
}

/* A new file that grows; 0 after a failure or for want of space. */
static inum_t make_big_file(struct episode *e, unsigned int n)
{
	struct op op = { .kind = OP_CREATE, .dir = VOLUME_ROOT };
	struct attr attr;

	snprintf(op.name, sizeof(op.name), "big-%u", n);
	op.set.mode = S_IFREG | 0600;
	if (!lockstep_do(&e->l, &op) ||
	    fsapi_refmodel.lookup(e->l.m, VOLUME_ROOT, op.name, &attr))
		return 0;
	return attr.ino;
}

/* Until nothing goes any more: a file that grows, and whatever else. */
static bool fill(struct episode *e, struct workload *w)
{
	inum_t big = 0;
	bool ok = true;

	for (unsigned int i = 0; ok && e->l.full < 20 && i < 2000; i++) {
		struct op more = { .kind = OP_WRITE,
				   .offset = (uint64_t)i * FILL_BYTES,
				   .len = FILL_BYTES,
				   .pattern = i + 1 };
		struct op op;

		/* The workload may have deleted it. */
		if (!big || !refmodel_exists(e->l.m, big))
			big = make_big_file(e, i);
		workload_next(w, e->l.m, &op);
		workload_phase(w, PHASE_GROW, 10);
		ok = lockstep_do(&e->l, &op);
		more.ino = big;
		if (ok && big && refmodel_exists(e->l.m, big))
			ok = lockstep_do(&e->l, &more);
	}
	if (ok && !e->l.full)
		fprintf(stderr, "the container never became full\n");
	return ok && e->l.full;
}

static bool fill_and_empty(struct episode *e, struct workload *w)
{
	struct check_result r;

	e->l.allow_full = true;
	if (!fill(e, w))
		return false;
	if (volume_sync(e->v) || !lockstep_compare(&e->l, SNAP_TIMES))
		return false;
	if (!delete_all(e) || !lockstep_compare(&e->l, SNAP_TIMES))
		return false;
	return episode_close(e) && testvol_check(e->t, e->d, &r);
}

static bool refuse_growth(struct crash_run *run, const struct testvol *t,
			  uint64_t n)
{
	struct emudev *d = emudev_clone(t->d);
	struct workload w;
	struct episode e;
	bool ok;

	run->episodes++;
	emudev_stop_log(d);
	testclock_set_ns(TESTCLOCK_START);
	workload_init(&w, &large, run->seed + n);
	ok = episode_open(&e, run, t, d, NULL, 0);
	if (ok)
		emudev_fail(d, EMUDEV_OP_BACK, n, UINT64_MAX, -ENOSPC);
	ok = ok && fill_and_empty(&e, &w);
	episode_destroy(&e);
	return ok;
}

bool crash_faults(struct crash_run *run)
{
	struct rng rng = { run->seed };
	struct fault none = { .nth = 0, .nr = 1 };
	uint64_t calls[EMUDEV_OP_NR] = { 0 };
	unsigned int go_on = run->go_on;
	struct testvol_shape shape;
	struct testvol t;
	bool ok;

	testvol_shape_random(&shape, &rng);
	testclock_set_ns(TESTCLOCK_START);
	testvol_make(&t, &shape);
	t.quiet = true;
	run->go_on = 0;
	ok = one_life(run, &t, &none, calls);
	for (int op = 0; ok && op < EMUDEV_OP_BACK; op++)
		ok = each_in_turn(run, &t, op, calls[op]);
	for (uint64_t n = 1; ok && n <= GROWTHS_MAX && !crash_time_is_up(run);
	     n++) {
		ok = refuse_growth(run, &t, n);
		if (!ok)
			fprintf(stderr,
				"growth is refused from number %" PRIu64
				" on\n",
				n);
	}
	run->go_on = go_on;
	testvol_destroy(&t);
	return ok;
}
