/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Doing an operation, and comparing two answers to it.
 */
#include "tests/support/workload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/refdata.h"
#include "tests/support/treesnap.h"

#define NO_INODE (1ull << 40)
#define NAMES_MAX (1u << 20)

void inomap_set(struct inomap *map, inum_t from, inum_t to)
{
	if (from >= map->nr) {
		size_t nr = from * 2 + 16;

		map->to = xrealloc(map->to, nr * sizeof(*map->to));
		memset(map->to + map->nr, 0, (nr - map->nr) * sizeof(*map->to));
		map->nr = nr;
	}
	map->to[from] = to;
}

inum_t inomap_get(const struct inomap *map, inum_t from)
{
	return from < map->nr && map->to[from] ? map->to[from] : NO_INODE;
}

void inomap_free(struct inomap *map)
{
	free(map->to);
	map->to = NULL;
	map->nr = 0;
}

void op_translate(struct op *op, const struct inomap *map)
{
	if (op->ino)
		op->ino = inomap_get(map, op->ino);
	if (op->dir)
		op->dir = inomap_get(map, op->dir);
	if (op->new_dir)
		op->new_dir = inomap_get(map, op->new_dir);
}

uint8_t *op_data(const struct op *op)
{
	uint8_t *buf = xmalloc(op->len);

	rng_fill(buf, op->len, op->pattern);
	return buf;
}

/* A target of op->len bytes. */
static char *op_target(const struct op *op)
{
	uint8_t *buf = xmalloc(op->len + 1);

	rng_fill(buf, op->len, op->pattern);
	for (size_t i = 0; i < op->len; i++)
		if (!buf[i])
			buf[i] = '/';
	return (char *)buf;
}

/* Reading a folder, op->len names at a time. */

struct listing {
	struct op_result *r;
	uint64_t cookie, left;
	bool ended;
};

static bool list_one(void *arg, const struct volume_dirent *e)
{
	struct listing *l = arg;
	struct op_result *r = l->r;

	if (!(r->nr_names & (r->nr_names - 1)))
		r->names = xrealloc(r->names,
				    (r->nr_names * 2 + 1) * sizeof(*r->names));
	r->names[r->nr_names++] =
		(struct op_dirent){ strdup(e->name), e->ino, e->mode & S_IFMT };
	if (e->name_len != strlen(e->name))
		r->broken = "name_len is not the length of the name";
	if (e->cookie > INT64_MAX || !e->cookie)
		r->broken = "a cookie out of range";
	if (e->attr && (e->attr->ino != e->ino ||
			(e->attr->mode & S_IFMT) != (e->mode & S_IFMT)))
		r->broken = "attributes are not those of the entry";
	if (r->nr_names > NAMES_MAX)
		r->broken = "a folder without end";
	l->cookie = e->cookie;
	l->ended = false;
	return --l->left > 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct op_dirent *)a)->name,
		      ((const struct op_dirent *)b)->name);
}

static int list_all(const struct op *op, const struct fsapi *fs,
		    struct op_result *r)
{
	struct listing l = { .r = r };
	int err;

	while (!l.ended && !r->broken) {
		l.left = op->len;
		l.ended = true;
		err = fs->ops->readdir(fs->fs, op->ino, l.cookie,
				       op->len & 1 ? VOLUME_READDIR_ATTR : 0,
				       list_one, &l);
		if (err)
			return err;
	}
	if (r->nr_names)
		qsort(r->names, r->nr_names, sizeof(*r->names), by_name);
	for (size_t i = 1; i < r->nr_names; i++)
		if (!strcmp(r->names[i - 1].name, r->names[i].name))
			r->broken = "a name twice in a folder";
	return 0;
}

/* Extended attributes. */

static int get_xattr(const struct op *op, const struct fsapi *fs,
		     struct op_result *r)
{
	size_t len = 0, again = 0;
	int err;

	err = fs->ops->getxattr(fs->fs, op->ino, op->name, NULL, 0, &len);
	if (err)
		return err;
	r->data = xmalloc(len + 1);
	r->nr_data = r->value = len;
	if (len > 1 && fs->ops->getxattr(fs->fs, op->ino, op->name, r->data,
					 len - 1, &again) != -ERANGE)
		r->broken = "a value fitted into less than its size";
	if (!len)
		return 0;
	err = fs->ops->getxattr(fs->fs, op->ino, op->name, r->data, len,
				&again);
	if (!err && again != len)
		r->broken = "the size of a value changed";
	return err;
}

static int list_xattrs(const struct op *op, const struct fsapi *fs,
		       struct op_result *r)
{
	size_t len = 0, again = 0, at = 0;
	char *buf;
	int err;

