/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Trees against an array, with commits in between: at a freeze the array is
 * copied, and what is then on the disk must be that copy, whatever went on
 * while it was written.  Nodes are really sealed and opened, and the cache is
 * small, so that every function meets nodes that are not in memory.
 */
#include <criterion/criterion.h>

#include "fs/tree.h"
#include "support.h"
#include "tests/support/rng.h"

#define NR_KEYS 700
#define NODE_ROOM 60000 /* nodes written in one run */

/* What a key has: length 0 means it is not there. */
struct entry {
	uint16_t len;
	uint64_t pattern;
};

struct frozen {
	bool running;
	struct node_list list;
	struct node *root;
	struct entry model[NR_KEYS];
	struct range_vec frees; /* of that epoch */
	uint64_t epoch;
};

struct rig {
	struct rng r;
	struct node_store s;
	struct tree t;
	struct range_vec frees;
	struct entry model[NR_KEYS];
	struct frozen f;
	unsigned int node_blocks;
	size_t value_max;
	uint8_t *disk[NODE_ROOM]; /* sealed nodes; NULL: none or given up */
	unsigned int next_node;
	/* What the newest commit reaches: its births, 0 for what it does not. */
	uint64_t reached[NODE_ROOM];
	uint64_t nr_loads;
};

static struct made m;

static void start_made(void)
{
	make_container(&m);
}

static void end_made(void)
{
	destroy_container(&m);
}

TestSuite(tree, .init = start_made, .fini = end_made, .timeout = 100);

static const struct key_set *keys(void)
{
	return &m.keys.set[m.keys.active];
}

static struct key key_at(unsigned int k)
{
	return key_of(1024 + k / 50, ITEM_XATTR, (k % 50) * 256 + 1);
}

static unsigned int index_of(const struct key *key)
{
	return (unsigned int)((key->inum - 1024) * 50 + key->offset / 256);
}

static unsigned int node_index(const struct rig *g, block_t block)
{
	return (unsigned int)((block - FIXED_BLOCKS) / g->node_blocks);
}

static void rig_init(struct rig *g, uint64_t seed, unsigned int log2,
		     unsigned int max_items, size_t value_max)
{
	memset(g, 0, sizeof(*g));
	g->r.state = seed;
	g->value_max = value_max;
	g->node_blocks = (1u << log2) / BLOCK_BYTES;
	must(node_store_init(&g->s, log2, 0, max_items));
	tree_init(&g->t, TREE_FILES, &g->s);
	g->t.epoch = 1;
	g->t.frees = &g->frees;
	must(tree_init_empty(&g->t));
}

static void rig_destroy(struct rig *g)
{
	tree_destroy(&g->t);
	node_store_forget(&g->s);
	/* Nothing is left but spares: no reference was lost. */
	cr_assert_eq(g->s.nr_cached, 0);
	cr_assert_eq(g->s.nr_nodes, g->s.nr_spare);
	node_store_destroy(&g->s);
	range_vec_destroy(&g->frees);
	range_vec_destroy(&g->f.frees);
	for (unsigned int i = 0; i < g->next_node; i++)
		free(g->disk[i]);
}

static void load(struct rig *g, const struct fault *f)
{
	struct node *n = node_store_take(&g->s);
	const uint8_t *bytes = g->disk[node_index(g, f->ptr.block)];

	cr_assert(bytes, "block %lu was given up", f->ptr.block);
	must(node_open(n, &f->ptr, f->tree, &f->low, &f->high, m.h.uuid, keys(),
		       bytes));
	node_store_add(&g->s, n);
	g->nr_loads++;
}

/* Do @call again until nothing is missing any more. */
#define with_loads(g, err, call)                  \
	do {                                      \
		struct fault fault;               \
                                                  \
		while ((err = (call)) == -EAGAIN) \
			load(g, &fault);          \
	} while (0)

/* ---- one operation each, on tree and array */

static size_t promise(struct rig *g, unsigned int paths)
{
	size_t nr = paths * (tree_worst_nodes(&g->t) + 3);

	must(node_store_promise(&g->s, nr));
	must(range_vec_reserve(&g->frees, nr));
	return nr;
}

