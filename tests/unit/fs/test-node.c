/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Slotted pages against an array, and their way to the disk and back: what is
 * not authentic is refused, and so is what is authentic and wrong.
 *
 * Linked so that malloc() can be made to fail.
 */
#include <criterion/criterion.h>

#include "fs/node.h"
#include "support.h"
#include "tests/support/rng.h"

static bool no_memory;

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *__wrap_malloc(size_t n)
{
	return no_memory ? NULL : __real_malloc(n);
}

#define PAYLOAD ((1u << 14) - HINT_BYTES)

/* ---- against an array */

#define ITEMS_MAX 400

struct naive_item {
	struct key key;
	size_t len;
	uint8_t value[3000];
};

struct naive {
	unsigned int nr;
	struct naive_item *item[ITEMS_MAX];
};

static void naive_insert(struct naive *m, unsigned int i, struct key key,
			 const void *value, size_t len)
{
	struct naive_item *new = malloc(sizeof(*new));

	*new = (struct naive_item){ .key = key, .len = len };
	memcpy(new->value, value, len);
	memmove(&m->item[i + 1], &m->item[i], (m->nr - i) * sizeof(m->item[0]));
	m->item[i] = new;
	m->nr++;
}

static void naive_remove(struct naive *m, unsigned int i)
{
	free(m->item[i]);
	m->nr--;
	memmove(&m->item[i], &m->item[i + 1], (m->nr - i) * sizeof(m->item[0]));
}

static void naive_clear(struct naive *m)
{
	while (m->nr)
		naive_remove(m, m->nr - 1);
}

static void must_agree(const struct node *n, const struct naive *m)
{
	uint32_t used = 0;

	cr_assert_eq(n->nr, m->nr);
	for (unsigned int i = 0; i < m->nr; i++) {
		struct key key = node_key(n, i);
		size_t len;
		const void *value = node_value(n, i, &len);
		bool equal;

		cr_assert_eq(key_cmp(&key, &m->item[i]->key), 0);
		cr_assert_eq(len, m->item[i]->len);
		cr_assert_eq(memcmp(value, m->item[i]->value, len), 0);
		cr_assert_eq(node_search(n, &key, &equal), i);
		cr_assert(equal);
		used += 22 + (uint32_t)len;
	}
	cr_assert_eq(node_used(n), used);
}

/* One random change of both. */
static void change(struct node *n, struct naive *m, struct rng *r)
{
	/* Many of no length at all: orphans' marks have none. */
	size_t len = rng_one_in(r, 3) ? 0 : rng_below(r, 700);
	struct key key =
		key_of(1 + rng_below(r, 50), ITEM_XATTR, rng_below(r, 8));
	uint8_t value[3000];
	bool equal;
	unsigned int i = node_search(n, &key, &equal);

	rng_fill(value, len, rng_next(r) | 1);
	if (!equal) {
		cr_assert_eq(node_fits(n, len),
			     64 + node_used(n) + 22 + len <= PAYLOAD);
		if (node_fits(n, len)) {
			node_insert(n, i, &key, value, len);
			naive_insert(m, i, key, value, len);
		}
	} else if (rng_one_in(r, 2)) {
		node_remove(n, i);
		naive_remove(m, i);
	} else if (node_fits_replace(n, i, len)) {
		node_replace(n, i, value, len);
		m->item[i]->len = len;
		memcpy(m->item[i]->value, value, len);
	}
}

static void run_changes(uint64_t seed, bool without_memory)
{
	struct node *n = node_new(14);
	struct naive m = { 0 };
	struct rng r = { seed };

	node_reset(n, TREE_FILES, 0);
	for (unsigned int step = 0; step < 4000; step++) {
		unsigned int before = n->nr;
		size_t len;

		/* malloc() of the array itself must work, so fail now and then. */
		no_memory = false;
		if (without_memory && n->nr && rng_one_in(&r, 4)) {
			unsigned int i = (unsigned int)rng_below(&r, n->nr);
			uint8_t value[3000];

			len = rng_below(&r, 3000);
			rng_fill(value, len, step + 1);
			if (node_fits_replace(n, i, len)) {
				no_memory = true;
				node_replace(n, i, value, len);
				no_memory = false;
				m.item[i]->len = len;
				memcpy(m.item[i]->value, value, len);
			}
		}
		change(n, &m, &r);
		if (n->nr != before || step % 16 == 0)
			must_agree(n, &m);
	}
	must_agree(n, &m);
	naive_clear(&m);
	node_free(n);
}

