/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The model tells the truth: random operations on the reference model and on
 * a folder of the host, through system calls, agree in results, errno values,
 * attributes, content and in which time stamps move.
 *
 * What differs by design is left out or translated here: the host's clock
 * cannot be set, so its "now" is shown as the model's; ownership and modes of
 * new files are given by us; ctime cannot be chosen; access times stay out
 * (O_NOATIME); where ext4 says that data is, is its own business.
 *
 * Needs root (device nodes, other owners, trusted xattrs) and a host file
 * system with xattrs and fallocate.  Exit status 77: skipped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/support/lockstep.h"
#include "tests/support/refdata.h"
#include "tests/support/treesnap.h"

#define EXIT_SKIPPED 77

/*
 * One inode of the host, held by a descriptor so that its number is not given
 * to another.  seen and shown: the host's time stamps when they were last
 * looked at, and what the model's clock said then.
 */
struct host_inode {
	inum_t ino;
	int fd; /* O_PATH */
	struct timespec seen[3], shown[3];
	struct timespec btime; /* when we held it first: as it was made */
};

struct host {
	char dir[4096];
	ino_t root; /* its number, which we show as VOLUME_ROOT */
	size_t nr;
	struct host_inode *inode;
	struct timespec op_start;
};

static int result(int ret)
{
	return ret < 0 ? -errno : 0;
}

static inum_t to_inum(const struct host *h, ino_t ino)
{
	return ino == h->root ? VOLUME_ROOT : ino;
}

static struct host_inode *find(struct host *h, inum_t ino)
{
	for (size_t i = 0; i < h->nr; i++)
		if (h->inode[i].ino == ino)
			return &h->inode[i];
	return NULL;
}

/* A path that leads to an inode, whether it has a name or not. */
struct proc_path {
	char text[40];
};

static struct proc_path proc_path(const struct host_inode *i)
{
	struct proc_path p;

	snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d", i->fd);
	return p;
}

/* Times. */

static bool time_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec
				      : a->tv_nsec < b->tv_nsec;
}

/* The host's stamp number @k as the model would have it. */
static struct timespec show_time(struct host *h, struct host_inode *i, int k,
				 struct timespec host)
{
	if (host.tv_sec == i->seen[k].tv_sec &&
	    host.tv_nsec == i->seen[k].tv_nsec)
		return i->shown[k];
	i->seen[k] = i->shown[k] = host;
	if (!time_before(&host, &h->op_start))
		testclock_now(&i->shown[k]);
	return i->shown[k];
}

/* The host moved stamps without a reason: take no notice. */
static void overlook(struct host_inode *i)
{
	struct stat st;

	if (fstatat(i->fd, "", &st, AT_EMPTY_PATH) < 0)
		return;
	i->seen[0] = st.st_atim;
	i->seen[1] = st.st_mtim;
	i->seen[2] = st.st_ctim;
}

/*
 * Wait until time stamps made from now on differ from those made before.  They
 * come from the coarse clock, which lags, but where they were looked at since
 * the last change from the exact one.
 */
static void before_op(void *arg)
{
	struct host *h = arg;
	struct timespec exact, coarse;

	clock_gettime(CLOCK_REALTIME, &exact);
	do {
		usleep(500);
		clock_gettime(CLOCK_REALTIME_COARSE, &coarse);
	} while (!time_before(&exact, &coarse));
	h->op_start = coarse;
}

/* Attributes. */

static void fill_attr(struct host *h, struct host_inode *i,
		      const struct stat *st, struct attr *out)
{
	*out = (struct attr){
		.ino = i->ino,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.rdev = st->st_rdev,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
	};
	out->atime = show_time(h, i, 0, st->st_atim);
	out->mtime = show_time(h, i, 1, st->st_mtim);
	out->ctime = show_time(h, i, 2, st->st_ctim);
	out->btime = i->btime;
}

static int h_getattr(void *fs, inum_t ino, struct attr *out)
{
	struct host_inode *i = find(fs, ino);
	struct stat st;

	if (!i)
		return -ENOENT;
	if (fstatat(i->fd, "", &st, AT_EMPTY_PATH) < 0)
		return -errno;
	fill_attr(fs, i, &st, out);
	return 0;
}

/* Hold the inode under @name; its times of now are the model's "now". */
static int hold(struct host *h, int dir_fd, const char *name, struct attr *out)
{
	struct host_inode *i;
	struct stat st;
	int fd;

	fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (find(h, to_inum(h, st.st_ino))) {
		close(fd);
		return h_getattr(h, to_inum(h, st.st_ino), out);
	}
	h->inode = xrealloc(h->inode, (h->nr + 1) * sizeof(*h->inode));
	i = &h->inode[h->nr++];
	memset(i, 0, sizeof(*i));
	i->ino = to_inum(h, st.st_ino);
	i->fd = fd;
	testclock_now(&i->btime);
	fill_attr(h, i, &st, out);
	return 0;
}

