/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "promcheck.h"
#include "stats/utf8.h"

static bool wrong(struct prom_page *p, const char *what, const char *line)
{
	snprintf(p->error, sizeof(p->error), "%s: %.200s", what, line);
	return false;
}

/* Bytes of a name that @s begins with; colons are for metrics only. */
static size_t name_len(const char *s, bool metric)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_' ||
	       (metric && s[n] == ':'))
		n++;
	return isdigit((unsigned char)s[0]) ? 0 : n;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n > m && !strcmp(s + n - m, end);
}

static const struct prom_family *last_family(const struct prom_page *p)
{
	return p->nr_families ? &p->family[p->nr_families - 1] : NULL;
}

const struct prom_family *prom_family(const struct prom_page *p,
				      const char *name)
{
	for (size_t i = 0; i < p->nr_families; i++)
		if (!strcmp(p->family[i].name, name))
			return &p->family[i];
	return NULL;
}

const struct prom_series *prom_series(const struct prom_page *p,
				      const char *key)
{
	for (size_t i = 0; i < p->nr_series; i++)
		if (!strcmp(p->series[i].key, key))
			return &p->series[i];
	return NULL;
}

/* "name rest" after "# HELP ": a family begins. */
static bool read_help(struct prom_page *p, const char *line)
{
	struct prom_family *f = &p->family[p->nr_families];
	size_t n = name_len(line, true);

	if (!n || n >= sizeof(f->name) || line[n] != ' ' || !line[n + 1])
		return wrong(p, "HELP without a name or text", line);
	if (p->nr_families == PROM_FAMILIES_MAX)
		return wrong(p, "too many families", line);
	if (last_family(p) && !last_family(p)->type[0])
		return wrong(p, "the family before has no TYPE", line);
	for (const char *c = line + n; *c; c++)
		if (*c == '\\' && *++c != '\\' && *c != 'n')
			return wrong(p, "unknown escape in HELP", line);
	memset(f, 0, sizeof(*f));
	memcpy(f->name, line, n);
	if (prom_family(p, f->name))
		return wrong(p, "HELP twice, or a family in two places", line);
	p->nr_families++;
	return true;
}

static bool known_type(const char *type)
{
	static const char *const all[] = { "counter", "gauge", "histogram",
					   "summary", "untyped" };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(type, all[i]))
			return true;
	return false;
}

/* "name type" after "# TYPE ", just below its HELP. */
static bool read_type(struct prom_page *p, const char *line)
{
	struct prom_family *f;
	size_t n;

	if (!p->nr_families)
		return wrong(p, "TYPE without HELP", line);
	f = &p->family[p->nr_families - 1];
	n = strlen(f->name);
	if (strncmp(line, f->name, n) || line[n] != ' ')
		return wrong(p, "TYPE without HELP", line);
	if (f->type[0])
		return wrong(p, "TYPE twice", line);
	if (!known_type(line + n + 1))
		return wrong(p, "unknown type", line);
	strcpy(f->type, line + n + 1);
	if (!strcmp(f->type, "counter") != ends_with(f->name, "_total"))
		return wrong(p, "_total is for counters, and for all", line);
	if (ends_with(f->name, "_count") || ends_with(f->name, "_sum"))
		return wrong(p, "the suffix belongs to summaries", line);
	return true;
}

/* The quoted value of a label; returns its end, behind the quote, or NULL. */
static const char *read_value(const char *s)
{
	if (*s++ != '"')
		return NULL;
	while (*s != '"') {
		size_t n = utf8_length(s);

		if (!*s || !n)
			return NULL;
		if (*s == '\\') {
			if (s[1] != '\\' && s[1] != '"' && s[1] != 'n')
				return NULL;
			n = 2;
		}
		s += n;
	}
	return s + 1;
}

/* Labels from the brace on; returns what is behind the closing one, or NULL. */
static const char *read_labels(const char *s, bool *quantile)
{
	char seen[1024] = ",";

	*quantile = false;
	do {
		size_t n = name_len(++s, false);
		char name[80];

		if (!n || n + 3 > sizeof(name) || s[n] != '=')
			return NULL;
		snprintf(name, sizeof(name), ",%.*s,", (int)n, s);
		if (strstr(seen, name) || strlen(seen) + n + 2 > sizeof(seen))
			return NULL;
		strcat(seen, name + 1);
		*quantile |= !strcmp(name, ",quantile,");
		s = read_value(s + n + 1);
	} while (s && *s == ',');
	return s && *s == '}' ? s + 1 : NULL;
}

/* What a sample of name @name may be in the family that was opened last. */
static bool belongs(const struct prom_family *f, const char *name, size_t n,
		    bool quantile)
{
	size_t len = strlen(f->name);
	bool summary = !strcmp(f->type, "summary");

	if (n < len || strncmp(name, f->name, len))
		return false;
	if (n == len)
		return quantile == summary;
	if (!summary || quantile)
		return false;
	return (n - len == 4 && !strncmp(name + len, "_sum", 4)) ||
	       (n - len == 6 && !strncmp(name + len, "_count", 6));
}

static bool read_sample(struct prom_page *p, const char *line)
{
	size_t n = name_len(line, true);
	struct prom_series *s = &p->series[p->nr_series];
	const char *end = line + n;
	bool quantile = false;
	char *rest;

	if (!n)
		return wrong(p, "no name", line);
	if (*end == '{' && !(end = read_labels(end, &quantile)))
		return wrong(p, "bad labels", line);
	if (*end != ' ')
		return wrong(p, "no blank before the number", line);
	if (!last_family(p) || !last_family(p)->type[0] ||
	    !belongs(last_family(p), line, n, quantile))
		return wrong(p, "not of the family above", line);
	if (p->nr_series == PROM_SERIES_MAX ||
	    (size_t)(end - line) >= sizeof(s->key))
		return wrong(p, "too many series, or too long", line);
	memcpy(s->key, line, (size_t)(end - line));
	s->key[end - line] = '\0';
	if (prom_series(p, s->key))
		return wrong(p, "a series twice", line);
	s->value = strtod(end + 1, &rest);
	if (rest == end + 1 || *rest || isspace((unsigned char)end[1]))
		return wrong(p, "not a number", line);
	p->nr_series++;
	return true;
}

static bool read_line(struct prom_page *p, const char *line)
{
	if (!strncmp(line, "# HELP ", 7))
		return read_help(p, line + 7);
	if (!strncmp(line, "# TYPE ", 7))
		return read_type(p, line + 7);
	return read_sample(p, line);
}

bool prom_read(struct prom_page *p, const char *text)
{
	char line[PROM_TEXT_MAX];

	p->nr_families = p->nr_series = 0;
	p->error[0] = '\0';
	while (*text) {
		size_t n = strcspn(text, "\n");

		if (text[n] != '\n')
			return wrong(p, "no newline at the end", text);
		if (n >= sizeof(line))
			return wrong(p, "a long line", text);
		memcpy(line, text, n);
		line[n] = '\0';
		if (!read_line(p, line))
			return false;
		text += n + 1;
	}
	if (last_family(p) && !last_family(p)->type[0])
		return wrong(p, "no TYPE", last_family(p)->name);
	return true;
}