	err = fs->ops->listxattr(fs->fs, op->ino, NULL, 0, &len);
	if (err || !len)
		return err;
	buf = xmalloc(len);
	if (fs->ops->listxattr(fs->fs, op->ino, buf, len - 1, &again) !=
		    -ERANGE &&
	    len > 1)
		r->broken = "a list fitted into less than its size";
	err = fs->ops->listxattr(fs->fs, op->ino, buf, len, &again);
	if (!err && (again != len || buf[len - 1]))
		r->broken = "a list of another size, or without its end";
	while (!err && !r->broken && at < len) {
		r->names = xrealloc(r->names,
				    (r->nr_names + 1) * sizeof(*r->names));
		r->names[r->nr_names++] =
			(struct op_dirent){ strdup(buf + at), 0, 0 };
		at += strlen(buf + at) + 1;
	}
	if (r->nr_names)
		qsort(r->names, r->nr_names, sizeof(*r->names), by_name);
	free(buf);
	return err;
}

/* The kinds that need more than one line. */

static int do_symlink(const struct op *op, const struct fsapi *fs,
		      struct op_result *r)
{
	char *target = op_target(op);
	int err = fs->ops->symlink(fs->fs, op->dir, op->name, target, &op->cred,
				   &r->attr);

	free(target);
	return err;
}

static int do_readlink(const struct op *op, const struct fsapi *fs,
		       struct op_result *r)
{
	int err;

	r->data = xmalloc(SYMLINK_BYTES_MAX + 1);
	err = fs->ops->readlink(fs->fs, op->ino, (char *)r->data);
	if (!err)
		r->nr_data = strlen((char *)r->data);
	return err;
}

static int do_read(const struct op *op, const struct fsapi *fs,
		   struct op_result *r)
{
	int err;

	r->data = xmalloc(op->len);
	err = fs->ops->read(fs->fs, op->ino, op->offset, op->len, r->data,
			    &r->nr_data);
	if (err)
		r->nr_data = 0;
	return err;
}

static int do_write(const struct op *op, const struct fsapi *fs)
{
	uint8_t *buf = op_data(op);
	int err = fs->ops->write(fs->fs, op->ino, op->offset, op->len, buf,
				 op->flags);

	free(buf);
	return err;
}

static int do_setxattr(const struct op *op, const struct fsapi *fs)
{
	uint8_t *buf = op_data(op);
	int err = fs->ops->setxattr(fs->fs, op->ino, op->name, buf, op->len,
				    (int)op->flags);

	free(buf);
	return err;
}

static int do_create(const struct op *op, const struct fsapi *fs,
		     struct op_result *r)
{
	return fs->ops->create(fs->fs, op->dir, op->name, op->set.mode,
			       op->set.rdev, &op->cred, &r->attr);
}

static int do_op(const struct op *op, const struct fsapi *fs,
		 struct op_result *r)
{
	const struct fsapi_ops *f = fs->ops;

	switch (op->kind) {
	case OP_CREATE:
	case OP_MKDIR:
	case OP_MKNOD:
		return do_create(op, fs, r);
	case OP_SYMLINK:
		return do_symlink(op, fs, r);
	case OP_LINK:
		return f->link(fs->fs, op->ino, op->dir, op->name, &r->attr);
	case OP_UNLINK:
		return f->unlink(fs->fs, op->dir, op->name, &r->gone);
	case OP_RMDIR:
		return f->rmdir(fs->fs, op->dir, op->name, &r->gone);
	case OP_RENAME:
		return f->rename(fs->fs, op->dir, op->name, op->new_dir,
				 op->new_name, op->flags, &r->gone);
	case OP_WRITE:
		return do_write(op, fs);
	case OP_READ:
		return do_read(op, fs, r);
	case OP_TRUNCATE:
	case OP_SETATTR:
		return f->setattr(fs->fs, op->ino, op->what, &op->set,
				  &r->attr);
	case OP_FALLOCATE:
		return f->fallocate(fs->fs, op->ino, op->mode, op->offset,
				    op->len);
	case OP_LSEEK:
		return f->lseek(fs->fs, op->ino, op->offset, op->mode,
				&r->value);
	case OP_LOOKUP:
		return f->lookup(fs->fs, op->dir, op->name, &r->attr);
	case OP_GETATTR:
		return f->getattr(fs->fs, op->ino, &r->attr);
	case OP_READLINK:
		return do_readlink(op, fs, r);
	case OP_READDIR:
		return list_all(op, fs, r);
	case OP_SETXATTR:
		return do_setxattr(op, fs);
	case OP_GETXATTR:
		return get_xattr(op, fs, r);
	case OP_LISTXATTR:
		return list_xattrs(op, fs, r);
	case OP_REMOVEXATTR:
		return f->removexattr(fs->fs, op->ino, op->name);
	case OP_REAP:
		f->reap(fs->fs, op->ino);
		return 0;
	case OP_FSYNC:
		return f->fsync(fs->fs, op->ino);
	case OP_SYNC:
		return f->sync(fs->fs);
	case OP_NR:
		break;
	}
	abort();
}

