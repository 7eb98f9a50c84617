/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The program `tusk`: one table of commands.  A command of two words ("key
 * change") is a row like the others.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/commands.h"
#include "tools/hardware.h"

static const struct tool_command *const commands[] = {
	&create_command, &mount_command,    &umount_command,	 &list_command,
	&info_command,	 &key_list_command, &key_change_command, &check_command,
	&replay_command, &compare_command,  &trace_info_command,
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* How many of @argv's first words are the name of @cmd; 0: it is another. */
static int match(const struct tool_command *cmd, int argc, char **argv)
{
	const char *rest = cmd->name;
	int nr = 0;

	while (*rest) {
		const size_t len = strcspn(rest, " ");

		if (nr == argc || strlen(argv[nr]) != len ||
		    memcmp(argv[nr], rest, len) != 0)
			return 0;
		rest += len;
		rest += strspn(rest, " ");
		nr++;
	}
	return nr;
}

static const struct tool_command *find(int argc, char **argv, int *nr_words)
{
	for (size_t i = 0; i < NR_COMMANDS; i++) {
		*nr_words = match(commands[i], argc, argv);
		if (*nr_words)
			return commands[i];
	}
	return NULL;
}

/* Whether @word begins names of two words: "key". */
static bool is_group(const char *word)
{
	const size_t len = strlen(word);

	for (size_t i = 0; i < NR_COMMANDS; i++) {
		/* NOLINTNEXTLINE(*NullDereference): rows are never NULL */
		const char *const name = commands[i]->name;

		if (strncmp(name, word, len) == 0 && name[len] == ' ')
			return true;
	}
	return false;
}

static void print_commands(const char *group)
{
	const size_t len = group ? strlen(group) : 0;

	for (size_t i = 0; i < NR_COMMANDS; i++) {
		const char *const name = commands[i]->name;

		if (group &&
		    (strncmp(name, group, len) != 0 || name[len] != ' '))
			continue;
		printf("  %-14s %s\n", name, commands[i]->summary);
	}
}

static void print_help(void)
{
	puts("Usage: tusk COMMAND [OPTION...] ARGUMENT...\n\n"
	     "An encrypted file system in one file or block device.\n\n"
	     "Commands:");
	print_commands(NULL);
	puts("  help           this text, or a command's: tusk help COMMAND\n\n"
	     "  -h, --help     this text, or a command's: tusk COMMAND --help\n"
	     "      --version  versions of tusk and its libraries\n");
	command_help_exits(stdout);
}

static enum tool_exit print_version(void)
{
	printf("tusk %s\n", TUSK_VERSION);
	printf("libgcrypt %s\n", hardware_library_version());
	printf("libfuse %s (when built)\n", TUSK_FUSE_VERSION);
	return tool_finish_output(TOOL_DONE);
}

static enum tool_exit unknown(char **argv)
{
	if (is_group(argv[0]))
		return tool_fail(TOOL_USAGE, NULL,
				 "'%s' needs a second word that it knows; see "
				 "'tusk help %s'",
				 argv[0], argv[0]);
	return tool_fail(TOOL_USAGE, NULL, "unknown %s '%s'; see 'tusk help'",
			 argv[0][0] == '-' ? "option" : "command", argv[0]);
}

/* @argv: what follows "help". */
static enum tool_exit help(int argc, char **argv)
{
	const struct tool_command *cmd;
	int nr;

	if (!argc) {
		print_help();
		return tool_finish_output(TOOL_DONE);
	}
	cmd = find(argc, argv, &nr);
	if (cmd && nr == argc) {
		command_help(cmd, stdout);
		return tool_finish_output(TOOL_DONE);
	}
	if (argc == 1 && is_group(argv[0])) {
		printf("Commands of 'tusk %s':\n", argv[0]);
		print_commands(argv[0]);
		return tool_finish_output(TOOL_DONE);
	}
	return unknown(argv);
}

static bool is_word(const char *arg, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(arg, *words) == 0)
			return true;
	return false;
}

static enum tool_exit run(int argc, char **argv)
{
	static const char *const help_words[] = { "help", "--help", "-h",
						  NULL };
	static const char *const version_words[] = { "--version", "-V", NULL };
	const struct tool_command *cmd;
	int nr;

	if (!argc)
		return tool_fail(TOOL_USAGE, NULL,
				 "no command given; see 'tusk help'");
	if (is_word(argv[0], help_words))
		return help(argc - 1, argv + 1);
	if (is_word(argv[0], version_words))
		return print_version();
	cmd = find(argc, argv, &nr);
	if (cmd)
		return command_run(cmd, argc - (nr - 1), argv + (nr - 1));
	/* "tusk key --help" */
	if (argc == 2 && is_group(argv[0]) && is_word(argv[1], help_words))
		return help(1, argv);
	return unknown(argv);
}

/*
 * A container opened as descriptor 2 would get our messages written into it.
 * The wrong mode makes reading stdin or writing to the others fail, as it
 * would on a closed one.
 */
static void fill_standard_descriptors(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

/* mount(8) finds the first, mount.fuse3(8) the last. */
static bool is_mount_helper(const char *path)
{
	static const char *const names[] = { "mount.fuse.tuskfs",
					     "mount.tuskfs", "tuskfs", NULL };
	const char *slash = strrchr(path, '/');

	return is_word(slash ? slash + 1 : path, names);
}

int main(int argc, char **argv)
{
	fill_standard_descriptors();
	/* A size limit (ulimit -f) is an error like a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	if (!argc)
		return TOOL_USAGE;
	if (is_mount_helper(argv[0]))
		return command_run(&mount_helper_command, argc, argv);
	return run(argc - 1, argv + 1);
}