/* One operation on @paths paths has ended: it kept to what it said. */
static void keep_promise(struct rig *g, size_t nr, size_t dirty, size_t freed)
{
	cr_assert_leq(g->t.nr_dirty, dirty + nr);
	cr_assert_leq(g->frees.nr, freed + nr);
	node_store_release(&g->s, nr);
	node_store_shrink(&g->s);
}

static void put(struct rig *g, unsigned int k)
{
	struct entry e = { (uint16_t)(1 + rng_below(&g->r, g->value_max)),
			   rng_next(&g->r) | 1 };
	struct key key = key_at(k);
	size_t dirty = g->t.nr_dirty, freed = g->frees.nr, nr;
	uint8_t value[4096];
	int err;

	with_loads(g, err, tree_prepare(&g->t, &key, &fault));
	cr_assert_eq(err, 0);
	nr = promise(g, 1);
	rng_fill(value, e.len, e.pattern);
	tree_put(&g->t, &key, value, e.len);
	g->model[k] = e;
	keep_promise(g, nr, dirty, freed);
}

static void drop(struct rig *g, unsigned int k)
{
	struct key key = key_at(k);
	size_t dirty = g->t.nr_dirty, freed = g->frees.nr, nr;
	int err;

	if (!g->model[k].len)
		return;
	with_loads(g, err, tree_prepare(&g->t, &key, &fault));
	cr_assert_eq(err, 0);
	nr = promise(g, 1);
	tree_remove(&g->t, &key);
	g->model[k].len = 0;
	keep_promise(g, nr, dirty, freed);
}

/* @back: put one into the range again, as a new extent over old ones. */
static void drop_range(struct rig *g, unsigned int k, unsigned int many,
		       bool back)
{
	unsigned int end = k + many < NR_KEYS ? k + many : NR_KEYS;
	struct key first = key_at(k), last = key_at(end - 1);
	size_t dirty = g->t.nr_dirty, freed = g->frees.nr, nr;
	int err;

	with_loads(g, err, tree_prepare_range(&g->t, &first, &last, &fault));
	cr_assert_eq(err, 0);
	nr = promise(g, many + 1);
	for (unsigned int i = k; i < end; i++) {
		struct key key = key_at(i);

		if (g->model[i].len)
			tree_remove(&g->t, &key);
		g->model[i].len = 0;
	}
	if (back) {
		struct entry e = { 1, rng_next(&g->r) | 1 };
		struct key key;
		uint8_t byte;

		k += (unsigned int)rng_below(&g->r, end - k);
		key = key_at(k);
		rng_fill(&byte, 1, e.pattern);
		tree_put(&g->t, &key, &byte, 1);
		g->model[k] = e;
	}
	keep_promise(g, nr, dirty, freed);
}

/* As a rename: both paths first, then both changes. */
static void move(struct rig *g, unsigned int from, unsigned int to)
{
	struct key a = key_at(from), b = key_at(to);
	struct entry e = g->model[from];
	uint8_t value[4096];
	size_t nr;
	int err;

	if (!e.len || from == to)
		return;
	for (bool again = true; again;) {
		uint64_t loads = g->nr_loads;

		with_loads(g, err, tree_prepare(&g->t, &a, &fault));
		cr_assert_eq(err, 0);
		with_loads(g, err, tree_prepare(&g->t, &b, &fault));
		cr_assert_eq(err, 0);
		again = g->nr_loads != loads;
	}
	nr = promise(g, 2);
	tree_remove(&g->t, &a);
	rng_fill(value, e.len, e.pattern);
	tree_put(&g->t, &b, value, e.len);
	g->model[from].len = 0;
	g->model[to] = e;
	node_store_release(&g->s, nr);
	node_store_shrink(&g->s);
}

/* The same length, in place. */
static void mutate(struct rig *g, unsigned int k)
{
	struct key key = key_at(k);
	struct entry *e = &g->model[k];
	size_t nr;
	int err;

	if (!e->len)
		return;
	with_loads(g, err, tree_prepare(&g->t, &key, &fault));
	cr_assert_eq(err, 0);
	nr = promise(g, 1);
	tree_touch(&g->t, &key);
	e->pattern = rng_next(&g->r) | 1;
	rng_fill(tree_value_mut(&g->t, &key, e->len), e->len, e->pattern);
	node_store_release(&g->s, nr);
}

