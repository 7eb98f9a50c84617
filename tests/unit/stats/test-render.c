/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text and JSON of the snapshots of support.h. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/names.h"
#include "stats/snapshot.h"
#include "support.h"

static char *text_of(const struct stats_snapshot *s)
{
	char *text = stats_render_text(s);

	cr_assert_not_null(text);
	return text;
}

static void expect_contains(const char *text, const char *part)
{
	cr_assert_not_null(strstr(text, part), "\"%s\" is missing in\n%s", part,
			   text);
}

/* The first line that begins with @name and a blank; a copy, to be freed. */
static char *line_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *l = text; *l; l += strcspn(l, "\n") + 1)
		if (!strncmp(l, name, len) && l[len] == ' ')
			return strndup(l, strcspn(l, "\n"));
	return NULL;
}

static void expect_line(const char *text, const char *name)
{
	char *line = line_of(text, name);

	cr_assert_not_null(line, "no line of %s in\n%s", name, text);
	free(line);
}

static void expect_at_most_100_columns(const char *text)
{
	for (const char *l = text; *l; l += strcspn(l, "\n") + 1)
		cr_assert(strcspn(l, "\n") <= 100, "%zu columns: %.*s",
			  strcspn(l, "\n"), (int)strcspn(l, "\n"), l);
	cr_assert_eq(text[strlen(text) - 1], '\n');
	for (const char *c = text; *c; c++)
		cr_assert(*c == '\n' || (*c >= 0x20 && *c < 0x7f));
}

Test(text, is_at_most_100_columns_wide)
{
	struct stats_snapshot *s[] = { new_snapshot(), ordinary(), largest() };

	for (size_t i = 0; i < 3; i++) {
		char *text = text_of(s[i]);

		expect_at_most_100_columns(text);
		free(text);
		free(s[i]);
	}
}

Test(text, has_every_number)
{
	struct stats_snapshot *s = largest();
	char *text = text_of(s);

	for (size_t i = 0; i < STATS_OP_NR; i++)
		expect_line(text, stats_op_name[i].name);
	for (size_t i = 0; i < STATS_TIMER_NR; i++)
		expect_line(text, stats_timer_name[i].name);
	for (size_t i = 0; i < STATS_COUNTER_NR; i++)
		expect_line(text, stats_counter_name[i].name);
	for (size_t i = 0; i < STATS_GAUGE_NR; i++)
		expect_line(text, stats_gauge_name[i].name);
	free(text);
	free(s);
}

/* Columns stand below their headings: nothing pushes the next one aside. */
Test(text, tables_are_aligned)
{
	struct stats_snapshot *s[] = { ordinary(), largest() };

	for (size_t i = 0; i < 2; i++) {
		char *text = text_of(s[i]);
		char *line = line_of(text, "read");

		cr_assert_not_null(line);
		cr_assert_eq(strlen(line), 100, "%s", line);
		free(line);
		free(text);
		free(s[i]);
	}
}

Test(text, headline_is_the_quotient_it_says)
{
	struct stats_snapshot *s = ordinary();
	char *text = text_of(s);

	/* 0.2 s of 2 s; 262.144 MB in 0.2 s. */
	expect_contains(text, "Encryption takes 10.0 % of request time, "
			      "1311 MB/s a core;\n");
	expect_contains(text, "tags take 2.5 % of request time, "
			      "2621 MB/s a core.\n");
	expect_contains(text, "(encrypt + decrypt, 0.200 s, of the time of "
			      "all operations below, 2.000 s)\n");
	free(text);
	free(s);
}

Test(text, headline_claims_nothing_before_there_is_something)
{
	struct stats_snapshot *s = new_snapshot();
	char *text = text_of(s);

	expect_contains(text, "Nothing was encrypted or decrypted yet.\n");
	cr_assert_null(strstr(text, "nan"));
	cr_assert_null(strstr(text, "inf"));
	free(text);
	free(s);
}

Test(text, rows_have_the_right_numbers)
{
	struct stats_snapshot *s = ordinary();
	char *text = text_of(s);

	/* 131.072 MB in 100 s of uptime, 1 ms each. */
	expect_contains(
		text,
		"write                1000       3     131.1     1.3 1000.0 "
		"1000.0 1000.0 1000.0 1000.0 1000.0 1000.0\n");
	/* 131.072 MB in 0.1 s. */
	expect_contains(
		text,
		"encrypt              1000   0.100     131.1  1310.7 100.00 "
		"100.00 100.00 100.00 100.00 100.00 100.00\n");
	expect_contains(
		text,
		"container_flush         1   5.000       0.0     0.0 5.000s "
		"5.000s 5.000s 5.000s 5.000s 5.000s 5.000s\n");
	cr_assert_null(line_of(text, "mkdir"));
	free(text);
	free(s);
}

