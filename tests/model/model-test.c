/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A volume and the reference model agree: random operations, with small
 * caches and nodes of few items so that splits, merges and evictions happen
 * all the time, in every scheme, with remounts in between, and on containers
 * so small that they are full now and then.
 *
 * A round is one container.  All of it follows from its seed, so the line
 * printed for a failure repeats it; --shrink then looks for a shorter way to
 * the same end.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/model/slow-reader.h"
#include "tests/support/lastwords.h"
#include "tests/support/lockstep.h"
#include "tests/support/refdata.h"
#include "tests/support/testvol.h"
#include "tests/support/treesnap.h"

#define HANG_SECONDS 120
#define NR_READERS 2
#define SHRINK_TRIALS 600

enum step_kind {
	STEP_OP,
	STEP_COMPARE, /* all of both */
	STEP_REMOUNT, /* close, check, open, compare */
	STEP_CRASH,   /* sync, abandon, check, open, compare */
	STEP_READ_SLOWLY,
};

struct step {
	enum step_kind kind;
	unsigned int which, nr; /* of the slow reader */
	inum_t next;		/* number of the next new inode */
	struct op op;
};

struct options {
	uint64_t seed;
	uint64_t rounds; /* 0: until the time is up */
	uint64_t steps;	 /* a round */
	unsigned int seconds;
	time_t end;		     /* unless there are rounds */
	const struct scheme *scheme; /* NULL: by chance */
	bool verbose, shrink;
};

struct round {
	const struct options *o;
	uint64_t seed;
	struct testvol_shape shape;
	struct workload_params params;
	struct testvol t;
	struct lockstep l;
	struct slow_reader reader[NR_READERS];
	uint64_t done; /* steps */
};

struct totals {
	uint64_t count[OP_NR], failed[OP_NR], full, steps, remounts, compares;
};

static struct totals totals;

char last_words[256];

static void remember_place(uint64_t seed, uint64_t step)
{
	snprintf(last_words, sizeof(last_words),
		 "died; repeat: model-test --seed %" PRIu64
		 " --rounds 1 --stop-at %" PRIu64 " --verbose\n",
		 seed, step);
}

/* The shape of a round. */

#define MIB_BLOCKS (UINT64_C(1) << (20 - BLOCK_SHIFT))

/* Containers and hosts that are too small for the workload. */
static void make_small(struct round *r, struct rng *rng)
{
	uint64_t mib = 33 + rng_below(rng, 16);

	if (rng_one_in(rng, 2))
		r->shape.limit_blocks = mib * MIB_BLOCKS;
	else
		r->shape.host_bytes = mib << 20;
	r->params.max_blocks = UINT64_MAX;
	r->params.max_inodes = 3000;
	/* How far a write came that met no space must be seen. */
	r->params.no_zeros = true;
}

static void choose_shape(struct round *r)
{
	struct rng rng = { r->seed };

	testvol_shape_random(&r->shape, &rng);
	if (r->o->scheme)
		r->shape.scheme = r->o->scheme;
	if (rng_one_in(&rng, 4))
		r->shape.atime = VOLUME_RELATIME;
	r->params = workload_default;
	if (rng_one_in(&rng, 2))
		r->params.max_folder = 3000;
	if (rng_one_in(&rng, 3))
		make_small(r, &rng);
}

/* Opening and closing. */

static struct fsapi the_volume(struct round *r)
{
	return (struct fsapi){ &fsapi_volume, r->t.v };
}

