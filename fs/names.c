/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Operations on names: each is one transaction, whole or not at all.  First all
 * is looked up and checked, then all paths are prepared, then all is changed.
 */
#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/attr.h"
#include "fs/dir.h"
#include "fs/inode.h"
#include "fs/orphan.h"
#include "fs/vol.h"
#include "fs/volume.h"

#define LINKS_MAX 0x7fffffffu

static bool is_dot(const char *s)
{
	return s[0] == '.' && (!s[1] || (s[1] == '.' && !s[2]));
}

/* A name that may be made or removed. */
static int hash_new(struct volume *v, const char *s, struct dir_name *n)
{
	return is_dot(s) ? -EINVAL : dir_hash(v, s, n);
}

static int lookup_dot(struct txn *t, inum_t dir, const char *name,
		      struct attr *out)
{
	struct inode *in;
	int err = inode_get(t, dir, &in);

	if (!err && !S_ISDIR(in->i.mode))
		err = -ENOTDIR;
	if (!err && name[1])
		err = inode_get(t, in->i.parent, &in);
	if (!err)
		inode_attr(in, out);
	return err;
}

static int lookup(struct txn *t, inum_t dir, const struct dir_name *n,
		  struct attr *out)
{
	struct dir_entry e;
	struct inode *in;
	int err = inode_get_dir(t, dir, &in);

	if (!err)
		err = dir_find(t, dir, n, &e);
	if (err)
		return err;
	err = dir_entry_inode(t, &e, &in);
	if (!err)
		inode_attr(in, out);
	return err;
}

int volume_lookup(struct volume *v, inum_t dir, const char *name,
		  struct attr *out)
{
	bool dot = is_dot(name);
	struct dir_name n;
	struct txn t;
	int err = dot ? 0 : dir_hash(v, name, &n);

