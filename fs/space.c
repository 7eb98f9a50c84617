/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The allocator.  No I/O: where a bitmap is missing, the fault of the volume
 * tree's node goes up to the caller, as everywhere.
 */
#include "fs/space.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/header.h"

#define GRANULE_WORDS (GRANULE_BLOCKS / 64)

/* ---- bits */

/* Set or clear @nr bits; all must have been the opposite. */
static void bits_flip(uint64_t *map, uint32_t bit, uint32_t nr, bool set)
{
	while (nr) {
		uint32_t in_word = 64 - bit % 64;
		uint32_t n = nr < in_word ? nr : in_word;
		uint64_t mask = (n == 64 ? ~0ull : (1ull << n) - 1)
				<< (bit % 64);

		if (set) {
			assert(!(map[bit / 64] & mask));
			map[bit / 64] |= mask;
		} else {
			assert((map[bit / 64] & mask) == mask);
			map[bit / 64] &= ~mask;
		}
		bit += n;
		nr -= n;
	}
}

static bool all_set(const uint64_t *map, uint32_t bit, uint32_t nr)
{
	for (; nr; bit++, nr--)
		if (!(map[bit / 64] >> (bit % 64) & 1))
			return false;
	return true;
}

/* Free bits of word @w among the granules of @mask. */
static uint64_t free_word(const uint64_t *map, uint32_t mask, uint32_t w)
{
	return mask >> (w / GRANULE_WORDS) & 1 ? ~map[w] : 0;
}

/*
 * The first free run of at least @want bits from @from on, or else the longest
 * one; *nr is its length (0: none), cut to @want.
 */
static uint32_t find_run(const uint64_t *map, uint32_t mask, uint32_t from,
			 uint32_t want, uint32_t *nr)
{
	uint32_t best = 0, best_nr = 0, start = 0, len = 0;

	for (uint32_t bit = from; bit < REGION_BLOCKS;) {
		uint64_t word = free_word(map, mask, bit / 64) >> (bit % 64);
		uint32_t left = 64 - bit % 64;
		uint32_t ones;

		if (!word) {
			len = 0;
			bit += left;
			continue;
		}
		if (!(word & 1)) {
			len = 0;
			bit += (uint32_t)__builtin_ctzll(word);
			continue;
		}
		ones = ~word ? (uint32_t)__builtin_ctzll(~word) : 64;
		if (ones > left)
			ones = left;
		if (!len)
			start = bit;
		len += ones;
		bit += ones;
		if (len > best_nr) {
			best = start;
			best_nr = len;
		}
		if (best_nr >= want)
			break;
	}
	*nr = best_nr < want ? best_nr : want;
	return best;
}

static uint32_t count_free(const uint64_t *map, uint32_t mask)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < REGION_WORDS; w++)
		n += (uint32_t)__builtin_popcountll(free_word(map, mask, w));
	return n;
}

/* ---- regions */

static struct region *region_of(struct space *s, block_t block, uint32_t *bit)
{
	size_t i = block / REGION_BLOCKS;

	assert(i < s->nr_regions);
	*bit = block % REGION_BLOCKS;
	return &s->region[i];
}

static bool is_node_bit(const struct region *r, uint32_t bit)
{
	return r->nodes >> (bit / GRANULE_BLOCKS) & 1;
}

static void count(struct space *s, struct region *r, uint32_t bit, uint32_t nr,
		  bool gained)
{
	uint32_t *in_region = is_node_bit(r, bit) ? &r->free_nodes
						  : &r->free_data;
	uint64_t *in_all = is_node_bit(r, bit) ? &s->free_nodes
					       : &s->free_data;

	if (gained) {
		*in_region += nr;
		*in_all += nr;
	} else {
		assert(*in_region >= nr && *in_all >= nr);
		*in_region -= nr;
		*in_all -= nr;
	}
}

int space_init(struct space *s, unsigned int node_blocks, uint64_t epoch)
{
	*s = (struct space){ .node_blocks = node_blocks };
	TAILQ_INIT(&s->freed);
	TAILQ_INIT(&s->readers);
	s->live = calloc(1, sizeof(*s->live));
	if (!s->live)
		return -ENOMEM;
	s->live->commit = epoch;
	return 0;
}

