/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The snapshot as a page for people: at most 100 columns, always in the same
 * order, units in the headings.  Rows of operations and timers that never
 * happened are left out; the JSON has them.
 *
 * Digits are made from integers: printf's decimal point follows the locale,
 * and a page that changes with the reader's LC_NUMERIC is no good to grep.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stats/names.h"
#include "stats/snapshot.h"
#include "stats/utf8.h"

enum {
	LABEL_CHARS = 40, /* East Asian ones are two columns wide */
	CELL_SIZE = 32,
};

/*
 * Columns of the tables, each with a blank in front but the first:
 * 15 + 10 + 8 + 10 + 8 + 7 times 7 = 100.
 */
enum {
	WIDTH_NAME = 15,
	WIDTH_COUNT = 9,
	WIDTH_SECOND = 7, /* errors, or seconds */
	WIDTH_MB = 9,
	WIDTH_RATE = 7,
	WIDTH_LATENCY = 6,
};

enum section {
	SECTION_OTHER, /* what the tables below do not mention */
	SECTION_CIPHER,
	SECTION_CONTAINER,
	SECTION_COMMITS,
	SECTION_CACHES,
	SECTION_SPACE,
	SECTION_TROUBLE,
};

static const enum section timer_section[STATS_TIMER_NR] = {
	[STATS_TIMER_encrypt] = SECTION_CIPHER,
	[STATS_TIMER_decrypt] = SECTION_CIPHER,
	[STATS_TIMER_tag_compute] = SECTION_CIPHER,
	[STATS_TIMER_tag_verify] = SECTION_CIPHER,
	[STATS_TIMER_seal] = SECTION_CIPHER,
	[STATS_TIMER_unseal] = SECTION_CIPHER,
	[STATS_TIMER_container_read] = SECTION_CONTAINER,
	[STATS_TIMER_container_write] = SECTION_CONTAINER,
	[STATS_TIMER_container_flush] = SECTION_CONTAINER,
	[STATS_TIMER_commit] = SECTION_COMMITS,
	[STATS_TIMER_commit_freeze] = SECTION_COMMITS,
};

static const enum section counter_section[STATS_COUNTER_NR] = {
	[STATS_commits_timer] = SECTION_COMMITS,
	[STATS_commits_fsync] = SECTION_COMMITS,
	[STATS_commits_pressure] = SECTION_COMMITS,
	[STATS_fsync_shared] = SECTION_COMMITS,
	[STATS_node_hits] = SECTION_CACHES,
	[STATS_node_misses] = SECTION_CACHES,
	[STATS_node_writes] = SECTION_CACHES,
	[STATS_inode_hits] = SECTION_CACHES,
	[STATS_inode_misses] = SECTION_CACHES,
	[STATS_blocks_allocated] = SECTION_SPACE,
	[STATS_blocks_freed] = SECTION_SPACE,
	[STATS_container_grown] = SECTION_SPACE,
	[STATS_tag_failures] = SECTION_TROUBLE,
	[STATS_damage_reports] = SECTION_TROUBLE,
	[STATS_io_errors] = SECTION_TROUBLE,
	[STATS_admission_waits] = SECTION_TROUBLE,
};

static const enum section gauge_section[STATS_GAUGE_NR] = {
	[STATS_GAUGE_container_bytes] = SECTION_SPACE,
	[STATS_GAUGE_limit_bytes] = SECTION_SPACE,
	[STATS_GAUGE_data_bytes] = SECTION_SPACE,
	[STATS_GAUGE_metadata_bytes] = SECTION_SPACE,
	[STATS_GAUGE_free_bytes] = SECTION_SPACE,
	[STATS_GAUGE_held_bytes] = SECTION_SPACE,
	[STATS_GAUGE_reserved_bytes] = SECTION_SPACE,
	[STATS_GAUGE_available_bytes] = SECTION_SPACE,
	[STATS_GAUGE_node_cache_bytes] = SECTION_CACHES,
	[STATS_GAUGE_node_cache_limit_bytes] = SECTION_CACHES,
	[STATS_GAUGE_inode_cache_count] = SECTION_CACHES,
	[STATS_GAUGE_dirty_nodes] = SECTION_COMMITS,
	[STATS_GAUGE_dirty_inodes] = SECTION_COMMITS,
	[STATS_GAUGE_commit_number] = SECTION_COMMITS,
	[STATS_GAUGE_read_only] = SECTION_TROUBLE,
	[STATS_GAUGE_known_inodes] = SECTION_CACHES,
};

