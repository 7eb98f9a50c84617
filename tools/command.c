/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a command's row to getopt_long's tables and to its help.
 */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command.h"
#include "tools/units.h"

#define OPTIONS_MAX 48
#define HELP_COLUMNS 79
#define HELP_TEXT_COLUMN 28

/* Every command has it, so no table does. */
static const struct tool_option help_option = {
	"help", 'h', NULL, 0, NULL, "Print this help and end.",
};

enum tool_exit option_flag(void *field, const struct tool_option *o,
			   const char *value)
{
	*(bool *)field = true;
	return TOOL_DONE;
}

enum tool_exit option_string(void *field, const struct tool_option *o,
			     const char *value)
{
	*(const char **)field = value;
	return TOOL_DONE;
}

enum tool_exit option_size(void *field, const struct tool_option *o,
			   const char *value)
{
	struct option_number *n = field;
	uint64_t bytes;

	if (units_parse_size(value, &bytes))
		return tool_fail(TOOL_USAGE, NULL,
				 "--%s: '%s' is not a size; write it like "
				 "65536, 64K, 16M, 2G or 1T",
				 o->name, value);
	*n = (struct option_number){ true, bytes };
	return TOOL_DONE;
}

enum tool_exit option_seconds(void *field, const struct tool_option *o,
			      const char *value)
{
	struct option_number *n = field;
	uint64_t ms;

	if (units_parse_seconds(value, &ms))
		return tool_fail(TOOL_USAGE, NULL,
				 "--%s: '%s' is not a time; write seconds, "
				 "like 2 or 0.5",
				 o->name, value);
	*n = (struct option_number){ true, ms };
	return TOOL_DONE;
}

enum tool_exit option_fd(void *field, const struct tool_option *o,
			 const char *value)
{
	struct option_fd *f = field;
	uint64_t fd;

	if (units_parse_number(value, INT_MAX, &fd))
		return tool_fail(TOOL_USAGE, NULL,
				 "--%s: '%s' is not the number of a "
				 "descriptor",
				 o->name, value);
	*f = (struct option_fd){ true, fd };
	return TOOL_DONE;
}

/* getopt_long's form of a table of options. */
struct getopt_tables {
	const struct tool_option *row[OPTIONS_MAX];
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 2];
	size_t nr;
};

static void add_option(struct getopt_tables *t, const struct tool_option *o)
{
	char *end = t->shorts + strlen(t->shorts);

	assert(t->nr < OPTIONS_MAX);
	t->row[t->nr] = o;
	t->longs[t->nr] = (struct option){
		.name = o->name,
		.has_arg = o->arg ? required_argument : no_argument,
		.val = UCHAR_MAX + 1 + (int)t->nr,
	};
	t->nr++;
	if (o->letter) {
		*end++ = o->letter;
		if (o->arg)
			*end = ':';
	}
}

static void make_tables(struct getopt_tables *t, const struct tool_command *cmd)
{
	memset(t, 0, sizeof(*t));
	/* A missing value comes back as ':' and not as '?'. */
	t->shorts[0] = ':';
	for (const struct tool_option *o = cmd->options; o && o->name; o++)
		add_option(t, o);
	add_option(t, &help_option);
}

static const struct tool_option *find_row(const struct getopt_tables *t,
					  int val)
{
	if (val > UCHAR_MAX)
		return t->row[val - UCHAR_MAX - 1];
	for (size_t i = 0; i < t->nr; i++)
		if (t->row[i]->letter == val)
			return t->row[i];
	return NULL;
}

/* getopt_long() returned '?' or ':'. */
static enum tool_exit refuse(const struct tool_command *cmd,
			     const struct getopt_tables *t, int result,
			     char **argv)
{
	const char *const word = argv[optind - 1];
	const struct tool_option *o = optopt ? find_row(t, optopt) : NULL;

	if (result == ':' && o)
		return tool_fail(TOOL_USAGE, NULL,
				 "--%s needs a value, %s; see 'tusk %s "
				 "--help'",
				 o->name, o->arg, cmd->name);
	if (o)
		return tool_fail(TOOL_USAGE, NULL,
				 "--%s takes no value; see 'tusk %s --help'",
				 o->name, cmd->name);
	if (optopt)
		return tool_fail(TOOL_USAGE, NULL,
				 "unknown option '-%c'; see 'tusk %s --help'",
				 optopt, cmd->name);
	return tool_fail(TOOL_USAGE, NULL,
			 "unknown or ambiguous option '%s'; see 'tusk %s "
			 "--help'",
			 word, cmd->name);
}

/* The @nr'th word of @words, 0 the first; its length is in *@len. */
static const char *nth_word(const char *words, unsigned int nr, int *len)
{
	while (nr--) {
		words += strcspn(words, " ");
		words += strspn(words, " ");
	}
	*len = (int)strcspn(words, " ");
	return words;
}

