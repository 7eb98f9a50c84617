/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The Prometheus text of the snapshots of support.h: by our own reader of the
 * format always, by Prometheus' own where promtool is installed.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "promcheck.h"
#include "stats/names.h"
#include "stats/snapshot.h"
#include "support.h"

#define UUID "uuid=\"0f0e0d0c-0b0a-0908-0706-050403020100\""

static char *text_of(const struct stats_snapshot *s)
{
	char *text = stats_render_prometheus(s);

	cr_assert_not_null(text);
	return text;
}

/* Rendered and read back; one at a time. */
static const struct prom_page *page_of(const struct stats_snapshot *s)
{
	static struct prom_page page;
	char *text = text_of(s);

	cr_assert(prom_read(&page, text), "%s", page.error);
	free(text);
	return &page;
}

static double value_of(const struct prom_page *p, const char *key)
{
	const struct prom_series *s = prom_series(p, key);

	cr_assert_not_null(s, "%s is missing", key);
	return s->value;
}

static void expect_value(const struct prom_page *p, const char *key,
			 double value)
{
	double got = value_of(p, key);

	cr_assert_eq(got, value, "%s is %.17g, not %.17g", key, got, value);
}

Test(prometheus, keeps_the_rules_of_the_format)
{
	struct stats_snapshot *s[] = { new_snapshot(), ordinary(), largest() };

	for (size_t i = 0; i < 3; i++) {
		page_of(s[i]);
		free(s[i]);
	}
}

Test(prometheus, has_every_name_even_when_all_is_zero)
{
	struct stats_snapshot *s = new_snapshot();
	const struct prom_page *p = page_of(s);
	char key[256];

	for (size_t i = 0; i < STATS_OP_NR; i++) {
		snprintf(key, sizeof(key),
			 "tuskfs_operation_seconds_count{" UUID
			 ",operation=\"%s\"}",
			 stats_op_name[i].name);
		expect_value(p, key, 0);
	}
	for (size_t i = 0; i < STATS_TIMER_NR; i++) {
		snprintf(key, sizeof(key),
			 "tuskfs_timer_bytes_total{" UUID ",timer=\"%s\"}",
			 stats_timer_name[i].name);
		expect_value(p, key, 0);
	}
	/* 3 of the mount, 3 and 2 of operations and timers, and the tables. */
	cr_assert_eq(p->nr_families, 8 + STATS_COUNTER_NR + STATS_GAUGE_NR);
	/* A summary has the percentiles, both ends, sum and count. */
	cr_assert_eq(p->nr_series,
		     3 + STATS_OP_NR * (STATS_PERCENTILE_NR + 6) +
			     STATS_TIMER_NR * (STATS_PERCENTILE_NR + 5) +
			     STATS_COUNTER_NR + STATS_GAUGE_NR);
	free(s);
}

Test(prometheus, has_the_numbers)
{
	struct stats_snapshot *s = ordinary();
	const struct prom_page *p;

	s->counter[STATS_container_grown] = 4096;
	s->gauge[STATS_GAUGE_inode_cache_count] = 7;
	s->gauge[STATS_GAUGE_data_bytes] = 8192;
	p = page_of(s);
	expect_value(p,
		     "tuskfs_operation_seconds_count{" UUID
		     ",operation=\"write\"}",
		     1000);
	expect_value(p,
		     "tuskfs_operation_seconds_sum{" UUID
		     ",operation=\"write\"}",
		     1);
	expect_value(p,
		     "tuskfs_operation_seconds{" UUID
		     ",operation=\"write\",quantile=\"0.5\"}",
		     0.001);
	expect_value(p,
		     "tuskfs_operation_errors_total{" UUID
		     ",operation=\"write\"}",
		     3);
	expect_value(p,
		     "tuskfs_operation_bytes_total{" UUID
		     ",operation=\"write\"}",
		     131072000);
	expect_value(p, "tuskfs_timer_seconds_sum{" UUID ",timer=\"encrypt\"}",
		     0.1);
	expect_value(p, "tuskfs_node_hits_total{" UUID "}", 999);
	expect_value(p, "tuskfs_container_grown_bytes_total{" UUID "}", 4096);
	expect_value(p, "tuskfs_inode_cache_inodes{" UUID "}", 7);
	expect_value(p, "tuskfs_data_bytes{" UUID "}", 8192);
	expect_value(p, "tuskfs_uptime_seconds{" UUID "}", 100);
	expect_value(p, "tuskfs_start_time_seconds{" UUID "}", 1767225600);
	free(s);
}

