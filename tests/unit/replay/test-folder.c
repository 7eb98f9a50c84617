/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of a replay: what is verified is what was written. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/replay/folder.h"
#include "tools/replay/touched.h"

#define BYTES (3 * FOLDER_CHUNK)

static const atomic_bool never;
static struct folder f;
static struct touched *t;

static void set_up(void)
{
	const uint64_t sizes[] = { BYTES, BYTES };

	cr_assert_eq(folder_make(&f, "/tmp", 2, sizes, 1, 7), 0);
	f.verify = true;
	f.pattern.seed = 7;
	t = touched_new();
	cr_assert_eq(touched_add(t, 0, 0, BYTES), 0);
	cr_assert_eq(touched_add(t, 1, 0, BYTES), 0);
	touched_seal(t);
	cr_assert_eq(folder_fill(&f, t, &never, NULL, NULL), 0);
}

static void clean_up(void)
{
	touched_free(t);
	cr_expect_eq(folder_destroy(&f, FOLDER_REMOVE), 0);
}

TestSuite(folder, .init = set_up, .fini = clean_up);

static void run(enum trace_op op, uint64_t offset, uint64_t length)
{
	const struct engine_io io = {
		.op = op,
		.target = 1,
		.nr = 1,
		.piece = { { offset, length } },
	};

	cr_assert_eq(folder_run(&f, 0, &io), 0);
}

Test(folder, what_was_written_is_right)
{
	run(TRACE_READ, 0, BYTES);
	run(TRACE_WRITE, 12345, FOLDER_CHUNK + 77);
	run(TRACE_READ, 12340, 100);
	run(TRACE_WRITE, 3, 1);
	run(TRACE_READ, 0, 9);
	cr_assert_eq(folder_check(&f, t, &never), 0);
	cr_expect_eq(f.nr_wrong, 0);
}

Test(folder, one_byte_is_found)
{
	const uint64_t at = FOLDER_CHUNK + 4097;
	char byte;

	cr_assert_eq(pread(f.file[1], &byte, 1, (off_t)at), 1);
	byte ^= 64;
	cr_assert_eq(pwrite(f.file[1], &byte, 1, (off_t)at), 1);
	run(TRACE_READ, 0, 4096);
	cr_expect_eq(f.nr_wrong, 0);
	cr_assert_eq(folder_check(&f, t, &never), 0);
	cr_expect_eq(f.nr_wrong, 1);
	cr_expect_eq(f.wrong_target, 1);
	cr_expect_eq(f.wrong_offset, at);
}

Test(folder, bytes_of_another_place_are_found)
{
	char block[4096];

	cr_assert_eq(pread(f.file[0], block, 4096, 8192), 4096);
	cr_assert_eq(pwrite(f.file[1], block, 4096, 8192), 4096);
	run(TRACE_READ, 0, 8192);
	cr_expect_eq(f.nr_wrong, 0);
	run(TRACE_READ, 8192, 512);
	cr_expect_eq(f.nr_wrong, 1, "the same place of another file");
	cr_assert_eq(pread(f.file[1], block, 4096, 0), 4096);
	cr_assert_eq(pwrite(f.file[1], block, 4096, FOLDER_CHUNK), 4096);
	run(TRACE_READ, FOLDER_CHUNK, 512);
	cr_expect_eq(f.nr_wrong, 2, "another place of the same file");
}

Test(folder, holes_pass_only_where_there_are_trims)
{
	run(TRACE_TRIM, 4096, 4096);
	f.pattern.holes = true;
	run(TRACE_READ, 0, 3 * 4096);
	cr_expect_eq(f.nr_wrong, 0);
	f.pattern.holes = false;
	run(TRACE_READ, 0, 3 * 4096);
	cr_expect_eq(f.nr_wrong, 1);
}