static enum tool_exit check_arguments(const struct tool_command *cmd,
				      unsigned int nr, char **args)
{
	const char *word;
	int len;

	for (unsigned int i = 0; i < cmd->min_args; i++) {
		if (i < nr && *args[i])
			continue;
		word = nth_word(cmd->args, i, &len);
		return tool_fail(TOOL_USAGE, NULL,
				 "%.*s is %s; usage: tusk %s [OPTION...] %s",
				 len, word, i < nr ? "empty" : "missing",
				 cmd->name, cmd->args);
	}
	if (nr > cmd->max_args)
		return tool_fail(TOOL_USAGE, args[cmd->max_args],
				 "one argument too many; usage: tusk %s "
				 "[OPTION...] %s",
				 cmd->name, cmd->args);
	return TOOL_DONE;
}

/* As getopt_long(); no other thread parses options. */
static int next_option(const struct getopt_tables *t, int argc, char **argv)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe) */
	return getopt_long(argc, argv, t->shorts, t->longs, NULL);
}

/* *@help is set, and nothing else done, at the first --help. */
static enum tool_exit parse_options(const struct tool_command *cmd, int argc,
				    char **argv, void *state, bool *help)
{
	enum tool_exit code = TOOL_DONE;
	struct getopt_tables t;
	int result;

	make_tables(&t, cmd);
	*help = false;
	opterr = 0;
	optind = 0; /* glibc: start anew, whoever parsed before */
	while (code == TOOL_DONE &&
	       (result = next_option(&t, argc, argv)) != -1) {
		const struct tool_option *o;

		if (result == '?' || result == ':')
			return refuse(cmd, &t, result, argv);
		o = find_row(&t, result);
		assert(o);
		*help = o == &help_option;
		if (*help)
			return TOOL_DONE;
		code = o->set((char *)state + o->offset, o, optarg);
	}
	return code;
}

enum tool_exit command_run(const struct tool_command *cmd, int argc,
			   char **argv)
{
	enum tool_exit code;
	void *state;
	bool help;

	tool_set_command(cmd->name);
	state = calloc(1, cmd->state_bytes ? cmd->state_bytes : 1);
	if (!state)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);

	code = parse_options(cmd, argc, argv, state, &help);
	if (code == TOOL_DONE && help) {
		command_help(cmd, stdout);
		code = tool_finish_output(TOOL_DONE);
	} else if (code == TOOL_DONE) {
		code = check_arguments(cmd, argc - optind, argv + optind);
		if (code == TOOL_DONE)
			code = cmd->run(state, argv + optind);
	}
	free(state);
	return code;
}

void command_wrap(FILE *out, const char *text, unsigned int indent,
		  unsigned int column)
{
	while (*text) {
		const size_t word = strcspn(text, " ");

		if (column > indent && column + 1 + word > HELP_COLUMNS) {
			fputc('\n', out);
			column = 0;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		if (column < indent) {
			fprintf(out, "%*s", (int)(indent - column), "");
			column = indent;
		}
		fwrite(text, 1, word, out);
		column += word;
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void help_of_option(FILE *out, const struct tool_option *o)
{
	unsigned int column;
	char letter[] = "    ";

	if (o->letter) {
		letter[0] = '-';
		letter[1] = o->letter;
		letter[2] = ',';
	}
	column = fprintf(out, "  %s--%s%s%s", letter, o->name,
			 o->arg ? " " : "", o->arg ? o->arg : "");
	if (column >= HELP_TEXT_COLUMN) {
		fputc('\n', out);
		column = 0;
	}
	command_wrap(out, o->help, HELP_TEXT_COLUMN, column);
}

void command_help_exits(FILE *out)
{
	fputs("Exit status:\n", out);
#define X(name, number, text) fprintf(out, "  %3d  %s\n", number, text);
	TOOL_EXITS(X)
#undef X
}

void command_help(const struct tool_command *cmd, FILE *out)
{
	fprintf(out, "Usage: tusk %s [OPTION...]%s%s\n", cmd->name,
		*cmd->args ? " " : "", cmd->args);
	for (size_t i = 0; cmd->text && cmd->text[i]; i++) {
		fputc('\n', out);
		command_wrap(out, cmd->text[i], 0, 0);
	}
	fputs("\nOptions:\n", out);
	for (const struct tool_option *o = cmd->options; o && o->name; o++)
		help_of_option(out, o);
	help_of_option(out, &help_option);
	if (cmd->more_help)
		cmd->more_help(out);
	if (cmd->examples)
		fputs("\nExamples:\n", out);
	for (size_t i = 0; cmd->examples && cmd->examples[i]; i++)
		fprintf(out, "  %s\n", cmd->examples[i]);
	fputc('\n', out);
	command_help_exits(out);
}
