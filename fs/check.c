/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The checker reads every node itself, from the superblock down, without the
 * caches and the paths that a mount uses, and keeps its own books: who owns each
 * block, how often each inode is named.  What it finds it tells; it changes
 * nothing.
 */
#include "fs/check.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cipher/tag.h"
#include "fs/check_inodes.h"
#include "fs/container.h"
#include "fs/dir.h"
#include "fs/vol.h"

#define REGION_BYTES (REGION_BLOCKS / 8)

struct check {
	struct volume *v;
	const struct check_options *o;
	struct check_result *r;
	uint64_t nr_blocks;
	uint64_t nr_regions;
	uint8_t *owned;			/* a bit per block: somebody has it */
	uint8_t *bitmap;		/* what the volume tree says */
	struct disk_summary *summary;	/* of each region */
	struct check_inodes inodes;
	uint64_t lost_nodes;		/* could not be read */
	uint64_t unwritten;		/* blocks */
	uint8_t *node_buf, *data_buf;
	/* The inode whose items are going by. */
	struct check_inode *now;
	uint64_t extent_end, symlink_bytes;
	uint64_t xattr_left;		/* bytes still to come */
	struct key xattr_next;
	uint64_t last_cookie;		/* the name before, in this folder */
	char last_name[NAME_BYTES_MAX + 1];
};

