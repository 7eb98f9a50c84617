/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tools/holders.h"

#define SHOWN_MAX 8

/* AT_STATX_DONT_SYNC: what the kernel knows; a daemon may hang. */
static bool is_on(int dir_fd, const char *name, dev_t dev)
{
	struct statx st;

	return !statx(dir_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		      STATX_TYPE, &st) &&
	       makedev(st.stx_dev_major, st.stx_dev_minor) == dev;
}

static bool has_file(int proc_fd, dev_t dev)
{
	int fd = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *e;
	bool found = false;
	DIR *d;

	if (fd < 0)
		return false;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return false;
	}
	while (!found && (e = readdir(d)) != NULL)
		found = isdigit((unsigned char)e->d_name[0]) &&
			is_on(fd, e->d_name, dev);
	closedir(d);
	return found;
}

/* 7f0a-7f0b r--p 00000000 fe:01 1234 /path */
static bool has_mapping(int proc_fd, dev_t dev)
{
	int fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	unsigned int major, minor;
	bool found = false;
	char *line = NULL;
	size_t size = 0;
	FILE *in;

	if (fd < 0)
		return false;
	in = fdopen(fd, "r");
	if (!in) {
		close(fd);
		return false;
	}
	while (!found && getline(&line, &size, in) >= 0)
		found = sscanf(line, "%*s %*s %*s %x:%x", &major, &minor) ==
				2 &&
			makedev(major, minor) == dev;
	free(line);
	fclose(in);
	return found;
}

static bool holds(int proc_fd, dev_t dev)
{
	return is_on(proc_fd, "cwd", dev) || is_on(proc_fd, "root", dev) ||
	       is_on(proc_fd, "exe", dev) || has_file(proc_fd, dev) ||
	       has_mapping(proc_fd, dev);
}

static void name_of(int proc_fd, char *name, size_t size)
{
	int fd = openat(proc_fd, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t nr = fd < 0 ? -1 : read(fd, name, size - 1);

	if (fd >= 0)
		close(fd);
	name[nr > 0 ? nr : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

static void append(char *text, unsigned int nr, const char *pid, int proc_fd)
{
	size_t len = strlen(text);
	char name[32];

	if (nr == SHOWN_MAX) {
		snprintf(text + len, HOLDERS_TEXT_BYTES - len, " and others");
		return;
	}
	name_of(proc_fd, name, sizeof(name));
	snprintf(text + len, HOLDERS_TEXT_BYTES - len, "%s%s (%s)",
		 nr ? ", " : "process ", pid, name);
}

bool holders_find(dev_t dev, char text[static HOLDERS_TEXT_BYTES])
{
	DIR *proc = opendir("/proc");
	const struct dirent *e;
	unsigned int nr = 0;
	int fd;

	text[0] = '\0';
	if (!proc)
		return false;
	while (nr <= SHOWN_MAX && (e = readdir(proc)) != NULL) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		fd = openat(dirfd(proc), e->d_name,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (holds(fd, dev))
			append(text, nr++, e->d_name, fd);
		close(fd);
	}
	closedir(proc);
	return nr;
}