Test(node, random_changes_agree_with_an_array)
{
	for (uint64_t seed = 1; seed <= 6; seed++)
		run_changes(seed, false);
}

Test(node, compaction_needs_no_memory)
{
	for (uint64_t seed = 1; seed <= 6; seed++)
		run_changes(seed, true);
}

/* An empty value shares its place with its neighbour's beginning. */
Test(node, compaction_without_memory_keeps_empty_values_apart)
{
	struct node *n = node_new(14);
	struct naive m = { 0 };
	uint8_t big[3000];

	node_reset(n, TREE_FILES, 0);
	for (unsigned int i = 0; i < 10; i++) {
		struct key key = key_of(1, ITEM_XATTR, 20 - 2 * i);

		rng_fill(big, 1500, i + 1);
		node_insert(n, 0, &key, big, 1500);
		naive_insert(&m, 0, key, big, 1500);
		key.offset--;
		node_insert(n, 0, &key, big, 0);
		naive_insert(&m, 0, key, big, 0);
	}
	/* A hole in the middle, and something that fits only without it. */
	node_remove(n, 7);
	naive_remove(&m, 7);
	must_agree(n, &m);
	rng_fill(big, 2000, 99);
	no_memory = true;
	node_replace(n, 2, big, 2000);
	no_memory = false;
	m.item[2]->len = 2000;
	memcpy(m.item[2]->value, big, 2000);
	must_agree(n, &m);
	naive_clear(&m);
	node_free(n);
}

Test(node, search_says_where_a_key_would_go)
{
	struct node *n = node_new(14);
	bool equal;

	node_reset(n, TREE_FILES, 0);
	cr_assert_eq(node_search(n, &KEY_MIN, &equal), 0);
	cr_assert(!equal);
	for (unsigned int i = 0; i < 10; i++) {
		struct key key = key_of(2, ITEM_EXTENT, 2 * i + 1);

		node_insert(n, i, &key, "v", 1);
	}
	for (unsigned int i = 0; i <= 20; i++) {
		struct key key = key_of(2, ITEM_EXTENT, i);

		cr_assert_eq(node_search(n, &key, &equal), i / 2);
		cr_assert_eq(equal, i % 2 == 1);
	}
	cr_assert_eq(node_search(n, &KEY_MAX, &equal), 10);
	node_free(n);
}

Test(node, child_of_a_key_is_the_last_that_begins_at_or_below)
{
	struct node *n = node_new(14);
	struct disk_ptr none = { 0 };

	node_reset(n, TREE_FILES, 1);
	for (unsigned int i = 0; i < 3; i++) {
		struct key key = key_of(10 * (i + 1), 0, 0);

		node_insert(n, i, &key, &none, sizeof(none));
	}
	for (unsigned int i = 0; i < 50; i++) {
		struct key key = key_of(i, 0, 0);
		unsigned int want = i < 20 ? 0 : i < 30 ? 1 : 2;

		cr_assert_eq(node_child_index(n, &key), want);
	}
	node_free(n);
}

Test(node, keys_are_ordered_by_inode_type_offset)
{
	struct key k[] = { KEY_MIN,	{ 0, 9, 0 }, { 0, 0, 1 }, { 1, 0, 0 },
			   { 1, 5, 3 }, { 1, 6, 3 }, { 1, 0, 4 }, KEY_MAX };

	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 8; j++) {
			int c = key_cmp(&k[i], &k[j]);

			cr_assert_eq(c < 0, i < j);
			cr_assert_eq(c > 0, i > j);
		}
}

