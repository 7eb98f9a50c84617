/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A volume as a table of functions: each only passes its arguments on.
 */
#include "tests/support/fsapi.h"

static int v_lookup(void *fs, inum_t dir, const char *name, struct attr *out)
{
	return volume_lookup(fs, dir, name, out);
}

static int v_getattr(void *fs, inum_t ino, struct attr *out)
{
	return volume_getattr(fs, ino, out);
}

static int v_setattr(void *fs, inum_t ino, unsigned int what,
		     const struct attr *in, struct attr *out)
{
	return volume_setattr(fs, ino, what, in, out);
}

static int v_create(void *fs, inum_t dir, const char *name, uint32_t mode,
		    uint64_t rdev, const struct volume_cred *cred,
		    struct attr *out)
{
	return volume_create(fs, dir, name, mode, rdev, cred, out);
}

static int v_symlink(void *fs, inum_t dir, const char *name, const char *target,
		     const struct volume_cred *cred, struct attr *out)
{
	return volume_symlink(fs, dir, name, target, cred, out);
}

static int v_readlink(void *fs, inum_t ino, char *buf)
{
	return volume_readlink(fs, ino, buf);
}

static int v_link(void *fs, inum_t ino, inum_t dir, const char *name,
		  struct attr *out)
{
	return volume_link(fs, ino, dir, name, out);
}

static int v_unlink(void *fs, inum_t dir, const char *name, inum_t *gone)
{
	return volume_unlink(fs, dir, name, gone);
}

static int v_rmdir(void *fs, inum_t dir, const char *name, inum_t *gone)
{
	return volume_rmdir(fs, dir, name, gone);
}

static int v_rename(void *fs, inum_t dir, const char *name, inum_t new_dir,
		    const char *new_name, unsigned int flags, inum_t *gone)
{
	return volume_rename(fs, dir, name, new_dir, new_name, flags, gone);
}

static void v_reap(void *fs, inum_t ino)
{
	volume_reap(fs, ino);
}

static int v_read(void *fs, inum_t ino, uint64_t offset, size_t len, void *buf,
		  size_t *nr)
{
	return volume_read(fs, ino, offset, len, buf, nr);
}

static int v_write(void *fs, inum_t ino, uint64_t offset, size_t len,
		   const void *buf, unsigned int flags)
{
	return volume_write(fs, ino, offset, len, buf, flags);
}

static int v_fallocate(void *fs, inum_t ino, int mode, uint64_t offset,
		       uint64_t len)
{
	return volume_fallocate(fs, ino, mode, offset, len);
}

static int v_lseek(void *fs, inum_t ino, uint64_t offset, int whence,
		   uint64_t *out)
{
	return volume_lseek(fs, ino, offset, whence, out);
}

static int v_readdir(void *fs, inum_t dir, uint64_t cookie, unsigned int flags,
		     fsapi_emit emit, void *arg)
{
	return volume_readdir(fs, dir, cookie, flags, emit, arg);
}

static int v_getxattr(void *fs, inum_t ino, const char *name, void *buf,
		      size_t size, size_t *len)
{
	return volume_getxattr(fs, ino, name, buf, size, len);
}

static int v_setxattr(void *fs, inum_t ino, const char *name, const void *value,
		      size_t len, int flags)
{
	return volume_setxattr(fs, ino, name, value, len, flags);
}

static int v_listxattr(void *fs, inum_t ino, char *buf, size_t size,
		       size_t *len)
{
	return volume_listxattr(fs, ino, buf, size, len);
}

static int v_removexattr(void *fs, inum_t ino, const char *name)
{
	return volume_removexattr(fs, ino, name);
}

static int v_fsync(void *fs, inum_t ino)
{
	return volume_fsync(fs, ino);
}

static int v_sync(void *fs)
{
	return volume_sync(fs);
}

const struct fsapi_ops fsapi_volume = {
	.name = "volume",
	.lookup = v_lookup,
	.getattr = v_getattr,
	.setattr = v_setattr,
	.create = v_create,
	.symlink = v_symlink,
	.readlink = v_readlink,
	.link = v_link,
	.unlink = v_unlink,
	.rmdir = v_rmdir,
	.rename = v_rename,
	.reap = v_reap,
	.read = v_read,
	.write = v_write,
	.fallocate = v_fallocate,
	.lseek = v_lseek,
	.readdir = v_readdir,
	.getxattr = v_getxattr,
	.setxattr = v_setxattr,
	.listxattr = v_listxattr,
	.removexattr = v_removexattr,
	.fsync = v_fsync,
	.sync = v_sync,
};
