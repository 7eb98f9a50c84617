/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a trace adds up to.  A zero-length read or write is a record; flushes
 * have no offset; out of order is a time below that of the record before.
 */
#ifndef TOOLS_REPLAY_TOTALS_H
#define TOOLS_REPLAY_TOTALS_H

#include <stdint.h>

#include "cipher/defs.h"
#include "tools/replay/record.h"

/* Of one target. */
struct target_totals {
	uint64_t max_end;
	uint64_t last_end; /* of its last read or write: what follows on? */
	uint64_t records;
};

/* All zero bytes are those of an empty trace. */
struct trace_totals {
	uint64_t records;
	uint64_t count[TRACE_OP_NR];
	uint64_t bytes[TRACE_OP_NR];
	/* Of reads, writes and trims; 0 if there are none. */
	uint64_t min_offset, max_offset, max_end;
	uint64_t extents; /* how many of them there are */
	uint64_t first_ns, last_ns, previous_ns;
	uint64_t zero_length, out_of_order;
	uint64_t bad_lines; /* the caller's to count */

	/* Of reads and writes. */
	uint64_t sequential;	 /* begins where the target's last one ended */
	uint64_t odd_512;	 /* offset or length no multiple of 512 */
	uint64_t odd_4096;	 /* the same for 4096 */
	uint64_t size_class[65]; /* [n]: length from 2^(n-1) to 2^n - 1 */

	struct target_totals *target;
	uint32_t nr_targets, room;
};

void totals_destroy(struct trace_totals *t);

/* Returns 0 or -ENOMEM. */
must_check int totals_add(struct trace_totals *t,
			  const struct trace_record *rec);

#endif
