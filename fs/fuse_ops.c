/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Requests about names and attributes: unpack, call the volume, reply exactly
 * once.
 *
 * Only this daemon changes the container, and only the kernel we serve changes
 * it through us.  So the kernel keeps what it learned for ever: attributes,
 * entries, missing names, folder listings, symbolic links, file data.  What
 * follows from that:
 *
 *  - No names may change behind the kernel's back, and no attributes but those
 *    it asks for again itself (after a write, of a folder after a change).
 *  - Permissions are the kernel's (default_permissions): a cached entry is used
 *    for other users without asking us.
 *  - OPEN, OPENDIR and FLUSH are answered ENOSYS, which means "don't ask
 *    again" to the kernel.  O_TRUNC must then come as a SETATTR of its own:
 *    with ATOMIC_O_TRUNC nobody would hear of it and the old bytes came back
 *    after the cache was dropped.  No other request may ever be answered
 *    ENOSYS because of one file: that, too, would be for ever.
 *  - With write-back caching the kernel owns size and times of a file with
 *    dirty pages: writes from its cache don't move times, it sends them.
 *  - setuid and setgid bits are cleared by the kernel (no HANDLE_KILLPRIV: then
 *    it sends the new mode itself; libfuse 3.14 hides the flags of the other
 *    way from us).
 *  - Locks, O_APPEND and umask are the kernel's as well.
 *
 * A nodeid is the inode's number, never used for another one, so the
 * generation is constant and NFS handles stay good over a remount.
 */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/eventfd.h>

#include "fs/fuse_fs.h"

/* ---- replies ---- */

/* Count, and reply with the entry or the error. */
static void end_entry(const struct call *c, int err, const struct attr *a)
{
	struct fuse_entry_param e;

	if (!err)
		err = entry_get(c->fs, a, &e);
	if (err) {
		call_end(c, err);
		return;
	}
	call_count(c, 0, 0);
	if (fuse_reply_entry(c->req, &e))
		fs_put(c->fs, a->ino, 1);
}

static void end_attr(const struct call *c, int err, const struct attr *a)
{
	struct stat st;

	if (err) {
		call_end(c, err);
		return;
	}
	call_count(c, 0, 0);
	attr_to_stat(c->fs, a, &st);
	fuse_reply_attr(c->req, &st, FOREVER);
}

/* ---- virtual files ---- */

enum virtual_kind fs_virtual(struct fuse_fs *fs, fuse_ino_t dir,
			     const char *name)
{
	enum virtual_kind kind;
	struct attr a;

	if (dir != VOLUME_ROOT || fs->p->stats_mode == FUSE_STATS_OFF)
		return VIRTUAL_NONE;
	kind = virtual_kind(name);
	if (kind == VIRTUAL_NONE)
		return kind;
	return volume_lookup(fs->volume, dir, name, &a) == -ENOENT
		       ? kind
		       : VIRTUAL_NONE;
}

/*
 * For what would make @name in @dir: 0, or -EEXIST and a word to the user, who
 * may wonder why a name that no listing shows is taken.
 */
static int refuse_reserved(struct fuse_fs *fs, fuse_ino_t dir, const char *name)
{
	if (fs_virtual(fs, dir, name) == VIRTUAL_NONE)
		return 0;
	fs->p->report(fs->p->arg,
		      "a program tried to create one of the statistics' names "
		      "in the root folder, which are reserved; mount with "
		      "-o stats=off to use them for files");
	return -EEXIST;
}

static void reply_virtual(fuse_req_t req, int err, uint64_t nodeid,
			  const struct virtual_attr *a)
{
	struct fuse_fs *fs = fs_of(req);
	struct fuse_entry_param e = {
		.ino = nodeid,
		.generation = GENERATION,
		.attr_timeout = FOREVER,
		.entry_timeout = 0, /* each look-up is a new snapshot */
	};

	if (err) {
		reply_error(req, err);
		return;
	}
	virtual_to_stat(fs, a, &e.attr);
	if (fuse_reply_entry(req, &e))
		fs_put(fs, nodeid, 1);
}

