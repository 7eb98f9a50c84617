/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The two locks of a container file or device.  Byte 0 is locked with an
 * open-file-description lock: the classic fcntl lock would be lost as soon as
 * any descriptor of the file is closed anywhere in the process.
 */
#include "fs/container_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 20

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct flock byte_0(short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = 0,
		.l_len = 1,
	};
}

/* Does another process hold the lock on byte 0? */
static bool is_served(int fd)
{
	struct flock l = byte_0(F_WRLCK);

	return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/*
 * Who holds the flock.  The kernel tells pids only in /proc/locks (an
 * open-file-description lock belongs to no process), and knows the device
 * there by a number that some file systems (btrfs) don't show in stat(): then
 * the inode number has to do.
 */
static int find_holder(int fd)
{
	unsigned int major, minor;
	unsigned long ino;
	bool certain = false;
	int holder = 0, pid;
	struct stat st;
	char line[256];
	FILE *f;

	if (fstat(fd, &st))
		return 0;
	f = fopen("/proc/locks", "re");
	if (!f)
		return 0;

	while (!certain && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*u: FLOCK %*s %*s %d %x:%x:%lu", &pid,
			   &major, &minor, &ino) != 4)
			continue;
		if (ino != st.st_ino || pid <= 0 || pid == getpid())
			continue;
		holder = pid;
		certain = makedev(major, minor) == st.st_dev;
	}
	fclose(f);
	return holder;
}

/* Returns 0, -EBUSY or -errno. */
static int try_flock(int fd, enum lock_kind kind)
{
	int op = (kind == LOCK_SHARED ? LOCK_SH : LOCK_EX) | LOCK_NB;

	while (flock(fd, op)) {
		if (errno == EWOULDBLOCK)
			return -EBUSY;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int lock_take(int fd, enum lock_kind kind, unsigned int wait_seconds,
	      int *holder_pid)
{
	const struct timespec pause = { 0, POLL_MS * 1000000L };
	int64_t deadline = now_ms() + (int64_t)wait_seconds * 1000;
	int err;

	if (holder_pid)
		*holder_pid = 0;

	while ((err = try_flock(fd, kind)) == -EBUSY) {
		if (is_served(fd) || now_ms() >= deadline)
			break;
		nanosleep(&pause, NULL);
	}

	if (err == -EBUSY && holder_pid)
		*holder_pid = find_holder(fd);
	return err;
}

int lock_serve(int fd, enum lock_kind kind)
{
	struct flock l = byte_0(kind == LOCK_SHARED ? F_RDLCK : F_WRLCK);

	while (fcntl(fd, F_OFD_SETLK, &l)) {
		if (errno == EAGAIN || errno == EACCES)
			return -EBUSY;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

void lock_serve_end(int fd)
{
	struct flock l = byte_0(F_UNLCK);

	(void)fcntl(fd, F_OFD_SETLK, &l);
}
