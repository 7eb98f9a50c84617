/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The reference model: one array of inodes, a sorted array of names in each
 * folder, an array of extended attributes in each inode.  Checks come in the
 * order in which Linux makes them, so that the first of several errors agrees.
 */
#include "tests/support/refmodel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/support/refdata.h"

#define FIRST_COOKIE 3 /* 1 and 2 are "." and ".." */

struct name {
	char *text;
	inum_t ino;
};

struct xattr {
	char *name;
	uint8_t *value;
	size_t len;
};

struct node {
	struct attr attr;    /* size and blocks of files: in data */
	struct refdata data; /* regular files */
	char *target;	     /* symbolic links */
	inum_t parent;	     /* folders */
	size_t nr_names;
	struct name *names; /* folders: sorted by bytes */
	size_t nr_xattrs;
	struct xattr *xattrs; /* sorted by name */
};

struct refmodel {
	struct node **node; /* by inode number; NULL: none */
	inum_t end;	    /* first number never used */
	void (*now)(struct timespec *ts);
};

/* Life of inodes. */

static struct node *get(const struct refmodel *m, inum_t ino)
{
	return ino < m->end ? m->node[ino] : NULL;
}

static struct timespec clock_now(struct refmodel *m)
{
	struct timespec ts;

	m->now(&ts);
	return ts;
}

static struct node *new_node(struct refmodel *m, uint32_t mode)
{
	struct node *n = xmalloc(sizeof(*n));

	m->node = xrealloc(m->node, (m->end + 1) * sizeof(struct node *));
	m->node[m->end] = n;
	n->attr.ino = m->end++;
	n->attr.mode = mode;
	n->attr.nlink = S_ISDIR(mode) ? 2 : 1;
	n->attr.btime = clock_now(m);
	n->attr.atime = n->attr.mtime = n->attr.ctime = n->attr.btime;
	return n;
}

static void free_node(struct node *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->nr_names; i++)
		free(n->names[i].text);
	for (size_t i = 0; i < n->nr_xattrs; i++) {
		free(n->xattrs[i].name);
		free(n->xattrs[i].value);
	}
	free(n->names);
	free(n->xattrs);
	free(n->target);
	refdata_free(&n->data);
	free(n);
}

static struct node *clone_node(const struct node *n)
{
	struct node *c = xmalloc(sizeof(*c));

	*c = *n;
	refdata_copy(&c->data, &n->data);
	c->target = n->target ? strdup(n->target) : NULL;
	c->names = xmalloc(n->nr_names * sizeof(*c->names));
	for (size_t i = 0; i < n->nr_names; i++) {
		c->names[i].text = strdup(n->names[i].text);
		c->names[i].ino = n->names[i].ino;
	}
	c->xattrs = xmalloc(n->nr_xattrs * sizeof(*c->xattrs));
	for (size_t i = 0; i < n->nr_xattrs; i++) {
		c->xattrs[i].name = strdup(n->xattrs[i].name);
		c->xattrs[i].len = n->xattrs[i].len;
		c->xattrs[i].value = xmalloc(n->xattrs[i].len);
		memcpy(c->xattrs[i].value, n->xattrs[i].value,
		       n->xattrs[i].len);
	}
	return c;
}

struct refmodel *refmodel_new(const struct attr *root,
			      void (*now)(struct timespec *ts))
{
	struct refmodel *m = xmalloc(sizeof(*m));
	struct node *n;

	m->now = now;
	m->end = VOLUME_ROOT;
	m->node = xmalloc(m->end * sizeof(struct node *));
	n = new_node(m, root->mode);
	n->attr = *root;
	n->attr.ino = n->parent = VOLUME_ROOT;
	return m;
}

struct refmodel *refmodel_clone(const struct refmodel *m)
{
	struct refmodel *c = xmalloc(sizeof(*c));

	*c = *m;
	c->node = xmalloc(m->end * sizeof(struct node *));
	for (inum_t i = 0; i < m->end; i++)
		c->node[i] = m->node[i] ? clone_node(m->node[i]) : NULL;
	return c;
}

