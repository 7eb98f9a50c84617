/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The option table is what the parser obeys and what --help prints. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/command.h"

struct state {
	bool flag;
	const char *text;
	struct option_number size, time;
	struct option_fd fd;
};

static const struct tool_option options[] = {
	{ "flag", 'f', NULL, offsetof(struct state, flag), option_flag,
	  "A flag." },
	{ "text", 't', "TEXT", offsetof(struct state, text), option_string,
	  "A text that needs so many words to be explained that they have to "
	  "be wrapped." },
	{ "size", 0, "SIZE", offsetof(struct state, size), option_size,
	  "A size." },
	{ "time", 0, "SECONDS", offsetof(struct state, time), option_seconds,
	  "A time." },
	{ "a-long-name-of-an-option", 0, "N", offsetof(struct state, fd),
	  option_fd, "A descriptor." },
	{ 0 },
};

/* What the last run() saw. */
static struct state seen;
static char seen_args[256];
static int nr_runs;

static enum tool_exit run(void *state, char **args)
{
	seen = *(struct state *)state;
	*seen_args = '\0';
	for (; *args; args++) {
		strcat(seen_args, *args);
		strcat(seen_args, "|");
	}
	nr_runs++;
	return TOOL_IN_USE;
}

static const struct tool_command command = {
	.name = "frob",
	.args = "CONTAINER DIR",
	.min_args = 1,
	.max_args = 2,
	.summary = "test",
	.options = options,
	.state_bytes = sizeof(struct state),
	.run = run,
};

static char last_line[8192];
static int nr_lines;

static void keep_line(int priority, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
	nr_lines++;
}

static void start(void)
{
	tool_set_sink(keep_line);
	nr_lines = 0;
	nr_runs = 0;
}

TestSuite(command, .init = start);

/* Splits @line at blanks. */
static enum tool_exit call(const char *line)
{
	static char copy[512];
	char *argv[32];
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return command_run(&command, argc, argv);
}

Test(command, options_are_stored)
{
	cr_expect_eq(call("frob -f --text x --size=2K --time 0.5 "
			  "--a-long-name-of-an-option 7 c d"),
		     TOOL_IN_USE);
	cr_expect(seen.flag);
	cr_expect_str_eq(seen.text, "x");
	cr_expect(seen.size.given && seen.size.value == 2048);
	cr_expect(seen.time.given && seen.time.value == 500);
	cr_expect(seen.fd.given && seen.fd.fd == 7);
	cr_expect_str_eq(seen_args, "c|d|");
	cr_expect_eq(nr_lines, 0);
}

Test(command, nothing_given_is_all_zero)
{
	const struct state zero = { 0 };

	cr_expect_eq(call("frob c"), TOOL_IN_USE);
	cr_expect_eq(memcmp(&seen, &zero, sizeof(seen)), 0);
}

Test(command, options_may_follow_arguments)
{
	cr_expect_eq(call("frob c -t x d --flag"), TOOL_IN_USE);
	cr_expect_str_eq(seen_args, "c|d|");
	cr_expect_str_eq(seen.text, "x");
	cr_expect(seen.flag);
}

Test(command, after_two_dashes_all_are_arguments)
{
	cr_expect_eq(call("frob -f -- --size -t"), TOOL_IN_USE);
	cr_expect_str_eq(seen_args, "--size|-t|");
	cr_expect_eq(call("frob -- --help"), TOOL_IN_USE);
	cr_expect_str_eq(seen_args, "--help|");
	cr_expect_eq(call("frob -t --help c"), TOOL_IN_USE);
	cr_expect_str_eq(seen.text, "--help");
}

Test(command, usage_errors_are_one_line_and_run_nothing)
{
	static const struct {
		const char *line, *text;
	} bad[] = {
		{ "frob --nope c", "'--nope'" },
		{ "frob --nope=1 c", "'--nope=1'" },
		{ "frob -x c", "'-x'" },
		{ "frob -fx c", "'-x'" },
		{ "frob c --text", "--text needs a value, TEXT" },
		{ "frob c -t", "--text needs a value, TEXT" },
		{ "frob --flag=1 c", "--flag takes no value" },
		{ "frob --size 1Q c", "'1Q'" },
		{ "frob --time 1,5 c", "'1,5'" },
		{ "frob --a-long-name-of-an-option -1 c", "'-1'" },
		{ "frob", "CONTAINER is missing" },
		{ "frob a b c", "c: one argument too many" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		nr_lines = 0;
		cr_expect_eq(call(bad[i].line), TOOL_USAGE, "%s", bad[i].line);
		cr_expect_eq(nr_lines, 1, "%s", bad[i].line);
		cr_expect_not_null(strstr(last_line, bad[i].text),
				   "'%s' in '%s'", bad[i].text, last_line);
	}
	cr_expect_eq(nr_runs, 0);
}

Test(command, empty_arguments_are_refused)
{
	char *argv[] = { "frob", "", NULL };

	cr_expect_eq(command_run(&command, 2, argv), TOOL_USAGE);
	cr_expect_not_null(strstr(last_line, "CONTAINER is empty"));
}

static char *help_text(void)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	cr_assert_not_null(f);
	command_help(&command, f);
	fclose(f);
	return text;
}

Test(command, help_has_every_row_of_the_table)
{
	char *text = help_text();

	for (const struct tool_option *o = options; o->name; o++) {
		char want[64];

		snprintf(want, sizeof(want), "--%s%s%s", o->name,
			 o->arg ? " " : "", o->arg ? o->arg : "");
		cr_expect_not_null(strstr(text, want), "%s", want);
	}
	cr_expect_not_null(strstr(text, "  -f, --flag"));
	cr_expect_not_null(strstr(text, "  -h, --help"));
	cr_expect_not_null(strstr(text, "Usage: tusk frob [OPTION...] "
					"CONTAINER DIR\n"));
	free(text);
}

Test(command, help_has_every_exit_code)
{
	char *text = help_text();

#define X(name, number, meaning)                                            \
	{                                                                   \
		char want[128];                                             \
		snprintf(want, sizeof(want), "%3d  %s\n", number, meaning); \
		cr_expect_not_null(strstr(text, want), "%s", want);         \
	}
	TOOL_EXITS(X)
#undef X
	free(text);
}

Test(command, help_fits_a_terminal)
{
	char *text = help_text();

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		cr_expect_leq(strlen(line), 79, "%s", line);
	free(text);
}

Test(command, help_asks_for_no_arguments)
{
	const int saved = dup(STDOUT_FILENO);
	const int null = open("/dev/null", O_WRONLY);

	dup2(null, STDOUT_FILENO);
	cr_expect_eq(call("frob --help"), TOOL_DONE);
	cr_expect_eq(call("frob -f -h --nope"), TOOL_DONE);
	cr_expect_eq(nr_runs, 0);
	cr_expect_eq(nr_lines, 0);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(null);
}
