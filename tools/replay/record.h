/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What every trace is made of, whatever program wrote it: one record for each
 * operation.  All numbers are whole; offsets and lengths are bytes.
 */
#ifndef TOOLS_REPLAY_RECORD_H
#define TOOLS_REPLAY_RECORD_H

#include <stdint.h>

enum trace_op {
	TRACE_READ,
	TRACE_WRITE,
	TRACE_TRIM,
	TRACE_FLUSH, /* of all the target; offset and length are 0 */
	TRACE_OPEN,
	TRACE_CLOSE,
	TRACE_OTHER,
	TRACE_OP_NR,
};

enum trace_flags {
	TRACE_PREFLUSH = 1 << 0,  /* what was written before is durable first */
	TRACE_FUA = 1 << 1,	  /* a write that is durable when it is done */
	TRACE_SYNC = 1 << 2,	  /* somebody waited for it */
	TRACE_META = 1 << 3,	  /* of a file system's own structures */
	TRACE_READAHEAD = 1 << 4, /* nobody asked for it yet */
	TRACE_DATA_ONLY = 1 << 5, /* a flush as fdatasync(2) does it */
};

struct trace_record {
	/* In the trace's own epoch, which may be 1601, 1970 or its start. */
	uint64_t time_ns;
	uint64_t offset, length; /* offset + length <= 2^63 - 1 */
	uint32_t target;	 /* index in the trace's struct targets */
	uint16_t flags;
	uint8_t op; /* enum trace_op */
};

/* "read", "write", ...; static. */
const char *trace_op_name(enum trace_op op);

#endif
