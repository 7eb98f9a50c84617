/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * blkparse's default output, one line for each event of a block device:
 *
 *	maj,min cpu seq seconds.nanoseconds pid ACTION RWBS sector + n [name]
 *
 * A request is seen several times on its way: queued (Q), issued to the driver
 * (D), completed (C), and more.  One kind of event is taken, so that each I/O
 * counts once: Q, which is what was asked for before the kernel merged and
 * split it; a trace without Q events by its D, and without these by its C.
 * Which, is known only after some events: they wait in a queue until the first
 * Q comes or the queue is full.
 *
 * RWBS is [F]R|W|D|N[E][F][A][S][M]: an F in front is a flush before, one
 * behind forces the write through.  A write with a flush stays a write.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "tools/replay/reader.h"

#define SECTOR_BYTES UINT64_C(512)
#define DETECT_LINES 50
/* Long enough to see a Q where there are any: each D has one before it. */
#define QUEUE_MAX 4096

enum {
	BLK_DEVICE,
	BLK_CPU,
	BLK_SEQUENCE,
	BLK_TIME,
	BLK_PID,
	BLK_ACTION,
	BLK_RWBS,
	BLK_SECTOR,
	BLK_PLUS,
	BLK_COUNT,
	BLK_REST,
	BLK_NR,
};

/* Kinds of events that may count, the best first. */
static const char kinds[] = "QDC";

struct blkparse_state {
	bool decided;
	bool ended; /* the summary began, or the input ended */
	size_t first, nr;
	struct {
		struct trace_record rec;
		char event;
	} queue[QUEUE_MAX];
};

/* "8,16" */
static bool is_device(struct span s)
{
	struct span part[3];
	uint64_t n;

	return span_fields(s, ',', part, 3) == 2 && !span_number(part[0], &n) &&
	       !span_number(part[1], &n);
}

/* NULL, or what is wrong with the words up to the action. */
static const char *check_head(const struct span *word, size_t nr)
{
	uint64_t n;

	if (nr <= BLK_ACTION)
		return "has too few words";
	if (!is_device(word[BLK_DEVICE]))
		return "does not begin with a device like 8,0";
	if (span_number(word[BLK_CPU], &n) ||
	    span_number(word[BLK_SEQUENCE], &n) ||
	    span_number(word[BLK_PID], &n))
		return "its processor, sequence or process is not a number";
	if (span_seconds(word[BLK_TIME], &n))
		return "its time is not in seconds";
	return NULL;
}

static bool blkparse_detect(struct span bytes)
{
	struct span line, word[BLK_NR];

	for (int i = 0; i < DETECT_LINES && reader_peek_line(&bytes, &line);
	     i++)
		if (!check_head(word, span_words(line, word, BLK_NR)))
			return true;
	return false;
}

static bool has(struct span s, char c)
{
	return s.len && memchr(s.at, c, s.len);
}

/* F before the letter of the operation, and F behind it. */
static unsigned int flags_of(struct span rwbs)
{
	unsigned int flags = 0;
	bool before = true;

	for (size_t i = 0; i < rwbs.len; i++) {
		switch (rwbs.at[i]) {
		case 'R':
		case 'W':
		case 'D':
		case 'N':
			before = false;
			break;
		case 'F':
			flags |= before ? TRACE_PREFLUSH : TRACE_FUA;
			break;
		case 'A':
			flags |= TRACE_READAHEAD;
			break;
		case 'S':
			flags |= TRACE_SYNC;
			break;
		case 'M':
			flags |= TRACE_META;
			break;
		default:
			break;
		}
	}
	return flags;
}

static enum trace_op op_of(struct span rwbs)
{
	if (has(rwbs, 'D'))
		return TRACE_TRIM;
	if (has(rwbs, 'W'))
		return TRACE_WRITE;
	if (has(rwbs, 'R'))
		return TRACE_READ;
	return TRACE_OTHER;
}

/* Sector and count of *@rec; NULL, or what is wrong. */
static const char *read_extent(const struct span *word,
			       struct trace_record *rec)
{
	if (span_number(word[BLK_SECTOR], &rec->offset) ||
	    span_number(word[BLK_COUNT], &rec->length))
		return "its sector or its count is not a number";
	if (__builtin_mul_overflow(rec->offset, SECTOR_BYTES, &rec->offset) ||
	    __builtin_mul_overflow(rec->length, SECTOR_BYTES, &rec->length) ||
	    rec->offset > INT64_MAX || rec->length > INT64_MAX - rec->offset)
		return "ends beyond 2^63 bytes";
	return NULL;
}

