/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A write never touches a block that anybody can see: it takes new blocks,
 * encrypts, writes them, and only then changes the map, in one step.  So
 * readers need no lock but the one for looking up the map, and a crash shows
 * the old or the new block.
 */
#include "fs/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cipher/scheme.h"
#include "cipher/tag.h"
#include "fs/container.h"
#include "fs/extent.h"
#include "fs/vol.h"

unsigned int blocks_chunk(const struct volume *v)
{
	/* Tiny test nodes: fewer items a transaction. */
	return v->store.max_items == UINT32_MAX ? BLOCKS_CHUNK_MAX : 16;
}

/* ---- reading */

/* Check and decrypt @e's blocks, which lie in @buf, in place. */
static int open_blocks(struct volume *v, const struct extent *e,
		       const uint8_t *tags, uint8_t *buf)
{
	const struct key_set *keys = header_key_set(v->keys, e->key_id);
	size_t bytes = (size_t)e->nr * BLOCK_BYTES;
	uint8_t tweak[TWEAK_BYTES];
	uint64_t start;
	int err = 0;

	if (!keys || (e->flags & EXTENT_TAGGED && !keys->tag))
		return -EUCLEAN;
	start = stats_now();
	for (uint32_t i = 0; e->flags & EXTENT_TAGGED && !err && i < e->nr;
	     i++) {
		struct nonce n = { e->nonce.session, e->nonce.counter + i };

		err = tag_verify(keys->tag, n, buf + (size_t)i * BLOCK_BYTES,
				 BLOCK_BYTES, tags + i * 16u);
	}
	if (e->flags & EXTENT_TAGGED)
		stats_time(v->o.stats, STATS_TIMER_tag_verify,
			   stats_now() - start, bytes);
	if (err)
		return err;
	start = stats_now();
	scheme_tweak(keys->data, e->nonce.session,
		     (uint64_t)e->nonce.counter * BLOCK_BYTES, tweak);
	err = scheme_decrypt(keys->data, tweak, bytes / keys->sector_bytes, buf,
			     buf);
	stats_time(v->o.stats, STATS_TIMER_decrypt, stats_now() - start, bytes);
	return err;
}

/* Fill @buf from the list: neighbours in the container with one read. */
static int read_list(struct volume *v, uint64_t first,
		     const struct extent_list *l, uint8_t *buf)
{
	const uint8_t *tags = l->tags;
	int err = 0;

	for (unsigned int i = 0; !err && i < l->nr;) {
		const struct extent *e = &l->e[i];
		uint8_t *at = buf + (e->logical - first) * BLOCK_BYTES;
		uint32_t nr = e->nr;
		unsigned int j = i + 1;

		if (e->flags & EXTENT_UNWRITTEN) {
			memset(at, 0, (size_t)nr * BLOCK_BYTES);
			tags += (size_t)nr * 16;
			i++;
			continue;
		}
		while (j < l->nr && l->e[j].block == e->block + nr &&
		       l->e[j].logical == e->logical + nr &&
		       !(l->e[j].flags & EXTENT_UNWRITTEN))
			nr += l->e[j++].nr;
		err = container_read(v->c, e->block, nr, at);
		for (; !err && i < j; i++) {
			err = open_blocks(v, &l->e[i], tags, at);
			at += (size_t)l->e[i].nr * BLOCK_BYTES;
			tags += (size_t)l->e[i].nr * 16;
		}
	}
	return err;
}

/* Zero what the list does not cover. */
static void zero_holes(uint64_t first, unsigned int nr,
		       const struct extent_list *l, uint8_t *buf)
{
	uint64_t at = first;

	for (unsigned int i = 0; i <= l->nr; i++) {
		uint64_t to = i < l->nr ? l->e[i].logical : first + nr;

		memset(buf + (at - first) * BLOCK_BYTES, 0,
		       (to - at) * BLOCK_BYTES);
		if (i < l->nr)
			at = to + l->e[i].nr;
	}
}

static int read_once(struct volume *v, inum_t ino, uint64_t first,
		     unsigned int nr, uint8_t *buf, struct extent_list *l)
{
	struct reader reader;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = extent_list_get(&t, ino, first, nr, l);
	} while (txn_retry(&t, &err));
	if (!err)
		space_reader_enter(&v->space, &reader, v->ft.epoch);
	txn_unlock(&t);
	txn_end(&t);
	if (err)
		return err;

	zero_holes(first, nr, l, buf);
	err = read_list(v, first, l, buf);
	vol_lock(v);
	space_reader_leave(&v->space, &reader);
	vol_unlock(v);
	return err;
}

