/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attributes: reading, changing, and the times that move by themselves.
 */
#include "fs/attr.h"

#include <errno.h>
#include <sys/stat.h>

#include "fs/file.h"
#include "fs/inode.h"
#include "fs/vol.h"
#include "fs/volume.h"

int volume_getattr(struct volume *v, inum_t ino, struct attr *out)
{
	struct inode *in;
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = inode_get(&t, ino, &in);
		if (!err)
			inode_attr(in, out);
	} while (txn_retry(&t, &err));
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

void attr_kill_suidgid(struct inode_item *i)
{
	i->mode &= ~(uint32_t)S_ISUID;
	/* Setgid without group execution means mandatory locking: keep it. */
	if (i->mode & S_IXGRP)
		i->mode &= ~(uint32_t)S_ISGID;
}

void attr_times_told(struct volume *v, struct inode *in)
{
	if (!in->provisional)
		return;
	in->provisional = false;
	TAILQ_REMOVE(&v->inodes.provisional, in, provisional_link);
}

void attr_times_stand_in(struct volume *v, struct inode *in,
			 const struct timespec *now)
{
	if (!in->provisional) {
		in->provisional = true;
		in->told_mtime = in->i.mtime;
		in->told_ctime = in->i.ctime;
		TAILQ_INSERT_TAIL(&v->inodes.provisional, in, provisional_link);
	}
	in->provisional_epoch = v->ft.epoch;
	in->i.mtime = in->i.ctime = *now;
}

