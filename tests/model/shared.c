/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/model/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/refdata.h"

#define BLOCK 4096u
#define FILE_BLOCKS 200 /* of a shared file, about */
#define CHUNK_BLOCKS 70 /* of one read or write; more than a window */
#define MAGIC 0x656d6f6c62656c74ull

static const struct volume_cred root = { 0, 0 };

/* The beginning of each block; the rest follows from seed. */
struct label {
	uint64_t magic, file, index, seed;
};

/* @err of an operation that needs space: nothing to complain of? */
static bool grew(const struct shared *s, int err)
{
	return !err || (err == -ENOSPC && s->may_be_full);
}

static bool complain(const char *what, int err)
{
	fprintf(stderr, "shared: %s: %s\n", what, strerror(-err));
	return false;
}

static void make_block(uint8_t *block, uint64_t file, uint64_t index,
		       uint64_t seed)
{
	struct label l = { MAGIC, file, index, seed };

	rng_fill(block, BLOCK, seed | 1);
	memcpy(block, &l, sizeof(l));
}

static bool all_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* One version of the block, or the start of one and zeros after it. */
static bool good_block(const uint8_t *block, size_t len, uint64_t file,
		       uint64_t index)
{
	uint8_t right[BLOCK];
	struct label l;
	size_t at = 0;

	if (all_zero(block, len))
		return true;
	if (len < sizeof(l))
		return true; /* nothing to know it by */
	memcpy(&l, block, sizeof(l));
	if (all_zero(block + sizeof(l) - 8, len - sizeof(l) + 8))
		return true; /* cut off within the label */
	if (l.magic != MAGIC || l.file != file || l.index != index)
		return false;
	make_block(right, file, index, l.seed);
	while (at < len && block[at] == right[at])
		at++;
	return all_zero(block + at, len - at);
}

/* Shared files. */

static bool check_read(struct shared *s, unsigned int n, uint64_t first,
		       size_t nr_blocks)
{
	uint8_t *buf = xmalloc(nr_blocks * BLOCK);
	size_t nr = 0;
	bool ok = true;
	int err;

	err = volume_read(s->v, s->file[n], first * BLOCK, nr_blocks * BLOCK,
			  buf, &nr);
	if (err)
		ok = complain("read", err);
	for (size_t at = 0; ok && at < nr; at += BLOCK) {
		size_t len = nr - at < BLOCK ? nr - at : BLOCK;

		ok = good_block(buf + at, len, n, first + at / BLOCK);
		if (!ok)
			fprintf(stderr,
				"shared: file %u, block %" PRIu64
				" is not what was written\n",
				n, first + at / BLOCK);
	}
	free(buf);
	return ok;
}

static bool write_blocks(struct shared *s, struct rng *rng, unsigned int n,
			 uint64_t first, size_t nr_blocks)
{
	uint8_t *buf = xmalloc(nr_blocks * BLOCK);
	int err;

	for (size_t i = 0; i < nr_blocks; i++)
		make_block(buf + i * BLOCK, n, first + i, rng_next(rng));
	err = volume_write(s->v, s->file[n], first * BLOCK, nr_blocks * BLOCK,
			   buf, 0);
	free(buf);
	return grew(s, err) || complain("write", err);
}

static bool truncate_file(struct shared *s, struct rng *rng, unsigned int n)
{
	struct attr in = { .size = rng_below(rng, FILE_BLOCKS * BLOCK) }, out;
	int err;

	if (rng_one_in(rng, 2))
		in.size &= ~(uint64_t)(BLOCK - 1);
	err = volume_setattr(s->v, s->file[n], VOLUME_SET_SIZE, &in, &out);
	return !err || complain("truncate", err);
}

static bool allocate(struct shared *s, struct rng *rng, unsigned int n)
{
	static const int modes[] = {
		0,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE,
	};
	uint64_t from = rng_below(rng, FILE_BLOCKS) * BLOCK;
	uint64_t len = (1 + rng_below(rng, CHUNK_BLOCKS)) * BLOCK;
	int err;

	err = volume_fallocate(s->v, s->file[n], modes[rng_below(rng, 3)], from,
			       len);
	return grew(s, err) || complain("fallocate", err);
}

