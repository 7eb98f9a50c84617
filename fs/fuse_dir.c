/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Listing folders.  Offsets are the volume's cookies: stable while names come
 * and go, so the kernel may cache listings and go on anywhere.
 *
 * READDIRPLUS hands out a reference for every entry that fitted into the reply
 * and carries a nodeid; "." and ".." and the virtual files carry none.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fs/fuse_fs.h"

/*
 * The virtual files, if listed at all, come last in the root folder, behind
 * every cookie a volume uses: its names' hashes leave out the highest.
 */
#define VIRTUAL_COOKIE ((uint64_t)INT64_MAX - VIRTUAL_NR)

/* An entry of READDIRPLUS: struct fuse_entry_out, a header, a name. */
#define PLUS_BYTES_MIN 152

struct listing {
	struct call call;
	fuse_ino_t dir;
	bool plus;
	char *buf;
	size_t size, used; /* bytes */
	bool full;
	int err;
	/* References handed out, to be taken back if the reply fails. */
	inum_t *held;
	size_t nr_held;
};

/* Append one entry.  Returns whether it fitted. */
static bool add(struct listing *l, const char *name, uint64_t cookie,
		const struct fuse_entry_param *e)
{
	size_t left = l->size - l->used, need;

	if (l->plus)
		need = fuse_add_direntry_plus(l->call.req, l->buf + l->used,
					      left, name, e, (off_t)cookie);
	else
		need = fuse_add_direntry(l->call.req, l->buf + l->used, left,
					 name, &e->attr, (off_t)cookie);
	if (need > left) {
		l->full = true;
		return false;
	}
	l->used += need;
	return true;
}

static bool is_dots(const struct volume_dirent *d)
{
	return d->name[0] == '.' &&
	       (d->name_len == 1 || (d->name_len == 2 && d->name[1] == '.'));
}

static bool emit(void *arg, const struct volume_dirent *d)
{
	struct listing *l = arg;
	struct fuse_entry_param e = {
		.attr = { .st_ino = d->ino, .st_mode = d->mode },
	};
	bool hold = l->plus && d->attr && !is_dots(d);

	if (hold) {
		l->err = entry_get(l->call.fs, d->attr, &e);
		if (l->err)
			return false;
	}
	if (!add(l, d->name, d->cookie, &e)) {
		if (hold)
			fs_put(l->call.fs, d->ino, 1);
		return false;
	}
	if (hold)
		l->held[l->nr_held++] = d->ino;
	return true;
}

static void list_virtual(struct listing *l, uint64_t cookie)
{
	for (int kind = 0; kind < VIRTUAL_NR; kind++) {
		uint64_t own = VIRTUAL_COOKIE + (uint64_t)kind + 1;
		struct fuse_entry_param e = {
			.attr = {
				.st_ino = virtual_st_ino(kind),
				.st_mode = S_IFREG | 0444,
			},
		};

		if (cookie >= own ||
		    fs_virtual(l->call.fs, l->dir, virtual_name(kind)) !=
			    (enum virtual_kind)kind)
			continue;
		if (!add(l, virtual_name(kind), own, &e))
			return;
	}
}

static int list(struct listing *l, uint64_t cookie)
{
	int err = 0;

	if (cookie <= VIRTUAL_COOKIE)
		err = volume_readdir(l->call.fs->volume, l->dir, cookie,
				     l->plus ? VOLUME_READDIR_ATTR : 0, emit,
				     l);
	if (!err)
		err = l->err;
	if (!err && !l->full && l->dir == VOLUME_ROOT &&
	    l->call.fs->p->stats_mode == FUSE_STATS_LISTED)
		list_virtual(l, cookie);
	return err;
}

static void put_held(struct listing *l)
{
	for (size_t i = 0; i < l->nr_held; i++)
		fs_put(l->call.fs, l->held[i], 1);
}

static void read_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     bool plus)
{
	struct listing l = {
		.call = call_begin(req, STATS_OP_readdir),
		.dir = ino,
		.plus = plus,
		.size = size,
	};
	int err;

	l.buf = fs_buffer(l.call.fs, size);
	if (plus)
		l.held = malloc((size / PLUS_BYTES_MIN + 1) * sizeof(*l.held));
	if (!l.buf || (plus && !l.held)) {
		free(l.held);
		call_end(&l.call, -ENOMEM);
		return;
	}
	err = list(&l, (uint64_t)offset);
	/* An error after some entries: those now, the error next time. */
	if (err && !l.used) {
		call_end(&l.call, err);
	} else {
		call_count(&l.call, 0, 0);
		if (fuse_reply_buf(req, l.buf, l.used))
			put_held(&l);
	}
	free(l.held);
}

void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		struct fuse_file_info *fi)
{
	read_dir(req, ino, size, offset, false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	read_dir(req, ino, size, offset, true);
}
