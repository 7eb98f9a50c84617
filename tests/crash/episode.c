/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/crash/episode.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/refdata.h"
#include "tests/support/treesnap.h"

#define SYNC_EVERY 9 /* operations, about */

bool crash_time_is_up(const struct crash_run *run)
{
	return time(NULL) >= run->end;
}

void crash_repeat(const struct crash_run *run)
{
	fprintf(stderr,
		"repeat: crash-test --seed %" PRIu64 " --episodes 1 --ops "
		"%" PRIu64 " --verbose\n",
		run->seed, run->ops);
}

/* Distinct images. */

/* Remember @id; false if it was known. */
static bool seen_before(struct crash_run *run, uint64_t id)
{
	size_t at;

	if (run->nr_seen * 2 >= run->room_seen) {
		uint64_t *old = run->seen;
		size_t nr = run->room_seen;

		run->room_seen = nr ? nr * 2 : 1024;
		run->seen = xmalloc(run->room_seen * sizeof(*run->seen));
		run->nr_seen = 0;
		for (size_t i = 0; i < nr; i++)
			if (old[i])
				seen_before(run, old[i]);
		free(old);
	}
	id |= 1; /* 0 means: free */
	for (at = id % run->room_seen; run->seen[at];
	     at = (at + 1) % run->room_seen)
		if (run->seen[at] == id)
			return true;
	run->seen[at] = id;
	run->nr_seen++;
	return false;
}

/* The number of events up to and with the last flush among @nr. */
static uint64_t last_flush(const struct emudev *d, uint64_t nr)
{
	while (nr && emudev_event_at(d, nr - 1).type != EMUDEV_FLUSH)
		nr--;
	return nr;
}

/*
 * A hash of @image: its last flush, and the blocks that differ from what was
 * durable then.
 */
static uint64_t image_id(struct emudev *d, uint64_t nr_events,
			 const struct emudev *image)
{
	uint8_t was[BLOCK_BYTES], is[BLOCK_BYTES];
	uint64_t flush = last_flush(d, nr_events);
	struct emudev *base = emudev_image_at(d, flush, EMUDEV_KEEP, 0);
	uint64_t id = rng_hash((uintptr_t)d, &flush, sizeof(flush));

	for (uint64_t i = flush; i < nr_events; i++) {
		struct emudev_event e = emudev_event_at(d, i);

		if (e.type != EMUDEV_WRITE)
			continue;
		emudev_peek(base, e.block, was);
		emudev_peek(image, e.block, is);
		/* Their order does not matter. */
		if (memcmp(was, is, BLOCK_BYTES))
			id += rng_hash(e.block, is, BLOCK_BYTES);
	}
	emudev_free(base);
	return rng_mix(id);
}

/* States. */

/*
 * Short of space, a commit may come between cutting a file and giving its
 * blocks back, so how many it holds is not said then.
 */
static unsigned int snap_flags(const struct episode *e)
{
	return SNAP_TIMES | SNAP_ATIME | (e->run->full ? 0 : SNAP_SPACE);
}

static uint64_t model_digest(const struct episode *e)
{
	struct fsapi model = { &fsapi_refmodel, e->l.m };
	struct snap s;
	uint64_t digest;

	if (snap_take(&s, &model)) {
		fprintf(stderr, "the model: %s\n", s.error);
		abort();
	}
	digest = snap_digest(&s, snap_flags(e));
	snap_free(&s);
	return digest;
}

/* The model as it was after operation @state. */
static struct refmodel *replay(const struct episode *e, size_t state)
{
	size_t from = state;
	struct refmodel *m;
	struct fsapi model;
	int64_t now = testclock_ns();

	while (from && !e->rec[from].model)
		from--;
	m = refmodel_clone(from ? e->rec[from].model : e->start);
	model = (struct fsapi){ &fsapi_refmodel, m };
	for (size_t i = from + 1; i <= state; i++) {
		struct op_result r;

		testclock_set_ns(e->rec[i].clock_ns);
		op_apply(&e->rec[i].op, &model, &r);
		op_result_free(&r);
	}
	testclock_set_ns(now);
	return m;
}

