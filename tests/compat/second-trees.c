/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * "Nodes" and "Volume tree", and the books: who owns each block.
 */
#include "tests/compat/second.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *owner;

void own(uint64_t block, uint64_t nr, enum owner who)
{
	want(block < nr_blocks && nr <= nr_blocks - block, "outside", block);
	for (; nr--; block++) {
		want(owner[block] == FREE, "block with two owners", block);
		owner[block] = (uint8_t)who;
	}
}

/* ---- "Nodes" */

static struct key get_key(const uint8_t *p)
{
	return (struct key){ u64(p), u64(p + 9), p[8], false };
}

bool below(struct key a, struct key b)
{
	if (a.end || b.end)
		return !a.end;
	if (a.inode != b.inode)
		return a.inode < b.inode;
	if (a.type != b.type)
		return a.type < b.type;
	return a.offset < b.offset;
}

static void check_hint(const struct pointer *p, const uint8_t *node)
{
	uint8_t tweak[16] = { 0 }, h[64];

	put(tweak, p->block, 8);
	cbc(keys_of(p->key_id)->salvage, 32, tweak, node, 64, h);
	want(!memcmp(h, p->tag, 16) && !memcmp(h + 16, "tusknode", 8) &&
		     u64(h + 24) == p->n.session &&
		     u32(h + 32) == p->n.counter && u16(h + 36) == p->key_id &&
		     h[38] == node_log2 && zero(h + 39, 25),
	     "hint", p->block);
}

static void check_head(const struct pointer *p, uint64_t tree,
		       const uint8_t *head, struct key low)
{
	want(!memcmp(head, uuid, 16) && u64(head + 16) == tree &&
		     u64(head + 24) == p->block && u64(head + 32) == p->birth &&
		     head[57] == p->level && zero(head + 60, 4),
	     "head of a node", p->block);
	want(!below(get_key(head + 40), low), "low key", p->block);
	want(p->birth && p->birth <= commit, "birth", p->block);
	want(!p->level || u16(head + 58), "internal node without children",
	     p->block);
}

static void walk(const uint8_t *pointer, unsigned int level, uint64_t tree,
		 struct key low, struct key high, item_fn *item)
{
	struct pointer p = get_pointer(pointer);
	size_t len = ((size_t)1 << node_log2) - 64, end;
	const uint8_t *node = block_at(p.block, (len + 64) / BLOCK);
	uint8_t aad[26], *n = get_memory(len), *at;
	struct key before;
	unsigned int nr;

	want(p.level == level, "level", p.block);
	own(p.block, (len + 64) / BLOCK, NODE);
	at = put_bytes(aad, uuid, 16);
	put(put(at, tree, 8), p.key_id, 2);
	want(unseal(keys_of(p.key_id)->node, p.n, aad, 26, node + 64, len, n,
		    p.tag),
	     "node is not authentic", p.block);
	check_hint(&p, node);
	check_head(&p, tree, n, low);

	nr = u16(n + 58);
	end = len;
	want(nr <= (len - 64) / 22, "number of items", p.block);
	before = get_key(n + 40);
	for (unsigned int i = 0; i < nr; i++) {
		const uint8_t *slot = n + 64 + 22 * i;
		struct key k = get_key(slot), next = high;
		size_t pos = u16(slot + 18), size = u16(slot + 20);

		want(!slot[17] && !below(k, before) && below(k, high) &&
			     (!i || below(before, k)),
		     "order of items", p.block);
		want(pos + size == end && pos >= 64 + 22 * (size_t)nr,
		     "layout of values", p.block);
		end = pos;
		before = k;
		if (!level) {
			item(k, n + pos, size);
			continue;
		}
		want(size == 56, "pointer's length", p.block);
		if (i + 1 < nr)
			next = get_key(slot + 22);
		walk(n + pos, level - 1, tree, k, next, item);
	}
	want(zero(n + 64 + 22 * nr, end - 64 - 22 * nr), "gap", p.block);
	free(n);
}

