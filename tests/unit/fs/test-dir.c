/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Entries of folders: cookies from hashes, and names whose hashes are equal.
 */
#include "unitvol.h"

#include <dirent.h>

#include "fs/dir.h"

static struct unitvol t;

static void start_dir(void)
{
	unitvol_start(&t, 6, true);
}

static void end_dir(void)
{
	unitvol_end(&t);
}

TestSuite(dir, .init = start_dir, .fini = end_dir, .timeout = 60);

Test(dir, names_that_cannot_be)
{
	char name[NAME_BYTES_MAX + 2];
	struct dir_name n;

	memset(name, 'x', sizeof(name));
	name[NAME_BYTES_MAX + 1] = '\0';
	cr_assert_eq(dir_hash(t.v, name, &n), -ENAMETOOLONG);
	name[NAME_BYTES_MAX] = '\0';
	cr_assert_eq(dir_hash(t.v, name, &n), 0);
	cr_assert_eq(n.len, NAME_BYTES_MAX);
	cr_assert_eq(dir_hash(t.v, "", &n), -EINVAL);
	cr_assert_eq(dir_hash(t.v, "a/b", &n), -EINVAL);
	cr_assert_eq(dir_hash(t.v, "\xff\x01 \n", &n), 0);
}

Test(dir, cookies_are_in_bounds_and_depend_on_the_volume)
{
	struct dir_name a, b;
	struct unitvol other;
	unsigned int same = 0;

	unitvol_start(&other, 0, true);
	for (unsigned int i = 0; i < 2000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		must(dir_hash(t.v, name, &a));
		must(dir_hash(other.v, name, &b));
		same += a.cookie == b.cookie;
		cr_assert_geq(a.cookie, 256);
		cr_assert_eq(a.cookie & 0xff, 0);
		cr_assert_eq(a.cookie >> 63, 0);
		must(dir_hash(t.v, name, &b));
		cr_assert_eq(a.cookie, b.cookie);
	}
	cr_assert_eq(same, 0);
	unitvol_end(&other);
}

/* ---- names of one hash */

#define COOKIE ((uint64_t)77 << 8)

static int add(inum_t dir, const char *name, inum_t inum)
{
	struct dir_name n = { name, strlen(name), COOKIE };
	uint64_t cookie;
	struct txn x;
	int err;

	must(txn_begin(&x, t.v, TXN_GROW, 2, 0));
	txn_lock(&x);
	do {
		err = dir_new_cookie(&x, dir, &n, &cookie);
		if (!err)
			err = txn_ready(&x, 0);
	} while (txn_retry(&x, &err));
	if (!err)
		dir_put(&x, dir, cookie, &n, inum, S_IFREG);
	txn_unlock(&x);
	txn_end(&x);
	return err ? err : (int)(cookie & 0xff);
}

static int find(inum_t dir, const char *name, struct dir_entry *e)
{
	struct dir_name n = { name, strlen(name), COOKIE };
	struct txn x;
	int err;

	must(txn_begin(&x, t.v, TXN_READ, 0, 0));
	txn_lock(&x);
	do {
		err = dir_find(&x, dir, &n, e);
	} while (txn_retry(&x, &err));
	txn_unlock(&x);
	txn_end(&x);
	return err;
}

static void drop(inum_t dir, uint64_t cookie)
{
	struct txn x;
	int err;

	must(txn_begin(&x, t.v, TXN_DELETE, 2, 0));
	txn_lock(&x);
	do {
		err = dir_prepare(&x, dir, cookie);
		if (!err)
			err = txn_ready(&x, 0);
	} while (txn_retry(&x, &err));
	must(err);
	dir_remove(&x, dir, cookie);
	txn_unlock(&x);
	txn_end(&x);
}

