/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Many threads on one volume.  Each has a folder of its own, in which random
 * operations agree with a model of its own, and takes part in what shared.h
 * does to common files.  One thread syncs all the time, one looks at the
 * numbers, and the timer commits, with caches so small that all of them wait
 * for each other.  In the end the container is clean and everything is there,
 * also after a remount.
 *
 * A thread that does not get on for a minute is a deadlock (C01): the program
 * says what each was doing and aborts.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fs/container.h"
#include "stats/stats.h"
#include "tests/model/shared.h"
#include "tests/support/lastwords.h"
#include "tests/support/lockstep.h"
#include "tests/support/refdata.h"
#include "tests/support/testvol.h"
#include "tests/support/treesnap.h"

#define THREADS_MAX 64
#define STUCK_SECONDS 60
#define SYNC_PAUSE_US 3000
#define LIMIT_BLOCKS 9216u /* 36 MiB */

char last_words[256];

static const struct workload_params roomy = {
	.max_inodes = 150,
	.max_blocks = 1000,
	.max_folder = 300,
	.max_offset = 1ull << 62,
	.max_write = 300000,
	.max_xattr = 8000,
	.xattr_names = 8,
	.odd_times = true,
};

/* All threads together want more than a small container has. */
static const struct workload_params cramped = {
	.max_inodes = 1000,
	.max_blocks = UINT64_MAX,
	.max_folder = 300,
	.max_offset = 1ull << 62,
	.max_write = 300000,
	.max_xattr = 8000,
	.xattr_names = 8,
	.no_zeros = true,
	.odd_times = true,
};

struct crew;

struct worker {
	struct crew *crew;
	unsigned int index;
	pthread_t thread;
	struct fsapi_ops ops; /* of the volume, with ".." ending at home */
	struct lockstep l;
	struct rng rng;
	_Atomic(const char *) doing;
	atomic_ullong steps;
	bool ok;
};

struct crew {
	struct testvol t;
	struct shared shared;
	atomic_bool stop, failed;
	unsigned int nr;
	const struct workload_params *params;
	struct worker worker[THREADS_MAX];
	struct worker syncer, watcher;
	uint64_t seed;
};

/* A thread's own folder is the root of its model: no way leads out of it. */

static _Thread_local inum_t home;

static int home_lookup(void *fs, inum_t dir, const char *name, struct attr *out)
{
	return volume_lookup(
		fs, dir, dir == home && !strcmp(name, "..") ? "." : name, out);
}

struct home_emit {
	inum_t dir;
	fsapi_emit emit;
	void *arg;
};

static bool emit_home(void *arg, const struct volume_dirent *e)
{
	struct home_emit *h = arg;
	struct volume_dirent own = *e;

	if (h->dir == home && !strcmp(e->name, ".."))
		own.ino = home;
	return h->emit(h->arg, &own);
}

static int home_readdir(void *fs, inum_t dir, uint64_t cookie,
			unsigned int flags, fsapi_emit emit, void *arg)
{
	struct home_emit h = { dir, emit, arg };

	return volume_readdir(fs, dir, cookie, flags, emit_home, &h);
}

static bool make_home(struct crew *c, struct worker *w)
{
	const struct volume_cred root = { 0, 0 };
	struct attr attr;
	char name[20];
	int err;

	snprintf(name, sizeof(name), "thread-%u", w->index);
	err = volume_create(c->t.v, VOLUME_ROOT, name, S_IFDIR | 0755, 0, &root,
			    &attr);
	if (err) {
		fprintf(stderr, "mkdir: %s\n", strerror(-err));
		return false;
	}
	w->ops = fsapi_volume;
	w->ops.name = "volume, in a thread";
	w->ops.lookup = home_lookup;
	w->ops.readdir = home_readdir;
	lockstep_init(&w->l, refmodel_new(&attr, testclock_now),
		      &(struct fsapi){ &w->ops, c->t.v, attr.ino });
	/* The clock is everybody's, so times mean nothing here. */
	w->l.flags = OP_COMPARE_SPACE | OP_COMPARE_SEEK;
	w->l.allow_full = c->shared.may_be_full;
	return true;
}

