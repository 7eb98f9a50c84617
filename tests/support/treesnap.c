/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Walks a file system breadth first: the array of entries is also the list of
 * folders still to be read, so no recursion follows what a damaged tree says.
 */
#include "tests/support/treesnap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/refdata.h"
#include "tests/support/rng.h"

#define BLOCK 4096u
#define CHUNK (64 * BLOCK)
#define READ_ALL_UP_TO (256u << 10) /* larger files: only where data is */
#define ENTRIES_MAX (1u << 20)

/* A walk in progress. */
struct walk {
	const struct fsapi *fs;
	struct snap *snap;
	uint8_t *chunk;
};

static int fail(struct walk *w, const struct snap_entry *e, const char *what,
		int err)
{
	char path[400];

	snprintf(w->snap->error, sizeof(w->snap->error), "%s of '%s': %s", what,
		 snap_quote(e->path, path, sizeof(path)), strerror(-err));
	return err;
}

const char *snap_quote(const char *name, char *out, size_t size)
{
	size_t at = 0;

	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		if (at + 8 > size)
			break;
		if (c > ' ' && c < 0x7f && c != '\\')
			out[at++] = (char)c;
		else
			at += (size_t)snprintf(out + at, size - at, "\\x%02x",
					       c);
	}
	strcpy(out + at, *name ? "..." : "");
	return out;
}

/* Content. */

static bool is_zero(const uint8_t *p, size_t len)
{
	return !p[0] && !memcmp(p, p + 1, len - 1);
}

static void add_block(struct snap_entry *e, uint64_t index,
		      const uint8_t *bytes, size_t len)
{
	uint8_t block[BLOCK] = { 0 };

	memcpy(block, bytes, len);
	if (is_zero(block, BLOCK))
		return;
	if (!(e->nr_blocks & (e->nr_blocks - 1)))
		e->blocks = xrealloc(e->blocks, (e->nr_blocks * 2 + 1) *
							sizeof(*e->blocks));
	e->blocks[e->nr_blocks++] =
		(struct snap_block){ index, rng_hash(0, block, BLOCK) };
}

/* Read [from, to), where @from is a multiple of a block. */
static int read_range(struct walk *w, struct snap_entry *e, uint64_t from,
		      uint64_t to)
{
	while (from < to) {
		size_t len = to - from < CHUNK ? to - from : CHUNK, nr = 0;
		int err = w->fs->ops->read(w->fs->fs, e->attr.ino, from, len,
					   w->chunk, &nr);

		if (err)
			return fail(w, e, "read", err);
		if (nr != len)
			return fail(w, e, "short read", -EIO);
		for (size_t at = 0; at < len; at += BLOCK)
			add_block(e, (from + at) / BLOCK, w->chunk + at,
				  len - at < BLOCK ? len - at : BLOCK);
		from += len;
	}
	return 0;
}

static int read_sparse(struct walk *w, struct snap_entry *e)
{
	uint64_t pos = 0, data, hole;
	int err;

	while (pos < e->attr.size) {
		err = w->fs->ops->lseek(w->fs->fs, e->attr.ino, pos, SEEK_DATA,
					&data);
		if (err == -ENXIO)
			return 0;
		if (!err)
			err = w->fs->ops->lseek(w->fs->fs, e->attr.ino, data,
						SEEK_HOLE, &hole);
		if (!err && (data < pos || hole <= data))
			err = -EUCLEAN;
		if (err)
			return fail(w, e, "lseek", err);
		data -= data % BLOCK;
		err = read_range(w, e, data, hole);
		if (err)
			return err;
		pos = hole;
	}
	return 0;
}

static int read_content(struct walk *w, struct snap_entry *e)
{
	if (e->attr.size <= READ_ALL_UP_TO)
		return read_range(w, e, 0, e->attr.size);
	return read_sparse(w, e);
}

static int read_target(struct walk *w, struct snap_entry *e)
{
	char target[SYMLINK_BYTES_MAX + 1];
	int err = w->fs->ops->readlink(w->fs->fs, e->attr.ino, target);

	if (err)
		return fail(w, e, "readlink", err);
	e->target = strdup(target);
	return 0;
}

/* Extended attributes. */

static int by_xattr_name(const void *a, const void *b)
{
	return strcmp(((const struct snap_xattr *)a)->name,
		      ((const struct snap_xattr *)b)->name);
}

static int read_xattr(struct walk *w, struct snap_entry *e, const char *name)
{
	struct snap_xattr *x;
	size_t len = 0;
	int err;

	err = w->fs->ops->getxattr(w->fs->fs, e->attr.ino, name, w->chunk,
				   CHUNK, &len);
	if (err)
		return fail(w, e, "getxattr", err);
	e->xattrs = xrealloc(e->xattrs, (e->nr_xattrs + 1) * sizeof(*x));
	x = &e->xattrs[e->nr_xattrs++];
	x->name = strdup(name);
	x->len = len;
	x->hash = rng_hash(1, w->chunk, len);
	return 0;
}

