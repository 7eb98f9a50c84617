/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A command is a row: its name, its help and its options.  The table of
 * options is what the parser obeys and what --help prints, so they can't
 * drift apart.
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/tool.h"

struct tool_option;

/*
 * Store @value (NULL if the option takes none) at @field, which lies
 * o->offset bytes into the command's state.  Returns TOOL_DONE, or an exit code
 * after a message.
 */
typedef enum tool_exit (*tool_option_set)(void *field,
					  const struct tool_option *o,
					  const char *value);

struct tool_option {
	const char *name; /* without the dashes; NULL ends the table */
	char letter;	  /* short form; 0: none */
	const char *arg;  /* what help calls its value; NULL: takes none */
	size_t offset;	  /* of the field, in the command's state */
	tool_option_set set;
	const char *help; /* one sentence or two; wrapped when printed */
};

struct tool_command {
	const char *name; /* "mount"; two words for "key change" */
	const char *args; /* "CONTAINER DIR"; "": none */
	unsigned int min_args, max_args;
	const char *summary; /* for the list of commands, one line */
	/* For --help: paragraphs, each one line; wrapped when printed. */
	const char *const *text;
	/* For --help: one command line each; NULL: none. */
	const char *const *examples;
	const struct tool_option *options;
	/* For --help: printed after the options; NULL: nothing. */
	void (*more_help)(FILE *out);
	/* Zero-filled before the options are stored in it. */
	size_t state_bytes;
	/* @args has min_args to max_args strings, then NULL. */
	enum tool_exit (*run)(void *state, char **args);
};

/* Setters for the usual types of field. */
enum tool_exit option_flag(void *field, const struct tool_option *o,
			   const char *value); /* bool: true */
enum tool_exit option_string(void *field, const struct tool_option *o,
			     const char *value); /* const char * */
/* struct option_number: bytes with K M G T, and milliseconds from seconds. */
enum tool_exit option_size(void *field, const struct tool_option *o,
			   const char *value);
enum tool_exit option_seconds(void *field, const struct tool_option *o,
			      const char *value);
/* struct option_fd */
enum tool_exit option_fd(void *field, const struct tool_option *o,
			 const char *value);

struct option_number {
	bool given;
	unsigned long long value;
};

struct option_fd {
	bool given;
	int fd;
};

/*
 * Parse @argv (argv[0] is the command's name) and run the command.  Options may
 * stand among the arguments; what follows "--" are arguments.  --help (-h) is
 * every command's: help on stdout, TOOL_DONE.  Returns the exit code.
 */
enum tool_exit command_run(const struct tool_command *cmd, int argc,
			   char **argv);

/* What --help prints. */
void command_help(const struct tool_command *cmd, FILE *out);

/* The exit codes, as --help of tusk and of each command lists them. */
void command_help_exits(FILE *out);

/* Print @text wrapped to 79 columns, each line after @indent spaces. */
void command_wrap(FILE *out, const char *text, unsigned int indent,
		  unsigned int column);

#endif
