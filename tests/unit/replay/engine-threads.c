/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Many threads on few bytes: whatever order they run in, reads see and the end
 * is what one operation after another would give.  A data race on the bytes is
 * an order that was not kept, so ThreadSanitizer checks it as well.
 *
 *	engine-threads [SEED]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/rng.h"
#include "tools/replay/engine.h"

#define BYTES 64
#define TARGETS 2
#define OPERATIONS 4000
#define DEPTH 16

struct operation {
	struct engine_io io;
	unsigned char value;	   /* a write's, or what a read must see */
	unsigned char want[BYTES]; /* of a read: all that it covers */
};

struct test {
	struct operation op[OPERATIONS];
	size_t next; /* the engine asks one thread at a time */
	unsigned char bytes[TARGETS][BYTES];
	unsigned char end[TARGETS][BYTES];
	atomic_uint wrong;
};

static const struct operation *operation_of(const struct test *t,
					    const struct engine_io *io)
{
	return &t->op[io->due_ns];
}

/* The same operations, in order, on t->end. */
static void make(struct test *t, struct rng *rng)
{
	for (size_t i = 0; i < OPERATIONS; i++) {
		struct operation *o = &t->op[i];
		const uint64_t at = rng_below(rng, BYTES);
		const uint64_t len = 1 + rng_below(rng, BYTES - at);
		const uint32_t target = (uint32_t)rng_below(rng, TARGETS);

		o->value = (unsigned char)rng_next(rng);
		o->io = (struct engine_io){
			.due_ns = i, /* nothing is timed: it finds the op */
			.target = target,
			.op = rng_one_in(rng, 2) ? TRACE_WRITE : TRACE_READ,
			.nr = 1,
			.piece = { { at, len < 9 ? len : 9 } },
		};
		memcpy(o->want, t->end[target], BYTES);
		if (o->io.op == TRACE_WRITE)
			memset(t->end[target] + at, o->value,
			       o->io.piece[0].length);
	}
}

static int next(void *arg, struct engine_io *io)
{
	struct test *t = arg;

	if (t->next == OPERATIONS)
		return 0;
	*io = t->op[t->next++].io;
	return 1;
}

static int run(void *arg, unsigned int thread, const struct engine_io *io)
{
	struct test *t = arg;
	const struct operation *o = operation_of(t, io);
	unsigned char *at = t->bytes[io->target] + io->piece[0].offset;
	const size_t len = io->piece[0].length;

	if (io->op == TRACE_WRITE)
		memset(at, o->value, len);
	else if (memcmp(at, o->want + io->piece[0].offset, len) != 0)
		atomic_fetch_add(&t->wrong, 1);
	/* Long enough for others to come in between. */
	if (io->due_ns % 7 == 0)
		usleep(50);
	return 0;
}

static bool one(uint64_t seed, bool timed)
{
	struct rng rng = { .state = seed };
	struct test *t = calloc(1, sizeof(*t));
	struct engine_result *r = calloc(1, sizeof(*r));
	static const atomic_bool never;
	const struct engine_params p = {
		.source = { next, t },
		.target = { run, t },
		.clock = engine_real_clock,
		.depth = DEPTH,
		.timed = timed,
		.interrupt = &never,
	};
	bool ok;

	if (!t || !r)
		exit(1);
	make(t, &rng);
	ok = !engine_run(&p, r) && !atomic_load(&t->wrong) &&
	     !memcmp(t->bytes, t->end, sizeof(t->end)) &&
	     r->kind[TRACE_READ].count + r->kind[TRACE_WRITE].count ==
		     OPERATIONS &&
	     r->max_in_flight > 1;
	if (!ok)
		printf("not ok seed %llu%s: %u wrong reads, %llu in flight\n",
		       (unsigned long long)seed, timed ? ", timed" : "",
		       atomic_load(&t->wrong),
		       (unsigned long long)r->max_in_flight);
	free(t);
	free(r);
	return ok;
}

int main(int argc, char **argv)
{
	const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	int passed = 0, failed = 0;

	for (uint64_t seed = first; seed < first + 4; seed++) {
		for (int timed = 0; timed < 2; timed++) {
			if (one(seed, timed))
				passed++;
			else
				failed++;
		}
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
