/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Items: a good one of each type is taken, and each rule, broken once, is
 * noticed.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/item.h"

/* An item to spoil: value bytes with room, and what says where it stands. */
struct sample {
	uint64_t tree;
	struct key key;
	size_t len;
	uint8_t value[2048];
};

static int judge(const struct sample *s)
{
	return item_validate(s->tree, 0, &s->key, s->value, s->len);
}

#define must_pass(s) cr_assert_eq(judge(s), 0)
#define must_fail(s) cr_assert_eq(judge(s), -EUCLEAN)

/* Break one thing in a copy. */
#define spoil(s, change)             \
	do {                         \
		struct sample b = s; \
		change;              \
		must_fail(&b);       \
	} while (0)
/* The same where the change is allowed. */
#define keeps(s, change)             \
	do {                         \
		struct sample b = s; \
		change;              \
		must_pass(&b);       \
	} while (0)

static struct sample sample_of(uint64_t tree, struct key key, const void *value,
			       size_t len)
{
	struct sample s = { .tree = tree, .key = key, .len = len };

	memcpy(s.value, value, len);
	return s;
}

#define AT(type, field) (b.value + offsetof(type, field))

Test(item, type_belongs_to_one_tree)
{
	struct disk_info info = { 0 };
	struct sample s = sample_of(TREE_VOLUME, key_of(0, ITEM_INFO, 0), &info,
				    sizeof(info));

	must_pass(&s);
	spoil(s, b.tree = TREE_FILES);
	spoil(s, b.key.type = 0);
	spoil(s, b.key.type = ITEM_ROOT + 1);
	spoil(s, b.key.type = ITEM_INODE - 1);
	spoil(s, b.key.type = ITEM_ORPHAN + 1);
	spoil(s, b.key.type = 255);
}

Test(item, info)
{
	struct disk_info info = { .dir_seed = { 1, 2, 3 } };
	struct sample s = sample_of(TREE_VOLUME, key_of(0, ITEM_INFO, 0), &info,
				    sizeof(info));

	must_pass(&s);
	spoil(s, b.key.inum = 1);
	spoil(s, b.key.offset = 1);
	spoil(s, b.len--);
	spoil(s, b.len++);
	spoil(s, AT(struct disk_info, zero)[0] = 1);
	spoil(s, AT(struct disk_info, zero)[31] = 1);
}

Test(item, summary)
{
	struct disk_summary d = { le32_of(7), le32_of(2), le32_of(300),
				  le32_of(300) };
	struct sample s = sample_of(TREE_VOLUME, key_of(0, ITEM_SUMMARY, 5), &d,
				    sizeof(d));

	must_pass(&s);
	keeps(s, b.key.offset = ((uint64_t)1 << 38) - 1);
	spoil(s, b.key.offset = (uint64_t)1 << 38);
	spoil(s, b.key.inum = 1);
	spoil(s, b.len--);
	/* More free than there is; a longer run than is free. */
	spoil(s, AT(struct disk_summary, free)[1] = 0x21);
	spoil(s, AT(struct disk_summary, longest)[0]++);
	/* A granule for nodes without backing. */
	spoil(s, AT(struct disk_summary, nodes)[0] = 8);
}

Test(item, bitmap)
{
	struct disk_bitmap d = { { 0 } };
	struct sample s = sample_of(TREE_VOLUME, key_of(0, ITEM_BITMAP, 5), &d,
				    sizeof(d));

	must_pass(&s);
	spoil(s, b.key.inum = 1);
	spoil(s, b.key.offset = (uint64_t)1 << 38);
	spoil(s, b.len--);
	spoil(s, b.len++);
}

Test(item, freed)
{
	struct disk_freed d[2] = {
		{ le64_of(1000), le32_of(8), le64_of(3) },
		{ le64_of(2000), le32_of(1), le64_of(4) },
	};
	struct sample s = sample_of(
		TREE_VOLUME, key_of(TREE_FILES, ITEM_FREED, 77), d, sizeof(d));

	must_pass(&s);
	spoil(s, b.key.inum = TREE_FILES - 1);
	spoil(s, b.len = 0);
	spoil(s, b.len--);
	spoil(s, memset(b.value + 20 + 8, 0, 4));
	spoil(s, memset(b.value + 20, 0, 8));
	spoil(s, b.value[20 + 6] = 8);
}

