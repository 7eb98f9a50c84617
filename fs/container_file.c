/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A container that is a regular file or a block device.
 *
 * All access goes through the page cache.  A file grows with fallocate, so
 * that space once handed out cannot be missing later (the host is full, the
 * quota used up): that is noticed here and nowhere else.
 */
#include "fs/container.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "fs/container_lock.h"

#define KIB 1024u
#define MIB (1024u * KIB)

struct container_file {
	struct container c;
	/* Constant. */
	int fd;		      /* carries the locks */
	int claim_fd;	      /* keeps a device ours; -1 for files */
	pthread_mutex_t grow; /* one growth at a time */
};

static struct container_file *of(struct container *c)
{
	return (struct container_file *)c;
}

/* What a full host, a quota and a size limit have in common. */
static int map_write_error(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return -ENOSPC;
	default:
		return -EIO;
	}
}

/* Reading and writing */

static int file_read(struct container *c, uint64_t offset, size_t len,
		     void *buf)
{
	uint8_t *to = buf;

	while (len) {
		ssize_t n = pread(of(c)->fd, to, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		/* 0: the file was cut short behind our back. */
		if (n <= 0)
			return -EIO;
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* Returns 0 or a positive errno. */
static int write_all(int fd, uint64_t offset, size_t len, const void *buf)
{
	const uint8_t *from = buf;

	while (len) {
		ssize_t n = pwrite(fd, from, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO;
		from += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int file_write(struct container *c, uint64_t offset, size_t len,
		      const void *buf)
{
	int error = write_all(of(c)->fd, offset, len, buf);

	return error ? map_write_error(error) : 0;
}

/*
 * Not repeated after an error: the kernel reports a lost write once, so a
 * second call would report success over lost data.
 */
static int file_flush(struct container *c)
{
	return fdatasync(of(c)->fd) ? map_write_error(errno) : 0;
}

/* Growing */

/* Returns 0 or a positive errno. */
static int write_zeros(int fd, uint64_t offset, uint64_t end)
{
	static const uint8_t zeros[256 * KIB];

	while (offset < end) {
		uint64_t left = end - offset;
		size_t n = left < sizeof(zeros) ? left : sizeof(zeros);
		int error = write_all(fd, offset, n, zeros);

		if (error)
			return error;
		offset += n;
	}
	return 0;
}

/*
 * The way of hosts without fallocate: zeros where there is nothing yet, which
 * is behind the end and in holes before it.  Returns 0 or a positive errno.
 */
static int back_with_zeros(int fd, uint64_t offset, uint64_t end,
			   uint64_t old_size)
{
	while (offset < end && offset < old_size) {
		uint64_t stop = end < old_size ? end : old_size;
		off_t hole = lseek(fd, (off_t)offset, SEEK_HOLE);
		off_t data;
		int error;

		/* A host that cannot tell has no holes. */
		if (hole < 0 || (uint64_t)hole >= stop) {
			offset = stop;
			break;
		}
		data = lseek(fd, hole, SEEK_DATA);
		if (data >= 0 && (uint64_t)data < stop)
			stop = (uint64_t)data;
		error = write_zeros(fd, (uint64_t)hole, stop);
		if (error)
			return error;
		offset = stop;
	}
	return write_zeros(fd, offset, end);
}

/* Returns 0 or a positive errno; the file's size is then as before. */
static int back_range(int fd, uint64_t offset, uint64_t len)
{
	struct stat st, now;
	int error;

	if (fstat(fd, &st))
		return errno;

	do {
		error = fallocate(fd, 0, (off_t)offset, (off_t)len) ? errno : 0;
	} while (error == EINTR);

	if (error == EOPNOTSUPP || error == ENOSYS)
		error = back_with_zeros(fd, offset, offset + len,
					(uint64_t)st.st_size);

	/* Should this fail too, unused space stays with the container. */
	if (error && !fstat(fd, &now) && now.st_size > st.st_size)
		(void)!ftruncate(fd, st.st_size);
	return error;
}

static int file_back(struct container *c, uint64_t offset, uint64_t len)
{
	struct container_file *f = of(c);
	int error;

	pthread_mutex_lock(&f->grow);
	error = back_range(f->fd, offset, len);
	if (!error)
		container_grown(c, offset + len);
	pthread_mutex_unlock(&f->grow);
	return error ? map_write_error(error) : 0;
}

static int device_back(struct container *c, uint64_t offset, uint64_t len)
{
	uint64_t size = c->size_bytes;

	return offset <= size && len <= size - offset ? 0 : -ENOSPC;
}

static int file_host_free(struct container *c, uint64_t *bytes)
{
	struct statvfs fs;
	struct rlimit limit;
	uint64_t size = __atomic_load_n(&c->size_bytes, __ATOMIC_RELAXED);

	if (fstatvfs(of(c)->fd, &fs))
		return -EIO;
	*bytes = fs.f_frsize *
		 (uint64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail);

	if (!getrlimit(RLIMIT_FSIZE, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY) {
		uint64_t rest = limit.rlim_cur > size ? limit.rlim_cur - size
						      : 0;

		if (*bytes > rest)
			*bytes = rest;
	}
	return 0;
}

static int device_host_free(struct container *c, uint64_t *bytes)
{
	*bytes = 0;
	return 0;
}

/* Locks and the end */

static int file_serve(struct container *c)
{
	return lock_serve(of(c)->fd,
			  c->read_only ? LOCK_SHARED : LOCK_EXCLUSIVE);
}

static void file_serve_end(struct container *c)
{
	lock_serve_end(of(c)->fd);
}

static void file_close(struct container *c)
{
	struct container_file *f = of(c);

	/* The claim first: who then gets the lock also gets the claim. */
	if (f->claim_fd >= 0)
		close(f->claim_fd);
	if (f->fd >= 0)
		close(f->fd);
	pthread_mutex_destroy(&f->grow);
	free(f);
}

static const struct container_ops file_ops = {
	.read = file_read,
	.write = file_write,
	.flush = file_flush,
	.back = file_back,
	.host_free = file_host_free,
	.serve = file_serve,
	.serve_end = file_serve_end,
	.close = file_close,
};

static const struct container_ops device_ops = {
	.read = file_read,
	.write = file_write,
	.flush = file_flush,
	.back = device_back,
	.host_free = device_host_free,
	.serve = file_serve,
	.serve_end = file_serve_end,
	.close = file_close,
};

/* Opening */

/*
 * Without updating the access time where we may ask for that (own files), so
 * that reading leaves no trace and costs the host no write.
 */
static int open_quietly(const char *path, int flags)
{
	int fd = open(path, flags | O_NOATIME | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 && errno == EPERM)
		fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
	return fd;
}

static int check_type(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	if (!S_ISREG(st->st_mode) && !S_ISBLK(st->st_mode))
		return -ENOTBLK;
	return 0;
}

/* Kind, size and functions of what is open at f->fd. */
static int find_out_kind(struct container_file *f)
{
	struct stat st;
	uint64_t size;
	int err;

	if (fstat(f->fd, &st))
		return -errno;
	err = check_type(&st);
	if (err)
		return err;

	f->c.is_device = S_ISBLK(st.st_mode);
	f->c.ops = f->c.is_device ? &device_ops : &file_ops;
	size = (uint64_t)st.st_size;
	if (f->c.is_device && ioctl(f->fd, BLKGETSIZE64, &size))
		return -errno;
	f->c.size_bytes = size - size % BLOCK_BYTES;
	return 0;
}

/*
 * Keep mount(8), LVM and others away from a device we write.  Its former
 * owner may have let go of the lock, but not yet of this: it is tried for a
 * moment.
 */
static int claim_device(struct container_file *f, const char *path)
{
	const struct timespec pause = { 0, 20 * 1000000L };
	struct stat st, claimed;

	for (int tries = 0; f->claim_fd < 0 && tries < 50; tries++) {
		if (tries)
			nanosleep(&pause, NULL);
		f->claim_fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
		if (f->claim_fd < 0 && errno != EBUSY)
			return -errno;
	}
	if (f->claim_fd < 0)
		return -EBUSY;

	/* The path may lead elsewhere by now. */
	if (fstat(f->fd, &st) || fstat(f->claim_fd, &claimed))
		return -errno;
	return st.st_rdev == claimed.st_rdev ? 0 : -EBUSY;
}

static struct container_file *file_new(void)
{
	struct container_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->c.ops = &file_ops;
	f->fd = -1;
	f->claim_fd = -1;
	pthread_mutex_init(&f->grow, NULL);
	return f;
}

static int open_and_lock(struct container_file *f, const char *path,
			 enum container_access access,
			 unsigned int wait_seconds, int *holder_pid)
{
	bool write = access == CONTAINER_READ_WRITE;
	struct stat st;
	int err;

	/* Opening a FIFO would hang, opening a tape would rewind it. */
	if (stat(path, &st))
		return -errno;
	err = check_type(&st);
	if (err)
		return err;

	f->c.read_only = !write;
	f->fd = open_quietly(path, write ? O_RDWR : O_RDONLY);
	if (f->fd < 0)
		return -errno;

	if (access != CONTAINER_NO_LOCK) {
		err = lock_take(f->fd, write ? LOCK_EXCLUSIVE : LOCK_SHARED,
				wait_seconds, holder_pid);
		if (err)
			return err;
	}

	/* Only now: a daemon that was ending may have changed the size. */
	err = find_out_kind(f);
	if (!err && f->c.is_device && write)
		err = claim_device(f, path);
	return err;
}

int container_open(struct container **out, const char *path,
		   enum container_access access, unsigned int wait_seconds,
		   int *holder_pid)
{
	struct container_file *f = file_new();
	int err;

	*out = NULL;
	if (holder_pid)
		*holder_pid = 0;
	if (!f)
		return -ENOMEM;

	err = open_and_lock(f, path, access, wait_seconds, holder_pid);
	if (err) {
		file_close(&f->c);
		return err;
	}
	*out = &f->c;
	return 0;
}

/* Creating */

/*
 * A host that copies on write would turn every overwriting into an
 * allocation, which can fail.  Only an empty file can be told not to.
 */
static void ask_for_nocow(int fd)
{
	int flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags))
		return;
	flags |= FS_NOCOW_FL;
	(void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

/* Make the new name itself durable; not all hosts do so with the file. */
static void sync_parent(const char *path)
{
	char *copy = strdup(path);
	int fd;

	if (!copy)
		return;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
	free(copy);
}

/* Remove @path if it is still the file that @fd is. */
static void remove_file(const char *path, int fd)
{
	struct stat st, named;

	if (!fstat(fd, &st) && !lstat(path, &named) &&
	    st.st_dev == named.st_dev && st.st_ino == named.st_ino)
		unlink(path);
}

static int fill_new_file(struct container_file *f, uint64_t size_bytes)
{
	int err, error;

	err = lock_take(f->fd, LOCK_EXCLUSIVE, 0, NULL);
	if (err)
		return err;
	/* The umask may have taken bits that we need when we come again. */
	if (fchmod(f->fd, 0600))
		return -errno;
	ask_for_nocow(f->fd);

	error = back_range(f->fd, 0, size_bytes);
	if (error == EFBIG)
		return -EFBIG;
	if (error)
		return map_write_error(error);
	return find_out_kind(f);
}

static int create_file(struct container_file *f, const char *path,
		       uint64_t size_bytes)
{
	int err;

	if (size_bytes == 0 || size_bytes % BLOCK_BYTES)
		return -EINVAL;
	if (size_bytes > INT64_MAX)
		return -EFBIG;

	f->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY,
		     0600);
	if (f->fd < 0)
		return -errno;

	err = fill_new_file(f, size_bytes);
	if (err)
		remove_file(path, f->fd);
	else
		sync_parent(path);
	return err;
}

/* Returns 0 if [offset, offset + len) holds only zeros, -ENOTEMPTY, -EIO. */
static int check_zero(struct container *c, uint64_t offset, uint64_t len)
{
	static const uint8_t zeros[64 * KIB];
	uint8_t buf[sizeof(zeros)];

	while (len) {
		size_t n = len < sizeof(buf) ? len : sizeof(buf);

		if (file_read(c, offset, n, buf))
			return -EIO;
		if (memcmp(buf, zeros, n))
			return -ENOTEMPTY;
		offset += n;
		len -= n;
	}
	return 0;
}

/*
 * Look where file systems, partition tables, volume managers and RAIDs keep
 * what tells them apart, and where our own second header would be.
 */
static int check_shows_nothing(struct container *c)
{
	const struct {
		uint64_t offset, len;
	} places[] = {
		{ 0, MIB },
		{ 16 * MIB, MIB },
		{ c->size_bytes > 64 * KIB ? c->size_bytes - 64 * KIB : 0,
		  64 * KIB },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		uint64_t offset = places[i].offset, len = places[i].len;
		int err;

		if (offset >= c->size_bytes)
			continue;
		if (len > c->size_bytes - offset)
			len = c->size_bytes - offset;
		err = check_zero(c, offset, len);
		if (err)
			return err;
	}
	return 0;
}

static int create_on_device(struct container_file *f, const char *path,
			    enum container_create_mode mode)
{
	struct stat st;
	int err;

	if (stat(path, &st))
		return -errno;
	if (!S_ISBLK(st.st_mode))
		return -ENOTBLK;

	err = open_and_lock(f, path, CONTAINER_READ_WRITE, 0, NULL);
	if (!err && !f->c.is_device)
		err = -ENOTBLK;
	if (!err && mode == CONTAINER_DEVICE)
		err = check_shows_nothing(&f->c);
	return err;
}

int container_create(struct container **out, const char *path,
		     enum container_create_mode mode, uint64_t size_bytes)
{
	struct container_file *f = file_new();
	int err;

	*out = NULL;
	if (!f)
		return -ENOMEM;

	if (mode == CONTAINER_NEW_FILE)
		err = create_file(f, path, size_bytes);
	else
		err = create_on_device(f, path, mode);
	if (err) {
		file_close(&f->c);
		return err;
	}
	*out = &f->c;
	return 0;
}