void refmodel_free(struct refmodel *m)
{
	if (!m)
		return;
	for (inum_t i = 0; i < m->end; i++)
		free_node(m->node[i]);
	free(m->node);
	free(m);
}

static void drop_if_orphan(struct refmodel *m, inum_t ino)
{
	struct node *n = get(m, ino);

	if (!n || n->attr.nlink)
		return;
	free_node(n);
	m->node[ino] = NULL;
}

void refmodel_drop_orphans(struct refmodel *m)
{
	for (inum_t i = 0; i < m->end; i++)
		drop_if_orphan(m, i);
}

void refmodel_skip_to(struct refmodel *m, inum_t next)
{
	m->node = xrealloc(m->node, next * sizeof(struct node *));
	while (m->end < next)
		m->node[m->end++] = NULL;
}

/* Times. */

static void changed(struct refmodel *m, struct node *n)
{
	n->attr.ctime = clock_now(m);
}

static void modified(struct refmodel *m, struct node *n)
{
	n->attr.mtime = n->attr.ctime = clock_now(m);
}

static void kill_suidgid(struct node *n)
{
	n->attr.mode &= ~(uint32_t)S_ISUID;
	if (n->attr.mode & S_IXGRP)
		n->attr.mode &= ~(uint32_t)S_ISGID;
}

static void fill_attr(const struct node *n, struct attr *out)
{
	*out = n->attr;
	if (S_ISREG(n->attr.mode)) {
		out->size = n->data.size;
		out->blocks = n->data.nr * 8;
	}
	if (S_ISLNK(n->attr.mode))
		out->size = strlen(n->target);
}

/* Names. */

