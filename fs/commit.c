/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A commit makes everything that operations have done up to its freeze durable,
 * and nothing else:
 *
 *	1. freeze	inodes into leaves; all that is dirty is frozen; deltas of
 *			the epoch are set apart.  One step under the lock
 *	2. place	frozen file nodes get slots
 *	3. write	them, sealed, children first
 *	4. account	the volume tree: deltas, freed lists, the new root; its own
 *			nodes need slots, which changes it again: a few passes
 *	5. write	its nodes
 *	6. flush
 *	7. superblock	into both rings
 *	8. flush
 *	9. release	only now may what this commit replaced be reused, and only
 *			what the commit before replaced really is
 *
 * Until 7 is durable the older superblock stands, and nothing that it reaches
 * has been touched (I1).  Between 1 and 9 operations go on in the next epoch.
 * Any error leaves the volume read-only: what reached the disk is unknown, and
 * trying again would not tell.
 */
#include "fs/commit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/container.h"
#include "fs/inode.h"
#include "fs/vol.h"

#define PASSES_MAX 12u
#define WRITE_BYTES (1u << 20)
#define FREED_PER_ITEM 150u

struct commit {
	struct volume *v;
	struct txn t;			/* for faults of the volume tree */
	uint64_t number;
	uint64_t changes;
	uint64_t promised;		/* nodes, for the volume tree */
	inum_t next_inum;
	uint64_t unwritten;
	struct ptr files;		/* root of the file tree */
	struct super super;
	size_t freed_put;		/* entries of this commit's FREED list */
	uint64_t node_bytes;		/* written */
	uint64_t nodes_written;
};

/* ---- 1. freeze */

/* Bitmaps of all regions with node slots, and space that is due back. */
static int prepare(struct commit *c)
{
	struct volume *v = c->v;
	size_t region;
	int err;

	vol_lock(v);
	do {
		err = 0;
		while (!err && space_node_region_wanted(&v->space, &region))
			err = space_load(&v->space, &v->vt, region,
					 &c->t.fault);
		if (!err)
			err = space_release(&v->space, &v->vt, v->durable,
					    &c->t.fault);
	} while (txn_retry(&c->t, &err));
	/* What the volume tree can need in this commit, twice over. */
	c->promised = 64 + v->space.nr_regions +
		      (v->space.allocs.nr + v->space.live->data.nr +
		       v->space.live->nodes.nr + v->ft.nr_dirty) / 20 +
		      v->inodes.nr_dirty / 50;
	if (!err) {
		err = node_store_promise(&v->store, c->promised);
		if (err)
			c->promised = 0;
	}
	vol_unlock(v);
	return err;
}

static int freeze(struct commit *c)
{
	struct volume *v = c->v;
	uint64_t start = stats_now();
	int err;

	vol_lock(v);
	c->number = v->ft.epoch;
	err = space_freeze(&v->space, c->number + 1);
	if (!err)
		err = range_vec_reserve(&v->space.frozen->nodes, c->promised);
	if (!err) {
		inode_flush(v);
		tree_freeze(&v->ft, c->number + 1, &v->frozen,
			    &v->frozen_root);
		v->ft.frees = &v->space.live->nodes;
		v->vt.epoch = c->number;
		v->vt.frees = &v->space.frozen->nodes;
		c->next_inum = v->next_inum;
		c->unwritten = v->unwritten;
		c->changes = v->changes;
		if (!v->frozen_root)
			c->files = v->ft.root_ptr;
	}
	vol_unlock(v);
	stats_time(v->o.stats, STATS_TIMER_commit_freeze, stats_now() - start,
		   0);
	return err;
}

/* ---- 2., 3. and 5.: nodes to the disk */

struct order {
	struct node **n;
	size_t nr;
};

/* Children before parents, neighbours side by side. */
static int by_place(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a;
	const struct node *y = *(struct node *const *)b;

	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	return key_cmp(&x->low, &y->low);
}