static void must_be(const struct tree_pos *pos, const struct rig *g,
		    unsigned int k)
{
	struct key key = key_at(k);
	uint8_t value[4096];

	cr_assert_eq(key_cmp(&pos->key, &key), 0);
	cr_assert_eq(pos->len, g->model[k].len);
	rng_fill(value, pos->len, g->model[k].pattern);
	cr_assert_eq(memcmp(pos->value, value, pos->len), 0);
}

static void look(struct rig *g, unsigned int k)
{
	struct key key = key_at(k);
	struct tree_pos pos;
	unsigned int i;
	int err;

	with_loads(g, err, tree_find(&g->t, &key, &pos, &fault));
	cr_assert_eq(err, g->model[k].len ? 0 : -ENOENT);
	if (!err)
		must_be(&pos, g, k);

	with_loads(g, err, tree_next(&g->t, &key, &pos, &fault));
	for (i = k; i < NR_KEYS && !g->model[i].len; i++)
		;
	cr_assert_eq(err, i < NR_KEYS ? 0 : -ENOENT);
	if (!err)
		must_be(&pos, g, i);

	with_loads(g, err, tree_prev(&g->t, &key, &pos, &fault));
	for (i = k + 1; i > 0 && !g->model[i - 1].len; i--)
		;
	cr_assert_eq(err, i > 0 ? 0 : -ENOENT);
	if (!err)
		must_be(&pos, g, i - 1);
	node_store_shrink(&g->s);
}

/* From end to end. */
static void look_all(struct rig *g)
{
	struct key key = KEY_MIN;
	struct tree_pos pos;
	unsigned int k = 0;
	int err;

	for (;;) {
		with_loads(g, err, tree_next(&g->t, &key, &pos, &fault));
		while (k < NR_KEYS && !g->model[k].len)
			k++;
		if (err)
			break;
		cr_assert_lt(k, NR_KEYS);
		must_be(&pos, g, k++);
		key = pos.key;
		key.offset++;
		node_store_shrink(&g->s);
	}
	cr_assert_eq(err, -ENOENT);
	cr_assert_eq(k, NR_KEYS);
}

static void operate(struct rig *g)
{
	unsigned int k = (unsigned int)rng_below(&g->r, NR_KEYS);

	switch (rng_below(&g->r, 18)) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		put(g, k);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		drop(g, k);
		break;
	case 9:
		if (rng_one_in(&g->r, 2))
			node_store_forget(&g->s);
		drop_range(g, k, 1 + (unsigned int)rng_below(&g->r, 30),
			   rng_one_in(&g->r, 2));
		break;
	case 10: {
		/* A run in order, as files are written. */
		unsigned int nr = (unsigned int)rng_below(&g->r, 30);

		for (; nr-- && k < NR_KEYS; k++)
			put(g, k);
		break;
	}
	case 11:
		move(g, k, (unsigned int)rng_below(&g->r, NR_KEYS));
		break;
	case 15:
		/* To a neighbour, whose leaf may not be in memory. */
		node_store_forget(&g->s);
		move(g, k,
		     k && rng_one_in(&g->r, 2) ? k - 1
		     : k + 1 < NR_KEYS	       ? k + 1
					       : k);
		break;
	case 12:
		mutate(g, k);
		break;
	case 13:
		if (rng_one_in(&g->r, 4))
			node_store_forget(&g->s);
		break;
	default:
		look(g, k);
	}
}

/* ---- commits */

static void freeze(struct rig *g)
{
	struct frozen *f = &g->f;

	f->running = true;
	TAILQ_INIT(&f->list);
	f->epoch = g->t.epoch;
	memcpy(f->model, g->model, sizeof(f->model));
	range_vec_destroy(&f->frees);
	f->frees = g->frees;
	g->frees = RANGE_VEC_EMPTY;
	tree_freeze(&g->t, f->epoch + 1, &f->list, &f->root);
}

