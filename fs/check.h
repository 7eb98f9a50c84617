/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads and verifies every structure of a container and proves invariant I5:
 * each allocated block is owned by exactly one pointer, and owned + free +
 * freed + fixed = all.  Used by `tusk check` and by every test.
 */
#ifndef FS_CHECK_H
#define FS_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/types.h"

struct container;
struct header;
struct header_keys;

struct check_options {
	bool data;		/* verify every data block's tag too */
	/* One line per finding, with the path where there is one; may be NULL. */
	void (*report)(void *arg, const char *line);
	void *report_arg;
	/* Now and then: blocks done of all; may be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
};

struct check_result {
	uint64_t errors;	/* findings; 0: clean */
	uint64_t commit;
	bool was_clean;		/* unmounted in order */
	uint64_t files, folders, others, orphans;
	uint64_t nodes;
	uint64_t blocks_total, blocks_fixed, blocks_data, blocks_nodes,
		blocks_freed, blocks_free, blocks_unbacked;
	uint64_t data_checked;	/* blocks whose tag was verified */
};

/*
 * Check the newest commit of @c, which is open at least for reading; nothing is
 * written.  Returns 0 (also with findings: see @r->errors), or negative errno
 * when it could not go on (-EUCLEAN, -EBADMSG: not even a superblock; -EIO;
 * -ENOMEM).
 */
must_check int check_container(struct container *c, const struct header *h,
			       const struct header_keys *keys,
			       const struct check_options *o,
			       struct check_result *r);

#endif
