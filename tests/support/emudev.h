/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An emulated disk under a container, made to be cut off.
 *
 * It keeps every change in the order in which it came: each 4096-byte block
 * written, each flush, each growth is one event.  From that it makes the disk
 * as it may be found after power was lost at any instant: everything up to the
 * last flush is there, of what came later any subset, torn or not.
 *
 * Blocks are shared between a disk, its clones and its log, so a clone of
 * 64 MiB costs 256 pointers and a crash image costs the writes since the last
 * flush.  For want of memory everything here aborts.
 *
 * The functions of emudev_container() may be called by many threads at once,
 * and everything that takes a const struct emudev * meanwhile; the rest is for
 * one thread while no other uses the disk.
 */
#ifndef TESTS_SUPPORT_EMUDEV_H
#define TESTS_SUPPORT_EMUDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/container.h"

struct emudev;

/* What happens to writes and growth since the last flush in a crash. */
enum emudev_policy {
	EMUDEV_KEEP, /* all there: a killed process, not a power cut */
	EMUDEV_LOSE, /* none there */
	/*
	 * By seed: each is there, lost, or a mixture of old and new 512-byte
	 * pieces; seeds differ in how likely these are.
	 */
	EMUDEV_REORDER,
	/* As before, and some cannot be read until they are written again. */
	EMUDEV_REORDER_BAD,
};

/*
 * A disk of zeros.
 *
 * @size_bytes        now; a multiple of 4096
 * @host_limit_bytes  how far it can grow; at least size_bytes
 */
struct emudev *emudev_new(uint64_t size_bytes, uint64_t host_limit_bytes);
void emudev_free(struct emudev *d);

static inline void emudev_free_at(struct emudev **d)
{
	emudev_free(*d);
}
#define auto_emudev auto_cleanup(emudev_free_at)

/* The same content and host limit; empty log, powered, no faults. */
struct emudev *emudev_clone(const struct emudev *d);

/*
 * The disk as an open container, owned by @d.  container_close() only ends
 * the use (later accesses abort until this is called again): the disk stays.
 */
struct container *emudev_container(struct emudev *d);

/* The log */

enum emudev_event_type {
	EMUDEV_WRITE, /* one block */
	EMUDEV_FLUSH,
	EMUDEV_GROW, /* to nr blocks */
};

struct emudev_event {
	enum emudev_event_type type;
	block_t block;
	uint64_t nr;
	const uint8_t *data; /* 4096 bytes, as long as the log lives */
};

uint64_t emudev_nr_events(const struct emudev *d);
struct emudev_event emudev_event_at(const struct emudev *d, uint64_t index);

/*
 * The disk after a crash when the first @nr_events had happened; a new one,
 * as from emudev_clone().  Quick for rising @nr_events; @seed for the
 * REORDER policies: the same arguments make the same disk.
 */
struct emudev *emudev_image_at(struct emudev *d, uint64_t nr_events,
			       enum emudev_policy policy, uint64_t seed);

/* Forget the log: the disk as it is now is durable, and event 0 comes next. */
void emudev_rebase(struct emudev *d);

/* Long runs that look at no crash need no log; starting again rebases. */
void emudev_stop_log(struct emudev *d);
void emudev_start_log(struct emudev *d);

/* Power */

/*
 * Let @nr_events more events happen, in the middle of a write if need be; from
 * then on every call returns -EIO.
 */
void emudev_cut_after(struct emudev *d, uint64_t nr_events);
bool emudev_is_off(const struct emudev *d);

/*
 * Cut the power, if it is not yet off, and switch it on again: content as from
 * emudev_image_at() for all events so far; log and faults are gone.
 */
void emudev_power_on(struct emudev *d, enum emudev_policy policy,
		     uint64_t seed);

/* Faults */

enum emudev_op {
	EMUDEV_OP_READ,
	EMUDEV_OP_WRITE, /* half of the blocks are written */
	EMUDEV_OP_FLUSH, /* nothing becomes durable */
	EMUDEV_OP_BACK,
	EMUDEV_OP_NR
};

/*
 * Let calls number @nth (1: the next) to @nth + @nr_calls - 1 of @op return
 * @err.  UINT64_MAX: from then on.  Replaces an earlier request for @op.
 */
void emudev_fail(struct emudev *d, enum emudev_op op, uint64_t nth,
		 uint64_t nr_calls, int err);

/* Calls of @op so far: for "let each fail in turn". */
uint64_t emudev_nr_calls(const struct emudev *d, enum emudev_op op);

void emudev_set_host_limit(struct emudev *d, uint64_t bytes);

/* Reading @block fails until it is written. */
void emudev_spoil(struct emudev *d, block_t block);

/* The other hand: reads and changes content behind the container's back. */
void emudev_peek(const struct emudev *d, block_t block,
		 uint8_t out[static BLOCK_BYTES]);
/* Rebases, as all that is not an event. */
void emudev_poke(struct emudev *d, block_t block, size_t offset,
		 const void *bytes, size_t len);
void emudev_flip_bit(struct emudev *d, block_t block, size_t bit);

/* Same size and content? */
bool emudev_equal(const struct emudev *a, const struct emudev *b);

/* Write the content to a new sparse file.  Returns 0 or negative errno. */
int emudev_save(const struct emudev *d, const char *path);

#endif
