/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fs/dir.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cipher/kdf.h"

#define HASH_LAST (((uint64_t)1 << 55) - 1)

int dir_hash(struct volume *v, const char *s, struct dir_name *n)
{
	uint64_t hash;

	n->s = s;
	n->len = strlen(s);
	if (n->len > NAME_BYTES_MAX)
		return -ENAMETOOLONG;
	if (!n->len || strchr(s, '/'))
		return -EINVAL;
	hash = prf_hash(v->names, s, n->len) >> 9;
	/* Cookies below 256, and the last ones below 2^63, are fixed ones. */
	if (!hash)
		hash = 1;
	if (hash == HASH_LAST)
		hash--;
	n->cookie = hash << 8;
	return 0;
}

static bool same_name(const struct tree_pos *pos, const struct dir_name *n)
{
	const struct disk_dirent *d = pos->value;

	return d->name_len == n->len && !memcmp(d->name, n->s, n->len);
}

/* The first entry of this hash whose cookie is not below @from. */
static int next_of_hash(struct txn *t, inum_t dir, const struct dir_name *n,
			uint64_t from, struct tree_pos *pos)
{
	struct key key = key_of(dir, ITEM_DIRENT, from);
	int err = tree_next(&t->v->ft, &key, pos, &t->fault);

	if (!err && (pos->key.inum != dir || pos->key.type != ITEM_DIRENT ||
		     (pos->key.offset ^ n->cookie) >> 8))
		err = -ENOENT;
	return err;
}

int dir_find(struct txn *t, inum_t dir, const struct dir_name *n,
	     struct dir_entry *e)
{
	uint64_t from = n->cookie;
	struct tree_pos pos;
	int err;

	while (!(err = next_of_hash(t, dir, n, from, &pos))) {
		if (same_name(&pos, n)) {
			const struct disk_dirent *d = pos.value;

			*e = (struct dir_entry){ pos.key.offset,
						 le64_get(d->inum), d->type };
			return 0;
		}
		from = pos.key.offset + 1;
		if (!(from & 0xff))
			return -ENOENT;
	}
	return err;
}

int dir_entry_inode(struct txn *t, const struct dir_entry *e,
		    struct inode **out)
{
	int err = inode_get(t, e->inum, out);

	return err == -ENOENT ? -EUCLEAN : err;
}

int dir_new_cookie(struct txn *t, inum_t dir, const struct dir_name *n,
		   uint64_t *cookie)
{
	struct tree_pos pos;
	int err;

	for (*cookie = n->cookie;; ++*cookie) {
		err = next_of_hash(t, dir, n, *cookie, &pos);
		if (err == -ENOENT || (!err && pos.key.offset != *cookie))
			return dir_prepare(t, dir, *cookie);
		if (err)
			return err;
		if ((*cookie & 0xff) == 0xff)
			return -ENOSPC;
	}
}

int dir_prepare(struct txn *t, inum_t dir, uint64_t cookie)
{
	struct key key = key_of(dir, ITEM_DIRENT, cookie);

	return tree_prepare(&t->v->ft, &key, &t->fault);
}

void dir_put(struct txn *t, inum_t dir, uint64_t cookie,
	     const struct dir_name *n, inum_t inum, uint32_t mode)
{
	struct key key = key_of(dir, ITEM_DIRENT, cookie);
	struct disk_dirent head = {
		.inum = le64_of(inum),
		.type = (uint8_t)((mode & S_IFMT) >> 12),
		.name_len = (uint8_t)n->len,
	};
	uint8_t item[sizeof(head) + NAME_BYTES_MAX];

	memcpy(item, &head, sizeof(head));
	memcpy(item + sizeof(head), n->s, n->len);
	tree_put(&t->v->ft, &key, item, sizeof(head) + n->len);
}

void dir_remove(struct txn *t, inum_t dir, uint64_t cookie)
{
	struct key key = key_of(dir, ITEM_DIRENT, cookie);

	tree_remove(&t->v->ft, &key);
}