static void explain(const struct episode *e, const struct snap *shown,
		    size_t state)
{
	struct refmodel *m = replay(e, state);
	struct fsapi model = { &fsapi_refmodel, m };
	struct snap s;

	fprintf(stderr, "  from state %zu it differs in ", state);
	if (!snap_take(&s, &model) &&
	    snap_equal(&s, "model", shown, "volume", snap_flags(e), stderr))
		fprintf(stderr, "nothing, but hashes differ\n");
	snap_free(&s);
	refmodel_free(m);
}

static long find_state(const struct episode *e, uint64_t digest, size_t low,
		       size_t high)
{
	for (size_t i = high + 1; i-- > low;)
		if (e->rec[i].digest == digest)
			return (long)i;
	return -1;
}

long episode_state_of(struct episode *e, struct volume *v, size_t low,
		      size_t high)
{
	struct fsapi fs = { &fsapi_volume, v };
	struct snap s;
	long state = -1;

	if (snap_take(&s, &fs)) {
		fprintf(stderr, "  %s\n", s.error);
	} else {
		uint64_t digest = snap_digest(&s, snap_flags(e));

		state = find_state(e, digest, low, high);
		if (state < 0) {
			long old = find_state(e, digest, 0, e->nr - 1);

			fprintf(stderr, "  a state that is not legal: ");
			if (old >= 0)
				fprintf(stderr,
					"number %ld, should be %zu to %zu\n",
					old, low, high);
			else
				fprintf(stderr, "it never existed\n");
			explain(e, &s, low);
			if (high != low)
				explain(e, &s, high);
		}
	}
	snap_free(&s);
	return state;
}

/* Living. */

static struct record *new_record(struct episode *e)
{
	struct record *r;

	if (!(e->nr & (e->nr - 1)))
		e->rec = xrealloc(e->rec, (e->nr * 2 + 1) * sizeof(*e->rec));
	r = &e->rec[e->nr++];
	memset(r, 0, sizeof(*r));
	r->ev_start = emudev_nr_events(e->d);
	return r;
}

/* The same names in the same order: so inode numbers can be matched. */
static bool match_inodes(struct episode *e)
{
	struct fsapi model = { &fsapi_refmodel, e->l.m };
	struct snap a, b;
	bool ok;

	if (snap_take(&a, &model))
		abort();
	ok = !snap_take(&b, &e->l.other);
	if (!ok)
		fprintf(stderr, "  %s\n", b.error);
	else
		ok = snap_equal(&a, "model", &b, "volume", snap_flags(e),
				stderr);
	for (size_t i = 0; ok && i < a.nr; i++)
		inomap_set(&e->l.map, a.entry[i].attr.ino, b.entry[i].attr.ino);
	snap_free(&a);
	snap_free(&b);
	return ok;
}

static struct refmodel *model_of_new(struct volume *v)
{
	struct refmodel *m;
	struct attr root;

	if (volume_getattr(v, VOLUME_ROOT, &root)) {
		fprintf(stderr, "a new volume has no root\n");
		abort();
	}
	m = refmodel_new(&root, testclock_now);
	return m;
}

bool episode_open(struct episode *e, struct crash_run *run,
		  const struct testvol *t, struct emudev *d, struct refmodel *m,
		  unsigned int depth)
{
	struct record *r;
	int err;

	memset(e, 0, sizeof(*e));
	e->run = run;
	e->t = t;
	e->d = d;
	e->depth = depth;
	r = new_record(e);
	r->promise = true;
	err = testvol_open_image(t, d, &e->v);
	if (err) {
		fprintf(stderr, "  opening: %s\n", strerror(-err));
		e->v = NULL;
		refmodel_free(m);
		return false;
	}
	if (!m)
		m = model_of_new(e->v);
	refmodel_drop_orphans(m);
	lockstep_init(&e->l, m, &(struct fsapi){ &fsapi_volume, e->v });
	e->l.flags = OP_COMPARE_TIMES | OP_COMPARE_ATIME | OP_COMPARE_SPACE |
		     OP_COMPARE_SEEK;
	e->l.verbose = run->verbose;
	e->l.allow_full = run->full;
	e->start = refmodel_clone(m);
	r->digest = model_digest(e);
	/* It was durable before the first event. */
	r->ev_end = 0;
	return match_inodes(e);
}

