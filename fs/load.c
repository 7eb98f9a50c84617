/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Opening.  A disk that ignored a flush may have kept a superblock and lost
 * nodes that it reaches (TD9).  So after an unclean end all young nodes are
 * walked first; if one is missing, the commit it was made from is used: what
 * that one reaches has not been overwritten, since frees are held for two
 * commits.
 */
#include "fs/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cipher/kdf.h"
#include "fs/container.h"
#include "fs/txn.h"

/* Items of one type in the volume tree, one after the other. */
static int next_item(struct txn *t, struct key *key, struct tree_pos *pos)
{
	uint8_t type = key->type;
	int err;

	do {
		err = tree_next(&t->v->vt, key, pos, &t->fault);
	} while (txn_retry(t, &err));
	if (!err && pos->key.type != type)
		err = -ENOENT;
	if (!err) {
		*key = pos->key;
		key->offset++;
	}
	return err;
}

static int load_roots(struct txn *t)
{
	struct volume *v = t->v;
	struct key info_key = key_of(0, ITEM_INFO, 0);
	struct key root_key = key_of(TREE_FILES, ITEM_ROOT, 0);
	const struct disk_root *root;
	const struct disk_info *info;
	struct tree_pos pos;
	struct ptr ptr;
	int err;

	do {
		err = tree_find(&v->vt, &info_key, &pos, &t->fault);
	} while (txn_retry(t, &err));
	if (err)
		return err;
	info = pos.value;
	memcpy(v->dir_seed, info->dir_seed, sizeof(v->dir_seed));
	do {
		err = tree_find(&v->vt, &root_key, &pos, &t->fault);
	} while (txn_retry(t, &err));
	if (err)
		return err;
	root = pos.value;
	err = ptr_decode(&root->ptr, &ptr);
	if (err)
		return err;
	tree_init_ptr(&v->ft, &ptr);
	v->next_inum = le64_get(root->next_inum);
	v->unwritten = le64_get(root->unwritten);
	return v->next_inum < INUM_FIRST || v->next_inum >> 63 ? -EUCLEAN : 0;
}

static int load_space(struct txn *t)
{
	struct volume *v = t->v;
	struct key key = key_of(0, ITEM_SUMMARY, 0);
	struct tree_pos pos;
	size_t region;
	int err;

	while (!(err = next_item(t, &key, &pos))) {
		err = space_add_summary(&v->space, pos.key.offset, pos.value);
		if (err)
			return err;
	}
	if (err != -ENOENT)
		return err;
	key = key_of(TREE_FILES, ITEM_FREED, 0);
	while (!(err = next_item(t, &key, &pos))) {
		err = space_add_freed(&v->space,
				      pos.key.offset >> FREED_SEQ_BITS,
				      pos.value,
				      pos.len / sizeof(struct disk_freed));
		if (err)
			return err;
	}
	if (err != -ENOENT)
		return err;
	do {
		err = 0;
		while (!err && space_node_region_wanted(&v->space, &region))
			err = space_load(&v->space, &v->vt, region, &t->fault);
	} while (txn_retry(t, &err));
	return err ? err : space_loaded(&v->space, v->super.nr_blocks);
}

/*
 * Visit every node of @tree that is younger than @birth, by asking for each
 * one's range; -EBADMSG and the like if one is not there.
 */
static int walk_young(struct txn *t, struct tree *tree, uint64_t birth)
{
	struct key from = KEY_MIN;
	int err = 0;

	while (!err) {
		bool last;

		do {
			err = tree_walk_young(tree, birth, &from, &last,
					      &t->fault);
		} while (txn_retry(t, &err));
		if (last)
			break;
		/* Pins are only for the nodes of one path. */
		txn_unpin(t);
	}
	return err;
}

static int load(struct volume *v, const struct super *sb)
{
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	vol_lock(v);
	err = load_roots(&t);
	if (!err)
		err = load_space(&t);
	if (!err && !sb->clean && sb->base) {
		err = walk_young(&t, &v->vt, sb->base + 1);
		if (!err)
			err = walk_young(&t, &v->ft, sb->base + 1);
	}
	vol_unlock(v);
	txn_end(&t);
	return err == -ENOENT ? -EUCLEAN : err;
}

static int begin(struct volume *v, const struct super *sb, uint64_t epoch)
{
	int err = space_init(&v->space, (1u << v->store.log2_bytes) /
						BLOCK_BYTES, epoch);

	tree_init(&v->vt, TREE_VOLUME, &v->store);
	tree_init(&v->ft, TREE_FILES, &v->store);
	v->vt.epoch = v->ft.epoch = epoch;
	v->ft.frees = err ? NULL : &v->space.live->nodes;
	v->super = *sb;
	v->durable = sb->commit;
	tree_init_ptr(&v->vt, &sb->root);
	if (!err && container_nr_blocks(v->c) < sb->nr_blocks) {
		vol_report(v, -EUCLEAN, "the container was cut short: it has "
			   "%llu of %llu blocks",
			   (unsigned long long)container_nr_blocks(v->c),
			   (unsigned long long)sb->nr_blocks);
		err = -EUCLEAN;
	}
	return err;
}

void load_undo(struct volume *v)
{
	tree_destroy(&v->vt);
	tree_destroy(&v->ft);
	space_destroy(&v->space);
	node_store_forget(&v->store);
}

static const struct super *with_commit(const struct super *all,
				       unsigned int nr, uint64_t commit)
{
	for (unsigned int i = 0; i < nr; i++)
		if (all[i].commit == commit)
			return &all[i];
	return NULL;
}

/* Load @sb or, if its trees are incomplete, those it was made from. */
static int load_or_base(struct volume *v, const struct super *all,
			unsigned int nr)
{
	/* Numbers once seen in a ring are not used again. */
	uint64_t epoch = all[0].commit + 1;
	const struct super *sb = &all[0];
	int err;

	/*
	 * Only one step back: what older ones reach may have been overwritten.
	 */
	for (unsigned int steps = 0;; steps++) {
		bool whole;

		err = begin(v, sb, epoch);
		whole = !err;
		if (!err)
			err = load(v, sb);
		if (!err)
			return 0;
		load_undo(v);
		if (!whole || steps || (err != -EBADMSG && err != -EUCLEAN))
			return err;
		vol_report(v, err, "commit %llu is incomplete: going back to "
			   "the one before, commit %llu",
			   (unsigned long long)sb->commit,
			   (unsigned long long)sb->base);
		sb = with_commit(all, nr, sb->base);
		if (!sb)
			return err;
	}
}

int load_newest(struct volume *v)
{
	struct super *all = calloc(RING_SLOTS, sizeof(*all));
	unsigned int nr, unreadable;
	int err = all ? 0 : -ENOMEM;

	if (!err)
		err = super_read_all(all, RING_SLOTS, &nr, &unreadable,
				     v->h->uuid, v->keys, v->c);
	if (!err && !nr)
		err = unreadable ? -EBADMSG : -EUCLEAN;
	if (!err)
		err = load_or_base(v, all, nr);
	free(all);
	return err;
}
