/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Every operation with every read of a node failing once, in a cache of eight
 * nodes, and with every allocation of memory failing once: what fails has
 * changed nothing, what does not is whole, and no promise outlives its
 * operation.
 *
 * Linked so that allocations can be made to fail; the emulated disk's do not.
 */
#include "unitvol.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/xattr.h>

#include "fs/container.h"
#include "tests/support/rng.h"

/* Allocations until one fails; 0: none does. */
static _Thread_local uint64_t countdown;
static _Thread_local bool failed;

static bool fails(void)
{
	if (!countdown || --countdown)
		return false;
	failed = true;
	return true;
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t nr, size_t n);
void *__wrap_calloc(size_t nr, size_t n);
void *__real_reallocarray(void *p, size_t nr, size_t n);
void *__wrap_reallocarray(void *p, size_t nr, size_t n);

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t nr, size_t n)
{
	return fails() ? NULL : __real_calloc(nr, n);
}

void *__wrap_reallocarray(void *p, size_t nr, size_t n)
{
	return fails() ? NULL : __real_reallocarray(p, nr, n);
}

/* The emulated disk aborts for want of memory: it always gets some. */
static const struct container_ops *disk_ops;

static int spared_read(struct container *c, uint64_t offset, size_t len,
		       void *buf)
{
	uint64_t left = countdown;
	int err;

	countdown = 0;
	err = disk_ops->read(c, offset, len, buf);
	countdown = left;
	return err;
}

static int spared_write(struct container *c, uint64_t offset, size_t len,
			const void *buf)
{
	uint64_t left = countdown;
	int err;

	countdown = 0;
	err = disk_ops->write(c, offset, len, buf);
	countdown = left;
	return err;
}

static int spared_flush(struct container *c)
{
	uint64_t left = countdown;
	int err;

	countdown = 0;
	err = disk_ops->flush(c);
	countdown = left;
	return err;
}

static int spared_back(struct container *c, uint64_t offset, uint64_t len)
{
	uint64_t left = countdown;
	int err;

	countdown = 0;
	err = disk_ops->back(c, offset, len);
	countdown = left;
	return err;
}

static void spare_the_disk(struct container *c)
{
	static struct container_ops spared;

	disk_ops = c->ops;
	spared = *c->ops;
	spared.read = spared_read;
	spared.write = spared_write;
	spared.flush = spared_flush;
	spared.back = spared_back;
	c->ops = &spared;
}

static struct unitvol t;
static inum_t a, b, dir, sub;

#define NR_FILES 30u

static void start_faults(void)
{
	static const uint8_t value[3000] = { 1, 2, 3 };
	char name[40];

	unitvol_start(&t, 4, true);
	dir = unitvol_make(&t, VOLUME_ROOT, "dir", S_IFDIR | 0755);
	for (unsigned int i = 0; i < NR_FILES; i++) {
		snprintf(name, sizeof(name), "a name of some length %u", i);
		unitvol_make(&t, i % 2 ? dir : VOLUME_ROOT, name,
			     S_IFREG | 0644);
	}
	a = unitvol_file(&t, "a");
	b = unitvol_make(&t, dir, "b", S_IFREG | 0600);
	sub = unitvol_make(&t, dir, "sub", S_IFDIR | 0700);
	for (unsigned int i = 0; i < 12; i++) {
		unitvol_write(&t, a, 2 * i, 1, (uint8_t)(i + 1));
		unitvol_write(&t, b, 3 * i, 1, (uint8_t)(i + 1));
	}
	must(volume_setxattr(t.v, a, "user.x", value, sizeof(value), 0));
	must(volume_setxattr(t.v, b, "user.y", value, 10, 0));
	unitvol_close(&t);
	t.o.cache_bytes = 1;
}

static void end_faults(void)
{
	unitvol_end(&t);
}

TestSuite(faults, .init = start_faults, .fini = end_faults, .timeout = 100);

/* ---- all that can be seen, as one number */

struct seen {
	uint64_t hash;
	inum_t inum[80];
	unsigned int nr;
};

