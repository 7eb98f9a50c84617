/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opening, closing, making; and what concerns the volume as a whole.
 */
#include "fs/volume.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cipher/kdf.h"
#include "cipher/secret.h"
#include "fs/attr.h"
#include "fs/commit.h"
#include "fs/container.h"
#include "fs/inode.h"
#include "fs/load.h"
#include "fs/orphan.h"
#include "fs/vol.h"
#include "fs/worker.h"

#define CACHE_BYTES_DEFAULT ((size_t)128 << 20)
#define REPORTS_MAX 100u

#ifndef NDEBUG
_Thread_local unsigned int locks_held;
#endif

void vol_report(struct volume *v, int err, const char *format, ...)
{
	char line[256];
	va_list args;

	if (err == -EBADMSG || err == -EUCLEAN)
		stats_count(v->o.stats, STATS_damage_reports, 1);
	if (!v->o.report ||
	    atomic_fetch_add(&v->reports, 1) >= REPORTS_MAX)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	v->o.report(v->o.report_arg, line);
}

void vol_fail(struct volume *v, int err, const char *what)
{
	bool first;

	vol_lock(v);
	first = !v->error;
	if (first)
		v->error = err == -ESTALE ? -EIO : err;
	vol_unlock(v);
	if (!first)
		return;
	if (err == -ESTALE)
		vol_report(v, err, "another program has written to the "
			   "container: read-only from now on");
	else
		vol_report(v, err, "%s failed (%s): read-only from now on, "
			   "the last changes may be lost", what,
			   strerror(-err));
}

struct timespec vol_now(struct volume *v)
{
	struct timespec t;

	if (v->o.now)
		v->o.now(&t);
	else
		clock_gettime(CLOCK_REALTIME, &t);
	return t;
}

static struct volume *volume_new(struct container *c, const struct header *h,
				 const struct header_keys *keys,
				 const struct volume_options *o)
{
	struct volume *v = calloc(1, sizeof(*v));
	size_t cache = o->cache_bytes ? o->cache_bytes : CACHE_BYTES_DEFAULT;

	if (!v)
		return NULL;
	v->c = c;
	v->h = h;
	v->keys = keys;
	v->key = &keys->set[keys->active];
	v->o = *o;
	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->promise_ended, NULL);
	pthread_mutex_init(&v->commit_lock, NULL);
	pthread_mutex_init(&v->grow_lock, NULL);
	pthread_mutex_init(&v->worker.lock, NULL);
	pthread_cond_init(&v->worker.wake, NULL);
	hostfree_init(&v->hostfree, c);
	TAILQ_INIT(&v->frozen);
	TAILQ_INIT(&v->vt.dirty);
	TAILQ_INIT(&v->ft.dirty);
	TAILQ_INIT(&v->space.freed);
	TAILQ_INIT(&v->inodes.lru);
	/* Three quarters for nodes, the rest for inodes. */
	if (nonce_source_init(&v->nonces) ||
	    node_store_init(&v->store, h->node_log2, cache / 4 * 3,
			    o->max_node_items) ||
	    inode_table_init(&v->inodes,
			     cache / 4 / (sizeof(struct inode) + 32))) {
		volume_abandon(v);
		return NULL;
	}
	v->store.stats = o->stats;
	return v;
}

void volume_abandon(struct volume *v)
{
	struct node *n;

	worker_stop(v);
	hostfree_destroy(&v->hostfree);
	inode_table_destroy(&v->inodes);
	while ((n = TAILQ_FIRST(&v->frozen))) {
		TAILQ_REMOVE(&v->frozen, n, dirty_link);
		node_put(&v->store, n);
	}
	if (v->frozen_root)
		node_put(&v->store, v->frozen_root);
	tree_destroy(&v->vt);
	tree_destroy(&v->ft);
	space_destroy(&v->space);
	node_store_destroy(&v->store);
	if (v->names)
		prf_key_free(v->names);
	free(v->worker.reap);
	nonce_source_destroy(&v->nonces);
	pthread_cond_destroy(&v->worker.wake);
	pthread_mutex_destroy(&v->worker.lock);
	pthread_mutex_destroy(&v->grow_lock);
	pthread_mutex_destroy(&v->commit_lock);
	pthread_cond_destroy(&v->promise_ended);
	pthread_mutex_destroy(&v->lock);
	secret_wipe_bytes(v->dir_seed, sizeof(v->dir_seed));
	free(v);
}