static void lookup_virtual(fuse_req_t req, enum virtual_kind kind)
{
	struct virtual_attr a;
	uint64_t nodeid = 0;
	int err;

	err = virtual_lookup(fs_of(req)->virtuals, kind, fuse_req_ctx(req)->pid,
			     &nodeid, &a);
	reply_virtual(req, err, nodeid, &a);
}

/* "." of a virtual file: an NFS client that comes back to it. */
static void lookup_virtual_id(fuse_req_t req, uint64_t nodeid)
{
	struct virtual_attr a;
	int err;

	err = virtual_lookup_id(fs_of(req)->virtuals, nodeid, &a);
	reply_virtual(req, err, nodeid, &a);
}

/* ---- handlers ---- */

static void op_lookup(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	struct call c = call_begin(req, STATS_OP_lookup);
	enum virtual_kind kind;
	struct attr a;
	int err;

	if (virtual_is(dir)) {
		lookup_virtual_id(req, dir);
		return;
	}
	err = volume_lookup(c.fs->volume, dir, name, &a);
	if (err == -ENOENT) {
		/* ino 0: remember that the name is missing. */
		struct fuse_entry_param e = { .entry_timeout = FOREVER };

		kind = fs_virtual(c.fs, dir, name);
		if (kind != VIRTUAL_NONE) {
			lookup_virtual(req, kind);
			return;
		}
		call_count(&c, 0, 0);
		fuse_reply_entry(req, &e);
		return;
	}
	end_entry(&c, err, &a);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	struct call c = call_begin(req, STATS_OP_forget);

	fs_put(c.fs, ino, n);
	call_count(&c, 0, 0);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t nr,
			    struct fuse_forget_data *forgets)
{
	struct call c = call_begin(req, STATS_OP_forget);

	for (size_t i = 0; i < nr; i++)
		fs_put(c.fs, forgets[i].ino, forgets[i].nlookup);
	call_count(&c, 0, 0);
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	struct call c = call_begin(req, STATS_OP_getattr);
	struct virtual_attr va;
	struct attr a;
	struct stat st;
	int err;

	if (virtual_is(ino)) {
		err = virtual_getattr(c.fs->virtuals, ino, &va);
		if (err) {
			reply_error(req, err);
			return;
		}
		virtual_to_stat(c.fs, &va, &st);
		fuse_reply_attr(req, &st, FOREVER);
		return;
	}
	err = volume_getattr(c.fs->volume, ino, &a);
	end_attr(&c, err, &a);
}

static const struct {
	int fuse;
	unsigned int volume;
} set_bits[] = {
	{ FUSE_SET_ATTR_MODE, VOLUME_SET_MODE },
	{ FUSE_SET_ATTR_UID, VOLUME_SET_UID },
	{ FUSE_SET_ATTR_GID, VOLUME_SET_GID },
	{ FUSE_SET_ATTR_SIZE, VOLUME_SET_SIZE },
	{ FUSE_SET_ATTR_ATIME, VOLUME_SET_ATIME },
	{ FUSE_SET_ATTR_MTIME, VOLUME_SET_MTIME },
	{ FUSE_SET_ATTR_CTIME, VOLUME_SET_CTIME },
	{ FUSE_SET_ATTR_ATIME_NOW, VOLUME_SET_ATIME_NOW },
	{ FUSE_SET_ATTR_MTIME_NOW, VOLUME_SET_MTIME_NOW },
	{ FUSE_SET_ATTR_KILL_SUID, VOLUME_KILL_SUIDGID },
	{ FUSE_SET_ATTR_KILL_SGID, VOLUME_KILL_SUIDGID },
};

