/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A reader of Prometheus' text format 0.0.4, stricter than Prometheus itself:
 * what it takes, promtool takes.  It knows nothing of what we write.
 *
 * Wanted: HELP, then TYPE, once for each family and before its series, which
 * stand together; names that follow the rules; labels with nothing but the
 * three escapes in valid UTF-8; no series twice; numbers that end where they
 * should; a newline at the end.
 */
#ifndef TESTS_UNIT_STATS_PROMCHECK_H
#define TESTS_UNIT_STATS_PROMCHECK_H

#include <stdbool.h>
#include <stddef.h>

enum {
	PROM_FAMILIES_MAX = 256,
	PROM_SERIES_MAX = 2048,
	PROM_TEXT_MAX = 2304,
};

struct prom_family {
	char name[128];
	char type[16]; /* empty: only HELP was seen */
};

/* One sample; @key is its name and labels as they stand in the text. */
struct prom_series {
	char key[PROM_TEXT_MAX];
	double value;
};

struct prom_page {
	size_t nr_families, nr_series;
	struct prom_family family[PROM_FAMILIES_MAX];
	struct prom_series series[PROM_SERIES_MAX];
	/* What was wrong in which line, if anything. */
	char error[256];
};

/* Read @text; false with p->error set if it breaks a rule. */
bool prom_read(struct prom_page *p, const char *text);

/* The family called @name, or NULL. */
const struct prom_family *prom_family(const struct prom_page *p,
				      const char *name);

/* The series with exactly this name and labels, or NULL. */
const struct prom_series *prom_series(const struct prom_page *p,
				      const char *key);

#endif
