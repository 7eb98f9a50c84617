/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Extended attributes.  An attribute is a run of items of up to 1024 bytes: the
 * first has a head, the name and the beginning of the value, the others go on
 * with it.  Key offset: 47 bits of the name's hash, 8 that tell names of one hash
 * apart, 8 for the chunk.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "cipher/kdf.h"
#include "fs/extent.h"
#include "fs/inode.h"
#include "fs/vol.h"
#include "fs/volume.h"

#define CHUNKS_MAX 256u

struct xattr_name {
	const char *s;
	size_t len;
	uint64_t hash;		/* offset of its first possible item */
};

static int hash_name(struct volume *v, const char *s, struct xattr_name *n)
{
	n->s = s;
	n->len = strlen(s);
	if (!n->len)
		return -EINVAL;
	if (n->len > NAME_BYTES_MAX)
		return -ERANGE;
	n->hash = prf_hash(v->names, s, n->len) >> 17 << 16;
	return 0;
}

static bool is_xattr_of(const struct tree_pos *pos, inum_t ino)
{
	return pos->key.inum == ino && pos->key.type == ITEM_XATTR;
}

/* Other chunks have no head: any bytes may stand there. */
static bool is_first(const struct tree_pos *pos)
{
	return !(pos->key.offset & 0xff);
}

/*
 * The first item of the attribute: 0 with *pos, or -ENOENT with *spare, an
 * offset where a new one may begin; -ENOSPC if there is none; -EUCLEAN if an
 * attribute lacks its first item.
 */
static int find(struct txn *t, inum_t ino, const struct xattr_name *n,
		struct tree_pos *pos, uint64_t *spare)
{
	struct key key = key_of(ino, ITEM_XATTR, n->hash);
	int err;

	*spare = n->hash;
	for (;;) {
		const struct disk_xattr *d;

		err = tree_next(&t->v->ft, &key, pos, &t->fault);
		if (!err && (!is_xattr_of(pos, ino) ||
			     (pos->key.offset ^ n->hash) >> 16))
			err = -ENOENT;
		if (err)
			break;
		/* Chunk 0 of some attribute with this hash. */
		if (!is_first(pos))
			return -EUCLEAN;
		d = pos->value;
		if (d->name_len == n->len && !memcmp(d->name, n->s, n->len))
			return 0;
		key.offset = (pos->key.offset | 0xff) + 1;
		if (pos->key.offset == *spare)
			*spare += CHUNKS_MAX;
		if ((*spare ^ n->hash) >> 16)
			return -ENOSPC;
	}
	return err;
}

static size_t head_bytes(const struct xattr_name *n)
{
	return sizeof(struct disk_xattr) + n->len;
}

/* Copy the value that begins at @pos. */
static int copy_value(struct txn *t, const struct xattr_name *n,
		      struct tree_pos *pos, uint8_t *buf, size_t len)
{
	size_t skip = head_bytes(n), done = 0;
	struct key key = pos->key;

	for (;;) {
		if (pos->len < skip || pos->len - skip > len - done)
			return -EUCLEAN;
		memcpy(buf + done, (const uint8_t *)pos->value + skip,
		       pos->len - skip);
		done += pos->len - skip;
		if (done == len)
			return 0;
		skip = 0;
		key.offset++;
		int err = tree_find(&t->v->ft, &key, pos, &t->fault);

		if (err)
			return err == -ENOENT ? -EUCLEAN : err;
	}
}

static int get(struct txn *t, inum_t ino, const struct xattr_name *n,
	       void *buf, size_t size, size_t *len)
{
	struct tree_pos pos;
	struct inode *in;
	uint64_t spare;
	int err = inode_get(t, ino, &in);

	if (!err) {
		err = find(t, ino, n, &pos, &spare);
		if (err == -ENOENT || err == -ENOSPC)
			err = -ENODATA;
	}
	if (err)
		return err;
	*len = le32_get(((const struct disk_xattr *)pos.value)->value_len);
	if (!size)
		return 0;
	if (size < *len)
		return -ERANGE;
	return copy_value(t, n, &pos, buf, *len);
}