Test(node, tail_moves_and_comes_back)
{
	struct node *left = node_new(14), *right = node_new(14);
	struct naive m = { 0 };
	struct rng r = { 5 };

	node_reset(left, TREE_FILES, 0);
	for (unsigned int step = 0; step < 300; step++)
		change(left, &m, &r);
	for (unsigned int from = 0; from <= m.nr; from++) {
		unsigned int nr = left->nr;

		node_reset(right, TREE_FILES, 0);
		node_move_tail(left, from, right);
		cr_assert_eq(left->nr, from);
		cr_assert_eq(right->nr, nr - from);
		node_append_all(left, right);
		cr_assert_eq(right->nr, 0);
		cr_assert_eq(node_used(right), 0);
		must_agree(left, &m);
	}
	naive_clear(&m);
	node_free(left);
	node_free(right);
}

Test(node, children_follow_their_entries)
{
	struct node *left = node_new(14), *right = node_new(14);
	struct node child[6];
	struct disk_ptr none = { 0 };

	node_reset(left, TREE_FILES, 1);
	node_reset(right, TREE_FILES, 1);
	for (unsigned int i = 0; i < 6; i++) {
		struct key key = key_of(i, 0, 0);

		node_insert(left, i, &key, &none, sizeof(none));
		left->child[i] = &child[i];
	}
	node_remove(left, 1);
	node_move_tail(left, 2, right);
	cr_assert_eq(left->child[1], &child[2]);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(right->child[i], &child[3 + i]);
	node_append_all(left, right);
	cr_assert_eq(left->child[4], &child[5]);
	/* An entry in front has no child in memory yet. */
	struct key first = KEY_MIN;

	node_insert(left, 0, &first, &none, sizeof(none));
	cr_assert_eq(left->child[0], NULL);
	cr_assert_eq(left->child[1], &child[0]);
	node_free(left);
	node_free(right);
}

Test(node, fan_out_of_tests_is_obeyed)
{
	struct node *n = node_new(14);

	node_reset(n, TREE_FILES, 0);
	n->max_items = 4;
	for (unsigned int i = 0; i < 4; i++) {
		struct key key = key_of(i, ITEM_INODE, 0);

		cr_assert(node_fits(n, 1));
		node_insert(n, i, &key, "v", 1);
	}
	cr_assert(!node_fits(n, 0));
	node_free(n);
}

/* ---- to the disk and back */

static struct made m;

static void start_made(void)
{
	make_container(&m);
}

static void end_made(void)
{
	destroy_container(&m);
}

TestSuite(sealed, .init = start_made, .fini = end_made);

static const struct key_set *keys(void)
{
	return &m.keys.set[m.keys.active];
}

static struct node *good_leaf(void)
{
	struct node *n = node_new(14);

	node_reset(n, TREE_FILES, 0);
	n->low = key_of(0, ITEM_ORPHAN, 0);
	n->ptr.block = 512;
	n->ptr.birth = 7;
	for (unsigned int i = 0; i < 20; i++) {
		struct key key = key_of(0, ITEM_ORPHAN, 2000 + i);
		struct key link = key_of(3000 + i, ITEM_SYMLINK, 0);
		char target[64];

		memset(target, 'a' + (int)i, sizeof(target));
		node_insert(n, i, &key, "", 0);
		node_insert(n, n->nr, &link, target, 1 + i);
	}
	return n;
}

static uint8_t sealed[1 << 14], scratch[1 << 14];

static struct ptr seal(struct node *n)
{
	must(node_seal(n, m.h.uuid, keys(), &m.src, scratch, sealed));
	return n->ptr;
}

static int open_range(struct node *n, const struct ptr *p, uint64_t tree,
		      struct key low, struct key high)
{
	return node_open(n, p, tree, &low, &high, m.h.uuid, keys(), sealed);
}

static int open_sealed(struct node *n, const struct ptr *p)
{
	return open_range(n, p, TREE_FILES, KEY_MIN, KEY_MAX);
}

