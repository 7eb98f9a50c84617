/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * grow, strict and compact know all they need after one reading.  For the
 * others the blocks that get touched follow from the policy itself, so the
 * trace is mapped in a second reading.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "tools/replay/plan.h"
#include "tools/units.h"

/* Of the space that is wanted: metadata of a container, and some more. */
#define RESERVE_BYTES (UINT64_C(32) << 20)
#define RESERVE_SHARE 32

static enum tool_exit fail_touched(int err)
{
	if (err != -E2BIG)
		return tool_fail_errno(TOOL_AT_ANY, NULL, err);
	return tool_fail(TOOL_FAILED, NULL,
			 "the trace is spread over more than 4 TiB; use --fit "
			 "wrap or scale, with --size");
}

/* A block of 4096 may be rounded out to under --direct; it is the same one. */
static int touch(struct touched *t, uint32_t target,
		 const struct fit_result *fitted)
{
	int err = 0;

	for (unsigned int i = 0; i < fitted->nr && !err; i++)
		err = touched_add(t, target, fitted->piece[i].offset,
				  fitted->piece[i].length);
	return err;
}

static bool needs_second_reading(const struct plan *p)
{
	return p->fit.policy == FIT_WRAP || p->fit.policy == FIT_SCALE ||
	       p->fit.policy == FIT_SKIP;
}

static enum tool_exit first_record(struct plan *p,
				   const struct trace_record *rec)
{
	int err = totals_add(&p->totals, rec);

	if (err)
		return tool_fail_errno(TOOL_AT_ANY, NULL, err);
	if (rec->op > TRACE_WRITE || needs_second_reading(p))
		return TOOL_DONE;
	err = touched_add(p->raw, rec->target, rec->offset, rec->length);
	return err ? fail_touched(err) : TOOL_DONE;
}

static enum tool_exit second_record(struct plan *p,
				    const struct trace_record *rec)
{
	struct fit_result fitted;
	int err;

	if (rec->op > TRACE_WRITE)
		return TOOL_DONE;
	fit_map(&p->fit, rec, &fitted);
	err = touch(p->touched, rec->target, &fitted);
	return err ? fail_touched(err) : TOOL_DONE;
}

/* @bad: NULL where they were counted before. */
static enum tool_exit
read_all(struct plan *p, struct bad_lines *bad,
	 enum tool_exit (*take)(struct plan *, const struct trace_record *))
{
	enum tool_exit code = TOOL_DONE;

	while (code == TOOL_DONE) {
		struct trace_record rec;

		switch (trace_next(&p->trace, &rec)) {
		case READER_RECORD:
			code = take(p, &rec);
			break;
		case READER_BAD:
			if (bad)
				code = bad_lines_take(bad, &p->trace);
			break;
		case READER_FAILED:
			return trace_say_failure(&p->trace);
		case READER_END:
			if (bad)
				bad_lines_end(bad);
			return TOOL_DONE;
		}
	}
	return code;
}

static enum tool_exit copy_ends(struct plan *p)
{
	p->nr_files = p->trace.targets.nr;
	p->end = calloc((size_t)p->nr_files + 1, sizeof(*p->end));
	p->size = calloc((size_t)p->nr_files + 1, sizeof(*p->size));
	if (!p->end || !p->size)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	for (uint32_t i = 0; i < p->totals.nr_targets; i++)
		p->end[i] = p->totals.target[i].max_end;
	p->fit.end = p->end;
	return TOOL_DONE;
}

static enum tool_exit check_strict(const struct plan *p)
{
	for (uint32_t i = 0; i < p->nr_files; i++)
		if (p->end[i] > p->fit.size)
			return tool_fail(TOOL_FAILED, p->trace.targets.name[i],
					 "the trace needs %" PRIu64 " bytes of "
					 "it, more than --size; --fit has "
					 "other policies",
					 p->end[i]);
	return TOOL_DONE;
}

static enum tool_exit map_blocks(struct plan *p)
{
	enum tool_exit code = TOOL_DONE;