static bool start_round(struct round *r)
{
	struct fsapi fs;
	struct attr root;

	remember_place(r->seed, 0);
	testclock_set_ns(TESTCLOCK_START);
	choose_shape(r);
	testvol_make(&r->t, &r->shape);
	emudev_stop_log(r->t.d);
	if (testvol_open(&r->t))
		return false;
	if (volume_getattr(r->t.v, VOLUME_ROOT, &root)) {
		fprintf(stderr, "a new volume has no root\n");
		return false;
	}
	fs = the_volume(r);
	lockstep_init(&r->l, refmodel_new(&root, testclock_now), &fs);
	r->l.flags = OP_COMPARE_TIMES | OP_COMPARE_SPACE | OP_COMPARE_SEEK;
	/* Else a read moves it, or not if that is not at once possible. */
	if (r->shape.atime == VOLUME_NOATIME)
		r->l.flags |= OP_COMPARE_ATIME;
	r->l.allow_full = r->shape.limit_blocks ||
			  r->shape.host_bytes < (UINT64_C(100) << 20);
	r->l.verbose = r->o->verbose;
	return true;
}

static void end_round(struct round *r)
{
	for (int i = 0; i < NR_READERS; i++)
		slow_reader_stop(&r->reader[i]);
	for (int i = 0; i < OP_NR; i++) {
		totals.count[i] += r->l.count[i];
		totals.failed[i] += r->l.failed[i];
	}
	totals.full += r->l.full;
	lockstep_destroy(&r->l);
	testvol_destroy(&r->t);
}

static bool compare_all(struct round *r)
{
	totals.compares++;
	return lockstep_compare(&r->l, SNAP_TIMES | SNAP_SPACE |
					       (r->l.flags & OP_COMPARE_ATIME
							? SNAP_ATIME
							: 0));
}

/* The counts that check gives, against the model's. */
static bool counts_agree(struct round *r, const struct check_result *c)
{
	uint64_t inodes = c->files + c->folders + c->others;

	if (inodes == refmodel_nr_inodes(r->l.m) && !c->orphans &&
	    c->blocks_data == refmodel_nr_blocks(r->l.m))
		return true;
	fprintf(stderr,
		"check counts %" PRIu64 " inodes, %" PRIu64 " orphans, %" PRIu64
		" blocks of data; the model %zu, 0, %" PRIu64 "\n",
		inodes, c->orphans, c->blocks_data, refmodel_nr_inodes(r->l.m),
		refmodel_nr_blocks(r->l.m));
	return false;
}

static bool remount(struct round *r, enum step_kind kind)
{
	struct check_result c;

	totals.remounts++;
	if (kind == STEP_CRASH) {
		int err = volume_sync(r->t.v);

		if (err) {
			fprintf(stderr, "sync: %s\n", strerror(-err));
			return false;
		}
		testvol_abandon(&r->t);
	} else if (testvol_close(&r->t)) {
		return false;
	}
	if (!testvol_check(&r->t, r->t.d, &c))
		return false;
	refmodel_drop_orphans(r->l.m);
	if (kind == STEP_REMOUNT && !counts_agree(r, &c))
		return false;
	if (testvol_open(&r->t))
		return false;
	r->l.other = the_volume(r);
	return compare_all(r);
}

/* Steps. */

static bool read_slowly(struct round *r, const struct step *s)
{
	struct slow_reader *reader = &r->reader[s->which];
	inum_t dir = s->op.dir;

	if (!reader->dir) {
		if (refmodel_exists(r->l.m, dir) &&
		    S_ISDIR(refmodel_attr(r->l.m, dir)->mode) &&
		    refmodel_attr(r->l.m, dir)->nlink)
			slow_reader_start(reader, r->l.m, dir);
		return true;
	}
	if (!refmodel_attr(r->l.m, reader->dir)->nlink) {
		slow_reader_stop(reader);
		return true;
	}
	return slow_reader_fetch(reader, &r->l.other,
				 inomap_get(&r->l.map, reader->dir), s->nr);
}

static bool do_step(struct round *r, const struct step *s)
{
	bool ok = true;

	r->done++;
	totals.steps++;
	remember_place(r->seed, r->done);
	switch (s->kind) {
	case STEP_OP:
		ok = lockstep_do(&r->l, &s->op);
		break;
	case STEP_COMPARE:
		ok = compare_all(r);
		break;
	case STEP_REMOUNT:
	case STEP_CRASH:
		ok = remount(r, s->kind);
		break;
	case STEP_READ_SLOWLY:
		ok = read_slowly(r, s);
		break;
	}
	for (int i = 0; i < NR_READERS; i++)
		slow_reader_watch(&r->reader[i], r->l.m);
	return ok;
}

