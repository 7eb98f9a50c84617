/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A trace is read again for each loop; nothing of it stays in memory.
 */
#include <errno.h>
#include <string.h>

#include "tools/replay/bad_lines.h"
#include "tools/replay/source.h"

/* Fill the window.  0 or -EIO. */
static int fill(struct source *s)
{
	while (!s->drained && !order_full(&s->order)) {
		struct trace_record rec;

		switch (trace_next(s->trace, &rec)) {
		case READER_RECORD:
			order_put(&s->order, &rec);
			break;
		case READER_BAD:
			/* Shown and counted when the plan was made. */
			break;
		case READER_FAILED:
			trace_say_failure(s->trace);
			return -EIO;
		case READER_END:
			s->drained = true;
			break;
		}
	}
	return 0;
}

/* 1: there is another loop; 0; or -EIO. */
static int begin_again(struct source *s)
{
	s->loop++;
	/* A trace without a record would be read for ever. */
	if (s->loop == s->loops || !s->schedule.nr)
		return 0;
	if (trace_rewind(s->trace)) {
		trace_say_failure(s->trace);
		return -EIO;
	}
	schedule_again(&s->schedule);
	s->drained = false;
	return 1;
}

static void count(struct source *s, const struct trace_record *rec,
		  const struct fit_result *fitted)
{
	s->zero_length += !rec->length;
	s->skipped += fitted->skipped;
	s->split += fitted->split;
	s->cut += fitted->cut;
	s->rounded += fitted->rounded;
}

/* Whether there is something to do. */
static bool make_io(struct source *s, const struct trace_record *rec,
		    struct engine_io *io)
{
	struct fit_result fitted;

	*io = (struct engine_io){
		.due_ns = schedule_due(&s->schedule, rec->time_ns),
		.target = rec->target,
		.op = rec->op,
		.flags = rec->flags,
	};
	if (rec->op == TRACE_FLUSH)
		return true;
	if (rec->op > TRACE_FLUSH)
		return false;
	fit_map(s->fit, rec, &fitted);
	count(s, rec, &fitted);
	io->nr = fitted.nr;
	memcpy(io->piece, fitted.piece, sizeof(io->piece));
	return io->nr > 0;
}

int source_next(void *source, struct engine_io *io)
{
	struct source *s = source;
	struct trace_record rec;

	for (;;) {
		int err = fill(s);

		if (!err && !order_take(&s->order, &rec)) {
			err = begin_again(s);
			if (err == 1)
				continue;
			return err;
		}
		if (err)
			return err;
		if (make_io(s, &rec, io))
			return 1;
	}
}