static int dir_fd(struct host *h, inum_t dir)
{
	struct host_inode *i = find(h, dir);

	return i ? i->fd : -1;
}

static int h_lookup(void *fs, inum_t dir, const char *name, struct attr *out)
{
	int fd = dir_fd(fs, dir);

	if (fd < 0)
		return -ENOENT;
	if (!strcmp(name, "..") && dir == VOLUME_ROOT)
		name = ".";
	return hold(fs, fd, name, out);
}

/* chmod, but not of what has no mode of its own to Linux. */
static int set_mode(struct host_inode *i, uint32_t mode)
{
	if (S_ISLNK(mode))
		return 0;
	return result(chmod(proc_path(i).text, mode & 07777));
}

static int set_times(struct host_inode *i, unsigned int what,
		     const struct attr *in)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT },
				  { .tv_nsec = UTIME_OMIT } };

	if (what & VOLUME_SET_ATIME)
		ts[0] = in->atime;
	if (what & VOLUME_SET_ATIME_NOW)
		ts[0].tv_nsec = UTIME_NOW;
	if (what & VOLUME_SET_MTIME)
		ts[1] = in->mtime;
	if (what & VOLUME_SET_MTIME_NOW)
		ts[1].tv_nsec = UTIME_NOW;
	if (ts[0].tv_nsec == UTIME_OMIT && ts[1].tv_nsec == UTIME_OMIT)
		return 0;
	return result(utimensat(i->fd, "", ts, AT_EMPTY_PATH));
}

/* As open(2) has it, where the kernel would have asked the file system. */
static int set_size(struct host_inode *i, uint32_t mode, uint64_t size)
{
	if (S_ISDIR(mode))
		return -EISDIR;
	if (!S_ISREG(mode))
		return -EINVAL;
	return result(truncate(proc_path(i).text, (off_t)size));
}

static int h_setattr(void *fs, inum_t ino, unsigned int what,
		     const struct attr *in, struct attr *out)
{
	struct host_inode *i = find(fs, ino);
	struct attr old;
	int err;

	if (!i)
		return -ENOENT;
	if (!what)
		return h_getattr(fs, ino, out);
	err = h_getattr(fs, ino, &old);
	if (!err && what & VOLUME_SET_SIZE)
		err = set_size(i, old.mode, in->size);
	if (!err) /* moves ctime in any case, and may clear setuid */
		err = result(fchownat(
			i->fd, "", what & VOLUME_SET_UID ? in->uid : (uid_t)-1,
			what & VOLUME_SET_GID ? in->gid : (gid_t)-1,
			AT_EMPTY_PATH));
	if (!err)
		err = set_mode(i, what & VOLUME_SET_MODE
					  ? (old.mode & S_IFMT) | in->mode
					  : old.mode);
	if (!err)
		err = set_times(i, what, in);
	return err ? err : h_getattr(fs, ino, out);
}

/* Names. */

/* Give what was just made the owner and mode that the caller wants. */
static int adopt(struct host *h, inum_t dir, const char *name, uint32_t mode,
		 const struct volume_cred *cred, struct attr *out)
{
	int fd = dir_fd(h, dir), err;
	struct host_inode *i;
	struct stat st;
	gid_t gid = cred->gid;

	err = hold(h, fd, name, out);
	if (err)
		return err;
	if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
		return -errno;
	if (st.st_mode & S_ISGID)
		gid = out->gid; /* what the kernel chose */
	i = find(h, out->ino);
	err = result(fchownat(i->fd, "", cred->uid, gid, AT_EMPTY_PATH));
	if (!err)
		err = set_mode(i, mode | (S_ISDIR(mode) ? out->mode & S_ISGID
							: 0));
	if (!err)
		err = h_getattr(h, i->ino, out);
	return err;
}

static int h_create(void *fs, inum_t dir, const char *name, uint32_t mode,
		    uint64_t rdev, const struct volume_cred *cred,
		    struct attr *out)
{
	int fd = dir_fd(fs, dir), err;

	if (fd < 0)
		return -ENOENT;
	if (S_ISDIR(mode))
		err = result(mkdirat(fd, name, mode & 07777));
	else
		err = result(mknodat(fd, name, mode, rdev));
	return err ? err : adopt(fs, dir, name, mode, cred, out);
}

