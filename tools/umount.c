/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk umount: when it returns 0, the container is free and all is on the
 * disk, not merely out of sight: it waits for the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs/fuse.h"
#include "tools/commands.h"
#include "tools/holders.h"
#include "tools/mounts.h"

#define TIMEOUT_MS 60000

struct umount {
	bool lazy, force;
	struct option_number timeout; /* milliseconds */

	const char *dir; /* as given */
	char *resolved;
	struct mounts mounts;
	const struct mount_entry *entry;
	int pid, pid_fd;     /* of the daemon; 0, -1: unknown */
	enum tool_exit code; /* what went wrong on the way, if anything */
};

/* Whether process @pid is called as we are: pids of other name spaces lie. */
static bool is_tusk(int pid)
{
	char path[48], name[32] = "", own[32] = "";
	FILE *in;

	in = fopen("/proc/self/comm", "re");
	if (in) {
		if (!fgets(own, sizeof(own), in))
			own[0] = '\0';
		fclose(in);
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	in = fopen(path, "re");
	if (!in)
		return false;
	if (!fgets(name, sizeof(name), in))
		name[0] = '\0';
	fclose(in);
	return !strcmp(name, own) || !strcmp(name, "tusk\n");
}

/*
 * A descriptor of the daemon, taken while it surely lives: later its number
 * might be another process's.
 */
static void watch_daemon(struct umount *u, const struct control_info *info)
{
	u->pid = info->pid;
	u->pid_fd = (int)syscall(SYS_pidfd_open, info->pid, 0);
	if (u->pid_fd >= 0 && !is_tusk(info->pid)) {
		close(u->pid_fd);
		u->pid_fd = -1;
	}
}

/*
 * Unmounting writes everything too, but could tell nobody of an error.  The
 * kernel's dirty pages first, then what the daemon has.
 */
static void sync_mount(struct umount *u)
{
	int fd = open(u->resolved, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool failed;

	if (fd < 0)
		return;
	/*
	 * That some write met a full disk the kernel remembers until somebody
	 * asks, long after the program that made it was told.
	 */
	failed = syncfs(fd);
	if (failed && errno == ENOSPC) {
		tool_warn(u->dir, "some write since the mount found no space");
		failed = false;
	}
	if (failed || ioctl(fd, CONTROL_IOC_SYNC))
		u->code = tool_fail(TOOL_FAILED, u->dir,
				    "some of the last changes could not be "
				    "written: %s; unmounting all the same",
				    strerrordesc_np(errno));
	close(fd);
}

static enum tool_exit fail_busy(const struct umount *u)
{
	char holders[HOLDERS_TEXT_BYTES];

	if (holders_find(u->entry->dev, holders))
		return tool_fail(TOOL_IN_USE, u->dir,
				 "in use by %s; end that, or use --lazy",
				 holders);
	return tool_fail(TOOL_IN_USE, u->dir,
			 "in use, perhaps by another user's process; 'sudo "
			 "fuser -vm' tells, or use --lazy");
}

static enum tool_exit fail_unmount(const struct umount *u, int err)
{
	switch (err) {
	case -EBUSY:
		return fail_busy(u);
	case -EPERM:
		if (u->entry->user == getuid())
			return tool_fail(TOOL_FAILED, u->dir,
					 "fusermount3 refused; 'fusermount3 -u "
					 "%s' says why", u->resolved);
		return tool_fail(TOOL_FAILED, u->dir,
				 "not permitted; it was mounted by user %u",
				 u->entry->user);
	case -ENOENT:
		return tool_fail(TOOL_NO_FUSE, NULL,
				 "fusermount3 was not found; install the "
				 "package fuse3");
	default:
		return tool_fail(TOOL_FAILED, u->dir, "can't be unmounted: %s",
				 strerrordesc_np(-err));
	}
}

static enum tool_exit wait_for_daemon(const struct umount *u)
{
	struct pollfd p = { .fd = u->pid_fd, .events = POLLIN };
	unsigned long long ms = u->timeout.given ? u->timeout.value
						 : TIMEOUT_MS;
	int nr;

	if (u->pid_fd < 0)
		return u->code;
	do {
		nr = poll(&p, 1, ms > INT32_MAX ? -1 : (int)ms);
	} while (nr < 0 && errno == EINTR);
	if (nr > 0)
		return u->code;
	return tool_fail(TOOL_FAILED, u->dir,
			 "unmounted, but process %d still has the container "
			 "after %llu s: it is writing, or the mount has a copy "
			 "in another mount name space",
			 u->pid, ms / 1000);
}

/* Nothing to save: nobody is left who could. */
static enum tool_exit unmount_dead(struct umount *u)
{
	int err = fuse_unmount(u->resolved, FUSE_UNMOUNT_LAZY);

	if (err)
		return fail_unmount(u, err);
	tool_note(u->dir, "its daemon had died; the mount is cleared away");
	return TOOL_DONE;
}

static enum tool_exit unmount_lazily(struct umount *u)
{
	int err = fuse_unmount(u->resolved, FUSE_UNMOUNT_LAZY);

	if (err)
		return fail_unmount(u, err);
	if (u->pid)
		tool_note(u->dir,
			  "out of sight; process %d ends when nobody "
			  "uses it any more",
			  u->pid);
	return u->code;
}

/* Requests in flight fail, and what the kernel holds is lost. */
static enum tool_exit unmount_by_force(struct umount *u)
{
	int err = fuse_unmount(u->resolved, FUSE_UNMOUNT_FORCE);

	if (err == -EPERM)
		return tool_fail(TOOL_FAILED, u->dir,
				 "--force is for root; without it, --lazy");
	/* Aborted, and still open somewhere. */
	if (err == -EBUSY)
		err = fuse_unmount(u->resolved, FUSE_UNMOUNT_LAZY);
	return err ? fail_unmount(u, err) : wait_for_daemon(u);
}

static enum tool_exit unmount(struct umount *u)
{
	int err;

	sync_mount(u);
	if (u->lazy)
		return unmount_lazily(u);
	err = fuse_unmount(u->resolved, FUSE_UNMOUNT);
	return err ? fail_unmount(u, err) : wait_for_daemon(u);
}

static enum tool_exit fail_not_ours(const struct umount *u)
{
	return tool_fail(TOOL_MOUNT_POINT, u->dir,
			 "a mount of type %s, not of tuskfs; use umount",
			 u->entry->type);
}

static enum tool_exit ask_and_unmount(struct umount *u)
{
	struct control_info info;
	int err;

	/* The only type ours may have but its own. */
	if (!u->entry->ours && strcmp(u->entry->type, "fuse") != 0)
		return fail_not_ours(u);
	err = mounts_ask(u->entry, &info);
	if (!u->entry->ours && err)
		return fail_not_ours(u);
	if (!err)
		watch_daemon(u, &info);
	if (err == -ENOTCONN)
		return unmount_dead(u);
	if (u->force)
		return unmount_by_force(u);
	if (err != -ETIMEDOUT)
		return unmount(u);
	if (u->lazy)
		return unmount_lazily(u);
	return tool_fail(TOOL_FAILED, u->dir,
			 "its daemon does not answer; --lazy takes it out of "
			 "sight, --force (root) gives up what is unwritten");
}

static enum tool_exit find_and_unmount(struct umount *u)
{
	u->resolved = mounts_resolve(u->dir);
	if (!u->resolved)
		return tool_fail(TOOL_MOUNT_POINT, u->dir, "%s",
				 strerrordesc_np(errno));
	if (mounts_read(&u->mounts))
		return tool_fail(TOOL_FAILED, "/proc/self/mountinfo",
				 "can't be read; is /proc mounted?");
	u->entry = mounts_find(&u->mounts, u->resolved);
	if (!u->entry)
		return tool_fail(TOOL_MOUNT_POINT, u->dir,
				 "nothing is mounted there; see 'tusk list'");
	return ask_and_unmount(u);
}

static enum tool_exit umount_run(void *state, char **args)
{
	struct umount *u = state;
	enum tool_exit code;

	if (u->lazy && u->force)
		return tool_fail(TOOL_USAGE, NULL,
				 "--lazy and --force exclude each other");
	u->dir = args[0];
	u->pid_fd = -1;
	u->code = TOOL_DONE;
	code = find_and_unmount(u);
	if (u->pid_fd >= 0)
		close(u->pid_fd);
	mounts_destroy(&u->mounts);
	free(u->resolved);
	return code;
}

static const struct tool_option umount_options[] = {
	{ "lazy", 'l', NULL, offsetof(struct umount, lazy), option_flag,
	  "Take the mount out of sight now; its daemon goes on until nobody "
	  "uses it any more." },
	{ "force", 'f', NULL, offsetof(struct umount, force), option_flag,
	  "Give up requests in flight and unwritten data, for a daemon that "
	  "hangs; root only." },
	{ "timeout", 't', "SECONDS", offsetof(struct umount, timeout),
	  option_seconds,
	  "How long to wait for the daemon's end; 60 by default." },
	{ 0 },
};

static const char *const umount_text[] = {
	"Write everything, unmount DIR, and wait for its daemon to end: then "
	"the container can be mounted again, copied or taken away.",
	"Where the daemon had died, the dead mount is cleared away.",
	NULL,
};

static const char *const umount_examples[] = {
	"tusk umount ~/Private",
	"tusk umount --lazy ~/Private",
	NULL,
};

const struct tool_command umount_command = {
	.name = "umount",
	.args = "DIR",
	.min_args = 1,
	.max_args = 1,
	.summary = "unmount, and wait until all is written",
	.text = umount_text,
	.examples = umount_examples,
	.options = umount_options,
	.state_bytes = sizeof(struct umount),
	.run = umount_run,
};