/* Back to what the kernel was told last. */
static int settle(struct volume *v, struct inode *in)
{
	struct txn t;
	int err = txn_begin(&t, v, TXN_DELETE, 1, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = in->gone || !in->provisional ? 0 : inode_prepare(&t, in);
		if (!err)
			err = txn_ready(&t, 0);
	} while (txn_retry(&t, &err));
	if (!err && !in->gone && in->provisional) {
		in->i.mtime = in->told_mtime;
		in->i.ctime = in->told_ctime;
		attr_times_told(v, in);
		inode_dirty(&t, in);
	}
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

int attr_settle(struct volume *v, enum attr_settle which)
{
	int err = 0;

	while (!err) {
		struct inode *in;

		vol_lock(v);
		in = TAILQ_FIRST(&v->inodes.provisional);
		if (in && which == ATTR_SETTLE_OLD &&
		    in->provisional_epoch >= v->ft.epoch)
			in = NULL;
		if (in)
			inode_hold(in);
		vol_unlock(v);
		if (!in)
			break;
		err = settle(v, in);
		file_put(v, in);
	}
	return err;
}

int attr_settle_one(struct volume *v, inum_t ino)
{
	struct txn t = { .v = v };
	struct inode *in = NULL;
	int err;

	vol_lock(v);
	if (!TAILQ_EMPTY(&v->inodes.provisional) && !inode_get(&t, ino, &in) &&
	    in->provisional)
		inode_hold(in);
	else
		in = NULL;
	vol_unlock(v);
	if (!in)
		return 0;
	err = settle(v, in);
	file_put(v, in);
	return err;
}

struct change {
	struct volume *v;
	unsigned int what;
	const struct attr *in;
	struct attr *out;
	struct timespec now;
	bool callers;	/* times are the caller's */
	bool same_size; /* and this moves none */
};

static bool moves_mtime(const struct change *c)
{
	return c->what & VOLUME_SET_MTIME_NOW ||
	       (c->what & VOLUME_SET_SIZE && !c->same_size);
}

static bool moves_ctime(const struct change *c)
{
	return c->what & ~(unsigned int)VOLUME_SET_SIZE || !c->same_size;
}

static void apply(void *arg, struct inode *inode)
{
	const struct change *c = arg;
	struct inode_item *i = &inode->i;

	if (c->what & VOLUME_KILL_SUIDGID)
		attr_kill_suidgid(i);
	if (c->what & VOLUME_SET_MODE)
		i->mode = (i->mode & S_IFMT) | (c->in->mode & 07777);
	if (c->what & VOLUME_SET_UID)
		i->uid = c->in->uid;
	if (c->what & VOLUME_SET_GID)
		i->gid = c->in->gid;
	if (c->what & VOLUME_SET_ATIME)
		i->atime = c->in->atime;
	if (c->what & VOLUME_SET_ATIME_NOW)
		i->atime = c->now;
	if (c->what & VOLUME_SET_MTIME)
		i->mtime = c->in->mtime;
	else if (moves_mtime(c))
		i->mtime = c->now;
	if (c->what & VOLUME_SET_CTIME)
		i->ctime = c->in->ctime;
	else if (moves_ctime(c))
		i->ctime = c->now;
	if (c->what & VOLUME_SET_CTIME || moves_ctime(c))
		inode->told_ctime = i->ctime;
	if (c->what & VOLUME_SET_MTIME || moves_mtime(c))
		attr_times_told(c->v, inode);
	inode_attr(inode, c->out);
}

static int set_plain(struct volume *v, inum_t ino, struct change *c)
{
	struct inode *in;
	struct txn t;
	int err = txn_begin(&t, v, TXN_DELETE, 1, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = inode_get(&t, ino, &in);
		if (!err)
			err = inode_prepare(&t, in);
		if (!err)
			err = txn_ready(&t, 0);
	} while (txn_retry(&t, &err));
	if (!err) {
		apply(c, in);
		inode_dirty(&t, in);
	}
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

static int set_with_size(struct volume *v, inum_t ino, struct change *c)
{
	struct inode *in;
	int err = file_get(v, ino, &in);

	if (err)
		return err;
	if (S_ISDIR(in->type))
		err = -EISDIR;
	else if (!S_ISREG(in->type))
		err = -EINVAL;
	else if (c->in->size > FILE_BYTES_MAX)
		err = -EFBIG;
	if (!err) {
		file_lock_exclusive(in);
		c->same_size = c->callers && c->in->size == file_size(v, in);
		err = file_set_size(v, in, c->in->size, apply, c);
		file_unlock(in);
	}
	file_put(v, in);
	/* Cutting has freed blocks since the attributes were taken. */
	return err ? err : volume_getattr(v, ino, c->out);
}

int volume_setattr(struct volume *v, inum_t ino, unsigned int what,
		   const struct attr *in, struct attr *out)
{
	struct change c = {
		.v = v,
		.what = what & ~(unsigned int)VOLUME_TIMES_ARE_CALLERS,
		.in = in,
		.out = out,
		.now = vol_now(v),
		.callers = what & VOLUME_TIMES_ARE_CALLERS,
	};

	if (v->o.read_only)
		return -EROFS;
	if (!c.what)
		return volume_getattr(v, ino, out);
	return what & VOLUME_SET_SIZE ? set_with_size(v, ino, &c)
				      : set_plain(v, ino, &c);
}

static bool before_or_same(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec ||
	       (a->tv_sec == b->tv_sec && a->tv_nsec <= b->tv_nsec);
}

#define DAY_SECONDS (24 * 60 * 60)

static bool wants_atime(const struct volume *v, const struct inode_item *i,
			const struct timespec *now)
{
	if (v->o.atime == VOLUME_STRICTATIME)
		return true;
	return before_or_same(&i->atime, &i->mtime) ||
	       before_or_same(&i->atime, &i->ctime) ||
	       now->tv_sec - DAY_SECONDS >= i->atime.tv_sec;
}

/* Whether the atime is due; the inode is in memory, as it was just used. */
static bool atime_due(struct volume *v, inum_t ino, const struct timespec *now)
{
	struct inode *in;
	struct txn t = { .v = v };
	bool due;

	vol_lock(v);
	due = !v->error && !inode_get(&t, ino, &in) &&
	      wants_atime(v, &in->i, now);
	vol_unlock(v);
	return due;
}

void attr_accessed(struct volume *v, inum_t ino)
{
	struct timespec now = vol_now(v);
	struct inode *in;
	struct txn t;
	int err;

	/* A reader never waits for a commit. */
	if (v->o.read_only || v->o.atime == VOLUME_NOATIME ||
	    !atime_due(v, ino, &now) || txn_begin_now(&t, v, TXN_DELETE, 1))
		return;
	txn_lock(&t);
	do {
		err = inode_get(&t, ino, &in);
		if (!err)
			err = inode_prepare(&t, in);
		if (!err)
			err = txn_ready(&t, 0);
	} while (txn_retry(&t, &err));
	if (!err) {
		in->i.atime = now;
		inode_dirty(&t, in);
	}
	txn_unlock(&t);
	txn_end(&t);
}
