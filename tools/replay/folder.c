/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is written does not compress and has no equal blocks within 1 MiB, so
 * that no file system between us and the disk finds less to do than with a
 * user's media files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/replay/folder.h"
#include "tools/replay/touched.h"

#define ALIGNMENT 4096
#define NAME_BYTES 16

static void file_name(char name[static NAME_BYTES], uint32_t nr)
{
	snprintf(name, NAME_BYTES, "%04u", (unsigned int)nr);
}

/* splitmix64: fast, and nothing here is secret. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int make_buffers(struct folder *f, uint64_t seed)
{
	f->random = aligned_alloc(ALIGNMENT, 2 * FOLDER_CHUNK);
	f->buffer = calloc(f->nr_threads, sizeof(*f->buffer));
	if (!f->random || !f->buffer)
		return -ENOMEM;
	for (size_t i = 0; i < 2 * FOLDER_CHUNK; i += sizeof(uint64_t)) {
		const uint64_t r = next_random(&seed);

		memcpy(f->random + i, &r, sizeof(r));
	}
	for (unsigned int i = 0; i < f->nr_threads; i++) {
		f->buffer[i] = aligned_alloc(ALIGNMENT, FOLDER_CHUNK);
		if (!f->buffer[i])
			return -ENOMEM;
	}
	return 0;
}

/* A descriptor for each file, and some for all else. */
static int allow_descriptors(uint32_t nr)
{
	const rlim_t need = (rlim_t)nr + 64;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_cur >= need)
		return 0;
	if (limit.rlim_max < need)
		return -EMFILE;
	limit.rlim_cur = need;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

static int make_folder(struct folder *f, const char *dir)
{
	char *made;

	if (asprintf(&f->path, "%s/tusk-replay-XXXXXX", dir) < 0) {
		f->path = NULL;
		return -ENOMEM;
	}
	made = mkdtemp(f->path);
	if (!made) {
		const int err = -errno;

		free(f->path);
		f->path = NULL;
		return err;
	}
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->fd < 0 ? -errno : 0;
}

static int make_file(struct folder *f, uint32_t i, uint64_t size)
{
	char name[NAME_BYTES];

	file_name(name, i);
	f->file[i] = openat(f->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			    0600);
	if (f->file[i] < 0)
		return -errno;
	return ftruncate(f->file[i], (off_t)size) ? -errno : 0;
}

int folder_make(struct folder *f, const char *dir, uint32_t nr,
		const uint64_t *size, unsigned int nr_threads, uint64_t seed)
{
	int err;

	*f = (struct folder){ .fd = -1, .nr_threads = nr_threads };
	err = allow_descriptors(nr);
	if (!err)
		err = make_buffers(f, seed);
	if (!err)
		err = make_folder(f, dir);
	if (err)
		return err;
	f->file = calloc((size_t)nr + 1, sizeof(*f->file));
	if (!f->file)
		return -ENOMEM;
	while (f->nr < nr && !err) {
		err = make_file(f, f->nr, size[f->nr]);
		f->nr++;
	}
	return err;
}

/* ---- I/O ---- */

/*
 * The bytes for @offset: by position, so that two replays of a trace leave the
 * same files.
 */
static const char *random_bytes_for(const struct folder *f, uint64_t offset)
{
	return f->random + offset % FOLDER_CHUNK;
}

static int write_all(const struct folder *f, int fd, uint64_t offset,
		     uint64_t length)
{
	while (length) {
		const uint64_t part = length < FOLDER_CHUNK ? length
							    : FOLDER_CHUNK;
		const ssize_t done = pwrite(fd, random_bytes_for(f, offset),
					    part, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (!done)
			return -EIO;
		offset += (uint64_t)done;
		length -= (uint64_t)done;
	}
	return 0;
}

static int read_all(int fd, char *buffer, uint64_t offset, uint64_t length)
{
	while (length) {
		const uint64_t part = length < FOLDER_CHUNK ? length
							    : FOLDER_CHUNK;
		const ssize_t done = pread(fd, buffer, part, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		/* Files were made large enough: somebody cut this one. */
		if (!done)
			return -ENODATA;
		offset += (uint64_t)done;
		length -= (uint64_t)done;
	}
	return 0;
}

static int run_piece(struct folder *f, unsigned int thread, int fd,
		     enum trace_op op, const struct fit_extent *e)
{
	switch (op) {
	case TRACE_READ:
		return read_all(fd, f->buffer[thread], e->offset, e->length);
	case TRACE_WRITE:
		return write_all(f, fd, e->offset, e->length);
	default:
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)e->offset, (off_t)e->length))
			return -errno;
		return 0;
	}
}