Test(text, identity_is_told)
{
	struct stats_snapshot *s = ordinary();
	char *text;

	s->identity.label = "a\nread 5\x1b[2J";
	text = text_of(s);
	expect_contains(text, "scheme       aes-256-xts, sector size 4096 "
			      "bytes, integrity on\n");
	expect_contains(text, "label        a?read 5?[2J\n");
	expect_contains(text, "mounted      2026-01-01 00:00:00 UTC, up 0 d "
			      "00:01:40, epoch fedcba9876543210\n");
	free(text);
	free(s);
}

Test(text, same_snapshot_same_text)
{
	struct stats_snapshot *s = ordinary();
	char *a = text_of(s), *b = text_of(s);

	cr_assert_str_eq(a, b);
	free(a);
	free(b);
	free(s);
}

/* Of the shortest and the longest latencies. */
static void expect_max(uint64_t ns, const char *cell)
{
	struct stats_snapshot *s = new_snapshot();
	char *text, *line;

	add_calls(&s->op[STATS_OP_read], 1, ns, 0);
	text = text_of(s);
	line = line_of(text, "read");
	cr_assert_not_null(line);
	cr_assert_str_eq(line + strlen(line) - 7, cell, "%" PRIu64 ": %s", ns,
			 line);
	free(line);
	free(text);
	free(s);
}

Test(text, latencies_fit_from_nothing_to_centuries)
{
	expect_max(0, "   0.00");
	expect_max(4, "   0.00");
	expect_max(5, "   0.01");
	expect_max(999, "   1.00");
	expect_max(12345, "  12.35");
	expect_max(123456, " 123.46");
	expect_max(1234567, " 1234.6");
	expect_max(12345678, "  12346");
	expect_max(123456789, " 123457");
	expect_max(999999499, " 999999");
	expect_max(999999500, " 1.000s");
	expect_max(UINT64_C(41000000000), " 41.00s");
	expect_max(UINT64_C(9999400000000), "  9999s");
	expect_max(UINT64_C(36000000000000), " 10.00h");
	expect_max(INT64_MAX, " 2562kh");
	expect_max(UINT64_MAX, " 5124kh");
}

static struct json_object *parse(const struct stats_snapshot *s)
{
	char *text = stats_render_json(s);
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *root;

	cr_assert_not_null(text);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT |
						JSON_TOKENER_VALIDATE_UTF8);
	root = json_tokener_parse_ex(tokener, text, -1);
	cr_assert_eq(json_tokener_get_error(tokener), json_tokener_success,
		     "%s", text);
	json_tokener_free(tokener);
	free(text);
	return root;
}

/* By a path of names, each of which must be there. */
static struct json_object *at(struct json_object *o, const char *path)
{
	char name[64];

	while (*path) {
		size_t len = strcspn(path, ".");

		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		cr_assert(json_object_object_get_ex(o, name, &o),
			  "%s is missing", name);
		path += len + (path[len] == '.');
	}
	return o;
}

static uint64_t number_at(struct json_object *root, const char *path)
{
	struct json_object *o = at(root, path);

	cr_assert_eq(json_object_get_type(o), json_type_int, "%s", path);
	return json_object_get_uint64(o);
}

static void expect_names(struct json_object *root, const char *kind,
			 const struct stats_name *table, size_t nr)
{
	struct json_object *o = at(root, kind);

	cr_assert_eq((size_t)json_object_object_length(o), nr, "%s", kind);
	for (size_t i = 0; i < nr; i++)
		at(o, table[i].name);
}

Test(json, has_every_name_even_when_all_is_zero)
{
	struct stats_snapshot *s = new_snapshot();
	struct json_object *root = parse(s);

	cr_assert_eq(number_at(root, "version"), 1);
	expect_names(root, "operations", stats_op_name, STATS_OP_NR);
	expect_names(root, "timers", stats_timer_name, STATS_TIMER_NR);
	expect_names(root, "counters", stats_counter_name, STATS_COUNTER_NR);
	expect_names(root, "gauges", stats_gauge_name, STATS_GAUGE_NR);
	cr_assert_eq(number_at(root, "operations.mkdir.latency_ns.p50"), 0);
	json_object_put(root);
	free(s);
}