static bool see(void *arg, const struct volume_dirent *e)
{
	struct seen *s = arg;

	s->hash = rng_hash(s->hash, e->name, e->name_len);
	s->hash = rng_hash(s->hash, &e->ino, sizeof(e->ino));
	if (e->cookie >= 256)
		s->inum[s->nr++] = e->ino;
	return true;
}

static void see_inode(struct seen *s, inum_t inum)
{
	static uint8_t buf[64 * BLOCK_BYTES];
	char list[256];
	struct attr at;
	size_t nr;

	must(volume_getattr(t.v, inum, &at));
	s->hash = rng_hash(s->hash, &at.mode, sizeof(at.mode));
	s->hash = rng_hash(s->hash, &at.nlink, sizeof(at.nlink));
	s->hash = rng_hash(s->hash, &at.size, sizeof(at.size));
	s->hash = rng_hash(s->hash, &at.blocks, sizeof(at.blocks));
	s->hash = rng_hash(s->hash, &at.mtime, sizeof(at.mtime));
	s->hash = rng_hash(s->hash, &at.ctime, sizeof(at.ctime));
	if (S_ISREG(at.mode)) {
		must(volume_read(t.v, inum, 0, sizeof(buf), buf, &nr));
		s->hash = rng_hash(s->hash, buf, nr);
	}
	must(volume_listxattr(t.v, inum, list, sizeof(list), &nr));
	s->hash = rng_hash(s->hash, list, nr);
	for (size_t i = 0; i < nr; i += strlen(list + i) + 1) {
		size_t len;

		must(volume_getxattr(t.v, inum, list + i, buf, sizeof(buf),
				     &len));
		s->hash = rng_hash(s->hash, buf, len);
	}
}

static uint64_t all_there_is(void)
{
	struct seen s = { 0 };

	must(volume_readdir(t.v, VOLUME_ROOT, 0, 0, see, &s));
	must(volume_readdir(t.v, dir, 0, 0, see, &s));
	must(volume_readdir(t.v, sub, 0, 0, see, &s));
	see_inode(&s, VOLUME_ROOT);
	for (unsigned int i = 0; i < s.nr; i++)
		see_inode(&s, s.inum[i]);
	return s.hash;
}

/* ---- the operations */

static struct attr out;

static int do_create(void)
{
	return volume_create(t.v, dir, "new", S_IFREG | 0600, 0, &unitvol_cred,
			     &out);
}

static int do_mkdir(void)
{
	return volume_create(t.v, sub, "new", S_IFDIR | 0700, 0, &unitvol_cred,
			     &out);
}

static int do_symlink(void)
{
	char target[4000];

	memset(target, 't', sizeof(target));
	target[sizeof(target) - 1] = '\0';
	return volume_symlink(t.v, VOLUME_ROOT, "new", target, &unitvol_cred,
			      &out);
}

static int do_link(void)
{
	return volume_link(t.v, a, dir, "hard", &out);
}

static int do_unlink(void)
{
	return volume_unlink(t.v, dir, "b", NULL);
}

static int do_rmdir(void)
{
	return volume_rmdir(t.v, dir, "sub", NULL);
}

static int do_rename(void)
{
	return volume_rename(t.v, VOLUME_ROOT, "a", dir, "c", 0, NULL);
}

static int do_rename_over(void)
{
	return volume_rename(t.v, VOLUME_ROOT, "a", dir, "b", 0, NULL);
}

static int do_exchange(void)
{
	return volume_rename(t.v, VOLUME_ROOT, "a", dir, "sub", RENAME_EXCHANGE,
			     NULL);
}

static int do_whiteout(void)
{
	return volume_rename(t.v, dir, "b", VOLUME_ROOT, "c", RENAME_WHITEOUT,
			     NULL);
}

static int do_chmod(void)
{
	struct attr in = { .mode = 0123 };

	return volume_setattr(t.v, b, VOLUME_SET_MODE, &in, &out);
}

static int do_grow(void)
{
	struct attr in = { .size = 100 * BLOCK_BYTES };

	return volume_setattr(t.v, a, VOLUME_SET_SIZE, &in, &out);
}