void freed_destroy(struct freed *f)
{
	if (!f)
		return;
	range_vec_destroy(&f->data);
	range_vec_destroy(&f->nodes);
	free(f);
}

void space_destroy(struct space *s)
{
	struct freed *f;

	for (size_t i = 0; i < s->nr_regions; i++)
		free(s->region[i].busy);
	free(s->region);
	range_vec_destroy(&s->allocs);
	range_vec_destroy(&s->frozen_allocs);
	freed_destroy(s->live);
	freed_destroy(s->frozen);
	while ((f = TAILQ_FIRST(&s->freed))) {
		TAILQ_REMOVE(&s->freed, f, link);
		freed_destroy(f);
	}
	*s = (struct space){ 0 };
}

static int make_regions(struct space *s, size_t nr)
{
	size_t room = s->room ? s->room : 16;
	struct region *r;

	if (nr > s->room) {
		while (room < nr)
			room *= 2;
		r = reallocarray(s->region, room, sizeof(*r));
		if (!r)
			return -ENOMEM;
		s->region = r;
		s->room = room;
	}
	while (s->nr_regions < nr)
		s->region[s->nr_regions++] = (struct region){ 0 };
	return 0;
}

/* Both bitmaps, all free; what lies outside backed granules is masked out. */
static int make_bitmaps(struct region *r)
{
	r->busy = calloc(2, REGION_BLOCKS / 8);
	if (!r->busy)
		return -ENOMEM;
	r->disk = r->busy + REGION_WORDS;
	return 0;
}

static bool never_used(const struct region *r)
{
	return !r->backed && !r->busy;
}

int space_extend(struct space *s, uint64_t nr_blocks)
{
	uint64_t end = nr_blocks / GRANULE_BLOCKS * GRANULE_BLOCKS;
	uint64_t first = s->nr_blocks / GRANULE_BLOCKS;
	int err;

	if (end <= s->nr_blocks)
		return 0;
	err = make_regions(s, (end + REGION_BLOCKS - 1) / REGION_BLOCKS);
	for (uint64_t g = first; !err && g < end / GRANULE_BLOCKS; g++) {
		struct region *r = &s->region[g / REGION_GRANULES];

		if (never_used(r))
			err = make_bitmaps(r);
	}
	if (err)
		return err;
	for (uint64_t g = first; g < end / GRANULE_BLOCKS; g++) {
		struct region *r = &s->region[g / REGION_GRANULES];

		assert(!(r->backed >> (g % REGION_GRANULES) & 1));
		r->backed |= 1u << (g % REGION_GRANULES);
		r->free_data += GRANULE_BLOCKS;
		s->free_data += GRANULE_BLOCKS;
		r->dirty = true;
	}
	s->nr_blocks = end;
	return 0;
}

int space_add_summary(struct space *s, uint64_t region,
		      const struct disk_summary *d)
{
	struct region *r;
	uint32_t backed = le32_get(d->backed), nodes = le32_get(d->nodes);
	uint32_t blocks, node_blocks;

	if (region != s->nr_regions || region >= SIZE_MAX / REGION_BLOCKS)
		return -EUCLEAN;
	if (make_regions(s, region + 1))
		return -ENOMEM;
	r = &s->region[region];
	r->backed = backed;
	r->nodes = nodes;
	blocks = (uint32_t)__builtin_popcount(backed) * GRANULE_BLOCKS;
	node_blocks = (uint32_t)__builtin_popcount(nodes) * GRANULE_BLOCKS;
	/* free: data; longest: see FORMAT.md; node slots are counted by load. */
	r->free_data = le32_get(d->free);
	if (r->free_data > blocks - node_blocks)
		return -EUCLEAN;
	s->free_data += r->free_data;
	return 0;
}

static bool overlaps_fixed(block_t start, uint64_t nr, block_t fixed)
{
	return start < fixed + FIXED_BLOCKS && start + nr > fixed;
}

