/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The allocator against an array with one state a block.
 */
#include <criterion/criterion.h>

#include "fs/space.h"
#include "support.h"
#include "tests/support/rng.h"

#define REGIONS 3
#define BLOCKS (REGIONS * REGION_BLOCKS)
#define NODE_BLOCKS 4
#define NODE_GRANULES 4u

static struct space s;
static struct store_and_tree {
	struct node_store store;
	struct tree vt;
} disk; /* a volume tree, all of it in memory */

static void start_space(void)
{
	must(node_store_init(&disk.store, 14, 0, 0));
	tree_init(&disk.vt, TREE_VOLUME, &disk.store);
	disk.vt.epoch = 1;
	must(tree_init_empty(&disk.vt));
	must(space_init(&s, NODE_BLOCKS, 1));
	must(space_extend(&s, BLOCKS));
	must(space_format(&s, NODE_GRANULES));
}

static void end_space(void)
{
	space_destroy(&s);
	tree_destroy(&disk.vt);
	node_store_destroy(&disk.store);
}

TestSuite(space, .init = start_space, .fini = end_space, .timeout = 60);

static int alloc(uint32_t want, block_t near, block_t *start, uint32_t *nr)
{
	struct fault fault;

	return space_alloc(&s, &disk.vt, want, near, start, nr, &fault);
}

static void release(uint64_t durable)
{
	struct fault fault;

	must(space_release(&s, &disk.vt, durable, &fault));
}

/* The part of a commit that is the allocator's. */
static void end_epoch(uint64_t epoch)
{
	must(space_freeze(&s, epoch + 1));
	for (size_t i = 0; i < s.frozen_allocs.nr; i++)
		space_disk_set(&s, s.frozen_allocs.r[i].start,
			       s.frozen_allocs.r[i].nr);
	space_commit_done(&s);
}

/* ---- against an array */

enum state {
	FREE,
	FIXED,
	NODE, /* in a granule for nodes */
	IN_FLIGHT,
	OWNED,
	HELD, /* freed */
};

struct model {
	uint8_t state[BLOCKS];
	uint64_t freed_in[BLOCKS]; /* epoch */
	uint64_t epoch, durable;
};

static uint64_t count(const struct model *m, enum state st)
{
	uint64_t nr = 0;

	for (unsigned int i = 0; i < BLOCKS; i++)
		nr += m->state[i] == st;
	return nr;
}

static void must_agree(const struct model *m)
{
	cr_assert_eq(s.free_data, count(m, FREE));
	cr_assert_eq(s.owned_data, count(m, OWNED));
	cr_assert_eq(s.held_data, count(m, HELD));
	for (unsigned int i = 0; i < BLOCKS; i++) {
		const struct region *r = &s.region[i / REGION_BLOCKS];
		bool busy = r->busy[i % REGION_BLOCKS / 64] >> (i % 64) & 1;

		if (m->state[i] != NODE)
			cr_assert_eq(busy, m->state[i] != FREE, "block %u", i);
	}
}

static struct model *model_new(void)
{
	struct model *m = calloc(1, sizeof(*m));

	m->epoch = 1;
	for (unsigned int i = 0; i < BLOCKS; i++) {
		const struct region *r = &s.region[i / REGION_BLOCKS];

		if (i % HEADER_B_BLOCK < FIXED_BLOCKS &&
		    i < HEADER_B_BLOCK + FIXED_BLOCKS)
			m->state[i] = FIXED;
		else if (r->nodes >> (i % REGION_BLOCKS / GRANULE_BLOCKS) & 1)
			m->state[i] = NODE;
	}
	must_agree(m);
	return m;
}

/* Set [start, start + nr), all of which must be @from. */
static void turn(struct model *m, block_t start, uint32_t nr, enum state from,
		 enum state to)
{
	for (block_t b = start; b < start + nr; b++) {
		cr_assert_lt(b, BLOCKS);
		cr_assert_eq(m->state[b], from, "block %lu", b);
		m->state[b] = (uint8_t)to;
		if (to == HELD)
			m->freed_in[b] = m->epoch;
	}
}