	if (p->fit.policy == FIT_STRICT)
		code = check_strict(p);
	if (code != TOOL_DONE || !needs_second_reading(p)) {
		p->touched = p->raw;
		return code;
	}
	p->touched = touched_new();
	if (!p->touched)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	if (trace_rewind(&p->trace))
		return trace_say_failure(&p->trace);
	code = read_all(p, NULL, second_record);
	touched_seal(p->touched);
	return code;
}

/* compact: the blocks side by side, from 0 on, are the files. */
static enum tool_exit close_ranks(struct plan *p)
{
	p->touched = touched_new();
	if (!p->touched)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	for (uint32_t i = 0; i < p->nr_files; i++) {
		const int err = touched_add(p->touched, i, 0, p->size[i]);

		if (err)
			return fail_touched(err);
	}
	touched_seal(p->touched);
	return TOOL_DONE;
}

static void set_fit(struct plan *p, const struct plan_options *o)
{
	p->fit.policy = o->fit;
	p->fit.size = o->size.given ? o->size.value : FIT_SIZE_DEFAULT;
	p->fit.size -= p->fit.size % TOUCHED_BLOCK;
	p->fit.whole_blocks = o->direct;
}

static enum tool_exit read_trace(struct plan *p)
{
	enum tool_exit code = read_all(p, &p->bad, first_record);

	trace_format_name(&p->trace, p->format);
	p->times = trace_times(&p->trace);
	touched_seal(p->raw);
	p->fit.touched = p->raw;
	if (code == TOOL_DONE)
		code = copy_ends(p);
	if (code == TOOL_DONE && !p->totals.records)
		code = tool_fail(TOOL_FAILED, p->trace.file[0].path,
				 "has no record to replay");
	return code;
}

enum tool_exit plan_make(struct plan *p, char *const *paths, size_t nr,
			 const struct plan_options *o)
{
	enum tool_exit code;

	*p = (struct plan){ .bad.strict = o->strict };
	set_fit(p, o);
	p->raw = touched_new();
	if (!p->raw)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	if (trace_open(&p->trace, paths, nr, &o->reader, TRACE_AGAIN))
		return trace_say_failure(&p->trace);
	code = read_trace(p);
	if (code == TOOL_DONE)
		code = map_blocks(p);
	if (code != TOOL_DONE)
		return code;
	for (uint32_t i = 0; i < p->nr_files; i++)
		p->size[i] = fit_file_size(&p->fit, i, p->end[i]);
	return p->fit.policy == FIT_COMPACT ? close_ranks(p) : TOOL_DONE;
}

void plan_destroy(struct plan *p)
{
	trace_close(&p->trace);
	totals_destroy(&p->totals);
	if (p->touched != p->raw)
		touched_free(p->touched);
	touched_free(p->raw);
	free(p->end);
	free(p->size);
	*p = (struct plan){ 0 };
}

uint64_t plan_bytes(const struct plan *p)
{
	return touched_blocks(p->touched) * TOUCHED_BLOCK;
}

enum tool_exit plan_check_space(const struct plan *p, const char *dir)
{
	char need_text[UNITS_TEXT_BYTES], free_text[UNITS_TEXT_BYTES];
	uint64_t need = plan_bytes(p), available;
	struct statvfs s;

	need += need / RESERVE_SHARE + RESERVE_BYTES;
	if (statvfs(dir, &s))
		return tool_fail(TOOL_FAILED, dir, "%s",
				 strerrordesc_np(errno));
	if (__builtin_mul_overflow((uint64_t)s.f_bavail, (uint64_t)s.f_frsize,
				   &available))
		available = UINT64_MAX;
	if (available >= need)
		return TOOL_DONE;
	units_format_size(need, need_text);
	units_format_size(available, free_text);
	return tool_fail(TOOL_NO_SPACE, dir,
			 "the replay needs %s and %s are free; make room, or "
			 "use --fit wrap with --size",
			 need_text, free_text);
}
