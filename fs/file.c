/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reading and writing.  A write never touches a block that anybody can see: it
 * takes new blocks, encrypts, writes them, and only then changes the map, in
 * one step.  So readers need no lock but the one for looking up the map, and a
 * crash shows the old or the new block.
 *
 * Bytes past the end of file in the last block are always zero (TD6).
 */
#include "fs/file.h"

#include <assert.h>
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cipher/scheme.h"
#include "cipher/tag.h"
#include "fs/attr.h"
#include "fs/container.h"
#include "fs/extent.h"
#include "fs/orphan.h"
#include "fs/vol.h"

/* ---- inodes and their locks */

int file_get(struct volume *v, inum_t ino, struct inode **out)
{
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = inode_get(&t, ino, out);
	} while (txn_retry(&t, &err));
	if (!err)
		inode_hold(*out);
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

void file_put(struct volume *v, struct inode *in)
{
	vol_lock(v);
	inode_put(v, in);
	vol_unlock(v);
}

static int get_regular(struct volume *v, inum_t ino, struct inode **out)
{
	int err = file_get(v, ino, out);

	if (err || S_ISREG((*out)->i.mode))
		return err;
	err = S_ISDIR((*out)->i.mode) ? -EISDIR : -EINVAL;
	file_put(v, *out);
	return err;
}

void file_lock_shared(struct inode *in)
{
	lock_rank_enter(LOCK_INODE);
	pthread_rwlock_rdlock(&in->data_lock);
}

void file_lock_exclusive(struct inode *in)
{
	lock_rank_enter(LOCK_INODE);
	pthread_rwlock_wrlock(&in->data_lock);
}

void file_unlock(struct inode *in)
{
	pthread_rwlock_unlock(&in->data_lock);
	lock_rank_leave(LOCK_INODE);
}

static unsigned int chunk_blocks(const struct volume *v)
{
	/* Tiny test nodes: fewer items a transaction. */
	return v->store.max_items == UINT32_MAX ? FILE_CHUNK_BLOCKS : 16;
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
	err = scheme_decrypt(keys->data, tweak, bytes / keys->sector_bytes,
			     buf, buf);
	stats_time(v->o.stats, STATS_TIMER_decrypt, stats_now() - start,
		   bytes);
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
static int read_blocks(struct volume *v, inum_t ino, uint64_t first,
		       unsigned int nr, uint8_t *buf)
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
			   "files", (unsigned long long)ino,
			   (unsigned long long)first,
			   (unsigned long long)(first + nr - 1));
	extent_list_destroy(&l);
	return err;
}

static int read_piece(struct volume *v, inum_t ino, uint64_t offset,
		      size_t len, uint8_t *buf)
{
	uint64_t first = offset / BLOCK_BYTES;
	size_t skip = offset % BLOCK_BYTES;
	unsigned int nr = (unsigned int)((skip + len + BLOCK_BYTES - 1) /
					 BLOCK_BYTES);
	uint8_t *tmp;
	int err;

	if (!skip && len % BLOCK_BYTES == 0)
		return read_blocks(v, ino, first, nr, buf);
	tmp = malloc((size_t)nr * BLOCK_BYTES);
	if (!tmp)
		return -ENOMEM;
	err = read_blocks(v, ino, first, nr, tmp);
	if (!err)
		memcpy(buf, tmp + skip, len);
	free(tmp);
	return err;
}

static size_t piece_len(const struct volume *v, uint64_t offset, size_t len)
{
	size_t most = (size_t)chunk_blocks(v) * BLOCK_BYTES -
		      offset % BLOCK_BYTES;

	return len < most ? len : most;
}

static uint64_t size_of(struct volume *v, const struct inode *in)
{
	uint64_t size;

	vol_lock(v);
	size = in->i.size;
	vol_unlock(v);
	return size;
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
}