static int order_nodes(struct order *o, const struct node_list *list)
{
	struct node *n;

	*o = (struct order){ 0 };
	TAILQ_FOREACH(n, list, dirty_link)
		o->nr++;
	o->n = calloc(o->nr + 1, sizeof(struct node *));
	if (!o->n)
		return -ENOMEM;
	o->nr = 0;
	TAILQ_FOREACH(n, list, dirty_link)
		o->n[o->nr++] = n;
	qsort(o->n, o->nr, sizeof(*o->n), by_place);
	return 0;
}

/* Slots for those that have none, in runs; their bits go into the image. */
static int place_nodes(struct volume *v, uint64_t birth, const struct order *o,
		       bool *placed)
{
	struct space *s = &v->space;
	size_t i = 0;

	while (i < o->nr) {
		uint32_t want = 0, nr;
		block_t at;
		int err;

		if (o->n[i]->ptr.block) {
			i++;
			continue;
		}
		while (i + want < o->nr && !o->n[i + want]->ptr.block)
			want++;
		err = space_alloc_nodes(s, want, &at, &nr);
		if (!err)
			err = range_vec_reserve(&s->live->nodes, nr);
		if (err)
			return err;
		space_disk_set(s, at, nr * s->node_blocks);
		for (; nr > 0; nr--, i++, at += s->node_blocks) {
			struct node *n = o->n[i];

			n->ptr.block = at;
			n->ptr.birth = birth;
			/* Replaced since the freeze: the next commit frees it. */
			if (n->superseded)
				range_vec_add(&s->live->nodes, at,
					      s->node_blocks, birth);
		}
		if (placed)
			*placed = true;
	}
	return 0;
}

struct sink {
	struct volume *v;
	uint8_t *buf, *scratch;
	block_t first;			/* where buf goes */
	size_t bytes;
};

static int sink_flush(struct sink *s)
{
	int err = 0;

	if (s->bytes)
		err = container_write(s->v->c, s->first,
				      s->bytes / BLOCK_BYTES, s->buf);
	s->bytes = 0;
	return err;
}

static int sink_put(struct sink *s, struct node *n)
{
	struct volume *v = s->v;
	size_t bytes = (size_t)node_blocks(n) * BLOCK_BYTES;
	uint64_t start;
	int err = 0;

	if (s->bytes && (s->first + s->bytes / BLOCK_BYTES != n->ptr.block ||
			 s->bytes + bytes > WRITE_BYTES))
		err = sink_flush(s);
	if (err)
		return err;
	if (!s->bytes)
		s->first = n->ptr.block;
	start = stats_now();
	err = node_seal(n, v->h->uuid, v->key, &v->nonces, s->scratch,
			s->buf + s->bytes);
	stats_time(v->o.stats, STATS_TIMER_seal, stats_now() - start, bytes);
	s->bytes += bytes;
	return err;
}

/*
 * No lock: what is frozen does not change, and the place and the tag of a node
 * are read by nobody else before it is thawed.
 */
static int write_nodes(struct commit *c, const struct order *o)
{
	struct volume *v = c->v;
	struct sink s = { .v = v };
	int err = 0;

	s.buf = malloc(WRITE_BYTES);
	s.scratch = malloc((size_t)1 << v->store.log2_bytes);
	if (!s.buf || !s.scratch)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < o->nr; i++)
		err = sink_put(&s, o->n[i]);
	if (!err)
		err = sink_flush(&s);
	free(s.buf);
	free(s.scratch);
	c->node_bytes += o->nr << v->store.log2_bytes;
	c->nodes_written += o->nr;
	stats_count(v->o.stats, STATS_node_writes, o->nr);
	return err;
}

static size_t nr_freed(const struct freed *f)
{
	return f->data.nr + f->nodes.nr;
}

static bool is_given(const struct freed *f)
{
	return f->given == nr_freed(f);
}

/*
 * What was handed back before the freeze is free in this commit's image, before
 * anything of this commit is placed on it.
 */
static void clear_given(struct space *s)
{
	struct freed *f;

	TAILQ_FOREACH(f, &s->freed, link) {
		if (!is_given(f))
			break;
		for (size_t i = 0; i < f->data.nr; i++)
			space_disk_clear(s, f->data.r[i].start,
					 f->data.r[i].nr);
		for (size_t i = 0; i < f->nodes.nr; i++)
			space_disk_clear(s, f->nodes.r[i].start,
					 f->nodes.r[i].nr);
	}
}

