/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where on our files the addresses of a trace go.  Its devices had terabytes;
 * what is there may be small.  Every policy is a pure function of the record,
 * so that two replays do the same.
 */
#ifndef TOOLS_REPLAY_FIT_H
#define TOOLS_REPLAY_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/replay/record.h"

struct touched;

/* X(name, word, what --help says) */
#define FIT_POLICIES(X)                                                       \
	X(FIT_GROW, "grow",                                                   \
	  "each file as large as the trace needs, with holes (the default)")  \
	X(FIT_STRICT, "strict", "as grow, but refuse a trace beyond --size")  \
	X(FIT_WRAP, "wrap",                                                   \
	  "offsets modulo --size; what crosses the end is split in two")      \
	X(FIT_SCALE, "scale",                                                 \
	  "offsets shrunk in proportion to --size, by whole 4 KiB blocks")    \
	X(FIT_COMPACT, "compact",                                             \
	  "the blocks that the trace touches side by side, without the gaps") \
	X(FIT_SKIP, "skip", "what ends beyond --size is left out and counted")

enum fit_policy {
#define X(name, word, text) name,
	FIT_POLICIES(X)
#undef X
	FIT_POLICY_NR,
};

/* The --fit word; static. */
const char *fit_word(enum fit_policy policy);

/* Of --size where it is not given. */
#define FIT_SIZE_DEFAULT (UINT64_C(1) << 30)
/* The least --size: no block is left without a place. */
#define FIT_SIZE_MIN (UINT64_C(1) << 20)

struct fit {
	enum fit_policy policy;
	uint64_t size; /* of each file, at most; a multiple of 4096.  Not for
			   grow and compact */
	bool whole_blocks;   /* direct I/O: rounded out to 4096 bytes */
	const uint64_t *end; /* scale: for each target, where the trace ends */
	const struct touched *touched; /* compact: sealed */
};

struct fit_extent {
	uint64_t offset, length;
};

/* What became of one record. */
struct fit_result {
	struct fit_extent piece[2];
	unsigned int nr; /* 0: nothing is to be done */
	bool skipped;	 /* beyond the size */
	bool split;	 /* crossed the end */
	bool cut;	 /* longer than the whole file */
	bool rounded;	 /* to whole blocks */
};

/* Of a read, write or trim; for others and for no length nr is 0. */
void fit_map(const struct fit *f, const struct trace_record *rec,
	     struct fit_result *out);

/*
 * How large the file of @target must be when the trace ends at @end there, a
 * multiple of 4096 (below 2^63).
 */
uint64_t fit_file_size(const struct fit *f, uint32_t target, uint64_t end);

#endif
