/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A naive file system in memory that tells what is right: the operations of
 * fs/volume.h with the same results and errno values.  Arrays, no cleverness,
 * no durability.  tests/model/host-test.c compares it with the host's own file
 * system, so that what other tests measure against is itself measured.
 *
 * Where Linux leaves a choice the model does what volume.h says, else what
 * ext4 does; reading does not move access times.  Not thread-safe.
 */
#ifndef TESTS_SUPPORT_REFMODEL_H
#define TESTS_SUPPORT_REFMODEL_H

#include "fs/volume.h"
#include "tests/support/fsapi.h"

struct refdata;
struct refmodel;

/*
 * An empty file system whose root has the attributes @root (times and owner,
 * as volume_format() and a clock left them).
 *
 * @now  the clock; must stand still during an operation if times are to agree
 */
struct refmodel *refmodel_new(const struct attr *root,
			      void (*now)(struct timespec *ts));
struct refmodel *refmodel_clone(const struct refmodel *m);
void refmodel_free(struct refmodel *m);

/* @fs is a struct refmodel. */
extern const struct fsapi_ops fsapi_refmodel;

/* What a remount does: inodes without a name go. */
void refmodel_drop_orphans(struct refmodel *m);

/*
 * The next new inode gets number @next, which is not below refmodel_inum_end():
 * so that what is left out of a history does not change later numbers.
 */
void refmodel_skip_to(struct refmodel *m, inum_t next);

/* For choosing what to do next, and for looking inside. */
inum_t refmodel_inum_end(const struct refmodel *m); /* all are below */
bool refmodel_exists(const struct refmodel *m, inum_t ino);
const struct attr *refmodel_attr(const struct refmodel *m, inum_t ino);
size_t refmodel_nr_entries(const struct refmodel *m, inum_t dir);
const char *refmodel_entry(const struct refmodel *m, inum_t dir, size_t index,
			   inum_t *ino);
size_t refmodel_nr_xattrs(const struct refmodel *m, inum_t ino);
const char *refmodel_xattr_name(const struct refmodel *m, inum_t ino,
				size_t index);
const struct refdata *refmodel_data(const struct refmodel *m, inum_t ino);
size_t refmodel_nr_inodes(const struct refmodel *m);
uint64_t refmodel_nr_blocks(const struct refmodel *m); /* of data, 4096 B */

/*
 * A volume may do part of a large write before it fails: make the model's
 * file that has the same content (the longest prefix of the new bytes that
 * @fs shows) and times of @fs.  Returns false, after saying why on stderr, if
 * what @fs shows is neither old nor a prefix.
 */
bool refmodel_partial_write(struct refmodel *m, inum_t ino, uint64_t offset,
			    size_t len, const void *buf, const struct fsapi *fs,
			    inum_t fs_ino);

#endif