static unsigned int set_to_volume(int to_set)
{
	unsigned int what = 0;

	for (size_t i = 0; i < sizeof(set_bits) / sizeof(set_bits[0]); i++) {
		if (to_set & set_bits[i].fuse)
			what |= set_bits[i].volume;
	}
	/* "Now" comes with the plain bit and a time that means nothing. */
	if (what & VOLUME_SET_ATIME_NOW)
		what &= ~(unsigned int)VOLUME_SET_ATIME;
	if (what & VOLUME_SET_MTIME_NOW)
		what &= ~(unsigned int)VOLUME_SET_MTIME;
	return what;
}

/*
 * What uid=, gid= and the masks show cannot be changed.  Setting it to what is
 * shown already succeeds and changes nothing (cp -p, tar), anything else is
 * -EPERM, as other file systems with these options do it.
 */
static int drop_overridden(const struct fuse_override *o,
			   const struct attr *now, const struct attr *in,
			   unsigned int *what)
{
	if ((*what & VOLUME_SET_UID) && o->has_uid) {
		if (in->uid != o->uid)
			return -EPERM;
		*what &= ~(unsigned int)VOLUME_SET_UID;
	}
	if ((*what & VOLUME_SET_GID) && o->has_gid) {
		if (in->gid != o->gid)
			return -EPERM;
		*what &= ~(unsigned int)VOLUME_SET_GID;
	}
	if ((*what & VOLUME_SET_MODE) && mode_is_masked(o, now->mode)) {
		if (in->mode != (shown_mode(o, now->mode) & 07777))
			return -EPERM;
		*what &= ~(unsigned int)VOLUME_SET_MODE;
	}
	return 0;
}

static bool has_override(const struct fuse_override *o)
{
	return o->has_uid || o->has_gid || o->has_fmask || o->has_dmask;
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st,
		       int to_set, struct fuse_file_info *fi)
{
	struct call c = call_begin(req, STATS_OP_setattr);
	unsigned int what = set_to_volume(to_set);
	struct attr a, in = {
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = (uint64_t)st->st_size,
		.atime = st->st_atim,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
	};
	int err = 0;

	if (virtual_is(ino)) {
		reply_error(req, -EPERM);
		return;
	}
	if (has_override(&c.fs->p->override)) {
		err = volume_getattr(c.fs->volume, ino, &a);
		if (!err)
			err = drop_overridden(&c.fs->p->override, &a, &in,
					      &what);
	}
	if (c.fs->writeback)
		what |= VOLUME_TIMES_ARE_CALLERS;
	if (!err)
		err = volume_setattr(c.fs->volume, ino, what, &in, &a);
	end_attr(&c, err, &a);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct call c = call_begin(req, STATS_OP_readlink);
	char target[SYMLINK_BYTES_MAX + 1];
	int err;

	err = virtual_is(ino) ? -EINVAL
			      : volume_readlink(c.fs->volume, ino, target);
	if (err) {
		call_end(&c, err);
		return;
	}
	call_count(&c, 0, strlen(target));
	fuse_reply_readlink(req, target);
}

static struct volume_cred cred_of(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct volume_cred){ .uid = ctx->uid, .gid = ctx->gid };
}

static int make(const struct call *c, fuse_ino_t dir, const char *name,
		mode_t mode, dev_t rdev, struct attr *a)
{
	struct volume_cred cred = cred_of(c->req);
	int err;

	err = refuse_reserved(c->fs, dir, name);
	if (err)
		return err;
	return volume_create(c->fs->volume, dir, name, mode, rdev, &cred, a);
}

static void op_mknod(fuse_req_t req, fuse_ino_t dir, const char *name,
		     mode_t mode, dev_t rdev)
{
	struct call c = call_begin(req, STATS_OP_mknod);
	struct attr a;
	int err;

	err = make(&c, dir, name, mode, rdev, &a);
	end_entry(&c, err, &a);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t dir, const char *name,
		     mode_t mode)
{
	struct call c = call_begin(req, STATS_OP_mkdir);
	struct attr a;
	int err;

	err = make(&c, dir, name, S_IFDIR | (mode & ~(mode_t)S_IFMT), 0, &a);
	end_entry(&c, err, &a);
}

