/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Choosing random operations.  Sizes and offsets gather around the edges where
 * mistakes live: cipher blocks, sectors, blocks, and the 64-block windows of
 * extents.
 */
#include "tests/support/workload.h"

#include <inttypes.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/support/refdata.h"

const char *const op_name[OP_NR] = {
#define OP(name, grow, churn, shrink, folder) #name,
	OP_LIST(OP)
#undef OP
};

static const unsigned int weight[PHASE_NR][OP_NR] = {
#define OP(name, grow, churn, shrink, folder) grow,
	[PHASE_GROW] = { OP_LIST(OP) },
#undef OP
#define OP(name, grow, churn, shrink, folder) churn,
	[PHASE_CHURN] = { OP_LIST(OP) },
#undef OP
#define OP(name, grow, churn, shrink, folder) shrink,
	[PHASE_SHRINK] = { OP_LIST(OP) },
#undef OP
#define OP(name, grow, churn, shrink, folder) folder,
	[PHASE_FOLDER] = { OP_LIST(OP) },
#undef OP
};

const struct workload_params workload_default = {
	.max_inodes = 600,
	.max_blocks = 4096,
	.max_folder = 400,
	.max_offset = 1ull << 62,
	.max_write = 300000,
	.max_xattr = XATTR_BYTES_MAX,
	.xattr_names = 12,
	.wrong_inodes = true,
	.odd_times = true,
};

void workload_init(struct workload *w, const struct workload_params *p,
		   uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->rng.state = seed;
	w->params = p;
	w->folder = VOLUME_ROOT;
	workload_phase(w, PHASE_GROW, 300);
}

void workload_phase(struct workload *w, enum workload_phase phase,
		    unsigned int nr_ops)
{
	w->phase = phase;
	w->phase_left = nr_ops;
}

static void next_phase(struct workload *w, const struct refmodel *m)
{
	bool full = refmodel_nr_inodes(m) > w->params->max_inodes ||
		    refmodel_nr_blocks(m) > w->params->max_blocks;

	if (full && w->phase != PHASE_SHRINK)
		workload_phase(w, PHASE_SHRINK, 100 + rng_below(&w->rng, 500));
	if (w->phase_left) {
		w->phase_left--;
		return;
	}
	workload_phase(w, rng_below(&w->rng, PHASE_FOLDER),
		       50 + rng_below(&w->rng, 400));
	if (rng_one_in(&w->rng, 6))
		workload_phase(w, PHASE_FOLDER, w->params->max_folder);
}

static enum op_kind choose_kind(struct workload *w)
{
	const unsigned int *row = weight[w->phase];
	uint64_t sum = 0, at;

	for (int i = 0; i < OP_NR; i++)
		sum += row[i];
	at = rng_below(&w->rng, sum);
	for (int i = 0; i < OP_NR; i++) {
		if (at < row[i])
			return i;
		at -= row[i];
	}
	return OP_GETATTR;
}

/* Which inode. */

static bool is_any(const struct attr *a)
{
	return true;
}

static bool is_file(const struct attr *a)
{
	return S_ISREG(a->mode);
}

static bool is_link(const struct attr *a)
{
	return S_ISLNK(a->mode);
}

static bool is_live_dir(const struct attr *a)
{
	return S_ISDIR(a->mode) && a->nlink;
}

static bool is_dir(const struct attr *a)
{
	return S_ISDIR(a->mode);
}

static bool is_orphan(const struct attr *a)
{
	return !a->nlink;
}

/* An inode that @fits, from a random place on; 0: there is none. */
static inum_t pick(struct workload *w, const struct refmodel *m,
		   bool (*fits)(const struct attr *a))
{
	inum_t end = refmodel_inum_end(m);
	inum_t start = rng_below(&w->rng, end);

	for (inum_t i = 0; i < end; i++) {
		inum_t ino = (start + i) % end;

		if (refmodel_exists(m, ino) && fits(refmodel_attr(m, ino)))
			return ino;
	}
	return 0;
}

static inum_t pick_or_wrong(struct workload *w, const struct refmodel *m,
			    bool (*fits)(const struct attr *a))
{
	if (w->params->wrong_inodes && rng_one_in(&w->rng, 500))
		return refmodel_inum_end(m) + rng_below(&w->rng, 1000);
	return pick(w, m, fits);
}

