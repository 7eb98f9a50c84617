/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The snapshot in Prometheus' text format 0.0.4, for whatever scrapes files:
 * every number is there, the zeros as well, STATS.md tells the names.
 *
 * The format wants all lines of one family in one group with its HELP and TYPE
 * once above them; so the outer loop is over families, the inner one over
 * operations or timers.  Each series has the container's UUID as a label, or
 * the pages of two mounts could not be collected on one machine.
 *
 * Names are made from the .def files by a rule (series_name()), which follows
 * Prometheus' own: base units at the end, _total after counters, and no _count,
 * which belongs to summaries.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/names.h"
#include "stats/snapshot.h"
#include "stats/utf8.h"

enum {
	NAME_SIZE = 96,
	UUID_SIZE = 80,	   /* a UUID has 36 bytes, escaping doubles it */
	VALUE_SIZE = 1024, /* an identity's string, cleaned */
};

/* What all families need: where to, and the label that every series has. */
struct page {
	FILE *out;
	char uuid[UUID_SIZE]; /* escaped */
};

/* One label beside the UUID's; no name: none. */
struct label {
	const char *name, *value;
};

static void put_family(struct page *p, const char *name, const char *type,
		       const char *help)
{
	fprintf(p->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_series(struct page *p, const char *name, const char *suffix,
		       struct label label, const char *quantile)
{
	fprintf(p->out, "%s%s{uuid=\"%s\"", name, suffix, p->uuid);
	if (label.name)
		fprintf(p->out, ",%s=\"%s\"", label.name, label.value);
	if (quantile)
		fprintf(p->out, ",quantile=\"%s\"", quantile);
	fputs("} ", p->out);
}

static void put_u64(struct page *p, const char *name, const char *suffix,
		    struct label label, uint64_t value)
{
	put_series(p, name, suffix, label, NULL);
	fprintf(p->out, "%" PRIu64 "\n", value);
}

/* By hand: printf's decimal point follows the locale. */
static void put_seconds(struct page *p, uint64_t ns)
{
	fprintf(p->out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000,
		ns % 1000000000);
}

/*
 * Copy @from to @to as it may stand between the quotes of a label: cleaned as
 * in the JSON, so no newline is left to escape; then backslash and quote get
 * their backslash.
 */
static void escape(char *to, size_t size, const char *from)
{
	char clean[VALUE_SIZE];
	size_t len = 0;

	utf8_clean(clean,
		   (size + 1) / 2 < sizeof(clean) ? (size + 1) / 2
						  : sizeof(clean),
		   sizeof(clean), from);
	for (const char *c = clean; *c; c++) {
		if (*c == '\\' || *c == '"')
			to[len++] = '\\';
		to[len++] = *c;
	}
	to[len] = '\0';
}

static void put_identity(struct page *p, const struct stats_identity *id)
{
	const struct label label[] = {
		{ "version", id->version },
		{ "label", id->label },
		{ "scheme", id->scheme },
	};
	char value[2 * VALUE_SIZE];

	put_family(p, "tuskfs_info", "gauge",
		   "what is mounted, in the labels; always 1");
	fprintf(p->out, "tuskfs_info{uuid=\"%s\"", p->uuid);
	for (size_t i = 0; i < sizeof(label) / sizeof(label[0]); i++) {
		escape(value, sizeof(value), label[i].value);
		fprintf(p->out, ",%s=\"%s\"", label[i].name, value);
	}
	fprintf(p->out,
		",sector_bytes=\"%" PRIu32 "\",integrity=\"%s\","
		"epoch_id=\"%016" PRIx64 "\"} 1\n",
		id->sector_bytes, id->integrity ? "on" : "off", id->epoch_id);
}

static void put_times(struct page *p, const struct stats_snapshot *s)
{
	static const struct label none;

	put_family(p, "tuskfs_start_time_seconds", "gauge",
		   "when it was mounted, in seconds since 1970");
	put_u64(p, "tuskfs_start_time_seconds", "", none,
		s->identity.start_unix_seconds);
	put_family(p, "tuskfs_uptime_seconds", "gauge",
		   "how long it has been mounted");
	put_series(p, "tuskfs_uptime_seconds", "", none, NULL);
	put_seconds(p, s->uptime_ns);
}

/* "0.999" for 99.9, whatever the locale. */
static void quantile_text(char out[static 16], double percent)
{
	unsigned int millionths = (unsigned int)lround(percent * 10000);
	size_t len;

	snprintf(out, 16, "%u.%06u", millionths / 1000000,
		 millionths % 1000000);
	len = strlen(out);
	while (out[len - 1] == '0')
		out[--len] = '\0';
	if (out[len - 1] == '.')
		out[len - 1] = '\0';
}

/* Nothing counted has no quantiles: NaN is what client libraries say then. */
static void put_quantile(struct page *p, const char *name, struct label label,
			 const struct histogram *h, double percent)
{
	char quantile[16];

	quantile_text(quantile, percent);
	put_series(p, name, "", label, quantile);
	if (h->count)
		put_seconds(p, histogram_percentile(h, percent));
	else
		fputs("NaN\n", p->out);
}

static void put_summary(struct page *p, const char *name, struct label label,
			const struct histogram *h)
{
	put_quantile(p, name, label, h, 0);
	for (size_t i = 0; i < STATS_PERCENTILE_NR; i++)
		put_quantile(p, name, label, h, stats_percentile[i].percent);
	put_quantile(p, name, label, h, 100);
	put_series(p, name, "_sum", label, NULL);
	put_seconds(p, h->sum);
	put_u64(p, name, "_count", label, h->count);
}

static void put_operations(struct page *p, const struct stats_series *op)
{
	struct label label = { .name = "operation" };

	put_family(p, "tuskfs_operation_seconds", "summary",
		   "time of file system operations in the daemon");
	for (size_t i = 0; i < STATS_OP_NR; i++) {
		label.value = stats_op_name[i].name;
		put_summary(p, "tuskfs_operation_seconds", label,
			    &op[i].latency);
	}
	put_family(p, "tuskfs_operation_errors_total", "counter",
		   "operations that were answered with an error");
	for (size_t i = 0; i < STATS_OP_NR; i++) {
		label.value = stats_op_name[i].name;
		put_u64(p, "tuskfs_operation_errors_total", "", label,
			op[i].errors);
	}
	put_family(p, "tuskfs_operation_bytes_total", "counter",
		   "bytes that operations moved");
	for (size_t i = 0; i < STATS_OP_NR; i++) {
		label.value = stats_op_name[i].name;
		put_u64(p, "tuskfs_operation_bytes_total", "", label,
			op[i].bytes);
	}
}

static void put_timers(struct page *p, const struct stats_series *timer)
{
	struct label label = { .name = "timer" };

	put_family(p, "tuskfs_timer_seconds", "summary",
		   "time of what happens inside: ciphers, container, commits");
	for (size_t i = 0; i < STATS_TIMER_NR; i++) {
		label.value = stats_timer_name[i].name;
		put_summary(p, "tuskfs_timer_seconds", label,
			    &timer[i].latency);
	}
	put_family(p, "tuskfs_timer_bytes_total", "counter",
		   "bytes that were handled in that time");
	for (size_t i = 0; i < STATS_TIMER_NR; i++) {
		label.value = stats_timer_name[i].name;
		put_u64(p, "tuskfs_timer_bytes_total", "", label,
			timer[i].bytes);
	}
}

static bool has_suffix(const char *name, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len > n && !memcmp(name + len - n, suffix, n);
}

/*
 * The name of a counter or gauge: container_grown in bytes and _total becomes
 * tuskfs_container_grown_bytes_total, inode_cache_count in inodes becomes
 * tuskfs_inode_cache_inodes; all others are as in the table.
 */
static void series_name(char out[static NAME_SIZE], const struct stats_name *n,
			const char *suffix)
{
	size_t len = strlen(n->name);
	bool count = has_suffix(n->name, len, "_count");
	bool bytes = !strcmp(n->unit, "bytes") &&
		     !has_suffix(n->name, len, "_bytes");

	if (count)
		len -= strlen("_count");
	snprintf(out, NAME_SIZE, "tuskfs_%.*s%s%s%s", (int)len, n->name,
		 count || bytes ? "_" : "", count || bytes ? n->unit : "",
		 suffix);
}

static void put_values(struct page *p, const struct stats_name *table,
		       const uint64_t *value, size_t nr, const char *type,
		       const char *suffix)
{
	static const struct label none;
	char name[NAME_SIZE];

	for (size_t i = 0; i < nr; i++) {
		series_name(name, &table[i], suffix);
		put_family(p, name, type, table[i].help);
		put_u64(p, name, "", none, value[i]);
	}
}

char *stats_render_prometheus(const struct stats_snapshot *s)
{
	struct page p;
	char *text = NULL;
	size_t len;
	bool failed;

	p.out = open_memstream(&text, &len);
	if (!p.out)
		return NULL;
	escape(p.uuid, sizeof(p.uuid), s->identity.uuid);
	put_identity(&p, &s->identity);
	put_times(&p, s);
	put_operations(&p, s->op);
	put_timers(&p, s->timer);
	put_values(&p, stats_counter_name, s->counter, STATS_COUNTER_NR,
		   "counter", "_total");
	put_values(&p, stats_gauge_name, s->gauge, STATS_GAUGE_NR, "gauge", "");
	failed = ferror(p.out);
	/* The stream writes to memory, which can run out at its end, too. */
	if (fclose(p.out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