/* Position of the first name that is not before @text. */
static size_t name_position(const struct node *dir, const char *text)
{
	size_t low = 0, high = dir->nr_names;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(dir->names[mid].text, text) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct name *find_name(struct node *dir, const char *text)
{
	size_t at = name_position(dir, text);

	return at < dir->nr_names && !strcmp(dir->names[at].text, text)
		       ? &dir->names[at]
		       : NULL;
}

static void add_name(struct node *dir, const char *text, inum_t ino)
{
	size_t at = name_position(dir, text);

	dir->names =
		xrealloc(dir->names, (dir->nr_names + 1) * sizeof(*dir->names));
	memmove(&dir->names[at + 1], &dir->names[at],
		(dir->nr_names - at) * sizeof(*dir->names));
	dir->names[at].text = strdup(text);
	dir->names[at].ino = ino;
	dir->nr_names++;
}

static void remove_name(struct node *dir, struct name *name)
{
	size_t at = (size_t)(name - dir->names);

	free(name->text);
	dir->nr_names--;
	memmove(name, name + 1, (dir->nr_names - at) * sizeof(*name));
}

/* The folder @ino in which a name is to be looked up or made. */
static int get_dir(struct refmodel *m, inum_t ino, struct node **out)
{
	struct node *n = get(m, ino);

	if (!n)
		return -ENOENT;
	if (!S_ISDIR(n->attr.mode))
		return -ENOTDIR;
	*out = n;
	return n->attr.nlink ? 0 : -ENOENT;
}

static int get_dir_name(struct refmodel *m, inum_t dir, const char *name,
			struct node **d, struct name **found)
{
	int err = get_dir(m, dir, d);

	if (err)
		return err;
	if (strlen(name) > NAME_BYTES_MAX)
		return -ENAMETOOLONG;
	*found = find_name(*d, name);
	return 0;
}

/* Whether @ino is @of or a folder above it. */
static bool is_above(struct refmodel *m, inum_t ino, inum_t of)
{
	for (;; of = get(m, of)->parent) {
		if (of == ino)
			return true;
		if (of == VOLUME_ROOT)
			return false;
	}
}

static int m_lookup(void *fs, inum_t dir, const char *name, struct attr *out)
{
	struct refmodel *m = fs;
	struct name *found;
	struct node *d;
	int err;

	err = get_dir_name(m, dir, name, &d, &found);
	if (err)
		return err;
	if (!strcmp(name, ".")) {
		fill_attr(d, out);
		return 0;
	}
	if (!strcmp(name, "..")) {
		fill_attr(get(m, d->parent), out);
		return 0;
	}
	if (!found)
		return -ENOENT;
	fill_attr(get(m, found->ino), out);
	return 0;
}

static int m_getattr(void *fs, inum_t ino, struct attr *out)
{
	struct node *n = get(fs, ino);

	if (!n)
		return -ENOENT;
	fill_attr(n, out);
	return 0;
}

static int check_size(const struct node *n, uint64_t size)
{
	if (S_ISDIR(n->attr.mode))
		return -EISDIR;
	if (!S_ISREG(n->attr.mode))
		return -EINVAL;
	return size > FILE_BYTES_MAX ? -EFBIG : 0;
}

static int m_setattr(void *fs, inum_t ino, unsigned int what,
		     const struct attr *in, struct attr *out)
{
	struct refmodel *m = fs;
	struct node *n = get(m, ino);
	int err;

	if (!n)
		return -ENOENT;
	if (!what)
		return m_getattr(fs, ino, out);
	err = what & VOLUME_SET_SIZE ? check_size(n, in->size) : 0;
	if (err)
		return err;

	if (what & VOLUME_SET_MODE)
		n->attr.mode = (n->attr.mode & S_IFMT) | (in->mode & 07777);
	if (what & VOLUME_SET_UID)
		n->attr.uid = in->uid;
	if (what & VOLUME_SET_GID)
		n->attr.gid = in->gid;
	if (what & VOLUME_KILL_SUIDGID)
		kill_suidgid(n);
	if (what & VOLUME_SET_SIZE) {
		refdata_truncate(&n->data, in->size);
		n->attr.mtime = clock_now(m);
	}
	if (what & VOLUME_SET_ATIME)
		n->attr.atime = in->atime;
	if (what & VOLUME_SET_ATIME_NOW)
		n->attr.atime = clock_now(m);
	if (what & VOLUME_SET_MTIME)
		n->attr.mtime = in->mtime;
	if (what & VOLUME_SET_MTIME_NOW)
		n->attr.mtime = clock_now(m);
	n->attr.ctime = what & VOLUME_SET_CTIME ? in->ctime : clock_now(m);
	fill_attr(n, out);
	return 0;
}

/* Put a new inode of @mode under @name, once it is known that it may be. */
static struct node *add_inode(struct refmodel *m, inum_t dir, const char *name,
			      uint32_t mode, const struct volume_cred *cred)
{
	struct node *n = new_node(m, mode), *d = get(m, dir);

	n->attr.uid = cred->uid;
	n->attr.gid = cred->gid;
	n->parent = dir;
	if (d->attr.mode & S_ISGID) {
		n->attr.gid = d->attr.gid;
		if (S_ISDIR(mode))
			n->attr.mode |= S_ISGID;
	}
	if (S_ISDIR(mode))
		d->attr.nlink++;
	add_name(d, name, n->attr.ino);
	modified(m, d);
	return n;
}

static int m_create(void *fs, inum_t dir, const char *name, uint32_t mode,
		    uint64_t rdev, const struct volume_cred *cred,
		    struct attr *out)
{
	struct refmodel *m = fs;
	struct name *found;
	struct node *d, *n;
	int err;

	err = get_dir_name(m, dir, name, &d, &found);
	if (err)
		return err;
	if (found)
		return -EEXIST;
	n = add_inode(m, dir, name, mode, cred);
	if (S_ISCHR(mode) || S_ISBLK(mode))
		n->attr.rdev = rdev;
	fill_attr(n, out);
	return 0;
}

static int m_symlink(void *fs, inum_t dir, const char *name, const char *target,
		     const struct volume_cred *cred, struct attr *out)
{
	struct refmodel *m = fs;
	struct name *found;
	struct node *d, *n;
	int err;

	if (!*target)
		return -ENOENT;
	if (strlen(target) > SYMLINK_BYTES_MAX)
		return -ENAMETOOLONG;
	err = get_dir_name(m, dir, name, &d, &found);
	if (err)
		return err;
	if (found)
		return -EEXIST;
	n = add_inode(m, dir, name, S_IFLNK | 0777, cred);
	n->target = strdup(target);
	fill_attr(n, out);
	return 0;
}

static int m_readlink(void *fs, inum_t ino, char *buf)
{
	struct refmodel *m = fs;
	struct node *n = get(m, ino);

	if (!n)
		return -ENOENT;
	if (!n->target)
		return -EINVAL;
	strcpy(buf, n->target);
	return 0;
}

static int m_link(void *fs, inum_t ino, inum_t dir, const char *name,
		  struct attr *out)
{
	struct refmodel *m = fs;
	struct node *n = get(m, ino), *d;
	struct name *found;
	int err;

	if (!n)
		return -ENOENT;
	err = get_dir_name(m, dir, name, &d, &found);
	if (err)
		return err;
	if (found)
		return -EEXIST;
	if (S_ISDIR(n->attr.mode))
		return -EPERM;
	if (!n->attr.nlink)
		return -ENOENT;
	add_name(d, name, ino);
	modified(m, d);
	n->attr.nlink++;
	changed(m, n);
	fill_attr(n, out);
	return 0;
}

/* One name less for @n, which was in @dir; it stays as an orphan at zero. */
static void lose_name(struct refmodel *m, struct node *dir, struct node *n)
{
	if (S_ISDIR(n->attr.mode)) {
		dir->attr.nlink--;
		n->attr.nlink = 0;
	} else {
		n->attr.nlink--;
	}
	changed(m, n);
}

static int m_unlink(void *fs, inum_t dir, const char *name, inum_t *gone)
{
	struct refmodel *m = fs;
	struct name *found;
	struct node *d, *n;
	int err;

	err = get_dir_name(m, dir, name, &d, &found);
	if (err)
		return err;
	if (!found)
		return -ENOENT;
	n = get(m, found->ino);
	if (S_ISDIR(n->attr.mode))
		return -EISDIR;
	remove_name(d, found);
	modified(m, d);
	lose_name(m, d, n);
	if (gone)
		*gone = n->attr.ino;
	return 0;
}

static int m_rmdir(void *fs, inum_t dir, const char *name, inum_t *gone)
{
	struct refmodel *m = fs;
	struct name *found;
	struct node *d, *n;
	int err;

	err = get_dir_name(m, dir, name, &d, &found);
	if (err)
		return err;
	if (!found)
		return -ENOENT;
	n = get(m, found->ino);
	if (!S_ISDIR(n->attr.mode))
		return -ENOTDIR;
	if (n->nr_names)
		return -ENOTEMPTY;
	remove_name(d, found);
	modified(m, d);
	lose_name(m, d, n);
	if (gone)
		*gone = n->attr.ino;
	return 0;
}

/* Renaming. */

/* A rename that was looked up: both folders, source, and target or NULL. */
struct rename {
	struct node *from_dir, *to_dir;
	struct node *source, *target;
	const char *from, *to;
	unsigned int flags;
};

static bool rename_flags_ok(unsigned int flags)
{
	const unsigned int others = RENAME_NOREPLACE | RENAME_WHITEOUT;

	if (flags & ~(others | RENAME_EXCHANGE))
		return false;
	return !(flags & RENAME_EXCHANGE) || !(flags & others);
}

static int rename_look_up(struct refmodel *m, inum_t dir, inum_t new_dir,
			  struct rename *r)
{
	struct name *from, *to;
	int err;

	err = get_dir(m, dir, &r->from_dir);
	if (!err)
		err = get_dir(m, new_dir, &r->to_dir);
	if (!err)
		err = get_dir_name(m, dir, r->from, &r->from_dir, &from);
	if (err)
		return err;
	if (!from)
		return -ENOENT;
	err = get_dir_name(m, new_dir, r->to, &r->to_dir, &to);
	if (err)
		return err;
	r->source = get(m, from->ino);
	r->target = to ? get(m, to->ino) : NULL;
	return 0;
}

static int rename_check(struct refmodel *m, const struct rename *r)
{
	const struct node *s = r->source, *t = r->target;
	bool exchange = r->flags & RENAME_EXCHANGE;

	if (t && r->flags & RENAME_NOREPLACE)
		return -EEXIST;
	if (!t && exchange)
		return -ENOENT;
	if (is_above(m, s->attr.ino, r->to_dir->attr.ino))
		return -EINVAL;
	if (t && is_above(m, t->attr.ino, r->from_dir->attr.ino))
		return exchange ? -EINVAL : -ENOTEMPTY;
	if (!t || exchange || s == t)
		return 0;
	if (S_ISDIR(s->attr.mode) && !S_ISDIR(t->attr.mode))
		return -ENOTDIR;
	if (!S_ISDIR(s->attr.mode) && S_ISDIR(t->attr.mode))
		return -EISDIR;
	return t->nr_names ? -ENOTEMPTY : 0;
}

/* @n moved from one folder to another: what the folders and it know of it. */
static void rename_moved(struct refmodel *m, struct node *n, struct node *from,
			 struct node *to)
{
	if (S_ISDIR(n->attr.mode)) {
		from->attr.nlink--;
		to->attr.nlink++;
		n->parent = to->attr.ino;
	}
	changed(m, n);
}

static void rename_exchange(struct refmodel *m, struct rename *r)
{
	find_name(r->from_dir, r->from)->ino = r->target->attr.ino;
	find_name(r->to_dir, r->to)->ino = r->source->attr.ino;
	rename_moved(m, r->source, r->from_dir, r->to_dir);
	rename_moved(m, r->target, r->to_dir, r->from_dir);
}

static void rename_replace(struct refmodel *m, struct rename *r)
{
	/* Nobody says who makes it: it belongs to whom the source does. */
	const struct volume_cred owner = { r->source->attr.uid,
					   r->source->attr.gid };

	if (r->target) {
		remove_name(r->to_dir, find_name(r->to_dir, r->to));
		lose_name(m, r->to_dir, r->target);
	}
	remove_name(r->from_dir, find_name(r->from_dir, r->from));
	add_name(r->to_dir, r->to, r->source->attr.ino);
	rename_moved(m, r->source, r->from_dir, r->to_dir);
	if (r->flags & RENAME_WHITEOUT)
		add_inode(m, r->from_dir->attr.ino, r->from, S_IFCHR, &owner);
}

static int m_rename(void *fs, inum_t dir, const char *name, inum_t new_dir,
		    const char *new_name, unsigned int flags, inum_t *gone)
{
	struct refmodel *m = fs;
	struct rename r = { .from = name, .to = new_name, .flags = flags };
	int err;

	if (gone)
		*gone = 0;
	if (!rename_flags_ok(flags))
		return -EINVAL;
	err = rename_look_up(m, dir, new_dir, &r);
	if (!err)
		err = rename_check(m, &r);
	if (err || r.source == r.target)
		return err;
	if (flags & RENAME_EXCHANGE)
		rename_exchange(m, &r);
	else
		rename_replace(m, &r);
	modified(m, r.from_dir);
	modified(m, r.to_dir);
	if (gone && r.target && !(flags & RENAME_EXCHANGE))
		*gone = r.target->attr.ino;
	return 0;
}

static void m_reap(void *fs, inum_t ino)
{
	drop_if_orphan(fs, ino);
}

/* Content. */

static int get_file(struct refmodel *m, inum_t ino, struct node **out)
{
	*out = get(m, ino);
	if (!*out)
		return -ENOENT;
	if (S_ISDIR((*out)->attr.mode))
		return -EISDIR;
	return S_ISREG((*out)->attr.mode) ? 0 : -EINVAL;
}

static int m_read(void *fs, inum_t ino, uint64_t offset, size_t len, void *buf,
		  size_t *nr)
{
	struct refmodel *m = fs;
	struct node *n;
	int err = get_file(m, ino, &n);

	if (err)
		return err;
	*nr = refdata_read(&n->data, offset, len, buf);
	return 0;
}

static int m_write(void *fs, inum_t ino, uint64_t offset, size_t len,
		   const void *buf, unsigned int flags)
{
	struct refmodel *m = fs;
	struct node *n;
	int err = get_file(m, ino, &n);

	if (err)
		return err;
	if (!len)
		return 0;
	if (offset > FILE_BYTES_MAX || len > FILE_BYTES_MAX - offset)
		return -EFBIG;
	refdata_write(&n->data, offset, len, buf);
	if (flags & VOLUME_WRITE_KILL_SUIDGID)
		kill_suidgid(n);
	modified(m, n);
	return 0;
}

/* The block with the end of file goes as a whole, if it lies in the hole. */
static void punch(struct refdata *d, uint64_t offset, uint64_t len)
{
	uint64_t end = offset + len;
	uint64_t size_end = (d->size + 4095) / 4096 * 4096;

	if (end >= d->size && end < size_end)
		end = size_end;
	refdata_punch(d, offset, end - offset);
}

static bool fallocate_known(int mode)
{
	switch (mode) {
	case 0:
	case FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_ZERO_RANGE:
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
		return true;
	default:
		return false;
	}
}

static int m_fallocate(void *fs, inum_t ino, int mode, uint64_t offset,
		       uint64_t len)
{
	struct refmodel *m = fs;
	int kind = mode & ~FALLOC_FL_KEEP_SIZE;
	struct node *n;
	int err;

	if (!len)
		return -EINVAL;
	if (!fallocate_known(mode))
		return -EOPNOTSUPP;
	err = get_file(m, ino, &n);
	if (err)
		return err;
	if (offset > FILE_BYTES_MAX || len > FILE_BYTES_MAX - offset)
		return -EFBIG;

	if (kind)
		punch(&n->data, offset, len);
	if (kind != FALLOC_FL_PUNCH_HOLE)
		refdata_allocate(&n->data, offset, len);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && offset + len > n->data.size)
		n->data.size = offset + len;
	modified(m, n);
	return 0;
}