/* Slots, as commit.c gives them. */
static void place(struct rig *g)
{
	struct node *n;

	TAILQ_FOREACH(n, &g->f.list, dirty_link) {
		cr_assert_lt(g->next_node, NODE_ROOM);
		n->ptr.block = FIXED_BLOCKS + g->next_node * g->node_blocks;
		n->ptr.birth = g->f.epoch;
		g->next_node++;
		if (!n->superseded)
			continue;
		must(range_vec_reserve(&g->frees, 1));
		range_vec_add(&g->frees, n->ptr.block, g->node_blocks,
			      n->ptr.birth);
	}
}

static void write_out(struct rig *g)
{
	static uint8_t scratch[1 << 16];
	struct node *n;

	for (unsigned int level = 0; level <= NODE_LEVEL_MAX; level++)
		TAILQ_FOREACH(n, &g->f.list, dirty_link) {
			uint8_t *out;

			if (n->level != level)
				continue;
			out = malloc((size_t)g->node_blocks * BLOCK_BYTES);
			must(node_seal(n, m.h.uuid, keys(), &m.src, scratch,
				       out));
			g->disk[node_index(g, n->ptr.block)] = out;
		}
}

struct visit {
	uint64_t *births;
	unsigned int k;
};

/* Visit the tree on the disk: who is there, and is it the frozen array? */
static void walk_disk(struct rig *g, const struct ptr *p, struct key low,
		      struct key high, bool root, struct visit *w)
{
	struct node *n = node_new(g->s.log2_bytes);
	unsigned int at = node_index(g, p->block);

	cr_assert(g->disk[at]);
	must(node_open(n, p, TREE_FILES, &low, &high, m.h.uuid, keys(),
		       g->disk[at]));
	cr_assert(!w->births[at], "block with two owners");
	w->births[at] = p->birth;
	cr_assert(n->nr || root);
	cr_assert_leq(n->nr, g->s.max_items);
	for (unsigned int i = 0; i < n->nr; i++) {
		struct key key = node_key(n, i);
		size_t len;
		const void *value = node_value(n, i, &len);
		uint8_t want[4096];
		struct ptr child;

		if (n->level) {
			must(ptr_decode(value, &child));
			walk_disk(g, &child, key,
				  i + 1 < n->nr ? node_key(n, i + 1) : high,
				  false, w);
			continue;
		}
		while (w->k < NR_KEYS && !g->f.model[w->k].len)
			w->k++;
		cr_assert_lt(w->k, NR_KEYS);
		cr_assert_eq(index_of(&key), w->k);
		cr_assert_eq(len, g->f.model[w->k].len);
		rng_fill(want, len, g->f.model[w->k].pattern);
		cr_assert_eq(memcmp(value, want, len), 0);
		w->k++;
	}
	node_free(n);
}

/* The commit is on the disk; it freed exactly what it no longer reaches. */
static void verify(struct rig *g, const struct ptr *root)
{
	uint64_t *births = calloc(NODE_ROOM, sizeof(*births));
	struct visit w = { .births = births };

	walk_disk(g, root, KEY_MIN, KEY_MAX, true, &w);
	while (w.k < NR_KEYS)
		cr_assert_eq(g->f.model[w.k++].len, 0);
	for (size_t i = 0; i < g->f.frees.nr; i++) {
		const struct range *r = &g->f.frees.r[i];

		for (block_t b = r->start; b < r->start + r->nr;
		     b += g->node_blocks) {
			unsigned int at = node_index(g, b);

			cr_assert_eq(g->reached[at], r->birth,
				     "freed, and was not in use");
			cr_assert_eq(births[at], 0, "freed, and in use");
			g->reached[at] = 0;
			free(g->disk[at]);
			g->disk[at] = NULL;
		}
	}
	for (unsigned int i = 0; i < g->next_node; i++)
		cr_assert(!g->reached[i] || births[i] == g->reached[i],
			  "lost without being freed");
	memcpy(g->reached, births, sizeof(g->reached));
	free(births);
}