/* A random run of blocks in state @st; 0: none found. */
static uint32_t find_run(const struct model *m, struct rng *r, enum state st,
			 block_t *start)
{
	block_t at = rng_below(r, BLOCKS);
	uint32_t nr = 0, most = 1 + (uint32_t)rng_below(r, 200);

	for (unsigned int i = 0; i < BLOCKS && m->state[at] != st; i++)
		at = (at + 1) % BLOCKS;
	*start = at;
	while (at < BLOCKS && nr < most && m->state[at] == st) {
		/* Regions' ends are ends of what is given back at once. */
		if (nr && at % REGION_BLOCKS == 0)
			break;
		at++;
		nr++;
	}
	return nr;
}

struct readers {
	struct reader r[4];
	bool in[4];
};

static bool held_back(const struct readers *rs, uint64_t freed_in)
{
	for (unsigned int i = 0; i < 4; i++)
		if (rs->in[i] && rs->r[i].epoch <= freed_in)
			return true;
	return false;
}

static void commit(struct model *m, struct readers *rs)
{
	struct freed *f;

	end_epoch(m->epoch++);
	m->durable = m->epoch - 1;
	release(m->durable);
	/* Lists that are given back whole leave the image. */
	while ((f = TAILQ_FIRST(&s.freed)) && f->given == f->data.nr) {
		for (size_t i = 0; i < f->data.nr; i++)
			space_disk_clear(&s, f->data.r[i].start,
					 f->data.r[i].nr);
		TAILQ_REMOVE(&s.freed, f, link);
		freed_destroy(f);
	}
	for (unsigned int i = 0; i < BLOCKS; i++)
		if (m->state[i] == HELD && m->freed_in[i] < m->durable &&
		    !held_back(rs, m->freed_in[i]))
			m->state[i] = FREE;
}

static void step(struct model *m, struct rng *r, struct readers *rs)
{
	uint32_t want = 1 + (uint32_t)rng_below(r, 300), nr;
	unsigned int i = (unsigned int)rng_below(r, 4);
	block_t start, near = 0;

	switch (rng_below(r, 8)) {
	case 0:
	case 1:
	case 2:
		if (rng_one_in(r, 2))
			near = rng_below(r, BLOCKS);
		if (alloc(want, near, &start, &nr)) {
			cr_assert_eq(count(m, FREE), 0);
			break;
		}
		cr_assert(nr >= 1 && nr <= want);
		turn(m, start, nr, FREE, IN_FLIGHT);
		break;
	case 3:
		nr = find_run(m, r, IN_FLIGHT, &start);
		if (!nr)
			break;
		space_unalloc(&s, start, nr);
		turn(m, start, nr, IN_FLIGHT, FREE);
		break;
	case 4:
	case 5:
		nr = find_run(m, r, IN_FLIGHT, &start);
		must(space_reserve_deltas(&s, 1));
		if (!nr)
			break;
		space_own(&s, start, nr);
		turn(m, start, nr, IN_FLIGHT, OWNED);
		break;
	case 6:
		nr = find_run(m, r, OWNED, &start);
		must(space_reserve_deltas(&s, 1));
		if (!nr)
			break;
		space_free(&s, start, nr, 1);
		turn(m, start, nr, OWNED, HELD);
		break;
	default:
		/* A file's data is read in the live epoch, a node maybe in the
		 * one before. */
		if (rs->in[i])
			space_reader_leave(&s, &rs->r[i]);
		else
			space_reader_enter(&s, &rs->r[i],
					   m->epoch - rng_below(r, 2));
		rs->in[i] = !rs->in[i];
	}
}

Test(space, random_use_agrees_with_an_array)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct readers rs = { 0 };
		struct rng r = { seed };
		struct model *m;

		if (seed > 1) {
			end_space();
			start_space();
		}
		m = model_new();
		for (unsigned int i = 0; i < 3000; i++) {
			step(m, &r, &rs);
			if (rng_one_in(&r, 60)) {
				commit(m, &rs);
				must_agree(m);
			}
		}
		must_agree(m);
		free(m);
	}
}

