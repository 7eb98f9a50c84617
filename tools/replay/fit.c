/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files end at a multiple of the block size, so that rounding out never leaves
 * them.
 */
#include <assert.h>

#include "tools/replay/fit.h"
#include "tools/replay/touched.h"

#define BLOCK ((uint64_t)TOUCHED_BLOCK)

const char *fit_word(enum fit_policy policy)
{
	static const char *const words[FIT_POLICY_NR] = {
#define X(name, word, text) [name] = (word),
		FIT_POLICIES(X)
#undef X
	};

	return words[policy];
}

static uint64_t round_down(uint64_t n)
{
	return n & ~(BLOCK - 1);
}

/* The greatest result is 2^63 - 4096, the largest file there is. */
static uint64_t round_up(uint64_t n)
{
	const uint64_t most = round_down(INT64_MAX);

	return n > most ? most : round_down(n + BLOCK - 1);
}

static void one_piece(struct fit_result *out, uint64_t offset, uint64_t length)
{
	out->piece[0] = (struct fit_extent){ offset, length };
	out->nr = 1;
}

static void wrap(const struct fit *f, const struct trace_record *rec,
		 struct fit_result *out)
{
	const uint64_t offset = rec->offset % f->size;
	const uint64_t room = f->size - offset;

	if (rec->length >= f->size) {
		out->cut = rec->length > f->size;
		one_piece(out, 0, f->size);
		return;
	}
	one_piece(out, offset, rec->length < room ? rec->length : room);
	if (rec->length > room) {
		out->piece[1] = (struct fit_extent){ 0, rec->length - room };
		out->nr = 2;
		out->split = true;
	}
}

static void scale(const struct fit *f, const struct trace_record *rec,
		  struct fit_result *out)
{
	const uint64_t end = f->end[rec->target];
	uint64_t offset = rec->offset, room;

	if (end > f->size)
		offset = round_down((uint64_t)((unsigned __int128)offset *
					       f->size / end)) +
			 offset % BLOCK;
	/* The last block may have been rounded to its own end. */
	if (offset >= f->size)
		offset = f->size - BLOCK + offset % BLOCK;
	room = f->size - offset;
	out->cut = rec->length > room;
	one_piece(out, offset, out->cut ? room : rec->length);
}

/*
 * Blocks of one operation are all touched (or, of a trim, left out), so they
 * stay together.
 */
static void compact(const struct fit *f, const struct trace_record *rec,
		    struct fit_result *out)
{
	const uint64_t last = rec->offset + rec->length;
	const uint64_t block = rec->offset / BLOCK, end = last / BLOCK;
	uint64_t from = touched_rank(f->touched, rec->target, block) * BLOCK;
	uint64_t to = touched_rank(f->touched, rec->target, end) * BLOCK;

	if (touched_has(f->touched, rec->target, block))
		from += rec->offset % BLOCK;
	if (last % BLOCK && touched_has(f->touched, rec->target, end))
		to += last % BLOCK;
	if (to > from)
		one_piece(out, from, to - from);
}

/* Device caches and direct I/O know only whole blocks. */
static void round_out(struct fit_result *out)
{
	for (unsigned int i = 0; i < out->nr; i++) {
		struct fit_extent *e = &out->piece[i];
		const uint64_t from = round_down(e->offset);
		const uint64_t to = round_up(e->offset + e->length);

		if (to <= from) {
			out->nr = i;
			return;
		}
		out->rounded |= from != e->offset || to - from != e->length;
		*e = (struct fit_extent){ from, to - from };
	}
}

void fit_map(const struct fit *f, const struct trace_record *rec,
	     struct fit_result *out)
{
	*out = (struct fit_result){ 0 };
	if (rec->op > TRACE_TRIM || !rec->length)
		return;
	assert(rec->length <= INT64_MAX - rec->offset);
	switch (f->policy) {
	case FIT_SKIP:
	case FIT_STRICT:
		out->skipped = rec->offset + rec->length > f->size;
		if (!out->skipped)
			one_piece(out, rec->offset, rec->length);
		break;
	case FIT_WRAP:
		wrap(f, rec, out);
		break;
	case FIT_SCALE:
		scale(f, rec, out);
		break;
	case FIT_COMPACT:
		compact(f, rec, out);
		break;
	default:
		one_piece(out, rec->offset, rec->length);
		break;
	}
	if (f->whole_blocks)
		round_out(out);
}

uint64_t fit_file_size(const struct fit *f, uint32_t target, uint64_t end)
{
	if (f->policy == FIT_COMPACT)
		return touched_rank(f->touched, target, INT64_MAX / BLOCK) *
		       BLOCK;
	if (f->policy != FIT_GROW && end > f->size)
		return f->size;
	return round_up(end);
}