/*
 * The I/O of an event that may count.  TRACE_OTHER: there is none, as in a
 * passthrough request (hex bytes in parentheses) or an empty one.  NULL, or
 * what is wrong.
 */
static const char *parse_io(const struct span *word, size_t nr,
			    struct trace_record *rec)
{
	const bool extent = nr > BLK_COUNT && span_is(word[BLK_PLUS], "+");
	const char *reason = NULL;

	if (nr <= BLK_RWBS)
		return "has too few words";
	rec->op = op_of(word[BLK_RWBS]);
	rec->flags = flags_of(word[BLK_RWBS]);
	if (extent)
		reason = read_extent(word, rec);
	if (reason)
		return reason;
	if (rec->length && rec->op != TRACE_OTHER)
		return NULL;
	if (rec->flags & (TRACE_PREFLUSH | TRACE_FUA)) {
		rec->op = TRACE_FLUSH;
		rec->flags &= ~(TRACE_PREFLUSH | TRACE_FUA);
		rec->offset = rec->length = 0;
	} else if (!extent) {
		rec->op = TRACE_OTHER;
	}
	return NULL;
}

static bool is_summary(struct span line)
{
	return (span_begins(line, "CPU") && has(line, '(')) ||
	       span_begins(line, "Total (");
}

/*
 * The next I/O of a kind that may count, with its kind.  READER_END at the end
 * of the events.
 */
static enum reader_result next_event(struct reader *r, struct trace_record *rec,
				     char *event)
{
	struct blkparse_state *s = r->state;
	struct span word[BLK_NR];
	struct input_line line;
	const char *reason;

	for (;;) {
		const enum reader_result result = reader_line(r, &line);
		size_t nr;

		if (result == READER_BAD || result == READER_FAILED)
			return result;
		if (result == READER_END || is_summary(line.text)) {
			s->ended = true;
			return READER_END;
		}
		if (line.text.at[0] == '#')
			continue;
		nr = span_words(line.text, word, BLK_NR);
		reason = check_head(word, nr);
		if (reason)
			return reader_bad(r, line.number, reason);
		*event = word[BLK_ACTION].at[0];
		/* Once decided, or told, the others need no look. */
		if (word[BLK_ACTION].len != 1 ||
		    (r->event ? *event != r->event : !strchr(kinds, *event)))
			continue;
		*rec = (struct trace_record){ 0 };
		reason = parse_io(word, nr, rec);
		if (reason)
			return reader_bad(r, line.number, reason);
		if (rec->op == TRACE_OTHER)
			continue;
		if (span_seconds(word[BLK_TIME], &rec->time_ns))
			return reader_bad(r, line.number, "has no time");
		return reader_target(r, line.number, word[BLK_DEVICE], rec);
	}
}

/* The best kind that is in the queue. */
static char best_kind(const struct blkparse_state *s)
{
	for (const char *k = kinds; *k; k++)
		for (size_t i = 0; i < s->nr; i++)
			if (s->queue[i].event == *k)
				return *k;
	return kinds[0];
}

/* READER_RECORD: decided; else what is to be returned. */
static enum reader_result decide(struct reader *r)
{
	struct blkparse_state *s = r->state;

	while (!s->ended && s->nr < QUEUE_MAX) {
		struct trace_record rec;
		char event = 0;
		const enum reader_result result = next_event(r, &rec, &event);

		if (result == READER_BAD || result == READER_FAILED)
			return result;
		if (result == READER_END)
			break;
		s->queue[s->nr].rec = rec;
		s->queue[s->nr++].event = event;
		if (event == kinds[0])
			break;
	}
	r->event = best_kind(s);
	s->decided = true;
	return READER_RECORD;
}

static enum reader_result blkparse_next(struct reader *r,
					struct trace_record *rec)
{
	struct blkparse_state *s = r->state;
	char event;

	r->times = READER_TIMES;
	if (!s->decided && r->event)
		s->decided = true;
	if (!s->decided) {
		const enum reader_result result = decide(r);

		if (result != READER_RECORD)
			return result;
	}
	while (s->first < s->nr) {
		const size_t i = s->first++;

		if (s->queue[i].event != r->event)
			continue;
		*rec = s->queue[i].rec;
		return READER_RECORD;
	}
	return s->ended ? READER_END : next_event(r, rec, &event);
}

const struct reader_format blkparse_format = {
	.name = "blkparse",
	.summary = "blkparse's text output of a blktrace",
	.detect = blkparse_detect,
	.state_bytes = sizeof(struct blkparse_state),
	.next = blkparse_next,
};
