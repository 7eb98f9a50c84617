/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "fs/container.h"
#include "stats/snapshot.h"
#include "stats/stats.h"
#include "support.h"

static char folder[64], path[80];

static void start_folder(void)
{
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/vault.tusk", folder);
}

static void end_folder(void)
{
	remove_folder(folder);
}

TestSuite(container, .init = start_folder, .fini = end_folder);

static struct container *create(uint64_t bytes)
{
	struct container *c;

	cr_assert_eq(container_create(&c, path, CONTAINER_NEW_FILE, bytes), 0);
	return c;
}

static struct container *reopen(enum container_access access)
{
	struct container *c;

	cr_assert_eq(container_open(&c, path, access, 0, NULL), 0);
	return c;
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	cr_assert_eq(stat(name, &st), 0);
	return st;
}

static void fill(uint8_t *buf, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 13 + (i >> 12) + seed);
}

/* Creating */

Test(container, new_file_is_private_and_allocated)
{
	struct container *c;
	struct stat st;

	umask(0);
	c = create(2 * MIB);
	st = stat_of(path);
	cr_assert_eq(st.st_mode & 07777, 0600);
	cr_assert_eq(st.st_size, 2 * MIB);
	cr_assert_geq((uint64_t)st.st_blocks * 512, 2 * MIB);
	cr_assert_eq(container_nr_blocks(c), 512);
	cr_assert(!c->is_device && !c->read_only);
	container_close(c);
}

Test(container, umask_cannot_lock_us_out)
{
	umask(0777);
	container_close(create(MIB));
	cr_assert_eq(stat_of(path).st_mode & 07777, 0600);
}

Test(container, existing_file_is_not_touched)
{
	struct container *c;

	container_close(create(MIB));
	cr_assert_eq(container_create(&c, path, CONTAINER_NEW_FILE, 2 * MIB),
		     -EEXIST);
	cr_assert_null(c);
	cr_assert_eq(stat_of(path).st_size, MIB);
}

Test(container, dangling_symlink_is_not_followed)
{
	struct container *c;

	cr_assert_eq(symlink("elsewhere", path), 0);
	cr_assert_eq(container_create(&c, path, CONTAINER_NEW_FILE, MIB),
		     -EEXIST);
}

Test(container, impossible_sizes_are_refused)
{
	struct container *c;

	cr_assert_eq(container_create(&c, path, CONTAINER_NEW_FILE, 0),
		     -EINVAL);
	cr_assert_eq(container_create(&c, path, CONTAINER_NEW_FILE, 4097),
		     -EINVAL);
	cr_assert_eq(container_create(&c, path, CONTAINER_NEW_FILE, 1ull << 63),
		     -EFBIG);
	cr_assert_eq(access(path, F_OK), -1);
}

