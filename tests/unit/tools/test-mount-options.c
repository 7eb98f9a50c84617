/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The words after -o.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mount.h>

#include "tools/mount_options.h"

static char last_line[512];

static void keep(int priority, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static struct mount_options good(const char *text)
{
	struct mount_options o = { 0 };

	cr_assert_eq(mount_options_parse(&o, text), TOOL_DONE, "%s", text);
	return o;
}

static void bad(const char *text, const char *part)
{
	struct mount_options o = { 0 };

	tool_set_sink(keep);
	last_line[0] = '\0';
	cr_assert_eq(mount_options_parse(&o, text), TOOL_USAGE, "%s", text);
	cr_assert(strstr(last_line, part), "%s: %s", text, last_line);
	mount_options_destroy(&o);
}

Test(mount_options, flags_and_their_opposites)
{
	cr_assert_eq(good("ro,nosuid,nodev,noexec").flags,
		     MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC);
	cr_assert_eq(good("ro,nosuid,nodev,noexec,rw,suid,dev,exec").flags, 0);
	cr_assert_eq(good("").flags, 0);
	cr_assert_eq(good(",,ro,").flags, MS_RDONLY);
	cr_assert_eq(good("sync,dirsync,async").flags, MS_DIRSYNC);
}

/* As mount(8): what comes later wins. */
Test(mount_options, user_implies_and_later_words_win)
{
	cr_assert_eq(good("user").flags, MS_NOSUID | MS_NODEV | MS_NOEXEC);
	cr_assert_eq(good("user=anna,exec").flags, MS_NOSUID | MS_NODEV);
	cr_assert_eq(good("owner").flags, MS_NOSUID | MS_NODEV);
	cr_assert_eq(good("users,defaults").flags, 0);
}

/* What fstab, util-linux and systemd write. */
Test(mount_options, foreign_words_are_ignored)
{
	struct mount_options o = good(
		"rw,suid,dev,exec,auto,noauto,nofail,_netdev,nouser,relatime,"
		"comment=some thing,comment,x-systemd.automount,"
		"x-systemd.idle-timeout=1min,X-mount.mkdir=0700,uhelper=udisks");

	cr_assert_eq(o.flags, 0);
	cr_assert_eq(o.atime, VOLUME_RELATIME);
}

Test(mount_options, atime)
{
	cr_assert_eq(good("noatime").atime, VOLUME_NOATIME);
	cr_assert_eq(good("noatime").flags, MS_NOATIME);
	cr_assert_eq(good("noatime,strictatime").atime, VOLUME_STRICTATIME);
	cr_assert_eq(good("noatime,strictatime").flags, MS_STRICTATIME);
	cr_assert_eq(good("strictatime,relatime").flags, 0);
}

Test(mount_options, our_own)
{
	struct mount_options o =
		good("allow_other,nonempty,nosubtype,noxattr,nowriteback,"
		     "stats=listed,cache=64M,commit=30");

	cr_assert(o.allow_other && o.nonempty && o.no_subtype && o.no_xattr &&
		  o.no_writeback);
	cr_assert_eq(o.stats, FUSE_STATS_LISTED);
	cr_assert_eq(o.cache_bytes, 64 << 20);
	cr_assert_eq(o.commit_seconds, 30);
	cr_assert_not(good("noxattr,xattr").no_xattr);
	cr_assert_not(good("nowriteback,writeback").no_writeback);
	cr_assert_eq(good("stats=off").stats, FUSE_STATS_OFF);
	cr_assert_eq(good("stats=off,stats=hidden").stats, FUSE_STATS_HIDDEN);
}

/* M11: masks for files and folders apart. */
Test(mount_options, owner_and_masks_M11)
{
	struct fuse_override v;

	v = good("uid=1000,gid=0,fmask=133,dmask=0022").override;
	cr_assert(v.has_uid && v.has_gid && v.has_fmask && v.has_dmask);
	cr_assert_eq(v.uid, 1000);
	cr_assert_eq(v.gid, 0);
	cr_assert_eq(v.fmask, 0133);
	cr_assert_eq(v.dmask, 022);
	v = good("umask=077,fmask=7").override;
	cr_assert_eq(v.fmask, 07);
	cr_assert_eq(v.dmask, 077);
	v = good("").override;
	cr_assert_not(v.has_uid || v.has_gid || v.has_fmask || v.has_dmask);
}

Test(mount_options, values_may_hold_escaped_commas)
{
	struct mount_options o = good("passwordfile=/a\\,b\\\\c,ro");

	cr_assert_str_eq(o.password_file, "/a,b\\c");
	cr_assert_eq(o.flags, MS_RDONLY);
	cr_assert_eq(mount_options_parse(&o, "passwordfile=/x"), TOOL_DONE);
	cr_assert_str_eq(o.password_file, "/x");
	mount_options_destroy(&o);
}

Test(mount_options, what_is_unknown_or_wrong_is_usage)
{
	bad("nosiud", "unknown mount option 'nosiud'");
	bad("remount", "unknown");
	bad("allow_root", "unknown");
	bad("=5", "unknown");
	bad("stats", "needs a value");
	bad("stats=", "needs a value");
	bad("stats=maybe", "hidden, listed or off");
	bad("ro=1", "takes no value");
	bad("allow_other=1", "takes no value");
	bad("cache=lots", "a size");
	bad("cache=1K", "1M is the least");
	bad("commit=0", "seconds");
	bad("commit=3601", "seconds");
	bad("commit=-1", "seconds");
	bad("uid=root", "number");
	bad("uid=4294967295", "number");
	bad("umask=8", "octal");
	bad("umask=1000", "octal");
	bad("fmask=-1", "octal");
	bad("ro,keyfile=/k", "does not have it yet");
}