/* A number as text, in its own struct so that calls can be arguments. */
struct cell {
	char text[CELL_SIZE];
};

/* @value below 10^15 with exactly @decimals <= 3 of them, rounded. */
static struct cell fixed(double value, unsigned int decimals)
{
	struct cell c;
	uint64_t one = 1, digits;

	for (unsigned int i = 0; i < decimals; i++)
		one *= 10;
	digits = (uint64_t)(value * (double)one + 0.5);
	if (decimals)
		snprintf(c.text, sizeof(c.text), "%" PRIu64 ".%0*" PRIu64,
			 digits / one, (int)decimals, digits % one);
	else
		snprintf(c.text, sizeof(c.text), "%" PRIu64, digits);
	return c;
}

static void append(struct cell *c, char suffix)
{
	size_t len = strlen(c->text);

	assert(len + 1 < sizeof(c->text));
	c->text[len] = suffix;
	c->text[len + 1] = '\0';
}

/* fixed() with as many of @decimals as @width characters have room for. */
static bool fits(struct cell *c, double value, size_t width,
		 unsigned int decimals)
{
	if (value >= 1e15)
		return false;
	for (unsigned int d = decimals + 1; d-- > 0;) {
		*c = fixed(value, d);
		if (strlen(c->text) <= width)
			return true;
	}
	return false;
}

/*
 * @value in at most @width >= 5 characters, with at most @decimals of them;
 * what is too large for that is told in thousands, millions and so on.
 */
static struct cell fitted(double value, size_t width, unsigned int decimals)
{
	static const char suffix[] = { 'k', 'M', 'G', 'T', 'P', 'E' };
	struct cell c;

	assert(width >= 5 && width < sizeof(c.text) && decimals <= 3);
	if (fits(&c, value, width, decimals))
		return c;
	for (size_t i = 0; i < sizeof(suffix); i++) {
		value /= 1000;
		if (fits(&c, value, width - 1, 2)) {
			append(&c, suffix[i]);
			return c;
		}
	}
	strcpy(c.text, "huge");
	return c;
}

/* Microseconds without a unit; from a second on marked s, from 10^4 s on h. */
static struct cell latency_cell(uint64_t ns)
{
	struct cell c;
	double s = (double)ns / 1e9;