static void limit_file_size(uint64_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(container, failed_creation_leaves_no_file)
{
	struct container *c;

	limit_file_size(MIB);
	cr_assert_eq(container_create(&c, path, CONTAINER_NEW_FILE, 2 * MIB),
		     -EFBIG);
	cr_assert_null(c);
	cr_assert_eq(access(path, F_OK), -1);
}

Test(container, creation_in_no_folder)
{
	struct container *c;

	cr_assert_eq(container_create(&c, "/nowhere/x", CONTAINER_NEW_FILE,
				      MIB),
		     -ENOENT);
	cr_assert_eq(container_create(&c, "/nowhere/x", CONTAINER_DEVICE, 0),
		     -ENOENT);
}

Test(container, file_is_never_taken_for_a_device)
{
	struct container *c;

	container_close(create(MIB));
	cr_assert_eq(container_create(&c, path, CONTAINER_DEVICE, 0), -ENOTBLK);
	cr_assert_eq(container_create(&c, path, CONTAINER_OVERWRITE, 0),
		     -ENOTBLK);
}

/* Opening */

Test(container, what_is_no_container_file_is_refused)
{
	struct container *c;
	char fifo[80];

	cr_assert_eq(container_open(&c, path, CONTAINER_READ_ONLY, 0, NULL),
		     -ENOENT);
	cr_assert_null(c);
	cr_assert_eq(container_open(&c, folder, CONTAINER_READ_ONLY, 0, NULL),
		     -EISDIR);
	cr_assert_eq(container_open(&c, "/dev/null", CONTAINER_READ_WRITE, 0,
				    NULL),
		     -ENOTBLK);

	/* Nobody writes to it: opening it would wait for ever. */
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	cr_assert_eq(container_open(&c, fifo, CONTAINER_READ_ONLY, 0, NULL),
		     -ENOTBLK);
}

Test(container, opening_needs_permission)
{
	struct container *c;

	container_close(create(MIB));
	cr_assert_eq(chmod(path, 0), 0);
	if (geteuid() == 0) {
		cr_assert_eq(chmod(folder, 0755), 0);
		cr_assert_eq(seteuid(65534), 0);
	}
	cr_assert_eq(container_open(&c, path, CONTAINER_READ_WRITE, 0, NULL),
		     -EACCES);
	if (getuid() == 0)
		cr_assert_eq(seteuid(0), 0);
}

/* Needs O_NOATIME on a file that is not ours to fail without harm. */
Test(container, file_of_somebody_else_can_be_read)
{
	struct container *c;

	container_close(create(MIB));
	if (geteuid() != 0)
		cr_skip_test("only root can give files away");
	cr_assert_eq(chmod(path, 0644), 0);
	cr_assert_eq(chmod(folder, 0755), 0);
	cr_assert_eq(seteuid(65534), 0);
	cr_assert_eq(container_open(&c, path, CONTAINER_READ_ONLY, 0, NULL), 0);
	container_close(c);
	cr_assert_eq(seteuid(0), 0);
}

Test(container, reading_leaves_no_trace)
{
	const struct timespec long_ago[2] = { { 1000, 1 }, { 2000, 2 } };
	uint8_t buf[BLOCK_BYTES];
	struct container *c;
	struct stat st;

	container_close(create(MIB));
	cr_assert_eq(utimensat(AT_FDCWD, path, long_ago, 0), 0);

	c = reopen(CONTAINER_READ_ONLY);
	cr_assert_eq(container_read(c, 3, 1, buf), 0);
	cr_assert_eq(container_serve(c), 0);
	container_close(c);

	st = stat_of(path);
	cr_assert_eq(st.st_atim.tv_sec, 1000);
	cr_assert_eq(st.st_mtim.tv_sec, 2000);
}

Test(container, read_only_refuses_every_change)
{
	uint8_t buf[BLOCK_BYTES] = { 0 };
	struct container *c;

	container_close(create(MIB));
	c = reopen(CONTAINER_READ_ONLY);
	cr_assert(c->read_only);
	cr_assert_eq(container_write(c, 0, 1, buf), -EROFS);
	cr_assert_eq(container_flush(c), -EROFS);
	cr_assert_eq(container_back(c, 256, 1), -EROFS);
	container_close(c);
}

Test(container, odd_tail_is_not_counted)
{
	struct container *c;

	container_close(create(MIB));
	cr_assert_eq(truncate(path, MIB + 4095), 0);
	c = reopen(CONTAINER_READ_WRITE);
	cr_assert_eq(container_nr_blocks(c), 256);

	/* Growing makes whole blocks of it. */
	cr_assert_eq(container_back(c, 256, 2), 0);
	cr_assert_eq(container_nr_blocks(c), 258);
	cr_assert_eq(stat_of(path).st_size, MIB + 8192);
	container_close(c);
}

/* Reading and writing */

Test(container, what_was_written_is_read)
{
	uint8_t in[5 * BLOCK_BYTES], out[sizeof(in)];
	struct container *c = create(MIB);

	fill(in, sizeof(in), 1);
	cr_assert_eq(container_write(c, 100, 5, in), 0);
	cr_assert_eq(container_flush(c), 0);
	container_close(c);

	c = reopen(CONTAINER_READ_ONLY);
	cr_assert_eq(container_read(c, 100, 5, out), 0);
	cr_assert_arr_eq(in, out, sizeof(in));
	cr_assert_eq(container_read(c, 99, 2, out), 0);
	cr_assert_eq(out[0], 0);
	cr_assert_arr_eq(in, out + BLOCK_BYTES, BLOCK_BYTES);
	container_close(c);
}

Test(container, nothing_lies_behind_the_end)
{
	uint8_t buf[2 * BLOCK_BYTES] = { 0 };
	struct container *c = create(MIB);

	cr_assert_eq(container_read(c, 254, 2, buf), 0);
	cr_assert_eq(container_read(c, 255, 2, buf), -EIO);
	cr_assert_eq(container_read(c, 256, 1, buf), -EIO);
	cr_assert_eq(container_read(c, UINT64_MAX, 2, buf), -EIO);
	cr_assert_eq(container_write(c, 255, 2, buf), -EIO);
	cr_assert_eq(container_write(c, UINT64_MAX - 1, 2, buf), -EIO);
	cr_assert_eq(container_read(c, 256, 0, buf), 0);
	cr_assert_eq(container_write(c, 256, 0, buf), 0);
	cr_assert_eq(stat_of(path).st_size, MIB);
	container_close(c);
}

Test(container, file_cut_short_behind_our_back)
{
	uint8_t buf[4 * BLOCK_BYTES];
	struct container *c = create(MIB);

	cr_assert_eq(truncate(path, MIB / 2), 0);
	cr_assert_eq(container_read(c, 127, 1, buf), 0);
	cr_assert_eq(container_read(c, 126, 4, buf), -EIO);
	cr_assert_eq(container_read(c, 200, 1, buf), -EIO);
	container_close(c);
}

/* Growing */

Test(container, grows_with_real_space)
{
	struct container *c = create(MIB);
	uint8_t buf[BLOCK_BYTES];
	struct stat st;

	cr_assert_eq(container_back(c, 256, 768), 0);
	cr_assert_eq(container_nr_blocks(c), 1024);
	st = stat_of(path);
	cr_assert_eq(st.st_size, 4 * MIB);
	cr_assert_geq((uint64_t)st.st_blocks * 512, 4 * MIB);
	cr_assert_eq(container_read(c, 1023, 1, buf), 0);
	cr_assert_eq(buf[4095], 0);

	/* What is there stays as large. */
	cr_assert_eq(container_back(c, 0, 10), 0);
	cr_assert_eq(container_back(c, 5000, 0), 0);
	cr_assert_eq(container_nr_blocks(c), 1024);
	container_close(c);
}

Test(container, limit_of_the_host_is_no_space)
{
	struct container *c = create(MIB);
	uint64_t nr;

	limit_file_size(2 * MIB);
	cr_assert_eq(container_host_free(c, &nr), 0);
	cr_assert_leq(nr, 256);
	cr_assert_eq(container_back(c, 256, 512), -ENOSPC);
	cr_assert_eq(container_nr_blocks(c), 256);
	cr_assert_eq(stat_of(path).st_size, MIB);
	cr_assert_eq(container_back(c, 256, 256), 0);
	cr_assert_eq(container_nr_blocks(c), 512);
	cr_assert_eq(container_host_free(c, &nr), 0);
	cr_assert_eq(nr, 0);
	container_close(c);
}

Test(container, cannot_grow_beyond_what_offsets_can_say)
{
	struct container *c = create(MIB);

	cr_assert_eq(container_back(c, UINT64_MAX, 1), -ENOSPC);
	cr_assert_eq(container_back(c, 1, UINT64_MAX), -ENOSPC);
	cr_assert_eq(container_back(c, 1ull << 51, 1), -ENOSPC);
	container_close(c);
}

/* From now on this process lives on a host without fallocate. */
static void forbid_fallocate(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		cr_skip_test("no seccomp here");
}

Test(container, without_fallocate_zeros_are_written)
{
	struct container *c;
	struct stat st;

	forbid_fallocate();
	c = create(MIB);
	cr_assert_geq((uint64_t)stat_of(path).st_blocks * 512, MIB);
	cr_assert_eq(container_back(c, 256, 300), 0);
	st = stat_of(path);
	cr_assert_eq(st.st_size, (256 + 300) * BLOCK_BYTES);
	cr_assert_geq((uint64_t)st.st_blocks * 512, (uint64_t)st.st_size);
	cr_assert_eq(container_nr_blocks(c), 556);
	container_close(c);
}

Test(container, without_fallocate_holes_are_filled_and_data_kept)
{
	uint8_t in[BLOCK_BYTES], out[BLOCK_BYTES];
	struct container *c;

	fill(in, sizeof(in), 5);
	forbid_fallocate();
	container_close(create(BLOCK_BYTES));
	cr_assert_eq(truncate(path, 2 * MIB), 0);

	c = reopen(CONTAINER_READ_WRITE);
	cr_assert_eq(container_write(c, 100, 1, in), 0);
	cr_assert_lt((uint64_t)stat_of(path).st_blocks * 512, MIB);
	cr_assert_eq(container_back(c, 0, 600), 0);
	cr_assert_geq((uint64_t)stat_of(path).st_blocks * 512,
		      600 * BLOCK_BYTES);
	cr_assert_eq(container_read(c, 100, 1, out), 0);
	cr_assert_arr_eq(in, out, sizeof(in));
	cr_assert_eq(container_nr_blocks(c), 600);
	container_close(c);
}

Test(container, without_fallocate_failed_growth_is_undone)
{
	struct container *c;

	forbid_fallocate();
	c = create(MIB);
	limit_file_size(2 * MIB);
	cr_assert_eq(container_back(c, 256, 512), -ENOSPC);
	cr_assert_eq(stat_of(path).st_size, MIB);
	cr_assert_eq(container_nr_blocks(c), 256);
	container_close(c);
}

/* Stats */

Test(container, accesses_are_counted)
{
	uint8_t buf[3 * BLOCK_BYTES] = { 0 };
	struct container *c = create(MIB);
	struct stats *stats = stats_new();
	struct stats_snapshot *s = calloc(1, sizeof(*s));

	c->stats = stats;
	cr_assert_eq(container_write(c, 0, 3, buf), 0);
	cr_assert_eq(container_read(c, 1, 1, buf), 0);
	cr_assert_eq(container_read(c, 1, 2, buf), 0);
	cr_assert_eq(container_read(c, 256, 1, buf), -EIO);
	cr_assert_eq(container_flush(c), 0);
	cr_assert_eq(container_back(c, 256, 4), 0);

	stats_snapshot_take(stats, s);
	cr_assert_eq(s->timer[STATS_TIMER_container_write].count, 1);
	cr_assert_eq(s->timer[STATS_TIMER_container_write].bytes, 12288);
	cr_assert_eq(s->timer[STATS_TIMER_container_read].count, 2);
	cr_assert_eq(s->timer[STATS_TIMER_container_read].bytes, 12288);
	cr_assert_eq(s->timer[STATS_TIMER_container_flush].count, 1);
	cr_assert_eq(s->counter[STATS_io_errors], 1);
	cr_assert_eq(s->counter[STATS_container_grown], 16384);

	container_close(c);
	stats_free(stats);
	free(s);
}