static void op_create(fuse_req_t req, fuse_ino_t dir, const char *name,
		      mode_t mode, struct fuse_file_info *fi)
{
	struct call c = call_begin(req, STATS_OP_create);
	struct fuse_entry_param e;
	struct attr a;
	int err;

	err = make(&c, dir, name, S_IFREG | (mode & ~(mode_t)S_IFMT), 0, &a);
	if (!err)
		err = entry_get(c.fs, &a, &e);
	if (err) {
		call_end(&c, err);
		return;
	}
	fi->fh = 0;
	fi->keep_cache = 1;
	call_count(&c, 0, 0);
	if (fuse_reply_create(req, &e, fi))
		fs_put(c.fs, a.ino, 1);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t dir,
		       const char *name)
{
	struct call c = call_begin(req, STATS_OP_symlink);
	struct volume_cred cred = cred_of(req);
	struct attr a;
	int err;

	err = refuse_reserved(c.fs, dir, name);
	if (!err)
		err = volume_symlink(c.fs->volume, dir, name, target, &cred,
				     &a);
	end_entry(&c, err, &a);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t dir,
		    const char *name)
{
	struct call c = call_begin(req, STATS_OP_link);
	struct attr a;
	int err;

	err = virtual_is(ino) ? -EPERM : refuse_reserved(c.fs, dir, name);
	if (!err)
		err = volume_link(c.fs->volume, ino, dir, name, &a);
	end_entry(&c, err, &a);
}

/*
 * @gone lost a name.  The kernel nearly always holds it and will send the
 * FORGET that lets it go; if not, nobody would.
 */
static void put_nameless(struct fuse_fs *fs, inum_t gone)
{
	if (gone && !lookup_held(fs->lookups, gone))
		volume_reap(fs->volume, gone);
}

/* A name that the volume does not know may be a virtual file's: -EPERM. */
static int missing_or_virtual(struct fuse_fs *fs, fuse_ino_t dir,
			      const char *name, int err)
{
	if (err == -ENOENT && fs_virtual(fs, dir, name) != VIRTUAL_NONE)
		return -EPERM;
	return err;
}

static void op_unlink(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	struct call c = call_begin(req, STATS_OP_unlink);
	inum_t gone = 0;
	int err;

	err = volume_unlink(c.fs->volume, dir, name, &gone);
	if (!err)
		put_nameless(c.fs, gone);
	call_end(&c, missing_or_virtual(c.fs, dir, name, err));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t dir, const char *name)
{
	struct call c = call_begin(req, STATS_OP_rmdir);
	inum_t gone = 0;
	int err;

	err = volume_rmdir(c.fs->volume, dir, name, &gone);
	if (!err)
		put_nameless(c.fs, gone);
	call_end(&c, missing_or_virtual(c.fs, dir, name, err));
}

static void op_rename(fuse_req_t req, fuse_ino_t dir, const char *name,
		      fuse_ino_t new_dir, const char *new_name,
		      unsigned int flags)
{
	struct call c = call_begin(req, STATS_OP_rename);
	inum_t gone = 0;
	int err;

	if (flags & ~(unsigned int)(RENAME_NOREPLACE | RENAME_EXCHANGE |
				    RENAME_WHITEOUT)) {
		call_end(&c, -EINVAL);
		return;
	}
	err = refuse_reserved(c.fs, new_dir, new_name);
	if (!err)
		err = volume_rename(c.fs->volume, dir, name, new_dir, new_name,
				    flags, &gone);
	if (!err)
		put_nameless(c.fs, gone);
	call_end(&c, missing_or_virtual(c.fs, dir, name, err));
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (fs_of(req)->no_open) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->fh = 0;
	fi->keep_cache = 1;
	fuse_reply_open(req, fi);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino,
		       struct fuse_file_info *fi)
{
	if (fs_of(req)->no_opendir) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->fh = 0;
	fi->keep_cache = 1;
	fi->cache_readdir = 1;
	fuse_reply_open(req, fi);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct call c = call_begin(req, STATS_OP_statfs);
	struct volume_statfs s;
	int err;

