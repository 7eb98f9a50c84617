/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lives that people really had, cut everywhere.  D01: names that were synced
 * are there and whole.  D03: a file saved by renaming over it is the old or the
 * new version, never empty.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/crash/episode.h"
#include "tests/support/refdata.h"

static const struct testvol_shape shape = {
	.sector_bytes = 4096,
	.integrity = true,
	.host_bytes = UINT64_C(256) << 20,
	.max_node_items = 6,
	.atime = VOLUME_NOATIME,
};

static void make(struct testvol *t)
{
	struct testvol_shape s = shape;

	s.scheme = scheme_by_name("aes-256-xts");
	testvol_make(t, &s);
}

/* D01: a script of names. */

/* Operations by names in the root or in its folder "d". */
struct script {
	enum op_kind kind;
	const char *dir, *name;
	const char *new_dir, *new_name; /* of rename; of link: the file */
};

static const struct script d01[] = {
	{ OP_MKDIR, "", "d", "", "" },
	{ OP_FSYNC, "", "", "", "" },
	{ OP_CREATE, "d", "a", "", "" },
	{ OP_FSYNC, "d", "", "", "" },
	{ OP_WRITE, "d", "a", "", "" },
	{ OP_MKDIR, "d", "sub", "", "" },
	{ OP_FSYNC, "d", "a", "", "" },
	{ OP_RENAME, "d", "a", "d", "b" },
	{ OP_FSYNC, "d", "", "", "" },
	{ OP_LINK, "", "hard", "d", "b" },
	{ OP_RENAME, "d", "b", "", "moved" },
	{ OP_CREATE, "d", "c", "", "" },
	{ OP_WRITE, "d", "c", "", "" },
	{ OP_RENAME, "d", "c", "", "moved" },
	{ OP_FSYNC, "", "moved", "", "" },
	{ OP_UNLINK, "", "hard", "", "" },
	{ OP_FSYNC, "", "", "", "" },
	{ OP_RMDIR, "d", "sub", "", "" },
	{ OP_RMDIR, "", "d", "", "" },
	{ OP_CREATE, "", "d", "", "" },
	{ OP_FSYNC, "", "", "", "" },
};

static inum_t find(struct episode *e, inum_t dir, const char *name)
{
	struct attr attr;

	if (!*name)
		return dir;
	if (fsapi_refmodel.lookup(e->l.m, dir, name, &attr)) {
		fprintf(stderr, "the script has no '%s'\n", name);
		abort();
	}
	return attr.ino;
}

static void script_op(struct episode *e, const struct script *s, struct op *op)
{
	inum_t dir = find(e, VOLUME_ROOT, s->dir);

	memset(op, 0, sizeof(*op));
	op->kind = s->kind;
	op->dir = dir;
	strcpy(op->name, s->name);
	op->set.mode = s->kind == OP_MKDIR ? S_IFDIR | 0700 : S_IFREG | 0600;
	if (s->kind == OP_RENAME) {
		op->new_dir = find(e, VOLUME_ROOT, s->new_dir);
		strcpy(op->new_name, s->new_name);
	}
	if (s->kind == OP_LINK)
		op->ino =
			find(e, find(e, VOLUME_ROOT, s->new_dir), s->new_name);
	if (s->kind == OP_WRITE || s->kind == OP_FSYNC) {
		op->ino = find(e, dir, s->name);
		op->dir = 0;
		op->name[0] = '\0';
	}
	if (s->kind == OP_WRITE) {
		op->len = 10000;
		op->pattern = e->nr;
	}
}

static bool run_d01(struct crash_run *run, const struct testvol *t)
{
	struct episode e;
	bool ok;

	run->episodes++;
	ok = episode_open(&e, run, t, emudev_clone(t->d), NULL, 0);
	for (size_t i = 0; ok && i < sizeof(d01) / sizeof(*d01); i++) {
		struct op op;

		script_op(&e, &d01[i], &op);
		ok = episode_do(&e, &op);
	}
	ok = ok && episode_close(&e) && episode_try_all(&e);
	episode_destroy(&e);
	return ok;
}

/* D03: saving a file again and again. */

#define VERSION_BYTES (150u << 10)
#define NR_VERSIONS 5

