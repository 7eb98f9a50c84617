/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/fuse.h"
#include "tools/mount_point.h"
#include "tools/mounts.h"

static enum tool_exit unfit(const char *dir, int err)
{
	switch (err) {
	case ENOENT:
		return tool_fail(TOOL_MOUNT_POINT, dir,
				 "no such folder; make it first");
	case ENOTDIR:
		return tool_fail(TOOL_MOUNT_POINT, dir,
				 "not a folder; name one to mount on");
	default:
		return tool_fail(TOOL_MOUNT_POINT, dir,
				 "can't be mounted on: %s",
				 strerrordesc_np(err));
	}
}

/* @e is a mount whose daemon is gone. */
static enum tool_exit clear_dead(const char *dir, const struct mount_entry *e)
{
	int err;

	if (!e->ours)
		return tool_fail(TOOL_MOUNT_POINT, dir,
				 "a dead mount of another program (%s) is "
				 "there; clear it with: umount -l %s",
				 e->type, e->dir);
	err = fuse_unmount(e->dir, FUSE_UNMOUNT_LAZY);
	if (err)
		return tool_fail(TOOL_MOUNT_POINT, dir,
				 "a dead mount is there, which only its owner "
				 "can clear: sudo umount -l %s",
				 e->dir);
	tool_note(dir, "cleared a mount whose daemon had died");
	return TOOL_DONE;
}

/* Dead mounts may be stacked; 64 of them are somebody's joke. */
static enum tool_exit clear_all_dead(const char *dir, const char *resolved)
{
	enum tool_exit code = TOOL_DONE;
	struct stat st;

	for (int i = 0; i < 64 && code == TOOL_DONE; i++) {
		const struct mount_entry *e;
		struct mounts m;

		if (!stat(resolved, &st) || errno != ENOTCONN)
			return TOOL_DONE;
		e = mounts_read(&m) ? NULL : mounts_find(&m, resolved);
		code = e ? clear_dead(dir, e) : unfit(dir, ENOTCONN);
		mounts_destroy(&m);
	}
	return code;
}

/* Returns 0, -ENOTEMPTY, or negative errno. */
static int check_empty(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	int err = 0;

	if (!d)
		return -errno;
	while (!err && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			err = -ENOTEMPTY;
	}
	closedir(d);
	return err;
}

/* A mount over a mount hides the first; nearly always a mistake. */
static enum tool_exit check_not_ours(const char *dir, const char *resolved)
{
	enum tool_exit code = TOOL_DONE;
	const struct mount_entry *e;
	struct mounts m;

	e = mounts_read(&m) ? NULL : mounts_find(&m, resolved);
	if (e && e->ours)
		code = tool_fail(TOOL_MOUNT_POINT, dir,
				 "%s is mounted there already; 'tusk umount' "
				 "it, or name another folder",
				 e->source);
	mounts_destroy(&m);
	return code;
}

/* What fusermount3 asks of an ordinary user's mount point. */
static bool is_usable(const char *resolved, const struct stat *st)
{
	if (geteuid() == 0)
		return true;
	if ((st->st_mode & S_ISVTX) && st->st_uid != geteuid())
		return false;
	return !access(resolved, W_OK);
}

static enum tool_exit check(const char *dir, const char *resolved,
			    enum mount_point_content content)
{
	enum tool_exit code;
	struct stat st;
	int err;

	code = clear_all_dead(dir, resolved);
	if (code != TOOL_DONE)
		return code;
	if (stat(resolved, &st))
		return unfit(dir, errno);
	if (!S_ISDIR(st.st_mode))
		return unfit(dir, ENOTDIR);
	if (!is_usable(resolved, &st))
		return tool_fail(TOOL_MOUNT_POINT, dir,
				 "not yours to mount on: you need a folder "
				 "that you may write to");
	if (content == MOUNT_POINT_WHATEVER)
		return TOOL_DONE;
	code = check_not_ours(dir, resolved);
	if (code != TOOL_DONE)
		return code;
	err = check_empty(resolved);
	if (err == -ENOTEMPTY)
		return tool_fail(TOOL_MOUNT_POINT, dir,
				 "not empty; mount on an empty folder, or with "
				 "-o nonempty over this one");
	return err ? unfit(dir, -err) : TOOL_DONE;
}

enum tool_exit mount_point_check(const char *dir,
				 enum mount_point_content content,
				 char **resolved)
{
	enum tool_exit code;

	*resolved = mounts_resolve(dir);
	if (!*resolved)
		return unfit(dir, errno);
	code = check(dir, *resolved, content);
	if (code != TOOL_DONE) {
		free(*resolved);
		*resolved = NULL;
	}
	return code;
}