static void found(struct check *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void found(struct check *c, const char *format, ...)
{
	char line[PATH_MAX + 256];
	va_list args;

	c->r->errors++;
	if (!c->o->report)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	c->o->report(c->o->report_arg, line);
}

/* ---- blocks */

static bool bit(const uint8_t *map, uint64_t i)
{
	return map[i / 8] >> (i % 8) & 1;
}

/* Whether the granule of @block is backed, and of the kind @node. */
static bool right_granule(const struct check *c, block_t block, bool node)
{
	const struct disk_summary *s = &c->summary[block / REGION_BLOCKS];
	uint32_t g = block % REGION_BLOCKS / GRANULE_BLOCKS;

	return le32_get(s->backed) >> g & 1 &&
	       (le32_get(s->nodes) >> g & 1) == node;
}

enum owner { OWNER_FIXED, OWNER_NODE, OWNER_DATA, OWNER_FREED };

static const char *const owner_name[] = { "fixed place", "node", "data",
					  "freed list" };

/* Returns false if [start, start + nr) does not lie in the container. */
static bool own(struct check *c, block_t start, uint64_t nr, enum owner who)
{
	if (start >= c->nr_blocks || nr > c->nr_blocks - start) {
		found(c, "%s: blocks %llu+%llu lie outside the container",
		      owner_name[who], (unsigned long long)start,
		      (unsigned long long)nr);
		return false;
	}
	for (uint64_t i = start; i < start + nr; i++) {
		if (bit(c->owned, i))
			found(c, "block %llu is owned twice (%s)",
			      (unsigned long long)i, owner_name[who]);
		if (who == OWNER_NODE || who == OWNER_DATA) {
			if (!right_granule(c, i, who == OWNER_NODE))
				found(c, "block %llu (%s) lies in space for "
				      "something else", (unsigned long long)i,
				      owner_name[who]);
		}
		c->owned[i / 8] |= (uint8_t)(1u << (i % 8));
	}
	return true;
}

/* ---- nodes */

static int read_node(struct check *c, const struct ptr *p, uint64_t tree,
		     const struct key *low, const struct key *high,
		     struct node *n)
{
	struct volume *v = c->v;
	const struct key_set *keys = header_key_set(v->keys, p->key_id);
	uint32_t blocks = (1u << v->store.log2_bytes) / BLOCK_BYTES;
	int err;

	if (!keys || p->log2_bytes != v->store.log2_bytes ||
	    p->birth > c->r->commit || p->block >= c->nr_blocks ||
	    blocks > c->nr_blocks - p->block)
		return -EUCLEAN;
	err = container_read(v->c, p->block, blocks, c->node_buf);
	if (err)
		return err;
	return node_open(n, p, tree, low, high, v->h->uuid, keys,
			 c->node_buf);
}

typedef void item_fn(struct check *c, const struct key *key,
		     const void *value, size_t len);

/* Depth is bounded by p->level, which falls by one at each step. */
static int walk(struct check *c, const struct ptr *p, uint64_t tree,
		const struct key *low, const struct key *high, item_fn *item)
{
	struct node *n = node_new(c->v->store.log2_bytes);
	int err;

	if (!n)
		return -ENOMEM;
	err = read_node(c, p, tree, low, high, n);
	if (err == -ENOMEM)
		goto out;
	/* Owned even if it cannot be read. */
	if (tree != TREE_VOLUME)
		own(c, p->block, node_blocks(n), OWNER_NODE);
	if (err) {
		found(c, "tree %llu: node at block %llu (level %u, inodes %llu "
		      "to %llu) is lost: %s", (unsigned long long)tree,
		      (unsigned long long)p->block, p->level,
		      (unsigned long long)low->inum,
		      (unsigned long long)high->inum,
		      err == -EIO ? "the device failed" :
		      err == -EBADMSG ? "not authentic" : "wrong structure");
		c->lost_nodes++;
		err = 0;
		goto out;
	}
	c->r->nodes++;
	for (unsigned int i = 0; !err && i < n->nr; i++) {
		struct key key = node_key(n, i);
		struct key end = i + 1 < n->nr ? node_key(n, i + 1) : *high;
		size_t len;
		const void *value = node_value(n, i, &len);
		struct ptr child;

		if (!n->level) {
			item(c, &key, value, len);
			continue;
		}
		err = ptr_decode(value, &child);
		if (!err)
			err = walk(c, &child, tree, &key, &end, item);
	}
out:
	node_free(n);
	return err;
}

/* ---- the volume tree */

/* First round: what space there is. */
static void space_item(struct check *c, const struct key *key,
		       const void *value, size_t len)
{
	if (key->type != ITEM_SUMMARY && key->type != ITEM_BITMAP)
		return;
	if (key->offset >= c->nr_regions) {
		found(c, "region %llu lies outside the container",
		      (unsigned long long)key->offset);
		return;
	}
	if (key->type == ITEM_SUMMARY)
		memcpy(&c->summary[key->offset], value, len);
	else
		memcpy(c->bitmap + key->offset * REGION_BYTES, value, len);
}

/* Second round: who has it. */
static void freed_item(struct check *c, const struct key *key,
		       const void *value, size_t len)
{
	const struct disk_freed *d = value;

	if (key->type != ITEM_FREED)
		return;
	if (key->offset >> FREED_SEQ_BITS > c->r->commit)
		found(c, "freed list of commit %llu, which is not yet",
		      (unsigned long long)(key->offset >> FREED_SEQ_BITS));
	for (size_t i = 0; i < len / sizeof(*d); i++)
		if (own(c, le64_get(d[i].start), le32_get(d[i].nr),
			OWNER_FREED))
			c->r->blocks_freed += le32_get(d[i].nr);
}

/* Nodes of the volume tree: their granules are known only after a round. */
static int own_nodes(struct check *c, const struct ptr *p,
		     const struct key *low, const struct key *high)
{
	struct node *n = node_new(c->v->store.log2_bytes);
	int err = n ? read_node(c, p, TREE_VOLUME, low, high, n) : -ENOMEM;

	if (n)
		own(c, p->block, node_blocks(n), OWNER_NODE);
	for (unsigned int i = 0; !err && n->level && i < n->nr; i++) {
		struct key key = node_key(n, i);
		struct key end = i + 1 < n->nr ? node_key(n, i + 1) : *high;
		struct ptr child;
		size_t len;

		err = ptr_decode(node_value(n, i, &len), &child);
		if (!err)
			err = own_nodes(c, &child, &key, &end);
	}
	if (n)
		node_free(n);
	/* Said by the walk. */
	return err == -ENOMEM ? err : 0;
}

/* ---- the file tree */

static void check_data(struct check *c, inum_t inum, const struct extent *e,
		       const uint8_t *tags)
{
	struct volume *v = c->v;
	const struct key_set *keys = header_key_set(v->keys, e->key_id);

	for (uint32_t i = 0; i < e->nr; i++) {
		struct nonce n = { e->nonce.session, e->nonce.counter + i };
		int err = container_read(v->c, e->block + i, 1, c->data_buf);

		if (!err && e->flags & EXTENT_TAGGED)
			err = tag_verify(keys->tag, n, c->data_buf,
					 BLOCK_BYTES, tags + i * 16u);
		if (err) {
			char *path = check_path(v, inum);

			found(c, "%s: inode %llu, bytes %llu to %llu: data %s",
			      path ? path : "(no name)",
			      (unsigned long long)inum,
			      (unsigned long long)(e->logical + i) *
				      BLOCK_BYTES,
			      (unsigned long long)(e->logical + i + 1) *
						      BLOCK_BYTES - 1,
			      err == -EBADMSG ? "is not what was written"
					      : "cannot be read");
			free(path);
		}
		c->r->data_checked++;
		if (c->o->progress && !(c->r->data_checked % 4096))
			c->o->progress(c->o->report_arg, c->r->data_checked,
				       c->r->blocks_data);
	}
}

static void extent_item(struct check *c, const struct key *key,
			const void *value)
{
	const struct key_set *keys;
	const uint8_t *tags;
	struct extent e;

	extent_decode(key, value, &e, &tags);
	keys = header_key_set(c->v->keys, e.key_id);
	if (e.logical < c->extent_end)
		found(c, "inode %llu: extents overlap at block %llu",
		      (unsigned long long)key->inum,
		      (unsigned long long)e.logical);
	c->extent_end = e.logical + e.nr;
	if (!keys || (e.flags & EXTENT_TAGGED && !keys->tag) ||
	    e.birth > c->r->commit) {
		found(c, "inode %llu: extent at block %llu has a key or birth "
		      "that does not exist", (unsigned long long)key->inum,
		      (unsigned long long)e.logical);
		return;
	}
	if (!own(c, e.block, e.nr, OWNER_DATA))
		return;
	c->r->blocks_data += e.nr;
	if (e.flags & EXTENT_UNWRITTEN)
		c->unwritten += e.nr;
	if (c->now)
		c->now->blocks += e.nr;
	if (c->now && !(e.flags & EXTENT_UNWRITTEN) && e.logical + e.nr >
	    (c->now->size + BLOCK_BYTES - 1) / BLOCK_BYTES)
		c->now->beyond = true;
	if (c->o->data && !(e.flags & EXTENT_UNWRITTEN))
		check_data(c, key->inum, &e, tags);
}

static void xattr_item(struct check *c, const struct key *key,
		       const void *value, size_t len)
{
	const struct disk_xattr *d = value;
	size_t head;

	if (key->offset & 0xff) {
		if (key_cmp(key, &c->xattr_next) || len > c->xattr_left ||
		    !c->xattr_left) {
			found(c, "inode %llu: piece of an attribute without "
			      "its beginning", (unsigned long long)key->inum);
			return;
		}
		c->xattr_left -= len;
	} else {
		if (c->xattr_left)
			found(c, "inode %llu: an attribute lacks its end",
			      (unsigned long long)c->xattr_next.inum);
		head = sizeof(*d) + d->name_len;
		c->xattr_left = le32_get(d->value_len);
		if (len - head > c->xattr_left) {
			found(c, "inode %llu: an attribute is too long",
			      (unsigned long long)key->inum);
			c->xattr_left = 0;
		} else {
			c->xattr_left -= len - head;
		}
	}
	c->xattr_next = *key;
	c->xattr_next.offset++;
}

/* A name is found by its hash alone; those of one hash are neighbours. */
static void check_name(struct check *c, const struct key *key,
		       const struct disk_dirent *d)
{
	char name[NAME_BYTES_MAX + 1];
	struct dir_name n;

	memcpy(name, d->name, d->name_len);
	name[d->name_len] = '\0';
	if (dir_hash(c->v, name, &n) || (n.cookie ^ key->offset) >> 8)
		found(c, "inode %llu: a name stands where it is not looked "
		      "for", (unsigned long long)key->inum);
	if (!((c->last_cookie ^ key->offset) >> 8) &&
	    !strcmp(c->last_name, name))
		found(c, "inode %llu: a name is there twice",
		      (unsigned long long)key->inum);
	c->last_cookie = key->offset;
	memcpy(c->last_name, name, d->name_len + 1u);
}

static void dirent_item(struct check *c, const struct key *key,
			const void *value)
{
	const struct disk_dirent *d = value;
	struct check_inode *child = check_inode_at(&c->inodes,
						   le64_get(d->inum));

	check_name(c, key, d);
	if (c->now)
		c->now->entries++;
	if (!child)
		return;
	child->names++;
	child->named_type = d->type;
	if (d->type == DT_DIR) {
		child->named_in = key->inum;
		if (c->now)
			c->now->folders++;
	}
}

/* All items of one inode have gone by. */
static void end_inode(struct check *c)
{
	if (c->xattr_left)
		found(c, "inode %llu: an attribute lacks its end",
		      (unsigned long long)c->xattr_next.inum);
	if (c->now && S_ISLNK(c->now->mode) &&
	    c->symlink_bytes != c->now->size)
		found(c, "inode %llu: symbolic link of %llu bytes, not %llu",
		      (unsigned long long)c->now->inum,
		      (unsigned long long)c->symlink_bytes,
		      (unsigned long long)c->now->size);
	c->now = NULL;
	c->xattr_left = c->symlink_bytes = c->extent_end = 0;
	c->last_cookie = 0;
}

static void inode_item(struct check *c, const struct key *key,
		       const void *value)
{
	struct inode_item i;

	end_inode(c);
	inode_item_decode(value, &i);
	c->now = check_inode_at(&c->inodes, key->inum);
	if (!c->now)
		return;
	c->now->there = true;
	c->now->mode = i.mode;
	c->now->nlink = i.nlink;
	c->now->size = i.size;
	c->now->want_blocks = i.blocks;
	c->now->want_entries = i.entries;
	c->now->parent = i.parent;
	if (S_ISREG(i.mode))
		c->r->files++;
	else if (S_ISDIR(i.mode))
		c->r->folders++;
	else
		c->r->others++;
	if (key->inum >= c->v->next_inum)
		found(c, "inode %llu has a number that was not given out",
		      (unsigned long long)key->inum);
}

static void file_item(struct check *c, const struct key *key,
		      const void *value, size_t len)
{
	struct check_inode *in;

	if (key->type == ITEM_ORPHAN) {
		in = check_inode_at(&c->inodes, key->offset);
		if (in)
			in->orphan = true;
		c->r->orphans++;
		return;
	}
	if (key->type == ITEM_INODE) {
		inode_item(c, key, value);
		return;
	}
	if (!c->now || c->now->inum != key->inum) {
		end_inode(c);
		if (!c->lost_nodes)
			found(c, "inode %llu: items without the inode",
			      (unsigned long long)key->inum);
		c->now = check_inode_at(&c->inodes, key->inum);
	}
	if (key->type == ITEM_EXTENT)
		extent_item(c, key, value);
	else if (key->type == ITEM_DIRENT)
		dirent_item(c, key, value);
	else if (key->type == ITEM_XATTR)
		xattr_item(c, key, value, len);
	else
		c->symlink_bytes += len;
}

/* ---- the books */

static void compare_region(struct check *c, uint64_t region)
{
	const struct disk_summary *s = &c->summary[region];
	const uint8_t *map = c->bitmap + region * REGION_BYTES;
	uint32_t data_free = 0;

	for (uint32_t i = 0; i < REGION_BLOCKS; i++) {
		uint64_t block = region * REGION_BLOCKS + i;
		uint32_t g = i / GRANULE_BLOCKS;
		bool set = bit(map, i);

		if (block >= c->nr_blocks)
			break;
		if (!(le32_get(s->backed) >> g & 1)) {
			c->r->blocks_unbacked++;
			if (set)
				found(c, "block %llu is taken and has no "
				      "space from the host",
				      (unsigned long long)block);
			continue;
		}
		if (!set) {
			c->r->blocks_free++;
			if (!(le32_get(s->nodes) >> g & 1))
				data_free++;
			if (bit(c->owned, block))
				found(c, "block %llu is in use and marked "
				      "free", (unsigned long long)block);
		} else if (!bit(c->owned, block) && !c->lost_nodes) {
			found(c, "block %llu is taken and nobody's",
			      (unsigned long long)block);
		}
	}
	if (data_free != le32_get(s->free))
		found(c, "region %llu: %u blocks free, its summary says %u",
		      (unsigned long long)region, data_free,
		      le32_get(s->free));
}

static void say_inode(void *arg, inum_t inum, const char *what)
{
	struct check *c = arg;
	char *path = check_path(c->v, inum);

	found(c, "%s: inode %llu: %s", path ? path : "(no name)",
	      (unsigned long long)inum, what);
	free(path);
}

static int check_files(struct check *c)
{
	const struct key low = KEY_MIN, high = KEY_MAX;
	int err = walk(c, &c->v->ft.root_ptr, TREE_FILES, &low, &high,
		       file_item);

	end_inode(c);
	if (!err && !check_inodes_ok(&c->inodes))
		err = -ENOMEM;
	/* With nodes lost, names and links are bound not to add up. */
	if (!err && !c->lost_nodes && c->unwritten != c->v->unwritten)
		found(c, "%llu blocks are unwritten, the volume says %llu",
		      (unsigned long long)c->unwritten,
		      (unsigned long long)c->v->unwritten);
	if (!err && !c->lost_nodes)
		check_inodes_compare(&c->inodes, say_inode, c);
	return err;
}

static int check_all(struct check *c)
{
	const struct key low = KEY_MIN, high = KEY_MAX;
	const struct ptr *root = &c->v->super.root;
	uint64_t nodes_before;
	int err = walk(c, root, TREE_VOLUME, &low, &high, space_item);

	if (!err)
		err = own_nodes(c, root, &low, &high);
	if (err)
		return err;
	own(c, HEADER_A_BLOCK, FIXED_BLOCKS, OWNER_FIXED);
	own(c, HEADER_B_BLOCK, FIXED_BLOCKS, OWNER_FIXED);
	nodes_before = c->r->nodes;
	err = walk(c, root, TREE_VOLUME, &low, &high, freed_item);
	c->r->nodes = nodes_before;
	if (!err)
		err = check_files(c);
	for (uint64_t i = 0; !err && i < c->nr_regions; i++)
		compare_region(c, i);
	c->r->blocks_total = c->nr_blocks;
	c->r->blocks_fixed = 2 * FIXED_BLOCKS;
	c->r->blocks_nodes = c->r->nodes *
			     ((1u << c->v->store.log2_bytes) / BLOCK_BYTES);
	return err;
}

static int init(struct check *c)
{
	struct volume *v = c->v;

	c->nr_blocks = v->super.nr_blocks;
	c->nr_regions = v->space.nr_regions;
	c->r->commit = v->super.commit;
	c->r->was_clean = v->super.clean;
	c->owned = calloc(c->nr_regions, REGION_BYTES);
	c->bitmap = calloc(c->nr_regions, REGION_BYTES);
	c->summary = calloc(c->nr_regions, sizeof(*c->summary));
	c->node_buf = malloc((size_t)1 << v->store.log2_bytes);
	c->data_buf = malloc(BLOCK_BYTES);
	return c->owned && c->bitmap && c->summary && c->node_buf &&
			       c->data_buf &&
			       !check_inodes_init(&c->inodes)
		       ? 0 : -ENOMEM;
}

static void opening_report(void *arg, const char *line)
{
	found(arg, "%s", line);
}

int check_container(struct container *c, const struct header *h,
		    const struct header_keys *keys,
		    const struct check_options *o, struct check_result *r)
{
	struct check check = { .o = o, .r = r };
	struct volume_options vo = { .read_only = true,
				     .report = opening_report,
				     .report_arg = &check };
	int err;

	*r = (struct check_result){ 0 };
	err = volume_open(&check.v, c, h, keys, &vo);
	if (err)
		return err;
	err = init(&check);
	if (!err)
		err = check_all(&check);
	free(check.owned);
	free(check.bitmap);
	free(check.summary);
	free(check.node_buf);
	free(check.data_buf);
	check_inodes_destroy(&check.inodes);
	volume_abandon(check.v);
	return err;
}