bool episode_do(struct episode *e, const struct op *op)
{
	uint64_t full = e->l.full;
	struct record *r = new_record(e);
	bool ok;

	r->op = *op;
	ok = lockstep_do(&e->l, op);
	r->clock_ns = testclock_ns();
	if (e->l.full != full)
		r->model = refmodel_clone(e->l.m);
	r->digest = model_digest(e);
	r->promise = ok && (op->kind == OP_SYNC ||
			    (op->kind == OP_FSYNC &&
			     refmodel_exists(e->l.m, op->ino)));
	r->ev_end = emudev_nr_events(e->d);
	if (!ok)
		crash_repeat(e->run);
	return ok;
}

/*
 * What is done in several steps (volume.h) may be seen between two of them if
 * there is so little space that a commit is needed there.
 */
static void choose_one_step(struct op *op)
{
	if (op->kind == OP_FALLOCATE)
		op->kind = OP_READ;
	if (op->kind == OP_TRUNCATE)
		op->set.size -= op->set.size % BLOCK_BYTES;
}

bool episode_random(struct episode *e, struct workload *w, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++) {
		struct op op;

		workload_next(w, e->l.m, &op);
		if (e->run->full)
			choose_one_step(&op);
		if (rng_one_in(&w->rng, SYNC_EVERY)) {
			memset(&op, 0, sizeof(op));
			op.kind = rng_one_in(&w->rng, 2) ? OP_SYNC : OP_FSYNC;
			op.ino = op.kind == OP_FSYNC ? VOLUME_ROOT : 0;
		}
		if (!episode_do(e, &op))
			return false;
	}
	return true;
}

bool episode_close(struct episode *e)
{
	struct record *r = new_record(e);
	int err = volume_close(e->v);

	e->v = NULL;
	r->digest = e->rec[e->nr - 2].digest;
	r->ev_end = emudev_nr_events(e->d);
	r->promise = !err;
	if (err) {
		fprintf(stderr, "closing: %s\n", strerror(-err));
		crash_repeat(e->run);
	}
	return !err;
}

void episode_abandon(struct episode *e)
{
	if (e->v)
		volume_abandon(e->v);
	e->v = NULL;
}

void episode_destroy(struct episode *e)
{
	episode_abandon(e);
	for (int i = 0; i < OP_NR; i++)
		e->run->count[i] += e->l.count[i];
	if (e->start)
		lockstep_destroy(&e->l);
	refmodel_free(e->start);
	for (size_t i = 0; i < e->nr; i++)
		refmodel_free(e->rec[i].model);
	free(e->rec);
	emudev_free(e->d);
}

/* Cutting. */

/* States that may be found when the first @nr_events happened. */
static void legal_states(const struct episode *e, uint64_t nr_events,
			 size_t *low, size_t *high)
{
	*low = *high = 0;
	for (size_t i = 0; i < e->nr; i++) {
		if (e->rec[i].promise && e->rec[i].ev_end <= nr_events)
			*low = i;
		if (e->rec[i].ev_start < nr_events)
			*high = i;
	}
	if (*high < *low)
		*high = *low;
}

static bool live_on(struct episode *e, struct emudev *image, size_t state,
		    uint64_t seed)
{
	struct episode next;
	struct workload w;
	bool ok;

	e->run->deeper++;
	workload_init(&w, e->run->params, seed);
	workload_phase(&w, PHASE_CHURN, 1000);
	ok = episode_open(&next, e->run, e->t, image, replay(e, state),
			  e->depth + 1);
	ok = ok && episode_random(&next, &w, 12);
	if (rng_one_in(&w.rng, 2))
		ok = ok && episode_close(&next);
	else
		episode_abandon(&next);
	ok = ok && episode_try_all(&next);
	episode_destroy(&next);
	return ok;
}

static bool legal_volume(struct episode *e, struct volume *v, size_t low,
			 size_t high, long *state)
{
	*state = -1;
	if (e->legal)
		return e->legal(e, v, low, high);
	*state = episode_state_of(e, v, low, high);
	return *state >= 0;
}