static int read_xattrs(struct walk *w, struct snap_entry *e)
{
	char *list, *name;
	size_t len = 0;
	int err;

	err = w->fs->ops->listxattr(w->fs->fs, e->attr.ino, NULL, 0, &len);
	if (err || !len)
		return err ? fail(w, e, "listxattr", err) : 0;
	list = xmalloc(len);
	err = w->fs->ops->listxattr(w->fs->fs, e->attr.ino, list, len, &len);
	if (err)
		fail(w, e, "listxattr", err);
	for (name = list; !err && name < list + len; name += strlen(name) + 1)
		err = read_xattr(w, e, name);
	free(list);
	qsort(e->xattrs, e->nr_xattrs, sizeof(*e->xattrs), by_xattr_name);
	return err;
}

/* Folders. */

/* Names of one folder, as they come. */
struct names {
	size_t nr;
	struct {
		char *text;
		inum_t ino;
		uint32_t mode;
	} * name;
};

static bool collect(void *arg, const struct volume_dirent *e)
{
	struct names *n = arg;

	if (!strcmp(e->name, ".") || !strcmp(e->name, ".."))
		return true;
	if (!(n->nr & (n->nr - 1)))
		n->name = xrealloc(n->name, (n->nr * 2 + 1) * sizeof(*n->name));
	n->name[n->nr].text = strdup(e->name);
	n->name[n->nr].ino = e->ino;
	n->name[n->nr].mode = e->mode;
	n->nr++;
	return n->nr < ENTRIES_MAX;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void link_to_first(struct snap *s, size_t at)
{
	struct snap_entry *e = &s->entry[at];

	e->first_link = at;
	if (e->attr.nlink < 2 || S_ISDIR(e->attr.mode))
		return;
	for (size_t i = 0; i < at; i++)
		if (s->entry[i].attr.ino == e->attr.ino) {
			e->first_link = i;
			return;
		}
}

/* Append @name of the folder at @dir, and read all of it but names in it. */
static int add_entry(struct walk *w, size_t dir, const char *name, inum_t ino,
		     uint32_t mode)
{
	struct snap *s = w->snap;
	struct snap_entry *e;
	int err;

	if (!(s->nr & (s->nr - 1)))
		s->entry =
			xrealloc(s->entry, (s->nr * 2 + 1) * sizeof(*s->entry));
	e = &s->entry[s->nr++];
	memset(e, 0, sizeof(*e));
	if (!s->entry[dir].path)
		e->path = strdup("");
	else if (asprintf(&e->path, "%s/%s", s->entry[dir].path, name) < 0)
		abort();

	err = w->fs->ops->getattr(w->fs->fs, ino, &e->attr);
	if (err)
		return fail(w, e, "getattr", err);
	if (e->attr.ino != ino || (e->attr.mode & S_IFMT) != (mode & S_IFMT))
		return fail(w, e, "type in the folder", -EUCLEAN);
	link_to_first(s, s->nr - 1);
	if (e->first_link != s->nr - 1)
		return 0;
	err = read_xattrs(w, e);
	if (!err && S_ISREG(e->attr.mode))
		err = read_content(w, e);
	if (!err && S_ISLNK(e->attr.mode))
		err = read_target(w, e);
	return err;
}

static int read_folder(struct walk *w, size_t dir)
{
	struct names names = { 0 };
	int err;

	err = w->fs->ops->readdir(w->fs->fs, w->snap->entry[dir].attr.ino, 0, 0,
				  collect, &names);
	if (err)
		fail(w, &w->snap->entry[dir], "readdir", err);
	if (!err && w->snap->nr + names.nr > ENTRIES_MAX)
		err = fail(w, &w->snap->entry[dir], "too many names", -EUCLEAN);
	if (names.nr)
		qsort(names.name, names.nr, sizeof(*names.name), by_text);
	for (size_t i = 0; i < names.nr; i++) {
		if (!err)
			err = add_entry(w, dir, names.name[i].text,
					names.name[i].ino, names.name[i].mode);
		free(names.name[i].text);
	}
	free(names.name);
	return err;
}

int snap_take(struct snap *s, const struct fsapi *fs)
{
	struct walk w = { fs, s, xmalloc(CHUNK) };
	int err;

	memset(s, 0, sizeof(*s));
	err = add_entry(&w, 0, "", fs->root ? fs->root : VOLUME_ROOT, S_IFDIR);
	for (size_t i = 0; !err && i < s->nr; i++)
		if (S_ISDIR(s->entry[i].attr.mode))
			err = read_folder(&w, i);
	free(w.chunk);
	return err;
}

void snap_free(struct snap *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		struct snap_entry *e = &s->entry[i];

		for (size_t k = 0; k < e->nr_xattrs; k++)
			free(e->xattrs[k].name);
		free(e->xattrs);
		free(e->blocks);
		free(e->target);
		free(e->path);
	}
	free(s->entry);
	memset(s, 0, sizeof(*s));
}

/* Hashing and comparing. */

/* The numbers of an entry in one row, so that both go over the same ones. */
enum {
	NR_FIELDS = 18
};