/* ---- one thing at a time */

Test(space, all_data_blocks_can_be_taken)
{
	uint64_t left =
		BLOCKS - 2 * FIXED_BLOCKS - NODE_GRANULES * GRANULE_BLOCKS;
	block_t start;
	uint32_t nr;

	cr_assert_eq(s.free_data, left);
	while (left) {
		cr_assert_eq(alloc(1000, 0, &start, &nr), 0);
		left -= nr;
		cr_assert_eq(s.free_data, left);
	}
	cr_assert_eq(alloc(1, 0, &start, &nr), -ENOSPC);
	cr_assert_eq(alloc(1, 5000, &start, &nr), -ENOSPC);
	/* Nodes' slots are not data's. */
	cr_assert_eq(s.free_nodes, NODE_GRANULES * GRANULE_BLOCKS);
}

Test(space, what_is_near_is_taken_if_it_is_free)
{
	block_t a, b;
	uint32_t nr;

	must(alloc(10, 0, &a, &nr));
	must(alloc(10, a + 10, &b, &nr));
	cr_assert_eq(b, a + 10);
	cr_assert_eq(nr, 10);
	must(alloc(10, a, &b, &nr));
	cr_assert_neq(b, a);
	/* What lies beyond the end, or is not data's, is nowhere near. */
	must(alloc(1, BLOCKS + 5, &b, &nr));
	must(alloc(1, 5, &b, &nr));
	cr_assert_geq(b, FIXED_BLOCKS);
	must(alloc(1, FIXED_BLOCKS, &b, &nr));
	cr_assert_neq(b, FIXED_BLOCKS, "first granule for nodes");
}

Test(space, TD1_freed_block_waits_for_two_commits)
{
	struct fault fault;
	block_t start;
	uint32_t nr;
	uint64_t free_before;

	must(space_reserve_deltas(&s, 4));
	must(alloc(8, 0, &start, &nr));
	free_before = s.free_data;
	space_own(&s, start, nr);
	space_free(&s, start, nr, 1);
	cr_assert_eq(s.held_data, 8);
	/* Commit 1 is the first to do without: 0 may still reach it. */
	end_epoch(1);
	release(1);
	cr_assert_eq(s.free_data, free_before);
	end_epoch(2);
	must(space_release(&s, &disk.vt, 2, &fault));
	cr_assert_eq(s.free_data, free_before + 8);
	cr_assert_eq(s.held_data, 0);
}

Test(space, TD7_reader_keeps_what_was_there_when_it_began)
{
	struct reader r, later;
	block_t start;
	uint32_t nr;

	must(space_reserve_deltas(&s, 4));
	must(alloc(8, 0, &start, &nr));
	space_own(&s, start, nr);
	space_reader_enter(&s, &r, 1);
	space_free(&s, start, nr, 1);
	for (uint64_t c = 1; c <= 5; c++) {
		end_epoch(c);
		release(c);
		cr_assert_eq(s.held_data, 8);
	}
	/* One that began since does not matter. */
	space_reader_enter(&s, &later, 6);
	space_reader_leave(&s, &r);
	release(5);
	cr_assert_eq(s.held_data, 0);
	space_reader_leave(&s, &later);
}

/* A reader of a node of the volume tree may be of the epoch before. */
Test(space, TD7_oldest_reader_counts_whoever_came_first)
{
	struct reader newer, older;
	block_t start;
	uint32_t nr;

	must(space_reserve_deltas(&s, 4));
	must(alloc(8, 0, &start, &nr));
	space_own(&s, start, nr);
	space_free(&s, start, nr, 1);
	end_epoch(1);
	space_reader_enter(&s, &newer, 2);
	space_reader_enter(&s, &older, 1);
	end_epoch(2);
	release(2);
	cr_assert_eq(s.held_data, 8);
	space_reader_leave(&s, &older);
	release(2);
	cr_assert_eq(s.held_data, 0);
	space_reader_leave(&s, &newer);
}