Test(prometheus, quantiles_are_the_percentiles)
{
	static const char *const quantile[] = { "0",	  "0.5",  "0.9",
						"0.95",	  "0.99", "0.999",
						"0.9999", "1" };
	struct stats_snapshot *s = ordinary();
	const struct prom_page *p;
	char key[256];

	add_calls(&s->op[STATS_OP_mkdir], 1, 5, 0);
	p = page_of(s);
	for (size_t i = 0; i < sizeof(quantile) / sizeof(quantile[0]); i++) {
		snprintf(key, sizeof(key),
			 "tuskfs_operation_seconds{" UUID
			 ",operation=\"mkdir\",quantile=\"%s\"}",
			 quantile[i]);
		expect_value(p, key, 5e-9);
	}
	cr_assert(isnan(value_of(p, "tuskfs_operation_seconds{" UUID
				    ",operation=\"rmdir\",quantile=\"1\"}")),
		  "a quantile of nothing is a number");
	free(s);
}

Test(prometheus, label_is_cleaned_and_escaped)
{
	struct stats_snapshot *s = new_snapshot();
	char *text;

	s->identity.label = "\"\\\xff\n\xc3\xa9} 1";
	page_of(s);
	text = text_of(s);
	cr_assert_not_null(strstr(text, ",label=\"\\\"\\\\??\xc3\xa9} 1\","),
			   "%s", text);
	free(text);
	free(s);
}

/* Longest where each character is escaped; cut nowhere within one. */
Test(prometheus, takes_labels_of_any_length)
{
	char label[3000];

	for (size_t len = 0; len < sizeof(label); len += 37) {
		struct stats_snapshot *s = new_snapshot();

		memset(label, '\\', len);
		label[len] = '\0';
		s->identity.label = label;
		s->identity.uuid = label;
		page_of(s);
		free(s);
	}
}

Test(prometheus, takes_a_missing_identity)
{
	struct stats_snapshot *s = new_snapshot();
	const struct prom_page *p;

	memset(&s->identity, 0, sizeof(s->identity));
	p = page_of(s);
	expect_value(p,
		     "tuskfs_info{uuid=\"\",version=\"\",label=\"\","
		     "scheme=\"\",sector_bytes=\"0\",integrity=\"off\","
		     "epoch_id=\"0000000000000000\"}",
		     1);
	free(s);
}

/* German writes 0,5: the format doesn't. */
Test(prometheus, decimal_point_stays)
{
	struct stats_snapshot *s = ordinary();
	char *text = text_of(s), *text_de;

	if (!setlocale(LC_ALL, "de_DE.UTF-8"))
		cr_skip_test("the locale de_DE.UTF-8 is not installed");
	text_de = text_of(s);
	cr_assert_str_eq(text_de, text);
	free(text);
	free(text_de);
	free(s);
}

