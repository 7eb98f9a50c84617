/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which bytes of a file or descriptor are the password (case M01). */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/password.h"

static char last_line[8192];
static int nr_lines;

static void keep_line(int priority, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
	nr_lines++;
}

static void start(void)
{
	enum secret_memory memory;

	cr_assert_eq(cipher_init(0, &memory), 0);
	tool_set_sink(keep_line);
	nr_lines = 0;
}

TestSuite(password, .init = start);

static int file_with(const void *bytes, size_t len)
{
	const int fd = memfd_create("password", 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* Expects 0 and @want, or @err. */
static void expect(const void *bytes, size_t len, int err, const void *want,
		   size_t want_len, bool want_more)
{
	struct secret s = SECRET_EMPTY;
	const int fd = file_with(bytes, len);
	bool more = false;

	cr_expect_eq(password_read_fd(fd, &s, &more), err);
	if (!err) {
		cr_expect_eq(s.len, want_len, "%zu bytes, not %zu", s.len,
			     want_len);
		cr_expect(s.len == want_len &&
			  memcmp(s.bytes, want, want_len) == 0);
		cr_expect_eq(more, want_more);
	} else {
		cr_expect_eq(s.len, 0);
	}
	secret_wipe(&s);
	close(fd);
}

#define GIVES(in, out, more) \
	expect(in, sizeof(in) - 1, 0, out, sizeof(out) - 1, more)
#define FAILS(in, err) expect(in, sizeof(in) - 1, err, NULL, 0, false)

Test(password, m01_the_line_end_is_not_part_of_it)
{
	GIVES("p w", "p w", false);
	GIVES("p w\n", "p w", false);
	GIVES("p w\r\n", "p w", false);
}

Test(password, m01_nothing_else_is_removed)
{
	GIVES(" p w ", " p w ", false);
	GIVES("p w\r", "p w\r", false);
	GIVES("p w\r\r\n", "p w\r", false);
	GIVES("\tp\x01w\n", "\tp\x01w", false);
	GIVES("\xc3\xa9t\xc3\xa9\n", "\xc3\xa9t\xc3\xa9", false);
	GIVES("\xff\xfe\n", "\xff\xfe", false);
}

Test(password, m01_nul_is_a_byte_like_others)
{
	GIVES("a\0b\0\n", "a\0b\0", false);
	GIVES("\0", "\0", false);
}

Test(password, m01_only_the_first_line_counts)
{
	GIVES("one\ntwo\n", "one", true);
	GIVES("one\n\n", "one", true);
	GIVES("one\r\ntwo", "one", true);
}

Test(password, m01_empty_is_refused)
{
	FAILS("", -ENODATA);
	FAILS("\n", -ENODATA);
	FAILS("\r\n", -ENODATA);
	FAILS("\nsecret\n", -ENODATA);
}

/* @len bytes of 'x', then @tail. */
static void expect_long(size_t len, const char *tail, int err)
{
	const size_t total = len + strlen(tail);
	char *bytes = malloc(total + 1);

	cr_assert_not_null(bytes);
	memset(bytes, 'x', len);
	strcpy(bytes + len, tail);
	expect(bytes, total, err, bytes, len, false);
	free(bytes);
}

Test(password, m01_4096_bytes_are_the_limit)
{
	expect_long(PASSWORD_BYTES_MAX, "", 0);
	expect_long(PASSWORD_BYTES_MAX, "\n", 0);
	expect_long(PASSWORD_BYTES_MAX, "\r\n", 0);
	expect_long(PASSWORD_BYTES_MAX, "x", -E2BIG);
	expect_long(PASSWORD_BYTES_MAX, "x\n", -E2BIG);
	expect_long(PASSWORD_BYTES_MAX, "\rx\n", -E2BIG);
	expect_long(PASSWORD_BYTES_MAX, "\r", -E2BIG);
	expect_long(PASSWORD_BYTES_MAX, "\r\r\n", -E2BIG);
	expect_long(1 << 20, "\n", -E2BIG);
}

Test(password, two_lines_of_one_pipe_are_two)
{
	struct secret a = SECRET_EMPTY, b = SECRET_EMPTY;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(write(fds[1], "old\nnew\n", 8), 8);
	/* Not asked whether more follows: then not a byte more is taken. */
	cr_expect_eq(password_read_fd(fds[0], &a, NULL), 0);
	cr_expect_eq(password_read_fd(fds[0], &b, NULL), 0);
	cr_expect(a.len == 3 && memcmp(a.bytes, "old", 3) == 0);
	cr_expect(b.len == 3 && memcmp(b.bytes, "new", 3) == 0);
	secret_wipe(&a);
	secret_wipe(&b);
}

Test(password, an_open_pipe_with_one_line_does_not_hang, .timeout = 10)
{
	struct secret s = SECRET_EMPTY;
	bool more = true;
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	cr_assert_eq(write(fds[1], "old\n", 4), 4);
	cr_expect_eq(password_read_fd(fds[0], &s, &more), 0);
	cr_expect_eq(s.len, 3);
	cr_expect_not(more);
	secret_wipe(&s);
}

static const struct password_request request = {
	.what = "vault.tusk",
	.kind = PASSWORD_OLD,
	.prefix = "",
};

static void expect_failure(const struct password_source *src,
			   enum tool_exit code, const char *text)
{
	struct secret s = SECRET_EMPTY;

	nr_lines = 0;
	cr_expect_eq(password_read(src, &request, &s), code);
	cr_expect_eq(nr_lines, 1);
	cr_expect_not_null(strstr(last_line, text), "'%s' in '%s'", text,
			   last_line);
	cr_expect_eq(s.len, 0);
}

Test(password, m01_bad_sources_are_told_apart)
{
	const int closed = dup(0);

	close(closed);
	expect_failure(&(struct password_source){ .file = "/dev/null" },
		       TOOL_USAGE, "/dev/null: no password");
	expect_failure(&(struct password_source){ .file = "/nowhere/x" },
		       TOOL_USAGE, "/nowhere/x: no such file");
	expect_failure(&(struct password_source){ .file = "/" }, TOOL_USAGE,
		       "/: a folder");
	expect_failure(&(struct password_source){ .file = "/dev/zero" },
		       TOOL_USAGE, "longer than 4096");
	expect_failure(&(struct password_source){ .fd = { true, closed } },
		       TOOL_USAGE, "not open");
}

Test(password, a_second_line_warns_once)
{
	const int fd = file_with("one\ntwo\n", 8);
	const struct password_source src = { .fd = { true, fd } };
	struct secret s = SECRET_EMPTY;

	cr_expect_eq(password_read(&src, &request, &s), TOOL_DONE);
	cr_expect_eq(nr_lines, 1);
	cr_expect_not_null(strstr(last_line, "only its first line"));
	cr_expect_eq(s.len, 3);
	secret_wipe(&s);
	close(fd);
}

Test(password, sources_exclude_each_other)
{
	const struct password_source both = { "f", { true, 0 } };
	const struct password_source one = { "f", { false, 0 } };

	cr_expect_eq(password_source_check(&both, &request), TOOL_USAGE);
	cr_expect_eq(nr_lines, 1);
	cr_expect_eq(password_source_check(&one, &request), TOOL_DONE);
}

Test(password, k01_the_same_file_by_any_name)
{
	char path[] = "/tmp/tusk-password-XXXXXX", other[64];
	const int fd = mkstemp(path);
	const struct password_source by_path = { .file = path };
	const struct password_source by_link = { .file = other };
	const struct password_source by_fd = { .fd = { true, fd } };
	const struct password_source terminal = { 0 };
	const struct password_source null = { .file = "/dev/null" };

	cr_assert_geq(fd, 0);
	snprintf(other, sizeof(other), "%s.link", path);
	cr_assert_eq(symlink(path, other), 0);
	cr_expect(password_source_same_file(&by_path, &by_path));
	cr_expect(password_source_same_file(&by_path, &by_link));
	cr_expect(password_source_same_file(&by_path, &by_fd));
	/* Two lines of one descriptor. */
	cr_expect_not(password_source_same_file(&by_fd, &by_fd));
	cr_expect_not(password_source_same_file(&terminal, &terminal));
	cr_expect_not(password_source_same_file(&by_path, &null));
	unlink(other);
	unlink(path);
	close(fd);
}