static int m_lseek(void *fs, inum_t ino, uint64_t offset, int whence,
		   uint64_t *out)
{
	struct node *n;
	int err = get_file(fs, ino, &n);

	return err ? err : refdata_seek(&n->data, offset, whence, out);
}

static bool emit_one(struct refmodel *m, uint64_t cookie, const char *name,
		     inum_t ino, unsigned int flags, fsapi_emit emit, void *arg)
{
	struct attr attr;
	struct volume_dirent e = {
		.cookie = cookie,
		.ino = ino,
		.mode = get(m, ino)->attr.mode & S_IFMT,
		.name = name,
		.name_len = strlen(name),
	};

	if (flags & VOLUME_READDIR_ATTR && strcmp(name, "..")) {
		fill_attr(get(m, ino), &attr);
		e.attr = &attr;
	}
	return emit(arg, &e);
}

/* Cookies are positions: good for one pass, not across changes. */
static int m_readdir(void *fs, inum_t dir, uint64_t cookie, unsigned int flags,
		     fsapi_emit emit, void *arg)
{
	struct refmodel *m = fs;
	struct node *d = get(m, dir);

	if (!d)
		return -ENOENT;
	if (!S_ISDIR(d->attr.mode))
		return -ENOTDIR;
	if (cookie < 1 && !emit_one(m, 1, ".", dir, flags, emit, arg))
		return 0;
	if (cookie < 2 && !emit_one(m, 2, "..", d->parent, flags, emit, arg))
		return 0;
	for (size_t i = cookie < 2 ? 0 : cookie - 2; i < d->nr_names; i++)
		if (!emit_one(m, i + FIRST_COOKIE, d->names[i].text,
			      d->names[i].ino, flags, emit, arg))
			break;
	return 0;
}

