/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What all requests' handlers share: counting, replying, attributes as they
 * are shown, references, and a buffer for each thread.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/fuse_fs.h"

struct fuse_fs *fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

struct call call_begin(fuse_req_t req, enum stats_op op)
{
	return (struct call){
		.fs = fs_of(req),
		.req = req,
		.op = op,
		.start_ns = stats_now(),
	};
}

void call_count(const struct call *c, int err, uint64_t bytes)
{
	stats_op(c->fs->p->stats, c->op, stats_now() - c->start_ns, err, bytes);
}

/* What programs may see of our errors. */
static int shown_errno(int err)
{
	switch (-err) {
	case EBADMSG:
	case EUCLEAN:
		return EIO;
	case ENOSYS:
		return EOPNOTSUPP; /* for ever, at the head of this file */
	default:
		return -err;
	}
}

void reply_error(fuse_req_t req, int err)
{
	assert(err <= 0);
	fuse_reply_err(req, shown_errno(err));
}

void call_end(const struct call *c, int err)
{
	call_count(c, err, 0);
	reply_error(c->req, err);
}

/* ---- attributes ---- */

bool mode_is_masked(const struct fuse_override *o, mode_t mode)
{
	if (S_ISLNK(mode))
		return false;
	return S_ISDIR(mode) ? o->has_dmask : o->has_fmask;
}

mode_t shown_mode(const struct fuse_override *o, mode_t mode)
{
	if (!mode_is_masked(o, mode))
		return mode;
	return (mode & S_IFMT) |
	       (0777 & ~(S_ISDIR(mode) ? o->dmask : o->fmask));
}

void attr_to_stat(const struct fuse_fs *fs, const struct attr *a,
		  struct stat *st)
{
	const struct fuse_override *o = &fs->p->override;

	*st = (struct stat){
		.st_ino = a->ino,
		.st_mode = shown_mode(o, a->mode),
		.st_nlink = a->nlink,
		.st_uid = o->has_uid ? o->uid : a->uid,
		.st_gid = o->has_gid ? o->gid : a->gid,
		.st_rdev = a->rdev,
		.st_size = (off_t)a->size,
		.st_blksize = BLOCK_BYTES,
		.st_blocks = (blkcnt_t)a->blocks,
		.st_atim = a->atime,
		.st_mtim = a->mtime,
		.st_ctim = a->ctime,
	};
}

void virtual_to_stat(const struct fuse_fs *fs, const struct virtual_attr *a,
		     struct stat *st)
{
	*st = (struct stat){
		.st_ino = a->st_ino,
		.st_mode = S_IFREG | 0444,
		.st_nlink = 1,
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_size = (off_t)a->size,
		.st_blksize = BLOCK_BYTES,
		.st_blocks = (blkcnt_t)((a->size + 511) / 512),
		.st_atim = a->time,
		.st_mtim = a->time,
		.st_ctim = a->time,
	};
}

int entry_get(struct fuse_fs *fs, const struct attr *a,
	      struct fuse_entry_param *e)
{
	*e = (struct fuse_entry_param){
		.ino = a->ino,
		.generation = GENERATION,
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
	};
	attr_to_stat(fs, a, &e->attr);
	return lookup_get(fs->lookups, a->ino);
}

void fs_put(struct fuse_fs *fs, inum_t ino, uint64_t n)
{
	if (virtual_is(ino))
		virtual_forget(fs->virtuals, ino, n);
	else if (!lookup_put(fs->lookups, ino, n))
		volume_reap(fs->volume, ino);
}

/* ---- buffers ---- */

struct buffer {
	size_t size;
	void *bytes;
};

void fs_buffer_free(void *buffer)
{
	struct buffer *b = buffer;

	free(b->bytes);
	free(b);
}

void *fs_buffer(struct fuse_fs *fs, size_t size)
{
	struct buffer *b = pthread_getspecific(fs->buffer_key);
	void *bytes;

	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b || pthread_setspecific(fs->buffer_key, b)) {
			free(b);
			return NULL;
		}
	}
	if (b->size < size) {
		if (posix_memalign(&bytes, BLOCK_BYTES, size))
			return NULL;
		free(b->bytes);
		b->bytes = bytes;
		b->size = size;
	}
	return b->bytes;
}
