/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The other file system goes first, so that the model can do, or leave, what
 * the other one could not do for want of space.
 */
#include "tests/support/lockstep.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/refdata.h"
#include "tests/support/treesnap.h"

#define TICK_NS 1000003 /* odd, so that all digits of ns are tried */

static atomic_int_least64_t clock_ns = TESTCLOCK_START;

void testclock_now(struct timespec *ts)
{
	int64_t ns = atomic_load(&clock_ns);

	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
}

void testclock_tick(void)
{
	atomic_fetch_add(&clock_ns, TICK_NS);
}

int64_t testclock_ns(void)
{
	return atomic_load(&clock_ns);
}

void testclock_set_ns(int64_t ns)
{
	atomic_store(&clock_ns, ns);
}

void lockstep_init(struct lockstep *l, struct refmodel *m,
		   const struct fsapi *other)
{
	memset(l, 0, sizeof(*l));
	l->m = m;
	l->other = *other;
	inomap_set(&l->map, VOLUME_ROOT,
		   other->root ? other->root : VOLUME_ROOT);
}

void lockstep_destroy(struct lockstep *l)
{
	refmodel_free(l->m);
	inomap_free(&l->map);
}

static bool complain(const struct lockstep *l, const struct op *op,
		     const char *why)
{
	fprintf(stderr, "step %" PRIu64 ": ", l->step);
	op_print(op, stderr);
	fprintf(stderr, "\n  %s: %s\n", l->other.ops->name, why);
	return false;
}

/* No space: may it be that this operation needs some? */
static bool may_be_full(const struct lockstep *l, const struct op *op)
{
	struct attr attr;

	switch (op->kind) {
	case OP_UNLINK:
	case OP_RMDIR:
	case OP_REMOVEXATTR:
	case OP_FSYNC:
	case OP_SYNC:
		return false;
	case OP_TRUNCATE:
		/* Shrinking gives space back. */
		return fsapi_refmodel.getattr(l->m, op->ino, &attr) ||
		       op->set.size >= attr.size;
	case OP_WRITE:
		/* Blocks that the file has may be written, come what may. */
		return !refmodel_exists(l->m, op->ino) || !op->len ||
		       !refdata_is_allocated(refmodel_data(l->m, op->ino),
					     op->offset, op->len);
	case OP_FALLOCATE:
		return !(op->mode & FALLOC_FL_PUNCH_HOLE);
	default:
		return true;
	}
}

/* It failed for a reason of its own: a write may have done a part. */
static bool do_a_part(struct lockstep *l, const struct op *op,
		      const struct op *other_op)
{
	uint8_t *data;
	bool ok;

	if (op->kind != OP_WRITE || !refmodel_exists(l->m, op->ino))
		return true;
	data = op_data(op);
	ok = refmodel_partial_write(l->m, op->ino, op->offset, op->len, data,
				    &l->other, other_op->ino);
	free(data);
	return ok || complain(l, op, "a write that failed left a mess");
}

/*
 * Allocating or zeroing failed half-way: which blocks the file holds now cannot
 * be seen, so cut it, which must be possible.
 */
static bool cut_to_nothing(struct lockstep *l, const struct op *op,
			   const struct op *other_op)
{
	struct attr in = { .size = 0 }, out;

	if (l->other.ops->setattr(l->other.fs, other_op->ino, VOLUME_SET_SIZE,
				  &in, &out) ||
	    fsapi_refmodel.setattr(l->m, op->ino, VOLUME_SET_SIZE, &in, &out))
		return complain(l, op, "then the file cannot be truncated");
	return true;
}

static bool is_regular(const struct lockstep *l, inum_t ino)
{
	struct attr a;

	return !fsapi_refmodel.getattr(l->m, ino, &a) && S_ISREG(a.mode);
}

/* The device failed once: what volume.h lets be done in part may have been. */
static bool met_fault(struct lockstep *l, const struct op *op,
		      const struct op *other_op)
{
	if ((op->kind == OP_FALLOCATE || op->kind == OP_TRUNCATE) &&
	    is_regular(l, op->ino))
		return cut_to_nothing(l, op, other_op);
	return do_a_part(l, op, other_op);
}

static bool was_full(struct lockstep *l, const struct op *op,
		     const struct op *other_op)
{
	l->full++;
	if (!l->allow_full)
		return complain(l, op, "no space, but there must be some");
	if (!may_be_full(l, op))
		return complain(l, op, "no space for what needs none");
	if (op->kind == OP_FALLOCATE)
		return cut_to_nothing(l, op, other_op);
	return do_a_part(l, op, other_op);
}

static bool is_fault(const struct lockstep *l, int err)
{
	return l->faults != LOCKSTEP_NO_FAULTS &&
	       (err == -EIO || err == -EROFS);
}