/* Extended attributes. */

static size_t xattr_position(const struct node *n, const char *name)
{
	size_t at = 0;

	while (at < n->nr_xattrs && strcmp(n->xattrs[at].name, name) < 0)
		at++;
	return at;
}

static struct xattr *find_xattr(const struct node *n, const char *name)
{
	size_t at = xattr_position(n, name);

	return at < n->nr_xattrs && !strcmp(n->xattrs[at].name, name)
		       ? &n->xattrs[at]
		       : NULL;
}

static int m_getxattr(void *fs, inum_t ino, const char *name, void *buf,
		      size_t size, size_t *len)
{
	struct node *n = get(fs, ino);
	struct xattr *x;

	if (!n)
		return -ENOENT;
	x = find_xattr(n, name);
	if (!x)
		return -ENODATA;
	*len = x->len;
	if (!size)
		return 0;
	if (x->len > size)
		return -ERANGE;
	memcpy(buf, x->value, x->len);
	return 0;
}

static struct xattr *add_xattr(struct node *n, const char *name)
{
	size_t at = xattr_position(n, name);

	n->xattrs =
		xrealloc(n->xattrs, (n->nr_xattrs + 1) * sizeof(*n->xattrs));
	memmove(&n->xattrs[at + 1], &n->xattrs[at],
		(n->nr_xattrs - at) * sizeof(*n->xattrs));
	n->nr_xattrs++;
	n->xattrs[at] = (struct xattr){ .name = strdup(name) };
	return &n->xattrs[at];
}