/* The threads. */

static void *work(void *arg)
{
	struct worker *w = arg;
	struct workload load;
	struct op op;

	home = w->l.other.root;
	workload_init(&load, w->crew->params, w->rng.state);
	w->ok = true;
	while (w->ok && !w->crew->stop && !w->crew->failed) {
		if (rng_one_in(&w->rng, 3)) {
			w->ok = shared_step(&w->crew->shared, &w->rng,
					    &w->doing);
		} else {
			workload_next(&load, w->l.m, &op);
			w->doing = op_name[op.kind];
			w->ok = lockstep_do(&w->l, &op);
		}
		w->steps++;
	}
	w->doing = "compare";
	w->ok = w->ok &&
		(w->crew->failed || lockstep_compare(&w->l, SNAP_SPACE));
	if (!w->ok)
		w->crew->failed = true;
	w->doing = "ended";
	return NULL;
}

static void *sync_all_the_time(void *arg)
{
	struct worker *w = arg;
	int err = 0;

	while (!err && !w->crew->stop && !w->crew->failed) {
		w->doing = "sync";
		err = volume_sync(w->crew->t.v);
		w->steps++;
		usleep(SYNC_PAUSE_US);
	}
	w->ok = !err;
	if (err) {
		fprintf(stderr, "sync: %s\n", strerror(-err));
		w->crew->failed = true;
	}
	w->doing = "ended";
	return NULL;
}

/* The numbers make sense at every moment: space and commits at least. */
static bool watch_once(struct volume *v, uint64_t *commit)
{
	uint64_t gauge[STATS_GAUGE_NR], now = volume_commit_number(v);
	struct volume_statfs s;

	if (volume_statfs(v, &s) || s.free > s.blocks || now < *commit ||
	    volume_is_read_only(v)) {
		fprintf(stderr,
			"statfs: %" PRIu64 " of %" PRIu64 " free, commit "
			"%" PRIu64 " after %" PRIu64 "\n",
			s.free, s.blocks, now, *commit);
		return false;
	}
	*commit = now;
	volume_gauges(v, gauge);
	return true;
}

static void *watch_numbers(void *arg)
{
	struct worker *w = arg;
	uint64_t commit = 0;

	w->ok = true;
	w->doing = "statfs";
	while (w->ok && !w->crew->stop && !w->crew->failed) {
		w->ok = watch_once(w->crew->t.v, &commit);
		w->steps++;
		usleep(SYNC_PAUSE_US);
	}
	if (!w->ok)
		w->crew->failed = true;
	w->doing = "ended";
	return NULL;
}

/* Waiting for them. */

static void print_worker(const struct worker *w, const char *name)
{
	fprintf(stderr, "  %s %u: %llu steps, now: %s\n", name, w->index,
		(unsigned long long)w->steps, atomic_load(&w->doing));
}

static void dump_and_abort(struct crew *c)
{
	fprintf(stderr, "a thread is stuck:\n");
	for (unsigned int i = 0; i < c->nr; i++)
		print_worker(&c->worker[i], "worker");
	print_worker(&c->syncer, "syncer");
	print_worker(&c->watcher, "watcher");
	abort();
}

struct patience {
	unsigned long long steps;
	time_t since;
};

static bool is_stuck(const struct worker *w, struct patience *p, time_t now)
{
	if (w->steps != p->steps || !strcmp(w->doing, "ended")) {
		p->steps = w->steps;
		p->since = now;
	}
	return now - p->since > STUCK_SECONDS;
}

static bool all_ended(const struct crew *c)
{
	for (unsigned int i = 0; i < c->nr; i++)
		if (strcmp(c->worker[i].doing, "ended"))
			return false;
	return !strcmp(c->syncer.doing, "ended") &&
	       !strcmp(c->watcher.doing, "ended");
}