static struct disk_ptr good_ptr(uint8_t level)
{
	struct ptr p = { .block = 512,
			 .birth = 9,
			 .nonce = { 1, 2 },
			 .key_id = 1,
			 .level = level,
			 .log2_bytes = 14 };
	struct disk_ptr d;

	ptr_encode(&p, &d);
	return d;
}

Test(item, root)
{
	struct disk_root d = { .ptr = good_ptr(2), .next_inum = le64_of(1024) };
	struct sample s = sample_of(
		TREE_VOLUME, key_of(TREE_FILES, ITEM_ROOT, 0), &d, sizeof(d));

	must_pass(&s);
	spoil(s, b.key.inum = TREE_FILES - 1);
	spoil(s, b.key.offset = 1);
	spoil(s, b.len--);
	spoil(s, memset(b.value, 0, 8));
	/* What the pointer's own rules refuse. */
	spoil(s, AT(struct disk_ptr, level)[0] = NODE_LEVEL_MAX + 1);
	spoil(s, AT(struct disk_ptr, log2_bytes)[0] = 17);
	spoil(s, AT(struct disk_root, unwritten)[6] = 8);
}

static struct sample good_inode(void)
{
	struct inode_item i = {
		.mode = S_IFREG | 0644,
		.nlink = 1,
		.size = 5,
		.blocks = 1,
		.atime = { -1, 999999999 },
		.parent = 1,
	};
	struct disk_inode d;

	inode_item_encode(&i, &d);
	return sample_of(TREE_FILES, key_of(1024, ITEM_INODE, 0), &d,
			 sizeof(d));
}

Test(item, inode)
{
	struct sample s = good_inode();

	must_pass(&s);
	spoil(s, b.key.inum = 0);
	spoil(s, b.key.inum = (uint64_t)1 << 63);
	spoil(s, b.key.offset = 1);
	spoil(s, b.len--);
	spoil(s, b.len++);
	spoil(s, AT(struct disk_inode, size)[7] = 0x80);
	spoil(s, AT(struct disk_inode, blocks)[6] = 8);
	spoil(s, AT(struct disk_inode, flags)[0] = 1);
	spoil(s, AT(struct disk_inode, generation)[3] = 1);
	spoil(s, memset(AT(struct disk_inode, mode), 0, 4));
	spoil(s, AT(struct disk_inode, mode)[2] = 1);
	for (size_t i = 0; i < 24; i++)
		spoil(s, AT(struct disk_inode, zero)[i] = 1);
	/* A second has a thousand million nanoseconds, in each time. */
	for (size_t i = 0; i < 4; i++) {
		le32 nsec = le32_of(1000000000);

		spoil(s, memcpy(AT(struct disk_inode, atime) + 12 * i + 8,
				&nsec, 4));
	}
}

Test(item, inode_encode_and_decode_agree)
{
	struct inode_item a = {
		.mode = S_IFBLK | 07777, .nlink = 3, .uid = UINT32_MAX,
		.gid = 7, .size = INT64_MAX, .blocks = 12,
		.rdev = 0x123456789abcdef, .atime = { -62135596800, 1 },
		.mtime = { INT64_MAX, 999999999 }, .ctime = { INT64_MIN, 0 },
		.btime = { 4294967296, 5 }, .parent = 99, .entries = 1 << 20,
	}, b;
	struct disk_inode d;

	inode_item_encode(&a, &d);
	inode_item_decode(&d, &b);
	cr_assert_eq(b.mode, a.mode);
	cr_assert_eq(b.nlink, a.nlink);
	cr_assert_eq(b.uid, a.uid);
	cr_assert_eq(b.gid, a.gid);
	cr_assert_eq(b.size, a.size);
	cr_assert_eq(b.blocks, a.blocks);
	cr_assert_eq(b.rdev, a.rdev);
	cr_assert_eq(b.atime.tv_sec, a.atime.tv_sec);
	cr_assert_eq(b.mtime.tv_sec, a.mtime.tv_sec);
	cr_assert_eq(b.mtime.tv_nsec, a.mtime.tv_nsec);
	cr_assert_eq(b.ctime.tv_sec, a.ctime.tv_sec);
	cr_assert_eq(b.btime.tv_sec, a.btime.tv_sec);
	cr_assert_eq(b.parent, a.parent);
	cr_assert_eq(b.entries, a.entries);
}

