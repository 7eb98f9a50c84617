/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file's map against an array with one entry a block.
 */
#include "unitvol.h"

#include "fs/extent.h"
#include "tests/support/rng.h"

#define BLOCKS 400u

/* Where a block is; block 0: a hole. */
struct mapped {
	block_t block;
	struct nonce nonce;
	uint16_t flags;
	uint64_t birth;
	uint8_t tag[16];
};

static struct unitvol t;
static inum_t ino;
static struct mapped model[BLOCKS];

static void start_plain(void)
{
	unitvol_start(&t, 0, true);
	ino = unitvol_file(&t, "file");
}

static void start_small(void)
{
	unitvol_start(&t, 5, true);
	ino = unitvol_file(&t, "file");
}

static void end_extent(void)
{
	unitvol_end(&t);
}

TestSuite(extent, .init = start_plain, .fini = end_extent, .timeout = 100);
TestSuite(extent_small, .init = start_small, .fini = end_extent,
	  .timeout = 100);

/* Blocks, nonces and tags as a write has them, in one run or in many. */
static void make_list(struct txn *x, struct extent_list *l, uint64_t first,
		      unsigned int nr, uint16_t flags, uint32_t run,
		      uint64_t seed)
{
	struct volume *v = t.v;
	uint64_t at = first;
	size_t blocks = 0;

	must(extent_list_init(l, nr));
	while (at < first + nr) {
		struct extent *e = &l->e[l->nr++];
		uint32_t want = (uint32_t)(first + nr - at);
		block_t near = l->nr > 1 ? e[-1].block + e[-1].nr : 0;
		int err;

		if (want > run)
			want = run;
		*e = (struct extent){ .logical = at,
				      .flags = flags,
				      .key_id = v->key->key_id };
		do {
			err = space_alloc(&v->space, &v->vt, want, near,
					  &e->block, &e->nr, &x->fault);
		} while (txn_retry(x, &err));
		must(err);
		if (!(flags & EXTENT_UNWRITTEN))
			must(nonce_draw(&v->nonces, e->nr, &e->nonce));
		rng_fill(l->tags + blocks * 16, e->nr * 16u, seed + at);
		txn_took(x, e->nr);
		blocks += e->nr;
		at += e->nr;
	}
}

static void model_put(const struct extent_list *l)
{
	const uint8_t *tags = l->tags;

	for (unsigned int i = 0; i < l->nr; i++)
		for (uint32_t j = 0; j < l->e[i].nr; j++, tags += 16) {
			const struct extent *e = &l->e[i];
			struct mapped *b = &model[e->logical + j];

			*b = (struct mapped){ .block = e->block + j,
					      .nonce = e->nonce,
					      .flags = e->flags,
					      .birth = t.v->ft.epoch };
			if (!(e->flags & EXTENT_UNWRITTEN))
				b->nonce.counter += j;
			if (e->flags & EXTENT_TAGGED)
				memcpy(b->tag, tags, 16);
		}
}

/* @flags UINT16_MAX: a hole. */
static void replace(uint64_t first, unsigned int nr, uint16_t flags,
		    uint32_t run, uint64_t seed)
{
	struct extent_list l = { 0 };
	struct inode *in;
	struct txn x;
	int err;

	must(txn_begin(&x, t.v, TXN_GROW, 1 + 2 * extent_paths(t.v, nr + 2),
		       nr));
	txn_lock(&x);
	if (flags != UINT16_MAX)
		make_list(&x, &l, first, nr, flags, run, seed);
	do {
		err = inode_get(&x, ino, &in);
		if (!err)
			err = extent_prepare(&x, ino, first, nr);
		if (!err)
			err = inode_prepare(&x, in);
		if (!err)
			err = txn_ready(&x, 2 * nr + 2);
	} while (txn_retry(&x, &err));
	must(err);
	extent_replace(&x, in, first, nr, flags == UINT16_MAX ? NULL : &l);
	in->i.size = BLOCKS * BLOCK_BYTES;
	inode_dirty(&x, in);
	memset(&model[first], 0, nr * sizeof(model[0]));
	model_put(&l);
	txn_unlock(&x);
	txn_end(&x);
	extent_list_destroy(&l);
}

