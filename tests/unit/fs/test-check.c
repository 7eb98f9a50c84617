/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whatever can be wrong in a container is planted once, through the trees of an
 * open volume, and must be found by name.
 */
#include "unitvol.h"

#include <dirent.h>

#include "fs/dir.h"
#include "fs/extent.h"
#include "fs/orphan.h"

static struct unitvol t;
static inum_t file, other, folder, sub;

/*
 *	/file	three blocks		/folder/sub
 *	/other	two blocks		/link -> target
 */
static void start_check(void)
{
	struct attr a;

	unitvol_start(&t, 0, true);
	file = unitvol_file(&t, "file");
	unitvol_write(&t, file, 0, 3, 1);
	other = unitvol_file(&t, "other");
	unitvol_write(&t, other, 0, 2, 2);
	folder = unitvol_make(&t, VOLUME_ROOT, "folder", S_IFDIR | 0755);
	sub = unitvol_make(&t, folder, "sub", S_IFDIR | 0755);
	must(volume_symlink(t.v, VOLUME_ROOT, "link", "target", &unitvol_cred,
			    &a));
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
	unitvol_open(&t);
}

static void end_check(void)
{
	unitvol_end(&t);
}

TestSuite(check, .init = start_check, .fini = end_check, .timeout = 60);

/* Commit what was planted and check: @what is said. */
static void must_find(const char *what)
{
	unitvol_press(&t);
	cr_assert_neq(unitvol_check(&t), 0, "not found: %s", what);
	cr_assert(unitvol_said(&t, what), "not \"%s\" but:\n%s", what, t.said);
}

/* And nothing else. */
static void must_find_only(const char *what)
{
	unitvol_press(&t);
	cr_assert_eq(unitvol_check(&t), 1, "%s: not one finding:\n%s", what,
		     t.said);
	cr_assert(unitvol_said(&t, what), "not \"%s\" but:\n%s", what, t.said);
}

/* Change fields of an inode's item behind its back. */
#define change_inode(inum, change)                                         \
	do {                                                               \
		struct disk_inode d;                                       \
		struct key k = key_of(inum, ITEM_INODE, 0);                \
                                                                           \
		cr_assert_eq(unitvol_item(&t, &t.v->ft, k, &d, sizeof(d)), \
			     (int)sizeof(d));                              \
		change;                                                    \
		unitvol_plant(&t, k, &d, sizeof(d));                       \
	} while (0)

static uint64_t cookie_of(const char *name)
{
	struct dir_name n;

	must(dir_hash(t.v, name, &n));
	return n.cookie;
}

static void plant_name(inum_t dir, const char *name, uint64_t cookie,
		       inum_t inum, uint8_t type)
{
	uint8_t v[64];
	struct disk_dirent *d = (struct disk_dirent *)v;

	d->inum = le64_of(inum);
	d->type = type;
	d->name_len = (uint8_t)strlen(name);
	memcpy(d->name, name, strlen(name));
	unitvol_plant(&t, key_of(dir, ITEM_DIRENT, cookie), v,
		      sizeof(*d) + strlen(name));
}

static void drop_name(inum_t dir, const char *name)
{
	unitvol_plant(&t, key_of(dir, ITEM_DIRENT, cookie_of(name)), NULL, 0);
}

static void plant_orphan(inum_t inum)
{
	unitvol_plant(&t, key_of(0, ITEM_ORPHAN, inum), "", 0);
}

/* ---- links, names, counts */

Test(check, link_count_of_a_file)
{
	change_inode(file, d.nlink = le32_of(2));
	must_find_only("/file: inode 1024: link count is not the number of "
		       "its names");
}

Test(check, link_count_of_a_folder)
{
	change_inode(folder, d.nlink = le32_of(2));
	must_find_only("link count of a folder is not its folders and two");
}

Test(check, entry_count)
{
	change_inode(folder, d.entries = le64_of(0));
	must_find_only("entry count is not the number of names in it");
}

Test(check, block_count)
{
	change_inode(file, d.blocks = le64_of(4));
	must_find_only("block count is not what is mapped");
}

Test(check, lost_orphan_mark)
{
	unitvol_unlink(&t, "file");
	unitvol_plant(&t, key_of(0, ITEM_ORPHAN, file), NULL, 0);
	must_find_only("without a name, and without an orphan's mark");
}

Test(check, orphan_mark_of_nobody)
{
	plant_orphan(4711);
	must_find_only("has an orphan's mark, but is not there");
}

Test(check, orphan_mark_of_a_folder_with_a_name)
{
	plant_orphan(folder);
	must_find_only("an orphan's mark on what has a name and no data");
}