	err = volume_statfs(c.fs->volume, &s);
	if (err) {
		call_end(&c, err);
		return;
	}
	call_count(&c, 0, 0);
	fuse_reply_statfs(req, &(struct statvfs){
				       .f_bsize = BLOCK_BYTES,
				       .f_frsize = BLOCK_BYTES,
				       .f_blocks = s.blocks,
				       .f_bfree = s.free,
				       .f_bavail = s.free,
				       .f_files = s.files,
				       .f_ffree = s.files_free,
				       .f_favail = s.files_free,
				       .f_fsid = s.fsid,
				       .f_namemax = NAME_BYTES_MAX,
			       });
}

/* ---- settings ---- */

static bool want(struct fuse_conn_info *conn, uint64_t cap, bool on)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	if (on)
		return fuse_set_feature_flag(conn, cap);
	fuse_unset_feature_flag(conn, cap);
#else
	if (on && (conn->capable & cap)) {
		conn->want |= (unsigned int)cap;
		return true;
	}
	conn->want &= ~(unsigned int)cap;
#endif
	return false;
}

#define MIB (1u << 20)

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct fuse_fs *fs = userdata;

	want(conn, FUSE_CAP_ATOMIC_O_TRUNC, false);
	want(conn, FUSE_CAP_HANDLE_KILLPRIV, false);
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
	want(conn, FUSE_CAP_HANDLE_KILLPRIV_V2, false);
#endif
	want(conn, FUSE_CAP_AUTO_INVAL_DATA, false);
	/* A reply spliced costs four times the CPU of one copied. */
	want(conn, FUSE_CAP_SPLICE_READ, false);
	want(conn, FUSE_CAP_SPLICE_WRITE, false);
	want(conn, FUSE_CAP_SPLICE_MOVE, false);
	want(conn, FUSE_CAP_POSIX_ACL, false);
	want(conn, FUSE_CAP_DONT_MASK, false);
#ifdef FUSE_CAP_NO_EXPORT_SUPPORT
	want(conn, FUSE_CAP_NO_EXPORT_SUPPORT, false);
#endif

	want(conn, FUSE_CAP_ASYNC_READ, true);
	want(conn, FUSE_CAP_ASYNC_DIO, true);
	want(conn, FUSE_CAP_EXPORT_SUPPORT, true);
	want(conn, FUSE_CAP_IOCTL_DIR, true);
	want(conn, FUSE_CAP_PARALLEL_DIROPS, true);
	want(conn, FUSE_CAP_CACHE_SYMLINKS, true);
	want(conn, FUSE_CAP_READDIRPLUS, true);
	want(conn, FUSE_CAP_READDIRPLUS_AUTO, true);
	fs->writeback =
		want(conn, FUSE_CAP_WRITEBACK_CACHE, !fs->p->no_writeback);
	fs->no_open = conn->capable & FUSE_CAP_NO_OPEN_SUPPORT;
	fs->no_opendir = conn->capable & FUSE_CAP_NO_OPENDIR_SUPPORT;

	/* As many in flight as there are threads; the kernel's 12 is few. */
	conn->max_background = 64;
	conn->congestion_threshold = 48;
	if (conn->max_write > MIB)
		conn->max_write = MIB;
	conn->time_gran = 1;

	eventfd_write(fs->init_fd, 1);
}

/*
 * Not here: flush and access (their absence means ENOSYS, for ever),
 * release (means success; CREATE still opens), locks (the kernel's).
 */
const struct fuse_lowlevel_ops fs_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.open = op_open,
	.opendir = op_opendir,
	.create = op_create,
	.statfs = op_statfs,
	.read = op_read,
	.write = op_write,
	.fsync = op_fsync,
	.fsyncdir = op_fsync,
	.fallocate = op_fallocate,
	.lseek = op_lseek,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.getxattr = op_getxattr,
	.setxattr = op_setxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.ioctl = op_ioctl,
};