static void cut(uint64_t first, uint64_t end, unsigned int max)
{
	uint64_t next = first, before;
	struct inode *in;

	while (next < end) {
		struct txn x;
		int err;

		before = next;
		must(txn_begin(&x, t.v, TXN_DELETE, 2 + extent_paths(t.v, max),
			       0));
		txn_lock(&x);
		do {
			err = inode_get(&x, ino, &in);
			if (!err)
				err = inode_prepare(&x, in);
			if (!err)
				err = extent_cut(&x, in, before, end, max,
						 &next);
		} while (txn_retry(&x, &err));
		must(err);
		cr_assert_gt(next, before);
		cr_assert_leq(next, end);
		inode_dirty(&x, in);
		txn_unlock(&x);
		txn_end(&x);
	}
	if (end > BLOCKS)
		end = BLOCKS;
	memset(&model[first], 0, (end - first) * sizeof(model[0]));
}

/* The list of a range is the model's; returns how many extents that were. */
static unsigned int must_agree(uint64_t first, unsigned int nr)
{
	struct extent_list l;
	unsigned int items;
	uint64_t at = first;
	struct txn x;
	int err;

	must(extent_list_init(&l, nr));
	must(txn_begin(&x, t.v, TXN_READ, 0, 0));
	txn_lock(&x);
	do {
		err = extent_list_get(&x, ino, first, nr, &l);
	} while (txn_retry(&x, &err));
	must(err);
	for (unsigned int i = 0; i < l.nr; i++) {
		const struct extent *e = &l.e[i];
		const uint8_t *tags = extent_list_tags(&l, i);

		for (; at < e->logical; at++)
			cr_assert_eq(model[at].block, 0);
		for (uint32_t j = 0; j < e->nr; j++, at++) {
			const struct mapped *b = &model[at];

			cr_assert_eq(b->block, e->block + j);
			cr_assert_eq(b->flags, e->flags);
			cr_assert_eq(b->birth, e->birth);
			if (e->flags & EXTENT_UNWRITTEN)
				continue;
			cr_assert_eq(b->nonce.session, e->nonce.session);
			cr_assert_eq(b->nonce.counter, e->nonce.counter + j);
			if (e->flags & EXTENT_TAGGED)
				cr_assert_eq(memcmp(b->tag, tags + j * 16, 16),
					     0);
		}
	}
	for (; at < first + nr; at++)
		cr_assert_eq(model[at].block, 0);
	txn_unlock(&x);
	txn_end(&x);
	items = l.nr;
	extent_list_destroy(&l);
	return items;
}

static void counts_must_agree(void)
{
	uint64_t blocks = 0, unwritten = 0;
	struct attr a;

	for (unsigned int i = 0; i < BLOCKS; i++) {
		blocks += model[i].block != 0;
		unwritten += model[i].block &&
			     model[i].flags & EXTENT_UNWRITTEN;
	}
	must(volume_getattr(t.v, ino, &a));
	cr_assert_eq(a.blocks, blocks * 8);
	cr_assert_eq(t.v->space.owned_data, blocks);
	cr_assert_eq(t.v->unwritten, unwritten);
}

