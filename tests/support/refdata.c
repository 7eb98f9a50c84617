/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * File content of the reference model.  Written to be obviously right: one
 * block at a time, no runs, no cleverness.
 */
#include "tests/support/refdata.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 4096u

void *xrealloc(void *p, size_t len)
{
	p = realloc(p, len ? len : 1);
	if (!p) {
		fprintf(stderr, "out of memory\n");
		abort();
	}
	return p;
}

void *xmalloc(size_t len)
{
	return memset(xrealloc(NULL, len), 0, len);
}

void refdata_free(struct refdata *d)
{
	for (size_t i = 0; i < d->nr; i++)
		free(d->block[i].bytes);
	free(d->block);
	memset(d, 0, sizeof(*d));
}

void refdata_copy(struct refdata *to, const struct refdata *from)
{
	*to = *from;
	to->room = from->nr;
	to->block = xmalloc(from->nr * sizeof(*to->block));
	for (size_t i = 0; i < from->nr; i++) {
		to->block[i].index = from->block[i].index;
		if (!from->block[i].bytes)
			continue;
		to->block[i].bytes = xmalloc(BLOCK);
		memcpy(to->block[i].bytes, from->block[i].bytes, BLOCK);
	}
}

/* Position of the first block whose index is not below @index. */
static size_t find(const struct refdata *d, uint64_t index)
{
	size_t low = 0, high = d->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (d->block[mid].index < index)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct refblock *refdata_block(const struct refdata *d, uint64_t index)
{
	size_t at = find(d, index);

	return at < d->nr && d->block[at].index == index ? &d->block[at] : NULL;
}

/* The block with @index, made as an unwritten one where there is none. */
static struct refblock *need_block(struct refdata *d, uint64_t index)
{
	size_t at = find(d, index);

	if (at < d->nr && d->block[at].index == index)
		return &d->block[at];
	if (d->nr == d->room) {
		d->room = d->room ? d->room * 2 : 4;
		d->block = xrealloc(d->block, d->room * sizeof(*d->block));
	}
	memmove(&d->block[at + 1], &d->block[at],
		(d->nr - at) * sizeof(*d->block));
	d->nr++;
	d->block[at] = (struct refblock){ index, NULL };
	return &d->block[at];
}

/* Drop the blocks from @first on and below @end. */
static void drop_blocks(struct refdata *d, uint64_t first, uint64_t end)
{
	size_t from = find(d, first), to = find(d, end);

	if (from >= to)
		return;
	for (size_t i = from; i < to; i++)
		free(d->block[i].bytes);
	memmove(&d->block[from], &d->block[to],
		(d->nr - to) * sizeof(*d->block));
	d->nr -= to - from;
}

/* Zero @len bytes within one block; holes and unwritten blocks stay. */
static void zero_piece(struct refdata *d, uint64_t offset, size_t len)
{
	const struct refblock *b = refdata_block(d, offset / BLOCK);

	if (b && b->bytes)
		memset(b->bytes + offset % BLOCK, 0, len);
}

size_t refdata_read(const struct refdata *d, uint64_t offset, size_t len,
		    void *buf)
{
	uint8_t *out = buf;
	size_t done = 0;

	if (offset >= d->size)
		return 0;
	if (len > d->size - offset)
		len = d->size - offset;
	while (done < len) {
		uint64_t at = offset + done;
		size_t n = BLOCK - at % BLOCK;
		const struct refblock *b = refdata_block(d, at / BLOCK);

		if (n > len - done)
			n = len - done;
		if (b && b->bytes)
			memcpy(out + done, b->bytes + at % BLOCK, n);
		else
			memset(out + done, 0, n);
		done += n;
	}
	return len;
}

void refdata_write(struct refdata *d, uint64_t offset, size_t len,
		   const void *buf)
{
	const uint8_t *in = buf;
	size_t done = 0;

	while (done < len) {
		uint64_t at = offset + done;
		size_t n = BLOCK - at % BLOCK;
		struct refblock *b = need_block(d, at / BLOCK);

		if (n > len - done)
			n = len - done;
		if (!b->bytes)
			b->bytes = xmalloc(BLOCK);
		memcpy(b->bytes + at % BLOCK, in + done, n);
		done += n;
	}
	if (len && offset + len > d->size)
		d->size = offset + len;
}

void refdata_truncate(struct refdata *d, uint64_t size)
{
	if (size <= d->size) {
		size_t keep = size % BLOCK;

		drop_blocks(d, size / BLOCK + (keep ? 1 : 0), UINT64_MAX);
		if (keep)
			zero_piece(d, size, BLOCK - keep);
	}
	d->size = size;
}

void refdata_allocate(struct refdata *d, uint64_t offset, uint64_t len)
{
	for (uint64_t i = offset / BLOCK; i <= (offset + len - 1) / BLOCK; i++)
		need_block(d, i);
}

void refdata_punch(struct refdata *d, uint64_t offset, uint64_t len)
{
	uint64_t end = offset + len;
	uint64_t first = offset / BLOCK + (offset % BLOCK ? 1 : 0);
	uint64_t last = end / BLOCK;

	if (first > last) {
		zero_piece(d, offset, len);
		return;
	}
	if (offset % BLOCK)
		zero_piece(d, offset, BLOCK - offset % BLOCK);
	if (end % BLOCK)
		zero_piece(d, end - end % BLOCK, end % BLOCK);
	drop_blocks(d, first, last);
}

bool refdata_is_allocated(const struct refdata *d, uint64_t offset,
			  uint64_t len)
{
	for (uint64_t i = offset / BLOCK; i <= (offset + len - 1) / BLOCK; i++)
		if (!refdata_block(d, i))
			return false;
	return true;
}

static int seek_data(const struct refdata *d, uint64_t offset, uint64_t *out)
{
	for (size_t i = find(d, offset / BLOCK); i < d->nr; i++) {
		uint64_t start = d->block[i].index * BLOCK;

		if (!d->block[i].bytes)
			continue;
		if (start >= d->size)
			break;
		*out = start > offset ? start : offset;
		return 0;
	}
	return -ENXIO;
}

static int seek_hole(const struct refdata *d, uint64_t offset, uint64_t *out)
{
	const struct refblock *b;

	for (;;) {
		b = refdata_block(d, offset / BLOCK);
		if (!b || !b->bytes)
			break;
		offset = (offset / BLOCK + 1) * BLOCK;
		if (offset >= d->size)
			break;
	}
	*out = offset < d->size ? offset : d->size;
	return 0;
}

int refdata_seek(const struct refdata *d, uint64_t offset, int whence,
		 uint64_t *out)
{
	if (offset >= d->size)
		return -ENXIO;
	return whence == SEEK_DATA ? seek_data(d, offset, out)
				   : seek_hole(d, offset, out);
}