static void watch_over(struct crew *c, unsigned int seconds)
{
	struct patience p[THREADS_MAX + 2];
	time_t start = time(NULL), now = start;

	for (int i = 0; i < THREADS_MAX + 2; i++)
		p[i] = (struct patience){ 0, start };
	while (!all_ended(c)) {
		usleep(100000);
		now = time(NULL);
		if (now - start >= seconds)
			c->stop = true;
		for (unsigned int i = 0; i < c->nr; i++)
			if (is_stuck(&c->worker[i], &p[i], now))
				dump_and_abort(c);
		if (is_stuck(&c->syncer, &p[THREADS_MAX], now) ||
		    is_stuck(&c->watcher, &p[THREADS_MAX + 1], now))
			dump_and_abort(c);
	}
}

static void start(struct worker *w, struct crew *c, void *(*run)(void *))
{
	w->crew = c;
	w->doing = "starting";
	if (pthread_create(&w->thread, NULL, run, w)) {
		perror("pthread_create");
		abort();
	}
}

static bool join(struct worker *w)
{
	pthread_join(w->thread, NULL);
	return w->ok;
}

static bool run_threads(struct crew *c, unsigned int seconds)
{
	bool ok;

	start(&c->syncer, c, sync_all_the_time);
	start(&c->watcher, c, watch_numbers);
	for (unsigned int i = 0; i < c->nr; i++)
		start(&c->worker[i], c, work);
	watch_over(c, seconds);
	ok = join(&c->syncer);
	ok = join(&c->watcher) && ok;
	for (unsigned int i = 0; i < c->nr; i++)
		ok = join(&c->worker[i]) && ok;
	return ok;
}

/* The disk. */

/*
 * A disk in memory answers at once, and what can go wrong while a block is
 * being read (it is freed, two commits pass, another file gets it) never would.
 * So some calls take long.
 */
#define SLOW_READ_ONE_IN 16
#define SLOW_WRITE_ONE_IN 64
#define SLOW_US_MAX 20000

static const struct container_ops *fast_disk;
static struct container_ops slow_disk;

static void pause_one_in(uint64_t n)
{
	static atomic_uint_least64_t calls;
	struct rng rng = { rng_mix(atomic_fetch_add(&calls, 1)) };

	if (rng_one_in(&rng, n))
		usleep((useconds_t)rng_below(&rng, SLOW_US_MAX));
}

static int slow_read(struct container *c, uint64_t offset, size_t len,
		     void *buf)
{
	pause_one_in(SLOW_READ_ONE_IN);
	return fast_disk->read(c, offset, len, buf);
}

static int slow_write(struct container *c, uint64_t offset, size_t len,
		      const void *buf)
{
	pause_one_in(SLOW_WRITE_ONE_IN);
	return fast_disk->write(c, offset, len, buf);
}

static void slow_down(struct emudev *d)
{
	struct container *c = emudev_container(d);

	fast_disk = c->ops;
	slow_disk = *fast_disk;
	slow_disk.read = slow_read;
	slow_disk.write = slow_write;
	c->ops = &slow_disk;
}

/* Before and after. */

static void choose_shape(struct crew *c, struct testvol_shape *s)
{
	struct rng rng = { c->seed };

	testvol_shape_random(s, &rng);
	s->cache_bytes = rng_one_in(&rng, 2) ? 256 << 10 : 1 << 20;
	s->commit_seconds = 1;
	c->params = &roomy;
	if (rng_one_in(&rng, 3)) {
		c->params = &cramped;
		c->shared.may_be_full = true;
		s->limit_blocks = LIMIT_BLOCKS;
	}
}