Test(dir, there_is_room_for_256_names_of_one_hash)
{
	struct dir_entry e;
	char name[16];

	for (unsigned int i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		cr_assert_eq(find(VOLUME_ROOT, name, &e), -ENOENT);
		cr_assert_eq(add(VOLUME_ROOT, name, 5000 + i), (int)i);
	}
	cr_assert_eq(add(VOLUME_ROOT, "one more", 1), -ENOSPC);
	cr_assert_eq(find(VOLUME_ROOT, "one more", &e), -ENOENT);
	for (unsigned int i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		cr_assert_eq(find(VOLUME_ROOT, name, &e), 0);
		cr_assert_eq(e.inum, 5000 + i);
		cr_assert_eq(e.cookie, COOKIE + i);
		cr_assert_eq(e.type, DT_REG);
	}
	/* Another folder, the hashes beside this one: none of their business. */
	cr_assert_eq(find(VOLUME_ROOT + 1, "name 3", &e), -ENOENT);
	cr_assert_eq(add(VOLUME_ROOT + 1, "name 3", 1), 0);
}

Test(dir, cookie_of_a_removed_name_is_used_again)
{
	struct dir_entry e;

	cr_assert_eq(add(VOLUME_ROOT, "a", 10), 0);
	cr_assert_eq(add(VOLUME_ROOT, "b", 11), 1);
	cr_assert_eq(add(VOLUME_ROOT, "c", 12), 2);
	drop(VOLUME_ROOT, COOKIE + 1);
	cr_assert_eq(find(VOLUME_ROOT, "b", &e), -ENOENT);
	/* Those that stay keep theirs for life. */
	cr_assert_eq(find(VOLUME_ROOT, "c", &e), 0);
	cr_assert_eq(e.cookie, COOKIE + 2);
	cr_assert_eq(add(VOLUME_ROOT, "d", 13), 1);
	cr_assert_eq(find(VOLUME_ROOT, "d", &e), 0);
	cr_assert_eq(e.inum, 13);
}

Test(dir, put_points_an_entry_elsewhere)
{
	struct dir_name n = { "a", 1, COOKIE };
	struct dir_entry e;
	struct txn x;

	cr_assert_eq(add(VOLUME_ROOT, "a", 10), 0);
	must(txn_begin(&x, t.v, TXN_GROW, 2, 0));
	txn_lock(&x);
	must(dir_prepare(&x, VOLUME_ROOT, COOKIE));
	must(txn_ready(&x, 0));
	dir_put(&x, VOLUME_ROOT, COOKIE, &n, 99, S_IFDIR);
	txn_unlock(&x);
	txn_end(&x);
	cr_assert_eq(find(VOLUME_ROOT, "a", &e), 0);
	cr_assert_eq(e.inum, 99);
	cr_assert_eq(e.type, DT_DIR);
}

/* ---- listing while names come and go */

struct listing {
	uint64_t cookie;
	unsigned int left;	 /* entries until a pause */
	unsigned char seen[400]; /* of the names that stay */
};

static bool note(void *arg, const struct volume_dirent *e)
{
	struct listing *l = arg;

	cr_assert_gt(e->cookie, l->cookie);
	cr_assert_eq(e->cookie >> 63, 0);
	l->cookie = e->cookie;
	if (!strncmp(e->name, "stay", 4))
		l->seen[atoi(e->name + 4)]++;
	return --l->left > 0;
}

Test(dir, listing_neither_skips_nor_repeats_what_stays)
{
	struct listing l = { 0 };
	char name[32];
	unsigned int made = 0, gone = 0;

	for (unsigned int i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "stay%u", i);
		unitvol_file(&t, name);
	}
	for (unsigned int round = 0;; round++) {
		l.left = 1 + round % 7;
		must(volume_readdir(t.v, VOLUME_ROOT, l.cookie, 0, note, &l));
		if (l.left)
			break;
		for (unsigned int i = 0; i < 3; i++) {
			snprintf(name, sizeof(name), "come%u", made++);
			unitvol_file(&t, name);
		}
		for (; gone + 2 < made; gone++) {
			snprintf(name, sizeof(name), "come%u", gone);
			unitvol_unlink(&t, name);
		}
		/* Cookies hold across mounts. */
		if (round % 40 == 0) {
			unitvol_sync(&t);
			unitvol_reopen(&t);
		}
	}
	for (unsigned int i = 0; i < 400; i++)
		cr_assert_eq(l.seen[i], 1, "name %u", i);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
}