static int h_symlink(void *fs, inum_t dir, const char *name, const char *target,
		     const struct volume_cred *cred, struct attr *out)
{
	int fd = dir_fd(fs, dir), err;

	if (fd < 0)
		return -ENOENT;
	err = result(symlinkat(target, fd, name));
	return err ? err : adopt(fs, dir, name, S_IFLNK | 0777, cred, out);
}

static int h_readlink(void *fs, inum_t ino, char *buf)
{
	struct host_inode *i = find(fs, ino);
	ssize_t len;

	if (!i)
		return -ENOENT;
	len = readlinkat(i->fd, "", buf, SYMLINK_BYTES_MAX);
	if (len < 0) /* with an empty path ENOENT says "no link" */
		return errno == ENOENT ? -EINVAL : -errno;
	buf[len] = '\0';
	overlook(i); /* there is no O_NOATIME for this */
	return 0;
}

static int h_link(void *fs, inum_t ino, inum_t dir, const char *name,
		  struct attr *out)
{
	struct host_inode *i = find(fs, ino);
	int fd = dir_fd(fs, dir);

	if (!i || fd < 0)
		return -ENOENT;
	if (linkat(AT_FDCWD, proc_path(i).text, fd, name, AT_SYMLINK_FOLLOW) <
	    0)
		return -errno;
	return h_getattr(fs, ino, out);
}

static inum_t named(struct host *h, int fd, const char *name)
{
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return to_inum(h, st.st_ino);
}

static int remove_name(struct host *h, inum_t dir, const char *name, int flags,
		       inum_t *gone)
{
	int fd = dir_fd(h, dir);

	if (fd < 0)
		return -ENOENT;
	*gone = named(h, fd, name);
	return result(unlinkat(fd, name, flags));
}

static int h_unlink(void *fs, inum_t dir, const char *name, inum_t *gone)
{
	return remove_name(fs, dir, name, 0, gone);
}

static int h_rmdir(void *fs, inum_t dir, const char *name, inum_t *gone)
{
	return remove_name(fs, dir, name, AT_REMOVEDIR, gone);
}