Test(sealed, round_trip)
{
	struct node *a = good_leaf(), *b = node_new(14);
	struct ptr p;

	/* Garbage in it is not written. */
	node_remove(a, 30);
	node_remove(a, 25);
	p = seal(a);
	cr_assert_eq(open_sealed(b, &p), 0);
	cr_assert_eq(b->nr, a->nr);
	cr_assert_eq(b->garbage, 0);
	cr_assert_eq(key_cmp(&b->low, &a->low), 0);
	cr_assert_eq(memcmp(&b->ptr, &p, sizeof(p)), 0);
	for (unsigned int i = 0; i < a->nr; i++) {
		struct key x = node_key(a, i), y = node_key(b, i);
		size_t len_a, len_b;
		const void *value_a = node_value(a, i, &len_a);
		const void *value_b = node_value(b, i, &len_b);

		cr_assert_eq(key_cmp(&x, &y), 0);
		cr_assert_eq(len_a, len_b);
		cr_assert_eq(memcmp(value_a, value_b, len_a), 0);
	}
	node_free(a);
	node_free(b);
}

Test(sealed, same_content_never_looks_the_same)
{
	static uint8_t first[1 << 14];
	struct node *n = good_leaf();
	struct ptr p = seal(n), q;
	unsigned int same = 0;

	memcpy(first, sealed, sizeof(first));
	q = seal(n);
	cr_assert(p.nonce.session != q.nonce.session ||
		  p.nonce.counter != q.nonce.counter);
	for (size_t i = 0; i < sizeof(first); i += 16)
		same += !memcmp(first + i, sealed + i, 16);
	cr_assert_eq(same, 0);
	node_free(n);
}

Test(sealed, every_byte_counts)
{
	struct node *a = good_leaf(), *b = node_new(14);
	struct ptr p = seal(a);

	/* The hint in front is for a scan only; all behind it is proven. */
	for (size_t i = HINT_BYTES; i < sizeof(sealed); i++) {
		sealed[i] ^= (uint8_t)(1 << i % 8);
		cr_assert_eq(open_sealed(b, &p), -EBADMSG, "byte %zu", i);
		sealed[i] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t i = 0; i < 16; i++) {
		struct ptr q = p;

		q.tag[i] ^= 1;
		cr_assert_eq(open_sealed(b, &q), -EBADMSG);
	}
	struct ptr q = p;

	q.nonce.counter++;
	cr_assert_eq(open_sealed(b, &q), -EBADMSG);
	q = p;
	q.nonce.session ^= 1;
	cr_assert_eq(open_sealed(b, &q), -EBADMSG);
	cr_assert_eq(open_sealed(b, &p), 0);
	node_free(a);
	node_free(b);
}

Test(sealed, another_tree_container_or_key_is_not_authentic)
{
	struct node *a = good_leaf(), *b = node_new(14);
	struct ptr p = seal(a), q = p;
	uint8_t uuid[UUID_BYTES];
	struct key low = KEY_MIN, high = KEY_MAX;

	cr_assert_eq(open_range(b, &p, TREE_FILES + 1, low, high), -EBADMSG);
	memcpy(uuid, m.h.uuid, sizeof(uuid));
	uuid[15] ^= 1;
	cr_assert_eq(node_open(b, &p, TREE_FILES, &low, &high, uuid, keys(),
			       sealed),
		     -EBADMSG);
	q.key_id++;
	cr_assert_eq(open_sealed(b, &q), -EBADMSG);
	node_free(a);
	node_free(b);
}

Test(sealed, keys_must_lie_in_the_parents_range)
{
	struct node *a = good_leaf(), *b = node_new(14);
	struct ptr p = seal(a);
	struct key low = a->low, last = node_key(a, a->nr - 1);
	struct key above = last, over = low;

	above.offset++;
	over.offset++;
	cr_assert_eq(open_range(b, &p, TREE_FILES, low, above), 0);
	cr_assert_eq(open_range(b, &p, TREE_FILES, low, last), -EUCLEAN);
	cr_assert_eq(open_range(b, &p, TREE_FILES, over, above), -EUCLEAN);
	node_free(a);
	node_free(b);
}

