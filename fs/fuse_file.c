/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Requests about file data.  Reads decrypt into a buffer of the thread, from
 * which the reply is written; writes hand on libfuse's buffer.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fs/fuse_fs.h"

static void emit_virtual(void *arg, const char *bytes, size_t len)
{
	fuse_reply_buf(arg, bytes, len);
}

void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	     struct fuse_file_info *fi)
{
	struct call c = call_begin(req, STATS_OP_read);
	size_t nr = 0;
	void *buf;
	int err;

	if (virtual_is(ino)) {
		err = virtual_read(c.fs->virtuals, ino, (uint64_t)offset, size,
				   emit_virtual, req);
		if (err)
			reply_error(req, err);
		return;
	}
	buf = fs_buffer(c.fs, size);
	if (!buf) {
		call_end(&c, -ENOMEM);
		return;
	}
	err = volume_read(c.fs->volume, ino, (uint64_t)offset, size, buf, &nr);
	if (err) {
		call_end(&c, err);
		return;
	}
	call_count(&c, 0, nr);
	fuse_reply_buf(req, buf, nr);
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
	      off_t offset, struct fuse_file_info *fi)
{
	struct call c = call_begin(req, STATS_OP_write);
	unsigned int flags = 0;
	int err;

	if (virtual_is(ino)) {
		reply_error(req, -EPERM);
		return;
	}
	/*
	 * Without write-back caching the mark means a shared mapping's page,
	 * and nobody else will set its times.
	 */
	if (fi->writepage && c.fs->writeback)
		flags |= VOLUME_WRITE_CACHED;
	err = volume_write(c.fs->volume, ino, (uint64_t)offset, size, buf,
			   flags);
	if (err) {
		call_end(&c, err);
		return;
	}
	call_count(&c, 0, size);
	fuse_reply_write(req, size);
	if (flags & VOLUME_WRITE_CACHED)
		notifier_written(c.fs->notifier, ino);
}

/* Of files and folders; there is no cheaper kind of durable for datasync. */
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
	      struct fuse_file_info *fi)
{
	struct call c = call_begin(req, STATS_OP_fsync);

	if (virtual_is(ino)) {
		reply_error(req, 0);
		return;
	}
	call_end(&c, volume_fsync(c.fs->volume, ino));
}

void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
		  off_t length, struct fuse_file_info *fi)
{
	struct call c = call_begin(req, STATS_OP_fallocate);

	if (virtual_is(ino)) {
		reply_error(req, -EPERM);
		return;
	}
	call_end(&c, volume_fallocate(c.fs->volume, ino, mode, (uint64_t)offset,
				      (uint64_t)length));
}

/* A virtual file is all data. */
static int seek_virtual(struct fuse_fs *fs, fuse_ino_t ino, uint64_t offset,
			int whence, uint64_t *out)
{
	struct virtual_attr a;
	int err;

	err = virtual_getattr(fs->virtuals, ino, &a);
	if (err)
		return err;
	if (offset >= a.size)
		return -ENXIO;
	*out = whence == SEEK_DATA ? offset : a.size;
	return 0;
}

static void end_seek(const struct call *c, int err, uint64_t out)
{
	if (err) {
		call_end(c, err);
		return;
	}
	call_count(c, 0, 0);
	fuse_reply_lseek(c->req, (off_t)out);
}

void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
	      struct fuse_file_info *fi)
{
	struct call c = call_begin(req, STATS_OP_lseek);
	uint64_t out = 0;
	int err;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		err = -EINVAL;
	else if (virtual_is(ino))
		err = seek_virtual(c.fs, ino, (uint64_t)offset, whence, &out);
	else
		err = volume_lseek(c.fs->volume, ino, (uint64_t)offset, whence,
				   &out);

	/* Data is data; but what looks like a hole, the kernel may have. */
	if (c.fs->writeback && !virtual_is(ino) &&
	    (err == -ENXIO ||
	     (!err && (whence == SEEK_HOLE || out != (uint64_t)offset)))) {
		err = notifier_seek(c.fs->notifier, &c, ino, (uint64_t)offset,
				    whence);
		if (!err)
			return;
	}
	end_seek(&c, err, out);
}