static void finish(struct rig *g)
{
	struct frozen *f = &g->f;
	struct ptr root = f->root ? f->root->ptr : g->t.root_ptr;
	struct node *n;

	verify(g, &root);
	while ((n = TAILQ_FIRST(&f->list))) {
		TAILQ_REMOVE(&f->list, n, dirty_link);
		tree_thaw(&g->t, n);
	}
	if (f->root)
		node_put(&g->s, f->root);
	f->root = NULL;
	tree_thaw_root(&g->t);
	f->running = false;
	/* Every node is known: spare, in the cache, or dirty. */
	cr_assert_eq(g->s.nr_nodes,
		     g->s.nr_spare + g->s.nr_cached + g->t.nr_dirty);
	node_store_shrink(&g->s);
}

/* A whole commit with @between operations in each of its stages. */
static void commit(struct rig *g, unsigned int between)
{
	freeze(g);
	for (unsigned int i = 0; i < between; i++)
		operate(g);
	place(g);
	for (unsigned int i = 0; i < between; i++)
		operate(g);
	write_out(g);
	for (unsigned int i = 0; i < between; i++)
		operate(g);
	finish(g);
}

static void run(uint64_t seed, unsigned int log2, unsigned int max_items,
		size_t value_max, unsigned int rounds)
{
	struct rig *g = malloc(sizeof(*g));

	rig_init(g, seed, log2, max_items, value_max);
	for (unsigned int i = 0; i < rounds; i++) {
		unsigned int nr = (unsigned int)rng_below(&g->r, 120);

		while (nr--)
			operate(g);
		commit(g, (unsigned int)rng_below(&g->r, 40));
		if (i % 8 == 0)
			look_all(g);
	}
	/* Down to nothing, and up again. */
	drop_range(g, 0, NR_KEYS, false);
	cr_assert_eq(g->t.height, 1);
	commit(g, 0);
	put(g, 5);
	commit(g, 0);
	look_all(g);
	rig_destroy(g);
	free(g);
}

Test(tree, fan_out_of_4_agrees_with_an_array)
{
	for (uint64_t seed = 1; seed <= 3; seed++)
		run(seed, 14, 4, 20, 12);
}

Test(tree, fan_outs_of_5_to_8_agree_with_an_array)
{
	for (unsigned int items = 5; items <= 8; items++)
		run(items, 14, items, 20, 12);
}

Test(tree, real_nodes_agree_with_an_array)
{
	run(21, 14, 0, 1024, 25);
	run(22, 15, 0, 1024, 25);
	run(23, 16, 0, 1024, 25);
}

Test(tree, only_what_changed_is_written)
{
	struct rig *g = malloc(sizeof(*g));
	unsigned int before;

	rig_init(g, 7, 14, 4, 20);
	for (unsigned int k = 0; k < NR_KEYS; k++)
		put(g, k);
	commit(g, 0);
	before = g->next_node;
	mutate(g, 300);
	commit(g, 0);
	cr_assert_eq(g->next_node - before, g->t.height);
	/* Nothing changed: nothing frozen. */
	before = g->next_node;
	freeze(g);
	cr_assert_eq(g->f.root, NULL);
	cr_assert(TAILQ_EMPTY(&g->f.list));
	finish(g);
	cr_assert_eq(g->next_node, before);
	rig_destroy(g);
	free(g);
}

Test(tree, filled_in_order_nodes_stay_full)
{
	struct rig *g = malloc(sizeof(*g));

	rig_init(g, 8, 14, 8, 20);
	for (unsigned int k = 0; k < NR_KEYS; k++)
		put(g, k);
	/* 88 full leaves, 13 parents of 7 to 8, 2 above, a root. */
	cr_assert_leq(g->t.nr_dirty, 110);
	commit(g, 0);
	rig_destroy(g);
	free(g);
}