Test(check, orphan_mark_of_a_file_being_cut_is_fine)
{
	plant_orphan(file);
	unitvol_press(&t);
	unitvol_must_be_clean(&t);
}

Test(check, name_of_nobody)
{
	plant_name(VOLUME_ROOT, "ghost", cookie_of("ghost"), 4711, DT_REG);
	change_inode(VOLUME_ROOT, d.entries = le64_of(5));
	must_find_only("inode 4711: named, but not there");
}

Test(check, items_without_the_inode)
{
	unitvol_plant(&t, key_of(file, ITEM_INODE, 0), NULL, 0);
	must_find("inode 1024: items without the inode");
	cr_assert(unitvol_said(&t, "named, but not there"));
}

Test(check, type_in_a_name)
{
	plant_name(VOLUME_ROOT, "file", cookie_of("file"), file, DT_FIFO);
	must_find_only("a name gives it another type");
}

Test(check, name_where_it_is_not_looked_for)
{
	drop_name(VOLUME_ROOT, "file");
	plant_name(VOLUME_ROOT, "file", cookie_of("other name"), file, DT_REG);
	must_find_only("name stands where it is not looked for");
}

Test(check, name_twice)
{
	plant_name(VOLUME_ROOT, "file", cookie_of("file") + 1, other, DT_REG);
	change_inode(VOLUME_ROOT, d.entries = le64_of(5));
	change_inode(other, d.nlink = le32_of(2));
	must_find_only("name is there twice");
}

Test(check, parent_of_a_folder)
{
	change_inode(sub, d.parent = le64_of(VOLUME_ROOT));
	must_find_only("the folder's parent is not where its name is");
}

Test(check, folder_with_two_names)
{
	plant_name(VOLUME_ROOT, "sub", cookie_of("sub"), sub, DT_DIR);
	change_inode(VOLUME_ROOT,
		     (d.entries = le64_of(5), d.nlink = le32_of(4)));
	must_find("a folder with several names");
}

Test(check, folder_without_a_name)
{
	drop_name(folder, "sub");
	change_inode(folder, (d.entries = le64_of(0), d.nlink = le32_of(2)));
	must_find_only("a folder without a name");
}

Test(check, root_with_a_name)
{
	plant_name(folder, "root", cookie_of("root"), VOLUME_ROOT, DT_DIR);
	change_inode(folder, (d.entries = le64_of(2), d.nlink = le32_of(4)));
	must_find("the root has a name");
}

Test(check, parent_of_the_root)
{
	change_inode(VOLUME_ROOT, d.parent = le64_of(folder));
	must_find_only("the root's parent is not itself");
}

Test(check, no_root)
{
	unitvol_plant(&t, key_of(VOLUME_ROOT, ITEM_INODE, 0), NULL, 0);
	must_find("there is no root folder");
}

Test(check, folders_in_a_loop)
{
	drop_name(VOLUME_ROOT, "folder");
	plant_name(sub, "folder", cookie_of("folder"), folder, DT_DIR);
	change_inode(VOLUME_ROOT,
		     (d.entries = le64_of(3), d.nlink = le32_of(2)));
	change_inode(sub, (d.entries = le64_of(1), d.nlink = le32_of(3)));
	change_inode(folder, d.parent = le64_of(sub));
	must_find("a folder that the root does not lead to");
}

Test(check, number_that_was_not_given_out)
{
	struct disk_inode d;

	cr_assert_gt(unitvol_item(&t, &t.v->ft, key_of(other, ITEM_INODE, 0),
				  &d, sizeof(d)),
		     0);
	d.blocks = d.size = le64_of(0);
	d.nlink = le32_of(0);
	unitvol_plant(&t, key_of(5000, ITEM_INODE, 0), &d, sizeof(d));
	plant_orphan(5000);
	must_find_only("inode 5000 has a number that was not given out");
}

Test(check, length_of_a_symbolic_link)
{
	struct attr a;

	must(volume_lookup(t.v, VOLUME_ROOT, "link", &a));
	change_inode(a.ino, d.size = le64_of(7));
	must_find_only("symbolic link of 6 bytes, not 7");
}

/* ---- data */

static uint8_t value[EXTENT_ITEM_BYTES_MAX];

static int extent_at(inum_t ino, uint64_t logical)
{
	return unitvol_item(&t, &t.v->ft, key_of(ino, ITEM_EXTENT, logical),
			    value, sizeof(value));
}

/* Change fields of the first extent of a file. */
#define change_extent(inum, change)                                    \
	do {                                                           \
		struct disk_extent *d = (void *)value;                 \
		int len = extent_at(inum, 0);                          \
                                                                       \
		cr_assert_gt(len, 0);                                  \
		change;                                                \
		unitvol_plant(&t, key_of(inum, ITEM_EXTENT, 0), value, \
			      (size_t)len);                            \
	} while (0)

