/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Content of one file of the reference model: a sorted array of the 4096-byte
 * blocks that exist, whether written or only allocated, and a size.  What is
 * not in the array is a hole.
 */
#ifndef TESTS_SUPPORT_REFDATA_H
#define TESTS_SUPPORT_REFDATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct refblock {
	uint64_t index; /* offset in the file / 4096 */
	uint8_t *bytes; /* 4096 of them; NULL: allocated, unwritten */
};

struct refdata {
	uint64_t size;
	size_t nr, room;
	struct refblock *block;
};

/* Memory is taken with xmalloc(): a test has no use for what is missing. */
void *xmalloc(size_t len);
void *xrealloc(void *p, size_t len);

void refdata_free(struct refdata *d);
void refdata_copy(struct refdata *to, const struct refdata *from);

/* The block with @index, or NULL for a hole. */
const struct refblock *refdata_block(const struct refdata *d, uint64_t index);

size_t refdata_read(const struct refdata *d, uint64_t offset, size_t len,
		    void *buf);
/* Extends the size. */
void refdata_write(struct refdata *d, uint64_t offset, size_t len,
		   const void *buf);
/* What was allocated past the end goes too, unless the size grows. */
void refdata_truncate(struct refdata *d, uint64_t size);
/* Make holes unwritten blocks; the size stays. */
void refdata_allocate(struct refdata *d, uint64_t offset, uint64_t len);
/* Whole blocks go, the rest is zeroed; the size stays. */
void refdata_punch(struct refdata *d, uint64_t offset, uint64_t len);
/* Whether [offset, offset + len) has a block everywhere. */
bool refdata_is_allocated(const struct refdata *d, uint64_t offset,
			  uint64_t len);
/* SEEK_DATA, SEEK_HOLE; unwritten is a hole.  0 or -ENXIO. */
int refdata_seek(const struct refdata *d, uint64_t offset, int whence,
		 uint64_t *out);

#endif
