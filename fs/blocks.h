/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whole blocks of a file: reading and decrypting, encrypting and writing, and
 * the step that puts new ones into the map.
 *
 * None of these holds LOCK_TREE when called; all may read from the container,
 * and those that change something may wait for a commit.
 */
#ifndef FS_BLOCKS_H
#define FS_BLOCKS_H

#include "fs/inode.h"

/* Largest piece that one transaction reads or writes, in blocks. */
#define BLOCKS_CHUNK_MAX 256u
/* That of @v; tests with tiny nodes have a smaller one. */
unsigned int blocks_chunk(const struct volume *v);

/* How many blocks @bytes take. */
static inline uint64_t blocks_of(uint64_t bytes)
{
	return bytes / BLOCK_BYTES + (bytes % BLOCK_BYTES != 0);
}

/*
 * Plaintext of @nr whole blocks from @first on, at most a chunk; holes are
 * zeros.  -EBADMSG if a tag is wrong (reported and counted).
 */
must_check int blocks_read(struct volume *v, inum_t ino, uint64_t first,
			   unsigned int nr, uint8_t *buf);

/* What changes in the inode together with the map, under LOCK_TREE. */
typedef void blocks_change(void *arg, struct inode *in);
/* Nothing. */
void blocks_keep(void *arg, struct inode *in);

/*
 * Give [first, first + nr), a chunk at most, the content @plain.  The caller
 * holds @in and its data_lock, exclusively unless all blocks are whole ones of
 * its own caller.
 */
must_check int blocks_put(struct volume *v, enum txn_class class,
			  struct inode *in, uint64_t first, unsigned int nr,
			  const uint8_t *plain, blocks_change *change,
			  void *arg);
/* The same; own blocks can be replaced even on a full volume (I8). */
must_check int blocks_store(struct volume *v, struct inode *in,
			    uint64_t first, unsigned int nr,
			    const uint8_t *plain, blocks_change *change,
			    void *arg);

/* Map [first, first + nr), a hole, to blocks without content. */
must_check int blocks_reserve(struct volume *v, struct inode *in,
			      uint64_t first, unsigned int nr);

/* Whether every block of the range is mapped: writing then needs no growth. */
must_check int blocks_mapped(struct volume *v, struct inode *in,
			     uint64_t first, unsigned int nr, bool *yes);
/* Whether block @at has content, which a hole or an unwritten one has not. */
must_check int blocks_written(struct volume *v, struct inode *in, uint64_t at,
			      bool *yes);

#endif