static int do_append(void)
{
	static const uint8_t data[3 * BLOCK_BYTES] = { 1 };

	return volume_write(t.v, a, 23 * BLOCK_BYTES, sizeof(data), data, 0);
}

static int do_overwrite(void)
{
	static const uint8_t data[8 * BLOCK_BYTES] = { 1 };

	return volume_write(t.v, a, 4 * BLOCK_BYTES, sizeof(data), data, 0);
}

static int do_overwrite_in_blocks(void)
{
	return volume_write(t.v, b, 3 * BLOCK_BYTES - 5, 10, "0123456789", 0);
}

static int do_setxattr(void)
{
	static const uint8_t value[5000] = { 9 };

	return volume_setxattr(t.v, a, "user.new", value, sizeof(value), 0);
}

static int do_replace_xattr(void)
{
	return volume_setxattr(t.v, a, "user.x", "v", 1, XATTR_REPLACE);
}

static int do_removexattr(void)
{
	return volume_removexattr(t.v, a, "user.x");
}

static int do_allocate(void)
{
	return volume_fallocate(t.v, a, FALLOC_FL_KEEP_SIZE, 30 * BLOCK_BYTES,
				5 * BLOCK_BYTES);
}

static const struct operation {
	const char *name;
	int (*run)(void);
} operations[] = {
	{ "create", do_create },
	{ "mkdir", do_mkdir },
	{ "symlink", do_symlink },
	{ "link", do_link },
	{ "unlink", do_unlink },
	{ "rmdir", do_rmdir },
	{ "rename", do_rename },
	{ "rename over", do_rename_over },
	{ "exchange", do_exchange },
	{ "whiteout", do_whiteout },
	{ "chmod", do_chmod },
	{ "grow", do_grow },
	{ "append", do_append },
	{ "overwrite", do_overwrite },
	{ "overwrite in blocks", do_overwrite_in_blocks },
	{ "setxattr", do_setxattr },
	{ "replace xattr", do_replace_xattr },
	{ "removexattr", do_removexattr },
	{ "allocate", do_allocate },
};

/* Nothing is promised to anybody. */
static void no_promises(const char *name)
{
	vol_lock(t.v);
	cr_assert_eq(t.v->promised_nodes, 0, "%s", name);
	cr_assert_eq(t.v->promised_blocks, 0, "%s", name);
	cr_assert_eq(t.v->store.nr_promised, 0, "%s", name);
	cr_assert(TAILQ_EMPTY(&t.v->space.readers), "%s", name);
	cr_assert(LIST_EMPTY(&t.v->store.loads), "%s", name);
	vol_unlock(t.v);
}

static int run_with_bad_read(const struct operation *o, unsigned int nth,
			     bool *met)
{
	uint64_t calls = emudev_nr_calls(t.d, EMUDEV_OP_READ);
	int err;

	emudev_fail(t.d, EMUDEV_OP_READ, nth, 1, -EIO);
	err = o->run();
	emudev_fail(t.d, EMUDEV_OP_READ, UINT64_MAX, 1, -EIO);
	*met = emudev_nr_calls(t.d, EMUDEV_OP_READ) - calls >= nth;
	cr_assert_eq(err, *met ? -EIO : 0, "%s, read %u", o->name, nth);
	return err;
}

static int run_without_memory(const struct operation *o, unsigned int nth,
			      bool *met)
{
	const struct container_ops *before = t.v->c->ops;
	int err;

	spare_the_disk(t.v->c);
	failed = false;
	countdown = nth;
	err = o->run();
	countdown = 0;
	t.v->c->ops = before;
	*met = failed;
	/* Not all memory is really needed. */
	cr_assert(!err || (failed && err == -ENOMEM), "%s, allocation %u: %d",
		  o->name, nth, err);
	return err;
}

typedef int run_fn(const struct operation *o, unsigned int nth, bool *met);