static inum_t pick_dir(struct workload *w, const struct refmodel *m)
{
	if (w->phase == PHASE_FOLDER && refmodel_exists(m, w->folder) &&
	    !rng_one_in(&w->rng, 20))
		return w->folder;
	if (rng_one_in(&w->rng, 200))
		return pick_or_wrong(w, m, is_any);
	if (rng_one_in(&w->rng, 50))
		return pick(w, m, is_dir);
	return rng_one_in(&w->rng, 3) ? VOLUME_ROOT : pick(w, m, is_live_dir);
}

/* Which name. */

/* Names that look alike, or that careless code takes for something else. */
static const char *const strange_names[] = {
	"caf\xc3\xa9", "cafe\xcc\x81", "caf\xe9", "\x01",  "\n", " ",
	"a ",	       "-rf",	       "*",	  "...",   "A",	 "a\xff",
	"\xff",	       "\\",	       "%s",	  "stats", ".a",
};

static void hostile_name(struct workload *w, char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		do
			name[i] = (char)(1 + rng_below(&w->rng, 255));
		while (name[i] == '/');
	}
	name[len] = '\0';
	/* "." and ".." are no names. */
	if (name[0] == '.')
		name[0] = '_';
}

static void new_name(struct workload *w, char *name)
{
	uint64_t nr_strange = sizeof(strange_names) / sizeof(*strange_names);

	if (w->phase == PHASE_FOLDER) {
		sprintf(name, "entry-%06u", w->serial++);
		return;
	}
	switch (rng_below(&w->rng, 40)) {
	case 0:
		memset(name, 'n', NAME_BYTES_MAX + 1);
		name[NAME_BYTES_MAX + 1] = '\0';
		break;
	case 1:
		hostile_name(w, name, NAME_BYTES_MAX);
		break;
	case 2 ... 3:
		hostile_name(w, name, 100 + rng_below(&w->rng, 155));
		break;
	case 4 ... 6:
		hostile_name(w, name, 1 + rng_below(&w->rng, 3));
		break;
	case 7 ... 10:
		strcpy(name, strange_names[rng_below(&w->rng, nr_strange)]);
		break;
	case 11 ... 20:
		sprintf(name, "name-%06u", w->serial++);
		break;
	default:
		name[0] = (char)('a' + rng_below(&w->rng, 26));
		name[1] = '\0';
	}
}

/* A name that is in @dir, but for a few and where there are none. */
static void old_name(struct workload *w, const struct refmodel *m, inum_t dir,
		     char *name)
{
	size_t nr = 0;

	if (refmodel_exists(m, dir))
		nr = refmodel_nr_entries(m, dir);
	if (!nr || rng_one_in(&w->rng, 25))
		new_name(w, name);
	else
		strcpy(name,
		       refmodel_entry(m, dir, rng_below(&w->rng, nr), NULL));
}

/* A folder that has names, if a few tries find one. */
static inum_t pick_full_dir(struct workload *w, const struct refmodel *m)
{
	inum_t dir = 0;

	for (int i = 0; i < 4; i++) {
		dir = pick_dir(w, m);
		if (refmodel_exists(m, dir) && refmodel_nr_entries(m, dir))
			break;
	}
	return dir;
}

/* Which place. */

static const uint64_t edges[] = {
	0,     1,      15,     16,     17,     511,	512,
	513,   4095,   4096,   4097,   8192,   65535,	65536,
	65537, 262143, 262144, 262145, 524288, 1048576,
};

static uint64_t edge(struct workload *w)
{
	uint64_t at = edges[rng_below(&w->rng, sizeof(edges) / sizeof(*edges))];

	if (rng_one_in(&w->rng, 3))
		at += rng_below(&w->rng, 9);
	return at;
}

static uint64_t far_offset(struct workload *w)
{
	uint64_t at = 1ull << (20 + rng_below(&w->rng, 43));

	at += rng_below(&w->rng, 3) * 4096 + edge(w);
	return at < w->params->max_offset ? at : w->params->max_offset;
}