static bool attrs_agree(struct lockstep *l, const struct op *op,
			const inum_t *ino, size_t nr)
{
	char why[256], line[320];
	struct attr a, b;
	int err;

	for (size_t i = 0; i < nr; i++) {
		if (fsapi_refmodel.getattr(l->m, ino[i], &a))
			continue;
		err = l->other.ops->getattr(l->other.fs,
					    inomap_get(&l->map, ino[i]), &b);
		if (is_fault(l, err))
			continue;
		if (err) {
			snprintf(line, sizeof(line),
				 "then getattr of inode %" PRIu64 ": %s",
				 ino[i], strerror(-err));
			return complain(l, op, line);
		}
		if (attr_agrees(&a, &b, l->flags, why, sizeof(why)))
			continue;
		snprintf(line, sizeof(line), "then of inode %" PRIu64 " %s",
			 ino[i], why);
		return complain(l, op, line);
	}
	return true;
}

static bool new_inode(enum op_kind kind)
{
	return kind == OP_CREATE || kind == OP_MKDIR || kind == OP_MKNOD ||
	       kind == OP_SYMLINK;
}

/* What a rename left under the old name, which nobody returned. */
static bool find_whiteout(struct lockstep *l, const struct op *op,
			  const struct op *other_op)
{
	struct attr a, b;

	if (fsapi_refmodel.lookup(l->m, op->dir, op->name, &a) ||
	    inomap_get(&l->map, a.ino) < (1ull << 40))
		return true;
	if (l->other.ops->lookup(l->other.fs, other_op->dir, op->name, &b))
		return complain(l, op, "no whiteout");
	inomap_set(&l->map, a.ino, b.ino);
	return attrs_agree(l, op, &a.ino, 1);
}

static bool compare(struct lockstep *l, const struct op *op,
		    const struct op *other_op, const struct op_result *model,
		    const struct op_result *other)
{
	char why[256];

	l->count[op->kind]++;
	l->failed[op->kind] += model->err != 0;
	if (!op_agrees(op, model, other, &l->map, l->flags, why, sizeof(why)))
		return complain(l, op, why);
	if (model->err)
		return true;
	if (new_inode(op->kind))
		inomap_set(&l->map, model->attr.ino, other->attr.ino);
	else if (model->has_attr &&
		 inomap_get(&l->map, model->attr.ino) != other->attr.ino)
		return complain(l, op, "another inode answered");
	return op->kind != OP_RENAME || find_whiteout(l, op, other_op);
}

bool lockstep_do(struct lockstep *l, const struct op *op)
{
	struct fsapi model = { &fsapi_refmodel, l->m };
	struct op_result r_model = { 0 }, r_other;
	inum_t touched[OP_TOUCHED_MAX];
	struct op other_op = *op;
	size_t nr_touched;
	bool ok;

	l->step++;
	if (l->verbose) {
		fprintf(stderr, "%" PRIu64 ": ", l->step);
		op_print(op, stderr);
		fprintf(stderr, "\n");
	}
	testclock_tick();
	if (l->before)
		l->before(l->before_arg);
	nr_touched = op_touched(op, l->m, touched);
	op_translate(&other_op, &l->map);
	op_apply(&other_op, &l->other, &r_other);
	if (r_other.err == -ENOSPC || r_other.err == -EDQUOT) {
		ok = was_full(l, op, &other_op);
	} else if (is_fault(l, r_other.err)) {
		l->nr_faults++;
		if (l->faults == LOCKSTEP_SKIP_FAULTS)
			nr_touched = 0;
		ok = !nr_touched || met_fault(l, op, &other_op);
	} else {
		op_apply(op, &model, &r_model);
		ok = compare(l, op, &other_op, &r_model, &r_other);
	}
	if (ok)
		ok = attrs_agree(l, op, touched, nr_touched);
	op_result_free(&r_model);
	op_result_free(&r_other);
	return ok;
}

bool lockstep_compare(struct lockstep *l, unsigned int flags)
{
	struct fsapi model = { &fsapi_refmodel, l->m };
	struct snap a, b;
	bool ok;

	if (snap_take(&a, &model)) {
		fprintf(stderr, "the model: %s\n", a.error);
		abort();
	}
	ok = !snap_take(&b, &l->other);
	if (!ok)
		fprintf(stderr, "step %" PRIu64 ": %s: %s\n", l->step,
			l->other.ops->name, b.error);
	else
		ok = snap_equal(&a, "model", &b, l->other.ops->name, flags,
				stderr);
	snap_free(&a);
	snap_free(&b);
	return ok;
}

void lockstep_print_counts(const struct lockstep *l)
{
	for (int i = 0; i < OP_NR; i++)
		printf("%s %" PRIu64 " (%" PRIu64 " refused)%s", op_name[i],
		       l->count[i], l->failed[i], i + 1 < OP_NR ? ", " : "\n");
	if (l->full)
		printf("no space %" PRIu64 " times\n", l->full);
}