/* False when the operation met no fault any more. */
static bool run_with_fault(const struct operation *o, unsigned int nth,
			   uint64_t before, run_fn *run)
{
	bool met;
	int err;

	unitvol_open(&t);
	err = run(o, nth, &met);
	no_promises(o->name);
	cr_assert(!volume_is_read_only(t.v), "%s, %u", o->name, nth);
	if (err)
		cr_assert_eq(all_there_is(), before, "%s, %u: changed", o->name,
			     nth);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
	if (err) {
		unitvol_open(&t);
		cr_assert_eq(all_there_is(), before, "%s, %u: changed", o->name,
			     nth);
		unitvol_abandon(&t);
	}
	return met;
}

static void run_all(size_t first, size_t end, run_fn *run)
{
	struct emudev *made = t.d;
	uint64_t before;

	unitvol_open(&t);
	before = all_there_is();
	unitvol_abandon(&t);
	for (size_t i = first; i < end; i++) {
		bool met = true;

		/* Each of the first, then some of many. */
		for (unsigned int nth = 1; met; nth += 1 + nth / 4) {
			t.d = emudev_clone(made);
			met = run_with_fault(&operations[i], nth, before, run);
			cr_assert(met || nth > 2, "%s", operations[i].name);
			emudev_free(t.d);
		}
	}
	t.d = made;
}

#define NR_OPERATIONS (sizeof(operations) / sizeof(*operations))

Test(faults, names_with_bad_reads)
{
	run_all(0, 10, run_with_bad_read);
}

Test(faults, content_with_bad_reads)
{
	run_all(10, NR_OPERATIONS, run_with_bad_read);
}

Test(faults, names_without_memory)
{
	run_all(0, 10, run_without_memory);
}

Test(faults, content_without_memory)
{
	run_all(10, NR_OPERATIONS, run_without_memory);
}

/* Looking must not change anything either, nor keep anything. */
static bool emit(void *arg, const struct volume_dirent *e)
{
	return true;
}

Test(faults, looking)
{
	char buf[4096], list[256];
	uint64_t at;
	size_t nr;

	for (unsigned int nth = 1; nth < 60; nth++) {
		unitvol_open(&t);
		emudev_fail(t.d, EMUDEV_OP_READ, nth, 1, -EIO);
		int err[] = {
			volume_lookup(t.v, dir, "b", &out),
			volume_getattr(t.v, sub, &out),
			volume_read(t.v, b, 6 * BLOCK_BYTES, sizeof(buf), buf,
				    &nr),
			volume_readdir(t.v, dir, 0, VOLUME_READDIR_ATTR, emit,
				       NULL),
			volume_listxattr(t.v, a, list, sizeof(list), &nr),
			volume_getxattr(t.v, a, "user.x", buf, sizeof(buf),
					&nr),
			volume_lseek(t.v, a, 8 * BLOCK_BYTES, SEEK_HOLE, &at),
		};
		unsigned int bad = 0;

		emudev_fail(t.d, EMUDEV_OP_READ, UINT64_MAX, 1, -EIO);
		for (size_t i = 0; i < sizeof(err) / sizeof(*err); i++) {
			cr_assert(!err[i] || err[i] == -EIO);
			bad += err[i] != 0;
		}
		cr_assert_leq(bad, 1);
		no_promises("looking");
		unitvol_abandon(&t);
	}
}

/* Without space as well. */
Test(faults, no_space_changes_nothing)
{
	static const uint8_t data[64 * BLOCK_BYTES];
	static const char full[] = "full";
	uint64_t before;
	int err = 0;

	emudev_set_host_limit(t.d, DISK_BYTES);
	unitvol_open(&t);
	for (uint64_t at = 1000; !err; at += 64)
		err = volume_write(t.v, a, at * BLOCK_BYTES, sizeof(data), data,
				   0);
	for (uint64_t at = 200000; err != -ENOSPC || at < 200002; at++)
		err = volume_write(t.v, a, at * BLOCK_BYTES, BLOCK_BYTES, data,
				   0);
	no_promises(full);
	before = all_there_is();
	cr_assert_eq(volume_write(t.v, b, 500 * BLOCK_BYTES, sizeof(data), data,
				  0),
		     -ENOSPC);
	cr_assert_eq(volume_fallocate(t.v, b, 0, 0, 90000 * BLOCK_BYTES),
		     -ENOSPC);
	no_promises(full);
	cr_assert_eq(all_there_is(), before);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
}