/* Whether [start, start + nr) may ever have been handed out. */
static bool in_use_of_trees(const struct space *s, block_t start, uint32_t nr)
{
	uint64_t end = s->nr_regions * (uint64_t)REGION_BLOCKS;

	if (start >= end || nr > end - start ||
	    overlaps_fixed(start, nr, HEADER_A_BLOCK) ||
	    overlaps_fixed(start, nr, HEADER_B_BLOCK))
		return false;
	for (uint64_t g = start / GRANULE_BLOCKS;
	     g <= (start + nr - 1) / GRANULE_BLOCKS; g++)
		if (!(s->region[g / REGION_GRANULES].backed >>
			      (g % REGION_GRANULES) & 1))
			return false;
	return true;
}

int space_add_freed(struct space *s, uint64_t commit,
		    const struct disk_freed *d, size_t nr)
{
	struct freed *f = TAILQ_LAST(&s->freed, freed_list);

	if (!f || f->commit != commit) {
		f = calloc(1, sizeof(*f));
		if (!f)
			return -ENOMEM;
		f->commit = commit;
		TAILQ_INSERT_TAIL(&s->freed, f, link);
	}
	if (range_vec_reserve(&f->data, nr) || range_vec_reserve(&f->nodes, nr))
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		block_t start = le64_get(d[i].start);
		uint32_t len = le32_get(d[i].nr), bit;
		struct region *r;

		if (!in_use_of_trees(s, start, len))
			return -EUCLEAN;
		r = region_of(s, start, &bit);
		if (is_node_bit(r, bit)) {
			range_vec_add(&f->nodes, start, len,
				      le64_get(d[i].birth));
			s->held_nodes += len;
		} else {
			range_vec_add(&f->data, start, len,
				      le64_get(d[i].birth));
			s->held_data += len;
		}
	}
	f->nr_items++;
	return 0;
}

int space_loaded(struct space *s, uint64_t nr_blocks)
{
	uint64_t data = 0, fixed = 2 * FIXED_BLOCKS;

	s->nr_blocks = nr_blocks;
	if (nr_blocks % GRANULE_BLOCKS || nr_blocks < CONTAINER_BLOCKS_MIN ||
	    s->nr_regions != (nr_blocks + REGION_BLOCKS - 1) / REGION_BLOCKS)
		return -EUCLEAN;
	/* No granule of the last region lies beyond the end. */
	if (nr_blocks % REGION_BLOCKS &&
	    s->region[s->nr_regions - 1].backed >>
		    (nr_blocks % REGION_BLOCKS / GRANULE_BLOCKS))
		return -EUCLEAN;
	for (size_t i = 0; i < s->nr_regions; i++)
		data += (uint64_t)__builtin_popcount(s->region[i].backed &
						     ~s->region[i].nodes) *
			GRANULE_BLOCKS;
	if (data < s->free_data + s->held_data + fixed)
		return -EUCLEAN;
	s->owned_data = data - s->free_data - s->held_data - fixed;
	return 0;
}

int space_load(struct space *s, struct tree *vt, size_t region,
	       struct fault *fault)
{
	struct region *r = &s->region[region];
	struct key key = key_of(0, ITEM_BITMAP, region);
	struct tree_pos pos;
	int err;

	if (r->busy)
		return 0;
	err = tree_find(vt, &key, &pos, fault);
	if (err && err != -ENOENT)
		return err;
	if (make_bitmaps(r))
		return -ENOMEM;
	if (!err) {
		const le64 *words = pos.value;

		for (uint32_t w = 0; w < REGION_WORDS; w++)
			r->busy[w] = r->disk[w] = le64_get(words[w]);
	}
	/* The summary promised so many. */
	if (count_free(r->busy, r->backed & ~r->nodes) != r->free_data) {
		free(r->busy);
		r->busy = NULL;
		return -EUCLEAN;
	}
	r->free_nodes = count_free(r->busy, r->backed & r->nodes);
	s->free_nodes += r->free_nodes;
	return 0;
}

/* ---- data */

static void take(struct space *s, struct region *r, size_t region,
		 uint32_t bit, uint32_t nr, block_t *start)
{
	bits_flip(r->busy, bit, nr, true);
	count(s, r, bit, nr, false);
	*start = (block_t)region * REGION_BLOCKS + bit;
}

