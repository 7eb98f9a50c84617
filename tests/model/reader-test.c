/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * TD7: a block that is being read keeps its content, however long the disk
 * takes, though its file was overwritten, commits passed and all space that was
 * to be had was written with something else.
 *
 * All of that happens while the disk's read function waits, so that nothing is
 * left to chance.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fs/container.h"
#include "tests/support/refdata.h"
#include "tests/support/testvol.h"

#define FILE_BYTES (16u * BLOCK_BYTES)
#define OTHER_BYTES (256u << 10)
#define LIMIT_BLOCKS 9216u /* 36 MiB: soon full */
#define OVERWRITES 200
#define PATIENCE_SECONDS 5

enum pattern {
	OLD = 1,
	NEW,
	OTHER
};

static const struct container_ops *disk;
static struct container_ops slow_disk;
static struct volume *volume;
static inum_t file, other;
static bool armed;
static int trouble;

static pthread_t busy;
static bool is_busy;

static void keep_error(int err)
{
	if (err && !trouble)
		trouble = err;
}

static int write_pattern(inum_t ino, uint64_t offset, size_t len,
			 uint64_t pattern)
{
	uint8_t *buf = xmalloc(len);
	int err;

	rng_fill(buf, len, pattern);
	err = volume_write(volume, ino, offset, len, buf, 0);
	if (!err)
		err = volume_sync(volume);
	free(buf);
	return err;
}

/*
 * What others do while one read waits for the disk: fill the container, and
 * then use up what is kept for overwriting.
 */
static void *much_happens(void *arg)
{
	uint64_t pattern = OTHER;
	int err = 0;

	keep_error(write_pattern(file, 0, FILE_BYTES, NEW));
	for (uint64_t at = 0; !err; at += OTHER_BYTES)
		err = write_pattern(other, at, OTHER_BYTES, pattern++);
	keep_error(err == -ENOSPC ? 0 : err);
	err = 0;
	for (unsigned int i = 0; !err && i < OVERWRITES; i++)
		err = write_pattern(other, 0, FILE_BYTES, pattern++);
	keep_error(err == -ENOSPC ? 0 : err);
	return NULL;
}

/* They may have to wait for the reader: not for ever, then. */
static void let_much_happen(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_SECONDS;
	is_busy = !pthread_create(&busy, NULL, much_happens, NULL);
	if (is_busy && !pthread_timedjoin_np(busy, NULL, &end))
		is_busy = false;
}

static int read_slowly(struct container *c, uint64_t offset, size_t len,
		       void *buf)
{
	if (armed) {
		armed = false;
		let_much_happen();
	}
	return disk->read(c, offset, len, buf);
}

static void make_file(const char *name, inum_t *ino)
{
	const struct volume_cred root = { 0, 0 };
	struct attr attr = { 0 };

	keep_error(volume_create(volume, VOLUME_ROOT, name, S_IFREG | 0600, 0,
				 &root, &attr));
	*ino = attr.ino;
}

static bool has_pattern(const uint8_t *buf, uint64_t pattern)
{
	uint8_t *right = xmalloc(FILE_BYTES);
	bool same;

	rng_fill(right, FILE_BYTES, pattern);
	same = !memcmp(buf, right, FILE_BYTES);
	free(right);
	return same;
}

static bool read_while_much_happens(void)
{
	uint8_t *buf = xmalloc(FILE_BYTES);
	size_t nr = 0;
	bool ok;

	armed = true;
	keep_error(volume_read(volume, file, 0, FILE_BYTES, buf, &nr));
	if (is_busy)
		pthread_join(busy, NULL);
	is_busy = false;
	ok = !armed && nr == FILE_BYTES && has_pattern(buf, OLD);
	if (!ok)
		fprintf(stderr, "a slow read gave %s\n",
			armed			? "an answer without the disk"
			: has_pattern(buf, NEW) ? "what was written later"
						: "bytes of another file");
	keep_error(volume_read(volume, file, 0, FILE_BYTES, buf, &nr));
	if (ok && !has_pattern(buf, NEW)) {
		fprintf(stderr, "the next read did not give the new bytes\n");
		ok = false;
	}
	free(buf);
	return ok;
}

static bool run(const char *scheme, bool integrity)
{
	const struct testvol_shape shape = {
		.scheme = scheme_by_name(scheme),
		.sector_bytes = 4096,
		.integrity = integrity,
		.limit_blocks = LIMIT_BLOCKS,
		.host_bytes = UINT64_C(64) << 20,
		.atime = VOLUME_NOATIME,
	};
	struct check_result r;
	struct testvol t;
	bool ok;

	trouble = 0;
	testvol_make(&t, &shape);
	emudev_stop_log(t.d);
	disk = emudev_container(t.d)->ops;
	slow_disk = *disk;
	slow_disk.read = read_slowly;
	emudev_container(t.d)->ops = &slow_disk;
	if (testvol_open(&t))
		return false;
	volume = t.v;
	make_file("file", &file);
	make_file("other", &other);
	keep_error(write_pattern(file, 0, FILE_BYTES, OLD));
	ok = read_while_much_happens();
	if (trouble)
		fprintf(stderr, "%s\n", strerror(-trouble));
	ok = !testvol_close(&t) && testvol_check(&t, t.d, &r) && ok && !trouble;
	testvol_destroy(&t);
	return ok;
}

int main(void)
{
	unsigned int failed = 0;

	failed += !run("none", false);
	failed += !run("aes-256-xts", false);
	failed += !run("aes-256-xts", true);
	printf("%u passed, %u failed\n", 3 - failed, failed);
	return failed != 0;
}