/* An offset for a file of @size bytes. */
static uint64_t any_offset(struct workload *w, uint64_t size)
{
	switch (rng_below(&w->rng, 10)) {
	case 0 ... 3:
		return edge(w);
	case 4 ... 5:
		return size < w->params->max_offset ? size : edge(w);
	case 6 ... 7:
		return size ? rng_below(&w->rng, size) : 0;
	case 8:
		return size > 8192 ? size - rng_below(&w->rng, 8192) : size;
	default:
		return rng_one_in(&w->rng, 8) ? far_offset(w)
					      : rng_below(&w->rng, 1u << 19);
	}
}

static uint64_t any_len(struct workload *w)
{
	uint64_t len;

	switch (rng_below(&w->rng, 8)) {
	case 0 ... 2:
		len = 1 + rng_below(&w->rng, 5000);
		break;
	case 3:
		len = (1 + rng_below(&w->rng, 16)) * 4096;
		break;
	case 4:
		len = 1 + rng_below(&w->rng, w->params->max_write);
		break;
	default:
		len = edge(w);
	}
	return len < w->params->max_write ? len : w->params->max_write;
}

static void choose_range(struct workload *w, const struct refmodel *m,
			 struct op *op)
{
	uint64_t size = 0;

	op->ino = pick_or_wrong(w, m, is_file);
	if (refmodel_exists(m, op->ino))
		size = refmodel_data(m, op->ino)->size;
	op->offset = any_offset(w, size);
	op->len = any_len(w);
	/* Past the largest size, rarely: -EFBIG. */
	if (w->params->max_offset >= 1ull << 62 && rng_one_in(&w->rng, 300))
		op->offset = FILE_BYTES_MAX - rng_below(&w->rng, 3);
}

/* The rest of each kind. */

static void choose_cred(struct workload *w, struct op *op)
{
	static const uint32_t ids[] = { 0, 1000, 1001, 65534, 0xfffffffe };

	op->cred.uid = ids[rng_below(&w->rng, 5)];
	op->cred.gid = ids[rng_below(&w->rng, 5)];
}

static void choose_create(struct workload *w, const struct refmodel *m,
			  struct op *op, uint32_t type)
{
	op->dir = pick_dir(w, m);
	if (rng_one_in(&w->rng, 15))
		old_name(w, m, op->dir, op->name);
	else
		new_name(w, op->name);
	op->set.mode = type | (uint32_t)rng_below(&w->rng, 010000);
	if (!rng_one_in(&w->rng, 3))
		op->set.mode = type | 0755;
	choose_cred(w, op);
}

static void choose_mknod(struct workload *w, const struct refmodel *m,
			 struct op *op)
{
	static const uint32_t types[] = { S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK };

	choose_create(w, m, op, types[rng_below(&w->rng, 4)]);
	op->set.rdev =
		makedev(rng_below(&w->rng, 300), rng_below(&w->rng, 70000));
}

static void choose_link(struct workload *w, const struct refmodel *m,
			struct op *op)
{
	op->ino = rng_one_in(&w->rng, 20) ? pick(w, m, is_any)
					  : pick_or_wrong(w, m, is_file);
	op->dir = pick_dir(w, m);
	new_name(w, op->name);
}

static void choose_rename(struct workload *w, const struct refmodel *m,
			  struct op *op)
{
	static const unsigned int flags[] = {
		0,
		0,
		0,
		0,
		RENAME_NOREPLACE,
		RENAME_EXCHANGE,
		RENAME_EXCHANGE,
		RENAME_WHITEOUT,
		RENAME_WHITEOUT | RENAME_NOREPLACE,
	};

	op->dir = pick_full_dir(w, m);
	old_name(w, m, op->dir, op->name);
	op->new_dir = rng_one_in(&w->rng, 3) ? op->dir : pick_full_dir(w, m);
	op->flags = flags[rng_below(&w->rng, 9)];
	if (op->flags & RENAME_EXCHANGE || rng_one_in(&w->rng, 2))
		old_name(w, m, op->new_dir, op->new_name);
	else
		new_name(w, op->new_name);
	if (rng_one_in(&w->rng, 400))
		op->flags = RENAME_EXCHANGE | RENAME_NOREPLACE;
}

static void choose_write(struct workload *w, const struct refmodel *m,
			 struct op *op)
{
	choose_range(w, m, op);
	op->pattern = rng_next(&w->rng);
	if (!w->params->no_zeros && rng_one_in(&w->rng, 8))
		op->pattern = 0;
	if (rng_one_in(&w->rng, 8))
		op->flags |= VOLUME_WRITE_KILL_SUIDGID;
}