Test(space, TD2_blocks_in_flight_are_in_no_commit)
{
	struct disk_summary summary;
	struct disk_bitmap bitmap;
	block_t start;
	uint32_t nr, free_before, bit;
	size_t region;

	must(alloc(8, 0, &start, &nr));
	region = start / REGION_BLOCKS;
	bit = start % REGION_BLOCKS;
	must(space_freeze(&s, 2));
	cr_assert_eq(s.frozen_allocs.nr, 0);
	space_encode(&s, region, &summary, &bitmap);
	cr_assert(!(bitmap.bits[bit / 8] >> (bit % 8) & 1));
	free_before = le32_get(summary.free);
	/* Owned after the freeze: the next commit's. */
	must(space_reserve_deltas(&s, 1));
	space_own(&s, start, nr);
	cr_assert_eq(s.frozen_allocs.nr, 0);
	space_commit_done(&s);
	must(space_freeze(&s, 3));
	cr_assert_eq(s.frozen_allocs.blocks, 8);
	space_disk_set(&s, start, nr);
	space_encode(&s, region, &summary, &bitmap);
	cr_assert_eq(le32_get(summary.free), free_before - 8);
	cr_assert(bitmap.bits[bit / 8] >> (bit % 8) & 1);
	space_commit_done(&s);
}

Test(space, node_slots_are_whole_and_in_runs)
{
	uint32_t left = NODE_GRANULES * GRANULE_BLOCKS / NODE_BLOCKS, nr;
	block_t start;

	must(space_alloc_nodes(&s, 10, &start, &nr));
	cr_assert_eq(nr, 10);
	cr_assert_eq(start % NODE_BLOCKS, 0);
	left -= nr;
	while (left) {
		must(space_alloc_nodes(&s, 1000, &start, &nr));
		cr_assert_eq(start % NODE_BLOCKS, 0);
		cr_assert_leq(nr, left);
		left -= nr;
	}
	cr_assert_eq(s.free_nodes, 0);
	cr_assert_eq(space_alloc_nodes(&s, 1, &start, &nr), -ENOSPC);
}

Test(space, granules_change_sides_when_they_are_free)
{
	uint64_t data = s.free_data, nodes = s.free_nodes;
	struct fault fault;
	block_t start;
	uint32_t nr;

	must(space_open_node_granule(&s, &disk.vt, &fault));
	cr_assert_eq(s.free_data, data - GRANULE_BLOCKS);
	cr_assert_eq(s.free_nodes, nodes + GRANULE_BLOCKS);
	space_close_node_granules(&s, nodes);
	cr_assert_eq(s.free_data, data);
	cr_assert_eq(s.free_nodes, nodes);
	/* One in use stays. */
	must(space_alloc_nodes(&s, 1, &start, &nr));
	space_close_node_granules(&s, 0);
	cr_assert_eq(s.free_nodes, GRANULE_BLOCKS - NODE_BLOCKS);
	/* None is left when data has a block in each. */
	while (!alloc(8000, 0, &start, &nr))
		;
	cr_assert_eq(space_open_node_granule(&s, &disk.vt, &fault), -ENOSPC);
}

Test(space, granule_in_the_newest_commit_does_not_change_sides)
{
	struct fault fault;
	uint64_t opened = 0;
	block_t start;
	uint32_t nr;

	/* Free in memory, but commit 1's image still has it as taken. */
	must(alloc(1, 0, &start, &nr));
	space_disk_set(&s, start, nr);
	space_unalloc(&s, start, nr);
	while (!space_open_node_granule(&s, &disk.vt, &fault))
		opened++;
	cr_assert_eq(opened, (BLOCKS - 2 * FIXED_BLOCKS) / GRANULE_BLOCKS -
				     NODE_GRANULES - 1);
}

