/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A table of rows, each one a step that is repeated: for every small file, for
 * every piece of the big one, or until the time is over.
 *
 * Writes are timed with the fsync that ends them, so that it is no use to
 * leave the work for later.  Reads find the data in memory (the host's page
 * cache keeps the container, too): they tell what the file system costs, not
 * how fast the disk is.
 */
#include "tests/bench/fileops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SMALL_BYTES = 4096,
	PIECE_BYTES = 128 << 10,
};

struct run {
	const struct fileops *ops;
	void *target;
	struct fileops_size size;
	int64_t big; /* handle */
	uint64_t nr_pages;
	uint8_t buf[PIECE_BYTES];
};

enum count {
	COUNT_FILES,
	COUNT_PIECES,
	COUNT_PAGES, /* or until the time is over */
};

struct row {
	const char *name;
	int (*step)(struct run *r, unsigned int i);
	size_t bytes; /* moved by one step */
	enum count count;
	int (*before)(struct run *r); /* untimed; may be NULL */
	int (*after)(struct run *r);  /* timed; may be NULL */
};

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "benchmark: %s: %s\n", what, strerror(-err));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct name {
	char text[32];
};

static struct name small_name(unsigned int i)
{
	struct name n;

	snprintf(n.text, sizeof(n.text), "file-%06u", i);
	return n;
}

static struct name other_name(unsigned int i)
{
	struct name n;

	snprintf(n.text, sizeof(n.text), "renamed-%06u", i);
	return n;
}

/* Each page once, in an order that no read-ahead guesses. */
static uint64_t page_offset(const struct run *r, unsigned int i)
{
	/* A prime above any number of pages: a permutation. */
	return (uint64_t)i * 2654435761u % r->nr_pages * SMALL_BYTES;
}

static int create_small(struct run *r, unsigned int i)
{
	int64_t handle;
	int err = r->ops->create(r->target, small_name(i).text, &handle);

	if (!err)
		err = r->ops->write(r->target, handle, 0, SMALL_BYTES, r->buf);
	return err ? err : r->ops->close(r->target, handle);
}

static int open_small(struct run *r, unsigned int i)
{
	int64_t handle;
	int err = r->ops->open(r->target, small_name(i).text, &handle);

	return err ? err : r->ops->close(r->target, handle);
}

static int stat_small(struct run *r, unsigned int i)
{
	return r->ops->stat(r->target, small_name(i).text);
}

static int read_small(struct run *r, unsigned int i)
{
	int64_t handle;
	int err = r->ops->open(r->target, small_name(i).text, &handle);

	if (!err)
		err = r->ops->read(r->target, handle, 0, SMALL_BYTES, r->buf);
	return err ? err : r->ops->close(r->target, handle);
}

static int rename_small(struct run *r, unsigned int i)
{
	return r->ops->rename(r->target, small_name(i).text,
			      other_name(i).text);
}

static int unlink_small(struct run *r, unsigned int i)
{
	return r->ops->unlink(r->target, other_name(i).text);
}

static int write_piece(struct run *r, unsigned int i)
{
	return r->ops->write(r->target, r->big, (uint64_t)i * PIECE_BYTES,
			     PIECE_BYTES, r->buf);
}

static int read_piece(struct run *r, unsigned int i)
{
	return r->ops->read(r->target, r->big, (uint64_t)i * PIECE_BYTES,
			    PIECE_BYTES, r->buf);
}

static int write_page(struct run *r, unsigned int i)
{
	return r->ops->write(r->target, r->big, page_offset(r, i), SMALL_BYTES,
			     r->buf);
}

static int read_page(struct run *r, unsigned int i)
{
	return r->ops->read(r->target, r->big, page_offset(r, i), SMALL_BYTES,
			    r->buf);
}

static int write_page_fsync(struct run *r, unsigned int i)
{
	int err = write_page(r, i);

	return err ? err : r->ops->fsync(r->target, r->big);
}

static int sync_big(struct run *r)
{
	return r->ops->fsync(r->target, r->big);
}

static int make_big(struct run *r)
{
	return r->ops->create(r->target, "big", &r->big);
}

static int forget_big(struct run *r)
{
	return r->ops->forget(r->target, r->big);
}

static int forget_small(struct run *r)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < r->size.nr_files; i++) {
		int64_t handle;

		err = r->ops->open(r->target, small_name(i).text, &handle);
		if (!err)
			err = r->ops->forget(r->target, handle);
		if (!err)
			err = r->ops->close(r->target, handle);
	}
	return err;
}

static const struct row rows[] = {
	{ "create", create_small, SMALL_BYTES, COUNT_FILES, NULL, NULL },
	{ "open", open_small, 0, COUNT_FILES, NULL, NULL },
	{ "stat", stat_small, 0, COUNT_FILES, NULL, NULL },
	{ "read-small", read_small, SMALL_BYTES, COUNT_FILES, forget_small,
	  NULL },
	{ "rename", rename_small, 0, COUNT_FILES, NULL, NULL },
	{ "unlink", unlink_small, 0, COUNT_FILES, NULL, NULL },
	{ "write-seq", write_piece, PIECE_BYTES, COUNT_PIECES, make_big,
	  sync_big },
	{ "read-seq", read_piece, PIECE_BYTES, COUNT_PIECES, forget_big, NULL },
	{ "write-4k", write_page, SMALL_BYTES, COUNT_PAGES, NULL, sync_big },
	{ "read-4k", read_page, SMALL_BYTES, COUNT_PAGES, forget_big, NULL },
	{ "write-fsync", write_page_fsync, SMALL_BYTES, COUNT_PAGES, NULL,
	  NULL },
};

static unsigned int count_of(const struct run *r, enum count count)
{
	if (count == COUNT_FILES)
		return r->size.nr_files;
	if (count == COUNT_PIECES)
		return (r->size.big_mib << 20) / PIECE_BYTES;
	return (unsigned int)r->nr_pages;
}

static void run_row(struct run *r, const struct row *row, fileops_row *report,
		    void *arg)
{
	unsigned int nr = count_of(r, row->count), i = 0;
	double start, elapsed;

	must(r->ops->settle(r->target), row->name);
	if (row->before) {
		must(row->before(r), row->name);
		must(r->ops->settle(r->target), row->name);
	}
	start = now();
	do {
		must(row->step(r, i++), row->name);
	} while (i < nr && (row->count != COUNT_PAGES ||
			    now() - start < r->size.seconds));
	if (row->after)
		must(row->after(r), row->name);
	elapsed = now() - start;
	report(arg, row->name, elapsed * 1e6 / i,
	       (double)row->bytes * i / elapsed / 1e6);
}

void fileops_run(const struct fileops *ops, void *target,
		 const struct fileops_size *size, fileops_row *row, void *arg)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		must(-ENOMEM, "memory");
	r->ops = ops;
	r->target = target;
	r->size = *size;
	r->nr_pages = ((uint64_t)size->big_mib << 20) / SMALL_BYTES;
	for (size_t i = 0; i < sizeof(r->buf); i++)
		r->buf[i] = (uint8_t)(i * 2654435761u >> 13);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		run_row(r, &rows[i], row, arg);
	must(ops->close(target, r->big), "close");
	must(ops->unlink(target, "big"), "unlink");
	free(r);
}