/* TD9: what a walk must have read. */
Test(tree, TD9_walk_visits_all_young_nodes_and_no_others)
{
	struct rig *g = malloc(sizeof(*g));
	uint64_t births[6] = { 0 };

	rig_init(g, 9, 14, 4, 20);
	for (unsigned int k = 0; k < NR_KEYS; k += 2)
		put(g, k);
	commit(g, 0);
	for (unsigned int round = 0; round < 4; round++) {
		for (unsigned int i = 0; i < 12; i++)
			put(g, (unsigned int)rng_below(&g->r, NR_KEYS));
		commit(g, 0);
	}
	for (unsigned int i = 0; i < g->next_node; i++)
		for (unsigned int b = 1; b <= 5; b++)
			births[b] += g->reached[i] >= b;
	/* The cache would evict what was read; here it may grow. */
	g->s.limit_nodes = NODE_ROOM;
	for (unsigned int b = 1; b <= 5; b++) {
		struct key from = KEY_MIN;
		bool last = false;
		int err;

		node_store_forget(&g->s);
		g->nr_loads = 0;
		while (!last) {
			with_loads(g, err,
				   tree_walk_young(&g->t, b, &from, &last,
						   &fault));
			cr_assert_eq(err, 0);
		}
		cr_assert_eq(g->nr_loads, births[b], "birth %u", b);
	}
	rig_destroy(g);
	free(g);
}

/* A copy that was being read when its node became dirty must not be used. */
Test(tree, load_of_a_node_that_changes_is_stale)
{
	struct rig *g = malloc(sizeof(*g));
	struct node_load other, l;

	rig_init(g, 10, 14, 0, 20);
	put(g, 1);
	commit(g, 0);
	l = (struct node_load){ .block = g->t.root_ptr.block };
	other = (struct node_load){ .block = l.block + g->node_blocks };
	LIST_INSERT_HEAD(&g->s.loads, &l, link);
	LIST_INSERT_HEAD(&g->s.loads, &other, link);
	look(g, 1);
	cr_assert(!l.stale);
	put(g, 2);
	cr_assert(l.stale);
	cr_assert(!other.stale);
	LIST_REMOVE(&l, link);
	LIST_REMOVE(&other, link);
	rig_destroy(g);
	free(g);
}

/* Two pointers to one block: damage, to be found by reading it again. */
Test(tree, cached_node_is_not_taken_for_another)
{
	struct rig *g = malloc(sizeof(*g));
	struct key key = key_at(1);
	struct tree_pos pos;
	struct fault fault;

	rig_init(g, 12, 14, 0, 20);
	put(g, 1);
	commit(g, 0);
	look(g, 1);
	g->t.root_ptr.birth++;
	cr_assert_eq(tree_find(&g->t, &key, &pos, &fault), -EAGAIN);
	cr_assert_eq(fault.ptr.birth, g->t.root_ptr.birth);
	g->t.root_ptr.birth--;
	g->t.id++;
	cr_assert_eq(tree_find(&g->t, &key, &pos, &fault), -EAGAIN);
	g->t.id--;
	look(g, 1);
	rig_destroy(g);
	free(g);
}

Test(tree, pinned_nodes_stay_in_the_cache)
{
	struct rig *g = malloc(sizeof(*g));
	struct key key = key_at(350);
	struct tree_pos pos;
	struct node *pinned;
	int err;

	rig_init(g, 11, 14, 4, 20);
	for (unsigned int k = 0; k < NR_KEYS; k++)
		put(g, k);
	commit(g, 0);
	with_loads(g, err, tree_find(&g->t, &key, &pos, &fault));
	cr_assert_eq(err, 0);
	pinned = pos.leaf;
	node_hold(&g->s, pinned);
	for (unsigned int k = 0; k < NR_KEYS; k++)
		look(g, k);
	cr_assert_leq(g->s.nr_cached, g->s.limit_nodes + 8);
	cr_assert_eq(node_store_find(&g->s, pinned->ptr.block), pinned);
	must_be(&pos, g, 350);
	node_put(&g->s, pinned);
	rig_destroy(g);
	free(g);
}

Test(store, promises_are_kept)
{
	struct node_store s;
	struct node *n[40];

	must(node_store_init(&s, 14, 0, 0));
	must(node_store_promise(&s, 30));
	must(node_store_promise(&s, 10));
	cr_assert_geq(s.nr_spare, 40);
	/* Readers take what is over, or new ones. */
	for (unsigned int i = 0; i < 40; i++) {
		n[i] = node_store_take(&s);
		cr_assert(n[i]);
		cr_assert_geq(s.nr_spare, 40);
	}
	for (unsigned int i = 0; i < 40; i++)
		node_store_give(&s, n[i]);
	node_store_release(&s, 40);
	cr_assert_leq(s.nr_spare, 64);
	node_store_destroy(&s);
}