static void random_changes(uint64_t seed, unsigned int steps)
{
	struct rng r = { seed };

	for (unsigned int i = 0; i < steps; i++) {
		uint64_t first = rng_below(&r, BLOCKS);
		unsigned int nr = 1 + (unsigned int)rng_below(&r, 100);
		uint32_t run = 1 + (uint32_t)rng_below(&r, 80);
		unsigned int some = t.o.max_node_items ? 12 : 100;

		if (nr > some)
			nr = 1 + nr % some;
		if (nr > BLOCKS - first)
			nr = (unsigned int)(BLOCKS - first);
		switch (rng_below(&r, 8)) {
		case 0:
		case 1:
		case 2:
			replace(first, nr, EXTENT_TAGGED, run, seed + i);
			break;
		case 3:
			replace(first, nr, 0, run, seed + i);
			break;
		case 4:
			replace(first, nr, EXTENT_UNWRITTEN, run, seed + i);
			break;
		case 5:
			replace(first, nr, UINT16_MAX, run, seed + i);
			break;
		case 6:
			cut(first, first + nr,
			    1 + (unsigned int)rng_below(&r, some));
			break;
		default:
			if (rng_one_in(&r, 3))
				unitvol_sync(&t);
		}
		must_agree(first, nr);
		if (i % 10 == 0) {
			must_agree(0, BLOCKS);
			counts_must_agree();
		}
	}
	unitvol_sync(&t);
	/* Tags are made up, so no look at the data itself. */
	unitvol_reopen(&t);
	must_agree(0, BLOCKS);
	counts_must_agree();
}

Test(extent, random_changes_agree_with_an_array)
{
	random_changes(1, 700);
}

Test(extent_small, random_changes_agree_with_an_array)
{
	random_changes(2, 400);
}

Test(extent, tagged_ones_end_at_windows)
{
	replace(10, 200, EXTENT_TAGGED, 1000, 1);
	/* 10 to 63, 64 to 127, 128 to 191, 192 to 209. */
	cr_assert_eq(must_agree(0, BLOCKS), 4);
	replace(10, 200, UINT16_MAX, 0, 0);
	cr_assert_eq(must_agree(0, BLOCKS), 0);
	replace(10, 200, 0, 1000, 2);
	cr_assert_eq(must_agree(0, BLOCKS), 1);
}

/* Four blocks; then what goes on where it ended, but for @change. */
static unsigned int items_when(uint64_t first, uint16_t flags,
			       void (*change)(struct extent *e))
{
	struct extent_list l;
	struct inode *in;
	unsigned int items;
	struct txn x;

	must(txn_begin(&x, t.v, TXN_GROW, 9, 8));
	txn_lock(&x);
	make_list(&x, &l, first, 8, flags, 8, 5);
	cr_assert_eq(l.nr, 1);
	must(inode_get(&x, ino, &in));
	in->i.size = BLOCKS * BLOCK_BYTES;
	for (unsigned int i = 0; i < 2; i++) {
		struct extent_list half = { 1, 4, &(struct extent){ 0 },
					    l.tags + 64 * i };

		half.e[0] = l.e[0];
		half.e[0].nr = 4;
		half.e[0].logical += 4 * i;
		half.e[0].block += 4 * i;
		if (!(flags & EXTENT_UNWRITTEN))
			half.e[0].nonce.counter += 4 * i;
		if (i)
			change(half.e);
		must(extent_prepare(&x, ino, first + 4 * i, 4));
		must(txn_ready(&x, 20));
		extent_replace(&x, in, first + 4 * i, 4, &half);
		model_put(&half);
	}
	inode_dirty(&x, in);
	txn_unlock(&x);
	txn_end(&x);
	extent_list_destroy(&l);
	items = must_agree(0, BLOCKS);
	cut(0, BLOCKS, 100);
	return items;
}

static void nothing(struct extent *e)
{
}

static void other_session(struct extent *e)
{
	e->nonce.session ^= 1;
}

static void other_counter(struct extent *e)
{
	e->nonce.counter += 1;
}

static void other_key(struct extent *e)
{
	e->key_id++;
}

static void other_flags(struct extent *e)
{
	e->flags ^= EXTENT_TAGGED;
}

