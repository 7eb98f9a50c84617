/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kernel's references, against a plain array.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "fs/fuse_lookup.h"

Test(fuse_lookup, counts_and_forgets)
{
	struct lookup_table *t = lookup_new();

	cr_assert_not(lookup_held(t, 7));
	for (int i = 0; i < 3; i++)
		cr_assert_eq(lookup_get(t, 7), 0);
	cr_assert(lookup_held(t, 7));
	cr_assert_eq(lookup_nr(t), 1);
	cr_assert_eq(lookup_put(t, 7, 2), 1);
	cr_assert_eq(lookup_put(t, 7, 1), 0);
	cr_assert_not(lookup_held(t, 7));
	cr_assert_eq(lookup_nr(t), 0);
	lookup_free(t);
}

/* More than was given: a kernel's fault must not become ours. */
Test(fuse_lookup, too_many_and_unknown)
{
	struct lookup_table *t = lookup_new();

	cr_assert_eq(lookup_put(t, 99, 1), 0);
	cr_assert_eq(lookup_get(t, 99), 0);
	cr_assert_eq(lookup_put(t, 99, UINT64_MAX), 0);
	cr_assert_eq(lookup_nr(t), 0);
	lookup_free(t);
}

/* W03: a walk under memory pressure counts beyond 32 bits. */
Test(fuse_lookup, counts_are_64_bit_W03)
{
	struct lookup_table *t = lookup_new();
	const uint64_t nr = 100000;

	for (uint64_t i = 0; i < nr; i++)
		cr_assert_eq(lookup_get(t, 5), 0);
	cr_assert_eq(lookup_put(t, 5, nr - 1), 1);
	cr_assert_eq(lookup_put(t, 5, 1), 0);
	lookup_free(t);
}

enum {
	INODES = 5000,
	STEPS = 400000
};

/* Numbers that collide, so that removal has to move others back. */
static inum_t number(unsigned int i)
{
	return i % 2 ? 1024 + i : ((inum_t)i << 40) + 1;
}

Test(fuse_lookup, agrees_with_an_array)
{
	struct lookup_table *t = lookup_new();
	uint64_t *model = calloc(INODES, sizeof(*model));
	uint64_t seed = 1, held = 0, n;

	for (int step = 0; step < STEPS; step++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		const unsigned int i = (seed >> 33) % INODES;

		if ((seed >> 60) < 8) {
			cr_assert_eq(lookup_get(t, number(i)), 0);
			held += !model[i]++;
		} else {
			n = 1 + (seed >> 58) % 3;
			held -= model[i] && model[i] <= n;
			model[i] = model[i] > n ? model[i] - n : 0;
			cr_assert_eq(lookup_put(t, number(i), n), model[i],
				     "step %d, inode %u", step, i);
		}
		cr_assert_eq(lookup_held(t, number(i)), model[i] > 0);
	}
	for (unsigned int i = 0; i < INODES; i++)
		cr_assert_eq(lookup_held(t, number(i)), model[i] > 0,
			     "inode %u", i);
	cr_assert_eq(lookup_nr(t), held);
	free(model);
	lookup_free(t);
}

static void *get_and_put(void *arg)
{
	struct lookup_table *t = arg;

	for (inum_t ino = 1; ino <= 20000; ino++)
		cr_assert_eq(lookup_get(t, ino), 0);
	for (inum_t ino = 1; ino <= 20000; ino++)
		lookup_put(t, ino, 1);
	return NULL;
}

Test(fuse_lookup, threads)
{
	struct lookup_table *t = lookup_new();
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, get_and_put, t);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(lookup_nr(t), 0);
	lookup_free(t);
}
