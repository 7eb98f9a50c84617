/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * bench-volume [OPTION...] [DIR]: the file system without FUSE, by the
 * operations of fileops.c, on one thread.
 *
 *	--scheme S        only this one; may be given again
 *	--sector-size N   512 or 4096
 *	--files N --big MIB --seconds S    how much
 *	--memory | --file      only on an emulated disk in memory, or only on a
 *	                       container file in DIR (else $TMPDIR, /var/tmp)
 *
 * In memory it is our own work alone, without the host's.  The last column is
 * the share of the time that ciphers and tags took, by the same timers that
 * /stats shows.  Each scheme runs with integrity off and the first but `none`
 * with integrity on as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cipher/scheme.h"
#include "fs/container.h"
#include "fs/header.h"
#include "fs/volume.h"
#include "stats/snapshot.h"
#include "tests/bench/fileops.h"
#include "tests/support/emudev.h"

#define MIB (UINT64_C(1) << 20)

enum {
	SCHEMES_MAX = 16,
	NR_HANDLES = 4,
	FIRST_BYTES = CONTAINER_BLOCKS_MIN * BLOCK_BYTES,
};

struct options {
	const struct scheme *scheme[SCHEMES_MAX];
	size_t nr_schemes;
	uint32_t sector_bytes;
	struct fileops_size size;
	bool memory, file;
	const char *dir;
};

struct target {
	struct volume *v;
	struct stats *stats;
	struct stats_snapshot *snapshot;
	uint64_t cipher_ns; /* at the end of the row before */
	uint64_t wall_ns;
};

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "bench-volume: %s: %s\n", what, strerror(-err));
	exit(1);
}

static int target_create(void *target, const char *name, int64_t *handle)
{
	const struct volume_cred cred = { 0, 0 };
	struct target *t = target;
	struct attr a = { 0 };
	int err = volume_create(t->v, VOLUME_ROOT, name, S_IFREG | 0600, 0,
				&cred, &a);

	*handle = (int64_t)a.ino;
	return err;
}

static int target_open(void *target, const char *name, int64_t *handle)
{
	struct target *t = target;
	struct attr a = { 0 };
	int err = volume_lookup(t->v, VOLUME_ROOT, name, &a);

	*handle = (int64_t)a.ino;
	return err;
}

static int target_close(void *target, int64_t handle)
{
	return 0;
}

static int target_stat(void *target, const char *name)
{
	struct target *t = target;
	struct attr a;
	int err = volume_lookup(t->v, VOLUME_ROOT, name, &a);

	return err ? err : volume_getattr(t->v, a.ino, &a);
}

static int target_read(void *target, int64_t handle, uint64_t offset,
		       size_t len, void *buf)
{
	struct target *t = target;
	size_t nr;
	int err = volume_read(t->v, (inum_t)handle, offset, len, buf, &nr);

	return err ? err : nr == len ? 0 : -EIO;
}

static int target_write(void *target, int64_t handle, uint64_t offset,
			size_t len, const void *buf)
{
	struct target *t = target;

	return volume_write(t->v, (inum_t)handle, offset, len, buf, 0);
}

static int target_fsync(void *target, int64_t handle)
{
	struct target *t = target;

	return volume_fsync(t->v, (inum_t)handle);
}

static int target_rename(void *target, const char *from, const char *to)
{
	struct target *t = target;

	return volume_rename(t->v, VOLUME_ROOT, from, VOLUME_ROOT, to, 0, NULL);
}

static int target_unlink(void *target, const char *name)
{
	struct target *t = target;
	inum_t gone;
	int err = volume_unlink(t->v, VOLUME_ROOT, name, &gone);

	if (!err)
		volume_reap(t->v, gone);
	return err;
}

/* There is no cache of data in a volume. */
static int target_forget(void *target, int64_t handle)
{
	return 0;
}

static uint64_t cipher_ns(struct target *t)
{
	static const enum stats_timer timers[] = {
		STATS_TIMER_encrypt,
		STATS_TIMER_decrypt,
		STATS_TIMER_tag_compute,
		STATS_TIMER_tag_verify,
	};
	uint64_t ns = 0;

	stats_snapshot_take(t->stats, t->snapshot);
	for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
		ns += t->snapshot->timer[timers[i]].latency.sum;
	return ns;
}

static int target_settle(void *target)
{
	struct target *t = target;
	int err = volume_sync(t->v);

	t->cipher_ns = cipher_ns(t);
	t->wall_ns = stats_now();
	return err;
}

static const struct fileops target_ops = {
	.create = target_create,
	.open = target_open,
	.close = target_close,
	.stat = target_stat,
	.read = target_read,
	.write = target_write,
	.fsync = target_fsync,
	.rename = target_rename,
	.unlink = target_unlink,
	.forget = target_forget,
	.settle = target_settle,
};

static void print_row(void *arg, const char *name, double us, double mbps)
{
	struct target *t = arg;
	uint64_t wall = stats_now() - t->wall_ns;
	uint64_t cipher = cipher_ns(t) - t->cipher_ns;

	printf("  %-12s %10.2f", name, us);
	if (mbps > 0)
		printf(" %9.1f", mbps);
	else
		printf(" %9s", "");
	printf(" %8.1f\n", 100.0 * (double)cipher / (double)wall);
	fflush(stdout);
}

