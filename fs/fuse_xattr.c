/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Extended attributes.  ACLs are refused while nothing obeys them: stored, but
 * not enforced, they would be worse than none.
 */
#include <errno.h>
#include <string.h>

#include "fs/fuse_fs.h"

/* The name spaces of other Linux file systems, and a name in them. */
static int refuse_name(const char *name)
{
	static const char *const space[] = { "user.", "trusted.", "security." };

	for (size_t i = 0; i < sizeof(space) / sizeof(*space); i++)
		if (!strncmp(name, space[i], strlen(space[i])))
			return name[strlen(space[i])] ? 0 : EINVAL;
	return EOPNOTSUPP;
}

/*
 * What must not reach the volume: 0, or the errno to answer.  ENOSYS, for the
 * whole mount and for ever, is what -o noxattr is about.
 */
static int refuse(fuse_req_t req, const char *name)
{
	if (fs_of(req)->p->no_xattr)
		return ENOSYS;
	return name ? refuse_name(name) : 0;
}

static bool refused(fuse_req_t req, const char *name)
{
	int err = refuse(req, name);

	if (err)
		fuse_reply_err(req, err);
	return err;
}

/* Reply with a value or list of @len bytes, or with its size if asked so. */
static void end_value(const struct call *c, int err, const void *buf,
		      size_t size, size_t len)
{
	/* A missing attribute is an answer, not a failure to be counted. */
	if (err == -ENODATA) {
		call_count(c, 0, 0);
		reply_error(c->req, err);
		return;
	}
	if (err) {
		call_end(c, err);
		return;
	}
	call_count(c, 0, size ? len : 0);
	if (size)
		fuse_reply_buf(c->req, buf, len);
	else
		fuse_reply_xattr(c->req, len);
}

/* A buffer for @size bytes, or NULL if only the length is asked for. */
static int value_buffer(const struct call *c, size_t *size, void **buf)
{
	*buf = NULL;
	if (*size > XATTR_BYTES_MAX)
		*size = XATTR_BYTES_MAX;
	if (!*size)
		return 0;
	*buf = fs_buffer(c->fs, *size);
	return *buf ? 0 : -ENOMEM;
}

void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct call c = call_begin(req, STATS_OP_getxattr);
	size_t len = 0;
	void *buf;
	int err;

	if (refused(req, name))
		return;
	if (virtual_is(ino)) {
		reply_error(req, -ENODATA);
		return;
	}
	err = value_buffer(&c, &size, &buf);
	if (!err)
		err = volume_getxattr(c.fs->volume, ino, name, buf, size, &len);
	end_value(&c, err, buf, size, len);
}

/*
 * Take out what only the administrator may see, as other file systems do; the
 * kernel would refuse to read it.  Returns the new length.
 */
static size_t hide_trusted(char *list, size_t len)
{
	static const char prefix[] = "trusted.";
	size_t kept = 0, name_len;

	for (size_t pos = 0; pos < len; pos += name_len) {
		name_len = strnlen(list + pos, len - pos - 1) + 1;
		if (!strncmp(list + pos, prefix, sizeof(prefix) - 1))
			continue;
		memmove(list + kept, list + pos, name_len);
		kept += name_len;
	}
	return kept;
}

void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct call c = call_begin(req, STATS_OP_listxattr);
	size_t all = XATTR_BYTES_MAX, len = 0;
	void *buf;
	int err;

	if (refused(req, NULL))
		return;
	err = value_buffer(&c, &all, &buf);
	if (!err && !virtual_is(ino))
		err = volume_listxattr(c.fs->volume, ino, buf, all, &len);
	if (!err && fuse_req_ctx(req)->uid != 0)
		len = hide_trusted(buf, len);
	if (!err && size && len > size)
		err = -ERANGE;
	end_value(&c, err, buf, size, len);
}

void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		 const char *value, size_t size, int flags)
{
	struct call c = call_begin(req, STATS_OP_setxattr);

	if (refused(req, name))
		return;
	if (virtual_is(ino)) {
		reply_error(req, -EPERM);
		return;
	}
	call_end(&c,
		 volume_setxattr(c.fs->volume, ino, name, value, size, flags));
}

void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct call c = call_begin(req, STATS_OP_removexattr);

	if (refused(req, name))
		return;
	if (virtual_is(ino)) {
		reply_error(req, -EPERM);
		return;
	}
	call_end(&c, volume_removexattr(c.fs->volume, ino, name));
}