void walk_tree(const uint8_t *pointer, uint64_t tree, item_fn *item)
{
	struct key low = { 0 }, high = { .end = true };

	walk(pointer, pointer[38], tree, low, high, item);
}

/* ---- "Volume tree" */

uint8_t seed[32], root[72];
static bool have_info, have_root;
static uint64_t nr_regions, nr_summaries;
static uint8_t *summaries, *bitmaps;

static void freed_item(struct key k, const uint8_t *v, size_t len)
{
	want(k.inode == 256 && k.offset >> 24 <= commit, "FREED", k.offset);
	want(len && len % 20 == 0, "FREED", k.offset);
	for (; len; v += 20, len -= 20) {
		want(u64(v) && u32(v + 8), "FREED", k.offset);
		own(u64(v), u32(v + 8), FREED);
	}
}

static void volume_item(struct key k, const uint8_t *v, size_t len)
{
	switch (k.type) {
	case 1:
		want(!k.inode && !k.offset && len == 64 && zero(v + 32, 32),
		     "INFO", 0);
		memcpy(seed, v, 32);
		have_info = true;
		break;
	case 2:
		want(!k.inode && len == 16 && k.offset == nr_summaries &&
			     k.offset < nr_regions,
		     "SUMMARY", k.offset);
		memcpy(summaries + 16 * nr_summaries++, v, 16);
		break;
	case 3:
		want(!k.inode && len == 1024 && k.offset < nr_regions, "BITMAP",
		     k.offset);
		memcpy(bitmaps + 1024 * k.offset, v, 1024);
		break;
	case 4:
		freed_item(k, v, len);
		break;
	case 5:
		want(k.inode == 256 && !k.offset && len == 72, "ROOT", 0);
		memcpy(root, v, 72);
		have_root = true;
		break;
	default:
		die("item of type %u in the volume tree", k.type);
	}
}

void open_volume(void)
{
	nr_regions = (nr_blocks + REGION - 1) / REGION;
	owner = get_memory(nr_blocks);
	summaries = get_memory(16 * nr_regions);
	bitmaps = get_memory(1024 * nr_regions);
	own(0, 256, FIXED);
	own(4096, 256, FIXED);
	walk_tree(super + 64, 1, volume_item);
	want(have_info && have_root && nr_summaries == nr_regions,
	     "volume tree is not complete", nr_summaries);
	want(u64(root + 56) >= 1024 && !(u64(root + 56) >> 63), "next inode",
	     u64(root + 56));
}

/* All that "Space" says of one region. */
static void check_region(uint64_t region)
{
	const uint8_t *s = summaries + 16 * region;
	uint32_t backed = u32(s), nodes = u32(s + 4);
	uint32_t nr_free = 0, run = 0, longest = 0;

	want(!(nodes & ~backed), "node granules without backing", region);
	for (uint32_t b = 0; b < REGION; b++) {
		uint64_t block = region * REGION + b;
		bool taken = bitmaps[1024 * region + b / 8] >> (b % 8) & 1;
		bool is_backed = backed >> (b / GRANULE) & 1;
		bool for_nodes = nodes >> (b / GRANULE) & 1;
		enum owner o = block < nr_blocks ? owner[block] : FREE;

		want(taken == (o != FREE), "bitmap", block);
		want(!taken || is_backed, "taken without backing", block);
		want(is_backed == (block < nr_blocks), "backing", block);
		want(o != NODE || for_nodes, "node among data", block);
		want((o != DATA && o != FIXED) || !for_nodes,
		     "data among nodes", block);
		run = taken || !is_backed || for_nodes ? 0 : run + 1;
		nr_free += run != 0;
		longest = run > longest ? run : longest;
	}
	want(u32(s + 8) == nr_free, "free", region);
	want(u32(s + 12) == longest, "longest", region);
}

void close_volume(void)
{
	for (uint64_t r = 0; r < nr_regions; r++)
		check_region(r);
	free(owner);
	free(summaries);
	free(bitmaps);
}
