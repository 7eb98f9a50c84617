/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A small volume on an emulated disk, for tests that look inside it: opened
 * and shut at will, with what it says kept.
 */
#ifndef TESTS_UNIT_FS_UNITVOL_H
#define TESTS_UNIT_FS_UNITVOL_H

#include <criterion/criterion.h>
#include <sys/stat.h>

#include "fs/check.h"
#include "fs/commit.h"
#include "fs/txn.h"
#include "fs/vol.h"
#include "support.h"

struct unitvol {
	struct nonce_source src;
	struct header h;
	struct header_keys keys;
	struct emudev *d;
	struct volume_options o;
	struct volume *v; /* NULL: not open */
	char said[8192];  /* lines of the volume and the checker */
};

/* Fits the report functions of the volume and the checker. */
static inline void unitvol_say(void *arg, const char *line)
{
	struct unitvol *t = arg;
	size_t len = strlen(t->said);

	snprintf(t->said + len, sizeof(t->said) - len, "%s\n", line);
}

static inline bool unitvol_said(const struct unitvol *t, const char *what)
{
	return strstr(t->said, what) != NULL;
}

static inline void unitvol_open(struct unitvol *t)
{
	t->said[0] = '\0';
	must(volume_open(&t->v, emudev_container(t->d), &t->h, &t->keys,
			 &t->o));
}

static inline void unitvol_close(struct unitvol *t)
{
	must(volume_close(t->v));
	t->v = NULL;
}

static inline void unitvol_abandon(struct unitvol *t)
{
	if (t->v)
		volume_abandon(t->v);
	t->v = NULL;
}

/* The daemon is killed; what it wrote is there. */
static inline void unitvol_reopen(struct unitvol *t)
{
	unitvol_abandon(t);
	unitvol_open(t);
}

/* Make and open it.  @max_items: fan-out of the file system's trees, or 0. */
static inline void unitvol_start(struct unitvol *t, unsigned int max_items,
				 bool integrity)
{
	auto_secret struct secret secret = SECRET_EMPTY;
	struct volume_format_params f = { .uid = 1000, .gid = 100 };
	struct header_params p = made_params();

	memset(t, 0, sizeof(*t));
	start_nonces(&t->src);
	secret = secret_text(OLD_PASSWORD);
	p.integrity = integrity;
	must(header_new(&t->h, &t->keys, &p, &secret, &t->src, 2));
	t->d = emudev_new(DISK_BYTES, 8 * DISK_BYTES);
	must(volume_format(emudev_container(t->d), &t->h, &t->keys, &t->src,
			   &f));
	emudev_rebase(t->d);
	t->o = (struct volume_options){
		.max_node_items = max_items,
		.atime = VOLUME_NOATIME,
		.report = unitvol_say,
		.report_arg = t,
	};
	unitvol_open(t);
}

static inline void unitvol_end(struct unitvol *t)
{
	unitvol_abandon(t);
	header_keys_destroy(&t->keys);
	header_destroy(&t->h);
	emudev_free(t->d);
	nonce_source_destroy(&t->src);
}

/* What the checker finds on the disk as it is now; lines in t->said. */
static inline uint64_t unitvol_check(struct unitvol *t)
{
	struct check_options o = { .data = true,
				   .report = unitvol_say,
				   .report_arg = t };
	struct check_result r;

	t->said[0] = '\0';
	must(check_container(emudev_container(t->d), &t->h, &t->keys, &o, &r));
	return r.errors;
}

#define unitvol_must_be_clean(t) \
	cr_assert_eq(unitvol_check(t), 0, "%s", (t)->said)

/* ---- short forms of operations that must succeed */

static const struct volume_cred unitvol_cred = { 1000, 100 };

static inline inum_t unitvol_make(struct unitvol *t, inum_t dir,
				  const char *name, uint32_t mode)
{
	struct attr a;

	must_be_0(volume_create(t->v, dir, name, mode, 0, &unitvol_cred, &a),
		  name);
	return a.ino;
}

static inline inum_t unitvol_file(struct unitvol *t, const char *name)
{
	return unitvol_make(t, VOLUME_ROOT, name, S_IFREG | 0644);
}

/* @nr blocks from block @first on, all bytes @byte. */
static inline void unitvol_write(struct unitvol *t, inum_t ino, uint64_t first,
				 unsigned int nr, uint8_t byte)
{
	size_t len = (size_t)nr * BLOCK_BYTES;
	uint8_t *buf = malloc(len);

	memset(buf, byte, len);
	must(volume_write(t->v, ino, first * BLOCK_BYTES, len, buf, 0));
	free(buf);
}

/* The first byte of a block; all of the block must be equal to it. */
static inline uint8_t unitvol_read(struct unitvol *t, inum_t ino,
				   uint64_t block)
{
	uint8_t buf[BLOCK_BYTES];
	size_t nr;

	must(volume_read(t->v, ino, block * BLOCK_BYTES, sizeof(buf), buf,
			 &nr));
	cr_assert_eq(nr, sizeof(buf));
	for (size_t i = 1; i < nr; i++)
		cr_assert_eq(buf[i], buf[0]);
	return buf[0];
}

static inline void unitvol_sync(struct unitvol *t)
{
	must(volume_sync(t->v));
}

/* A commit whether anything has changed or not. */
static inline void unitvol_press(struct unitvol *t)
{
	must(commit_sync(t->v, COMMIT_PRESSURE));
}

static inline void unitvol_unlink(struct unitvol *t, const char *name)
{
	must_be_0(volume_unlink(t->v, VOLUME_ROOT, name, NULL), name);
}

/* ---- the hand inside: change items of the file tree as no operation would */

/* @len 0 and no @value: remove. */
static inline void unitvol_plant(struct unitvol *t, struct key key,
				 const void *value, size_t len)
{
	struct txn x;
	int err;

	must(txn_begin(&x, t->v, TXN_DELETE, 2, 0));
	txn_lock(&x);
	do {
		err = tree_prepare(&t->v->ft, &key, &x.fault);
		if (!err)
			err = txn_ready(&x, 4);
	} while (txn_retry(&x, &err));
	must(err);
	if (value)
		tree_put(&t->v->ft, &key, value, len);
	else
		tree_remove(&t->v->ft, &key);
	t->v->changes++;
	txn_unlock(&x);
	txn_end(&x);
}

/* Copy an item; returns its length, or a negative errno. */
static inline int unitvol_item(struct unitvol *t, struct tree *tree,
			       struct key key, void *out, size_t size)
{
	struct tree_pos pos;
	struct txn x;
	int err;

	must(txn_begin(&x, t->v, TXN_READ, 0, 0));
	txn_lock(&x);
	do {
		err = tree_find(tree, &key, &pos, &x.fault);
	} while (txn_retry(&x, &err));
	if (!err) {
		cr_assert_leq(pos.len, size);
		memcpy(out, pos.value, pos.len);
		err = (int)pos.len;
	}
	txn_unlock(&x);
	txn_end(&x);
	return err;
}

#endif