static int m_setxattr(void *fs, inum_t ino, const char *name, const void *value,
		      size_t len, int flags)
{
	struct refmodel *m = fs;
	struct node *n = get(m, ino);
	struct xattr *x;

	if (!n)
		return -ENOENT;
	if (len > XATTR_BYTES_MAX)
		return -E2BIG;
	x = find_xattr(n, name);
	if (x && flags & XATTR_CREATE)
		return -EEXIST;
	if (!x && flags & XATTR_REPLACE)
		return -ENODATA;
	if (!x)
		x = add_xattr(n, name);
	x->value = xrealloc(x->value, len);
	x->len = len;
	if (len)
		memcpy(x->value, value, len);
	changed(m, n);
	return 0;
}

static int m_listxattr(void *fs, inum_t ino, char *buf, size_t size,
		       size_t *len)
{
	struct node *n = get(fs, ino);

	if (!n)
		return -ENOENT;
	*len = 0;
	for (size_t i = 0; i < n->nr_xattrs; i++)
		*len += strlen(n->xattrs[i].name) + 1;
	if (!size)
		return 0;
	if (*len > size)
		return -ERANGE;
	for (size_t i = 0; i < n->nr_xattrs; i++)
		buf = stpcpy(buf, n->xattrs[i].name) + 1;
	return 0;
}