static void choose_step(struct round *r, struct workload *w, struct rng *rng,
			struct step *s)
{
	memset(s, 0, sizeof(*s));
	s->next = refmodel_inum_end(r->l.m);
	if (rng_one_in(rng, 300)) {
		s->kind = STEP_COMPARE;
	} else if (rng_one_in(rng, 250)) {
		s->kind = rng_one_in(rng, 2) ? STEP_REMOUNT : STEP_CRASH;
	} else if (rng_one_in(rng, 20)) {
		s->kind = STEP_READ_SLOWLY;
		s->which = (unsigned int)rng_below(rng, NR_READERS);
		s->nr = 1 + (unsigned int)rng_below(rng, 40);
		s->op.dir = rng_one_in(rng, 2)
				    ? w->folder
				    : rng_below(rng, refmodel_inum_end(r->l.m));
	} else {
		workload_next(w, r->l.m, &s->op);
	}
}

static void print_step(const struct step *s, FILE *out)
{
	static const char *const name[] = { "", "compare", "remount",
					    "sync, abandon, open",
					    "read slowly" };

	if (s->kind == STEP_OP)
		op_print(&s->op, out);
	else
		fprintf(out, "%s", name[s->kind]);
	fprintf(out, "\n");
}

/*
 * All that was done in a round, so that it can be done again without some;
 * shared with the process that did it, which may die.
 */
struct history {
	size_t nr;
	struct step step[];
};

static size_t history_bytes(const struct options *o)
{
	return sizeof(struct history) + (o->steps + 1) * sizeof(struct step);
}