int volume_read(struct volume *v, inum_t ino, uint64_t offset, size_t len,
		void *buf, size_t *nr)
{
	struct inode *in;
	uint64_t size;
	int err = get_regular(v, ino, &in);

	*nr = 0;
	if (err)
		return err;
	size = size_of(v, in);
	if (offset >= size)
		len = 0;
	else if (len > size - offset)
		len = size - offset;
	while (!err && *nr < len) {
		size_t n = piece_len(v, offset + *nr, len - *nr);

		err = read_piece(v, ino, offset + *nr, n, (uint8_t *)buf + *nr);
		if (!err)
			*nr += n;
	}
	file_put(v, in);
	/* What was read before the error is good, as read(2) has it. */
	if (*nr && err)
		err = 0;
	if (len && !err)
		attr_accessed(v, ino);
	return err;
}

/* ---- writing */

/* New blocks for [first, first + nr), being written. */
struct writing {
	struct inode *in;
	uint64_t first;
	unsigned int nr;
	const uint8_t *plain;	/* NULL: they will be unwritten */
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
		.flags = !w->plain ? EXTENT_UNWRITTEN :
			 v->key->tag ? EXTENT_TAGGED : 0,
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
	err = scheme_encrypt(v->key->data, tweak,
			     bytes / v->key->sector_bytes, plain, cipher);
	stats_time(v->o.stats, STATS_TIMER_encrypt, stats_now() - start,
		   bytes);
	start = stats_now();
	for (uint32_t i = 0; v->key->tag && !err && i < e->nr; i++) {
		struct nonce n = { e->nonce.session, e->nonce.counter + i };

		err = tag_compute(v->key->tag, n,
				  cipher + (size_t)i * BLOCK_BYTES,
				  BLOCK_BYTES, tags + i * 16u);
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

		err = write_run(v, e,
				w->plain + (e->logical - w->first) *
						   BLOCK_BYTES,
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
static int put_blocks(struct volume *v, enum txn_class class, struct inode *in,
		      uint64_t first, unsigned int nr, const uint8_t *plain,
		      void (*change)(void *arg, struct inode *in), void *arg)
{
	struct writing w = { .in = in, .first = first, .nr = nr,
			     .plain = plain };
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
static int all_mapped(struct volume *v, struct inode *in, uint64_t first,
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
static int is_written(struct volume *v, struct inode *in, uint64_t at,
		      bool *yes)
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

static int store_blocks(struct volume *v, struct inode *in, uint64_t first,
			unsigned int nr, const uint8_t *plain,
			void (*change)(void *arg, struct inode *in), void *arg)
{
	bool own;
	int err = put_blocks(v, TXN_GROW, in, first, nr, plain, change, arg);

	if (err != -ENOSPC)
		return err;
	/* A full volume still takes what replaces own blocks (I8). */
	err = all_mapped(v, in, first, nr, &own);
	if (err)
		return err;
	return own ? put_blocks(v, TXN_OVERWRITE, in, first, nr, plain,
				change, arg)
		   : -ENOSPC;
}

struct write_change {
	struct timespec now;
	uint64_t end;
	unsigned int flags;
};

static void write_done(void *arg, struct inode *in)
{
	const struct write_change *c = arg;

	if (in->i.size < c->end)
		in->i.size = c->end;
	/*
	 * Under write-back caching the kernel will send its own times.  Until
	 * then these stand in, lest a crash leave new data under an old mtime
	 * (TD8).
	 */
	in->i.mtime = in->i.ctime = c->now;
	if (c->flags & VOLUME_WRITE_KILL_SUIDGID)
		attr_kill_suidgid(&in->i);
}

/* The old content around a piece that does not fill its blocks. */
static int merge_edges(struct volume *v, struct inode *in, uint64_t offset,
		       size_t len, uint8_t *tmp, unsigned int nr)
{
	uint64_t first = offset / BLOCK_BYTES;
	size_t skip = offset % BLOCK_BYTES;
	size_t tail = (skip + len) % BLOCK_BYTES;
	int err = 0;

	if (skip)
		err = read_blocks(v, in->inum, first, 1, tmp);
	if (!err && tail && !(skip && nr == 1))
		err = read_blocks(v, in->inum, first + nr - 1, 1,
				  tmp + (size_t)(nr - 1) * BLOCK_BYTES);
	return err;
}

static int write_piece(struct volume *v, struct inode *in, uint64_t offset,
		       size_t len, const uint8_t *buf, unsigned int flags)
{
	uint64_t first = offset / BLOCK_BYTES;
	size_t skip = offset % BLOCK_BYTES;
	unsigned int nr = (unsigned int)((skip + len + BLOCK_BYTES - 1) /
					 BLOCK_BYTES);
	struct write_change change = { vol_now(v), offset + len, flags };
	uint8_t *tmp;
	int err;

	if (!skip && len % BLOCK_BYTES == 0)
		return store_blocks(v, in, first, nr, buf, write_done,
				    &change);
	tmp = malloc((size_t)nr * BLOCK_BYTES);
	if (!tmp)
		return -ENOMEM;
	err = merge_edges(v, in, offset, len, tmp, nr);
	if (!err) {
		memcpy(tmp + skip, buf, len);
		err = store_blocks(v, in, first, nr, tmp, write_done, &change);
	}
	free(tmp);
	return err;
}

/* Whether blocks with content lie beyond the size. */
static int written_beyond(struct volume *v, struct inode *in, bool *yes)
{
	uint64_t at = round_up(size_of(v, in));
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		while (!(err = extent_at_or_after(&t, in->inum, at, &e)) &&
		       e.flags & EXTENT_UNWRITTEN)
			at = e.logical + e.nr;
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	*yes = !err;
	return err == -ENOENT ? 0 : err;
}

/*
 * A cut that met an error left old blocks beyond the size.  They must go before
 * the size grows over them, or what was cut off would be there again.  The
 * caller holds data_lock exclusively.
 */
static int finish_cut(struct volume *v, struct inode *in)
{
	bool yes;
	int err = written_beyond(v, in, &yes);

	return err || !yes ? err : orphan_cut_locked(v, in);
}

/*
 * Pieces of blocks need the lock alone, and so does a write that leaves a hole
 * behind the end: true if all is held shared.
 */
static bool lock_for_write(struct volume *v, struct inode *in, uint64_t offset,
			   size_t len)
{
	if (!((offset | len) % BLOCK_BYTES)) {
		file_lock_shared(in);
		if (offset <= round_up(size_of(v, in)) * BLOCK_BYTES)
			return true;
		file_unlock(in);
	}
	file_lock_exclusive(in);
	return false;
}

static int write_all(struct volume *v, struct inode *in, uint64_t offset,
		     size_t len, const uint8_t *buf, unsigned int flags)
{
	bool shared = lock_for_write(v, in, offset, len);
	size_t done = 0;
	int err = 0;

	if (!shared && round_up(offset + len) > round_up(size_of(v, in)))
		err = finish_cut(v, in);
	while (!err && done < len) {
		size_t n = piece_len(v, offset + done, len - done);

		err = write_piece(v, in, offset + done, n, buf + done, flags);
		if (!err)
			done += n;
	}
	file_unlock(in);
	return err;
}

int volume_write(struct volume *v, inum_t ino, uint64_t offset, size_t len,
		 const void *buf, unsigned int flags)
{
	struct inode *in;
	int err = get_regular(v, ino, &in);

	if (err)
		return err;
	if (offset > FILE_BYTES_MAX || len > FILE_BYTES_MAX - offset)
		err = -EFBIG;
	if (!err && len)
		err = write_all(v, in, offset, len, buf, flags);
	file_put(v, in);
	return err;
}

/* ---- sizes */

struct size_change {
	uint64_t size;
	void (*change)(void *arg, struct inode *in);
	void *arg;
};

static void size_done(void *arg, struct inode *in)
{
	struct size_change *c = arg;

	in->i.size = c->size;
	c->change(c->arg, in);
}

/*
 * Set the size alone; *more: it was cut, and extents lie beyond it now.  (A
 * size that grows leaves what was reserved beyond the end.)
 */
static int set_size(struct volume *v, struct inode *in, struct size_change *c,
		    bool *more)
{
	uint64_t end = (c->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_DELETE, 2, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = in->gone ? -ENOENT
			       : extent_at_or_after(&t, in->inum, end, &e);
		*more = !err && c->size <= in->i.size;
		if (err == -ENOENT && !in->gone)
			err = 0;
		if (!err)
			err = inode_prepare(&t, in);
		if (!err)
			err = orphan_prepare(&t, in->inum);
		if (!err)
			err = txn_ready(&t, 0);
	} while (txn_retry(&t, &err));
	if (!err) {
		size_done(c, in);
		inode_dirty(&t, in);
		if (*more)
			orphan_put(&t, in->inum);
	}
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

static void keep_size(void *arg, struct inode *in)
{
}

/*
 * Zero [from, to) within one block, if that has content.  The size stays, so that
 * a crash after this shows zeros where the cut was about to come.
 */
static int zero_in_block(struct volume *v, struct inode *in, uint64_t from,
			 uint64_t to)
{
	uint64_t first = from / BLOCK_BYTES;
	uint8_t block[BLOCK_BYTES];
	bool written;
	int err = is_written(v, in, first, &written);

	if (err || !written)
		return err;
	err = read_blocks(v, in->inum, first, 1, block);
	if (err)
		return err;
	memset(block + from % BLOCK_BYTES, 0, to - from);
	return put_blocks(v, TXN_OVERWRITE, in, first, 1, block, keep_size,
			  NULL);
}

/* The last block written anew, cut at @size, with the size in one step. */
static int cut_in_block(struct volume *v, struct inode *in,
			struct size_change *c)
{
	uint64_t first = c->size / BLOCK_BYTES;
	size_t keep = c->size % BLOCK_BYTES;
	uint8_t block[BLOCK_BYTES];
	int err = read_blocks(v, in->inum, first, 1, block);

	if (err)
		return err;
	memset(block + keep, 0, BLOCK_BYTES - keep);
	return put_blocks(v, TXN_OVERWRITE, in, first, 1, block, size_done, c);
}

/* Whether anything is mapped from block @end on. */
static int any_beyond(struct volume *v, struct inode *in, uint64_t end,
		      bool *yes)
{
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = extent_at_or_after(&t, in->inum, end, &e);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	*yes = !err;
	return err == -ENOENT ? 0 : err;
}

int file_set_size(struct volume *v, struct inode *in, uint64_t size,
		  void (*change)(void *arg, struct inode *in), void *arg)
{
	struct size_change c = { size, change, arg };
	uint64_t end = (size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	bool more = false, written = false;
	int err = 0;

	if (size > size_of(v, in))
		err = finish_cut(v, in);
	else if (size < size_of(v, in) && size % BLOCK_BYTES)
		err = is_written(v, in, size / BLOCK_BYTES, &written);
	if (!err && written)
		err = any_beyond(v, in, end, &more);
	if (err)
		return err;
	if (written && !more)
		return cut_in_block(v, in, &c);
	/*
	 * A cut inside a block that has blocks behind it goes in steps, each of
	 * which a crash may show: zeros up to the block's end, then the size
	 * with a mark that there is work left, then the rest.
	 */
	if (written)
		err = zero_in_block(v, in, size, end * BLOCK_BYTES);
	if (!err)
		err = set_size(v, in, &c, &more);
	if (!err && more)
		err = orphan_cut_locked(v, in);
	return err;
}

/* ---- holes */

static void touch_times(void *arg, struct inode *in)
{
	const struct write_change *c = arg;

	in->i.mtime = in->i.ctime = c->now;
	if (in->i.size < c->end)
		in->i.size = c->end;
}

static int cut_step(struct volume *v, struct inode *in, uint64_t *at,
		    uint64_t end)
{
	unsigned int max = chunk_blocks(v);
	uint64_t next = end;
	struct txn t;
	/* A hole in the middle of an extent makes two of it. */
	int err = txn_begin(&t, v, TXN_OVERWRITE, 1 + extent_paths(v, max), 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = in->gone ? -ENOENT : inode_prepare(&t, in);
		if (!err)
			err = extent_cut(&t, in, *at, end, max, &next);
		if (!err)
			inode_dirty(&t, in);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	*at = next;
	return err;
}

/* Make [from, to) read as zeros, without touching the size. */
static int zero_range(struct volume *v, struct inode *in, uint64_t from,
		      uint64_t to)
{
	uint64_t first = (from + BLOCK_BYTES - 1) / BLOCK_BYTES;
	uint64_t end = to / BLOCK_BYTES;
	int err = 0;

	if (first > end)
		return zero_in_block(v, in, from, to);
	if (from % BLOCK_BYTES)
		err = zero_in_block(v, in, from, first * BLOCK_BYTES);
	if (!err && to % BLOCK_BYTES)
		err = zero_in_block(v, in, end * BLOCK_BYTES, to);
	while (!err && first < end)
		err = cut_step(v, in, &first, end);
	return err;
}

static int change_inode(struct volume *v, struct inode *in,
			void (*change)(void *arg, struct inode *in), void *arg)
{
	struct txn t;
	int err = txn_begin(&t, v, TXN_DELETE, 1, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = in->gone ? -ENOENT : inode_prepare(&t, in);
		if (!err)
			err = txn_ready(&t, 0);
	} while (txn_retry(&t, &err));
	if (!err) {
		change(arg, in);
		inode_dirty(&t, in);
	}
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

/* ---- blocks without content */

/* Most blocks that one transaction maps as unwritten. */
#define UNWRITTEN_BLOCKS 4096u

/* The first hole in [at, end), cut to a step; *nr is 0 if there is none. */
static int find_hole(struct volume *v, struct inode *in, uint64_t at,
		     uint64_t end, uint64_t *first, unsigned int *nr)
{
	uint64_t most = v->store.max_items == UINT32_MAX ? UNWRITTEN_BLOCKS
							 : 16;
	struct extent e = { 0 };
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	*first = at;
	txn_lock(&t);
	do {
		while (!(err = extent_at_or_after(&t, in->inum, *first, &e)) &&
		       e.logical <= *first && *first < end)
			*first = e.logical + e.nr;
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	if (err && err != -ENOENT)
		return err;
	if (!err && e.logical < end)
		end = e.logical;
	*nr = *first >= end ? 0 : end - *first < most ?
				  (unsigned int)(end - *first) :
				  (unsigned int)most;
	return 0;
}

static int fill_hole(struct volume *v, struct inode *in, uint64_t first,
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
		err = map_blocks(&t, &w, keep_size, NULL);
	if (err)
		untake_blocks(&t, &w);
	txn_end(&t);
out:
	extent_list_destroy(&w.new);
	return err;
}

/* Blocks of [first, end) that have no place yet. */
static int count_holes(struct volume *v, struct inode *in, uint64_t first,
		       uint64_t end, uint64_t *blocks)
{
	uint64_t at = first;
	struct extent e;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	*blocks = 0;
	txn_lock(&t);
	do {
		err = 0;
		while (at < end) {
			err = extent_at_or_after(&t, in->inum, at, &e);
			if (err == -EAGAIN)
				break;
			if (err || e.logical >= end) {
				*blocks += end - at;
				break;
			}
			if (e.logical > at)
				*blocks += e.logical - at;
			at = e.logical + e.nr;
		}
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err == -ENOENT ? 0 : err;
}

/* Map all holes of [first, end), or none if there is no room for them. */
static int fill_holes(struct volume *v, struct inode *in, uint64_t first,
		      uint64_t end)
{
	struct volume_statfs fs;
	uint64_t blocks;
	unsigned int nr;
	int err = count_holes(v, in, first, end, &blocks);

	if (!err)
		err = volume_statfs(v, &fs);
	if (!err && blocks > fs.free)
		err = -ENOSPC;
	while (!err && blocks && first < end) {
		err = find_hole(v, in, first, end, &first, &nr);
		if (err || !nr)
			break;
		err = fill_hole(v, in, first, nr);
		first += nr;
	}
	return err;
}

static int fallocate_locked(struct volume *v, struct inode *in, int mode,
			    uint64_t offset, uint64_t end)
{
	struct write_change change = { .now = vol_now(v) };
	uint64_t size = size_of(v, in);
	int err = 0;

	if (end > size && !(mode & FALLOC_FL_KEEP_SIZE))
		err = finish_cut(v, in);
	/* Past the end there is nothing but zeros. */
	if (!err && mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) &&
	    offset < round_up(size) * BLOCK_BYTES)
		err = zero_range(v, in, offset, end < size ? end :
				 round_up(size) * BLOCK_BYTES);
	/* Unwritten blocks beyond the end are given up as well. */
	if (!err && mode & FALLOC_FL_PUNCH_HOLE && end > size) {
		uint64_t at = round_up(offset > size ? offset : size);

		while (!err && at < end / BLOCK_BYTES)
			err = cut_step(v, in, &at, end / BLOCK_BYTES);
	}
	if (!err && !(mode & FALLOC_FL_PUNCH_HOLE))
		err = fill_holes(v, in, offset / BLOCK_BYTES, round_up(end));
	if (err)
		return err;
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		change.end = end;
	return change_inode(v, in, touch_times, &change);
}

int volume_fallocate(struct volume *v, inum_t ino, int mode, uint64_t offset,
		     uint64_t len)
{
	struct inode *in;
	int err;

	switch (mode) {
	case 0:
	case FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_ZERO_RANGE:
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (!len || offset > FILE_BYTES_MAX)
		return -EINVAL;
	if (len > FILE_BYTES_MAX - offset)
		return -EFBIG;
	/* Else it would seem to be full. */
	if (volume_is_read_only(v))
		return -EROFS;
	err = get_regular(v, ino, &in);
	if (err)
		return err == -EINVAL ? -ENODEV : err;
	file_lock_exclusive(in);
	err = fallocate_locked(v, in, mode, offset, offset + len);
	file_unlock(in);
	file_put(v, in);
	return err;
}

static int seek(struct txn *t, const struct inode *in, uint64_t offset,
		int whence, uint64_t *out)
{
	uint64_t at = offset / BLOCK_BYTES, end;
	struct extent e;
	int err;

	if (offset >= in->i.size)
		return -ENXIO;
	end = (in->i.size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	for (; at < end; at = e.logical + e.nr) {
		bool hole;

		err = extent_at_or_after(t, in->inum, at, &e);
		if (err && err != -ENOENT)
			return err;
		hole = err || e.logical > at || e.flags & EXTENT_UNWRITTEN;
		if (whence == SEEK_HOLE && hole)
			break;
		if (whence == SEEK_DATA && err)
			return -ENXIO;
		if (whence == SEEK_DATA && !(e.flags & EXTENT_UNWRITTEN)) {
			if (e.logical > at)
				at = e.logical;
			break;
		}
	}
	if (whence == SEEK_DATA && at >= end)
		return -ENXIO;
	*out = at * BLOCK_BYTES > offset ? at * BLOCK_BYTES : offset;
	if (*out > in->i.size)
		*out = in->i.size;
	return 0;
}

int volume_lseek(struct volume *v, inum_t ino, uint64_t offset, int whence,
		 uint64_t *out)
{
	struct inode *in;
	struct txn t;
	int err;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	err = get_regular(v, ino, &in);
	if (err)
		return err;
	err = txn_begin(&t, v, TXN_READ, 0, 0);
	if (!err) {
		txn_lock(&t);
		do {
			err = seek(&t, in, offset, whence, out);
		} while (txn_retry(&t, &err));
		txn_unlock(&t);
		txn_end(&t);
	}
	file_put(v, in);
	return err;
}