/* A run that begins right at @near. */
static bool take_near(struct space *s, block_t near, uint32_t want,
		      block_t *start, uint32_t *nr)
{
	struct region *r;
	uint32_t bit, n = 0;

	if (near / REGION_BLOCKS >= s->nr_regions)
		return false;
	r = region_of(s, near, &bit);
	if (!r->busy || !(r->backed >> (bit / GRANULE_BLOCKS) & 1) ||
	    is_node_bit(r, bit))
		return false;
	while (n < want && bit + n < REGION_BLOCKS &&
	       free_word(r->busy, r->backed & ~r->nodes, (bit + n) / 64) >>
			       ((bit + n) % 64) & 1)
		n++;
	if (!n)
		return false;
	take(s, r, near / REGION_BLOCKS, bit, n, start);
	*nr = n;
	return true;
}

/* A run shorter than this is taken only if the whole container has no other. */
#define RUN_BLOCKS_MIN 16u

int space_alloc(struct space *s, struct tree *vt, uint32_t want, block_t near,
		block_t *start, uint32_t *nr, struct fault *fault)
{
	uint32_t enough = want < RUN_BLOCKS_MIN ? want : RUN_BLOCKS_MIN;
	uint32_t best_bit = 0, best_nr = 0;
	size_t best = 0;

	if (near && take_near(s, near, want, start, nr))
		return 0;
	for (size_t i = 0; i < s->nr_regions; i++) {
		size_t at = (s->cursor + i) % s->nr_regions;
		struct region *r = &s->region[at];
		uint32_t bit, n;
		int err;

		if (!r->free_data)
			continue;
		err = space_load(s, vt, at, fault);
		if (err)
			return err;
		bit = find_run(r->busy, r->backed & ~r->nodes, 0, want, &n);
		if (n > best_nr) {
			best = at;
			best_bit = bit;
			best_nr = n;
		}
		if (n >= enough)
			break;
	}
	if (!best_nr)
		return -ENOSPC;
	take(s, &s->region[best], best, best_bit, best_nr, start);
	*nr = best_nr;
	s->cursor = best;
	return 0;
}

void space_unalloc(struct space *s, block_t start, uint32_t nr)
{
	uint32_t bit;
	struct region *r = region_of(s, start, &bit);

	bits_flip(r->busy, bit, nr, false);
	count(s, r, bit, nr, true);
}

void space_own(struct space *s, block_t start, uint32_t nr)
{
	range_vec_add(&s->allocs, start, nr, 0);
	s->owned_data += nr;
}

void space_free(struct space *s, block_t start, uint32_t nr, uint64_t birth)
{
	range_vec_add(&s->live->data, start, nr, birth);
	s->held_data += nr;
	assert(s->owned_data >= nr);
	s->owned_data -= nr;
}

int space_reserve_deltas(struct space *s, size_t nr)
{
	if (range_vec_reserve(&s->allocs, nr) ||
	    range_vec_reserve(&s->live->data, nr) ||
	    range_vec_reserve(&s->live->nodes, nr))
		return -ENOMEM;
	return 0;
}

/* ---- nodes */

bool space_node_region_wanted(const struct space *s, size_t *region)
{
	for (size_t i = 0; i < s->nr_regions; i++)
		if (s->region[i].nodes && !s->region[i].busy) {
			*region = i;
			return true;
		}
	return false;
}

int space_alloc_nodes(struct space *s, uint32_t want, block_t *start,
		      uint32_t *nr)
{
	uint32_t best_bit = 0, best_nr = 0;
	size_t best = 0;

	for (size_t i = 0; i < s->nr_regions; i++) {
		struct region *r = &s->region[i];
		uint32_t bit, n;

		if (!r->busy || r->free_nodes < s->node_blocks)
			continue;
		/* All runs in node granules begin and end at whole slots. */
		bit = find_run(r->busy, r->backed & r->nodes, 0,
			       want * s->node_blocks, &n);
		if (n > best_nr) {
			best = i;
			best_bit = bit;
			best_nr = n;
		}
		if (n >= want * s->node_blocks)
			break;
	}
	if (best_nr < s->node_blocks)
		return -ENOSPC;
	assert(best_bit % s->node_blocks == 0);
	best_nr -= best_nr % s->node_blocks;
	take(s, &s->region[best], best, best_bit, best_nr, start);
	*nr = best_nr / s->node_blocks;
	return 0;
}