static int m_removexattr(void *fs, inum_t ino, const char *name)
{
	struct refmodel *m = fs;
	struct node *n = get(m, ino);
	struct xattr *x;
	size_t at;

	if (!n)
		return -ENOENT;
	x = find_xattr(n, name);
	if (!x)
		return -ENODATA;
	at = (size_t)(x - n->xattrs);
	free(x->name);
	free(x->value);
	n->nr_xattrs--;
	memmove(x, x + 1, (n->nr_xattrs - at) * sizeof(*x));
	changed(m, n);
	return 0;
}

static int m_fsync(void *fs, inum_t ino)
{
	return 0;
}

static int m_sync(void *fs)
{
	return 0;
}

const struct fsapi_ops fsapi_refmodel = {
	.name = "model",
	.lookup = m_lookup,
	.getattr = m_getattr,
	.setattr = m_setattr,
	.create = m_create,
	.symlink = m_symlink,
	.readlink = m_readlink,
	.link = m_link,
	.unlink = m_unlink,
	.rmdir = m_rmdir,
	.rename = m_rename,
	.reap = m_reap,
	.read = m_read,
	.write = m_write,
	.fallocate = m_fallocate,
	.lseek = m_lseek,
	.readdir = m_readdir,
	.getxattr = m_getxattr,
	.setxattr = m_setxattr,
	.listxattr = m_listxattr,
	.removexattr = m_removexattr,
	.fsync = m_fsync,
	.sync = m_sync,
};

/* Looking inside. */

inum_t refmodel_inum_end(const struct refmodel *m)
{
	return m->end;
}

bool refmodel_exists(const struct refmodel *m, inum_t ino)
{
	return get(m, ino);
}

const struct attr *refmodel_attr(const struct refmodel *m, inum_t ino)
{
	return &get(m, ino)->attr;
}

