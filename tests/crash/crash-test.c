/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Cuts the power everywhere: named scenarios, injected errors, then random
 * episodes until the time is up.  episode.h says what is proven.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/crash/episode.h"
#include "tests/support/lastwords.h"

#define HANG_SECONDS 600

char last_words[256];

/* Small trees, so that all of one can be read after each cut. */
static const struct workload_params params = {
	.max_inodes = 60,
	.max_blocks = 400,
	.max_folder = 40,
	.max_offset = 1ull << 62,
	.max_write = 70000,
	.max_xattr = 5000,
	.xattr_names = 6,
	.odd_times = true,
};

bool crash_random_episode(struct crash_run *run)
{
	struct rng rng = { run->seed };
	struct testvol_shape shape;
	struct testvol t;
	struct workload w;
	struct episode e;
	bool ok;

	run->episodes++;
	testclock_set_ns(TESTCLOCK_START);
	testvol_shape_random(&shape, &rng);
	testvol_make(&t, &shape);
	t.quiet = true;
	workload_init(&w, run->params, run->seed);
	ok = episode_open(&e, run, &t, emudev_clone(t.d), NULL, 0);
	ok = ok && episode_random(&e, &w, run->ops);
	if (rng_one_in(&rng, 2))
		ok = ok && episode_close(&e);
	else
		episode_abandon(&e);
	ok = ok && episode_try_all(&e);
	episode_destroy(&e);
	testvol_destroy(&t);
	return ok;
}

static bool parse(struct crash_run *run, uint64_t *episodes,
		  unsigned int *seconds, int argc, char **argv)
{
	static const struct option table[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "episodes", required_argument, NULL, 'e' },
		{ "ops", required_argument, NULL, 'o' },
		{ "seconds", required_argument, NULL, 't' },
		{ "reorderings", required_argument, NULL, 'r' },
		{ "long", no_argument, NULL, 'l' },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		uint64_t n = optarg ? strtoull(optarg, NULL, 0) : 0;

		if (c == 's')
			run->seed = n;
		else if (c == 'e')
			*episodes = n;
		else if (c == 'o')
			run->ops = n;
		else if (c == 't')
			*seconds = (unsigned int)n;
		else if (c == 'r')
			run->reorderings = (unsigned int)n;
		else if (c == 'l')
			*seconds = 3600;
		else if (c == 'v')
			run->verbose = true;
		else
			return false;
	}
	return optind == argc;
}

/* One part of the test; counts, and says how to repeat what failed. */
static void do_part(struct crash_run *run, bool (*part)(struct crash_run *run))
{
	snprintf(last_words, sizeof(last_words),
		 "died; repeat: crash-test --seed %" PRIu64 " --episodes 1 "
		 "--ops %" PRIu64 "\n",
		 run->seed, run->ops);
	alarm(HANG_SECONDS);
	run->rng.state = run->seed;
	if (run->verbose)
		fprintf(stderr, "part at %lld, %" PRIu64 " disks\n",
			(long long)time(NULL), run->images);
	if (part(run))
		return;
	run->failures++;
	crash_repeat(run);
}

static void print_counts(const struct crash_run *run)
{
	for (int i = 0; i < OP_NR; i++)
		printf("%s %" PRIu64 "%s", op_name[i], run->count[i],
		       i + 1 < OP_NR ? ", " : "\n");
	printf("%" PRIu64 " episodes, %zu distinct disks after a cut, %" PRIu64
	       " of which lived on\n",
	       run->episodes, run->nr_seen, run->deeper);
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n",
	       run->images - run->failures, run->failures);
}

int main(int argc, char **argv)
{
	struct crash_run run = {
		.seed = (uint64_t)time(NULL) * 1000,
		.ops = 60,
		.params = &params,
		.reorderings = 2,
		.go_on = 40,
	};
	unsigned int seconds = 60;
	uint64_t episodes = 0;

	if (!parse(&run, &episodes, &seconds, argc, argv)) {
		fprintf(stderr, "usage: crash-test [--seed N] [--episodes N] "
				"[--ops N] [--seconds N]\n"
				"                  [--reorderings N] [--long] "
				"[--verbose]\n");
		return 2;
	}
	last_words_init();
	run.end = time(NULL) + seconds;
	if (episodes) {
		run.end += 3600;
	} else {
		do_part(&run, crash_scenarios);
		do_part(&run, crash_faults);
	}
	for (uint64_t i = 0; episodes ? i < episodes : !crash_time_is_up(&run);
	     i++) {
		/* By the seed, so that one number repeats either kind. */
		do_part(&run, run.seed % 3 ? crash_random_episode
					   : crash_full_episode);
		run.seed++;
	}
	print_counts(&run);
	free(run.seen);
	return run.failures != 0;
}