static bool use_file(struct shared *s, struct rng *rng,
		     _Atomic(const char *) *what)
{
	unsigned int n = (unsigned int)rng_below(rng, SHARED_FILES);
	uint64_t first = rng_below(rng, FILE_BLOCKS);
	size_t nr = 1 + rng_below(rng, rng_one_in(rng, 4) ? CHUNK_BLOCKS : 6);
	struct attr attr;
	int err;

	switch (rng_below(rng, 12)) {
	case 0 ... 4:
		*what = "shared read";
		return check_read(s, n, first, nr);
	case 5 ... 7:
		*what = "shared write";
		return write_blocks(s, rng, n, first, nr);
	case 8 ... 9:
		*what = "shared truncate";
		return truncate_file(s, rng, n);
	case 10:
		*what = "shared fallocate";
		return allocate(s, rng, n);
	default:
		*what = "shared fsync";
		err = volume_fsync(s->v, s->file[n]);
		if (!err)
			err = volume_getattr(s->v, s->file[n], &attr);
		return !err || complain("fsync, getattr", err);
	}
}

/* Shared folders. */

struct listing {
	struct shared *s;
	unsigned int seen[SHARED_STAY];
	uint64_t cookie;
	size_t left;
	bool ended;
};

static bool list_one(void *arg, const struct volume_dirent *e)
{
	struct listing *l = arg;
	unsigned int n;

	if (sscanf(e->name, "stay-%u", &n) == 1 && n < SHARED_STAY &&
	    e->ino == l->s->stay[n])
		l->seen[n]++;
	l->cookie = e->cookie;
	l->ended = false;
	return --l->left > 0;
}

static bool list_folder(struct shared *s, struct rng *rng)
{
	struct listing l = { .s = s };

	while (!l.ended) {
		int err;

		l.left = 1 + rng_below(rng, 60);
		l.ended = true;
		err = volume_readdir(s->v, s->dir, l.cookie,
				     rng_one_in(rng, 2) ? VOLUME_READDIR_ATTR
							: 0,
				     list_one, &l);
		if (err)
			return complain("readdir", err);
	}
	for (unsigned int i = 0; i < SHARED_STAY; i++)
		if (l.seen[i] != 1) {
			fprintf(stderr,
				"shared: a reader met stay-%03u %u times\n", i,
				l.seen[i]);
			return false;
		}
	return true;
}

static bool look_up(struct shared *s, struct rng *rng)
{
	unsigned int n = (unsigned int)rng_below(rng, SHARED_STAY);
	char name[20];
	struct attr attr;
	int err;

	snprintf(name, sizeof(name), "stay-%03u", n);
	err = volume_lookup(s->v, s->dir, name, &attr);
	if (!err && attr.ino != s->stay[n])
		err = -EUCLEAN;
	return !err || complain("lookup of a name that stays", err);
}

/* Names that come and go; a folder may itself have been moved meanwhile. */
static inum_t some_folder(struct shared *s, struct rng *rng)
{
	return rng_one_in(rng, 2) ? s->dir
				  : s->folder[rng_below(rng, SHARED_FOLDERS)];
}

static void some_name(struct rng *rng, char *name)
{
	sprintf(name, "come-%02u", (unsigned int)rng_below(rng, 60));
}

static bool one_of(const char *what, int err, const int *allowed)
{
	for (; err && *allowed; allowed++)
		if (err == *allowed)
			err = 0;
	return !err || complain(what, err);
}

static void reap(struct shared *s, inum_t gone)
{
	if (gone)
		volume_reap(s->v, gone);
}

static bool make_name(struct shared *s, struct rng *rng)
{
	static const int allowed[] = { -EEXIST, -ENOENT, 0 };
	inum_t dir = some_folder(s, rng);
	struct attr attr;
	char name[20];
	int err;

	some_name(rng, name);
	if (rng_one_in(rng, 4))
		err = volume_link(s->v, s->file[rng_below(rng, SHARED_FILES)],
				  dir, name, &attr);
	else
		err = volume_create(s->v, dir, name,
				    rng_one_in(rng, 4) ? S_IFDIR | 0755
						       : S_IFREG | 0644,
				    0, &root, &attr);
	return grew(s, err) || one_of("create or link", err, allowed);
}

