/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files made at look-up, with a clock and processes of the test's own.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/fuse_virtual.h"

static uint64_t clock_ns = 1000000000;
static int nr_rendered;
static bool out_of_memory;

static uint64_t now(void)
{
	return clock_ns;
}

/* Threads 10 to 19 are process 1, 20 to 29 process 2, and so on. */
static pid_t process_of(pid_t thread)
{
	return thread / 10;
}

static char *render(void *arg, enum virtual_kind kind)
{
	char *text;

	if (out_of_memory ||
	    asprintf(&text, "kind %d, snapshot %d\n", kind, ++nr_rendered) < 0)
		return NULL;
	return text;
}

static struct virtual_files *new_files(void)
{
	static const struct virtual_params p = {
		.render = render,
		.now = now,
		.process_of = process_of,
	};

	return virtual_new(&p);
}

struct got {
	char text[256];
	size_t len;
	int calls;
};

static void emit(void *arg, const char *bytes, size_t len)
{
	struct got *g = arg;

	memcpy(g->text, bytes, len);
	g->text[len] = '\0';
	g->len = len;
	g->calls++;
}

Test(fuse_virtual, names)
{
	cr_assert_eq(virtual_kind("stats"), VIRTUAL_STATS);
	cr_assert_eq(virtual_kind("stats.json"), VIRTUAL_STATS_JSON);
	cr_assert_eq(virtual_kind("stats.prom"), VIRTUAL_STATS_PROM);
	cr_assert_eq(virtual_kind("stats.jso"), VIRTUAL_NONE);
	cr_assert_eq(virtual_kind("Stats"), VIRTUAL_NONE);
	cr_assert_eq(virtual_kind(""), VIRTUAL_NONE);
	for (int kind = 0; kind < VIRTUAL_NR; kind++) {
		cr_assert_eq(virtual_kind(virtual_name(kind)),
			     (enum virtual_kind)kind);
		cr_assert_geq(virtual_st_ino(kind), 2);
		cr_assert_leq(virtual_st_ino(kind), 5);
	}
}

/* S01: every open gives fresh numbers. */
Test(fuse_virtual, each_lookup_is_a_new_snapshot_S01)
{
	struct virtual_files *v = new_files();
	struct virtual_attr a, b;
	uint64_t first, second;

	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 10, &first, &a), 0);
	clock_ns += VIRTUAL_SAME_NS;
	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 10, &second, &b), 0);
	cr_assert(virtual_is(first) && virtual_is(second));
	cr_assert_neq(first, second);
	cr_assert_eq(a.st_ino, b.st_ino);
	cr_assert_eq(nr_rendered, 2);
	virtual_free(v);
}

/* W23: cp compares what it looked up with what it opened. */
Test(fuse_virtual, same_process_same_file_for_100_ms_W23)
{
	struct virtual_files *v = new_files();
	struct virtual_attr a;
	uint64_t first, id;

	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 10, &first, &a), 0);
	clock_ns += VIRTUAL_SAME_NS - 1;
	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 19, &id, &a), 0);
	cr_assert_eq(id, first, "another thread of the process");
	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 20, &id, &a), 0);
	cr_assert_neq(id, first, "another process");
	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS_JSON, 10, &id, &a), 0);
	cr_assert_neq(id, first, "another kind");

	/* Two references: it lives until both are gone. */
	virtual_forget(v, first, 1);
	cr_assert_eq(virtual_getattr(v, first, &a), 0);
	virtual_forget(v, first, 1);
	cr_assert_eq(virtual_getattr(v, first, &a), -ESTALE);
	virtual_free(v);
}

Test(fuse_virtual, text_and_size_never_change)
{
	struct virtual_files *v = new_files();
	struct got g = { 0 };
	struct virtual_attr a;
	uint64_t id;

	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 10, &id, &a), 0);
	cr_assert_eq(virtual_read(v, id, 0, 200, emit, &g), 0);
	cr_assert_str_eq(g.text, "kind 0, snapshot 1\n");
	cr_assert_eq(a.size, g.len);
	cr_assert_eq(virtual_read(v, id, 5, 3, emit, &g), 0);
	cr_assert_str_eq(g.text, "0, ");
	cr_assert_eq(virtual_read(v, id, a.size, 10, emit, &g), 0);
	cr_assert_eq(g.len, 0);
	cr_assert_eq(virtual_read(v, id, UINT64_MAX, 10, emit, &g), 0);
	cr_assert_eq(g.len, 0);
	cr_assert_eq(g.calls, 4);
	cr_assert_eq(virtual_read(v, id + VIRTUAL_LIVE_MAX, 0, 10, emit, &g),
		     -ESTALE);
	cr_assert_eq(g.calls, 4);
	virtual_free(v);
}

Test(fuse_virtual, by_nodeid)
{
	struct virtual_files *v = new_files();
	struct virtual_attr a;
	uint64_t id;

	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 10, &id, &a), 0);
	cr_assert_eq(virtual_lookup_id(v, id, &a), 0);
	virtual_forget(v, id, 2);
	cr_assert_eq(virtual_lookup_id(v, id, &a), -ESTALE);
	virtual_free(v);
}

/* Bounded memory, and nodeids that are never used again. */
Test(fuse_virtual, limit_is_ENFILE_and_ids_are_new)
{
	struct virtual_files *v = new_files();
	uint64_t id[VIRTUAL_LIVE_MAX], one_more;
	struct virtual_attr a;

	for (int i = 0; i < VIRTUAL_LIVE_MAX; i++) {
		clock_ns += VIRTUAL_SAME_NS;
		cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 10, &id[i], &a),
			     0);
	}
	clock_ns += VIRTUAL_SAME_NS;
	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 10, &one_more, &a),
		     -ENFILE);
	virtual_forget(v, id[77], 1);
	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 10, &one_more, &a), 0);
	for (int i = 0; i < VIRTUAL_LIVE_MAX; i++)
		cr_assert_neq(one_more, id[i]);
	virtual_free(v);
}

Test(fuse_virtual, no_memory)
{
	struct virtual_files *v = new_files();
	struct virtual_attr a;
	uint64_t id;

	out_of_memory = true;
	cr_assert_eq(virtual_lookup(v, VIRTUAL_STATS, 10, &id, &a), -ENOMEM);
	virtual_free(v);
}