static int write_files(struct commit *c)
{
	struct volume *v = c->v;
	struct order o;
	int err = order_nodes(&o, &v->frozen);

	if (!err) {
		vol_lock(v);
		clear_given(&v->space);
		err = place_nodes(v, c->number, &o, NULL);
		vol_unlock(v);
	}
	if (!err)
		err = write_nodes(c, &o);
	if (!err && v->frozen_root)
		c->files = v->frozen_root->ptr;
	free(o.n);
	return err;
}

/* ---- 4. account */

/* A prepared put into the volume tree: 0 or -EAGAIN. */
static int vt_put(struct commit *c, const struct key *key, const void *value,
		  size_t len)
{
	struct volume *v = c->v;
	int err = tree_prepare(&v->vt, key, &c->t.fault);

	if (!err)
		err = range_vec_reserve(v->vt.frees,
					tree_worst_nodes(&v->vt) + 3);
	if (!err)
		tree_put(&v->vt, key, value, len);
	return err;
}

/* FREED lists that clear_given() has dealt with leave the tree. */
static int drop_given(struct commit *c)
{
	struct volume *v = c->v;
	struct space *s = &v->space;
	struct freed *f, *next;

	for (f = TAILQ_FIRST(&s->freed); f; f = next) {
		next = TAILQ_NEXT(f, link);
		if (!is_given(f))
			break;
		while (f->nr_items) {
			struct key key = key_of(TREE_FILES, ITEM_FREED,
						f->commit << FREED_SEQ_BITS |
						(f->nr_items - 1));
			int err = tree_prepare(&v->vt, &key, &c->t.fault);

			if (!err)
				err = range_vec_reserve(v->vt.frees,
						tree_worst_nodes(&v->vt) + 3);
			if (err)
				return err;
			tree_remove(&v->vt, &key);
			f->nr_items--;
		}
		TAILQ_REMOVE(&s->freed, f, link);
		freed_destroy(f);
	}
	return 0;
}

/* Write this commit's FREED list from the first changed item on. */
static int put_freed(struct commit *c)
{
	struct freed *f = c->v->space.frozen;

	/* The last entry may have grown since, be there new ones or not. */
	if (c->freed_put)
		c->freed_put--;
	while (c->freed_put < nr_freed(f)) {
		struct disk_freed d[FREED_PER_ITEM];
		size_t seq = c->freed_put / FREED_PER_ITEM;
		size_t from = seq * FREED_PER_ITEM, n = 0;
		struct key key = key_of(TREE_FILES, ITEM_FREED,
					c->number << FREED_SEQ_BITS | seq);
		int err;

		for (; n < FREED_PER_ITEM && from + n < nr_freed(f); n++) {
			size_t i = from + n;
			const struct range *r = i < f->data.nr
				? &f->data.r[i] : &f->nodes.r[i - f->data.nr];

			d[n] = (struct disk_freed){ le64_of(r->start),
						    le32_of(r->nr),
						    le64_of(r->birth) };
		}
		err = vt_put(c, &key, d, n * sizeof(*d));
		if (err)
			return err;
		c->freed_put = from + n;
		if (f->nr_items < seq + 1)
			f->nr_items = (unsigned int)seq + 1;
	}
	return 0;
}

static int put_regions(struct commit *c, bool *changed)
{
	struct space *s = &c->v->space;

	for (size_t i = 0; i < s->nr_regions; i++) {
		struct key summary_key = key_of(0, ITEM_SUMMARY, i);
		struct key bitmap_key = key_of(0, ITEM_BITMAP, i);
		struct disk_summary summary;
		struct disk_bitmap bitmap;
		int err;

		if (!s->region[i].dirty)
			continue;
		/* Both, or neither and again. */
		space_encode(s, i, &summary, &bitmap);
		err = vt_put(c, &summary_key, &summary, sizeof(summary));
		if (!err)
			err = vt_put(c, &bitmap_key, &bitmap, sizeof(bitmap));
		if (err)
			return err;
		s->region[i].dirty = false;
		*changed = true;
	}
	return 0;
}