/* What f must hold: version v is made of pattern v + 1. */
struct saved {
	uint8_t *version[NR_VERSIONS];
	size_t state[NR_VERSIONS]; /* after which operation it is f */
	uint8_t *buf;
};

static bool is_version(struct saved *s, unsigned int v)
{
	return !memcmp(s->buf, s->version[v], VERSION_BYTES);
}

/* f is one whole version that it may be; before the first rename: none. */
static bool d03_legal(struct episode *e, struct volume *v, size_t low,
		      size_t high)
{
	struct saved *s = e->legal_arg;
	struct attr attr;
	size_t nr = 0;
	int err;

	err = volume_lookup(v, VOLUME_ROOT, "f", &attr);
	if (err == -ENOENT && low < s->state[0])
		return true;
	if (!err)
		err = volume_read(v, attr.ino, 0, VERSION_BYTES, s->buf, &nr);
	if (err || nr != VERSION_BYTES || attr.size != VERSION_BYTES) {
		fprintf(stderr, "  f: %s, %" PRIu64 " bytes, %zu read\n",
			strerror(-err), attr.size, nr);
		return false;
	}
	for (unsigned int i = 0; i < NR_VERSIONS; i++) {
		bool newest_promised = i + 1 == NR_VERSIONS ||
				       s->state[i + 1] > low;

		if (s->state[i] && s->state[i] <= high && newest_promised &&
		    is_version(s, i))
			return true;
	}
	fprintf(stderr, "  f is no whole version that it may be\n");
	return false;
}

static bool save_version(struct episode *e, struct saved *s, unsigned int v,
			 bool sync)
{
	struct op op = { .kind = OP_CREATE, .dir = VOLUME_ROOT, .name = "tmp" };
	inum_t ino;

	op.set.mode = S_IFREG | 0600;
	if (!episode_do(e, &op))
		return false;
	ino = find(e, VOLUME_ROOT, "tmp");
	op = (struct op){ .kind = OP_WRITE,
			  .ino = ino,
			  .len = VERSION_BYTES,
			  .pattern = v + 1 };
	if (!episode_do(e, &op))
		return false;
	op = (struct op){ .kind = OP_FSYNC, .ino = ino };
	if (sync && !episode_do(e, &op))
		return false;
	op = (struct op){ .kind = OP_RENAME,
			  .dir = VOLUME_ROOT,
			  .name = "tmp",
			  .new_dir = VOLUME_ROOT,
			  .new_name = "f" };
	s->state[v] = e->nr;
	if (!episode_do(e, &op))
		return false;
	op = (struct op){ .kind = OP_SYNC };
	return v % 2 || episode_do(e, &op);
}

static bool run_d03(struct crash_run *run, const struct testvol *t, bool sync)
{
	struct saved s = { .buf = xmalloc(VERSION_BYTES) };
	unsigned int go_on = run->go_on;
	struct episode e;
	bool ok;

	for (unsigned int v = 0; v < NR_VERSIONS; v++) {
		s.version[v] = xmalloc(VERSION_BYTES);
		rng_fill(s.version[v], VERSION_BYTES, v + 1);
	}
	run->episodes++;
	run->go_on = 0;
	ok = episode_open(&e, run, t, emudev_clone(t->d), NULL, 0);
	e.legal = d03_legal;
	e.legal_arg = &s;
	for (unsigned int v = 0; ok && v < NR_VERSIONS; v++)
		ok = save_version(&e, &s, v, sync);
	episode_abandon(&e);
	ok = ok && episode_try_all(&e);
	episode_destroy(&e);
	run->go_on = go_on;
	for (unsigned int v = 0; v < NR_VERSIONS; v++)
		free(s.version[v]);
	free(s.buf);
	return ok;
}

bool crash_scenarios(struct crash_run *run)
{
	struct testvol t;
	bool ok;

	testclock_set_ns(TESTCLOCK_START);
	make(&t);
	ok = run_d01(run, &t);
	if (!ok)
		fprintf(stderr, "scenario D01, synced names\n");
	if (ok && !run_d03(run, &t, true)) {
		fprintf(stderr, "scenario D03, saved with fsync\n");
		ok = false;
	}
	if (ok && !run_d03(run, &t, false)) {
		fprintf(stderr, "scenario D03, saved without fsync\n");
		ok = false;
	}
	testvol_destroy(&t);
	return ok;
}