Test(space, extend_adds_whole_granules)
{
	uint64_t data = s.free_data;

	must(space_extend(&s, BLOCKS + GRANULE_BLOCKS - 1));
	cr_assert_eq(s.nr_blocks, BLOCKS);
	cr_assert_eq(s.free_data, data);
	must(space_extend(&s, BLOCKS + 3 * GRANULE_BLOCKS + 7));
	cr_assert_eq(s.nr_blocks, BLOCKS + 3 * GRANULE_BLOCKS);
	cr_assert_eq(s.free_data, data + 3 * GRANULE_BLOCKS);
	must(space_extend(&s, BLOCKS + 2 * REGION_BLOCKS));
	cr_assert_eq(s.free_data, data + 2 * REGION_BLOCKS);
	cr_assert_eq(s.nr_regions, REGIONS + 2);
	/* Never smaller. */
	must(space_extend(&s, BLOCKS));
	cr_assert_eq(s.nr_blocks, BLOCKS + 2 * REGION_BLOCKS);
}

/* ---- to the volume tree and back */

static void put_item(struct key key, const void *value, size_t len)
{
	struct range_vec frees = RANGE_VEC_EMPTY;

	disk.vt.frees = &frees;
	must(node_store_promise(&disk.store, 16));
	tree_put(&disk.vt, &key, value, len);
	node_store_release(&disk.store, 16);
	cr_assert_eq(frees.nr, 0);
}

/* As commit.c does for the regions, and load.c when opening. */
static int save_and_load(struct space *to, uint64_t nr_blocks)
{
	struct fault fault;
	size_t region;
	int err = 0;

	must(space_init(to, NODE_BLOCKS, 9));
	for (size_t i = 0; i < s.nr_regions; i++) {
		struct disk_summary summary;
		struct disk_bitmap bitmap;

		space_encode(&s, i, &summary, &bitmap);
		put_item(key_of(0, ITEM_SUMMARY, i), &summary, sizeof(summary));
		put_item(key_of(0, ITEM_BITMAP, i), &bitmap, sizeof(bitmap));
		err = space_add_summary(to, i, &summary);
		if (err)
			return err;
	}
	while (!err && space_node_region_wanted(to, &region))
		err = space_load(to, &disk.vt, region, &fault);
	return err ? err : space_loaded(to, nr_blocks);
}

Test(space, regions_survive_the_way_to_the_disk)
{
	struct space t;
	struct fault fault;
	block_t start;
	uint32_t nr;
	struct rng r = { 3 };

	must(space_reserve_deltas(&s, 200));
	for (unsigned int i = 0; i < 100; i++) {
		must(alloc(1 + (uint32_t)rng_below(&r, 150),
			   rng_below(&r, BLOCKS), &start, &nr));
		space_own(&s, start, nr);
		space_disk_set(&s, start, nr);
	}
	must(space_alloc_nodes(&s, 7, &start, &nr));
	space_disk_set(&s, start, nr * NODE_BLOCKS);

	cr_assert_eq(save_and_load(&t, BLOCKS), 0);
	cr_assert_eq(t.free_data, s.free_data);
	cr_assert_eq(t.free_nodes, s.free_nodes);
	cr_assert_eq(t.owned_data, s.owned_data);
	cr_assert_eq(t.nr_blocks, s.nr_blocks);
	for (size_t i = 0; i < REGIONS; i++) {
		must(space_load(&t, &disk.vt, i, &fault));
		cr_assert_eq(memcmp(t.region[i].busy, s.region[i].busy, 1024),
			     0);
		cr_assert_eq(memcmp(t.region[i].disk, s.region[i].disk, 1024),
			     0);
		cr_assert_eq(t.region[i].nodes, s.region[i].nodes);
		cr_assert_eq(t.region[i].backed, s.region[i].backed);
	}
	space_destroy(&t);
}

Test(space, size_of_the_superblock_must_fit)
{
	static const uint64_t wrong[] = { 0, BLOCKS - 1, BLOCKS + 1,
					  BLOCKS - REGION_BLOCKS,
					  BLOCKS + GRANULE_BLOCKS };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct space t;

		cr_assert_eq(save_and_load(&t, wrong[i]), -EUCLEAN);
		space_destroy(&t);
	}
}

/* One granule too many would be handed out beyond the end. */
Test(space, backing_beyond_the_end_is_refused)
{
	struct space t;

	cr_assert_eq(save_and_load(&t, BLOCKS - GRANULE_BLOCKS), -EUCLEAN);
	space_destroy(&t);
}