static int put_roots(struct commit *c)
{
	struct volume *v = c->v;
	struct key info_key = key_of(0, ITEM_INFO, 0);
	struct key root_key = key_of(TREE_FILES, ITEM_ROOT, 0);
	struct disk_root root = { .next_inum = le64_of(c->next_inum),
				  .unwritten = le64_of(c->unwritten) };
	struct disk_info info = { 0 };
	int err;

	memcpy(info.dir_seed, v->dir_seed, sizeof(info.dir_seed));
	ptr_encode(&c->files, &root.ptr);
	err = vt_put(c, &root_key, &root, sizeof(root));
	if (!err && c->number == 1)
		err = vt_put(c, &info_key, &info, sizeof(info));
	return err;
}

/* One pass; *stable when nothing was left to be written or placed. */
static int account_pass(struct commit *c, bool *stable)
{
	struct volume *v = c->v;
	size_t before = v->space.frozen->nodes.blocks;
	bool changed = false;
	struct order o;
	int err = put_regions(c, &changed);

	if (!err)
		err = put_freed(c);
	if (!err)
		err = order_nodes(&o, &v->vt.dirty);
	if (err)
		return err;
	err = place_nodes(v, c->number, &o, &changed);
	free(o.n);
	*stable = !changed && before == v->space.frozen->nodes.blocks;
	return err;
}

static int account(struct commit *c)
{
	struct volume *v = c->v;
	const struct range_vec *allocs = &v->space.frozen_allocs;
	unsigned int passes = 0;
	bool stable = false;
	int err;

	vol_lock(v);
	for (size_t i = 0; i < allocs->nr; i++)
		space_disk_set(&v->space, allocs->r[i].start, allocs->r[i].nr);
	do {
		err = drop_given(c);
	} while (txn_retry(&c->t, &err));
	if (!err) {
		do {
			err = put_roots(c);
		} while (txn_retry(&c->t, &err));
	}
	while (!err && !stable && passes++ < PASSES_MAX) {
		do {
			err = account_pass(c, &stable);
		} while (txn_retry(&c->t, &err));
	}
	if (!err && !stable)
		err = -EUCLEAN;
	/* A fact of this moment: the nodes may lie in space just added. */
	c->super.nr_blocks = v->space.nr_blocks;
	vol_unlock(v);
	return err;
}

static int write_volume(struct commit *c, struct node_list *list,
			struct node **root)
{
	struct volume *v = c->v;
	struct order o;
	int err;

	TAILQ_INIT(list);
	vol_lock(v);
	tree_freeze(&v->vt, c->number + 1, list, root);
	vol_unlock(v);
	err = order_nodes(&o, list);
	if (!err)
		err = write_nodes(c, &o);
	if (!err)
		c->super.root = (*root)->ptr;
	free(o.n);
	return err;
}

/* ---- 6. to 9. */

static int publish(struct commit *c, enum commit_why why)
{
	struct volume *v = c->v;
	const struct super *prev = v->super.commit ? &v->super : NULL;
	int err = container_flush(v->c);

	if (err)
		return err;
	c->super.commit = c->number;
	c->super.base = v->super.commit;
	c->super.limit_blocks = v->super.limit_blocks;
	c->super.header_sequence = v->h->sequence;
	c->super.compat = v->h->compat;
	c->super.ro_compat = v->h->ro_compat;
	c->super.incompat = v->h->incompat;
	c->super.clean = why == COMMIT_CLOSE;
	err = super_write(&c->super, prev, v->h->uuid, v->keys, &v->nonces,
			  v->c);
	return err ? err : container_flush(v->c);
}

static void thaw_all(struct volume *v, struct tree *t, struct node_list *list,
		     struct node **root)
{
	struct node *n;

	while ((n = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, n, dirty_link);
		tree_thaw(t, n);
	}
	if (*root)
		node_put(&v->store, *root);
	*root = NULL;
	tree_thaw_root(t);
}