	if (ns < 999999500)
		return fitted((double)ns / 1e3, WIDTH_LATENCY, 2);
	c = fitted(s < 1e4 ? s : s / 3600, WIDTH_LATENCY - 1, 3);
	append(&c, s < 1e4 ? 's' : 'h');
	return c;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static void put_start(FILE *f, uint64_t unix_seconds)
{
	time_t start = (time_t)unix_seconds;
	struct tm tm;
	char text[64];

	if (!gmtime_r(&start, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
		strcpy(text, "at a time beyond all calendars");
	fprintf(f, "mounted      %s", text);
}

static void put_uptime(FILE *f, uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	fprintf(f, ", up %" PRIu64 " d %02u:%02u:%02u", s / 86400,
		(unsigned int)(s / 3600 % 24), (unsigned int)(s / 60 % 60),
		(unsigned int)(s % 60));
}

static const char *cleaned(char (*buf)[4 * LABEL_CHARS + 1], const char *s)
{
	return utf8_clean(*buf, sizeof(*buf), LABEL_CHARS, s);
}

static void put_identity(FILE *f, const struct stats_snapshot *s)
{
	const struct stats_identity *id = &s->identity;
	char buf[4 * LABEL_CHARS + 1];

	fprintf(f, "tuskfs       %s\n", cleaned(&buf, id->version));
	fprintf(f, "scheme       %s, ", cleaned(&buf, id->scheme));
	fprintf(f, "sector size %" PRIu32 " bytes, integrity %s\n",
		id->sector_bytes, id->integrity ? "on" : "off");
	fprintf(f, "uuid         %s\n", cleaned(&buf, id->uuid));
	fprintf(f, "label        %s\n", cleaned(&buf, id->label));
	put_start(f, id->start_unix_seconds);
	put_uptime(f, s->uptime_ns);
	fprintf(f, ", epoch %016" PRIx64 "\n", id->epoch_id);
}

/* Of both directions together: nanoseconds and bytes. */
struct effort {
	double ns, bytes;
};

static struct effort effort_of(const struct stats_snapshot *s,
			       enum stats_timer a, enum stats_timer b)
{
	return (struct effort){
		.ns = (double)s->timer[a].latency.sum +
		      (double)s->timer[b].latency.sum,
		.bytes = (double)s->timer[a].bytes + (double)s->timer[b].bytes,
	};
}

static void put_share(FILE *f, const char *what, struct effort e,
		      double request_ns)
{
	fprintf(f, "%s %s %% of request time, %s MB/s a core", what,
		fitted(100 * ratio(e.ns, request_ns), 7, 1).text,
		fitted(ratio(e.bytes, e.ns / 1e3), 9, 0).text);
}

/*
 * What the whole page is for.  Request time is the time of all operations
 * added up, over all threads, so that both sides of the division count a
 * second of two threads twice.
 */
static void put_headline(FILE *f, const struct stats_snapshot *s)
{
	struct effort cipher =
		effort_of(s, STATS_TIMER_encrypt, STATS_TIMER_decrypt);
	struct effort tags =
		effort_of(s, STATS_TIMER_tag_compute, STATS_TIMER_tag_verify);
	double request_ns = 0;

	for (size_t i = 0; i < STATS_OP_NR; i++)
		request_ns += (double)s->op[i].latency.sum;

	if (!(request_ns > 0 && cipher.ns > 0)) {
		fputs("\nNothing was encrypted or decrypted yet.\n", f);
		return;
	}
	put_share(f, "\nEncryption takes", cipher, request_ns);
	if (tags.ns > 0)
		put_share(f, ";\ntags take", tags, request_ns);
	fprintf(f,
		".\n(encrypt + decrypt, %s s, of the time of all operations "
		"below, %s s)\n",
		fitted(cipher.ns / 1e9, 9, 3).text,
		fitted(request_ns / 1e9, 9, 3).text);
}

static void put_table_heading(FILE *f, const char *title, const char *note,
			      const char *second)
{
	fprintf(f, "\n%s (%s; latency in us, or s or h where marked)\n", title,
		note);
	fprintf(f, "%-*s %*s %*s %*s %*s", WIDTH_NAME, "", WIDTH_COUNT, "count",
		WIDTH_SECOND, second, WIDTH_MB, "MB", WIDTH_RATE, "MB/s");
	for (size_t i = 0; i < STATS_PERCENTILE_NR; i++)
		fprintf(f, " %*s", WIDTH_LATENCY, stats_percentile[i].heading);
	fprintf(f, " %*s\n", WIDTH_LATENCY, "max");
}

static void put_cell(FILE *f, int width, struct cell c)
{
	fprintf(f, " %*s", width, c.text);
}

/*
 * One line of a table: @second is the errors or the seconds, @rate_ns what
 * the bytes are divided by for MB/s.
 */
static void put_series(FILE *f, const char *name, const struct stats_series *s,
		       struct cell second, uint64_t rate_ns)
{
	const struct histogram *h = &s->latency;
	double mb = (double)s->bytes / 1e6;
	double rate = ratio(mb, (double)rate_ns / 1e9);

	fprintf(f, "%-*s", WIDTH_NAME, name);
	put_cell(f, WIDTH_COUNT, fitted((double)s->count, WIDTH_COUNT, 0));
	put_cell(f, WIDTH_SECOND, second);
	put_cell(f, WIDTH_MB, fitted(mb, WIDTH_MB, 1));
	put_cell(f, WIDTH_RATE, fitted(rate, WIDTH_RATE, 1));
	for (size_t i = 0; i < STATS_PERCENTILE_NR; i++) {
		double percent = stats_percentile[i].percent;
		uint64_t ns = histogram_percentile(h, percent);

		put_cell(f, WIDTH_LATENCY, latency_cell(ns));
	}
	put_cell(f, WIDTH_LATENCY, latency_cell(h->max));
	fputc('\n', f);
}

static void put_operations(FILE *f, const struct stats_snapshot *s)
{
	put_table_heading(f, "OPERATIONS", "MB/s over the uptime", "errors");
	for (size_t i = 0; i < STATS_OP_NR; i++) {
		const struct stats_series *op = &s->op[i];

		if (op->count)
			put_series(f, stats_op_name[i].name, op,
				   fitted((double)op->errors, WIDTH_SECOND, 0),
				   s->uptime_ns);
	}
}

static void put_timers(FILE *f, const struct stats_snapshot *s,
		       enum section section)
{
	for (size_t i = 0; i < STATS_TIMER_NR; i++) {
		const struct stats_series *timer = &s->timer[i];
		double seconds = (double)timer->latency.sum / 1e9;

		if (timer->count && timer_section[i] == section)
			put_series(f, stats_timer_name[i].name, timer,
				   fitted(seconds, WIDTH_SECOND, 3),
				   timer->latency.sum);
	}
}

static bool has_timers(const struct stats_snapshot *s, enum section section)
{
	for (size_t i = 0; i < STATS_TIMER_NR; i++)
		if (s->timer[i].count && timer_section[i] == section)
			return true;
	return false;
}

/* The timers of one section; its title alone while there are none. */
static void put_timer_section(FILE *f, const char *title, const char *note,
			      const struct stats_snapshot *s,
			      enum section section)
{
	if (!has_timers(s, section)) {
		fprintf(f, "\n%s\n", title);
		return;
	}
	put_table_heading(f, title, note, "s");
	put_timers(f, s, section);
}

static void put_value(FILE *f, const struct stats_name *name, uint64_t value)
{
	fprintf(f, "%-22s %20" PRIu64 " %-7s  %s\n", name->name, value,
		name->unit, name->help);
}

static void put_values(FILE *f, const struct stats_snapshot *s,
		       enum section section)
{
	for (size_t i = 0; i < STATS_COUNTER_NR; i++)
		if (counter_section[i] == section)
			put_value(f, &stats_counter_name[i], s->counter[i]);
	for (size_t i = 0; i < STATS_GAUGE_NR; i++)
		if (gauge_section[i] == section)
			put_value(f, &stats_gauge_name[i], s->gauge[i]);
}

static void put_hit_rate(FILE *f, const char *what, uint64_t hits,
			 uint64_t misses)
{
	double all = (double)hits + (double)misses;

	if (all > 0)
		fprintf(f, "%-22s %20s %-7s  hits of hits and misses\n", what,
			fitted(100 * (double)hits / all, 5, 1).text, "%");
}

static void put_caches(FILE *f, const struct stats_snapshot *s)
{
	fputs("\nCACHES\n", f);
	put_hit_rate(f, "node hit rate", s->counter[STATS_node_hits],
		     s->counter[STATS_node_misses]);
	put_hit_rate(f, "inode hit rate", s->counter[STATS_inode_hits],
		     s->counter[STATS_inode_misses]);
	put_values(f, s, SECTION_CACHES);
}

static bool has_other(const struct stats_snapshot *s)
{
	for (size_t i = 0; i < STATS_COUNTER_NR; i++)
		if (counter_section[i] == SECTION_OTHER)
			return true;
	for (size_t i = 0; i < STATS_GAUGE_NR; i++)
		if (gauge_section[i] == SECTION_OTHER)
			return true;
	return has_timers(s, SECTION_OTHER);
}

static void put_all(FILE *f, const struct stats_snapshot *s)
{
	static const char a_core[] = "MB/s of the time spent, so of one core";
	static const char spent[] = "MB/s of the time spent";

	put_identity(f, s);
	put_headline(f, s);
	put_operations(f, s);
	put_timer_section(f, "CIPHER AND TAGS", a_core, s, SECTION_CIPHER);
	put_timer_section(f, "CONTAINER", spent, s, SECTION_CONTAINER);
	put_timer_section(f, "COMMITS", spent, s, SECTION_COMMITS);
	put_values(f, s, SECTION_COMMITS);
	put_caches(f, s);
	fputs("\nSPACE\n", f);
	put_values(f, s, SECTION_SPACE);
	fputs("\nTROUBLE\n", f);
	put_values(f, s, SECTION_TROUBLE);
	if (!has_other(s))
		return;
	put_timer_section(f, "OTHER", spent, s, SECTION_OTHER);
	put_values(f, s, SECTION_OTHER);
}

char *stats_render_text(const struct stats_snapshot *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int failed;

	if (!f)
		return NULL;
	put_all(f, s);
	failed = ferror(f);
	if (fclose(f) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
