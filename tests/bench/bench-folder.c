/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bench-folder [--mounted] [--files N] [--big MIB] [--seconds S] DIR
 *
 * The operations of fileops.c on a folder, through system calls: a line of
 * name, us an operation and MB/s for each.  bench-mount puts several folders
 * side by side.
 *
 * --mounted  DIR is on a mount of ours: before reads the kernel forgets the
 *            file, so that they reach the daemon, and between rows the mount
 *            is synced.  On the host's own folder neither is done: there the
 *            reads are copies from memory, and a sync would have to write what
 *            the whole machine left unwritten.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/fileops.h"

struct folder {
	int fd;
	bool mounted;
};

static int folder_create(void *target, const char *name, int64_t *handle)
{
	const struct folder *f = target;
	int fd = openat(f->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			0600);

	*handle = fd;
	return fd < 0 ? -errno : 0;
}

static int folder_open(void *target, const char *name, int64_t *handle)
{
	const struct folder *f = target;
	int fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC);

	*handle = fd;
	return fd < 0 ? -errno : 0;
}

static int folder_close(void *target, int64_t handle)
{
	return close((int)handle) ? -errno : 0;
}

static int folder_stat(void *target, const char *name)
{
	const struct folder *f = target;
	struct stat st;

	return fstatat(f->fd, name, &st, 0) ? -errno : 0;
}

static int folder_read(void *target, int64_t handle, uint64_t offset,
		       size_t len, void *buf)
{
	ssize_t n = pread((int)handle, buf, len, (off_t)offset);

	return n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
}

static int folder_write(void *target, int64_t handle, uint64_t offset,
			size_t len, const void *buf)
{
	ssize_t n = pwrite((int)handle, buf, len, (off_t)offset);

	return n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
}

static int folder_fsync(void *target, int64_t handle)
{
	return fsync((int)handle) ? -errno : 0;
}

static int folder_rename(void *target, const char *from, const char *to)
{
	const struct folder *f = target;

	return renameat(f->fd, from, f->fd, to) ? -errno : 0;
}

static int folder_unlink(void *target, const char *name)
{
	const struct folder *f = target;

	return unlinkat(f->fd, name, 0) ? -errno : 0;
}

static int folder_forget(void *target, int64_t handle)
{
	const struct folder *f = target;

	if (!f->mounted)
		return 0;
	return -posix_fadvise((int)handle, 0, 0, POSIX_FADV_DONTNEED);
}

static int folder_settle(void *target)
{
	const struct folder *f = target;

	return f->mounted && syncfs(f->fd) ? -errno : 0;
}

static const struct fileops folder_ops = {
	.create = folder_create,
	.open = folder_open,
	.close = folder_close,
	.stat = folder_stat,
	.read = folder_read,
	.write = folder_write,
	.fsync = folder_fsync,
	.rename = folder_rename,
	.unlink = folder_unlink,
	.forget = folder_forget,
	.settle = folder_settle,
};

static void print_row(void *arg, const char *name, double us, double mbps)
{
	printf("%s %.3f %.1f\n", name, us, mbps);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "mounted", no_argument, NULL, 'm' },
		{ "files", required_argument, NULL, 'f' },
		{ "big", required_argument, NULL, 'b' },
		{ "seconds", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	struct fileops_size size = { 1000, 64, 0.3 };
	struct folder f = { .fd = -1 };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'm')
			f.mounted = true;
		else if (c == 'f')
			size.nr_files = (unsigned int)atoi(optarg);
		else if (c == 'b')
			size.big_mib = (unsigned int)atoi(optarg);
		else if (c == 's')
			size.seconds = atof(optarg);
		else
			return 2;
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "usage: bench-folder [OPTION...] DIR\n");
		return 2;
	}
	f.fd = open(argv[optind], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f.fd < 0) {
		perror(argv[optind]);
		return 1;
	}
	fileops_run(&folder_ops, &f, &size, print_row, NULL);
	close(f.fd);
	return 0;
}