static void choose_truncate(struct workload *w, const struct refmodel *m,
			    struct op *op)
{
	choose_range(w, m, op);
	if (rng_one_in(&w->rng, 50))
		op->ino = pick(w, m, is_any);
	op->what = VOLUME_SET_SIZE;
	op->set.size = op->offset;
	if (w->params->max_offset >= 1ull << 62 && rng_one_in(&w->rng, 200))
		op->set.size = FILE_BYTES_MAX + rng_below(&w->rng, 2);
	if (rng_one_in(&w->rng, 5))
		op->what |= VOLUME_KILL_SUIDGID;
}

static struct timespec any_time(struct workload *w)
{
	struct timespec ts = { .tv_nsec = rng_below(&w->rng, 1000000000) };

	switch (rng_below(&w->rng, w->params->odd_times ? 6 : 3)) {
	case 0 ... 2:
		ts.tv_sec = (time_t)rng_below(&w->rng, 1u << 30);
		break;
	case 3:
		ts.tv_sec = -(time_t)rng_below(&w->rng, 1ull << 40);
		break;
	case 4:
		ts.tv_sec = rng_one_in(&w->rng, 2) ? INT64_MAX : INT64_MIN;
		break;
	default:
		ts.tv_sec = (time_t)rng_next(&w->rng);
	}
	return ts;
}

static void choose_setattr(struct workload *w, const struct refmodel *m,
			   struct op *op)
{
	op->ino = pick_or_wrong(w, m, is_any);
	op->what = (unsigned int)rng_below(&w->rng, VOLUME_KILL_SUIDGID << 1);
	if (rng_one_in(&w->rng, 2))
		op->what &= (unsigned int)rng_next(&w->rng);
	op->what &= ~(unsigned int)VOLUME_SET_SIZE;
	/* Both "now" and a value, or a mode and its loss, mean nothing. */
	if (op->what & VOLUME_SET_ATIME_NOW)
		op->what &= ~(unsigned int)VOLUME_SET_ATIME;
	if (op->what & VOLUME_SET_MTIME_NOW)
		op->what &= ~(unsigned int)VOLUME_SET_MTIME;
	if (op->what & VOLUME_SET_MODE)
		op->what &= ~(unsigned int)VOLUME_KILL_SUIDGID;
	op->set.mode = (uint32_t)rng_below(&w->rng, 010000);
	choose_cred(w, op);
	op->set.uid = op->cred.uid;
	op->set.gid = op->cred.gid;
	op->set.atime = any_time(w);
	op->set.mtime = any_time(w);
	op->set.ctime = any_time(w);
}

static void choose_fallocate(struct workload *w, const struct refmodel *m,
			     struct op *op)
{
	static const int modes[] = {
		0,
		FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
	};

	choose_range(w, m, op);
	op->mode = modes[rng_below(&w->rng, 6)];
	if (rng_one_in(&w->rng, 200))
		op->mode = FALLOC_FL_COLLAPSE_RANGE;
	if (rng_one_in(&w->rng, 200))
		op->len = 0;
}

static void choose_xattr(struct workload *w, const struct refmodel *m,
			 struct op *op)
{
	static const char *const space[] = { "trusted.", "user.", "security.",
					     "any." };
	uint64_t k = w->params->trusted_only ? 0 : rng_below(&w->rng, 4);
	static const int flags[] = { 0, 0, 0, XATTR_CREATE, XATTR_REPLACE };

	op->ino = pick_or_wrong(w, m, is_any);
	sprintf(op->name, "%sx%" PRIu64, space[k],
		rng_below(&w->rng, w->params->xattr_names));
	if (!w->params->trusted_only && rng_one_in(&w->rng, 10))
		memset(op->name + strlen(op->name), 'x',
		       NAME_BYTES_MAX - strlen(op->name));
	if (refmodel_exists(m, op->ino) && rng_one_in(&w->rng, 2)) {
		size_t nr = refmodel_nr_xattrs(m, op->ino);

		if (nr)
			strcpy(op->name,
			       refmodel_xattr_name(m, op->ino,
						   rng_below(&w->rng, nr)));
	}
	op->flags = (unsigned int)flags[rng_below(&w->rng, 5)];
	op->pattern = rng_next(&w->rng);
	op->len = rng_below(&w->rng, 100);
	if (rng_one_in(&w->rng, 3))
		op->len = edge(w);
	if (op->len > w->params->max_xattr)
		op->len = w->params->max_xattr;
	if (w->params->max_xattr == XATTR_BYTES_MAX && rng_one_in(&w->rng, 50))
		op->len = XATTR_BYTES_MAX + rng_below(&w->rng, 2);
}