/* Plaintext of @nr whole blocks, at most a chunk. */
int blocks_read(struct volume *v, inum_t ino, uint64_t first, unsigned int nr,
		uint8_t *buf)
{
	struct extent_list l;
	int err = extent_list_init(&l, nr);

	if (err)
		return err;
	err = read_once(v, ino, first, nr, buf, &l);
	/*
	 * Epochs keep a block's content while it is read (TD7), so a second
	 * look is for the device's sake: some errors do not come twice.
	 */
	if (err == -EBADMSG) {
		err = read_once(v, ino, first, nr, buf, &l);
		if (err)
			stats_count(v->o.stats, STATS_tag_failures, 1);
	}
	if (err == -EBADMSG || err == -EUCLEAN)
		vol_report(v, err,
			   "inode %llu: blocks %llu to %llu cannot be read: "
			   "data was damaged; 'tusk check --data' names the "
			   "files",
			   (unsigned long long)ino, (unsigned long long)first,
			   (unsigned long long)(first + nr - 1));
	extent_list_destroy(&l);
	return err;
}

/* ---- writing */

/* New blocks for [first, first + nr), being written. */
struct writing {
	struct inode *in;
	uint64_t first;
	unsigned int nr;
	const uint8_t *plain; /* NULL: they will be unwritten */
	struct extent_list new;
};

/* The nonces of @nr blocks, going on where the file's last ones ended. */
static int draw_nonces(struct volume *v, struct inode *in, uint64_t logical,
		       uint32_t nr, struct nonce *n)
{
	int err;

	if (nr >= EXTENT_WINDOW_BLOCKS)
		return nonce_draw(&v->nonces, nr, n);
	if (logical != in->append_logical || in->append_nonces < nr) {
		err = nonce_draw(&v->nonces, EXTENT_WINDOW_BLOCKS,
				 &in->append_nonce);
		if (err)
			return err;
		in->append_nonces = EXTENT_WINDOW_BLOCKS;
	}
	*n = in->append_nonce;
	in->append_nonce.counter += nr;
	in->append_nonces -= nr;
	return 0;
}

/* One more run of blocks with its nonces.  Under LOCK_TREE. */
static int take_run(struct txn *t, struct writing *w, uint64_t logical,
		    uint32_t want)
{
	struct volume *v = t->v;
	struct extent *e = &w->new.e[w->new.nr];
	bool append = logical == w->in->append_logical;
	uint32_t nr;
	int err;

	*e = (struct extent){
		.logical = logical,
		.key_id = v->key->key_id,
		.flags = !w->plain     ? EXTENT_UNWRITTEN
			 : v->key->tag ? EXTENT_TAGGED
				       : 0,
	};
	err = space_alloc(&v->space, &v->vt, want,
			  append ? w->in->append_block : 0, &e->block, &nr,
			  &t->fault);
	if (err)
		return err;
	e->nr = nr;
	if (w->plain)
		err = draw_nonces(v, w->in, logical, nr, &e->nonce);
	if (err) {
		space_unalloc(&v->space, e->block, nr);
		return err;
	}
	w->in->append_logical = logical + nr;
	w->in->append_block = e->block + nr;
	txn_took(t, nr);
	stats_count(v->o.stats, STATS_blocks_allocated, nr);
	w->new.nr++;
	return 0;
}

static int take_blocks(struct txn *t, struct writing *w)
{
	uint64_t at = w->first, end = w->first + w->nr;
	int err = 0;

	txn_lock(t);
	do {
		/* A fault keeps what was taken so far. */
		while (!err && at < end) {
			err = take_run(t, w, at, (uint32_t)(end - at));
			if (!err)
				at += w->new.e[w->new.nr - 1].nr;
		}
	} while (txn_retry(t, &err));
	txn_unlock(t);
	return err;
}

static void untake_blocks(struct txn *t, struct writing *w)
{
	txn_lock(t);
	for (unsigned int i = 0; i < w->new.nr; i++)
		space_unalloc(&t->v->space, w->new.e[i].block, w->new.e[i].nr);
	txn_unlock(t);
	w->new.nr = 0;
}

static int write_run(struct volume *v, const struct extent *e,
		     const uint8_t *plain, uint8_t *cipher, uint8_t *tags)
{
	size_t bytes = (size_t)e->nr * BLOCK_BYTES;
	uint8_t tweak[TWEAK_BYTES];
	uint64_t start = stats_now();
	int err;

	scheme_tweak(v->key->data, e->nonce.session,
		     (uint64_t)e->nonce.counter * BLOCK_BYTES, tweak);
	err = scheme_encrypt(v->key->data, tweak, bytes / v->key->sector_bytes,
			     plain, cipher);
	stats_time(v->o.stats, STATS_TIMER_encrypt, stats_now() - start, bytes);
	start = stats_now();
	for (uint32_t i = 0; v->key->tag && !err && i < e->nr; i++) {
		struct nonce n = { e->nonce.session, e->nonce.counter + i };

		err = tag_compute(v->key->tag, n,
				  cipher + (size_t)i * BLOCK_BYTES, BLOCK_BYTES,
				  tags + i * 16u);
	}
	if (v->key->tag)
		stats_time(v->o.stats, STATS_TIMER_tag_compute,
			   stats_now() - start, bytes);
	if (!err)
		err = container_write(v->c, e->block, e->nr, cipher);
	return err;
}