static struct history *history_new(const struct options *o)
{
	struct history *h = mmap(NULL, history_bytes(o), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (h == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return h;
}

static void remember(struct history *h, const struct step *s)
{
	if (h)
		h->step[h->nr++] = *s;
}

static bool last_steps(struct round *r)
{
	struct step compare = { .kind = STEP_COMPARE };
	struct step remount_it = { .kind = STEP_REMOUNT };

	return do_step(r, &compare) && do_step(r, &remount_it);
}

static bool time_is_up(const struct options *o)
{
	return !o->rounds && time(NULL) >= o->end;
}

static bool run_round(const struct options *o, uint64_t seed,
		      struct history *history)
{
	struct round r = { .o = o, .seed = seed };
	struct rng rng = { rng_mix(seed) };
	struct workload w;
	struct step s;
	char shape[200];
	bool ok;

	ok = start_round(&r);
	workload_init(&w, &r.params, seed);
	testvol_shape_print(&r.shape, shape, sizeof(shape));
	if (o->verbose)
		fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, shape);
	while (ok && r.done < o->steps && !time_is_up(o)) {
		alarm(HANG_SECONDS);
		choose_step(&r, &w, &rng, &s);
		remember(history, &s);
		if (o->verbose && s.kind != STEP_OP)
			print_step(&s, stderr);
		ok = do_step(&r, &s);
	}
	ok = ok && last_steps(&r);
	if (!ok)
		fprintf(stderr,
			"%s\nrepeat: model-test --seed %" PRIu64
			" --rounds 1 --stop-at %" PRIu64 " --verbose\n",
			shape, seed, r.done);
	end_round(&r);
	return ok;
}

/* Making a failure small. */

/* Does the history without [from, to) fail too?  In a process of its own. */
static bool still_fails(const struct options *o, uint64_t seed,
			const struct history *h, size_t from, size_t to,
			bool loud)
{
	struct round r = { .o = o, .seed = seed };
	int status = 0;
	pid_t pid = fork();

	if (pid > 0) {
		waitpid(pid, &status, 0);
		return status != 0;
	}
	if (!loud && !freopen("/dev/null", "w", stderr))
		_exit(0);
	alarm(HANG_SECONDS);
	if (!start_round(&r))
		_exit(1);
	for (size_t i = 0; i < h->nr; i++) {
		if (i >= from && i < to)
			continue;
		refmodel_skip_to(r.l.m, h->step[i].next);
		if (!do_step(&r, &h->step[i]))
			_exit(1);
	}
	_exit(last_steps(&r) ? 0 : 1);
}

static void shrink(const struct options *o, uint64_t seed, struct history *h)
{
	unsigned int trials = 0;

	for (size_t len = h->nr / 2; len; len /= 2) {
		for (size_t at = 0; at < h->nr && trials < SHRINK_TRIALS;) {
			size_t end = at + len < h->nr ? at + len : h->nr;

			trials++;
			if (!still_fails(o, seed, h, at, end, false)) {
				at = end;
				continue;
			}
			memmove(&h->step[at], &h->step[end],
				(h->nr - end) * sizeof(*h->step));
			h->nr -= end - at;
		}
	}
	fprintf(stderr, "shrunk to %zu steps:\n", h->nr);
	for (size_t i = 0; i < h->nr; i++)
		print_step(&h->step[i], stderr);
	still_fails(o, seed, h, 0, 0, true);
}

/* In a process of its own, so that dying can be made small, too. */
static bool shrunk_round(const struct options *o, uint64_t seed)
{
	struct history *h = history_new(o);
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(run_round(o, seed, h) ? 0 : 1);
	waitpid(pid, &status, 0);
	if (status)
		shrink(o, seed, h);
	munmap(h, history_bytes(o));
	return !status;
}

static int usage(void)
{
	fprintf(stderr, "usage: model-test [--seed N] [--rounds N] [--steps N] "
			"[--seconds N] [--scheme S]\n"
			"                  [--stop-at STEP] [--long] "
			"[--verbose] [--shrink]\n");
	return 2;
}

static bool parse(struct options *o, int argc, char **argv)
{
	static const struct option table[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "steps", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 't' },
		{ "scheme", required_argument, NULL, 'c' },
		{ "stop-at", required_argument, NULL, 'a' },
		{ "long", no_argument, NULL, 'l' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "shrink", no_argument, NULL, 'S' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (c == 's')
			o->seed = strtoull(optarg, NULL, 0);
		else if (c == 'r')
			o->rounds = strtoull(optarg, NULL, 0);
		else if (c == 'n' || c == 'a')
			o->steps = strtoull(optarg, NULL, 0);
		else if (c == 't')
			o->seconds = (unsigned int)strtoul(optarg, NULL, 0);
		else if (c == 'l')
			o->seconds = 3600;
		else if (c == 'v')
			o->verbose = true;
		else if (c == 'S')
			o->shrink = true;
		else if (c != 'c' || !(o->scheme = scheme_by_name(optarg)))
			return false;
	}
	return optind == argc;
}

static void print_totals(void)
{
	for (int i = 0; i < OP_NR; i++)
		printf("%s %" PRIu64 " (%" PRIu64 " refused)%s", op_name[i],
		       totals.count[i], totals.failed[i],
		       i + 1 < OP_NR ? ", " : "\n");
	printf("%" PRIu64 " steps, no space %" PRIu64 " times, %" PRIu64
	       " remounts, %" PRIu64 " comparisons of everything\n",
	       totals.steps, totals.full, totals.remounts, totals.compares);
}

int main(int argc, char **argv)
{
	struct options o = {
		.seed = (uint64_t)time(NULL) * 1000,
		.steps = 3000,
		.seconds = 20,
	};
	uint64_t passed = 0, failed = 0;

	if (!parse(&o, argc, argv))
		return usage();
	last_words_init();
	o.end = time(NULL) + o.seconds;
	for (uint64_t i = 0; o.rounds ? i < o.rounds : !time_is_up(&o); i++) {
		if (o.shrink ? shrunk_round(&o, o.seed + i)
			     : run_round(&o, o.seed + i, NULL))
			passed++;
		else
			failed++;
	}
	print_totals();
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", passed, failed);
	return failed != 0;
}