static bool set_up(struct crew *c)
{
	struct testvol_shape shape;
	char text[200];

	choose_shape(c, &shape);
	testvol_shape_print(&shape, text, sizeof(text));
	printf("%u threads, seed %" PRIu64 ": %s\n", c->nr, c->seed, text);
	fflush(stdout);
	testvol_make(&c->t, &shape);
	emudev_stop_log(c->t.d);
	slow_down(c->t.d);
	if (testvol_open(&c->t) || !shared_make(&c->shared, c->t.v))
		return false;
	for (unsigned int i = 0; i < c->nr; i++) {
		c->worker[i].index = i;
		c->worker[i].rng.state = rng_mix(c->seed + i);
		if (!make_home(c, &c->worker[i]))
			return false;
	}
	return true;
}

/* After a remount: what the threads left is still there. */
static bool all_is_there(struct crew *c)
{
	bool ok = true;

	c->shared.v = c->t.v;
	for (unsigned int i = 0; ok && i < c->nr; i++) {
		struct worker *w = &c->worker[i];

		home = w->l.other.root;
		w->l.other.fs = c->t.v;
		refmodel_drop_orphans(w->l.m);
		ok = lockstep_compare(&w->l, SNAP_SPACE);
	}
	return ok && shared_check(&c->shared);
}

static bool run(struct crew *c, unsigned int seconds)
{
	struct check_result r;

	if (!set_up(c) || !run_threads(c, seconds) || !shared_check(&c->shared))
		return false;
	if (testvol_close(&c->t) || !testvol_check(&c->t, c->t.d, &r))
		return false;
	if (testvol_open(&c->t) || !all_is_there(c))
		return false;
	return !testvol_close(&c->t) && testvol_check(&c->t, c->t.d, &r);
}

static uint64_t print_counts(struct crew *c)
{
	uint64_t own = 0, all = 0, full = 0;

	for (unsigned int i = 0; i < c->nr; i++) {
		own += c->worker[i].l.step;
		all += c->worker[i].steps;
		full += c->worker[i].l.full;
	}
	printf("%" PRIu64 " operations compared, %" PRIu64
	       " on shared files and folders, %llu syncs, no space "
	       "%" PRIu64 " times\n",
	       own, all - own, (unsigned long long)c->syncer.steps, full);
	return all;
}

static bool one_crew(uint64_t seed, unsigned int nr, unsigned int seconds,
		     uint64_t *steps)
{
	struct crew *c = xmalloc(sizeof(*c));
	bool ok;

	c->seed = seed;
	c->nr = nr;
	snprintf(last_words, sizeof(last_words),
		 "died; repeat: threads-test --seed %" PRIu64 " --threads %u\n",
		 seed, nr);
	ok = run(c, seconds);
	*steps += print_counts(c);
	if (!ok)
		fprintf(stderr,
			"repeat: threads-test --seed %" PRIu64 " --threads "
			"%u\n",
			seed, nr);
	for (unsigned int i = 0; i < nr; i++)
		if (c->worker[i].l.m)
			lockstep_destroy(&c->worker[i].l);
	testvol_destroy(&c->t);
	free(c);
	return ok;
}

int main(int argc, char **argv)
{
	static const struct option table[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "threads", required_argument, NULL, 'n' },
		{ "long", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t seed = (uint64_t)time(NULL) * 1000, steps = 0;
	unsigned int seconds = 5, threads = 8, crews = 2, failed = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 't')
			seconds = (unsigned int)strtoul(optarg, NULL, 0);
		else if (c == 'n')
			threads = (unsigned int)strtoul(optarg, NULL, 0);
		else if (c == 'l')
			seconds = 60, crews = 60;
		else
			return 2;
	}
	if (threads < 1 || threads > THREADS_MAX || optind != argc)
		return 2;
	last_words_init();
	for (unsigned int i = 0; i < crews; i++)
		failed += !one_crew(seed + i, threads, seconds, &steps);
	printf("%" PRIu64 " passed, %u failed\n", steps, failed);
	return failed != 0;
}