static bool granule_free(const struct region *r, uint32_t g)
{
	for (uint32_t w = g * GRANULE_WORDS; w < (g + 1) * GRANULE_WORDS; w++)
		if (r->busy[w] || r->disk[w])
			return false;
	return true;
}

static void turn_granule(struct space *s, struct region *r, uint32_t g)
{
	bool to_nodes = !(r->nodes >> g & 1);

	count(s, r, g * GRANULE_BLOCKS, GRANULE_BLOCKS, false);
	r->nodes ^= 1u << g;
	count(s, r, g * GRANULE_BLOCKS, GRANULE_BLOCKS, true);
	assert(to_nodes == is_node_bit(r, g * GRANULE_BLOCKS));
	r->dirty = true;
}

int space_open_node_granule(struct space *s, struct tree *vt,
			    struct fault *fault)
{
	for (size_t i = 0; i < s->nr_regions; i++) {
		struct region *r = &s->region[i];
		int err;

		if (r->free_data < GRANULE_BLOCKS)
			continue;
		err = space_load(s, vt, i, fault);
		if (err)
			return err;
		for (uint32_t g = 0; g < REGION_GRANULES; g++)
			if ((r->backed & ~r->nodes) >> g & 1 &&
			    granule_free(r, g)) {
				turn_granule(s, r, g);
				return 0;
			}
	}
	return -ENOSPC;
}

void space_close_node_granules(struct space *s, uint64_t keep)
{
	for (size_t i = s->nr_regions; i-- > 0;) {
		struct region *r = &s->region[i];

		for (uint32_t g = REGION_GRANULES; r->busy && g-- > 0;) {
			if (s->free_nodes < keep + GRANULE_BLOCKS)
				return;
			if (r->nodes >> g & 1 && granule_free(r, g))
				turn_granule(s, r, g);
		}
	}
}

int space_format(struct space *s, unsigned int nr_granules)
{
	static const block_t fixed[] = { HEADER_A_BLOCK, HEADER_B_BLOCK };
	struct fault fault;

	for (size_t i = 0; i < 2; i++) {
		uint32_t bit;
		struct region *r = region_of(s, fixed[i], &bit);

		bits_flip(r->busy, bit, FIXED_BLOCKS, true);
		bits_flip(r->disk, bit, FIXED_BLOCKS, true);
		count(s, r, bit, FIXED_BLOCKS, false);
	}
	while (nr_granules--) {
		int err = space_open_node_granule(s, NULL, &fault);

		if (err)
			return err;
	}
	return 0;
}

/* ---- commits */

int space_freeze(struct space *s, uint64_t epoch)
{
	struct freed *next = calloc(1, sizeof(*next));

	if (!next)
		return -ENOMEM;
	assert(!s->frozen && !s->frozen_allocs.nr);
	next->commit = epoch;
	s->frozen = s->live;
	s->live = next;
	range_vec_destroy(&s->frozen_allocs);
	s->frozen_allocs = s->allocs;
	s->allocs = RANGE_VEC_EMPTY;
	s->cursor = 0;
	return 0;
}

void space_commit_done(struct space *s)
{
	struct freed *f = s->frozen;

	range_vec_destroy(&s->frozen_allocs);
	s->frozen = NULL;
	if (!f->data.nr && !f->nodes.nr) {
		freed_destroy(f);
		return;
	}
	s->held_nodes += f->nodes.blocks;
	TAILQ_INSERT_TAIL(&s->freed, f, link);
}

uint64_t space_held_nodes(const struct space *s)
{
	return s->held_nodes + s->live->nodes.blocks +
	       (s->frozen ? s->frozen->nodes.blocks : 0);
}

static bool wanted_by_reader(const struct space *s, uint64_t commit)
{
	const struct reader *oldest = TAILQ_FIRST(&s->readers);

	return oldest && oldest->epoch <= commit;
}

static int give_back(struct space *s, struct tree *vt, const struct range *r,
		     struct fault *fault)
{
	block_t start = r->start, end = r->start + r->nr;
	uint32_t left = r->nr;