static bool gives_attr(enum op_kind kind)
{
	switch (kind) {
	case OP_CREATE:
	case OP_MKDIR:
	case OP_MKNOD:
	case OP_SYMLINK:
	case OP_LINK:
	case OP_TRUNCATE:
	case OP_SETATTR:
	case OP_LOOKUP:
	case OP_GETATTR:
		return true;
	default:
		return false;
	}
}

void op_apply(const struct op *op, const struct fsapi *fs, struct op_result *r)
{
	memset(r, 0, sizeof(*r));
	r->err = do_op(op, fs, r);
	r->has_attr = !r->err && gives_attr(op->kind);
}

void op_result_free(struct op_result *r)
{
	for (size_t i = 0; i < r->nr_names; i++)
		free(r->names[i].name);
	free(r->names);
	free(r->data);
	memset(r, 0, sizeof(*r));
}

/* Comparing. */

static bool same_time(const struct timespec *a, const struct timespec *b,
		      const char *name, char *why, size_t size)
{
	if (a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec)
		return true;
	snprintf(why, size, "%s is %lld.%09ld, should be %lld.%09ld", name,
		 (long long)b->tv_sec, b->tv_nsec, (long long)a->tv_sec,
		 a->tv_nsec);
	return false;
}

static bool same_number(uint64_t a, uint64_t b, const char *name, char *why,
			size_t size)
{
	if (a == b)
		return true;
	snprintf(why, size, "%s is %" PRIu64 ", should be %" PRIu64, name, b,
		 a);
	return false;
}

static bool same_times(const struct attr *a, const struct attr *b, char *why,
		       size_t size)
{
	return same_time(&a->mtime, &b->mtime, "mtime", why, size) &&
	       same_time(&a->ctime, &b->ctime, "ctime", why, size) &&
	       same_time(&a->btime, &b->btime, "btime", why, size);
}

bool attr_agrees(const struct attr *a, const struct attr *b, unsigned int flags,
		 char *why, size_t size)
{
	bool file = S_ISREG(a->mode);

	/* What a folder's size is, is nobody's business. */
	return same_number(a->mode, b->mode, "mode", why, size) &&
	       same_number(a->nlink, b->nlink, "nlink", why, size) &&
	       same_number(a->uid, b->uid, "uid", why, size) &&
	       same_number(a->gid, b->gid, "gid", why, size) &&
	       same_number(a->rdev, b->rdev, "rdev", why, size) &&
	       (S_ISDIR(a->mode) ||
		same_number(a->size, b->size, "size", why, size)) &&
	       (!file || !(flags & OP_COMPARE_SPACE) ||
		same_number(a->blocks, b->blocks, "blocks", why, size)) &&
	       (!(flags & OP_COMPARE_ATIME) ||
		same_time(&a->atime, &b->atime, "atime", why, size)) &&
	       (!(flags & OP_COMPARE_TIMES) || same_times(a, b, why, size));
}

static bool same_names(const struct op_result *a, const struct op_result *b,
		       const struct inomap *map, char *why, size_t size)
{
	char quoted[300];

	for (size_t i = 0; i < a->nr_names || i < b->nr_names; i++) {
		const struct op_dirent *na, *nb;
		int order;

		na = i < a->nr_names ? &a->names[i] : NULL;
		nb = i < b->nr_names ? &b->names[i] : NULL;
		order = !na ? 1 : !nb ? -1 : strcmp(na->name, nb->name);
		if (order) {
			snprintf(why, size, "the name '%s' is %s",
				 snap_quote(order < 0 ? na->name : nb->name,
					    quoted, sizeof(quoted)),
				 order < 0 ? "missing" : "too much");
			return false;
		}
		if (na->mode != nb->mode ||
		    (na->ino && inomap_get(map, na->ino) != nb->ino)) {
			snprintf(why, size, "the name '%s' is another inode",
				 snap_quote(na->name, quoted, sizeof(quoted)));
			return false;
		}
	}
	return true;
}

static bool same_data(const struct op_result *a, const struct op_result *b,
		      char *why, size_t size)
{
	if (!same_number(a->nr_data, b->nr_data, "length", why, size))
		return false;
	for (size_t i = 0; i < a->nr_data; i++)
		if (a->data[i] != b->data[i]) {
			snprintf(why, size,
				 "byte %zu of %zu is 0x%02x, should "
				 "be 0x%02x",
				 i, a->nr_data, b->data[i], a->data[i]);
			return false;
		}
	return true;
}

