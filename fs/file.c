/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * read(2) and write(2) of any bytes, made of whole blocks.
 */
#include "fs/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/attr.h"
#include "fs/blocks.h"
#include "fs/vol.h"

/* ---- inodes and their locks */

int file_get(struct volume *v, inum_t ino, struct inode **out)
{
	struct txn t;
	int err = txn_begin(&t, v, TXN_READ, 0, 0);

	if (err)
		return err;
	txn_lock(&t);
	do {
		err = inode_get(&t, ino, out);
	} while (txn_retry(&t, &err));
	if (!err)
		inode_hold(*out);
	txn_unlock(&t);
	txn_end(&t);
	return err;
}

void file_put(struct volume *v, struct inode *in)
{
	vol_lock(v);
	inode_put(v, in);
	vol_unlock(v);
}

int file_get_regular(struct volume *v, inum_t ino, struct inode **out)
{
	int err = file_get(v, ino, out);

	if (err || S_ISREG((*out)->type))
		return err;
	err = S_ISDIR((*out)->type) ? -EISDIR : -EINVAL;
	file_put(v, *out);
	return err;
}

void file_lock_shared(struct inode *in)
{
	lock_rank_enter(LOCK_INODE);
	pthread_rwlock_rdlock(&in->data_lock);
}

void file_lock_exclusive(struct inode *in)
{
	lock_rank_enter(LOCK_INODE);
	pthread_rwlock_wrlock(&in->data_lock);
}

void file_unlock(struct inode *in)
{
	pthread_rwlock_unlock(&in->data_lock);
	lock_rank_leave(LOCK_INODE);
}

uint64_t file_size(struct volume *v, const struct inode *in)
{
	uint64_t size;

	vol_lock(v);
	size = in->i.size;
	vol_unlock(v);
	return size;
}

/* ---- reading */

static int read_piece(struct volume *v, inum_t ino, uint64_t offset, size_t len,
		      uint8_t *buf)
{
	uint64_t first = offset / BLOCK_BYTES;
	size_t skip = offset % BLOCK_BYTES;
	unsigned int nr =
		(unsigned int)((skip + len + BLOCK_BYTES - 1) / BLOCK_BYTES);
	uint8_t *tmp;
	int err;

	if (!skip && len % BLOCK_BYTES == 0)
		return blocks_read(v, ino, first, nr, buf);
	tmp = malloc((size_t)nr * BLOCK_BYTES);
	if (!tmp)
		return -ENOMEM;
	err = blocks_read(v, ino, first, nr, tmp);
	if (!err)
		memcpy(buf, tmp + skip, len);
	free(tmp);
	return err;
}

static size_t piece_len(const struct volume *v, uint64_t offset, size_t len)
{
	size_t most =
		(size_t)blocks_chunk(v) * BLOCK_BYTES - offset % BLOCK_BYTES;

	return len < most ? len : most;
}

int volume_read(struct volume *v, inum_t ino, uint64_t offset, size_t len,
		void *buf, size_t *nr)
{
	struct inode *in;
	uint64_t size;
	int err = file_get_regular(v, ino, &in);

	*nr = 0;
	if (err)
		return err;
	size = file_size(v, in);
	if (offset >= size)
		len = 0;
	else if (len > size - offset)
		len = size - offset;
	while (!err && *nr < len) {
		size_t n = piece_len(v, offset + *nr, len - *nr);

		err = read_piece(v, ino, offset + *nr, n, (uint8_t *)buf + *nr);
		if (!err)
			*nr += n;
	}
	file_put(v, in);
	/* What was read before the error is good, as read(2) has it. */
	if (*nr && err)
		err = 0;
	if (len && !err)
		attr_accessed(v, ino);
	return err;
}

/* ---- writing */

struct write_change {
	struct volume *v;
	struct timespec now;
	uint64_t end;
	unsigned int flags;
};

static void write_done(void *arg, struct inode *in)
{
	const struct write_change *c = arg;

	if (in->i.size < c->end)
		in->i.size = c->end;
	if (c->flags & VOLUME_WRITE_CACHED) {
		attr_times_stand_in(c->v, in, &c->now);
	} else {
		in->i.mtime = in->i.ctime = c->now;
		attr_times_told(c->v, in);
	}
	if (c->flags & VOLUME_WRITE_KILL_SUIDGID)
		attr_kill_suidgid(&in->i);
}

/* The old content around a piece that does not fill its blocks. */
static int merge_edges(struct volume *v, struct inode *in, uint64_t offset,
		       size_t len, uint8_t *tmp, unsigned int nr)
{
	uint64_t first = offset / BLOCK_BYTES;
	size_t skip = offset % BLOCK_BYTES;
	size_t tail = (skip + len) % BLOCK_BYTES;
	int err = 0;

	if (skip)
		err = blocks_read(v, in->inum, first, 1, tmp);
	if (!err && tail && !(skip && nr == 1))
		err = blocks_read(v, in->inum, first + nr - 1, 1,
				  tmp + (size_t)(nr - 1) * BLOCK_BYTES);
	return err;
}

static int write_piece(struct volume *v, struct inode *in, uint64_t offset,
		       size_t len, const uint8_t *buf, unsigned int flags)
{
	uint64_t first = offset / BLOCK_BYTES;
	size_t skip = offset % BLOCK_BYTES;
	unsigned int nr =
		(unsigned int)((skip + len + BLOCK_BYTES - 1) / BLOCK_BYTES);
	struct write_change change = { v, vol_now(v), offset + len, flags };
	uint8_t *tmp;
	int err;

	if (!skip && len % BLOCK_BYTES == 0)
		return blocks_store(v, in, first, nr, buf, write_done, &change);
	tmp = malloc((size_t)nr * BLOCK_BYTES);
	if (!tmp)
		return -ENOMEM;
	err = merge_edges(v, in, offset, len, tmp, nr);
	if (!err) {
		memcpy(tmp + skip, buf, len);
		err = blocks_store(v, in, first, nr, tmp, write_done, &change);
	}
	free(tmp);
	return err;
}

/*
 * Pieces of blocks need the lock alone, and so does a write that leaves a hole
 * behind the end: true if all is held shared.
 */
static bool lock_for_write(struct volume *v, struct inode *in, uint64_t offset,
			   size_t len)
{
	if (!((offset | len) % BLOCK_BYTES)) {
		file_lock_shared(in);
		if (offset <= blocks_of(file_size(v, in)) * BLOCK_BYTES)
			return true;
		file_unlock(in);
	}
	file_lock_exclusive(in);
	return false;
}

static int write_all(struct volume *v, struct inode *in, uint64_t offset,
		     size_t len, const uint8_t *buf, unsigned int flags)
{
	bool shared = lock_for_write(v, in, offset, len);
	size_t done = 0;
	int err = 0;

	if (!shared && blocks_of(offset + len) > blocks_of(file_size(v, in)))
		err = file_finish_cut(v, in);
	while (!err && done < len) {
		size_t n = piece_len(v, offset + done, len - done);

		err = write_piece(v, in, offset + done, n, buf + done, flags);
		if (!err)
			done += n;
	}
	file_unlock(in);
	return err;
}

int volume_write(struct volume *v, inum_t ino, uint64_t offset, size_t len,
		 const void *buf, unsigned int flags)
{
	struct inode *in;
	int err = file_get_regular(v, ino, &in);

	if (err)
		return err;
	if (offset > FILE_BYTES_MAX || len > FILE_BYTES_MAX - offset)
		err = -EFBIG;
	if (!err && len)
		err = write_all(v, in, offset, len, buf, flags);
	file_put(v, in);
	return err;
}
