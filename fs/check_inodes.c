/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fs/check_inodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/inode.h"
#include "fs/vol.h"
#include "fs/volume.h"

int check_inodes_init(struct check_inodes *t)
{
	*t = (struct check_inodes){ .room = 1024 };
	t->slot = calloc(t->room, sizeof(*t->slot));
	return t->slot ? 0 : -ENOMEM;
}

void check_inodes_destroy(struct check_inodes *t)
{
	for (size_t i = 0; t->slot && i < t->room; i++)
		free(t->slot[i]);
	free(t->slot);
}

static size_t find_slot(struct check_inode *const *slot, size_t room,
			inum_t inum)
{
	size_t i = (inum * 0x9e3779b97f4a7c15ull >> 20) & (room - 1);

	while (slot[i] && slot[i]->inum != inum)
		i = (i + 1) & (room - 1);
	return i;
}

static bool grow(struct check_inodes *t)
{
	size_t room = t->room * 2;
	struct check_inode **slot = calloc(room, sizeof(*slot));

	if (!slot)
		return false;
	for (size_t i = 0; i < t->room; i++)
		if (t->slot[i])
			slot[find_slot(slot, room, t->slot[i]->inum)] =
				t->slot[i];
	free(t->slot);
	t->slot = slot;
	t->room = room;
	return true;
}

struct check_inode *check_inode_at(struct check_inodes *t, inum_t inum)
{
	size_t i = find_slot(t->slot, t->room, inum);

	if (t->slot[i])
		return t->slot[i];
	if (t->nr * 4 >= t->room * 3) {
		if (!grow(t)) {
			t->failed = true;
			return NULL;
		}
		i = find_slot(t->slot, t->room, inum);
	}
	t->slot[i] = calloc(1, sizeof(**t->slot));
	if (!t->slot[i]) {
		t->failed = true;
		return NULL;
	}
	t->slot[i]->inum = inum;
	t->nr++;
	return t->slot[i];
}

bool check_inodes_ok(const struct check_inodes *t)
{
	return !t->failed;
}

static struct check_inode *known(struct check_inodes *t, inum_t inum)
{
	return t->slot[find_slot(t->slot, t->room, inum)];
}

/* Whether the folder's parents lead to the root. */
static bool reaches_root(struct check_inodes *t, const struct check_inode *in)
{
	for (size_t steps = 0; in && steps <= t->nr; steps++) {
		if (in->inum == VOLUME_ROOT)
			return true;
		/* An orphan's chain may end anywhere. */
		if (!in->nlink)
			return true;
		in = known(t, in->named_in);
	}
	return false;
}

static const char *folder_fault(struct check_inodes *t,
				const struct check_inode *in)
{
	bool root = in->inum == VOLUME_ROOT;

	if (in->names != (root || !in->nlink ? 0u : 1u))
		return root ? "the root has a name" :
		       in->names ? "a folder with several names"
				 : "a folder without a name";
	if (in->nlink && in->nlink != in->folders + 2)
		return "link count of a folder is not its folders and two";
	if (!root && in->nlink && in->parent != in->named_in)
		return "the folder's parent is not where its name is";
	if (root && in->parent != VOLUME_ROOT)
		return "the root's parent is not itself";
	if (!reaches_root(t, in))
		return "a folder that the root does not lead to";
	return NULL;
}

static const char *fault(struct check_inodes *t, const struct check_inode *in)
{
	bool folder = S_ISDIR(in->mode);

	if (!in->there)
		return in->names ? "named, but not there"
				 : "has an orphan's mark, but is not there";
	if (in->names && in->named_type != (in->mode & S_IFMT) >> 12)
		return "a name gives it another type";
	if (!folder && in->names != in->nlink)
		return "link count is not the number of its names";
	if (!in->nlink && !in->orphan)
		return "without a name, and without an orphan's mark";
	if (in->orphan && in->nlink && !S_ISREG(in->mode))
		return "an orphan's mark on what has a name and no data";
	if (in->blocks != in->want_blocks)
		return "block count is not what is mapped";
	if (in->entries != in->want_entries)
		return "entry count is not the number of names in it";
	if (in->beyond && !in->orphan)
		return "data beyond its size";
	if (in->blocks && !S_ISREG(in->mode))
		return "data in what is no regular file";
	return folder ? folder_fault(t, in) : NULL;
}

void check_inodes_compare(struct check_inodes *t,
			  void (*say)(void *arg, inum_t inum,
				      const char *what),
			  void *arg)
{
	const struct check_inode *root = known(t, VOLUME_ROOT);

	if (!root || !root->there)
		say(arg, VOLUME_ROOT, "there is no root folder");
	for (size_t i = 0; i < t->room; i++) {
		const char *what = t->slot[i] ? fault(t, t->slot[i]) : NULL;

		if (what)
			say(arg, t->slot[i]->inum, what);
	}
}

/* ---- paths */

struct search {
	inum_t inum;
	char *name;
};

static bool is_it(void *arg, const struct volume_dirent *e)
{
	struct search *s = arg;

	if (e->ino != s->inum || e->cookie < 256)
		return true;
	s->name = strdup(e->name);
	return false;
}

static inum_t parent_of(struct volume *v, inum_t inum)
{
	struct inode *in;
	inum_t parent = 0;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return 0;
	txn_lock(&t);
	do {
		err = inode_get(&t, inum, &in);
	} while (txn_retry(&t, &err));
	if (!err)
		parent = in->i.parent;
	txn_unlock(&t);
	txn_end(&t);
	return parent;
}

#define DEPTH_MAX 4096

char *check_path(struct volume *v, inum_t inum)
{
	char *path = NULL;

	for (unsigned int depth = 0; inum != VOLUME_ROOT; depth++) {
		struct search s = { .inum = inum };
		inum_t parent = parent_of(v, inum);
		char *longer;
		int err = parent && depth < DEPTH_MAX
			? volume_readdir(v, parent, 0, 0, is_it, &s)
			: -ENOENT;

		if (err || !s.name ||
		    asprintf(&longer, "/%s%s", s.name, path ? path : "") < 0) {
			free(s.name);
			free(path);
			return NULL;
		}
		free(s.name);
		free(path);
		path = longer;
		inum = parent;
	}
	return path ? path : strdup("/");
}
