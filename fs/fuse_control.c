/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ioctls of fs/control.h, on the root folder only.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fs/control.h"
#include "fs/fuse_fs.h"
#include "stats/snapshot.h"

/* As much of @from as fits, and always a NUL. */
static void copy_string(char *to, size_t size, const char *from)
{
	size_t len = strnlen(from, size - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

static void fill_info(struct fuse_fs *fs, struct control_info *info)
{
	const struct stats_identity *id = fs->p->identity;

	*info = (struct control_info){
		.version = CONTROL_VERSION,
		.pid = getpid(),
		.flags = volume_is_read_only(fs->volume) ? CONTROL_READ_ONLY
							 : 0,
		.sector_bytes = id->sector_bytes,
		.commit = volume_commit_number(fs->volume),
		.start_unix_seconds = id->start_unix_seconds,
		.epoch_id = id->epoch_id,
	};
	memcpy(info->uuid, fs->p->uuid, sizeof(info->uuid));
	copy_string(info->program, sizeof(info->program), id->version);
	copy_string(info->label, sizeof(info->label), id->label);
	copy_string(info->scheme, sizeof(info->scheme), id->scheme);
	copy_string(info->container, sizeof(info->container),
		    fs->p->container_path);
}

void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
	      struct fuse_file_info *fi, unsigned int flags, const void *in,
	      size_t in_size, size_t out_size)
{
	struct call c = call_begin(req, STATS_OP_ioctl);
	struct control_info info;
	int err;

	if (ino != VOLUME_ROOT || (flags & FUSE_IOCTL_UNRESTRICTED)) {
		call_end(&c, -ENOTTY);
	} else if (cmd == CONTROL_IOC_INFO && out_size >= sizeof(info)) {
		fill_info(c.fs, &info);
		call_count(&c, 0, 0);
		fuse_reply_ioctl(req, 0, &info, sizeof(info));
	} else if (cmd == CONTROL_IOC_SYNC) {
		err = volume_sync(c.fs->volume);
		if (err) {
			call_end(&c, err);
			return;
		}
		call_count(&c, 0, 0);
		fuse_reply_ioctl(req, 0, NULL, 0);
	} else {
		call_end(&c, -ENOTTY);
	}
}
