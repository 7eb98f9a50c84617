/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lines of mountinfo(5).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "tools/mounts.h"

static bool parse(const char *line, struct mount_entry *e)
{
	char *copy = strdup(line);
	const bool ok = mounts_parse_line(copy, e);

	free(copy);
	return ok;
}

Test(mounts, a_mount_of_ours)
{
	struct mount_entry e;

	cr_assert(parse("61 29 0:52 / /home/a/Private rw,nosuid,relatime "
			"shared:7 - fuse.tuskfs /home/a/v.tusk "
			"rw,user_id=1000,group_id=100,default_permissions\n",
			&e));
	cr_assert_eq(e.dev, makedev(0, 52));
	cr_assert_str_eq(e.dir, "/home/a/Private");
	cr_assert_str_eq(e.type, "fuse.tuskfs");
	cr_assert_str_eq(e.source, "/home/a/v.tusk");
	cr_assert(e.ours);
	cr_assert_not(e.read_only);
	cr_assert_eq(e.user, 1000);
	cr_assert_eq(e.group, 100);
	mount_entry_destroy(&e);
}

Test(mounts, escapes_and_optional_fields)
{
	struct mount_entry e;

	cr_assert(parse("61 29 0:52 / /a\\040b\\134c ro,relatime shared:7 "
			"master:2 - fuse.tuskfs v\\011w ro,user_id=0\n",
			&e));
	cr_assert_str_eq(e.dir, "/a b\\c");
	cr_assert_str_eq(e.source, "v\tw");
	cr_assert(e.read_only);
	mount_entry_destroy(&e);
	cr_assert(parse("22 1 8:1 / / rw - ext4 /dev/root rw,discard\n", &e));
	cr_assert_not(e.ours);
	cr_assert_eq(e.user, 0);
	mount_entry_destroy(&e);
}

Test(mounts, broken_lines)
{
	struct mount_entry e;

	cr_assert_not(parse("", &e));
	cr_assert_not(parse("\n", &e));
	cr_assert_not(parse("61 29 0:52 / /dir rw shared:7\n", &e));
	cr_assert_not(parse("61 29 x / /dir rw - fuse.tuskfs v rw\n", &e));
	cr_assert_not(parse("61 29 0:52 / /dir rw - fuse.tuskfs v\n", &e));
}

/* The later one of two at one place is on top. */
Test(mounts, find_takes_the_top)
{
	struct mount_entry entry[] = {
		{ .dir = (char *)"/m", .source = (char *)"below" },
		{ .dir = (char *)"/other", .source = (char *)"other" },
		{ .dir = (char *)"/m", .source = (char *)"top" },
	};
	const struct mounts m = { .entry = entry, .nr = 3 };

	cr_assert_str_eq(mounts_find(&m, "/m")->source, "top");
	cr_assert_null(mounts_find(&m, "/m/"));
}

Test(mounts, this_machine)
{
	struct mounts m;

	cr_assert_eq(mounts_read(&m), 0);
	cr_assert_gt(m.nr, 0);
	mounts_destroy(&m);
}

Test(mounts, asking_who_cannot_answer)
{
	struct control_info info;

	const struct mount_entry proc = { .dir = (char *)"/proc" };
	const struct mount_entry none = { .dir = (char *)"/nowhere at all" };

	cr_assert_eq(mounts_ask(&proc, &info), -ENOTTY);
	cr_assert_eq(mounts_ask(&none, &info), -ENOENT);
}
