/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The superblock: one 4096-byte slot, written to both rings at slot commit mod
 * 64, that makes a commit true.  FORMAT.md, "Superblock".
 */
#ifndef FS_SUPER_H
#define FS_SUPER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cipher/nonce.h"
#include "fs/header.h"
#include "fs/ptr.h"
#include "fs/types.h"

struct container;

/* Where replay of the intent log begins; all zero while there is no log. */
struct super_anchor {
	uint64_t position; /* in 512-byte sectors from the log's start */
	uint64_t sequence;
	uint8_t chain[16];
};

#define SUPER_LOG_EXTENTS 8

struct super {
	uint64_t commit;       /* 1 is the first */
	uint64_t base;			/* commit its trees were made from; 0: none */
	struct ptr root;       /* of the volume tree */
	uint64_t nr_blocks;    /* backed now */
	uint64_t limit_blocks; /* --size; 0: none */
	uint64_t header_sequence;
	uint64_t compat, ro_compat, incompat;
	bool clean; /* unmounted in order */
	struct super_anchor anchor;
	struct {
		block_t first;
		uint64_t nr;
	} log[SUPER_LOG_EXTENTS];
	unsigned int nr_log;
	/* Filled when read or written: what identifies this very slot. */
	struct nonce nonce;
	uint8_t tag[16];
};

/*
 * Seal @sb (its nonce and tag are set) into one block of bytes.
 * Returns 0, -EIO or the error of the random generator.
 */
must_check int super_seal(struct super *sb,
			  const uint8_t uuid[static UUID_BYTES],
			  const struct header_keys *keys,
			  struct nonce_source *src,
			  uint8_t out[static BLOCK_BYTES]);

/*
 * Open and validate one slot.  @slot is where it was read.  Returns 0, -ENOMSG
 * (no superblock of this container: never written), -EBADMSG, -EUCLEAN, -EIO.
 * Feature words are the caller's to judge.  *sb is undefined after an error.
 */
must_check int super_open(struct super *sb,
			  const uint8_t uuid[static UUID_BYTES],
			  const struct header_keys *keys, unsigned int slot,
			  const uint8_t in[static BLOCK_BYTES]);

/*
 * All superblocks that can be opened, newest first, at most @max, each commit
 * once.  *nr may be 0.  *unreadable counts slots that could not be read or
 * were not authentic though they bear our magic.  Returns 0 or -ENOMEM.
 */
must_check int super_read_all(struct super *out, unsigned int max,
			      unsigned int *nr, unsigned int *unreadable,
			      const uint8_t uuid[static UUID_BYTES],
			      const struct header_keys *keys,
			      struct container *c);

/*
 * Write @sb to its slot in both rings, without a flush.
 *
 * Before that the slot of @prev (the superblock this process read or wrote
 * last; NULL for a new container) is read again: if it is no longer the same
 * bytes (nonce and tag), another writer is at work (TD12): -ESTALE, and nothing
 * is written.  The same if the slot that would be overwritten already holds
 * this commit or a later one, so a commit number is never used twice: who went
 * back to an earlier superblock goes on above the highest one there is.
 *
 * Returns 0, -ESTALE, -EIO (also if the slot of @prev cannot be read in
 * either ring), -ENOSPC, or as super_seal().
 */
must_check int super_write(struct super *sb, const struct super *prev,
			   const uint8_t uuid[static UUID_BYTES],
			   const struct header_keys *keys,
			   struct nonce_source *src, struct container *c);

/*
 * Replace the header of an unmounted container in the order that leaves one
 * good copy at each instant and lets an older header be noticed: older copy,
 * flush, superblock with the new sequence, flush, other copy, flush.
 * @h->sequence is raised.
 *
 * Returns 0; -EUCLEAN: no superblock can be opened, nothing was written; or as
 * super_write().  After any other error each copy is the new header, the old
 * one, or (only one of them) damaged; the same call may be made again.
 */
must_check int super_replace_header(struct header *h,
				    const struct header_keys *keys,
				    struct nonce_source *src,
				    struct container *c);

/* For people. */
void super_to_text(const struct super *sb, FILE *out);

#endif