Test(space, summaries_come_in_order_and_agree_with_bitmaps)
{
	struct disk_summary d = { le32_of(UINT32_MAX), le32_of(0),
				  le32_of(REGION_BLOCKS), le32_of(1) };
	struct fault fault;
	struct space t;

	must(space_init(&t, NODE_BLOCKS, 9));
	cr_assert_eq(space_add_summary(&t, 1, &d), -EUCLEAN);
	cr_assert_eq(space_add_summary(&t, 0, &d), 0);
	cr_assert_eq(space_add_summary(&t, 0, &d), -EUCLEAN);
	/* More free than its granules for data have. */
	d.nodes = le32_of(1);
	cr_assert_eq(space_add_summary(&t, 1, &d), -EUCLEAN);
	space_destroy(&t);

	/* Without a bitmap all is free; the summary says otherwise. */
	must(space_init(&t, NODE_BLOCKS, 9));
	d = (struct disk_summary){ le32_of(UINT32_MAX), le32_of(0),
				   le32_of(100), le32_of(1) };
	must(space_add_summary(&t, 0, &d));
	cr_assert_eq(space_load(&t, &disk.vt, 0, &fault), -EUCLEAN);
	space_destroy(&t);
}

/* A region as it is in a container of @backed granules, all else free. */
static void add_region(struct space *t, uint32_t backed, uint32_t nodes)
{
	struct disk_summary d = { le32_of(backed), le32_of(nodes),
				  le32_of((uint32_t)__builtin_popcount(backed &
								       ~nodes) *
					  GRANULE_BLOCKS),
				  le32_of(1) };

	must(space_add_summary(t, t->nr_regions, &d));
}

Test(space, freed_lists_are_bounded)
{
	struct disk_freed d = { le64_of(1000), le32_of(1), le64_of(1) };
	struct space t;

	must(space_init(&t, NODE_BLOCKS, 9));
	add_region(&t, UINT32_MAX >> 1, 2);
	cr_assert_eq(space_add_freed(&t, 5, &d, 1), 0);
	cr_assert_eq(t.held_data, 1);
	d.start = le64_of(300);
	cr_assert_eq(space_add_freed(&t, 5, &d, 1), 0);
	cr_assert_eq(t.held_nodes, 1);
	/* Past the end; running past it; as long as can be. */
	d.start = le64_of(REGION_BLOCKS);
	cr_assert_eq(space_add_freed(&t, 6, &d, 1), -EUCLEAN);
	d.start = le64_of(7000);
	d.nr = le32_of(REGION_BLOCKS);
	cr_assert_eq(space_add_freed(&t, 6, &d, 1), -EUCLEAN);
	d.nr = le32_of(UINT32_MAX);
	cr_assert_eq(space_add_freed(&t, 6, &d, 1), -EUCLEAN);
	/* Without space of the host; headers and superblocks. */
	d = (struct disk_freed){ le64_of(31 * GRANULE_BLOCKS), le32_of(1),
				 le64_of(1) };
	cr_assert_eq(space_add_freed(&t, 6, &d, 1), -EUCLEAN);
	d.start = le64_of(FIXED_BLOCKS - 1);
	cr_assert_eq(space_add_freed(&t, 6, &d, 1), -EUCLEAN);
	d.start = le64_of(HEADER_B_BLOCK - 3);
	d.nr = le32_of(4);
	cr_assert_eq(space_add_freed(&t, 6, &d, 1), -EUCLEAN);
	space_destroy(&t);
}

/* Only what is taken can be given back. */
Test(space, freed_list_of_free_blocks_is_refused)
{
	struct disk_freed d = { le64_of(1000), le32_of(1), le64_of(1) };
	struct fault fault;
	struct space t;

	must(space_init(&t, NODE_BLOCKS, 9));
	add_region(&t, UINT32_MAX, 2);
	must(space_add_freed(&t, 5, &d, 1));
	cr_assert_eq(space_release(&t, &disk.vt, 8, &fault), -EUCLEAN);
	space_destroy(&t);
}