static void choose_names(struct workload *w, const struct refmodel *m,
			 struct op *op)
{
	op->dir = pick_full_dir(w, m);
	old_name(w, m, op->dir, op->name);
	if (op->kind == OP_LOOKUP && rng_one_in(&w->rng, 20) &&
	    refmodel_exists(m, op->dir) &&
	    is_live_dir(refmodel_attr(m, op->dir)))
		strcpy(op->name, rng_one_in(&w->rng, 2) ? "." : "..");
}

static void choose_symlink(struct workload *w, const struct refmodel *m,
			   struct op *op)
{
	choose_create(w, m, op, 0);
	op->pattern = rng_next(&w->rng);
	op->len = 1 + rng_below(&w->rng, 80);
	if (rng_one_in(&w->rng, 5))
		op->len = rng_below(&w->rng, SYMLINK_BYTES_MAX + 2);
}

static void choose_inode(struct workload *w, const struct refmodel *m,
			 struct op *op, bool (*fits)(const struct attr *a))
{
	op->ino = pick(w, m, fits);
	if (!op->ino)
		op->ino = pick(w, m, is_any);
}

static void choose_rest(struct workload *w, const struct refmodel *m,
			struct op *op)
{
	switch (op->kind) {
	case OP_CREATE:
		choose_create(w, m, op, S_IFREG);
		break;
	case OP_MKDIR:
		choose_create(w, m, op, S_IFDIR);
		break;
	case OP_MKNOD:
		choose_mknod(w, m, op);
		break;
	case OP_SYMLINK:
		choose_symlink(w, m, op);
		break;
	case OP_LINK:
		choose_link(w, m, op);
		break;
	case OP_UNLINK:
	case OP_RMDIR:
	case OP_LOOKUP:
		choose_names(w, m, op);
		break;
	case OP_RENAME:
		choose_rename(w, m, op);
		break;
	case OP_WRITE:
		choose_write(w, m, op);
		break;
	case OP_READ:
		choose_range(w, m, op);
		break;
	case OP_LSEEK:
		choose_range(w, m, op);
		op->mode = rng_one_in(&w->rng, 2) ? SEEK_DATA : SEEK_HOLE;
		break;
	case OP_TRUNCATE:
		choose_truncate(w, m, op);
		break;
	case OP_SETATTR:
		choose_setattr(w, m, op);
		break;
	case OP_FALLOCATE:
		choose_fallocate(w, m, op);
		break;
	case OP_READLINK:
		choose_inode(w, m, op, is_link);
		break;
	case OP_READDIR:
		choose_inode(w, m, op, is_live_dir);
		op->len = 1 + rng_below(&w->rng, 50);
		break;
	case OP_SETXATTR:
	case OP_GETXATTR:
	case OP_LISTXATTR:
	case OP_REMOVEXATTR:
		choose_xattr(w, m, op);
		break;
	case OP_REAP:
		choose_inode(w, m, op, is_orphan);
		break;
	case OP_GETATTR:
	case OP_FSYNC:
		op->ino = pick_or_wrong(w, m, is_any);
		break;
	case OP_SYNC:
	case OP_NR:
		break;
	}
}

void workload_next(struct workload *w, const struct refmodel *m, struct op *op)
{
	enum workload_phase before = w->phase;

	memset(op, 0, sizeof(*op));
	next_phase(w, m);
	if (w->phase == PHASE_FOLDER && before != PHASE_FOLDER)
		w->folder = pick(w, m, is_live_dir);
	op->kind = choose_kind(w);
	choose_rest(w, m, op);
	/* What needs a file, where there is none, asks for the root. */
	if (!op->ino && !op->dir && op->kind != OP_SYNC) {
		memset(op, 0, sizeof(*op));
		op->kind = OP_GETATTR;
		op->ino = VOLUME_ROOT;
	}
}
