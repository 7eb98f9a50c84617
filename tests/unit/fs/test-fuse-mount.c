/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What fusermount3 is told; the mounting itself is tests/mount/.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/mount.h>

#include "fs/fuse_mount.h"

static void expect(const struct fuse_params *p, const char *text)
{
	char *options = mount_helper_options(p);

	cr_assert_str_eq(options, text);
	free(options);
}

Test(fuse_mount, plain)
{
	const struct fuse_params p = { .source = "/home/a/vault.tusk" };

	expect(&p, "default_permissions,rw,subtype=tuskfs,"
		   "fsname=/home/a/vault.tusk");
}

Test(fuse_mount, all_words)
{
	const struct fuse_params p = {
		.source = "v",
		.mount_flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC |
			       MS_SYNCHRONOUS | MS_DIRSYNC | MS_NOATIME |
			       MS_NODIRATIME,
		.allow_other = true,
		.no_subtype = true,
	};

	expect(&p, "default_permissions,ro,nosuid,nodev,noexec,sync,dirsync,"
		   "noatime,allow_other,fsname=v");
}

/* A comma in a file's name must not smuggle in an option. */
Test(fuse_mount, source_is_escaped)
{
	const struct fuse_params p = { .source = "a,allow_other\\,b c=d" };

	expect(&p, "default_permissions,rw,subtype=tuskfs,"
		   "fsname=a\\,allow_other\\\\\\,b c=d");
}
