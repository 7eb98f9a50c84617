/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The files or devices that a trace is about, numbered from 0 in the order in
 * which they first appear.
 */
#ifndef TOOLS_REPLAY_TARGETS_H
#define TOOLS_REPLAY_TARGETS_H

#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "tools/replay/span.h"

/* More is not a trace of this kind but one that is read wrongly. */
#define TARGETS_MAX 65536

/* All zero bytes are an empty one. */
struct targets {
	char **name;
	uint32_t nr;
	uint32_t *slot; /* index + 1; 0: free */
	size_t nr_slots;
};

void targets_destroy(struct targets *t);

/*
 * The number of @name, a new one if need be.  Returns 0, -ENOMEM, or -E2BIG
 * for one more than TARGETS_MAX.
 */
must_check int targets_get(struct targets *t, struct span name, uint32_t *id);

#endif
