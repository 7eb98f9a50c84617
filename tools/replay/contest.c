/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run is one contestant in one round; whatever happens in it, what it made is
 * removed before the next.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/replay/contest.h"
#include "tools/replay/format.h"
#include "tools/replay/report.h"
#include "tools/replay/vessel.h"

/* ---- one run ---- */

static bool drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	sync();
	ok = write(fd, "3", 1) == 1;
	close(fd);
	return ok;
}

/* What an ordinary user may: pages of this file that are clean. */
static void advise_away(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		errno = 0;
	close(fd);
}

static void make_cold(struct contest *c, const struct vessel *v,
		      const struct contestant *row)
{
	if (row->scheme)
		advise_away(v->container);
	c->cache = drop_caches() ? CONTEST_DROPPED : CONTEST_ADVISED;
}

static enum folder_cache cache_of(const struct contest *c)
{
	return c->options->plan.direct ? FOLDER_DIRECT : FOLDER_BUFFERED;
}

/* A new daemon, so that nothing is in its memory either. */
static enum tool_exit mount_again(struct contest *c, struct run *r,
				  struct vessel *v,
				  const struct contestant *row)
{
	enum tool_exit code = TOOL_DONE;
	int err;

	if (row->scheme) {
		folder_close(&r->folder);
		code = vessel_unmount(v);
	}
	if (code != TOOL_DONE)
		return code;
	make_cold(c, v, row);
	if (!row->scheme)
		return TOOL_DONE;
	code = vessel_mount(v);
	if (code != TOOL_DONE)
		return code;
	err = folder_find(&r->folder, cache_of(c));
	return err ? tool_fail(TOOL_FAILED, v->point, "%s",
			       strerrordesc_np(-err))
		   : TOOL_DONE;
}

static void take_sample(const struct run_result *r, uint64_t daemon_ns,
			struct contestant *row)
{
	struct engine_kind *both = calloc(1, sizeof(*both));
	struct sample *s = &row->sample[row->nr_samples];

	if (!both)
		return;
	run_both(r, both);
	*s = (struct sample){
		.average = format_rate(run_bytes(r), r->whole_ns),
		.min = r->rate.min,
		.max = r->rate.max,
		.burst = r->rate.burst,
		.iops = format_rate(run_operations(r), r->whole_ns),
		.access = histogram_mean(&both->service),
		.p50 = histogram_percentile(&both->service, 50),
		.p99 = histogram_percentile(&both->service, 99),
		.cpu = r->user_ns + r->system_ns + daemon_ns,
		.elapsed = r->whole_ns,
	};
	row->nr_samples++;
	row->window_ns = r->rate.window_ns;
	row->burst_window_ns = r->rate.burst_window_ns;
	histogram_merge(&row->service, &both->service);
	free(both);
}

static enum tool_exit measure(struct run *r, const struct vessel *v,
			      struct contestant *row)
{
	const uint64_t before = vessel_cpu_ns(v);
	enum tool_exit code = run_start(r);
	const uint64_t after = vessel_cpu_ns(v);

	if (code == TOOL_DONE)
		code = report_exit(&r->result);
	if (code == TOOL_DONE)
		take_sample(&r->result, after - before, row);
	return code;
}

static enum tool_exit prepare(struct contest *c, struct run *r,
			      struct vessel *v, const struct contestant *row)
{
	enum tool_exit code = vessel_make_folder(v, row->dir);

	if (code == TOOL_DONE && row->scheme)
		code = vessel_create(v, row->scheme, row->integrity);
	if (code == TOOL_DONE && row->scheme)
		code = vessel_mount(v);
	if (code == TOOL_DONE)
		code = run_prepare(r, row->scheme ? v->point : v->folder);
	if (code == TOOL_DONE)
		code = mount_again(c, r, v, row);
	return code;
}

static enum tool_exit run_row(struct contest *c, struct contestant *row,
			      const char *label)
{
	struct run *r = calloc(1, sizeof(*r));
	struct vessel v = { 0 };
	enum tool_exit code, end;

	if (!r)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	r->plan = c->plan;
	r->options = c->options;
	r->interrupt = c->interrupt;
	r->show_progress = c->show_progress;
	r->label = label;
	r->folder.fd = -1;

	code = prepare(c, r, &v, row);
	if (code == TOOL_DONE)
		code = measure(r, &v, row);
	/* The container goes as a whole. */
	end = run_end(r, row->scheme ? FOLDER_KEEP : FOLDER_REMOVE);
	if (code == TOOL_DONE)
		code = end;
	end = vessel_destroy(&v);
	free(r);
	return code == TOOL_DONE ? end : code;
}