Test(sealed, place_birth_and_level_are_inside)
{
	struct node *a = good_leaf(), *b = node_new(14);
	struct ptr p = seal(a), q = p;

	q.block += 4;
	cr_assert_eq(open_sealed(b, &q), -EUCLEAN);
	q = p;
	q.birth++;
	cr_assert_eq(open_sealed(b, &q), -EUCLEAN);
	q = p;
	q.level = 1;
	cr_assert_eq(open_sealed(b, &q), -EUCLEAN);
	node_free(a);
	node_free(b);
}

/* ---- authentic and wrong: payloads made by hand */

struct node_aad {
	uint8_t uuid[UUID_BYTES];
	le64 tree;
	le16 key_id;
};

static uint8_t payload[PAYLOAD];

static struct disk_node *head(void)
{
	return (struct disk_node *)payload;
}

static struct disk_item *slot(unsigned int i)
{
	return (struct disk_item *)(payload + sizeof(struct disk_node)) + i;
}

/* A leaf with two symbolic links, laid out as node_seal() does. */
static void hand_made(void)
{
	static const char *const target[2] = { "first", "second" };
	size_t heap = PAYLOAD;

	memset(payload, 0, sizeof(payload));
	memcpy(head()->uuid, m.h.uuid, UUID_BYTES);
	head()->tree = le64_of(TREE_FILES);
	head()->block = le64_of(512);
	head()->birth = le64_of(7);
	head()->nr = le16_of(2);
	for (unsigned int i = 0; i < 2; i++) {
		size_t len = strlen(target[i]);

		heap -= len;
		memcpy(payload + heap, target[i], len);
		*slot(i) = (struct disk_item){ { le64_of(2000 + i),
						 ITEM_SYMLINK, le64_of(0) },
					       0,
					       le16_of((uint16_t)heap),
					       le16_of((uint16_t)len) };
	}
}

static int open_hand_made(uint8_t level)
{
	struct node_aad aad = { .tree = le64_of(TREE_FILES),
				.key_id = le16_of(keys()->key_id) };
	struct ptr p = { .block = 512,
			 .birth = 7,
			 .level = level,
			 .log2_bytes = 14,
			 .key_id = keys()->key_id };
	struct node *n = node_new(14);
	int err;

	memcpy(aad.uuid, m.h.uuid, UUID_BYTES);
	must(seal_message(keys()->node, &m.src, &aad, 26, payload, PAYLOAD,
			  sealed + HINT_BYTES, &p.nonce, p.tag));
	err = open_sealed(n, &p);
	node_free(n);
	return err;
}

#define wrong(change)                                      \
	do {                                               \
		hand_made();                               \
		change;                                    \
		cr_assert_eq(open_hand_made(0), -EUCLEAN); \
	} while (0)

Test(sealed, hand_made_one_is_good)
{
	hand_made();
	cr_assert_eq(open_hand_made(0), 0);
}

Test(sealed, wrong_head)
{
	wrong(head()->uuid[3] ^= 1);
	wrong(head()->tree = le64_of(TREE_VOLUME));
	wrong(head()->block = le64_of(516));
	wrong(head()->birth = le64_of(8));
	wrong(head()->level = 1);
	for (int i = 0; i < 4; i++)
		wrong(head()->zero[i] = 1);
	/* The low key above the first item's. */
	wrong(head()->low.inum = le64_of(2001));
}

Test(sealed, wrong_number_of_items)
{
	wrong(head()->nr = le16_of(UINT16_MAX));
	wrong(head()->nr = le16_of((PAYLOAD - 64) / 22 + 1));
	wrong(head()->nr = le16_of((PAYLOAD - 64) / 22));
	wrong(head()->nr = le16_of(3));
	/* Bytes that belong to nobody. */
	wrong(head()->nr = le16_of(1));
}

Test(sealed, wrong_order_of_items)
{
	wrong(slot(1)->key.inum = le64_of(2000));
	wrong(slot(1)->key.inum = le64_of(1999));
}