/* The caller of renameat2() owns a whiteout; ours belongs to the source's. */
static int own_whiteout(int fd, const char *name, int new_fd,
			const char *new_name)
{
	struct stat white, source, dir;

	if (fstatat(fd, "", &dir, AT_EMPTY_PATH) < 0 ||
	    fstatat(fd, name, &white, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(new_fd, new_name, &source, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* Or there was nothing to do. */
	if (!S_ISCHR(white.st_mode) || white.st_rdev ||
	    white.st_ino == source.st_ino)
		return 0;
	return result(
		fchownat(fd, name, source.st_uid,
			 dir.st_mode & S_ISGID ? (gid_t)-1 : source.st_gid,
			 AT_SYMLINK_NOFOLLOW));
}

static int h_rename(void *fs, inum_t dir, const char *name, inum_t new_dir,
		    const char *new_name, unsigned int flags, inum_t *gone)
{
	int fd = dir_fd(fs, dir), new_fd = dir_fd(fs, new_dir), err;

	if (fd < 0 || new_fd < 0)
		return -ENOENT;
	*gone = named(fs, new_fd, new_name);
	if (flags & RENAME_EXCHANGE || named(fs, fd, name) == *gone)
		*gone = 0;
	err = result(renameat2(fd, name, new_fd, new_name, flags));
	/* ext4 makes the whiteout before it finds that it may not rename. */
	if (err && flags & RENAME_WHITEOUT)
		overlook(find(fs, dir));
	if (!err && flags & RENAME_WHITEOUT)
		err = own_whiteout(fd, name, new_fd, new_name);
	return err;
}

static void h_reap(void *fs, inum_t ino)
{
	struct host *h = fs;
	struct host_inode *i = find(h, ino);
	struct stat st;

	if (!i || fstatat(i->fd, "", &st, AT_EMPTY_PATH) < 0 || st.st_nlink)
		return;
	close(i->fd);
	*i = h->inode[--h->nr];
}

/* Content. */

static int open_inode(struct host *h, inum_t ino, int flags)
{
	struct host_inode *i = find(h, ino);
	int fd;

	if (!i)
		return -ENOENT;
	fd = open(proc_path(i).text, flags | O_NOATIME | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int h_read(void *fs, inum_t ino, uint64_t offset, size_t len, void *buf,
		  size_t *nr)
{
	int fd = open_inode(fs, ino, O_RDONLY);
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	for (*nr = 0; *nr < len; *nr += (size_t)n) {
		n = pread(fd, (char *)buf + *nr, len - *nr,
			  (off_t)(offset + *nr));
		if (n <= 0)
			break;
	}
	n = result((int)n);
	close(fd);
	return (int)n;
}

static int h_write(void *fs, inum_t ino, uint64_t offset, size_t len,
		   const void *buf, unsigned int flags)
{
	int fd = open_inode(fs, ino, O_WRONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = pwrite(fd, buf, len, (off_t)offset);
	n = n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
	close(fd);
	return (int)n;
}

static int h_fallocate(void *fs, inum_t ino, int mode, uint64_t offset,
		       uint64_t len)
{
	int fd = open_inode(fs, ino, O_WRONLY), err;

	if (fd < 0)
		return fd;
	if (mode & FALLOC_FL_COLLAPSE_RANGE)
		err = len ? -EOPNOTSUPP : -EINVAL; /* ext4 can, we need not */
	else
		err = result(fallocate(fd, mode, (off_t)offset, (off_t)len));
	close(fd);
	return err;
}

static int h_lseek(void *fs, inum_t ino, uint64_t offset, int whence,
		   uint64_t *out)
{
	int fd = open_inode(fs, ino, O_RDONLY);
	off_t at;

	if (fd < 0)
		return fd;
	at = lseek(fd, (off_t)offset, whence);
	*out = (uint64_t)at;
	at = at < 0 ? -errno : 0;
	close(fd);
	return (int)at;
}

/* Cookies are positions in the order in which the host lists. */
static int h_readdir(void *fs, inum_t dir, uint64_t cookie, unsigned int flags,
		     fsapi_emit emit, void *arg)
{
	int fd = open_inode(fs, dir, O_RDONLY | O_DIRECTORY);
	bool more = true;
	uint64_t at = 0;
	struct dirent *d;
	DIR *stream;

	if (fd < 0)
		return fd;
	stream = fdopendir(fd);
	while (more && (d = readdir(stream))) {
		struct volume_dirent e = {
			.cookie = ++at,
			.ino = to_inum(fs, d->d_ino),
			.mode = DTTOIF(d->d_type),
			.name = d->d_name,
			.name_len = strlen(d->d_name),
		};

		if (!strcmp(d->d_name, "..") && dir == VOLUME_ROOT)
			e.ino = VOLUME_ROOT;
		if (at > cookie)
			more = emit(arg, &e);
	}
	closedir(stream);
	return 0;
}

/* Extended attributes. */

static int length(ssize_t n, size_t *len)
{
	if (n < 0)
		return -errno;
	*len = (size_t)n;
	return 0;
}

static int h_getxattr(void *fs, inum_t ino, const char *name, void *buf,
		      size_t size, size_t *len)
{
	struct host_inode *i = find(fs, ino);

	if (!i)
		return -ENOENT;
	return length(getxattr(proc_path(i).text, name, buf, size), len);
}

static int h_setxattr(void *fs, inum_t ino, const char *name, const void *value,
		      size_t len, int flags)
{
	struct host_inode *i = find(fs, ino);

	if (!i)
		return -ENOENT;
	return result(setxattr(proc_path(i).text, name, value, len, flags));
}

static int h_listxattr(void *fs, inum_t ino, char *buf, size_t size,
		       size_t *len)
{
	struct host_inode *i = find(fs, ino);

	if (!i)
		return -ENOENT;
	return length(listxattr(proc_path(i).text, buf, size), len);
}

static int h_removexattr(void *fs, inum_t ino, const char *name)
{
	struct host_inode *i = find(fs, ino);

	if (!i)
		return -ENOENT;
	return result(removexattr(proc_path(i).text, name));
}

static int h_fsync(void *fs, inum_t ino)
{
	return 0;
}

static int h_sync(void *fs)
{
	return 0;
}

static const struct fsapi_ops fsapi_host = {
	.name = "host",
	.lookup = h_lookup,
	.getattr = h_getattr,
	.setattr = h_setattr,
	.create = h_create,
	.symlink = h_symlink,
	.readlink = h_readlink,
	.link = h_link,
	.unlink = h_unlink,
	.rmdir = h_rmdir,
	.rename = h_rename,
	.reap = h_reap,
	.read = h_read,
	.write = h_write,
	.fallocate = h_fallocate,
	.lseek = h_lseek,
	.readdir = h_readdir,
	.getxattr = h_getxattr,
	.setxattr = h_setxattr,
	.listxattr = h_listxattr,
	.removexattr = h_removexattr,
	.fsync = h_fsync,
	.sync = h_sync,
};

/* The test. */

static const struct workload_params params = {
	.max_inodes = 300,
	.max_blocks = 4096,
	.max_folder = 200,
	.max_offset = 1ull << 40,
	.max_write = 300000,
	.max_xattr = 200, /* ext4 has 4 KiB for all of them */
	.xattr_names = 8,
	.trusted_only = true,
	.wrong_inodes = true,
};

static int skip(const char *why)
{
	printf("skipped: %s\n", why);
	return EXIT_SKIPPED;
}

/* The host's own choices are not asked for. */
static bool of_interest(const struct op *op)
{
	return op->kind != OP_LSEEK;
}

static void fit_to_host(struct op *op)
{
	if (op->kind == OP_WRITE)
		op->flags = 0;
	op->what &= ~(unsigned int)(VOLUME_SET_CTIME | VOLUME_KILL_SUIDGID);
}

static bool chmod_of_link(const struct refmodel *m, const struct op *op)
{
	return op->kind == OP_SETATTR && op->what & VOLUME_SET_MODE &&
	       refmodel_exists(m, op->ino) &&
	       S_ISLNK(refmodel_attr(m, op->ino)->mode);
}

static bool run(struct lockstep *l, uint64_t seed, uint64_t steps,
		unsigned int seconds)
{
	time_t end = time(NULL) + seconds;
	struct workload w;
	struct op op;

	workload_init(&w, &params, seed);
	while (steps ? l->step < steps : time(NULL) < end) {
		workload_next(&w, l->m, &op);
		fit_to_host(&op);
		if (!of_interest(&op) || chmod_of_link(l->m, &op))
			continue;
		if (!lockstep_do(l, &op))
			return false;
		if (l->step % 500 == 0 &&
		    !lockstep_compare(l, SNAP_TIMES | SNAP_ATIME))
			return false;
	}
	return lockstep_compare(l, SNAP_TIMES | SNAP_ATIME);
}

static bool start_host(struct host *h, struct attr *root)
{
	const char *tmp = getenv("TMPDIR");
	struct stat st;
	int fd;

	snprintf(h->dir, sizeof(h->dir), "%s/tuskfs-host-XXXXXX",
		 tmp ? tmp : "/tmp");
	if (!mkdtemp(h->dir) || stat(h->dir, &st) < 0)
		return false;
	h->root = st.st_ino;
	fd = open(h->dir, O_PATH | O_DIRECTORY);
	before_op(h);
	return fd >= 0 && !hold(h, fd, ".", root) && !close(fd);
}

static void end_host(struct host *h)
{
	char command[4200];

	for (size_t i = 0; i < h->nr; i++)
		close(h->inode[i].fd);
	free(h->inode);
	snprintf(command, sizeof(command), "rm -rf '%s'", h->dir);
	if (system(command))
		fprintf(stderr, "%s stays\n", h->dir);
}

/* Whether the host's file system can do what the test asks of it. */
static bool host_is_able(struct host *h)
{
	char path[4200];
	bool able;
	int fd;

	snprintf(path, sizeof(path), "%s/able", h->dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	able = fd >= 0 && !fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096) &&
	       !fsetxattr(fd, "trusted.able", "", 0, 0);
	close(fd);
	unlink(path);
	return able;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	struct rlimit files = { 4096, 4096 };
	uint64_t seed = (uint64_t)time(NULL), steps = 0;
	unsigned int seconds = 8;
	struct host h = { 0 };
	struct lockstep l;
	struct attr root;
	bool verbose = false, ok;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			steps = strtoull(optarg, NULL, 0);
		else if (c == 't')
			seconds = (unsigned int)strtoul(optarg, NULL, 0);
		else if (c == 'v')
			verbose = true;
		else
			return 2;
	}
	if (geteuid())
		return skip("needs root");
	umask(0);
	setrlimit(RLIMIT_NOFILE, &files);
	if (!start_host(&h, &root) || !host_is_able(&h)) {
		end_host(&h);
		return skip("the host's file system cannot do what we need");
	}
	if (h_getattr(&h, VOLUME_ROOT, &root))
		return 1;
	lockstep_init(&l, refmodel_new(&root, testclock_now),
		      &(struct fsapi){ &fsapi_host, &h });
	l.flags = OP_COMPARE_TIMES | OP_COMPARE_ATIME;
	l.verbose = verbose;
	l.before = before_op;
	l.before_arg = &h;
	ok = run(&l, seed, steps, seconds);
	if (!ok)
		fprintf(stderr,
			"repeat: host-test --seed %" PRIu64 " --steps %" PRIu64
			"\n",
			seed, l.step);
	lockstep_print_counts(&l);
	printf("%" PRIu64 " passed, %d failed\n", l.step - !ok, !ok);
	lockstep_destroy(&l);
	end_host(&h);
	return !ok;
}
