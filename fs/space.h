/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which blocks are whose.
 *
 * The container is cut into regions of 32 MiB and granules of 1 MiB.  A granule
 * holds data or nodes, never both, so that a commit's nodes always find whole
 * slots.  A region has two bitmaps:
 *
 *	busy	what must not be handed out: owned, held back after a free, or
 *		in flight (handed out, not yet in a map)
 *	disk	what the newest commit's volume tree says; changed only while
 *		a commit is being made, by exactly that commit's deltas
 *
 * A block goes through these states:
 *
 *	free -> in flight (space_alloc) -> owned (space_own, delta of the epoch)
 *	     -> held (space_free, FREED list of the epoch F)
 *	     -> free again when commit F+1 is durable and no reader is left that
 *	        began in F or before (invariant I1)
 *
 * All under LOCK_TREE, but where said.
 */
#ifndef FS_SPACE_H
#define FS_SPACE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/format_tree.h"
#include "fs/range.h"
#include "fs/tree.h"
#include "fs/types.h"

#define REGION_WORDS (REGION_BLOCKS / 64)

struct region {
	uint32_t backed;	/* granules with space from the host */
	uint32_t nodes;		/* granules for nodes */
	uint32_t free_data;	/* blocks not busy in data granules */
	uint32_t free_nodes;	/* blocks not busy in node granules */
	bool dirty;		/* differs from the volume tree's items */
	uint64_t *busy;		/* NULL: not loaded, equal to the item */
	uint64_t *disk;
};

/* What one commit freed. */
struct freed {
	uint64_t commit;
	struct range_vec data, nodes;
	size_t given;		/* ranges already handed back, data first */
	unsigned int nr_items;	/* that it has in the volume tree */
	TAILQ_ENTRY(freed) link;
};

TAILQ_HEAD(freed_list, freed);

void freed_destroy(struct freed *f);

/* Somebody who reads blocks without the lock. */
struct reader {
	uint64_t epoch;
	TAILQ_ENTRY(reader) link;
};

TAILQ_HEAD(reader_list, reader);

struct space {
	struct region *region;
	size_t nr_regions, room;
	uint64_t nr_blocks;		/* end of the space in use */
	unsigned int node_blocks;	/* blocks a node has */
	uint64_t free_data, free_nodes;	/* blocks, not busy */
	uint64_t owned_data;		/* blocks in maps */
	uint64_t held_data;		/* blocks freed and not yet free */
	uint64_t held_nodes;		/* of nodes, freed by finished commits */
	size_t cursor;			/* region where data is looked for */
	/* Deltas of the live epoch. */
	struct range_vec allocs;
	struct freed *live;
	/* Of the commit being made; then all older ones, oldest first. */
	struct range_vec frozen_allocs;
	struct freed *frozen;
	struct freed_list freed;
	struct reader_list readers;	/* oldest epoch first */
};

must_check int space_init(struct space *s, unsigned int node_blocks,
			  uint64_t epoch);
void space_destroy(struct space *s);

/*
 * Space up to @nr_blocks is there and has backing: more granules.  The last,
 * incomplete one is left alone.  Returns 0 or -ENOMEM (nothing changed).
 */
must_check int space_extend(struct space *s, uint64_t nr_blocks);

/* While opening: what the volume tree says of @region. */
must_check int space_add_summary(struct space *s, uint64_t region,
				 const struct disk_summary *d);
/* While opening: one item of a FREED list.  In order of commits. */
must_check int space_add_freed(struct space *s, uint64_t commit,
			       const struct disk_freed *d, size_t nr);

/*
 * All was added and node regions are loaded: check it against the superblock's
 * size.  Returns 0 or -EUCLEAN.
 */
must_check int space_loaded(struct space *s, uint64_t nr_blocks);

/* A new container's fixed places, and @nr_granules for nodes. */
must_check int space_format(struct space *s, unsigned int nr_granules);

/*
 * Have the bitmaps of @region in memory.  0, -EAGAIN with *fault (a node of the
 * volume tree @vt is missing), -ENOMEM, -EUCLEAN.
 */
must_check int space_load(struct space *s, struct tree *vt, size_t region,
			  struct fault *fault);

/*
 * Take up to @want data blocks in one run, at @near if that is free (0: where
 * it suits).  Counted as reserved by the caller before, so there are some.
 * 0, -ENOSPC, -EAGAIN with *fault, -ENOMEM, -EUCLEAN.
 */
must_check int space_alloc(struct space *s, struct tree *vt, uint32_t want,
			   block_t near, block_t *start, uint32_t *nr,
			   struct fault *fault);
/* Give back blocks that never entered a map. */
void space_unalloc(struct space *s, block_t start, uint32_t nr);
/* They are in a map now; room was reserved (space_reserve_deltas). */
void space_own(struct space *s, block_t start, uint32_t nr);
/* They are in no map of the live tree any more; room was reserved. */
void space_free(struct space *s, block_t start, uint32_t nr, uint64_t birth);
/* Room for @nr more ranges in the live epoch's deltas.  0 or -ENOMEM. */
must_check int space_reserve_deltas(struct space *s, size_t nr);

/* Region that has node granules with free slots but no bitmaps in memory. */
bool space_node_region_wanted(const struct space *s, size_t *region);
/*
 * Take node slots for up to @want nodes in one run.  The reserve makes sure
 * that there are some: -ENOSPC is a broken invariant (I8).
 */
must_check int space_alloc_nodes(struct space *s, uint32_t want,
				 block_t *start, uint32_t *nr);
/*
 * Turn an entirely free data granule into one for nodes.  0, -ENOSPC (none),
 * -EAGAIN, -ENOMEM, -EUCLEAN.
 */
must_check int space_open_node_granule(struct space *s, struct tree *vt,
				       struct fault *fault);
/* Turn free node granules back while more than @keep blocks stay free. */
void space_close_node_granules(struct space *s, uint64_t keep);

/* The next change belongs to @epoch; deltas so far are the frozen ones. */
must_check int space_freeze(struct space *s, uint64_t epoch);

/*
 * Hand back what was freed in commits that @durable allows (its predecessor
 * and older) and no reader wants.  -EAGAIN as for space_load(), -EUCLEAN if a
 * list names what is not taken.
 */
must_check int space_release(struct space *s, struct tree *vt,
			     uint64_t durable, struct fault *fault);

/* The frozen epoch's commit is durable. */
void space_commit_done(struct space *s);
/* Blocks of nodes freed and not yet free. */
uint64_t space_held_nodes(const struct space *s);

/* Blocks of the live epoch that must stay until this reader ends. */
void space_reader_enter(struct space *s, struct reader *r, uint64_t epoch);
void space_reader_leave(struct space *s, struct reader *r);

/* Disk image helpers for the commit. */
void space_disk_set(struct space *s, block_t start, uint32_t nr);
void space_disk_clear(struct space *s, block_t start, uint32_t nr);
void space_encode(const struct space *s, size_t region,
		  struct disk_summary *summary, struct disk_bitmap *bitmap);

#endif
