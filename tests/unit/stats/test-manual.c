/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * STATS.md and the .def files have the same names in the same order.  The
 * manual's names are the first cells, in backquotes, of the tables below the
 * heading of their kind.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "stats/names.h"

enum {
	NAMES_MAX = 200,
	NAME_SIZE = 64
};

struct names {
	size_t nr;
	char name[NAMES_MAX][NAME_SIZE];
};

/* The name a table's row is about, or false if @line is none. */
static int row_name(const char *line, char *name)
{
	return sscanf(line, "| `%63[a-z0-9_]` |", name) == 1;
}

static void read_manual(const char *heading, struct names *names)
{
	FILE *f = fopen(STATS_MD, "r");
	char line[512], name[NAME_SIZE];
	int inside = 0;

	cr_assert_not_null(f, "cannot open %s", STATS_MD);
	names->nr = 0;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "## ", 3))
			inside = !strcmp(line + 3, heading);
		if (!inside || !row_name(line, name))
			continue;
		cr_assert(names->nr < NAMES_MAX);
		strcpy(names->name[names->nr++], name);
	}
	fclose(f);
}

static void expect_same(const char *heading, const struct stats_name *table,
			size_t nr)
{
	static struct names manual;

	read_manual(heading, &manual);
	for (size_t i = 0; i < nr && i < manual.nr; i++)
		cr_assert_str_eq(manual.name[i], table[i].name,
				 "%s, row %zu: STATS.md has %s, the .def %s",
				 heading, i + 1, manual.name[i], table[i].name);
	cr_assert_eq(manual.nr, nr, "%s: STATS.md has %zu rows, the .def %zu",
		     heading, manual.nr, nr);
}

Test(manual, has_all_operations)
{
	expect_same("Operations", stats_op_name, STATS_OP_NR);
}

Test(manual, has_all_timers)
{
	expect_same("Timers", stats_timer_name, STATS_TIMER_NR);
}

Test(manual, has_all_counters)
{
	expect_same("Counters", stats_counter_name, STATS_COUNTER_NR);
}

Test(manual, has_all_gauges)
{
	expect_same("Gauges", stats_gauge_name, STATS_GAUGE_NR);
}

/* "bytes" in the .def has to be "bytes" in the manual. */
static void expect_units(const char *heading, const struct stats_name *table,
			 size_t nr)
{
	FILE *f = fopen(STATS_MD, "r");
	char line[512], row[128];
	size_t found = 0;

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		for (size_t i = 0; i < nr; i++) {
			snprintf(row, sizeof(row), "| `%s` | %s |",
				 table[i].name, table[i].unit);
			found += !strncmp(line, row, strlen(row));
		}
	fclose(f);
	cr_assert_eq(found, nr, "%s: %zu of %zu units agree", heading, found,
		     nr);
}

Test(manual, has_the_same_units)
{
	expect_units("Counters", stats_counter_name, STATS_COUNTER_NR);
	expect_units("Gauges", stats_gauge_name, STATS_GAUGE_NR);
}
