/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What all kinds of container share: bounds, timing, counting and the size.
 * Nothing above calls a kind's functions directly, so this is also the one
 * place where every access to the container passes.
 */
#include "fs/container.h"

#include <assert.h>
#include <errno.h>

#include "stats/stats.h"

/* Whether [first, first + nr) lies inside what is there now. */
static bool in_bounds(struct container *c, block_t first, uint64_t nr)
{
	uint64_t end = container_nr_blocks(c);

	return first <= end && nr <= end - first;
}

/* Account for one access that began at @start. */
static int account(struct container *c, enum stats_timer timer, uint64_t start,
		   uint64_t bytes, int err)
{
	if (err == -EIO)
		stats_count(c->stats, STATS_io_errors, 1);
	if (!err)
		stats_time(c->stats, timer, stats_now() - start, bytes);
	return err;
}

int container_read(struct container *c, block_t first, size_t nr, void *buf)
{
	uint64_t start = stats_now();
	size_t len = nr << BLOCK_SHIFT;
	int err = -EIO;

	if (nr == 0)
		return 0;

	if (in_bounds(c, first, nr))
		err = c->ops->read(c, first << BLOCK_SHIFT, len, buf);
	return account(c, STATS_TIMER_container_read, start, len, err);
}

int container_write(struct container *c, block_t first, size_t nr,
		    const void *buf)
{
	uint64_t start = stats_now();
	size_t len = nr << BLOCK_SHIFT;
	int err = -EIO;

	if (c->read_only)
		return -EROFS;
	if (nr == 0)
		return 0;

	if (in_bounds(c, first, nr))
		err = c->ops->write(c, first << BLOCK_SHIFT, len, buf);
	return account(c, STATS_TIMER_container_write, start, len, err);
}

int container_flush(struct container *c)
{
	uint64_t start = stats_now();
	int err;

	if (c->read_only)
		return -EROFS;

	err = c->ops->flush(c);
	return account(c, STATS_TIMER_container_flush, start, 0, err);
}

int container_back(struct container *c, block_t first, uint64_t nr)
{
	uint64_t max = INT64_MAX >> BLOCK_SHIFT;
	int err;

	if (c->read_only)
		return -EROFS;
	if (nr == 0)
		return 0;
	if (first > max || nr > max - first)
		return -ENOSPC;

	err = c->ops->back(c, first << BLOCK_SHIFT, nr << BLOCK_SHIFT);
	if (err == -EIO)
		stats_count(c->stats, STATS_io_errors, 1);
	return err;
}

int container_host_free(struct container *c, uint64_t *nr_blocks)
{
	uint64_t bytes;
	int err = c->ops->host_free(c, &bytes);

	if (!err)
		*nr_blocks = bytes >> BLOCK_SHIFT;
	return err;
}

uint64_t container_nr_blocks(struct container *c)
{
	return __atomic_load_n(&c->size_bytes, __ATOMIC_ACQUIRE) >> BLOCK_SHIFT;
}

void container_grown(struct container *c, uint64_t size_bytes)
{
	uint64_t old = __atomic_load_n(&c->size_bytes, __ATOMIC_RELAXED);

	assert(size_bytes % BLOCK_BYTES == 0);
	do {
		if (old >= size_bytes)
			return;
	} while (!__atomic_compare_exchange_n(&c->size_bytes, &old, size_bytes,
					      false, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));

	stats_count(c->stats, STATS_container_grown, size_bytes - old);
}

int container_serve(struct container *c)
{
	return c->ops->serve ? c->ops->serve(c) : 0;
}

void container_serve_end(struct container *c)
{
	if (c->ops->serve_end)
		c->ops->serve_end(c);
}

void container_close(struct container *c)
{
	if (c)
		c->ops->close(c);
}
