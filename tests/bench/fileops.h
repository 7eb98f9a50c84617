/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The operations that benchmarks of file systems measure, over any target: a
 * volume without FUSE (bench-volume.c) or a folder (bench-folder.c).  One list,
 * so that their numbers can be put side by side.
 */
#ifndef TESTS_BENCH_FILEOPS_H
#define TESTS_BENCH_FILEOPS_H

#include <stddef.h>
#include <stdint.h>

/*
 * What a target can do, in one folder.  Handles are the target's own numbers.
 * All return 0 or negative errno.
 */
struct fileops {
	int (*create)(void *target, const char *name, int64_t *handle);
	int (*open)(void *target, const char *name, int64_t *handle);
	int (*close)(void *target, int64_t handle);
	int (*stat)(void *target, const char *name);
	int (*read)(void *target, int64_t handle, uint64_t offset, size_t len,
		    void *buf);
	int (*write)(void *target, int64_t handle, uint64_t offset, size_t len,
		     const void *buf);
	int (*fsync)(void *target, int64_t handle);
	int (*rename)(void *target, const char *from, const char *to);
	int (*unlink)(void *target, const char *name);
	/* Let caches above the target forget the (settled) file, untimed. */
	int (*forget)(void *target, int64_t handle);
	/* Wait for what the target does in the background, untimed. */
	int (*settle)(void *target);
};

struct fileops_size {
	unsigned int nr_files; /* small ones, of 4 KiB */
	unsigned int big_mib;  /* of the big one */
	double seconds;	       /* at most, for each row that has no count */
};

/* Of each row: microseconds an operation, and MB/s or 0. */
typedef void fileops_row(void *arg, const char *name, double us, double mbps);

/*
 * Run them all on @target, in an empty folder, which is empty again afterwards.
 * Ends the process with a message on stderr if one fails.
 */
void fileops_run(const struct fileops *ops, void *target,
		 const struct fileops_size *size, fileops_row *row, void *arg);

#endif