Test(item, xattr)
{
	uint8_t v[64] = {
		50, 0, 0, 0, 6, 0, 0, 0, 'u', 's', 'e', 'r', '.', 'a'
	};
	struct sample s = sample_of(
		TREE_FILES, key_of(1024, ITEM_XATTR, 0x30000), v, sizeof(v));

	must_pass(&s);
	spoil(s, b.key.inum = 0);
	spoil(s, b.len = 0);
	spoil(s, b.len = 7);
	spoil(s, b.len = XATTR_CHUNK_BYTES + 1);
	spoil(s, b.value[4] = 0);
	spoil(s, b.value[4] = 57);
	spoil(s, b.value[5] = 1);
	spoil(s, b.value[7] = 1);
	spoil(s, b.value[10] = 0);
	/* The name must be whole; the value may be up to 64 KiB. */
	spoil(s, b.len = 13);
	keeps(s, (b.value[0] = 0, b.value[2] = 1));
	spoil(s, (b.value[0] = 1, b.value[2] = 1));
	/* A later chunk is any bytes. */
	keeps(s, (b.key.offset++, b.value[4] = 0, b.len = 1));
	spoil(s, (b.key.offset++, b.len = 0));
	spoil(s, (b.key.offset++, b.len = XATTR_CHUNK_BYTES + 1));
}

Test(item, symlink)
{
	struct sample s = sample_of(TREE_FILES, key_of(1024, ITEM_SYMLINK, 0),
				    "target", 6);

	must_pass(&s);
	keeps(s, b.key.offset = 3);
	spoil(s, b.key.inum = 0);
	spoil(s, b.key.offset = 4);
	spoil(s, b.len = 0);
	spoil(s, b.value[3] = 0);
	spoil(s, (memset(b.value, 'x', sizeof(b.value)),
		  b.len = SYMLINK_CHUNK_BYTES + 1));
}

Test(item, dirent)
{
	/* Of inode 1030. */
	static const uint8_t v[14] = { 6, 4,	  0, 0,	  0,   0,   0,
				       0, DT_REG, 4, 'n', 'a', 'm', 'e' };
	struct sample s = sample_of(TREE_FILES, key_of(1, ITEM_DIRENT, 0x1200),
				    v, sizeof(v));

	must_pass(&s);
	keeps(s, b.key.offset = 256);
	keeps(s, b.key.offset = INT64_MAX);
	spoil(s, b.key.inum = 0);
	spoil(s, b.key.offset = 255);
	spoil(s, b.key.offset = (uint64_t)1 << 63);
	spoil(s, b.len--);
	spoil(s, b.len++);
	spoil(s, b.len = 9);
	spoil(s, (b.len = 10, b.value[9] = 0));
	spoil(s, b.value[0] = b.value[1] = 0);
	spoil(s, b.value[7] = 0x80);
	spoil(s, b.value[12] = '/');
	spoil(s, b.value[12] = 0);
}

static struct sample good_extent(uint16_t flags, uint64_t logical, uint32_t nr)
{
	static const uint8_t tags[64 * 16];
	struct extent e = { .logical = logical,
			    .block = 4711,
			    .birth = 3,
			    .nonce = { 5, 100 },
			    .nr = nr,
			    .key_id = 1,
			    .flags = flags };
	struct sample s = { .tree = TREE_FILES,
			    .key = key_of(1024, ITEM_EXTENT, logical) };

	s.len = extent_encode(&e, tags, s.value);
	return s;
}