Test(sealed, wrong_places_of_values)
{
	uint16_t first, second;

	hand_made();
	first = le16_get(slot(0)->pos);
	second = le16_get(slot(1)->pos);
	wrong(slot(0)->zero = 1);
	/* Overlapping, swapped, with a gap, in the slots, past the end. */
	wrong(slot(1)->pos = slot(0)->pos);
	wrong(slot(1)->pos = le16_of((uint16_t)(second + 1)));
	wrong(slot(1)->pos = le16_of((uint16_t)(second - 1)));
	wrong((slot(0)->pos = le16_of(second), slot(1)->pos = le16_of(first)));
	wrong(slot(1)->pos = le16_of(64));
	wrong(slot(0)->pos = le16_of(UINT16_MAX));
	wrong(slot(0)->len = le16_of(UINT16_MAX));
	wrong(slot(1)->len = le16_of((uint16_t)(second - 64)));
}

Test(sealed, free_space_is_zero)
{
	wrong(payload[64 + 2 * 22] = 1);
	wrong(payload[5000] = 1);
	wrong(payload[le16_get(slot(1)->pos) - 1] = 1);
}

Test(sealed, items_own_rules_hold)
{
	wrong(slot(1)->key.type = ITEM_DIRENT);
	wrong(slot(1)->key.type = ITEM_ROOT);
	wrong(payload[PAYLOAD - 1] = 0);
}

static void internal_node(unsigned int nr)
{
	struct ptr p = {
		.block = 600, .birth = 3, .key_id = 1, .log2_bytes = 14
	};
	size_t heap = PAYLOAD;

	hand_made();
	memset(payload + 64, 0, PAYLOAD - 64);
	head()->level = 1;
	head()->nr = le16_of((uint16_t)nr);
	for (unsigned int i = 0; i < nr && i < 3; i++) {
		heap -= sizeof(struct disk_ptr);
		ptr_encode(&p, (struct disk_ptr *)(payload + heap));
		*slot(i) = (struct disk_item){
			{ le64_of(2000 + i), 0, le64_of(0) },
			0,
			le16_of((uint16_t)heap),
			le16_of(sizeof(struct disk_ptr))
		};
	}
}

Test(sealed, internal_nodes)
{
	internal_node(3);
	cr_assert_eq(open_hand_made(1), 0);
	/* Without a child; with more than there is room for. */
	internal_node(0);
	cr_assert_eq(open_hand_made(1), -EUCLEAN);
	internal_node((PAYLOAD - 64) / 22);
	cr_assert_eq(open_hand_made(1), -EUCLEAN);
	internal_node(3);
	((struct disk_ptr *)(payload + PAYLOAD) - 2)->level = 1;
	cr_assert_eq(open_hand_made(1), -EUCLEAN);
	internal_node(3);
	((struct disk_ptr *)(payload + PAYLOAD) - 2)->block = le64_of(0);
	cr_assert_eq(open_hand_made(1), -EUCLEAN);
}

Test(sealed, empty_leaf_is_good)
{
	hand_made();
	memset(payload + 64, 0, PAYLOAD - 64);
	head()->nr = le16_of(0);
	cr_assert_eq(open_hand_made(0), 0);
}

/* A frozen parent is sealed while its children have their places only in
 * memory. */
Test(sealed, pointers_of_changed_children_come_from_memory)
{
	struct node *n = node_new(14), *child = good_leaf(),
		    *back = node_new(14);
	struct disk_ptr none = { 0 };
	struct key key = key_of(5, 0, 0);
	struct ptr p, got;
	size_t len;

	node_reset(n, TREE_FILES, 1);
	n->ptr.block = 700;
	n->ptr.birth = 9;
	node_insert(n, 0, &key, &none, sizeof(none));
	n->child[0] = child;
	seal(child);
	p = seal(n);
	/* Its own content stays. */
	cr_assert_eq(memcmp(node_value(n, 0, &len), &none, sizeof(none)), 0);
	cr_assert_eq(open_sealed(back, &p), 0);
	must(ptr_decode(node_value(back, 0, &len), &got));
	cr_assert_eq(got.block, child->ptr.block);
	cr_assert_eq(memcmp(got.tag, child->ptr.tag, 16), 0);
	node_free(n);
	node_free(child);
	node_free(back);
}