	/* All bitmaps first, so that a range is handed back whole. */
	for (size_t i = r->start / REGION_BLOCKS;
	     i <= (end - 1) / REGION_BLOCKS; i++) {
		block_t first = (block_t)i * REGION_BLOCKS;
		uint32_t from = first < start ? (uint32_t)(start - first) : 0;
		uint32_t to = end - first < REGION_BLOCKS
			? (uint32_t)(end - first) : REGION_BLOCKS;
		int err = space_load(s, vt, i, fault);

		if (err)
			return err;
		/* The list may have been read from the disk. */
		if (!all_set(s->region[i].busy, from, to - from) ||
		    !all_set(s->region[i].disk, from, to - from))
			return -EUCLEAN;
	}
	while (left) {
		uint32_t bit;
		struct region *region = region_of(s, start, &bit);
		uint32_t n = REGION_BLOCKS - bit < left ? REGION_BLOCKS - bit
							: left;
		/* Neighbouring granules may be of different kinds. */
		uint32_t in_granule = GRANULE_BLOCKS - bit % GRANULE_BLOCKS;

		if (n > in_granule)
			n = in_granule;
		bits_flip(region->busy, bit, n, false);
		count(s, region, bit, n, true);
		start += n;
		left -= n;
	}
	return 0;
}

int space_release(struct space *s, struct tree *vt, uint64_t durable,
		  struct fault *fault)
{
	struct freed *f;

	TAILQ_FOREACH(f, &s->freed, link) {
		/* The commit before must stay whole, should the disk have lied. */
		if (f->commit + 1 > durable || wanted_by_reader(s, f->commit))
			break;
		while (f->given < f->data.nr + f->nodes.nr) {
			bool node = f->given >= f->data.nr;
			const struct range *r =
				node ? &f->nodes.r[f->given - f->data.nr]
				     : &f->data.r[f->given];
			int err = give_back(s, vt, r, fault);

			if (err)
				return err;
			if (node)
				s->held_nodes -= r->nr;
			else
				s->held_data -= r->nr;
			f->given++;
		}
	}
	return 0;
}

void space_reader_enter(struct space *s, struct reader *r, uint64_t epoch)
{
	struct reader *before = TAILQ_LAST(&s->readers, reader_list);

	r->epoch = epoch;
	while (before && before->epoch > epoch)
		before = TAILQ_PREV(before, reader_list, link);
	if (before)
		TAILQ_INSERT_AFTER(&s->readers, before, r, link);
	else
		TAILQ_INSERT_HEAD(&s->readers, r, link);
}

void space_reader_leave(struct space *s, struct reader *r)
{
	TAILQ_REMOVE(&s->readers, r, link);
}

static void disk_flip(struct space *s, block_t start, uint32_t nr, bool set)
{
	while (nr) {
		uint32_t bit;
		struct region *r = region_of(s, start, &bit);
		uint32_t n = REGION_BLOCKS - bit < nr ? REGION_BLOCKS - bit
						      : nr;

		assert(r->busy);
		bits_flip(r->disk, bit, n, set);
		r->dirty = true;
		start += n;
		nr -= n;
	}
}

void space_disk_set(struct space *s, block_t start, uint32_t nr)
{
	disk_flip(s, start, nr, true);
}

void space_disk_clear(struct space *s, block_t start, uint32_t nr)
{
	disk_flip(s, start, nr, false);
}

void space_encode(const struct space *s, size_t region,
		  struct disk_summary *summary, struct disk_bitmap *bitmap)
{
	const struct region *r = &s->region[region];
	uint32_t data = r->backed & ~r->nodes;
	le64 *words = (le64 *)bitmap->bits;
	uint32_t longest;

	assert(r->busy);
	find_run(r->disk, data, 0, REGION_BLOCKS, &longest);
	*summary = (struct disk_summary){
		.backed = le32_of(r->backed),
		.nodes = le32_of(r->nodes),
		.free = le32_of(count_free(r->disk, data)),
		.longest = le32_of(longest),
	};
	for (uint32_t w = 0; w < REGION_WORDS; w++)
		words[w] = le64_of(r->disk[w]);
}