static bool remove_name(struct shared *s, struct rng *rng)
{
	static const int allowed[] = { -ENOENT, -EISDIR, -ENOTDIR, -ENOTEMPTY,
				       0 };
	inum_t gone = 0, dir = some_folder(s, rng);
	char name[20];
	int err;

	some_name(rng, name);
	err = volume_unlink(s->v, dir, name, &gone);
	if (err == -EISDIR)
		err = volume_rmdir(s->v, dir, name, &gone);
	if (!err)
		reap(s, gone);
	return one_of("unlink", err, allowed);
}

static bool rename_name(struct shared *s, struct rng *rng)
{
	static const int allowed[] = { -ENOENT, -EEXIST,    -EISDIR, -ENOTDIR,
				       -EINVAL, -ENOTEMPTY, 0 };
	static const unsigned int flags[] = { 0, 0, RENAME_NOREPLACE,
					      RENAME_EXCHANGE };
	char from[20], to[20];
	inum_t gone = 0;
	int err;

	some_name(rng, from);
	some_name(rng, to);
	err = volume_rename(s->v, some_folder(s, rng), from,
			    some_folder(s, rng), to, flags[rng_below(rng, 4)],
			    &gone);
	if (!err)
		reap(s, gone);
	return one_of("rename", err, allowed);
}

/* Move whole folders into each other: never into themselves. */
static bool move_folder(struct shared *s, struct rng *rng)
{
	static const int allowed[] = { -ENOENT, -EINVAL, -ENOTEMPTY, -EEXIST,
				       0 };
	inum_t from = some_folder(s, rng), to = some_folder(s, rng), gone = 0;
	char name[20];
	int err;

	sprintf(name, "folder-%03u",
		(unsigned int)rng_below(rng, SHARED_FOLDERS));
	err = volume_rename(s->v, from, name, to, name, 0, &gone);
	return one_of("rename of a folder", err, allowed);
}

static bool use_names(struct shared *s, struct rng *rng,
		      _Atomic(const char *) *what)
{
	switch (rng_below(rng, 12)) {
	case 0:
		*what = "shared readdir";
		return list_folder(s, rng);
	case 1 ... 3:
		*what = "shared lookup";
		return look_up(s, rng);
	case 4 ... 6:
		*what = "shared create";
		return make_name(s, rng);
	case 7 ... 8:
		*what = "shared unlink";
		return remove_name(s, rng);
	case 9 ... 10:
		*what = "shared rename";
		return rename_name(s, rng);
	default:
		*what = "shared rename of a folder";
		return move_folder(s, rng);
	}
}

bool shared_step(struct shared *s, struct rng *rng, _Atomic(const char *) *what)
{
	return rng_one_in(rng, 2) ? use_file(s, rng, what)
				  : use_names(s, rng, what);
}

static bool make_one(struct shared *s, inum_t dir, const char *prefix,
		     unsigned int n, uint32_t mode, inum_t *ino)
{
	struct attr attr;
	char name[32];
	int err;

	snprintf(name, sizeof(name), "%s-%03u", prefix, n);
	err = volume_create(s->v, dir, name, mode, 0, &root, &attr);
	*ino = attr.ino;
	return !err || complain(name, err);
}

bool shared_make(struct shared *s, struct volume *v)
{
	bool ok;

	s->v = v;
	ok = make_one(s, VOLUME_ROOT, "shared", 0, S_IFDIR | 0755, &s->dir);
	for (unsigned int i = 0; ok && i < SHARED_STAY; i++)
		ok = make_one(s, s->dir, "stay", i, S_IFREG | 0644,
			      &s->stay[i]);
	for (unsigned int i = 0; ok && i < SHARED_FILES; i++)
		ok = make_one(s, s->dir, "file", i, S_IFREG | 0644,
			      &s->file[i]);
	for (unsigned int i = 0; ok && i < SHARED_FOLDERS; i++)
		ok = make_one(s, s->dir, "folder", i, S_IFDIR | 0755,
			      &s->folder[i]);
	return ok;
}

bool shared_check(struct shared *s)
{
	struct rng rng = { 1 };

	for (unsigned int n = 0; n < SHARED_FILES; n++)
		for (uint64_t i = 0; i < FILE_BLOCKS + CHUNK_BLOCKS;
		     i += CHUNK_BLOCKS)
			if (!check_read(s, n, i, CHUNK_BLOCKS))
				return false;
	return list_folder(s, &rng);
}
