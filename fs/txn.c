/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Admission and faults.
 *
 * The reserve (I8).  A commit writes at most W nodes: dirty ones are limited so
 * that it fits.  What a commit replaces comes back two commits later, so W free
 * slots for the next commit exist for ever if growing operations leave 3 W,
 * free and held together: one for each of the two commits that hold blocks
 * back, and one free.
 */
#include "fs/txn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/commit.h"
#include "fs/container.h"
#include "fs/inode.h"
#include "fs/vol.h"

/* Data blocks that growth leaves for overwriting; more than one needs. */
#define OVERWRITE_BLOCKS 512u
#define GROW_BLOCKS 8192u	/* 32 MiB a step */

uint64_t txn_commit_nodes(const struct volume *v)
{
	uint64_t bytes = v->space.nr_blocks * BLOCK_BYTES / 64;

	if (bytes < 8u << 20)
		bytes = 8u << 20;
	if (bytes > 1u << 30)
		bytes = 1u << 30;
	return (bytes >> v->store.log2_bytes) / 2;
}

/* Nodes of the volume tree that the next commit may write. */
static uint64_t volume_tree_worst(const struct volume *v)
{
	const struct space *s = &v->space;
	uint64_t ranges = s->allocs.nr + s->live->data.nr + s->live->nodes.nr;

	if (v->store.max_items != UINT32_MAX)
		return 16 + s->nr_regions + ranges / 100 + 6 * v->vt.height;
	return 12 + s->nr_regions / 12 + ranges / 100 + 4 * v->vt.height;
}

enum shortage {
	SHORT_OF_NOTHING,
	SHORT_OF_COMMIT,	/* too much is dirty */
	SHORT_OF_NODES,
	SHORT_OF_BLOCKS,
};

/*
 * Nodes that may be added when all unwritten blocks are written one by one, each
 * becoming an item of its own, in leaves that are half full (TD11).
 */
static uint64_t unwritten_worst(const struct volume *v, uint64_t blocks)
{
	uint64_t leaf = v->store.max_items == UINT32_MAX
		? ((1u << v->store.log2_bytes) / 2) /
			  (extent_bytes(1, EXTENT_TAGGED) +
			   sizeof(struct disk_item))
		: v->store.max_items / 2;

	return blocks ? blocks / leaf * 101 / 100 + 1 : 0;
}

static enum shortage shortage(struct volume *v, const struct txn *t)
{
	const struct space *s = &v->space;
	uint64_t worst = txn_commit_nodes(v), blocks, wanted;
	uint64_t dirty = v->ft.nr_dirty + v->promised_nodes;

	if (dirty && dirty + t->nodes + volume_tree_worst(v) > worst)
		return SHORT_OF_COMMIT;
	if (t->class == TXN_GROW) {
		wanted = (3 * worst + v->promised_nodes + t->nodes +
			  unwritten_worst(v, v->unwritten + t->unwritten)) *
			 s->node_blocks;
		if (s->free_nodes + space_held_nodes(s) < wanted)
			return SHORT_OF_NODES;
	}
	blocks = v->promised_blocks + t->blocks;
	if (t->blocks && s->free_data < blocks)
		return SHORT_OF_BLOCKS;
	if (t->blocks && t->class == TXN_GROW &&
	    s->free_data + s->held_data < blocks + OVERWRITE_BLOCKS)
		return SHORT_OF_BLOCKS;
	return SHORT_OF_NOTHING;
}

uint64_t txn_available(struct volume *v)
{
	const struct space *s = &v->space;
	uint64_t have = s->free_data + s->held_data;
	uint64_t nodes = (3 * txn_commit_nodes(v) +
			  unwritten_worst(v, v->unwritten)) * s->node_blocks;
	uint64_t taken = v->promised_blocks + OVERWRITE_BLOCKS, slots;

	/* Slots still missing for the reserve will come from data's space. */
	slots = s->free_nodes + space_held_nodes(s);
	if (slots < nodes)
		taken += nodes - slots;
	return have > taken ? have - taken : 0;
}

static uint64_t growth_room(const struct volume *v)
{
	uint64_t now = v->space.nr_blocks, limit = v->super.limit_blocks;

	if (v->c->is_device)
		return 0;
	if (!limit)
		return GROW_BLOCKS;
	return limit > now ? limit - now : 0;
}

int txn_grow_container(struct volume *v, uint64_t seen)
{
	uint64_t first, room, step;
	int err = -ENOSPC;

	lock_take(&v->grow_lock, LOCK_GROW);
	vol_lock(v);
	first = v->space.nr_blocks;
	room = growth_room(v) / GRANULE_BLOCKS * GRANULE_BLOCKS;
	vol_unlock(v);
	if (first != seen) {
		/* Somebody else has done it. */
		lock_drop(&v->grow_lock, LOCK_GROW);
		return 0;
	}
	/* When the host has little left, take that. */
	for (step = GROW_BLOCKS; step >= GRANULE_BLOCKS && err == -ENOSPC;
	     step /= 2) {
		uint64_t nr = step < room ? step : room;

		if (!nr)
			break;
		err = container_back(v->c, first, nr);
		if (err)
			continue;
		/* Backing is durable before a block of it is handed out. */
		err = container_flush(v->c);
		if (err) {
			/* Others' writes may be lost, and it is said once. */
			vol_fail(v, err, "growing");
			break;
		}
		vol_lock(v);
		err = space_extend(&v->space, first + nr);
		vol_unlock(v);
		stats_count(v->o.stats, STATS_container_grown,
			    nr * BLOCK_BYTES);
	}
	lock_drop(&v->grow_lock, LOCK_GROW);
	return err;
}