int volume_open(struct volume **out, struct container *c,
		const struct header *h, const struct header_keys *keys,
		const struct volume_options *o)
{
	struct volume *v = volume_new(c, h, keys, o);
	int err = v ? 0 : -ENOMEM;

	*out = NULL;
	if (err)
		return err;
	if (c->read_only)
		v->o.read_only = true;
	if (!v->o.read_only)
		/* After a kill the superblock may be in the host's cache only. */
		err = container_flush(c);
	if (!err)
		err = load_newest(v);
	if (!err)
		err = prf_key_new(&v->names, v->dir_seed);
	if (!err && v->super.header_sequence > h->sequence)
		vol_report(v, 0, "the header is older than the container: was "
			   "a backup put back?");
	if (!err && !v->o.read_only)
		err = orphan_sweep(v);
	if (!err && o->commit_seconds)
		err = hostfree_start(&v->hostfree);
	if (!err && !v->o.read_only && o->commit_seconds)
		err = worker_start(v);
	if (err) {
		volume_abandon(v);
		return err;
	}
	*out = v;
	return 0;
}

int volume_close(struct volume *v)
{
	int err = 0;

	worker_stop(v);
	if (!v->o.read_only && !v->error)
		err = orphan_sweep(v);
	/* The kernel has sent all that it was going to. */
	if (!v->o.read_only && !v->error)
		err = attr_settle(v, ATTR_SETTLE_ALL);
	/* Orphans that cannot go now will go at the next mount. */
	if (!v->o.read_only)
		err = commit_sync(v, COMMIT_CLOSE);
	volume_abandon(v);
	return err;
}

/* ---- making */

static int make_root(struct volume *v, const struct volume_format_params *p)
{
	struct timespec now = vol_now(v);
	struct inode_item item = {
		.mode = S_IFDIR | 0700, .nlink = 2,
		.uid = p->uid, .gid = p->gid,
		.atime = now, .mtime = now, .ctime = now, .btime = now,
		.parent = VOLUME_ROOT,
	};
	struct txn t = { .v = v };
	int err = node_store_promise(&v->store, 64);

	if (!err)
		err = tree_init_empty(&v->ft);
	if (!err)
		err = tree_init_empty(&v->vt);
	if (!err && !inode_new(&t, VOLUME_ROOT, &item))
		err = -ENOMEM;
	node_store_release(&v->store, 64);
	return err;
}

static int format_space(struct volume *v, const struct volume_format_params *p)
{
	uint64_t nr = container_nr_blocks(v->c);
	uint64_t granules;
	int err = space_init(&v->space, (1u << v->store.log2_bytes) /
						BLOCK_BYTES, 1);

	if (!err)
		err = space_extend(&v->space, nr);
	if (err)
		return err;
	v->super.limit_blocks = p->limit_blocks;
	v->ft.frees = v->vt.frees = &v->space.live->nodes;
	granules = 3 * txn_commit_nodes(v) * v->space.node_blocks /
			   GRANULE_BLOCKS + 1;
	return space_format(&v->space, (unsigned int)granules);
}

int volume_format(struct container *c, struct header *h,
		  const struct header_keys *keys, struct nonce_source *src,
		  const struct volume_format_params *p)
{
	struct volume_options o = { 0 };
	struct volume *v;
	int err;

	if (container_nr_blocks(c) < CONTAINER_BLOCKS_MIN)
		return -EINVAL;
	v = volume_new(c, h, keys, &o);
	if (!v)
		return -ENOMEM;
	tree_init(&v->vt, TREE_VOLUME, &v->store);
	tree_init(&v->ft, TREE_FILES, &v->store);
	v->vt.epoch = v->ft.epoch = 1;
	v->next_inum = INUM_FIRST;
	err = random_bytes(v->dir_seed, sizeof(v->dir_seed));
	vol_lock(v);
	if (!err)
		err = format_space(v, p);
	if (!err)
		err = make_root(v, p);
	vol_unlock(v);
	/* The superblock makes it a container, so the headers come first. */
	if (!err)
		err = header_write_copy(h, keys, c, 1);
	if (!err)
		err = header_write_copy(h, keys, c, 0);
	if (!err)
		err = container_flush(c);
	if (!err)
		err = commit_sync(v, COMMIT_CLOSE);
	volume_abandon(v);
	return err;
}

/* ---- the volume as a whole */

/*
 * Whether @ino has no name now.  One that is not in memory has: those that lose
 * their last name stay there.  To look again later, when it may have lost it
 * and be in use anew, would delete what somebody works on.
 */
