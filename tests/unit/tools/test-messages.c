/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is said, where it goes, and with which code it ends. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "tools/tool.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

Test(messages, exit_codes_are_a_contract)
{
	cr_expect_eq(TOOL_DONE, 0);
	cr_expect_eq(TOOL_FAILED, 1);
	cr_expect_eq(TOOL_USAGE, 2);
	cr_expect_eq(TOOL_WRONG_SECRET, 3);
	cr_expect_eq(TOOL_DAMAGED, 4);
	cr_expect_eq(TOOL_IN_USE, 5);
	cr_expect_eq(TOOL_NO_CONTAINER, 6);
	cr_expect_eq(TOOL_MOUNT_POINT, 7);
	cr_expect_eq(TOOL_NO_FUSE, 8);
	cr_expect_eq(TOOL_NO_SPACE, 9);
	cr_expect_eq(TOOL_UNSUPPORTED, 10);
	cr_expect_eq(TOOL_REPAIRED, 11);
	cr_expect_eq(TOOL_VERIFY_FAILED, 12);
	cr_expect_eq(TOOL_INTERRUPTED, 130);
}

/* Every error that a header of a layer below documents. */
Test(messages, errors_by_stage)
{
	static const struct {
		enum tool_stage stage;
		int err;
		enum tool_exit code;
		const char *text;
	} cases[] = {
		{ TOOL_AT_OPEN, -ENOENT, TOOL_NO_CONTAINER, "no such file" },
		{ TOOL_AT_OPEN, -EACCES, TOOL_FAILED, "permission denied" },
		{ TOOL_AT_OPEN, -EISDIR, TOOL_NO_CONTAINER, "folder" },
		{ TOOL_AT_OPEN, -EBUSY, TOOL_IN_USE, "unmount" },
		{ TOOL_AT_OPEN, -ENOTBLK, TOOL_NO_CONTAINER, "neither" },
		{ TOOL_AT_OPEN, -ELOOP, TOOL_FAILED, "symbolic links" },
		{ TOOL_AT_CREATE, -EEXIST, TOOL_FAILED, "exists" },
		{ TOOL_AT_CREATE, -ENOTEMPTY, TOOL_FAILED, "--overwrite" },
		{ TOOL_AT_CREATE, -ENOSPC, TOOL_NO_SPACE, "no space" },
		{ TOOL_AT_CREATE, -EDQUOT, TOOL_NO_SPACE, "quota" },
		{ TOOL_AT_CREATE, -EFBIG, TOOL_FAILED, "size" },
		{ TOOL_AT_CREATE, -ENOENT, TOOL_FAILED, "folder" },
		{ TOOL_AT_CREATE, -EACCES, TOOL_FAILED, "permission" },
		{ TOOL_AT_HEADER, -ENOMSG, TOOL_NO_CONTAINER, "not a" },
		{ TOOL_AT_HEADER, -EOPNOTSUPP, TOOL_UNSUPPORTED, "later" },
		{ TOOL_AT_HEADER, -EUCLEAN, TOOL_DAMAGED, "damaged" },
		{ TOOL_AT_HEADER, -EIO, TOOL_DAMAGED, "read" },
		{ TOOL_AT_UNLOCK, -EACCES, TOOL_WRONG_SECRET, "wrong" },
		{ TOOL_AT_UNLOCK, -EBADMSG, TOOL_DAMAGED, "authentic" },
		{ TOOL_AT_UNLOCK, -ERANGE, TOOL_DAMAGED, "damaged" },
		{ TOOL_AT_UNLOCK, -ENOMEM, TOOL_FAILED, "memory" },
		{ TOOL_AT_UNLOCK, -ENOSYS, TOOL_UNSUPPORTED, "FIPS" },
		{ TOOL_AT_VOLUME, -EUCLEAN, TOOL_DAMAGED, "damaged" },
		{ TOOL_AT_VOLUME, -EBADMSG, TOOL_DAMAGED, "authentic" },
		{ TOOL_AT_VOLUME, -ENOSPC, TOOL_NO_SPACE, "space" },
		{ TOOL_AT_CHANGE, -ESTALE, TOOL_IN_USE, "another process" },
		{ TOOL_AT_CHANGE, -EIO, TOOL_FAILED, "Input/output" },
		{ TOOL_AT_ANY, -EINTR, TOOL_INTERRUPTED, "interrupted" },
		{ TOOL_AT_ANY, -12345, TOOL_FAILED, "unknown" },
	};

	for (size_t i = 0; i < NR(cases); i++) {
		const char *text;

		cr_expect_eq(tool_explain(cases[i].stage, cases[i].err, &text),
			     cases[i].code, "row %zu", i);
		cr_expect_not_null(strstr(text, cases[i].text),
				   "row %zu: '%s' in '%s'", i, cases[i].text,
				   text);
	}
}

static int last_priority;
static char last_line[8192];

static void keep(int priority, const char *line)
{
	last_priority = priority;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

Test(messages, the_sink_gets_lines_with_their_weight)
{
	tool_set_sink(keep);
	cr_expect_eq(tool_fail(TOOL_IN_USE, "a.tusk", "held by %d", 7),
		     TOOL_IN_USE);
	cr_expect_eq(last_priority, LOG_ERR);
	cr_expect_str_eq(last_line, "a.tusk: held by 7");
	tool_warn(NULL, "careful");
	cr_expect_eq(last_priority, LOG_WARNING);
	cr_expect_str_eq(last_line, "warning: careful");
	tool_note("b", "done");
	cr_expect_eq(last_priority, LOG_NOTICE);
	cr_expect_str_eq(last_line, "b: done");
}

Test(messages, names_from_outside_stay_one_plain_line)
{
	tool_set_sink(keep);
	tool_warn("a\nb\x1b[31m\xff", "x\ty");
	cr_expect_str_eq(last_line, "a?b?[31m?: warning: x?y");
}

Test(messages, errno_is_kept)
{
	tool_set_sink(keep);
	errno = EXDEV;
	tool_warn("a", "b");
	cr_expect_eq(errno, EXDEV);
}

/* Give stderr to a pipe while @say runs; what it wrote, in @out. */
static void capture(void (*say)(void), char *out, size_t size)
{
	const int saved = dup(STDERR_FILENO);
	int fds[2];
	ssize_t len;

	cr_assert_eq(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	say();
	dup2(saved, STDERR_FILENO);
	close(saved);
	len = read(fds[0], out, size - 1);
	close(fds[0]);
	out[len < 0 ? 0 : len] = '\0';
}

static void say_something(void)
{
	tool_set_command("mount");
	tool_fail(TOOL_FAILED, "vault.tusk", "what; what to do");
}

static void say_much(void)
{
	static char name[20000];

	memset(name, 'n', sizeof(name) - 1);
	tool_fail(TOOL_FAILED, name, "%s", name);
}

Test(messages, stderr_gets_program_command_and_newline)
{
	char out[256];

	capture(say_something, out, sizeof(out));
	cr_expect_str_eq(out, "tusk mount: vault.tusk: what; what to do\n");
}

Test(messages, a_huge_name_is_cut)
{
	static char out[30000];

	capture(say_much, out, sizeof(out));
	cr_expect_lt(strlen(out), 9000);
	cr_expect_eq(out[strlen(out) - 1], '\n');
	cr_expect_eq(strchr(out, '\n'), out + strlen(out) - 1);
}