/* ---- all runs ---- */

size_t contest_order(size_t nr_rows, unsigned int round, size_t nth)
{
	assert(nth < nr_rows);
	return (nth + round) % nr_rows;
}

static enum tool_exit run_round(struct contest *c, unsigned int round)
{
	for (size_t i = 0; i < c->nr_rows; i++) {
		struct contestant *row =
			&c->row[contest_order(c->nr_rows, round, i)];
		enum tool_exit code;
		char label[128];

		snprintf(label, sizeof(label), "round %u of %u, %s", round + 1,
			 c->nr_rounds, row->name);
		code = run_row(c, row, label);
		if (atomic_load(c->interrupt))
			return TOOL_INTERRUPTED;
		if (code != TOOL_DONE)
			return code;
	}
	return TOOL_DONE;
}

/* A round that was not finished would favour those that it reached. */
static void forget_after(struct contest *c)
{
	for (size_t i = 0; i < c->nr_rows; i++)
		if (c->row[i].nr_samples > c->rounds_done)
			c->row[i].nr_samples = c->rounds_done;
}

enum tool_exit contest_run(struct contest *c)
{
	assert(c->nr_rounds <= CONTEST_ROUNDS_MAX);
	for (unsigned int round = 0; round < c->nr_rounds; round++) {
		const enum tool_exit code = run_round(c, round);

		if (code != TOOL_DONE) {
			forget_after(c);
			return code;
		}
		c->rounds_done++;
	}
	return TOOL_DONE;
}

/* ---- numbers ---- */

const char *sample_key(enum sample_field field)
{
	static const char *const keys[SAMPLE_NR] = {
#define X(name, key) [SAMPLE_##name] = (key),
		SAMPLE_FIELDS(X)
#undef X
	};

	return keys[field];
}

uint64_t sample_get(const struct sample *s, enum sample_field field)
{
	const uint64_t values[SAMPLE_NR] = {
#define X(name, key) [SAMPLE_##name] = s->name,
		SAMPLE_FIELDS(X)
#undef X
	};

	return values[field];
}

bool sample_is_cost(enum sample_field field)
{
	return field >= SAMPLE_access;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct spread contest_spread(const struct contestant *row,
			     enum sample_field field)
{
	uint64_t value[CONTEST_ROUNDS_MAX];
	const size_t nr = row->nr_samples;

	if (!nr)
		return (struct spread){ 0 };
	for (size_t i = 0; i < nr; i++)
		value[i] = sample_get(&row->sample[i], field);
	qsort(value, nr, sizeof(*value), compare);
	return (struct spread){
		/* Of an even number, the middle of the middle two. */
		.median = value[(nr - 1) / 2] / 2 + value[nr / 2] / 2 +
			  (value[(nr - 1) / 2] % 2 + value[nr / 2] % 2) / 2,
		.min = value[0],
		.max = value[nr - 1],
	};
}

bool contest_hit(const struct contestant *row, const struct contestant *base,
		 enum sample_field field, int64_t *milli_percent)
{
	const uint64_t b = base ? contest_spread(base, field).median : 0;
	const uint64_t x = contest_spread(row, field).median;
	const __int128 worse = sample_is_cost(field) ? (__int128)x - b
						     : (__int128)b - x;
	__int128 hit;

	if (!b || !row->nr_samples)
		return false;
	hit = worse * 100000 / b;
	if (hit > INT64_MAX)
		hit = INT64_MAX;
	if (hit < INT64_MIN + 1)
		hit = INT64_MIN + 1;
	*milli_percent = (int64_t)hit;
	return true;
}

bool contest_in_noise(const struct contestant *row,
		      const struct contestant *base, enum sample_field field)
{
	const struct spread x = contest_spread(row, field);
	const struct spread b = contest_spread(base, field);

	if (row->nr_samples < 2 || base->nr_samples < 2)
		return true;
	return x.min <= b.max && b.min <= x.max;
}

const struct contestant *contest_base(const struct contest *c,
				      const struct contestant *row)
{
	for (size_t i = 0; i < c->nr_rows; i++)
		if (!strcmp(c->row[i].dir, row->dir) && c->row[i].scheme &&
		    !strcmp(c->row[i].scheme, "none") && !c->row[i].integrity)
			return &c->row[i];
	return NULL;
}

const struct contestant *contest_host(const struct contest *c,
				      const struct contestant *row)
{
	for (size_t i = 0; i < c->nr_rows; i++)
		if (!strcmp(c->row[i].dir, row->dir) && !c->row[i].scheme)
			return &c->row[i];
	return NULL;
}