static bool is_orphan(struct volume *v, inum_t ino)
{
	struct txn t = { .v = v };
	struct inode *in;
	bool yes;

	vol_lock(v);
	yes = !inode_get(&t, ino, &in) && !in->i.nlink;
	vol_unlock(v);
	return yes;
}

void volume_reap(struct volume *v, inum_t ino)
{
	int err;

	if (v->o.read_only || !is_orphan(v, ino))
		return;
	/* What fails now is swept when the volume is closed or opened. */
	if (v->worker.running)
		err = worker_reap(v, ino);
	else
		err = orphan_finish(v, ino);
	(void)err;
}

/* What was freed counts as free, though some of it waits for a commit. */
static uint64_t used_blocks(const struct volume *v)
{
	const struct space *s = &v->space;
	uint64_t unused = s->free_data + s->free_nodes + s->held_data +
			  space_held_nodes(s);

	return s->nr_blocks > unused ? s->nr_blocks - unused : 0;
}

int volume_statfs(struct volume *v, struct volume_statfs *out)
{
	uint64_t host, have, room = 0;
	uint64_t limit;

	host = hostfree_blocks(&v->hostfree);
	vol_lock(v);
	limit = v->super.limit_blocks;
	have = txn_available(v);
	if (!v->c->is_device)
		room = host;
	if (limit && room > limit - v->space.nr_blocks)
		room = limit - v->space.nr_blocks;
	out->free = v->o.read_only || v->error ? 0 : have + room;
	out->blocks = used_blocks(v) + out->free;
	if (limit && out->blocks < limit)
		out->blocks = limit;
	vol_unlock(v);
	memcpy(&out->fsid, v->h->uuid, sizeof(out->fsid));
	out->files = out->files_free = (uint64_t)1 << 32;
	return 0;
}

int volume_fsync(struct volume *v, inum_t ino)
{
	/* The kernel sends a file's times before it asks for this. */
	int err = v->o.read_only ? 0 : attr_settle_one(v, ino);

	if (err && err != -EROFS)
		return err;
	return commit_sync(v, COMMIT_FSYNC);
}

int volume_sync(struct volume *v)
{
	return commit_sync(v, COMMIT_FSYNC);
}

void volume_gauges(struct volume *v, uint64_t *gauge)
{
	const struct space *s = &v->space;
	struct volume_statfs fs;
	uint64_t held;
	int err = volume_statfs(v, &fs);

	vol_lock(v);
	held = s->held_data + space_held_nodes(s);
	gauge[STATS_GAUGE_container_bytes] = s->nr_blocks * BLOCK_BYTES;
	gauge[STATS_GAUGE_limit_bytes] = v->super.limit_blocks * BLOCK_BYTES;
	gauge[STATS_GAUGE_data_bytes] = s->owned_data * BLOCK_BYTES;
	gauge[STATS_GAUGE_metadata_bytes] =
		(used_blocks(v) - s->owned_data) * BLOCK_BYTES;
	gauge[STATS_GAUGE_free_bytes] =
		(s->free_data + s->free_nodes) * BLOCK_BYTES;
	gauge[STATS_GAUGE_held_bytes] = held * BLOCK_BYTES;
	gauge[STATS_GAUGE_reserved_bytes] =
		3 * txn_commit_nodes(v) << v->store.log2_bytes;
	gauge[STATS_GAUGE_available_bytes] = err ? 0 : fs.free * BLOCK_BYTES;
	gauge[STATS_GAUGE_node_cache_bytes] =
		v->store.nr_nodes << v->store.log2_bytes;
	gauge[STATS_GAUGE_node_cache_limit_bytes] =
		v->store.limit_nodes << v->store.log2_bytes;
	gauge[STATS_GAUGE_inode_cache_count] = v->inodes.nr;
	gauge[STATS_GAUGE_dirty_nodes] = v->ft.nr_dirty;
	gauge[STATS_GAUGE_dirty_inodes] = v->inodes.nr_dirty;
	gauge[STATS_GAUGE_commit_number] = v->durable;
	gauge[STATS_GAUGE_read_only] = v->o.read_only || v->error;
	vol_unlock(v);
}

bool volume_is_read_only(struct volume *v)
{
	bool yes;

	vol_lock(v);
	yes = v->o.read_only || v->error;
	vol_unlock(v);
	return yes;
}

uint64_t volume_commit_number(struct volume *v)
{
	uint64_t n;

	vol_lock(v);
	n = v->durable;
	vol_unlock(v);
	return n;
}