Test(check, data_beyond_the_size)
{
	change_inode(file, d.size = le64_of(2 * BLOCK_BYTES));
	must_find_only("data beyond its size");
}

Test(check, data_in_what_is_no_file)
{
	change_inode(file, d.mode = le32_of(S_IFIFO | 0600));
	plant_name(VOLUME_ROOT, "file", cookie_of("file"), file, DT_FIFO);
	must_find_only("data in what is no regular file");
}

Test(check, block_owned_twice)
{
	int len = extent_at(file, 0);

	unitvol_plant(&t, key_of(other, ITEM_EXTENT, 64), value, (size_t)len);
	change_inode(other, (d.blocks = le64_of(5),
			     d.size = le64_of(67 * BLOCK_BYTES)));
	must_find("is owned twice (data)");
	cr_assert_eq(unitvol_check(&t), 3, "%s", t.said);
}

Test(check, leaked_block)
{
	struct fault fault;
	block_t start;
	uint32_t nr;

	vol_lock(t.v);
	must(space_reserve_deltas(&t.v->space, 1));
	must(space_alloc(&t.v->space, &t.v->vt, 1, 0, &start, &nr, &fault));
	space_own(&t.v->space, start, nr);
	vol_unlock(t.v);
	must_find_only("is taken and nobody's");
}

Test(check, block_in_use_and_marked_free)
{
	block_t block;

	cr_assert_gt(extent_at(file, 0), 0);
	block = le64_get(((struct disk_extent *)(void *)value)->block);
	vol_lock(t.v);
	space_disk_clear(&t.v->space, block, 1);
	vol_unlock(t.v);
	must_find_only("is in use and marked free");
}

Test(check, data_among_nodes)
{
	struct region *r = &t.v->space.region[0];
	block_t block = FIXED_BLOCKS;

	while (!(r->nodes >> (block / GRANULE_BLOCKS) & 1) ||
	       r->busy[block / 64] >> (block % 64) & 7)
		block++;
	change_extent(file, d->block = le64_of(block));
	must_find("lies in space for something else");
}

Test(check, extent_outside_the_container)
{
	change_extent(file, d->block = le64_of(t.v->space.nr_blocks - 1));
	must_find("lie outside the container");
}

Test(check, overlapping_extents)
{
	int len = extent_at(other, 0);

	unitvol_plant(&t, key_of(file, ITEM_EXTENT, 2), value, (size_t)len);
	must_find("extents overlap at block 2");
}

Test(check, extent_of_no_key)
{
	change_extent(file, d->key_id = le16_of(9));
	must_find("a key or birth that does not exist");
}

Test(check, extent_of_a_later_birth)
{
	change_extent(file, d->birth = le64_of(1000));
	must_find("a key or birth that does not exist");
}

Test(check, unwritten_blocks)
{
	vol_lock(t.v);
	t.v->unwritten += 3;
	vol_unlock(t.v);
	must_find_only("0 blocks are unwritten, the volume says 3");
}

Test(check, damaged_data_is_named)
{
	block_t block;

	cr_assert_gt(extent_at(file, 0), 0);
	block = le64_get(((struct disk_extent *)(void *)value)->block);
	emudev_flip_bit(t.d, block + 1, 77);
	must_find_only("/file: inode 1024, bytes 4096 to 8191: data is not "
		       "what was written");
	emudev_flip_bit(t.d, block + 1, 77);
	emudev_spoil(t.d, block + 2);
	must_find_only("bytes 8192 to 12287: data cannot be read");
}

Test(check, data_is_not_read_unless_asked_for)
{
	struct check_options o = { 0 };
	struct check_result r;
	block_t block;

	cr_assert_gt(extent_at(file, 0), 0);
	block = le64_get(((struct disk_extent *)(void *)value)->block);
	emudev_flip_bit(t.d, block + 1, 77);
	must(check_container(emudev_container(t.d), &t.h, &t.keys, &o, &r));
	cr_assert_eq(r.errors, 0);
	cr_assert_eq(r.data_checked, 0);
	cr_assert_eq(r.blocks_data, 5);
	cr_assert_eq(r.files, 2);
	cr_assert_eq(r.folders, 3);
	cr_assert_eq(r.others, 1);
	cr_assert_eq(r.blocks_total, r.blocks_fixed + r.blocks_data +
					     r.blocks_nodes + r.blocks_freed +
					     r.blocks_free + r.blocks_unbacked);
}

/* ---- nodes and space */

