/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fs/inode.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fs/attr.h"

static struct key inode_key(inum_t inum)
{
	return key_of(inum, ITEM_INODE, 0);
}

int inode_table_init(struct inode_table *t, size_t limit)
{
	*t = (struct inode_table){ .limit = limit < 64 ? 64 : limit,
				   .nr_buckets = 64 };
	while (t->nr_buckets < t->limit)
		t->nr_buckets *= 2;
	t->buckets = calloc(t->nr_buckets, sizeof(*t->buckets));
	TAILQ_INIT(&t->lru);
	TAILQ_INIT(&t->dirty);
	TAILQ_INIT(&t->provisional);
	return t->buckets ? 0 : -ENOMEM;
}

static void free_inode(struct inode *in)
{
	pthread_rwlock_destroy(&in->data_lock);
	free(in);
}

static void forget(struct inode_table *t, struct inode *in)
{
	LIST_REMOVE(in, hash_link);
	TAILQ_REMOVE(&t->lru, in, lru_link);
	t->nr--;
}

static void unlist(struct inode_table *t, struct inode *in)
{
	if (!in->listed)
		return;
	TAILQ_REMOVE(&t->dirty, in, dirty_link);
	in->listed = false;
	t->nr_dirty--;
}

void inode_table_destroy(struct inode_table *t)
{
	struct inode *in;

	if (!t->buckets)
		return;
	while ((in = TAILQ_FIRST(&t->lru))) {
		forget(t, in);
		free_inode(in);
	}
	free(t->buckets);
	t->buckets = NULL;
}

/* Busy ones are looked at again only after this many others. */
#define EVICT_TRIES 64

void inode_table_shrink(struct inode_table *t)
{
	for (unsigned int i = 0; t->nr > t->limit && i < EVICT_TRIES; i++) {
		struct inode *in = TAILQ_FIRST(&t->lru);

		/* One without a name stays: volume_reap() counts on it. */
		if (in->refs || in->listed || in->provisional ||
		    !in->i.nlink) {
			TAILQ_REMOVE(&t->lru, in, lru_link);
			TAILQ_INSERT_TAIL(&t->lru, in, lru_link);
			continue;
		}
		forget(t, in);
		free_inode(in);
	}
}

static struct inode_bucket *bucket_of(struct inode_table *t, inum_t inum)
{
	return &t->buckets[(inum * 0x9e3779b97f4a7c15ull >> 20) &
			   (t->nr_buckets - 1)];
}

static struct inode *add(struct inode_table *t, inum_t inum,
			 const struct inode_item *item)
{
	struct inode *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	if (pthread_rwlock_init(&in->data_lock, NULL)) {
		free(in);
		return NULL;
	}
	in->inum = inum;
	in->type = item->mode & S_IFMT;
	in->i = *item;
	LIST_INSERT_HEAD(bucket_of(t, inum), in, hash_link);
	TAILQ_INSERT_TAIL(&t->lru, in, lru_link);
	t->nr++;
	return in;
}

int inode_get(struct txn *t, inum_t inum, struct inode **out)
{
	struct volume *v = t->v;
	struct inode_table *table = &v->inodes;
	struct key key = inode_key(inum);
	struct inode_item item;
	struct tree_pos pos;
	struct inode *in;
	int err;

	LIST_FOREACH(in, bucket_of(table, inum), hash_link)
		if (in->inum == inum) {
			TAILQ_REMOVE(&table->lru, in, lru_link);
			TAILQ_INSERT_TAIL(&table->lru, in, lru_link);
			stats_count(v->o.stats, STATS_inode_hits, 1);
			*out = in;
			return 0;
		}
	err = tree_find(&v->ft, &key, &pos, &t->fault);
	if (err)
		return err;
	inode_item_decode(pos.value, &item);
	*out = add(table, inum, &item);
	stats_count(v->o.stats, STATS_inode_misses, 1);
	return *out ? 0 : -ENOMEM;
}

int inode_get_dir(struct txn *t, inum_t inum, struct inode **out)
{
	int err = inode_get(t, inum, out);

	if (!err && !S_ISDIR((*out)->i.mode))
		err = -ENOTDIR;
	return err;
}

void inode_hold(struct inode *in)
{
	in->refs++;
}

void inode_put(struct volume *v, struct inode *in)
{
	assert(in->refs);
	if (!--in->refs && in->gone)
		free_inode(in);
}

int inode_prepare(struct txn *t, const struct inode *in)
{
	struct key key = inode_key(in->inum);

	/* Its leaf is dirty already, hence in memory. */
	if (in->listed)
		return 0;
	return tree_prepare(&t->v->ft, &key, &t->fault);
}

static void list(struct inode_table *t, struct inode *in)
{
	TAILQ_INSERT_TAIL(&t->dirty, in, dirty_link);
	in->listed = true;
	t->nr_dirty++;
}

void inode_dirty(struct txn *t, struct inode *in)
{
	struct key key = inode_key(in->inum);

	t->v->changes++;
	if (in->listed)
		return;
	tree_touch(&t->v->ft, &key);
	list(&t->v->inodes, in);
}

struct inode *inode_new(struct txn *t, inum_t inum,
			const struct inode_item *item)
{
	struct key key = inode_key(inum);
	struct inode *in = add(&t->v->inodes, inum, item);
	struct disk_inode disk;

	if (!in)
		return NULL;
	inode_item_encode(item, &disk);
	tree_put(&t->v->ft, &key, &disk, sizeof(disk));
	list(&t->v->inodes, in);
	t->v->changes++;
	return in;
}

void inode_delete(struct txn *t, struct inode *in)
{
	struct key key = inode_key(in->inum);

	tree_remove(&t->v->ft, &key);
	attr_times_told(t->v, in);
	unlist(&t->v->inodes, in);
	forget(&t->v->inodes, in);
	t->v->changes++;
	in->gone = true;
	if (!in->refs)
		free_inode(in);
}

static int by_inum(const void *a, const void *b)
{
	const struct inode *x = *(struct inode *const *)a;
	const struct inode *y = *(struct inode *const *)b;

	return x->inum < y->inum ? -1 : x->inum > y->inum;
}

static void flush_one(struct volume *v, const struct inode *in)
{
	struct key key = inode_key(in->inum);

	inode_item_encode(&in->i,
			  tree_value_mut(&v->ft, &key,
					 sizeof(struct disk_inode)));
}

void inode_flush(struct volume *v)
{
	struct inode_table *t = &v->inodes;
	struct inode **all = calloc(t->nr_dirty, sizeof(*all));
	struct inode *in;
	size_t nr = 0;

	/* In the tree's order it is quicker; without memory any order will do. */
	while ((in = TAILQ_FIRST(&t->dirty))) {
		unlist(t, in);
		if (all)
			all[nr++] = in;
		else
			flush_one(v, in);
	}
	if (nr)
		qsort(all, nr, sizeof(*all), by_inum);
	for (size_t i = 0; i < nr; i++)
		flush_one(v, all[i]);
	free(all);
}

void inode_attr(const struct inode *in, struct attr *out)
{
	*out = (struct attr){
		.ino = in->inum,
		.mode = in->i.mode,
		.nlink = in->i.nlink,
		.uid = in->i.uid,
		.gid = in->i.gid,
		.rdev = in->i.rdev,
		.size = in->i.size,
		.blocks = in->i.blocks * (BLOCK_BYTES / 512),
		.atime = in->i.atime,
		.mtime = in->i.mtime,
		.ctime = in->i.ctime,
		.btime = in->i.btime,
	};
}