size_t refmodel_nr_entries(const struct refmodel *m, inum_t dir)
{
	return get(m, dir)->nr_names;
}

const char *refmodel_entry(const struct refmodel *m, inum_t dir, size_t index,
			   inum_t *ino)
{
	const struct node *d = get(m, dir);

	assert(index < d->nr_names);
	if (ino)
		*ino = d->names[index].ino;
	return d->names[index].text;
}

size_t refmodel_nr_xattrs(const struct refmodel *m, inum_t ino)
{
	return get(m, ino)->nr_xattrs;
}

const char *refmodel_xattr_name(const struct refmodel *m, inum_t ino,
				size_t index)
{
	assert(index < get(m, ino)->nr_xattrs);
	return get(m, ino)->xattrs[index].name;
}

const struct refdata *refmodel_data(const struct refmodel *m, inum_t ino)
{
	return &get(m, ino)->data;
}

size_t refmodel_nr_inodes(const struct refmodel *m)
{
	size_t nr = 0;

	for (inum_t i = 0; i < m->end; i++)
		nr += m->node[i] != NULL;
	return nr;
}

uint64_t refmodel_nr_blocks(const struct refmodel *m)
{
	uint64_t nr = 0;

	for (inum_t i = 0; i < m->end; i++)
		nr += m->node[i] ? m->node[i]->data.nr : 0;
	return nr;
}

/* What a write left when it failed. */

/* [offset, offset + len) of a file, zeros past its end. */
static bool read_padded(const struct fsapi *fs, inum_t ino, uint64_t offset,
			size_t len, uint8_t *buf)
{
	size_t nr = 0;
	int err;

	memset(buf, 0, len);
	err = fs->ops->read(fs->fs, ino, offset, len, buf, &nr);
	if (err)
		fprintf(stderr, "reading after a failed write: %s\n",
			strerror(-err));
	return !err;
}

/* How many bytes of @now are new, when the rest is old; len + 1: neither. */
static size_t prefix_len(const uint8_t *now, const uint8_t *old,
			 const uint8_t *new, size_t len)
{
	size_t n = 0;

	while (n < len && now[n] == new[n])
		n++;
	return memcmp(now + n, old + n, len - n) ? len + 1 : n;
}

/*
 * Bytes that are as before do not show how far the write came; the blocks that
 * the file holds and its size do.
 */
static bool do_prefix(struct node *n, uint64_t offset, size_t max,
		      const uint8_t *buf, const struct attr *shown)
{
	struct refdata d;
	size_t nr = max;

	for (;;) {
		refdata_copy(&d, &n->data);
		refdata_write(&d, offset, nr, buf);
		if (d.nr * 8 == shown->blocks && d.size == shown->size)
			break;
		refdata_free(&d);
		if (!nr)
			return false;
		nr = (offset + nr - 1) / 4096 * 4096;
		nr = nr > offset ? nr - offset : 0;
	}
	refdata_free(&n->data);
	n->data = d;
	n->attr.mode = shown->mode;
	n->attr.mtime = shown->mtime;
	n->attr.ctime = shown->ctime;
	return true;
}

bool refmodel_partial_write(struct refmodel *m, inum_t ino, uint64_t offset,
			    size_t len, const void *buf, const struct fsapi *fs,
			    inum_t fs_ino)
{
	struct fsapi model = { &fsapi_refmodel, m };
	struct node *n = get(m, ino);
	uint8_t *old = xmalloc(len), *now = xmalloc(len);
	struct attr attr;
	size_t max;
	bool ok;

	ok = !fs->ops->getattr(fs->fs, fs_ino, &attr) &&
	     read_padded(&model, ino, offset, len, old) &&
	     read_padded(fs, fs_ino, offset, len, now);
	max = ok ? prefix_len(now, old, buf, len) : 0;
	if (max > len || !ok || !do_prefix(n, offset, max, buf, &attr)) {
		fprintf(stderr, "a failed write left neither the old bytes nor "
				"a prefix of the new ones\n");
		ok = false;
	}
	free(old);
	free(now);
	return ok;
}