int volume_getxattr(struct volume *v, inum_t ino, const char *name, void *buf,
		    size_t size, size_t *len)
{
	struct xattr_name n;
	struct txn t;
	int err = hash_name(v, name, &n);

	if (!err)
		err = txn_begin(&t, v, TXN_READ, 0, 0);
	if (err)
		return err;
	txn_lock(&t);
	do {
		err = get(&t, ino, &n, buf, size, len);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

static unsigned int nr_chunks(const struct xattr_name *n, size_t value_len)
{
	return (unsigned int)((head_bytes(n) + value_len +
			       XATTR_CHUNK_BYTES - 1) / XATTR_CHUNK_BYTES);
}

/*
 * All chunks that the attribute at @offset may have, of which @nr must be
 * there: 0, -EAGAIN or -EUCLEAN.
 */
static int prepare(struct txn *t, inum_t ino, uint64_t offset, unsigned int nr)
{
	struct key first = key_of(ino, ITEM_XATTR, offset);
	struct key last = key_of(ino, ITEM_XATTR, offset | 0xff);
	int err = tree_prepare_range(&t->v->ft, &first, &last, &t->fault);

	for (unsigned int i = 0; !err && i < nr; i++) {
		struct key key = key_of(ino, ITEM_XATTR, offset + i);
		struct tree_pos pos;

		err = tree_find(&t->v->ft, &key, &pos, &t->fault);
	}
	return err == -ENOENT ? -EUCLEAN : err;
}

static void remove_chunks(struct txn *t, inum_t ino, uint64_t offset,
			  unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		struct key key = key_of(ino, ITEM_XATTR, offset + i);

		tree_remove(&t->v->ft, &key);
	}
}

static void put_chunks(struct txn *t, inum_t ino, uint64_t offset,
		       const struct xattr_name *n, const uint8_t *value,
		       size_t len)
{
	uint8_t chunk[XATTR_CHUNK_BYTES];
	struct disk_xattr head = { .value_len = le32_of((uint32_t)len),
				   .name_len = (uint8_t)n->len };
	size_t used = head_bytes(n), done = 0;

	memcpy(chunk, &head, sizeof(head));
	memcpy(chunk + sizeof(head), n->s, n->len);
	do {
		size_t room = sizeof(chunk) - used;
		size_t part = len - done < room ? len - done : room;
		struct key key = key_of(ino, ITEM_XATTR, offset++);

		if (part)
			memcpy(chunk + used, value + done, part);
		tree_put(&t->v->ft, &key, chunk, used + part);
		done += part;
		used = 0;
	} while (done < len);
}

static unsigned int chunks_there(const struct xattr_name *n,
				 const struct tree_pos *pos)
{
	const struct disk_xattr *d = pos->value;

	return nr_chunks(n, le32_get(d->value_len));
}

static int set(struct txn *t, inum_t ino, const struct xattr_name *n,
	       const void *value, size_t len, int flags)
{
	unsigned int old = 0;
	struct tree_pos pos;
	struct inode *in;
	uint64_t offset;
	int err = inode_get(t, ino, &in);

	if (err)
		return err;
	err = find(t, ino, n, &pos, &offset);
	if (!err) {
		if (flags & XATTR_CREATE)
			return -EEXIST;
		offset = pos.key.offset;
		old = chunks_there(n, &pos);
	} else if (err != -ENOENT) {
		return err;
	} else if (flags & XATTR_REPLACE) {
		return -ENODATA;
	}
	err = prepare(t, ino, offset, old);
	if (!err)
		err = inode_prepare(t, in);
	if (!err)
		err = txn_ready(t, 0);
	if (err)
		return err;

	remove_chunks(t, ino, offset, old);
	put_chunks(t, ino, offset, n, value, len);
	in->i.ctime = vol_now(t->v);
	inode_dirty(t, in);
	return 0;
}

int volume_setxattr(struct volume *v, inum_t ino, const char *name,
		    const void *value, size_t len, int flags)
{
	unsigned int paths = 2 + 2 * extent_paths(v, CHUNKS_MAX / 3);
	struct xattr_name n;
	struct txn t;
	int err = hash_name(v, name, &n);

	if (err)
		return err;
	if (len > XATTR_BYTES_MAX)
		return -E2BIG;
	err = txn_begin(&t, v, TXN_GROW, paths, 0);
	if (err)
		return err;
	txn_lock(&t);
	do {
		err = set(&t, ino, &n, value, len, flags);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

static int drop(struct txn *t, inum_t ino, const struct xattr_name *n)
{
	struct tree_pos pos;
	struct inode *in;
	uint64_t spare, offset;
	unsigned int old;
	int err = inode_get(t, ino, &in);

	if (err)
		return err;
	err = find(t, ino, n, &pos, &spare);
	if (err)
		return err == -ENOENT || err == -ENOSPC ? -ENODATA : err;
	offset = pos.key.offset;
	old = chunks_there(n, &pos);
	err = prepare(t, ino, offset, old);
	if (!err)
		err = inode_prepare(t, in);
	if (!err)
		err = txn_ready(t, 0);
	if (err)
		return err;
	remove_chunks(t, ino, offset, old);
	in->i.ctime = vol_now(t->v);
	inode_dirty(t, in);
	return 0;
}

int volume_removexattr(struct volume *v, inum_t ino, const char *name)
{
	unsigned int paths = 2 + extent_paths(v, CHUNKS_MAX / 3);
	struct xattr_name n;
	struct txn t;
	int err = hash_name(v, name, &n);

	if (!err)
		err = txn_begin(&t, v, TXN_DELETE, paths, 0);
	if (err)
		return err;
	txn_lock(&t);
	do {
		err = drop(&t, ino, &n);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

static int list(struct txn *t, inum_t ino, char *buf, size_t size,
		size_t *len)
{
	struct key key = key_of(ino, ITEM_XATTR, 0);
	struct tree_pos pos;
	struct inode *in;
	int err = inode_get(t, ino, &in);

	*len = 0;
	while (!err) {
		const struct disk_xattr *d;

		err = tree_next(&t->v->ft, &key, &pos, &t->fault);
		if (err == -ENOENT || (!err && !is_xattr_of(&pos, ino)))
			return 0;
		if (err)
			break;
		if (!is_first(&pos))
			return -EUCLEAN;
		d = pos.value;
		if (size) {
			if (d->name_len + 1u > size - *len)
				return -ERANGE;
			memcpy(buf + *len, d->name, d->name_len);
			buf[*len + d->name_len] = '\0';
		}
		*len += d->name_len + 1u;
		key.offset = (pos.key.offset | 0xff) + 1;
	}
	return err;
}

int volume_listxattr(struct volume *v, inum_t ino, char *buf, size_t size,
		     size_t *len)
{
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = list(&t, ino, buf, size, len);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}