Test(extent, only_what_continues_is_merged)
{
	cr_assert_eq(items_when(0, EXTENT_TAGGED, nothing), 1);
	cr_assert_eq(items_when(0, 0, nothing), 1);
	cr_assert_eq(items_when(0, EXTENT_UNWRITTEN, nothing), 1);
	/* Not across a window, if there are tags. */
	cr_assert_eq(items_when(60, EXTENT_TAGGED, nothing), 2);
	cr_assert_eq(items_when(60, 0, nothing), 1);
	cr_assert_eq(items_when(0, EXTENT_TAGGED, other_session), 2);
	cr_assert_eq(items_when(0, EXTENT_TAGGED, other_counter), 2);
	cr_assert_eq(items_when(0, EXTENT_TAGGED, other_key), 2);
	cr_assert_eq(items_when(0, EXTENT_TAGGED, other_flags), 2);
	/* What was never written has no nonces to compare. */
	cr_assert_eq(items_when(0, EXTENT_UNWRITTEN, other_counter), 1);
}

Test(extent, another_birth_is_not_merged)
{
	struct extent_list l;
	struct inode *in;
	struct txn x;

	replace(0, 4, 0, 4, 1);
	unitvol_sync(&t);
	must(txn_begin(&x, t.v, TXN_GROW, 9, 4));
	txn_lock(&x);
	make_list(&x, &l, 4, 4, 0, 4, 5);
	must(inode_get(&x, ino, &in));
	l.e[0].nonce = model[3].nonce;
	l.e[0].nonce.counter++;
	must(extent_prepare(&x, ino, 4, 4));
	must(inode_prepare(&x, in));
	must(txn_ready(&x, 20));
	extent_replace(&x, in, 4, 4, &l);
	inode_dirty(&x, in);
	model_put(&l);
	txn_unlock(&x);
	txn_end(&x);
	extent_list_destroy(&l);
	cr_assert_eq(must_agree(0, BLOCKS), 2);
}

Test(extent, at_or_after)
{
	struct extent e;
	struct txn x;

	replace(10, 10, 0, 100, 1);
	replace(100, 5, 0, 100, 2);
	must(txn_begin(&x, t.v, TXN_READ, 0, 0));
	txn_lock(&x);
	must(extent_at_or_after(&x, ino, 0, &e));
	cr_assert_eq(e.logical, 10);
	must(extent_at_or_after(&x, ino, 19, &e));
	cr_assert_eq(e.logical, 10);
	must(extent_at_or_after(&x, ino, 20, &e));
	cr_assert_eq(e.logical, 100);
	cr_assert_eq(extent_at_or_after(&x, ino, 105, &e), -ENOENT);
	cr_assert_eq(extent_at_or_after(&x, ino + 1, 0, &e), -ENOENT);
	txn_unlock(&x);
	txn_end(&x);
}

Test(extent, cut_keeps_what_sticks_out)
{
	replace(0, 64, EXTENT_TAGGED, 64, 7);
	cut(20, 30, 5);
	cr_assert_eq(must_agree(0, BLOCKS), 2);
	cut(0, 10, 5);
	cut(60, LOGICAL_MAX, 5);
	must_agree(0, BLOCKS);
	counts_must_agree();
	/* Nothing there: done at once. */
	cut(300, LOGICAL_MAX, 1);
}

/* The last block that a file can have. */
Test(extent, ends_of_the_range)
{
	static const uint64_t last = LOGICAL_MAX - 1;

	unitvol_write(&t, ino, last - 1, 1, 'x');
	cr_assert_eq(unitvol_read(&t, ino, last - 1), 'x');
	cr_assert_eq(unitvol_read(&t, ino, last - 2), 0);
	must(volume_write(t.v, ino, last * BLOCK_BYTES, BLOCK_BYTES - 1, t.said,
			  0));
	cr_assert_eq(volume_write(t.v, ino, last * BLOCK_BYTES, BLOCK_BYTES,
				  t.said, 0),
		     -EFBIG);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
}
