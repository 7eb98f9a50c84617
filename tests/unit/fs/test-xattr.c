/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Extended attributes: sizes at which another piece begins, and pieces that do
 * not fit together.
 */
#include "unitvol.h"

#include <sys/xattr.h>

#include "tests/support/rng.h"

static struct unitvol t;
static inum_t ino;

static void start_xattr(void)
{
	unitvol_start(&t, 0, true);
	ino = unitvol_file(&t, "file");
}

static void start_small(void)
{
	unitvol_start(&t, 4, true);
	ino = unitvol_file(&t, "file");
}

static void end_xattr(void)
{
	unitvol_end(&t);
}

TestSuite(xattr, .init = start_xattr, .fini = end_xattr, .timeout = 60);
TestSuite(xattr_small, .init = start_small, .fini = end_xattr, .timeout = 60);

static uint8_t value[XATTR_BYTES_MAX + 1], back[XATTR_BYTES_MAX + 1];

static void set(const char *name, size_t len, uint64_t pattern)
{
	rng_fill(value, len, pattern);
	must(volume_setxattr(t.v, ino, name, value, len, 0));
}

static void must_get(const char *name, size_t len, uint64_t pattern)
{
	size_t got = 0;

	rng_fill(value, len, pattern);
	must(volume_getxattr(t.v, ino, name, NULL, 0, &got));
	cr_assert_eq(got, len);
	if (!len)
		return;
	must(volume_getxattr(t.v, ino, name, back, len, &got));
	cr_assert_eq(memcmp(back, value, len), 0);
	if (len > 1)
		cr_assert_eq(volume_getxattr(t.v, ino, name, back, len - 1,
					     &got),
			     -ERANGE);
}

static void edge_sizes(void)
{
	static const size_t sizes[] = { 0,
					1,
					2,
					1000,
					2047,
					2048,
					2049,
					4096,
					XATTR_BYTES_MAX - 1,
					XATTR_BYTES_MAX };
	unsigned int nr = 0;

	/* A head of 8, a name of 6: the second piece begins at 1011. */
	for (size_t len = 1000; len <= 1030; len++, nr++) {
		set("user.a", len, len);
		must_get("user.a", len, len);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		set("user.a", sizes[i], i + 1);
		must_get("user.a", sizes[i], i + 1);
		set("user.b", sizes[i], i + 2);
		must_get("user.a", sizes[i], i + 1);
	}
	/* From the largest to nothing and back. */
	set("user.a", 0, 0);
	must_get("user.a", 0, 0);
	must_get("user.b", XATTR_BYTES_MAX, 11);
	unitvol_close(&t);
	unitvol_must_be_clean(&t);
	unitvol_open(&t);
	must_get("user.b", XATTR_BYTES_MAX, 11);
	must_get("user.a", 0, 0);
}

Test(xattr, edge_sizes)
{
	edge_sizes();
}

Test(xattr_small, edge_sizes)
{
	edge_sizes();
}

Test(xattr, what_cannot_be)
{
	char name[257];
	size_t len;

	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	cr_assert_eq(volume_setxattr(t.v, ino, "a", value, XATTR_BYTES_MAX + 1,
				     0),
		     -E2BIG);
	cr_assert_eq(volume_setxattr(t.v, ino, "", value, 1, 0), -EINVAL);
	cr_assert_eq(volume_setxattr(t.v, ino, name, value, 1, 0), -ERANGE);
	name[255] = '\0';
	cr_assert_eq(volume_setxattr(t.v, ino, name, value, XATTR_BYTES_MAX, 0),
		     0);
	cr_assert_eq(volume_setxattr(t.v, ino, name, value, 1, XATTR_CREATE),
		     -EEXIST);
	cr_assert_eq(volume_setxattr(t.v, ino, "b", value, 1, XATTR_REPLACE),
		     -ENODATA);
	cr_assert_eq(volume_getxattr(t.v, ino, "b", back, 9, &len), -ENODATA);
	cr_assert_eq(volume_removexattr(t.v, ino, "b"), -ENODATA);
	cr_assert_eq(volume_removexattr(t.v, ino, name), 0);
	cr_assert_eq(volume_removexattr(t.v, ino, name), -ENODATA);
	cr_assert_eq(volume_setxattr(t.v, ino + 1, "b", value, 1, 0), -ENOENT);
	cr_assert_eq(volume_getxattr(t.v, ino + 1, "b", back, 9, &len),
		     -ENOENT);
	must(volume_listxattr(t.v, ino, NULL, 0, &len));
	cr_assert_eq(len, 0);
}