/* One more granule for nodes, if there is one without growing. */
static int open_granule(struct txn *t)
{
	struct volume *v = t->v;
	int err;

	vol_lock(v);
	do {
		err = -ENOSPC;
		/* Not the last blocks that overwriting needs. */
		if (v->space.free_data >= v->promised_blocks +
					  GRANULE_BLOCKS + OVERWRITE_BLOCKS)
			err = space_open_node_granule(&v->space, &v->vt,
						      &t->fault);
	} while (txn_retry(t, &err));
	vol_unlock(v);
	return err;
}

/* Commits after which all that was freed so far can be handed out. */
#define COMMITS_TO_RELEASE 3u

/*
 * Wait for others to end when it is their promises that stand in the way, else
 * commit what is dirty.
 */
static int relieve_dirty(struct txn *t)
{
	struct volume *v = t->v;
	bool promises;

	vol_lock(v);
	promises = v->promised_nodes && v->ft.nr_dirty + t->nodes +
		   volume_tree_worst(v) <= txn_commit_nodes(v);
	if (promises) {
		v->nr_waiting++;
		pthread_cond_wait(&v->promise_ended, &v->lock);
		v->nr_waiting--;
	}
	vol_unlock(v);
	return promises ? 0 : commit_sync(v, COMMIT_PRESSURE);
}

/*
 * Whether an overwrite need only be patient: other operations hold blocks that
 * they will give up, or commits will.  Growth left enough for one at a time, so
 * it is never refused because there are many (I8).  What a reader holds back no
 * commit gives up: each would only cost nodes.
 */
static bool blocks_will_come(const struct txn *t, enum shortage what)
{
	struct volume *v = t->v;
	const struct reader *oldest;
	const struct freed *f;
	bool yes;

	if (t->class != TXN_OVERWRITE || what != SHORT_OF_BLOCKS)
		return false;
	vol_lock(v);
	oldest = TAILQ_FIRST(&v->space.readers);
	f = TAILQ_FIRST(&v->space.freed);
	yes = (v->promised_blocks || v->space.held_data) &&
	      !(oldest && f && oldest->epoch <= f->commit);
	vol_unlock(v);
	return yes;
}

static int relieve(struct txn *t, enum shortage what, uint64_t seen,
		   unsigned int *tries)
{
	struct volume *v = t->v;
	int err = -ENOSPC;

	stats_count(v->o.stats, STATS_admission_waits, 1);
	if (what == SHORT_OF_COMMIT)
		return relieve_dirty(t);
	if (what == SHORT_OF_NODES)
		err = open_granule(t);
	if (err == -ENOSPC && t->class != TXN_DELETE)
		err = txn_grow_container(v, seen);
	if (err != -ENOSPC)
		return err;
	if (!blocks_will_come(t, what) && (*tries)++ > COMMITS_TO_RELEASE)
		return -ENOSPC;
	return commit_sync(v, COMMIT_PRESSURE);
}

static void txn_init(struct txn *t, struct volume *v, enum txn_class class,
		     uint32_t blocks)
{
	*t = (struct txn){ .v = v, .class = class, .blocks = blocks };
	t->pin = t->pins;
	t->room_pins = sizeof(t->pins) / sizeof(*t->pins);
}

/* Promise all that @t needs if there is enough.  Under the lock. */
static int try_promise(struct txn *t, unsigned int paths, enum shortage *what)
{
	struct volume *v = t->v;
	int err;

	if (v->error)
		return -EROFS;
	/* The height may rise by one until the change is made. */
	t->nodes = (size_t)paths * (tree_worst_nodes(&v->ft) + 3);
	*what = shortage(v, t);
	if (*what)
		return 0;
	err = node_store_promise(&v->store, t->nodes);
	if (!err) {
		v->promised_nodes += t->nodes;
		v->promised_blocks += t->blocks;
	}
	return err;
}

static int begin(struct txn *t, unsigned int paths, bool wait)
{
	struct volume *v = t->v;
	unsigned int tries = 0;

	for (;;) {
		enum shortage what = SHORT_OF_NOTHING;
		uint64_t seen;
		int err;

		vol_lock(v);
		seen = v->space.nr_blocks;
		err = try_promise(t, paths, &what);
		vol_unlock(v);
		if (!err && !what)
			return 0;
		if (!err)
			err = wait ? relieve(t, what, seen, &tries) : -EBUSY;
		if (err) {
			t->nodes = 0;
			t->blocks = 0;
			txn_end(t);
			return err;
		}
	}
}

