/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Listing a folder: entries are copied in batches under the lock and handed out
 * without it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/attr.h"
#include "fs/dir.h"
#include "fs/vol.h"

#define BATCH_ENTRIES 32u

struct batch_entry {
	struct dir_entry e;
	uint8_t name_len;
	char name[NAME_BYTES_MAX + 1];
	struct attr attr;
};

struct batch {
	unsigned int nr;
	inum_t parent;
	struct batch_entry entry[BATCH_ENTRIES];
};

/* The next entries after @cookie, copied, so that no lock is held to emit. */
static int fill(struct txn *t, inum_t dir, uint64_t cookie, bool attrs,
		struct batch *b)
{
	struct key key = key_of(dir, ITEM_DIRENT, cookie + 1);
	struct inode *in;
	int err = inode_get_dir(t, dir, &in);

	if (err)
		return err;
	b->nr = 0;
	b->parent = in->i.parent;
	while (b->nr < BATCH_ENTRIES) {
		struct batch_entry *e = &b->entry[b->nr];
		const struct disk_dirent *d;
		struct tree_pos pos;

		err = tree_next(&t->v->ft, &key, &pos, &t->fault);
		if (err == -ENOENT || (!err && (pos.key.inum != dir ||
						pos.key.type != ITEM_DIRENT)))
			return 0;
		if (err)
			return err;
		d = pos.value;
		e->e = (struct dir_entry){ pos.key.offset, le64_get(d->inum),
					   d->type };
		e->name_len = d->name_len;
		memcpy(e->name, d->name, d->name_len);
		e->name[d->name_len] = '\0';
		if (attrs) {
			err = dir_entry_inode(t, &e->e, &in);
			if (err)
				return err;
			inode_attr(in, &e->attr);
		}
		key.offset = pos.key.offset + 1;
		b->nr++;
	}
	return 0;
}

static int fill_op(struct volume *v, inum_t dir, uint64_t cookie, bool attrs,
		   struct batch *b)
{
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = fill(&t, dir, cookie, attrs, b);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

typedef bool emit_fn(void *arg, const struct volume_dirent *e);

static bool emit_dots(inum_t dir, inum_t parent, uint64_t *cookie,
		      emit_fn *emit, void *arg)
{
	struct volume_dirent self = { .cookie = DIR_COOKIE_SELF, .ino = dir,
				      .mode = S_IFDIR, .name = ".",
				      .name_len = 1 };
	struct volume_dirent up = { .cookie = DIR_COOKIE_PARENT,
				    .ino = parent, .mode = S_IFDIR,
				    .name = "..", .name_len = 2 };

	if (*cookie < DIR_COOKIE_SELF) {
		if (!emit(arg, &self))
			return false;
		*cookie = DIR_COOKIE_SELF;
	}
	if (*cookie < DIR_COOKIE_PARENT) {
		if (!emit(arg, &up))
			return false;
		*cookie = DIR_COOKIE_PARENT;
	}
	return true;
}

static bool emit_batch(const struct batch *b, bool attrs, uint64_t *cookie,
		       emit_fn *emit, void *arg)
{
	for (unsigned int i = 0; i < b->nr; i++) {
		const struct batch_entry *e = &b->entry[i];
		struct volume_dirent d = {
			.cookie = e->e.cookie,
			.ino = e->e.inum,
			.mode = (uint32_t)e->e.type << 12,
			.name = e->name,
			.name_len = e->name_len,
			.attr = attrs ? &e->attr : NULL,
		};

		if (!emit(arg, &d))
			return false;
		*cookie = d.cookie;
	}
	return true;
}

int volume_readdir(struct volume *v, inum_t dir, uint64_t cookie,
		   unsigned int flags, emit_fn *emit, void *arg)
{
	bool attrs = flags & VOLUME_READDIR_ATTR;
	struct batch *b = malloc(sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	for (;;) {
		uint64_t from = cookie < DIR_COOKIE_PARENT ? DIR_COOKIE_PARENT
							   : cookie;

		err = fill_op(v, dir, from, attrs, b);
		if (err || !emit_dots(dir, b->parent, &cookie, emit, arg) ||
		    !emit_batch(b, attrs, &cookie, emit, arg) ||
		    b->nr < BATCH_ENTRIES)
			break;
	}
	free(b);
	if (!err)
		attr_accessed(v, dir);
	return err;
}