Test(xattr, list_gives_each_name_once)
{
	bool seen[50] = { 0 };
	char name[16], list[1024];
	size_t len, exact = 0;

	for (unsigned int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "user.%u", i);
		exact += strlen(name) + 1;
		set(name, i * 100, i);
	}
	must(volume_listxattr(t.v, ino, NULL, 0, &len));
	cr_assert_eq(len, exact);
	cr_assert_eq(volume_listxattr(t.v, ino, list, exact - 1, &len),
		     -ERANGE);
	must(volume_listxattr(t.v, ino, list, exact, &len));
	cr_assert_eq(len, exact);
	for (size_t at = 0; at < len; at += strlen(list + at) + 1) {
		int i = atoi(list + at + 5);

		cr_assert(!seen[i]);
		seen[i] = true;
	}
}

/* ---- pieces that do not fit together: a bug of ours would be authentic */

static struct key first_piece(void)
{
	struct key key = key_of(ino, ITEM_XATTR, 0);
	struct tree_pos pos;
	struct txn x;
	int err;

	must(txn_begin(&x, t.v, TXN_READ, 0, 0));
	txn_lock(&x);
	do {
		err = tree_next(&t.v->ft, &key, &pos, &x.fault);
	} while (txn_retry(&x, &err));
	must(err);
	key = pos.key;
	txn_unlock(&x);
	txn_end(&x);
	return key;
}

static void expect_damage(void)
{
	size_t len;

	cr_assert_eq(volume_getxattr(t.v, ino, "user.a", back, sizeof(back),
				     &len),
		     -EUCLEAN);
	cr_assert_eq(volume_setxattr(t.v, ino, "user.a", value, 5, 0),
		     -EUCLEAN);
	cr_assert_eq(volume_removexattr(t.v, ino, "user.a"), -EUCLEAN);
}

Test(xattr, missing_piece_is_damage)
{
	struct key key;

	set("user.a", 5000, 1);
	key = first_piece();
	key.offset += 2;
	unitvol_plant(&t, key, NULL, 0);
	expect_damage();
	unitvol_sync(&t);
	cr_assert_neq(unitvol_check(&t), 0);
	cr_assert(unitvol_said(&t, "without its beginning"), "%s", t.said);
}

Test(xattr, missing_beginning_is_damage)
{
	size_t len;
	char list[64];

	/* The next piece would be read as if it had a head. */
	set("user.a", 1500, 1);
	unitvol_plant(&t, first_piece(), NULL, 0);
	expect_damage();
	cr_assert_eq(volume_listxattr(t.v, ino, list, sizeof(list), &len),
		     -EUCLEAN);
	unitvol_sync(&t);
	cr_assert_neq(unitvol_check(&t), 0);
	cr_assert(unitvol_said(&t, "without its beginning"), "%s", t.said);
}

Test(xattr, piece_too_long_is_damage)
{
	struct key key;
	size_t len;

	set("user.a", 1500, 1);
	key = first_piece();
	key.offset++;
	unitvol_plant(&t, key, value, 1024);
	cr_assert_eq(volume_getxattr(t.v, ino, "user.a", back, sizeof(back),
				     &len),
		     -EUCLEAN);
	unitvol_sync(&t);
	cr_assert_neq(unitvol_check(&t), 0);
}