/* Families that come from no table have to be in the manual. */
Test(prometheus, manual_has_the_families)
{
	struct stats_snapshot *s = new_snapshot();
	const struct prom_page *p = page_of(s);
	FILE *f = fopen(STATS_MD, "r");
	char line[512], name[128], type[16];
	size_t nr = 0;

	cr_assert_not_null(f, "cannot open %s", STATS_MD);
	while (fgets(line, sizeof(line), f)) {
		const struct prom_family *family;

		if (sscanf(line, "| `%127[a-z_]` | %15[a-z] |", name, type) !=
			    2 ||
		    strncmp(name, "tuskfs_", 7))
			continue;
		family = prom_family(p, name);
		cr_assert_not_null(family, "no family %s", name);
		cr_assert_str_eq(family->type, type, "%s", name);
		nr++;
	}
	fclose(f);
	cr_assert_eq(nr + STATS_COUNTER_NR + STATS_GAUGE_NR, p->nr_families);
	free(s);
}

Test(prometheus, promtool_has_nothing_to_say)
{
	struct stats_snapshot *s[] = { new_snapshot(), ordinary(), largest() };

	if (system("command -v promtool >/dev/null"))
		cr_skip_test("promtool (package prometheus) is not installed");
	for (size_t i = 0; i < 3; i++) {
		FILE *tool = popen("promtool check metrics >&2", "w");
		char *text = text_of(s[i]);
		int status;

		cr_assert_not_null(tool);
		fputs(text, tool);
		status = pclose(tool);
		cr_assert(WIFEXITED(status) && !WEXITSTATUS(status),
			  "promtool check metrics: status %d", status);
		free(text);
		free(s[i]);
	}
}

/* The reader itself: each rule, broken once. */
static void expect_wrong(const char *text, const char *why)
{
	static struct prom_page page;

	cr_assert_not(prom_read(&page, text), "taken: %s", text);
	cr_assert_eq(strncmp(page.error, why, strlen(why)), 0, "%s: %s",
		     page.error, text);
}

#define A_TOTAL "# HELP a_total x\n# TYPE a_total counter\n"
#define A_GAUGE "# HELP a x\n# TYPE a gauge\n"
#define A_SUMMARY "# HELP a x\n# TYPE a summary\n"

Test(promcheck, finds_each_fault)
{
	expect_wrong(A_TOTAL "a_total 1", "no newline");
	expect_wrong(A_TOTAL "a_total 1\na_total 2\n", "a series twice");
	expect_wrong(A_TOTAL "b_total 1\n", "not of the family");
	expect_wrong(A_TOTAL "a_total 1x\n", "not a number");
	expect_wrong(A_TOTAL "a_total  1\n", "not a number");
	expect_wrong(A_TOTAL "a_total\n", "no blank");
	expect_wrong(A_TOTAL "a_total{b=\"\\q\"} 1\n", "bad labels");
	expect_wrong(A_TOTAL "a_total{b=\"\xff\"} 1\n", "bad labels");
	expect_wrong(A_TOTAL "a_total{b=\"1\",b=\"1\"} 1\n", "bad labels");
	expect_wrong(A_TOTAL "a_total{b=\"1} 1\n", "bad labels");
	expect_wrong(A_TOTAL A_TOTAL, "HELP twice");
	expect_wrong(A_TOTAL "# TYPE a_total counter\n", "TYPE twice");
	expect_wrong("# TYPE a gauge\n", "TYPE without HELP");
	expect_wrong("# HELP a x\n", "no TYPE");
	expect_wrong("# HELP a x\na 1\n", "not of the family");
	expect_wrong("# HELP a x\n# HELP b x\n", "the family before");
	expect_wrong("# HELP a \\x\n# TYPE a gauge\n", "unknown escape");
	expect_wrong("# HELP a x\n# TYPE a gouge\n", "unknown type");
	expect_wrong("# HELP a x\n# TYPE a counter\n", "_total");
	expect_wrong("# HELP a_count x\n# TYPE a_count gauge\n", "the suffix");
	expect_wrong(A_GAUGE "a_sum 1\n", "not of the family");
	expect_wrong(A_SUMMARY "a 1\n", "not of the family");
	expect_wrong(A_SUMMARY "a_sum{quantile=\"1\"} 1\n",
		     "not of the family");
	expect_wrong("1a 1\n", "no name");
	expect_wrong("\n", "no name");
}