/* After recovery: close in order, and check again. */
static bool close_and_check(struct episode *e, struct emudev *image,
			    struct volume *v)
{
	struct check_result r;
	int err = volume_close(v);

	if (err) {
		fprintf(stderr, "  closing: %s\n", strerror(-err));
		return false;
	}
	return testvol_check(e->t, image, &r);
}

/* I8: on a full container, right after a crash, too. */
static bool delete_ballast(struct volume *v)
{
	inum_t gone = 0;
	int err = volume_unlink(v, VOLUME_ROOT, BALLAST, &gone);

	/* The workload renames, too. */
	if (err == -ENOENT || err == -EISDIR)
		return true;
	if (!err) {
		volume_reap(v, gone);
		err = volume_sync(v);
	}
	if (err)
		fprintf(stderr, "  deleting from a full container: %s\n",
			strerror(-err));
	return !err;
}

static bool try_image(struct episode *e, struct emudev *image, size_t low,
		      size_t high, long *state)
{
	struct check_result r;
	struct volume *v;
	int err;

	if (!testvol_check(e->t, image, &r))
		return false;
	err = testvol_open_image(e->t, image, &v);
	if (err) {
		fprintf(stderr, "  opening: %s\n", strerror(-err));
		return false;
	}
	if (!legal_volume(e, v, low, high, state)) {
		volume_abandon(v);
		return false;
	}
	if (e->run->full && rng_one_in(&e->run->rng, 4) && !delete_ballast(v)) {
		volume_abandon(v);
		return false;
	}
	if (rng_one_in(&e->run->rng, 8))
		return close_and_check(e, image, v);
	volume_abandon(v);
	return true;
}

static void save_failure(const struct crash_run *run, const struct emudev *d)
{
	char path[128];

	snprintf(path, sizeof(path), "/tmp/crash-test-%" PRIu64 "-%" PRIu64,
		 run->seed, run->images);
	if (!emudev_save(d, path))
		fprintf(stderr, "the disk is in %s (password: password)\n",
			path);
}

bool episode_try(struct episode *e, uint64_t nr_events,
		 enum emudev_policy policy, uint64_t seed)
{
	static const char *const name[] = { "keep", "lose", "reorder",
					    "reorder, bad blocks" };
	struct emudev *image, *copy;
	size_t low, high;
	long state;
	bool ok;

	image = emudev_image_at(e->d, nr_events, policy, seed);
	if (seen_before(e->run, image_id(e->d, nr_events, image))) {
		emudev_free(image);
		return true;
	}
	e->run->images++;
	copy = emudev_clone(image);
	legal_states(e, nr_events, &low, &high);
	ok = try_image(e, image, low, high, &state);
	emudev_free(image);
	if (ok && state >= 0 && e->depth < EPISODE_DEPTH_MAX && e->run->go_on &&
	    rng_one_in(&e->run->rng, (uint64_t)e->run->go_on << 2 * e->depth)) {
		image = emudev_clone(copy);
		ok = live_on(e, image, (size_t)state, seed + nr_events);
	}
	if (!ok) {
		fprintf(stderr,
			"cut after event %" PRIu64 " of %" PRIu64 " (%s, seed "
			"%" PRIu64 "), depth %u, states %zu to %zu of %zu\n",
			nr_events, emudev_nr_events(e->d), name[policy], seed,
			e->depth, low, high, e->nr - 1);
		save_failure(e->run, copy);
	}
	emudev_free(copy);
	return ok;
}

bool episode_try_all(struct episode *e)
{
	uint64_t nr = emudev_nr_events(e->d);

	for (uint64_t i = 0; i <= nr; i++) {
		if (crash_time_is_up(e->run))
			return true;
		/* Deep down a sample will do. */
		if (e->depth && !rng_one_in(&e->run->rng, 1 + e->depth * 4))
			continue;
		if (!episode_try(e, i, EMUDEV_KEEP, 0))
			return false;
		for (unsigned int k = 0; k < e->run->reorderings; k++) {
			uint64_t seed = rng_next(&e->run->rng);
			enum emudev_policy policy = EMUDEV_REORDER;

			if (k & 1)
				policy = EMUDEV_REORDER_BAD;
			if (!episode_try(e, i, policy, seed))
				return false;
		}
	}
	return true;
}
