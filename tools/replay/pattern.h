/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Bytes that say where they belong: each 8 depend on seed, target and offset,
 * so that bytes of another place, or of none, are found.  They do not depend on
 * when they were written: an old version of a block looks like the new one.
 */
#ifndef TOOLS_REPLAY_PATTERN_H
#define TOOLS_REPLAY_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern {
	uint64_t seed;
	bool holes; /* zeros are right as well: blocks may have been trimmed */
};

/* The @len bytes of @target at @offset, of any alignment. */
void pattern_make(const struct pattern *p, uint32_t target, uint64_t offset,
		  char *out, size_t len);

/* How many bytes are right before the first wrong one; @len: all are. */
size_t pattern_check(const struct pattern *p, uint32_t target, uint64_t offset,
		     const char *bytes, size_t len);

#endif
