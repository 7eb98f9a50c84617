/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One validate for each item type, in a table; encode and decode beside it.
 */
#include "fs/item.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/header.h"

static bool all_zero(const uint8_t *p, size_t len)
{
	while (len--)
		if (*p++)
			return false;
	return true;
}

static int check_info(const struct key *k, const void *v, size_t len)
{
	const struct disk_info *d = v;

	return k->inum || k->offset || len != sizeof(*d) ||
	       !all_zero(d->zero, sizeof(d->zero));
}

static int check_summary(const struct key *k, const void *v, size_t len)
{
	const struct disk_summary *d = v;

	return k->inum || k->offset >= (uint64_t)1 << 38 || len != sizeof(*d) ||
	       le32_get(d->free) > REGION_BLOCKS ||
	       le32_get(d->longest) > le32_get(d->free) ||
	       (le32_get(d->nodes) & ~le32_get(d->backed));
}

static int check_bitmap(const struct key *k, const void *v, size_t len)
{
	return k->inum || k->offset >= (uint64_t)1 << 38 ||
	       len != sizeof(struct disk_bitmap);
}

static int check_freed(const struct key *k, const void *v, size_t len)
{
	const struct disk_freed *d = v;
	size_t nr = len / sizeof(*d);

	if (k->inum < TREE_FILES || !nr || len % sizeof(*d))
		return 1;
	for (size_t i = 0; i < nr; i++)
		if (!le32_get(d[i].nr) || !le64_get(d[i].start) ||
		    le64_get(d[i].start) >= (uint64_t)1 << 51)
			return 1;
	return 0;
}

static int check_root(const struct key *k, const void *v, size_t len)
{
	const struct disk_root *d = v;
	struct ptr p;

	return k->inum < TREE_FILES || k->offset || len != sizeof(*d) ||
	       ptr_decode(&d->ptr, &p) || !p.block ||
	       le64_get(d->unwritten) >= (uint64_t)1 << 51;
}

static int check_time(const struct disk_time *t)
{
	return le32_get(t->nsec) >= 1000000000u;
}

static int check_inode(const struct key *k, const void *v, size_t len)
{
	const struct disk_inode *d = v;

	return !k->inum || k->inum >= (uint64_t)1 << 63 || k->offset ||
	       len != sizeof(*d) || le64_get(d->size) > INT64_MAX ||
	       le64_get(d->blocks) >= (uint64_t)1 << 51 || le64_get(d->flags) ||
	       le64_get(d->generation) || check_time(&d->atime) ||
	       check_time(&d->mtime) || check_time(&d->ctime) ||
	       check_time(&d->btime) || !(le32_get(d->mode) & S_IFMT) ||
	       le32_get(d->mode) > 0177777 ||
	       !all_zero(d->zero, sizeof(d->zero));
}

static int check_xattr(const struct key *k, const void *v, size_t len)
{
	const struct disk_xattr *d = v;

	if (!k->inum || !len || len > XATTR_CHUNK_BYTES)
		return 1;
	if (k->offset & 0xff)
		return 0;
	if (len < sizeof(*d) || !d->name_len ||
	    d->name_len > len - sizeof(*d) || !all_zero(d->zero, 3) ||
	    le32_get(d->value_len) > 65536)
		return 1;
	return memchr(d->name, 0, d->name_len) != NULL;
}

static int check_symlink(const struct key *k, const void *v, size_t len)
{
	return !k->inum || k->offset > 3 || !len ||
	       len > SYMLINK_CHUNK_BYTES || memchr(v, 0, len);
}

static int check_dirent(const struct key *k, const void *v, size_t len)
{
	const struct disk_dirent *d = v;

	if (!k->inum || k->offset < 256 || k->offset >> 63 ||
	    len < sizeof(*d) || !d->name_len ||
	    len != sizeof(*d) + d->name_len)
		return 1;
	return !le64_get(d->inum) || le64_get(d->inum) >> 63 ||
	       memchr(d->name, 0, d->name_len) ||
	       memchr(d->name, '/', d->name_len);
}

/* Whether the blocks meet a header or a ring. */
static bool in_fixed_place(block_t start, uint64_t nr)
{
	return start < HEADER_A_BLOCK + FIXED_BLOCKS ||
	       (start < HEADER_B_BLOCK + FIXED_BLOCKS &&
		start + nr > HEADER_B_BLOCK);
}

static int check_extent(const struct key *k, const void *v, size_t len)
{
	const struct disk_extent *d = v;
	uint64_t nr;
	uint16_t flags;

	if (!k->inum || len < sizeof(*d))
		return 1;
	nr = le32_get(d->nr);
	flags = le16_get(d->flags);
	if (!nr || k->offset >= (uint64_t)1 << 51 ||
	    nr > ((uint64_t)1 << 51) - k->offset ||
	    le64_get(d->block) >= (uint64_t)1 << 51 ||
	    in_fixed_place(le64_get(d->block), nr) ||
	    le64_get(d->session) >> 63 ||
	    flags & ~(EXTENT_TAGGED | EXTENT_UNWRITTEN) ||
	    flags == (EXTENT_TAGGED | EXTENT_UNWRITTEN) ||
	    nr > ((uint64_t)1 << 32) - le32_get(d->counter))
		return 1;
	if (!(flags & EXTENT_TAGGED))
		return len != sizeof(*d);
	return k->offset % EXTENT_WINDOW_BLOCKS + nr > EXTENT_WINDOW_BLOCKS ||
	       len != extent_bytes((uint32_t)nr, flags);
}