static const char *const field_name[NR_FIELDS] = {
	"mode",	       "links",	   "uid",
	"gid",	       "rdev",	   "size",
	"first link",  "xattrs",   "blocks with data",
	"blocks held", "atime s",  "atime ns",
	"mtime s",     "mtime ns", "ctime s",
	"ctime ns",    "btime s",  "btime ns",
};

static void fields(const struct snap_entry *e, unsigned int flags,
		   uint64_t f[static NR_FIELDS])
{
	const struct attr *a = &e->attr;

	memset(f, 0, NR_FIELDS * sizeof(*f));
	f[0] = a->mode;
	f[1] = a->nlink;
	f[2] = a->uid;
	f[3] = a->gid;
	f[4] = a->rdev;
	f[5] = S_ISDIR(a->mode) ? 0 : a->size;
	f[6] = e->first_link;
	f[7] = e->nr_xattrs;
	f[8] = e->nr_blocks;
	if (flags & SNAP_SPACE && S_ISREG(a->mode))
		f[9] = a->blocks;
	if (flags & SNAP_ATIME) {
		f[10] = (uint64_t)a->atime.tv_sec;
		f[11] = (uint64_t)a->atime.tv_nsec;
	}
	if (!(flags & SNAP_TIMES))
		return;
	f[12] = (uint64_t)a->mtime.tv_sec;
	f[13] = (uint64_t)a->mtime.tv_nsec;
	f[14] = (uint64_t)a->ctime.tv_sec;
	f[15] = (uint64_t)a->ctime.tv_nsec;
	f[16] = (uint64_t)a->btime.tv_sec;
	f[17] = (uint64_t)a->btime.tv_nsec;
}

uint64_t snap_digest(const struct snap *s, unsigned int flags)
{
	uint64_t h = rng_mix(s->nr + 1), f[NR_FIELDS];

	for (size_t i = 0; i < s->nr; i++) {
		const struct snap_entry *e = &s->entry[i];

		h = rng_hash(h, e->path, strlen(e->path));
		fields(e, flags, f);
		h = rng_hash(h, f, sizeof(f));
		if (e->target)
			h = rng_hash(h, e->target, strlen(e->target));
		for (size_t k = 0; k < e->nr_xattrs; k++) {
			h = rng_hash(h, e->xattrs[k].name,
				     strlen(e->xattrs[k].name));
			h = rng_mix(h ^ e->xattrs[k].hash);
		}
		h = rng_hash(h, e->blocks, e->nr_blocks * sizeof(*e->blocks));
	}
	return h;
}

/* What differs between two entries of one path, in words; false: nothing. */
static bool differ(const struct snap_entry *a, const struct snap_entry *b,
		   unsigned int flags, char *what, size_t size)
{
	uint64_t fa[NR_FIELDS], fb[NR_FIELDS];

	fields(a, flags, fa);
	fields(b, flags, fb);
	for (int i = 0; i < NR_FIELDS; i++)
		if (fa[i] != fb[i]) {
			snprintf(what, size, "%s %" PRIu64 " and %" PRIu64,
				 field_name[i], fa[i], fb[i]);
			return true;
		}
	if (a->target && strcmp(a->target, b->target)) {
		snprintf(what, size, "target");
		return true;
	}
	for (size_t i = 0; i < a->nr_xattrs; i++)
		if (strcmp(a->xattrs[i].name, b->xattrs[i].name) ||
		    a->xattrs[i].len != b->xattrs[i].len ||
		    a->xattrs[i].hash != b->xattrs[i].hash) {
			snprintf(what, size,
				 "xattr number %zu (%zu and %zu "
				 "bytes)",
				 i, a->xattrs[i].len, b->xattrs[i].len);
			return true;
		}
	for (size_t i = 0; i < a->nr_blocks; i++)
		if (a->blocks[i].index != b->blocks[i].index ||
		    a->blocks[i].hash != b->blocks[i].hash) {
			snprintf(what, size,
				 "content in block %" PRIu64 " and %" PRIu64,
				 a->blocks[i].index, b->blocks[i].index);
			return true;
		}
	return false;
}

bool snap_equal(const struct snap *a, const char *a_name, const struct snap *b,
		const char *b_name, unsigned int flags, FILE *out)
{
	char path[600], what[200];

	for (size_t i = 0; i < a->nr || i < b->nr; i++) {
		const struct snap_entry *ea = i < a->nr ? &a->entry[i] : NULL;
		const struct snap_entry *eb = i < b->nr ? &b->entry[i] : NULL;

		if (!ea || !eb || strcmp(ea->path, eb->path)) {
			fprintf(out,
				"name number %zu of the tree: %s has "
				"'%s', ",
				i, a_name,
				ea ? snap_quote(ea->path, path, sizeof(path))
				   : "nothing");
			fprintf(out, "%s has '%s'\n", b_name,
				eb ? snap_quote(eb->path, path, sizeof(path))
				   : "nothing");
			return false;
		}
		if (differ(ea, eb, flags, what, sizeof(what))) {
			fprintf(out, "'%s': %s (in %s and %s)\n",
				snap_quote(ea->path, path, sizeof(path)), what,
				a_name, b_name);
			return false;
		}
	}
	return true;
}
