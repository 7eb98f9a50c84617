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
	pthread_mutex_init(&f->lock, NULL);
	f->have_lock = true;
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
 * The @len bytes for @offset: by position, so that two replays of a trace leave
 * the same files.
 */
static const char *bytes_for(struct folder *f, unsigned int thread,
			     uint32_t target, uint64_t offset, size_t len)
{
	if (!f->verify)
		return f->random + offset % FOLDER_CHUNK;
	pattern_make(&f->pattern, target, offset, f->buffer[thread], len);
	return f->buffer[thread];
}

static int write_all(struct folder *f, unsigned int thread, uint32_t target,
		     const struct fit_extent *e)
{
	uint64_t done = 0;

	while (done < e->length) {
		const uint64_t offset = e->offset + done;
		const uint64_t left = e->length - done;
		const size_t part = left < FOLDER_CHUNK ? left : FOLDER_CHUNK;
		const ssize_t got =
			pwrite(f->file[target],
			       bytes_for(f, thread, target, offset, part), part,
			       (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -EIO;
		done += (uint64_t)got;
	}
	return 0;
}

static void check_bytes(struct folder *f, unsigned int thread, uint32_t target,
			uint64_t offset, size_t len)
{
	const size_t good = pattern_check(&f->pattern, target, offset,
					  f->buffer[thread], len);

	if (good == len)
		return;
	pthread_mutex_lock(&f->lock);
	if (!f->nr_wrong++) {
		f->wrong_target = target;
		f->wrong_offset = offset + good;
	}
	pthread_mutex_unlock(&f->lock);
}

static int read_all(struct folder *f, unsigned int thread, uint32_t target,
		    const struct fit_extent *e)
{
	uint64_t done = 0;

	while (done < e->length) {
		const uint64_t offset = e->offset + done;
		const uint64_t left = e->length - done;
		const size_t part = left < FOLDER_CHUNK ? left : FOLDER_CHUNK;
		const ssize_t got = pread(f->file[target], f->buffer[thread],
					  part, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		/* Files were made large enough: somebody cut this one. */
		if (!got)
			return -ENODATA;
		if (f->verify)
			check_bytes(f, thread, target, offset, (size_t)got);
		done += (uint64_t)got;
	}
	return 0;
}

static int run_piece(struct folder *f, unsigned int thread,
		     const struct engine_io *io, const struct fit_extent *e)
{
	switch (io->op) {
	case TRACE_READ:
		return read_all(f, thread, io->target, e);
	case TRACE_WRITE:
		return write_all(f, thread, io->target, e);
	default:
		if (fallocate(f->file[io->target],
			      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
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
		err = run_piece(f, thread, io, &io->piece[i]);
	if (!err && (io->flags & TRACE_FUA))
		err = flush(fd, true);
	return err;
}

/* ---- before and after ---- */

enum visit {
	VISIT_WRITE,
	VISIT_CHECK,
};

/* All touched blocks of file @i. */
static int visit_file(struct folder *f, uint32_t i, const struct touched *t,
		      enum visit how, const atomic_bool *interrupt,
		      void (*progress)(void *arg, uint64_t blocks), void *arg,
		      uint64_t *done)
{
	uint64_t from = 0, start, nr;

	while ((nr = touched_next(t, i, from, &start)) > 0) {
		const struct fit_extent e = { start * TOUCHED_BLOCK,
					      nr * TOUCHED_BLOCK };
		int err;

		if (atomic_load(interrupt))
			return -EINTR;
		err = how == VISIT_CHECK ? read_all(f, 0, i, &e)
					 : write_all(f, 0, i, &e);
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
		err = visit_file(f, i, touched, VISIT_WRITE, interrupt,
				 progress, arg, &done);
	return err;
}

int folder_check(struct folder *f, const struct touched *touched,
		 const atomic_bool *interrupt)
{
	uint64_t done = 0;
	int err = 0;

	for (uint32_t i = 0; i < f->nr && !err; i++)
		err = visit_file(f, i, touched, VISIT_CHECK, interrupt, NULL,
				 NULL, &done);
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
	if (f->have_lock)
		pthread_mutex_destroy(&f->lock);
	*f = (struct folder){ .fd = -1 };
	return err;
}