int txn_begin(struct txn *t, struct volume *v, enum txn_class class,
	      unsigned int paths, uint32_t blocks)
{
	txn_init(t, v, class, blocks);
	if (class == TXN_READ)
		return 0;
	if (v->o.read_only)
		return -EROFS;
	return begin(t, paths, true);
}

int txn_begin_unwritten(struct txn *t, struct volume *v, unsigned int paths,
			uint32_t blocks)
{
	txn_init(t, v, TXN_GROW, blocks);
	t->unwritten = blocks;
	return v->o.read_only ? -EROFS : begin(t, paths, true);
}

int txn_begin_now(struct txn *t, struct volume *v, enum txn_class class,
		  unsigned int paths)
{
	txn_init(t, v, class, 0);
	return v->o.read_only ? -EROFS : begin(t, paths, false);
}

void txn_unpin(struct txn *t)
{
	while (t->nr_pins)
		node_put(&t->v->store, t->pin[--t->nr_pins]);
}

void txn_end(struct txn *t)
{
	struct volume *v = t->v;
	bool hurry = false;

	vol_lock(v);
	txn_unpin(t);
	inode_table_shrink(&v->inodes);
	node_store_shrink(&v->store);
	if (t->nodes) {
		node_store_release(&v->store, t->nodes);
		v->promised_nodes -= t->nodes;
		hurry = v->ft.nr_dirty > txn_commit_nodes(v) / 2;
	}
	v->promised_blocks -= t->blocks;
	if (t->nodes && v->nr_waiting)
		pthread_cond_broadcast(&v->promise_ended);
	vol_unlock(v);
	if (hurry && v->worker.running) {
		pthread_mutex_lock(&v->worker.lock);
		v->worker.hurry = true;
		pthread_cond_signal(&v->worker.wake);
		pthread_mutex_unlock(&v->worker.lock);
	}
	if (t->pin != t->pins)
		free(t->pin);
	t->pin = NULL;
}

void txn_lock(struct txn *t)
{
	vol_lock(t->v);
}

void txn_unlock(struct txn *t)
{
	vol_unlock(t->v);
}

void txn_took(struct txn *t, uint32_t blocks)
{
	assert(t->blocks >= blocks && t->v->promised_blocks >= blocks);
	t->blocks -= blocks;
	t->v->promised_blocks -= blocks;
}

int txn_ready(struct txn *t, size_t ranges)
{
	assert(t->class != TXN_READ);
	return space_reserve_deltas(&t->v->space, t->nodes + ranges);
}

static int pin(struct txn *t, struct node *n)
{
	if (t->nr_pins == t->room_pins) {
		size_t room = t->room_pins * 2;
		struct node **more = calloc(room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		memcpy(more, t->pin, t->nr_pins * sizeof(*more));
		if (t->pin != t->pins)
			free(t->pin);
		t->pin = more;
		t->room_pins = room;
	}
	node_hold(&t->v->store, n);
	t->pin[t->nr_pins++] = n;
	return 0;
}

static int read_node(struct volume *v, const struct fault *f, struct node *n)
{
	const struct key_set *keys = header_key_set(v->keys, f->ptr.key_id);
	size_t bytes = (size_t)1 << v->store.log2_bytes;
	uint8_t *buf;
	uint64_t start;
	int err;

	if (!keys || f->ptr.log2_bytes != v->store.log2_bytes)
		return -EUCLEAN;
	buf = malloc(bytes);
	if (!buf)
		return -ENOMEM;
	err = container_read(v->c, f->ptr.block, bytes / BLOCK_BYTES, buf);
	start = stats_now();
	if (!err)
		err = node_open(n, &f->ptr, f->tree, &f->low, &f->high,
				v->h->uuid, keys, buf);
	stats_time(v->o.stats, STATS_TIMER_unseal, stats_now() - start, bytes);
	stats_count(v->o.stats, STATS_node_misses, 1);
	free(buf);
	return err;
}

bool txn_retry(struct txn *t, int *err)
{
	struct volume *v = t->v;
	const struct fault f = t->fault;
	struct node_load load = { .block = f.ptr.block };
	struct reader reader;
	struct node *n;

	if (*err != -EAGAIN)
		return false;
	n = node_store_take(&v->store);
	if (!n) {
		*err = -ENOMEM;
		return false;
	}
	LIST_INSERT_HEAD(&v->store.loads, &load, link);
	/*
	 * A node of the volume tree may be replaced by the commit that is being
	 * made, whose epoch is the one before.
	 */
	space_reader_enter(&v->space, &reader, v->ft.epoch - 1);
	vol_unlock(v);
	*err = read_node(v, &f, n);
	vol_lock(v);
	space_reader_leave(&v->space, &reader);
	LIST_REMOVE(&load, link);
	if (*err || load.stale || node_store_find(&v->store, f.ptr.block)) {
		node_store_give(&v->store, n);
		if (load.stale)
			*err = 0;	/* look again: it moved */
	} else {
		node_store_add(&v->store, n);
		*err = pin(t, n);
	}
	node_store_shrink(&v->store);
	if (*err && *err != -ENOMEM)
		vol_report(v, *err, "tree node at block %llu cannot be used",
			   (unsigned long long)f.ptr.block);
	return !*err;
}