Test(json, has_the_numbers)
{
	struct stats_snapshot *s = ordinary();
	struct json_object *root = parse(s);

	cr_assert_eq(number_at(root, "operations.write.count"), 1000);
	cr_assert_eq(number_at(root, "operations.write.errors"), 3);
	cr_assert_eq(number_at(root, "operations.write.bytes"), 131072000);
	cr_assert_eq(number_at(root, "operations.write.time_ns"), 1000000000);
	cr_assert_eq(number_at(root, "timers.encrypt.count"), 1000);
	cr_assert_eq(number_at(root, "timers.encrypt.bytes"), 131072000);
	cr_assert_eq(number_at(root, "timers.encrypt.time_ns"), 100000000);
	cr_assert_eq(number_at(root, "counters.node_hits"), 999);
	cr_assert_eq(json_object_get_double(at(root, "uptime_seconds")), 100);
	json_object_put(root);
	free(s);
}

Test(json, has_all_percentiles)
{
	static const char *const key[] = {
		"min", "mean",	"p50",	  "p90", "p95",
		"p99", "p99_9", "p99_99", "max",
	};
	struct stats_snapshot *s = ordinary();
	struct json_object *root = parse(s);
	struct json_object *latency = at(root, "operations.read.latency_ns");

	cr_assert_eq(json_object_object_length(latency), 9);
	for (size_t i = 0; i < 9; i++)
		cr_assert_eq(number_at(latency, key[i]), 1000000);
	json_object_put(root);
	free(s);
}

Test(json, keeps_64_bits)
{
	static const uint64_t value[] = {
		UINT64_C(1) << 32,
		(UINT64_C(1) << 53) + 1,
		(UINT64_C(1) << 63) - 1,
		UINT64_C(1) << 63,
		UINT64_MAX,
	};
	struct stats_snapshot *s = new_snapshot();

	for (size_t i = 0; i < sizeof(value) / sizeof(value[0]); i++) {
		struct json_object *root;

		s->counter[STATS_node_hits] = value[i];
		s->gauge[STATS_GAUGE_data_bytes] = value[i];
		s->op[STATS_OP_read].bytes = value[i];
		root = parse(s);
		cr_assert_eq(number_at(root, "counters.node_hits"), value[i]);
		cr_assert_eq(number_at(root, "gauges.data_bytes"), value[i]);
		cr_assert_eq(number_at(root, "operations.read.bytes"),
			     value[i]);
		json_object_put(root);
	}
	free(s);
}

static const char *string_at(struct json_object *root, const char *path)
{
	return json_object_get_string(at(root, path));
}

Test(json, has_the_identity)
{
	struct stats_snapshot *s = new_snapshot();
	struct json_object *root;

	s->identity.label = "\"\\\xff\n\xc3\xa9";
	root = parse(s);
	cr_assert_str_eq(string_at(root, "identity.label"), "\"\\??\xc3\xa9");
	cr_assert_str_eq(string_at(root, "identity.scheme"), "aes-256-xts");
	cr_assert_str_eq(string_at(root, "identity.version"), "0.1.0");
	cr_assert_str_eq(string_at(root, "identity.uuid"), s->identity.uuid);
	cr_assert_str_eq(string_at(root, "identity.epoch_id"),
			 "fedcba9876543210");
	cr_assert_eq(number_at(root, "identity.sector_bytes"), 4096);
	cr_assert(json_object_get_boolean(at(root, "identity.integrity")));
	cr_assert_eq(number_at(root, "identity.start_unix_seconds"),
		     1767225600);
	json_object_put(root);
	free(s);
}

Test(json, takes_a_missing_identity)
{
	struct stats_snapshot *s = new_snapshot();
	struct json_object *root;
	char *text;

	memset(&s->identity, 0, sizeof(s->identity));
	root = parse(s);
	cr_assert_str_eq(string_at(root, "identity.label"), "");
	json_object_put(root);
	text = text_of(s);
	expect_contains(text, "integrity off");
	free(text);
	free(s);
}

Test(json, takes_the_largest_numbers)
{
	struct stats_snapshot *s = largest();
	struct json_object *root = parse(s);

	cr_assert_eq(number_at(root, "operations.read.latency_ns.max"),
		     UINT64_MAX);
	json_object_put(root);
	free(s);
}

/* German writes 0,5: neither text nor JSON may follow. */
Test(locale, decimal_point_stays)
{
	struct stats_snapshot *s = ordinary();
	char *text = text_of(s), *json = stats_render_json(s);
	char *text_de, *json_de;

	if (!setlocale(LC_ALL, "de_DE.UTF-8"))
		cr_skip_test("the locale de_DE.UTF-8 is not installed");
	text_de = text_of(s);
	json_de = stats_render_json(s);
	cr_assert_str_eq(text_de, text);
	cr_assert_str_eq(json_de, json);
	free(text);
	free(json);
	free(text_de);
	free(json_de);
	free(s);
}