static int check_orphan(const struct key *k, const void *v, size_t len)
{
	return k->inum || !k->offset || k->offset >> 63 || len;
}

static const struct item_rule {
	uint8_t type;
	bool in_volume_tree;
	int (*check)(const struct key *k, const void *v, size_t len);
} rules[] = {
	{ ITEM_INFO, true, check_info },
	{ ITEM_SUMMARY, true, check_summary },
	{ ITEM_BITMAP, true, check_bitmap },
	{ ITEM_FREED, true, check_freed },
	{ ITEM_ROOT, true, check_root },
	{ ITEM_INODE, false, check_inode },
	{ ITEM_XATTR, false, check_xattr },
	{ ITEM_SYMLINK, false, check_symlink },
	{ ITEM_DIRENT, false, check_dirent },
	{ ITEM_EXTENT, false, check_extent },
	{ ITEM_ORPHAN, false, check_orphan },
};

static int check_child(const void *value, size_t len, unsigned int level)
{
	struct ptr p;

	return len != sizeof(struct disk_ptr) || ptr_decode(value, &p) ||
	       !p.block || p.level != level - 1;
}

int item_validate(uint64_t tree, unsigned int level, const struct key *key,
		  const void *value, size_t len)
{
	if (level)
		return check_child(value, len, level) ? -EUCLEAN : 0;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (rules[i].type == key->type &&
		    rules[i].in_volume_tree == (tree == TREE_VOLUME))
			return rules[i].check(key, value, len) ? -EUCLEAN : 0;
	return -EUCLEAN;
}

static struct disk_time time_encode(const struct timespec *t)
{
	return (struct disk_time){ le64_of((uint64_t)t->tv_sec),
				   le32_of((uint32_t)t->tv_nsec) };
}

static struct timespec time_decode(const struct disk_time *d)
{
	return (struct timespec){ .tv_sec = (time_t)le64_get(d->sec),
				  .tv_nsec = (long)le32_get(d->nsec) };
}

void inode_item_encode(const struct inode_item *i, struct disk_inode *d)
{
	*d = (struct disk_inode){
		.mode = le32_of(i->mode),
		.nlink = le32_of(i->nlink),
		.uid = le32_of(i->uid),
		.gid = le32_of(i->gid),
		.size = le64_of(i->size),
		.blocks = le64_of(i->blocks),
		.rdev = le64_of(i->rdev),
		.atime = time_encode(&i->atime),
		.mtime = time_encode(&i->mtime),
		.ctime = time_encode(&i->ctime),
		.btime = time_encode(&i->btime),
		.parent = le64_of(i->parent),
		.entries = le64_of(i->entries),
	};
}

void inode_item_decode(const struct disk_inode *d, struct inode_item *i)
{
	*i = (struct inode_item){
		.mode = le32_get(d->mode),
		.nlink = le32_get(d->nlink),
		.uid = le32_get(d->uid),
		.gid = le32_get(d->gid),
		.size = le64_get(d->size),
		.blocks = le64_get(d->blocks),
		.rdev = le64_get(d->rdev),
		.atime = time_decode(&d->atime),
		.mtime = time_decode(&d->mtime),
		.ctime = time_decode(&d->ctime),
		.btime = time_decode(&d->btime),
		.parent = le64_get(d->parent),
		.entries = le64_get(d->entries),
	};
}

size_t extent_encode(const struct extent *e, const uint8_t *tags, void *out)
{
	struct disk_extent d = {
		.block = le64_of(e->block),
		.session = le64_of(e->nonce.session),
		.birth = le64_of(e->birth),
		.counter = le32_of(e->nonce.counter),
		.nr = le32_of(e->nr),
		.key_id = le16_of(e->key_id),
		.flags = le16_of(e->flags),
	};

	memcpy(out, &d, sizeof(d));
	if (e->flags & EXTENT_TAGGED)
		memcpy((uint8_t *)out + sizeof(d), tags, (size_t)e->nr * 16);
	return extent_bytes(e->nr, e->flags);
}

void extent_decode(const struct key *key, const void *value,
		   struct extent *e, const uint8_t **tags)
{
	const struct disk_extent *d = value;

	*e = (struct extent){
		.logical = key->offset,
		.block = le64_get(d->block),
		.birth = le64_get(d->birth),
		.nonce = { le64_get(d->session), le32_get(d->counter) },
		.nr = le32_get(d->nr),
		.key_id = le16_get(d->key_id),
		.flags = le16_get(d->flags),
	};
	if (tags)
		*tags = d->tags;
}