static void release(struct commit *c, struct node_list *list,
		    struct node **root)
{
	struct volume *v = c->v;
	int err;

	vol_lock(v);
	thaw_all(v, &v->ft, &v->frozen, &v->frozen_root);
	thaw_all(v, &v->vt, list, root);
	space_commit_done(&v->space);
	v->super = c->super;
	v->super_written = true;
	v->durable = c->number;
	v->durable_changes = c->changes;
	do {
		err = space_release(&v->space, &v->vt, v->durable,
				    &c->t.fault);
	} while (txn_retry(&c->t, &err));
	/* Blocks that cannot be handed back now stay held: no harm done. */
	space_close_node_granules(&v->space, 5 * txn_commit_nodes(v) *
						     v->space.node_blocks);
	node_store_shrink(&v->store);
	vol_unlock(v);
}

static void put_list(struct volume *v, struct node_list *list)
{
	struct node *n;

	while ((n = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, n, dirty_link);
		node_put(&v->store, n);
	}
}

static int run(struct volume *v, enum commit_why why)
{
	struct commit c = { .v = v };
	struct node_list list = TAILQ_HEAD_INITIALIZER(list);
	struct node *root = NULL;
	uint64_t start = stats_now();
	int err = txn_begin(&c.t, v, TXN_READ, 0, 0);

	if (!err)
		err = prepare(&c);
	if (!err)
		err = freeze(&c);
	if (!err)
		err = write_files(&c);
	if (!err)
		err = account(&c);
	if (!err)
		err = write_volume(&c, &list, &root);
	if (!err)
		err = publish(&c, why);
	if (!err) {
		release(&c, &list, &root);
	} else {
		vol_fail(v, err, "commit");
		if (err == -ESTALE)
			err = -EIO;
		vol_lock(v);
		put_list(v, &list);
		if (root)
			node_put(&v->store, root);
		vol_unlock(v);
	}
	vol_lock(v);
	node_store_release(&v->store, c.promised);
	vol_unlock(v);
	txn_end(&c.t);
	stats_time(v->o.stats, STATS_TIMER_commit, stats_now() - start,
		   c.node_bytes);
	return err;
}

static void count_reason(struct volume *v, enum commit_why why)
{
	static const enum stats_counter counter[] = {
		[COMMIT_TIMER] = STATS_commits_timer,
		[COMMIT_FSYNC] = STATS_commits_fsync,
		[COMMIT_PRESSURE] = STATS_commits_pressure,
		[COMMIT_CLOSE] = STATS_commits_timer,
	};

	stats_count(v->o.stats, counter[why], 1);
}

/* Whether there is anything to do for a caller that came at @changes. */
static bool needed(struct volume *v, enum commit_why why, uint64_t changes)
{
	if (why == COMMIT_PRESSURE)
		return true;
	if (why == COMMIT_CLOSE)
		return v->durable_changes < v->changes ||
		       (v->super_written && !v->super.clean);
	/* One more commit hands back what the last one has freed. */
	if (why == COMMIT_TIMER && v->space.held_data && v->super_written)
		return true;
	return v->durable_changes < changes;
}

int commit_sync(struct volume *v, enum commit_why why)
{
	uint64_t changes, durable;
	bool wanted;
	int err;

	vol_lock(v);
	err = v->error;
	changes = v->changes;
	durable = v->durable;
	wanted = needed(v, why, changes);
	vol_unlock(v);
	if (err || !wanted || v->o.read_only)
		return err;

	lock_take(&v->commit_lock, LOCK_COMMIT);
	vol_lock(v);
	err = v->error;
	wanted = needed(v, why, changes);
	/* Others who are short of space wait for the same commit. */
	if (why == COMMIT_PRESSURE && v->durable > durable + 1)
		wanted = false;
	vol_unlock(v);
	if (!err && wanted) {
		count_reason(v, why);
		err = run(v, why);
	} else if (!err && why == COMMIT_FSYNC) {
		stats_count(v->o.stats, STATS_fsync_shared, 1);
	}
	lock_drop(&v->commit_lock, LOCK_COMMIT);
	return err;
}