	if (!err)
		err = txn_begin(&t, v, TXN_READ, 0, 0);
	if (err)
		return err;
	txn_lock(&t);
	do {
		err = dot ? lookup_dot(&t, dir, name, out)
			  : lookup(&t, dir, &n, out);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

/* ---- making */

struct making {
	inum_t dir;
	const struct dir_name *name;
	const struct volume_cred *cred;
	uint32_t mode;
	uint64_t rdev;
	const char *target;	/* of a symbolic link */
	struct attr *out;
};

static struct inode_item new_item(struct volume *v, const struct making *m,
				  const struct inode *dir)
{
	struct timespec now = vol_now(v);
	struct inode_item i = {
		.mode = m->mode,
		.nlink = S_ISDIR(m->mode) ? 2 : 1,
		.uid = m->cred->uid,
		.gid = m->cred->gid,
		.rdev = S_ISCHR(m->mode) || S_ISBLK(m->mode) ? m->rdev : 0,
		.size = m->target ? strlen(m->target) : 0,
		.atime = now, .mtime = now, .ctime = now, .btime = now,
		.parent = dir->inum,
	};

	if (dir->i.mode & S_ISGID) {
		i.gid = dir->i.gid;
		if (S_ISDIR(m->mode))
			i.mode |= S_ISGID;
	}
	return i;
}

static void put_target(struct txn *t, inum_t inum, const char *target)
{
	size_t len = strlen(target);

	for (uint64_t chunk = 0; len; chunk++) {
		struct key key = key_of(inum, ITEM_SYMLINK, chunk);
		size_t n = len < SYMLINK_CHUNK_BYTES ? len
						     : SYMLINK_CHUNK_BYTES;

		tree_put(&t->v->ft, &key, target, n);
		target += n;
		len -= n;
	}
}

/* A name was added to or taken from @dir. */
static void dir_changed(struct txn *t, struct inode *dir, int entries,
			int folders)
{
	dir->i.entries += (uint64_t)entries;
	dir->i.nlink += (uint32_t)folders;
	dir->i.mtime = dir->i.ctime = vol_now(t->v);
	inode_dirty(t, dir);
}

/* -ENOENT for a folder that was removed while somebody sits in it. */
static int get_live_dir(struct txn *t, inum_t inum, struct inode **out)
{
	int err = inode_get_dir(t, inum, out);

	return !err && !(*out)->i.nlink ? -ENOENT : err;
}

static int make(struct txn *t, const struct making *m)
{
	struct volume *v = t->v;
	struct key first = key_of(v->next_inum, 0, 0);
	struct key last = key_of(v->next_inum, UINT8_MAX, UINT64_MAX);
	struct inode_item item;
	struct inode *dir, *in;
	struct dir_entry e;
	uint64_t cookie;
	int err = get_live_dir(t, m->dir, &dir);

	if (err)
		return err;
	err = dir_find(t, m->dir, m->name, &e);
	if (err != -ENOENT)
		return err ? err : -EEXIST;
	err = 0;
	if (S_ISDIR(m->mode) && dir->i.nlink >= LINKS_MAX)
		err = -EMLINK;
	if (!err)
		err = dir_new_cookie(t, m->dir, m->name, &cookie);
	if (!err)
		err = tree_prepare_range(&v->ft, &first, &last, &t->fault);
	if (!err)
		err = inode_prepare(t, dir);
	if (!err)
		err = txn_ready(t, 0);
	if (err)
		return err;

	item = new_item(v, m, dir);
	in = inode_new(t, v->next_inum, &item);
	if (!in)
		return -ENOMEM;
	v->next_inum++;
	if (m->target)
		put_target(t, in->inum, m->target);
	dir_put(t, m->dir, cookie, m->name, in->inum, m->mode);
	dir_changed(t, dir, 1, S_ISDIR(m->mode));
	inode_attr(in, m->out);
	return 0;
}

static int make_op(struct volume *v, const char *name, struct making *m)
{
	struct dir_name n;
	struct txn t;
	int err = hash_new(v, name, &n);

	if (err == -EINVAL && is_dot(name))
		err = -EEXIST;
	if (!err)
		err = txn_begin(&t, v, TXN_GROW, m->target ? 5 : 3, 0);
	if (err)
		return err;
	m->name = &n;
	txn_lock(&t);
	do {
		err = make(&t, m);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

int volume_create(struct volume *v, inum_t dir, const char *name,
		  uint32_t mode, uint64_t rdev,
		  const struct volume_cred *cred, struct attr *out)
{
	struct making m = { .dir = dir, .cred = cred, .mode = mode,
			    .rdev = rdev, .out = out };

	switch (mode & S_IFMT) {
	case S_IFREG: case S_IFDIR: case S_IFIFO:
	case S_IFSOCK: case S_IFCHR: case S_IFBLK:
		return make_op(v, name, &m);
	default:
		return -EINVAL;
	}
}

int volume_symlink(struct volume *v, inum_t dir, const char *name,
		   const char *target, const struct volume_cred *cred,
		   struct attr *out)
{
	struct making m = { .dir = dir, .cred = cred, .out = out,
			    .mode = S_IFLNK | 0777, .target = target };

	if (!*target)
		return -ENOENT;
	if (strlen(target) > SYMLINK_BYTES_MAX)
		return -ENAMETOOLONG;
	return make_op(v, name, &m);
}

static int read_target(struct txn *t, inum_t inum, char *buf)
{
	struct key key = key_of(inum, ITEM_SYMLINK, 0);
	size_t done = 0, size;
	struct inode *in;
	int err = inode_get(t, inum, &in);

	if (!err && !S_ISLNK(in->i.mode))
		err = -EINVAL;
	if (err)
		return err;
	size = in->i.size;
	for (; done < size; key.offset++) {
		struct tree_pos pos;

		err = tree_find(&t->v->ft, &key, &pos, &t->fault);
		if (err)
			return err == -ENOENT ? -EUCLEAN : err;
		if (pos.len > SYMLINK_BYTES_MAX - done)
			return -EUCLEAN;
		memcpy(buf + done, pos.value, pos.len);
		done += pos.len;
	}
	buf[done] = '\0';
	return done == size ? 0 : -EUCLEAN;
}

int volume_readlink(struct volume *v, inum_t ino, char *buf)
{
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = read_target(&t, ino, buf);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

static int add_link(struct txn *t, inum_t ino, inum_t to,
		    const struct dir_name *n, struct attr *out)
{
	struct inode *dir, *in;
	struct dir_entry e;
	uint64_t cookie;
	int err = inode_get(t, ino, &in);

	if (!err)
		err = get_live_dir(t, to, &dir);
	if (err)
		return err;
	if (S_ISDIR(in->i.mode))
		return -EPERM;
	/* An orphan (O_TMPFILE aside) has no name to be given back. */
	if (!in->i.nlink)
		return -ENOENT;
	if (in->i.nlink >= LINKS_MAX)
		return -EMLINK;
	err = dir_find(t, to, n, &e);
	if (err != -ENOENT)
		return err ? err : -EEXIST;
	err = dir_new_cookie(t, to, n, &cookie);
	if (!err)
		err = inode_prepare(t, dir);
	if (!err)
		err = inode_prepare(t, in);
	if (!err)
		err = txn_ready(t, 0);
	if (err)
		return err;

	dir_put(t, to, cookie, n, ino, in->i.mode);
	in->i.nlink++;
	in->i.ctime = vol_now(t->v);
	inode_dirty(t, in);
	dir_changed(t, dir, 1, 0);
	inode_attr(in, out);
	return 0;
}

int volume_link(struct volume *v, inum_t ino, inum_t dir, const char *name,
		struct attr *out)
{
	struct dir_name n;
	struct txn t;
	int err = hash_new(v, name, &n);

	if (err == -EINVAL && is_dot(name))
		err = -EEXIST;
	if (!err)
		err = txn_begin(&t, v, TXN_GROW, 3, 0);
	if (err)
		return err;
	txn_lock(&t);
	do {
		err = add_link(&t, ino, dir, &n, out);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

/* ---- removing */

/* One name less; the last one makes it an orphan (path prepared). */
static void drop_link(struct txn *t, struct inode *in)
{
	in->i.nlink = S_ISDIR(in->i.mode) ? 0 : in->i.nlink - 1;
	in->i.ctime = vol_now(t->v);
	inode_dirty(t, in);
	if (!in->i.nlink)
		orphan_put(t, in->inum);
}

/* What @in must be to be removed as @want_dir says. */
static int removable(const struct inode *in, bool want_dir)
{
	if (!in->i.nlink)
		return -EUCLEAN;
	if (want_dir && !S_ISDIR(in->i.mode))
		return -ENOTDIR;
	if (!want_dir && S_ISDIR(in->i.mode))
		return -EISDIR;
	return want_dir && in->i.entries ? -ENOTEMPTY : 0;
}

static int remove_name(struct txn *t, inum_t from, const struct dir_name *n,
		       bool want_dir, inum_t *gone)
{
	struct inode *dir, *in;
	struct dir_entry e;
	int err = inode_get_dir(t, from, &dir);

	if (!err)
		err = dir_find(t, from, n, &e);
	if (!err)
		err = dir_entry_inode(t, &e, &in);
	if (!err)
		err = removable(in, want_dir);
	if (!err)
		err = dir_prepare(t, from, e.cookie);
	if (!err)
		err = inode_prepare(t, dir);
	if (!err)
		err = inode_prepare(t, in);
	if (!err)
		err = orphan_prepare(t, in->inum);
	if (!err)
		err = txn_ready(t, 0);
	if (err)
		return err;

	dir_remove(t, from, e.cookie);
	dir_changed(t, dir, -1, want_dir ? -1 : 0);
	drop_link(t, in);
	*gone = in->inum;
	return 0;
}

static int remove_op(struct volume *v, inum_t dir, const char *name,
		     bool want_dir, inum_t *gone)
{
	struct dir_name n;
	struct txn t;
	inum_t removed = 0;
	int err = dir_hash(v, name, &n);

	if (!err)
		err = txn_begin(&t, v, TXN_DELETE, 4, 0);
	if (err)
		return err;
	txn_lock(&t);
	do {
		err = remove_name(&t, dir, &n, want_dir, &removed);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	if (!err && gone)
		*gone = removed;
	return err;
}

int volume_unlink(struct volume *v, inum_t dir, const char *name, inum_t *gone)
{
	return is_dot(name) ? -EISDIR : remove_op(v, dir, name, false, gone);
}

int volume_rmdir(struct volume *v, inum_t dir, const char *name, inum_t *gone)
{
	if (is_dot(name))
		return name[1] ? -ENOTEMPTY : -EINVAL;
	return remove_op(v, dir, name, true, gone);
}

/* ---- renaming */

struct renaming {
	struct dir_name from_name, to_name;
	inum_t from_dir, to_dir;
	unsigned int flags;
	/* Looked up. */
	struct inode *from, *to;	/* folders */
	struct inode *in, *old;		/* what moves; what is there, or NULL */
	struct dir_entry in_entry, old_entry;
	inum_t gone;
};

/* Whether @dir is @in or lies below it. */
static int is_below(struct txn *t, inum_t dir, const struct inode *in)
{
	/* Damage may make the parents a loop: one is marked, ever later. */
	uint64_t steps = 0, until = 1;
	inum_t mark = dir;

	if (!S_ISDIR(in->i.mode))
		return 0;
	for (inum_t i = dir; i != VOLUME_ROOT;) {
		struct inode *up;
		int err;

		if (i == in->inum)
			return 1;
		err = inode_get(t, i, &up);
		if (err)
			return err == -ENOENT ? -EUCLEAN : err;
		/* A removed folder's chain ends where it was cut off. */
		if (!up->i.nlink)
			return 0;
		i = up->i.parent;
		if (i == mark)
			return -EUCLEAN;
		if (++steps == until) {
			mark = i;
			until *= 2;
		}
	}
	return in->inum == VOLUME_ROOT;
}

static int look_up_both(struct txn *t, struct renaming *r)
{
	int err = inode_get_dir(t, r->from_dir, &r->from);

	if (!err)
		err = get_live_dir(t, r->to_dir, &r->to);
	if (!err)
		err = dir_find(t, r->from_dir, &r->from_name, &r->in_entry);
	if (!err)
		err = dir_entry_inode(t, &r->in_entry, &r->in);
	if (err)
		return err;
	r->old = NULL;
	err = dir_find(t, r->to_dir, &r->to_name, &r->old_entry);
	if (!err)
		err = dir_entry_inode(t, &r->old_entry, &r->old);
	return err == -ENOENT ? 0 : err;
}

/* rename(2)'s table of refusals; 1: nothing to do. */
static int may_rename(struct txn *t, const struct renaming *r)
{
	bool exchange = r->flags & RENAME_EXCHANGE;
	int err;

	if (exchange && !r->old)
		return -ENOENT;
	if (r->flags & RENAME_NOREPLACE && r->old)
		return -EEXIST;
	err = is_below(t, r->to_dir, r->in);
	if (!err && exchange)
		err = is_below(t, r->from_dir, r->old);
	if (err)
		return err < 0 ? err : -EINVAL;
	if (r->old == r->in)
		return 1;
	if (r->old && !exchange) {
		bool dir = S_ISDIR(r->in->i.mode);

		/* The parent of what moves is never empty. */
		if (!dir && S_ISDIR(r->old->i.mode))
			return -EISDIR;
		return removable(r->old, dir);
	}
	if (S_ISDIR(r->in->i.mode) && r->to->i.nlink >= LINKS_MAX)
		return -EMLINK;
	return 0;
}

static int prepare_rename(struct txn *t, struct renaming *r)
{
	struct volume *v = t->v;
	struct key spare = key_of(v->next_inum, ITEM_INODE, 0);
	int err = dir_prepare(t, r->from_dir, r->in_entry.cookie);

	if (!err && r->old)
		err = dir_prepare(t, r->to_dir, r->old_entry.cookie);
	if (!err && !r->old)
		err = dir_new_cookie(t, r->to_dir, &r->to_name,
				     &r->old_entry.cookie);
	if (!err)
		err = inode_prepare(t, r->from);
	if (!err)
		err = inode_prepare(t, r->to);
	if (!err)
		err = inode_prepare(t, r->in);
	if (!err && r->old)
		err = inode_prepare(t, r->old);
	if (!err && r->old)
		err = orphan_prepare(t, r->old->inum);
	if (!err)
		err = tree_prepare(&v->ft, &spare, &t->fault);
	if (!err)
		err = txn_ready(t, 0);
	return err;
}

/* @in now has its name in @dir. */
static void moved(struct txn *t, struct inode *in, inum_t dir)
{
	in->i.parent = dir;
	in->i.ctime = vol_now(t->v);
	inode_dirty(t, in);
}

static void exchange(struct txn *t, struct renaming *r)
{
	int d = S_ISDIR(r->old->i.mode) - S_ISDIR(r->in->i.mode);

	dir_put(t, r->from_dir, r->in_entry.cookie, &r->from_name,
		r->old->inum, r->old->i.mode);
	dir_put(t, r->to_dir, r->old_entry.cookie, &r->to_name, r->in->inum,
		r->in->i.mode);
	moved(t, r->in, r->to_dir);
	moved(t, r->old, r->from_dir);
	dir_changed(t, r->from, 0, d);
	dir_changed(t, r->to, 0, -d);
}

/* A whiteout is a character device 0:0, as overlay mounts want it. */
static struct inode *new_whiteout(struct txn *t, const struct renaming *r)
{
	struct timespec now = vol_now(t->v);
	struct inode_item item = {
		.mode = S_IFCHR, .nlink = 1,
		.uid = r->in->i.uid, .gid = r->in->i.gid,
		.atime = now, .mtime = now, .ctime = now, .btime = now,
		.parent = r->from_dir,
	};

	if (r->from->i.mode & S_ISGID)
		item.gid = r->from->i.gid;

	return inode_new(t, t->v->next_inum, &item);
}

static int do_rename(struct txn *t, struct renaming *r)
{
	struct volume *v = t->v;
	int dir = S_ISDIR(r->in->i.mode) ? 1 : 0;
	struct inode *whiteout = NULL;

	if (r->flags & RENAME_WHITEOUT) {
		whiteout = new_whiteout(t, r);
		if (!whiteout)
			return -ENOMEM;
		v->next_inum++;
		dir_put(t, r->from_dir, r->in_entry.cookie, &r->from_name,
			whiteout->inum, whiteout->i.mode);
	} else {
		dir_remove(t, r->from_dir, r->in_entry.cookie);
	}
	dir_put(t, r->to_dir, r->old_entry.cookie, &r->to_name, r->in->inum,
		r->in->i.mode);
	dir_changed(t, r->from, whiteout ? 0 : -1, -dir);
	dir_changed(t, r->to, r->old ? 0 : 1, dir);
	if (r->old) {
		if (S_ISDIR(r->old->i.mode))
			dir_changed(t, r->to, 0, -1);
		r->gone = r->old->inum;
		drop_link(t, r->old);
	}
	moved(t, r->in, r->to_dir);
	return 0;
}

static int rename_body(struct txn *t, struct renaming *r)
{
	int err = look_up_both(t, r);

	if (!err)
		err = may_rename(t, r);
	if (err)
		return err == 1 ? 0 : err;
	err = prepare_rename(t, r);
	if (err)
		return err;
	if (r->flags & RENAME_EXCHANGE) {
		exchange(t, r);
		return 0;
	}
	return do_rename(t, r);
}

static bool known_flags(unsigned int flags)
{
	switch (flags) {
	case 0:
	case RENAME_NOREPLACE:
	case RENAME_EXCHANGE:
	case RENAME_WHITEOUT:
	case RENAME_WHITEOUT | RENAME_NOREPLACE:
		return true;
	default:
		return false;
	}
}

int volume_rename(struct volume *v, inum_t dir, const char *name,
		  inum_t new_dir, const char *new_name, unsigned int flags,
		  inum_t *gone)
{
	struct renaming r = { .from_dir = dir, .to_dir = new_dir,
			      .flags = flags };
	enum txn_class class = flags & RENAME_WHITEOUT ? TXN_GROW : TXN_DELETE;
	struct txn t;
	int err;

	if (!known_flags(flags))
		return -EINVAL;
	if (is_dot(name) || is_dot(new_name))
		return flags & RENAME_NOREPLACE && is_dot(new_name) ? -EEXIST
								    : -EBUSY;
	err = dir_hash(v, name, &r.from_name);
	if (!err)
		err = dir_hash(v, new_name, &r.to_name);
	if (!err)
		err = txn_begin(&t, v, class, 8, 0);
	if (err)
		return err;
	txn_lock(&t);
	do {
		err = rename_body(&t, &r);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	if (!err && gone)
		*gone = r.gone;
	return err;
}