/* A file that has no name any more: nothing is left, however this ends. */
static struct container *new_file(const char *dir)
{
	struct container *c;
	char path[4096];

	snprintf(path, sizeof(path), "%s/bench-volume-%d.tusk", dir,
		 (int)getpid());
	must(container_create(&c, path, CONTAINER_NEW_FILE, FIRST_BYTES), path);
	unlink(path);
	return c;
}

static void bench_container(const struct options *o, struct container *c,
			    const struct scheme *scheme, bool integrity)
{
	const struct header_params p = {
		.label = "bench",
		.scheme = scheme,
		.sector_bytes = o->sector_bytes,
		.integrity = integrity,
		.cost = { 1, 8, 1 },
		.kind = KEYSLOT_PASSWORD,
	};
	const struct volume_format_params f = { .limit_blocks = 0 };
	auto_secret struct secret password = SECRET_EMPTY;
	struct target t = { .stats = stats_new() };
	struct volume_options vo = { .commit_seconds = 5, .stats = t.stats };
	struct header_keys keys;
	struct nonce_source src;
	struct header h;

	t.snapshot = calloc(1, sizeof(*t.snapshot));
	if (!t.stats || !t.snapshot)
		must(-ENOMEM, "memory");
	c->stats = t.stats;
	must(nonce_source_init(&src), "nonces");
	must(secret_copy(&password, "password", 8), "secret");
	must(header_new(&h, &keys, &p, &password, &src, NR_HANDLES), "header");
	must(volume_format(c, &h, &keys, &src, &f), "format");
	must(volume_open(&t.v, c, &h, &keys, &vo), "open");
	fileops_run(&target_ops, &t, &o->size, print_row, &t);
	must(volume_close(t.v), "close");
	header_keys_destroy(&keys);
	header_destroy(&h);
	nonce_source_destroy(&src);
	stats_free(t.stats);
	free(t.snapshot);
}

static void print_heading(const struct options *o, const char *where,
			  const struct scheme *scheme, bool integrity)
{
	printf("%s, %s, sectors of %u bytes, integrity %s\n"
	       "  %-12s %10s %9s %8s\n",
	       where, scheme->name, o->sector_bytes, integrity ? "on" : "off",
	       "", "us/op", "MB/s", "cipher %");
}

static void bench_scheme(const struct options *o, const struct scheme *scheme,
			 bool integrity)
{
	if (o->memory) {
		const uint64_t host_bytes = 4096 * MIB;
		struct emudev *d = emudev_new(FIRST_BYTES, host_bytes);
		struct container *c = emudev_container(d);

		emudev_stop_log(d);
		print_heading(o, "memory", scheme, integrity);
		bench_container(o, c, scheme, integrity);
		container_close(c);
		emudev_free(d);
	}
	if (o->file) {
		struct container *c = new_file(o->dir);

		print_heading(o, "file", scheme, integrity);
		bench_container(o, c, scheme, integrity);
		container_close(c);
	}
}

static void add_scheme(struct options *o, const char *name)
{
	const struct scheme *s = scheme_by_name(name);

	if (!s || o->nr_schemes == SCHEMES_MAX) {
		fprintf(stderr, "bench-volume: no scheme '%s'\n", name);
		exit(2);
	}
	o->scheme[o->nr_schemes++] = s;
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "scheme", required_argument, NULL, 'c' },
		{ "sector-size", required_argument, NULL, 'z' },
		{ "files", required_argument, NULL, 'n' },
		{ "big", required_argument, NULL, 'b' },
		{ "seconds", required_argument, NULL, 's' },
		{ "memory", no_argument, NULL, 'm' },
		{ "file", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c')
			add_scheme(o, optarg);
		else if (c == 'z')
			o->sector_bytes = (uint32_t)atoi(optarg);
		else if (c == 'n')
			o->size.nr_files = (unsigned int)atoi(optarg);
		else if (c == 'b')
			o->size.big_mib = (unsigned int)atoi(optarg);
		else if (c == 's')
			o->size.seconds = atof(optarg);
		else if (c == 'm')
			o->memory = true;
		else if (c == 'f')
			o->file = true;
		else
			exit(2);
	}
	if (optind < argc)
		o->dir = argv[optind];
}

int main(int argc, char **argv)
{
	struct options o = {
		.sector_bytes = 4096,
		.size = { 2000, 32, 0.2 },
		.dir = getenv("TMPDIR"),
	};
	bool with_integrity = false;
	enum secret_memory memory;

	parse(&o, argc, argv);
	if (!o.dir)
		o.dir = "/var/tmp";
	if (!o.memory && !o.file)
		o.memory = o.file = true;
	if (!o.nr_schemes) {
		add_scheme(&o, "none");
		add_scheme(&o, "aes-256-xts");
	}
	must(cipher_init(0, &memory), "libgcrypt");
	for (size_t i = 0; i < o.nr_schemes; i++) {
		bench_scheme(&o, o.scheme[i], false);
		if (with_integrity || !strcmp(o.scheme[i]->name, "none"))
			continue;
		bench_scheme(&o, o.scheme[i], true);
		with_integrity = true;
	}
	return 0;
}