Test(item, extent)
{
	struct sample s = good_extent(0, 70, 100);
	le64 far = le64_of((uint64_t)1 << 51);

	must_pass(&s);
	keeps(s, AT(struct disk_extent, flags)[0] = EXTENT_UNWRITTEN);
	spoil(s, b.key.inum = 0);
	spoil(s, b.len--);
	spoil(s, b.len++);
	spoil(s, memset(AT(struct disk_extent, nr), 0, 4));
	spoil(s, b.key.offset = (uint64_t)1 << 51);
	keeps(s, b.key.offset = ((uint64_t)1 << 51) - 100);
	spoil(s, b.key.offset = ((uint64_t)1 << 51) - 99);
	spoil(s, memset(AT(struct disk_extent, block), 0, 8));
	spoil(s, memcpy(AT(struct disk_extent, block), &far, 8));
	spoil(s, AT(struct disk_extent, session)[7] = 0x80);
	spoil(s, AT(struct disk_extent, flags)[0] = 4);
	spoil(s, AT(struct disk_extent, flags)[1] = 1);
	/* The last nonce of the run would be past 2^32. */
	spoil(s, memset(AT(struct disk_extent, counter), 0xff, 4));
}

Test(item, extent_with_tags)
{
	struct sample s = good_extent(EXTENT_TAGGED, 70, 58), end;

	must_pass(&s);
	spoil(s, b.len -= 16);
	spoil(s, b.len--);
	spoil(s, AT(struct disk_extent, flags)[0] = 0);
	/* There is no tag of what was never written. */
	spoil(s, AT(struct disk_extent, flags)[0] |= EXTENT_UNWRITTEN);
	/* 64 to 127 is a window; one more crosses it. */
	end = good_extent(EXTENT_TAGGED, 71, 58);
	must_fail(&end);
	end = good_extent(EXTENT_TAGGED, 64, 64);
	must_pass(&end);
}

Test(item, extent_encode_and_decode_agree)
{
	struct extent a = { .logical = 70,
			    .block = 1ull << 50,
			    .birth = 1234,
			    .nonce = { INT64_MAX, UINT32_MAX - 2 },
			    .nr = 2,
			    .key_id = 77,
			    .flags = EXTENT_TAGGED },
		      b;
	struct key key = key_of(5, ITEM_EXTENT, 70);
	uint8_t tags[32], v[128];
	const uint8_t *read;

	memset(tags, 0x5a, sizeof(tags));
	tags[16] = 1;
	cr_assert_eq(extent_encode(&a, tags, v), extent_bytes(2, a.flags));
	extent_decode(&key, v, &b, &read);
	cr_assert_eq(b.logical, a.logical);
	cr_assert_eq(b.block, a.block);
	cr_assert_eq(b.birth, a.birth);
	cr_assert_eq(b.nonce.session, a.nonce.session);
	cr_assert_eq(b.nonce.counter, a.nonce.counter);
	cr_assert_eq(b.nr, a.nr);
	cr_assert_eq(b.key_id, a.key_id);
	cr_assert_eq(b.flags, a.flags);
	cr_assert_eq(memcmp(read, tags, sizeof(tags)), 0);
}

Test(item, orphan)
{
	struct sample s =
		sample_of(TREE_FILES, key_of(0, ITEM_ORPHAN, 1024), "", 0);

	must_pass(&s);
	spoil(s, b.key.inum = 1);
	spoil(s, b.key.offset = 0);
	spoil(s, b.key.offset = (uint64_t)1 << 63);
	spoil(s, b.len = 1);
}

Test(item, child)
{
	struct disk_ptr d = good_ptr(1);
	struct key key = key_of(9, 0, 0);

	cr_assert_eq(item_validate(TREE_FILES, 2, &key, &d, sizeof(d)), 0);
	cr_assert_eq(item_validate(TREE_FILES, 3, &key, &d, sizeof(d)),
		     -EUCLEAN);
	cr_assert_eq(item_validate(TREE_FILES, 1, &key, &d, sizeof(d)),
		     -EUCLEAN);
	cr_assert_eq(item_validate(TREE_FILES, 2, &key, &d, sizeof(d) - 1),
		     -EUCLEAN);
	d.block = le64_of(0);
	cr_assert_eq(item_validate(TREE_FILES, 2, &key, &d, sizeof(d)),
		     -EUCLEAN);
}
