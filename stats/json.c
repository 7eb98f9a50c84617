/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The snapshot as JSON, version 1: for programs, so every number is there,
 * the zeros as well, always under the same path.  STATS.md is its manual.
 *
 * Integers are unsigned 64 bit; a reader that keeps them as doubles loses
 * digits from 2^53 on.  The epoch id, where each digit counts, is a string.
 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/names.h"
#include "stats/snapshot.h"
#include "stats/utf8.h"

enum {
	JSON_VERSION = 1
};

/*
 * Give @value to @object under @key.  json-c takes NULL, which is what it
 * returns without memory, for a JSON null; here it sets *@failed instead.
 */
static void put(struct json_object *object, const char *key,
		struct json_object *value, bool *failed)
{
	if (object && value && !json_object_object_add(object, key, value))
		return;
	json_object_put(value);
	*failed = true;
}

static void put_u64(struct json_object *object, const char *key, uint64_t n,
		    bool *failed)
{
	put(object, key, json_object_new_uint64(n), failed);
}

static void put_string(struct json_object *object, const char *key,
		       const char *from, bool *failed)
{
	char clean[1024];

	utf8_clean(clean, sizeof(clean), sizeof(clean), from);
	put(object, key, json_object_new_string(clean), failed);
}

/* By hand: printf's decimal point follows the locale, JSON's doesn't. */
static void put_seconds(struct json_object *object, const char *key,
			uint64_t ns, bool *failed)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%" PRIu64 ".%09" PRIu64,
		 ns / 1000000000, ns % 1000000000);
	put(object, key, json_object_new_double_s((double)ns / 1e9, digits),
	    failed);
}

static struct json_object *identity(const struct stats_identity *id,
				    bool *failed)
{
	struct json_object *o = json_object_new_object();
	char epoch[17];

	snprintf(epoch, sizeof(epoch), "%016" PRIx64, id->epoch_id);
	put_string(o, "version", id->version, failed);
	put_string(o, "uuid", id->uuid, failed);
	put_string(o, "label", id->label, failed);
	put_string(o, "scheme", id->scheme, failed);
	put_u64(o, "sector_bytes", id->sector_bytes, failed);
	put(o, "integrity", json_object_new_boolean(id->integrity != 0),
	    failed);
	put_string(o, "epoch_id", epoch, failed);
	put_u64(o, "start_unix_seconds", id->start_unix_seconds, failed);
	return o;
}

static struct json_object *latency(const struct histogram *h, bool *failed)
{
	struct json_object *o = json_object_new_object();

	put_u64(o, "min", h->min, failed);
	put_u64(o, "mean", histogram_mean(h), failed);
	for (size_t i = 0; i < STATS_PERCENTILE_NR; i++)
		put_u64(o, stats_percentile[i].key,
			histogram_percentile(h, stats_percentile[i].percent),
			failed);
	put_u64(o, "max", h->max, failed);
	return o;
}

static struct json_object *operations(const struct stats_snapshot *s,
				      bool *failed)
{
	struct json_object *all = json_object_new_object();

	for (size_t i = 0; i < STATS_OP_NR; i++) {
		const struct stats_series *from = &s->op[i];
		struct json_object *o = json_object_new_object();

		put_u64(o, "count", from->count, failed);
		put_u64(o, "errors", from->errors, failed);
		put_u64(o, "bytes", from->bytes, failed);
		put_u64(o, "time_ns", from->latency.sum, failed);
		put(o, "latency_ns", latency(&from->latency, failed), failed);
		put(all, stats_op_name[i].name, o, failed);
	}
	return all;
}

static struct json_object *timers(const struct stats_snapshot *s, bool *failed)
{
	struct json_object *all = json_object_new_object();

	for (size_t i = 0; i < STATS_TIMER_NR; i++) {
		const struct stats_series *from = &s->timer[i];
		struct json_object *o = json_object_new_object();

		put_u64(o, "count", from->count, failed);
		put_u64(o, "bytes", from->bytes, failed);
		put_u64(o, "time_ns", from->latency.sum, failed);
		put(o, "latency_ns", latency(&from->latency, failed), failed);
		put(all, stats_timer_name[i].name, o, failed);
	}
	return all;
}

static struct json_object *values(const struct stats_name *name,
				  const uint64_t *value, size_t nr,
				  bool *failed)
{
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; i < nr; i++)
		put_u64(o, name[i].name, value[i], failed);
	return o;
}

/*
 * The text of @root with a newline at its end.
 *
 * Where its buffer cannot grow, json-c leaves out a piece and goes on as if
 * nothing had happened; only errno tells (seen by making each allocation
 * fail in turn).
 */
static char *to_text(struct json_object *root)
{
	const char *text;
	char *line;

	errno = 0;
	text = json_object_to_json_string_ext(
		root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
			      JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!text || errno == ENOMEM || asprintf(&line, "%s\n", text) < 0)
		return NULL;
	return line;
}

char *stats_render_json(const struct stats_snapshot *s)
{
	struct json_object *root = json_object_new_object();
	bool failed = false;
	char *text = NULL;

	put_u64(root, "version", JSON_VERSION, &failed);
	put(root, "identity", identity(&s->identity, &failed), &failed);
	put_seconds(root, "uptime_seconds", s->uptime_ns, &failed);
	put(root, "operations", operations(s, &failed), &failed);
	put(root, "timers", timers(s, &failed), &failed);
	put(root, "counters",
	    values(stats_counter_name, s->counter, STATS_COUNTER_NR, &failed),
	    &failed);
	put(root, "gauges",
	    values(stats_gauge_name, s->gauge, STATS_GAUGE_NR, &failed),
	    &failed);
	if (!failed)
		text = to_text(root);
	json_object_put(root);
	return text;
}