static int flush(int fd, bool data_only)
{
	return (data_only ? fdatasync(fd) : fsync(fd)) ? -errno : 0;
}

int folder_run(void *folder, unsigned int thread, const struct engine_io *io)
{
	struct folder *f = folder;
	const int fd = f->file[io->target];
	int err = 0;

	if (io->op == TRACE_FLUSH)
		return flush(fd, io->flags & TRACE_DATA_ONLY);
	if (io->flags & TRACE_PREFLUSH)
		err = flush(fd, true);
	for (unsigned int i = 0; i < io->nr && !err; i++)
		err = run_piece(f, thread, fd, io->op, &io->piece[i]);
	if (!err && (io->flags & TRACE_FUA))
		err = flush(fd, true);
	return err;
}

/* ---- before and after ---- */

static int fill_file(struct folder *f, uint32_t i, const struct touched *t,
		     const atomic_bool *interrupt,
		     void (*progress)(void *arg, uint64_t blocks), void *arg,
		     uint64_t *done)
{
	uint64_t from = 0, start, nr;

	while ((nr = touched_next(t, i, from, &start)) > 0) {
		int err;

		if (atomic_load(interrupt))
			return -EINTR;
		err = write_all(f, f->file[i], start * TOUCHED_BLOCK,
				nr * TOUCHED_BLOCK);
		if (err)
			return err;
		from = start + nr;
		*done += nr;
		if (progress)
			progress(arg, *done);
	}
	return 0;
}

int folder_fill(struct folder *f, const struct touched *touched,
		const atomic_bool *interrupt,
		void (*progress)(void *arg, uint64_t blocks), void *arg)
{
	uint64_t done = 0;
	int err = 0;

	for (uint32_t i = 0; i < f->nr && !err; i++)
		err = fill_file(f, i, touched, interrupt, progress, arg, &done);
	return err;
}

int folder_sync(struct folder *f)
{
	int first = 0;

	for (uint32_t i = 0; i < f->nr; i++) {
		const int err = flush(f->file[i], false);

		if (!first)
			first = err;
	}
	return first;
}

void folder_close(struct folder *f)
{
	for (uint32_t i = 0; i < f->nr; i++) {
		if (f->file[i] >= 0)
			close(f->file[i]);
		f->file[i] = -1;
	}
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static int open_files(struct folder *f, enum folder_cache how)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW |
			  (how == FOLDER_DIRECT ? O_DIRECT : 0);

	for (uint32_t i = 0; i < f->nr; i++) {
		char name[NAME_BYTES];
		int err;

		file_name(name, i);
		f->file[i] = openat(f->fd, name, flags);
		if (f->file[i] < 0)
			return -errno;
		err = posix_fadvise(f->file[i], 0, 0, POSIX_FADV_DONTNEED);
		/* A wish; the report says what is known to be cold. */
		(void)err;
	}
	return 0;
}

int folder_reopen(struct folder *f, enum folder_cache how)
{
	for (uint32_t i = 0; i < f->nr; i++) {
		if (f->file[i] >= 0)
			close(f->file[i]);
		f->file[i] = -1;
	}
	return open_files(f, how);
}

int folder_find(struct folder *f, enum folder_cache how)
{
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->fd < 0 ? -errno : open_files(f, how);
}

static int remove_all(struct folder *f)
{
	int first = 0;

	if (!f->path)
		return 0;
	if (f->fd < 0)
		f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (uint32_t i = 0; f->fd >= 0 && i < f->nr; i++) {
		char name[NAME_BYTES];

		file_name(name, i);
		if (unlinkat(f->fd, name, 0) && errno != ENOENT && !first)
			first = -errno;
	}
	if (rmdir(f->path) && !first)
		first = -errno;
	return first;
}

int folder_destroy(struct folder *f, enum folder_end end)
{
	int err = 0;

	for (uint32_t i = 0; i < f->nr; i++)
		if (f->file[i] >= 0)
			close(f->file[i]);
	if (end == FOLDER_REMOVE)
		err = remove_all(f);
	if (f->fd >= 0)
		close(f->fd);
	for (unsigned int i = 0; f->buffer && i < f->nr_threads; i++)
		free(f->buffer[i]);
	free(f->buffer);
	free(f->random);
	free(f->file);
	free(f->path);
	*f = (struct folder){ .fd = -1 };
	return err;
}
