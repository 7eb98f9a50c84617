/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A container on an emulated disk with an empty file system in it, for tests
 * that go through the front door.
 */
#ifndef TESTS_SUPPORT_TESTVOL_H
#define TESTS_SUPPORT_TESTVOL_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/check.h"
#include "fs/header.h"
#include "fs/volume.h"
#include "tests/support/emudev.h"
#include "tests/support/rng.h"

struct testvol_shape {
	const struct scheme *scheme;
	uint32_t sector_bytes;
	bool integrity;
	uint64_t limit_blocks; /* of the container; 0: none */
	uint64_t host_bytes;   /* how far the disk can grow */
	size_t cache_bytes;
	unsigned int max_node_items;
	unsigned int commit_seconds;
	enum volume_atime atime;
};

struct testvol {
	struct testvol_shape shape;
	struct emudev *d;
	struct header h;
	struct header_keys keys;
	struct nonce_source src;
	struct volume *v; /* NULL: not open */
	bool quiet;	  /* no lines from the volume on stderr */
};

/* Any shape, by chance; the host has room. */
void testvol_shape_random(struct testvol_shape *s, struct rng *r);
void testvol_shape_print(const struct testvol_shape *s, char *out, size_t size);

/*
 * Make the container, not open yet, with an empty log of events.  Aborts if
 * that fails: there is nothing to test then.
 */
void testvol_make(struct testvol *t, const struct testvol_shape *s);
/* An open volume is abandoned. */
void testvol_destroy(struct testvol *t);

/* With the clock of lockstep.h.  0 or negative errno, said on stderr. */
must_check int testvol_open(struct testvol *t);
must_check int testvol_close(struct testvol *t);
void testvol_abandon(struct testvol *t);

/*
 * Open another disk as if it were this container, such as what is left of it
 * after a crash; t->shape and the clock hold for it too.
 */
must_check int testvol_open_image(const struct testvol *t, struct emudev *d,
				  struct volume **out);

/*
 * Check a container that is not open, data too.  False after saying on stderr
 * what is wrong.
 */
must_check bool testvol_check(const struct testvol *t, struct emudev *d,
			      struct check_result *r);

#endif