Test(check, lost_node)
{
	block_t block = t.v->ft.root_ptr.block;

	unitvol_file(&t, "more");
	unitvol_close(&t);
	unitvol_open(&t);
	block = t.v->ft.root_ptr.block;
	unitvol_abandon(&t);
	emudev_flip_bit(t.d, block, 8000);
	cr_assert_neq(unitvol_check(&t), 0);
	cr_assert(unitvol_said(&t, "is lost: not authentic"), "%s", t.said);
	emudev_flip_bit(t.d, block, 8000);
	unitvol_must_be_clean(&t);
	emudev_spoil(t.d, block + 1);
	cr_assert_neq(unitvol_check(&t), 0);
	cr_assert(unitvol_said(&t, "is lost: the device failed"), "%s", t.said);
}

/* An item of the volume tree, to be part of the next commit. */
static void plant_in_volume_tree(struct key key, const void *bytes, size_t len)
{
	struct volume *v = t.v;
	struct txn x;
	int err;

	must(txn_begin(&x, v, TXN_DELETE, 2, 0));
	txn_lock(&x);
	v->vt.epoch = v->ft.epoch;
	v->vt.frees = &v->space.live->nodes;
	do {
		err = tree_prepare(&v->vt, &key, &x.fault);
		if (!err)
			err = txn_ready(&x, 4);
	} while (txn_retry(&x, &err));
	must(err);
	tree_put(&v->vt, &key, bytes, len);
	txn_unlock(&x);
	txn_end(&x);
}

/* A second region, of which the next commits change nothing. */
static void grow(void)
{
	must(txn_grow_container(t.v, t.v->space.nr_blocks));
	unitvol_press(&t);
	cr_assert_eq(t.v->space.nr_regions, 2);
}

Test(check, wrong_summary)
{
	struct disk_summary d = { le32_of(UINT32_MAX), le32_of(0),
				  le32_of(8187), le32_of(8187) };

	grow();
	plant_in_volume_tree(key_of(0, ITEM_SUMMARY, 1), &d, sizeof(d));
	must_find_only("region 1: 8192 blocks free, its summary says 8187");
}

Test(check, taken_without_space_from_the_host)
{
	struct disk_summary d = { le32_of(UINT32_MAX & ~8u), le32_of(0),
				  le32_of(31 * GRANULE_BLOCKS), le32_of(1) };
	static struct disk_bitmap bitmap;

	grow();
	bitmap.bits[3 * GRANULE_BLOCKS / 8] = 1;
	plant_in_volume_tree(key_of(0, ITEM_SUMMARY, 1), &d, sizeof(d));
	plant_in_volume_tree(key_of(0, ITEM_BITMAP, 1), &bitmap,
			     sizeof(bitmap));
	must_find_only("is taken and has no space from the host");
}

Test(check, region_outside_the_container)
{
	static struct disk_bitmap bitmap;

	plant_in_volume_tree(key_of(0, ITEM_BITMAP, 7), &bitmap,
			     sizeof(bitmap));
	must_find_only("region 7 lies outside the container");
}

Test(check, freed_and_in_use)
{
	struct disk_freed d = { .nr = le32_of(1), .birth = le64_of(1) };

	cr_assert_gt(extent_at(file, 0), 0);
	d.start = ((struct disk_extent *)(void *)value)->block;
	/* Of a commit long ago, so that no list of today's is touched. */
	plant_in_volume_tree(key_of(TREE_FILES, ITEM_FREED,
				    (uint64_t)1 << FREED_SEQ_BITS | 99),
			     &d, sizeof(d));
	must_find("is owned twice");
}

Test(check, freed_in_a_commit_to_come)
{
	struct disk_freed d = { .nr = le32_of(1), .birth = le64_of(1) };

	cr_assert_gt(extent_at(file, 0), 0);
	d.start = ((struct disk_extent *)(void *)value)->block;
	plant_in_volume_tree(key_of(TREE_FILES, ITEM_FREED,
				    (uint64_t)999 << FREED_SEQ_BITS),
			     &d, sizeof(d));
	must_find("freed list of commit 999, which is not yet");
}

Test(check, not_even_a_superblock)
{
	struct check_options o = { 0 };
	struct check_result r;

	unitvol_abandon(&t);
	for (block_t b = 0; b < RING_SLOTS; b++) {
		emudev_flip_bit(t.d, RING_A_BLOCK + b, 8 * 300);
		emudev_flip_bit(t.d, RING_B_BLOCK + b, 8 * 300);
	}
	cr_assert_eq(check_container(emudev_container(t.d), &t.h, &t.keys, &o,
				     &r),
		     -EBADMSG);
}

Test(check, writes_nothing)
{
	emudev_rebase(t.d);
	unitvol_must_be_clean(&t);
	cr_assert_eq(emudev_nr_events(t.d), 0);
}