static int write_blocks(struct volume *v, struct writing *w)
{
	uint8_t *cipher = malloc((size_t)w->nr * BLOCK_BYTES);
	uint8_t *tags = w->new.tags;
	int err = cipher ? 0 : -ENOMEM;

	for (unsigned int i = 0; !err && i < w->new.nr; i++) {
		const struct extent *e = &w->new.e[i];

		err = write_run(
			v, e, w->plain + (e->logical - w->first) * BLOCK_BYTES,
			cipher, tags);
		tags += (size_t)e->nr * 16;
	}
	free(cipher);
	/* What the device has done with it is unknown. */
	if (err && err != -ENOMEM)
		vol_fail(v, err, "writing data");
	return err;
}

/* Change the map, and what @change says, in one step. */
static int map_blocks(struct txn *t, struct writing *w,
		      void (*change)(void *arg, struct inode *in), void *arg)
{
	struct inode *in = w->in;
	int err;

	txn_lock(t);
	do {
		err = in->gone ? -ENOENT : 0;
		if (!err)
			err = extent_prepare(t, in->inum, w->first, w->nr);
		if (!err)
			err = inode_prepare(t, in);
		if (!err)
			err = txn_ready(t, 2 * (size_t)w->nr + 2);
	} while (txn_retry(t, &err));
	if (!err) {
		extent_replace(t, in, w->first, w->nr, &w->new);
		change(arg, in);
		inode_dirty(t, in);
	}
	txn_unlock(t);
	return err;
}

/*
 * Give [first, first + nr) (a chunk at most) the content @plain.  The caller
 * holds @in and its data_lock, exclusively unless all blocks are whole.
 */
int blocks_put(struct volume *v, enum txn_class class, struct inode *in,
	       uint64_t first, unsigned int nr, const uint8_t *plain,
	       void (*change)(void *arg, struct inode *in), void *arg)
{
	struct writing w = {
		.in = in, .first = first, .nr = nr, .plain = plain
	};
	struct txn t;
	int err = extent_list_init(&w.new, nr);

	if (err)
		return err;
	err = txn_begin(&t, v, class, 1 + 2 * extent_paths(v, nr + 2), nr);
	if (err)
		goto out;
	err = take_blocks(&t, &w);
	if (!err)
		err = write_blocks(v, &w);
	if (!err)
		err = map_blocks(&t, &w, change, arg);
	if (err)
		untake_blocks(&t, &w);
	txn_end(&t);
out:
	extent_list_destroy(&w.new);
	return err;
}

/* Whether every block of the range is mapped: writing then needs no growth. */
int blocks_mapped(struct volume *v, struct inode *in, uint64_t first,
		  unsigned int nr, bool *yes)
{
	uint64_t at = first;
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	*yes = false;
	txn_lock(&t);
	do {
		err = 0;
		while (!err && at < first + nr) {
			err = extent_at_or_after(&t, in->inum, at, &e);
			if (!err && e.logical > at)
				err = -ENOENT;
			if (!err)
				at = e.logical + e.nr;
		}
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	*yes = !err;
	return err == -ENOENT ? 0 : err;
}

/* Whether block @at has content, which a hole or an unwritten one has not. */
int blocks_written(struct volume *v, struct inode *in, uint64_t at, bool *yes)
{
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = extent_at_or_after(&t, in->inum, at, &e);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	*yes = !err && e.logical <= at && !(e.flags & EXTENT_UNWRITTEN);
	return err == -ENOENT ? 0 : err;
}

int blocks_store(struct volume *v, struct inode *in, uint64_t first,
		 unsigned int nr, const uint8_t *plain,
		 void (*change)(void *arg, struct inode *in), void *arg)
{
	bool own;
	int err = blocks_put(v, TXN_GROW, in, first, nr, plain, change, arg);

	if (err != -ENOSPC)
		return err;
	/* A full volume still takes what replaces own blocks (I8). */
	err = blocks_mapped(v, in, first, nr, &own);
	if (err)
		return err;
	return own ? blocks_put(v, TXN_OVERWRITE, in, first, nr, plain, change,
				arg)
		   : -ENOSPC;
}

void blocks_keep(void *arg, struct inode *in)
{
}

int blocks_reserve(struct volume *v, struct inode *in, uint64_t first,
		   unsigned int nr)
{
	struct writing w = { .in = in, .first = first, .nr = nr };
	struct txn t;
	int err = extent_list_init(&w.new, nr);

	if (err)
		return err;
	err = txn_begin_unwritten(&t, v, 1 + 2 * extent_paths(v, nr + 2), nr);
	if (err)
		goto out;
	err = take_blocks(&t, &w);
	if (!err)
		err = map_blocks(&t, &w, blocks_keep, NULL);
	if (err)
		untake_blocks(&t, &w);
	txn_end(&t);
out:
	extent_list_destroy(&w.new);
	return err;
}