static bool is_one_of(int err, const int *list)
{
	for (; *list; list++)
		if (*list == err)
			return true;
	return false;
}

/*
 * Where several reasons speak against an operation, which one is given is
 * checked only where Linux would not have asked the file system at all: it
 * looks names up, and finds what it knows, before.
 */
static bool same_refusal(const struct op *op, int a, int b)
{
	static const int link[] = { -EEXIST, -EPERM, -ENOENT, -ENOTDIR, 0 };
	static const int lost[] = { -ENOENT, -ENOTDIR, 0 };
	static const int wrong[] = { -EINVAL, -EOPNOTSUPP, -EFBIG,
				     -ENOENT, -ENODEV,	   0 };
	static const int value[] = { -E2BIG, -ENOENT, 0 };
	static const int above[] = { -ENOTEMPTY, -EISDIR, 0 };
	bool too_long = strlen(op->name) > NAME_BYTES_MAX ||
			strlen(op->new_name) > NAME_BYTES_MAX;

	if (a == b)
		return true;
	if (!a || !b)
		return false;
	if (too_long && (a == -ENAMETOOLONG || b == -ENAMETOOLONG))
		return true;
	if (op->kind == OP_LINK)
		return is_one_of(a, link) && is_one_of(b, link);
	if (op->kind == OP_FALLOCATE)
		return is_one_of(a, wrong) && is_one_of(b, wrong);
	if (op->kind == OP_SETXATTR && is_one_of(a, value))
		return is_one_of(b, value);
	if (op->kind == OP_RENAME && is_one_of(a, above))
		return is_one_of(b, above);
	return is_one_of(a, lost) && is_one_of(b, lost);
}

bool op_agrees(const struct op *op, const struct op_result *a,
	       const struct op_result *b, const struct inomap *map,
	       unsigned int flags, char *why, size_t size)
{
	if (b->broken) {
		snprintf(why, size, "%s", b->broken);
		return false;
	}
	if (!same_refusal(op, a->err, b->err)) {
		snprintf(why, size, "result is %d (%s), should be %d (%s)",
			 b->err, strerror(-b->err), a->err, strerror(-a->err));
		return false;
	}
	if (a->gone && inomap_get(map, a->gone) != b->gone) {
		snprintf(why, size, "another inode lost its name");
		return false;
	}
	if (op->kind == OP_LSEEK && flags & OP_COMPARE_SEEK &&
	    !same_number(a->value, b->value, "position", why, size))
		return false;
	if (a->has_attr && !attr_agrees(&a->attr, &b->attr, flags, why, size))
		return false;
	return same_data(a, b, why, size) && same_names(a, b, map, why, size);
}

static inum_t named(const struct refmodel *m, inum_t dir, const char *name)
{
	struct attr attr;

	if (!dir || fsapi_refmodel.lookup((void *)m, dir, name, &attr))
		return 0;
	return attr.ino;
}

size_t op_touched(const struct op *op, const struct refmodel *m,
		  inum_t ino[static OP_TOUCHED_MAX])
{
	const inum_t all[OP_TOUCHED_MAX] = {
		op->ino,
		op->dir,
		op->new_dir,
		named(m, op->dir, op->name),
		named(m, op->new_dir, op->new_name),
	};
	size_t nr = 0;

	for (int i = 0; i < OP_TOUCHED_MAX; i++)
		if (all[i])
			ino[nr++] = all[i];
	return nr;
}

void op_print(const struct op *op, FILE *out)
{
	char quoted[300];

	fprintf(out, "%s", op_name[op->kind]);
	if (op->ino)
		fprintf(out, " ino=%" PRIu64, op->ino);
	if (op->dir)
		fprintf(out, " dir=%" PRIu64, op->dir);
	if (op->name[0])
		fprintf(out, " name='%s'",
			snap_quote(op->name, quoted, sizeof(quoted)));
	if (op->new_dir)
		fprintf(out, " new_dir=%" PRIu64, op->new_dir);
	if (op->new_name[0])
		fprintf(out, " new_name='%s'",
			snap_quote(op->new_name, quoted, sizeof(quoted)));
	if (op->offset || op->len)
		fprintf(out, " offset=%" PRIu64 " len=%" PRIu64, op->offset,
			op->len);
	if (op->flags || op->mode)
		fprintf(out, " flags=%#x mode=%#x", op->flags,
			(unsigned int)op->mode);
	if (op->what)
		fprintf(out, " what=%#x size=%" PRIu64, op->what, op->set.size);
	if (op->set.mode)
		fprintf(out, " perm=%o", op->set.mode);
	if (op->pattern)
		fprintf(out, " pattern=%#" PRIx64, op->pattern);
}
