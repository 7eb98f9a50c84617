/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk check: prove that a container is whole.  Reads only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/check.h"
#include "tools/commands.h"
#include "tools/json.h"
#include "tools/unlock.h"

#define CHECK_THREADS 1

struct check {
	bool data, json, repair, dry_run;
	struct password_source password;

	struct json_object *findings; /* NULL unless --json */
	bool progress_shown;
};

static const struct tool_option check_options[] = {
	{ "data", 0, NULL, offsetof(struct check, data), option_flag,
	  "Read all data too and verify each block's tag." },
	{ "json", 0, NULL, offsetof(struct check, json), option_flag,
	  "Print one JSON object." },
	{ "repair", 0, NULL, offsetof(struct check, repair), option_flag,
	  "Not available in this version, and refused." },
	{ "dry-run", 0, NULL, offsetof(struct check, dry_run), option_flag,
	  "Not available in this version, and refused." },
	PASSWORD_OPTIONS(offsetof(struct check, password), "", "the password"),
	{ 0 },
};

/* The summary, as text and as JSON. */
static const struct {
	const char *key;
	const char *text;
	size_t offset;
} counts[] = {
/* clang-format off */
#define COUNT(field, text) \
	{ #field, text, offsetof(struct check_result, field) }
	/* clang-format on */
	COUNT(commit, "commit"),
	COUNT(files, "files"),
	COUNT(folders, "folders"),
	COUNT(others, "other entries"),
	COUNT(orphans, "orphans"),
	COUNT(nodes, "tree nodes"),
	COUNT(blocks_total, "blocks"),
	COUNT(blocks_fixed, "  fixed"),
	COUNT(blocks_data, "  data"),
	COUNT(blocks_nodes, "  nodes"),
	COUNT(blocks_freed, "  freed"),
	COUNT(blocks_free, "  free"),
	COUNT(blocks_unbacked, "  not backed"),
	COUNT(data_checked, "data verified"),
#undef COUNT
};

#define COUNTS (sizeof(counts) / sizeof(counts[0]))

static uint64_t count_value(const struct check_result *r, size_t i)
{
	return *(const uint64_t *)((const char *)r + counts[i].offset);
}

static void clear_progress(struct check *k)
{
	if (k->progress_shown)
		fputs("\r\033[K", stderr);
	k->progress_shown = false;
}

/* Findings come out as they are found: a check of a disk takes hours. */
static void report(void *arg, const char *line)
{
	struct check *k = arg;

	clear_progress(k);
	if (k->findings) {
		json_object_array_add(k->findings, json_text(line));
		return;
	}
	tool_print_line(line);
	fflush(stdout);
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	struct check *k = arg;

	if (!total)
		return;
	fprintf(stderr, "\r%3u %%", (unsigned int)(done * 100 / total));
	k->progress_shown = true;
}

static void print_summary(const struct check_result *r)
{
	for (size_t i = 0; i < COUNTS; i++)
		printf("%-16s %" PRIu64 "\n", counts[i].text,
		       count_value(r, i));
	printf("%-16s %s\n", "unmounted", r->was_clean ? "in order" : "not");
	printf("%-16s %" PRIu64 "\n", "damages found", r->errors);
}

static enum tool_exit print_json(struct check *k, const char *path,
				 const struct check_result *r,
				 enum tool_exit code)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "version", 1);
	json_add_text(o, "container", path);
	json_add_number(o, "errors", r->errors);
	json_add_bool(o, "clean", r->errors == 0);
	json_add_bool(o, "unmounted_in_order", r->was_clean);
	for (size_t i = 0; i < COUNTS; i++)
		json_add_number(o, counts[i].key, count_value(r, i));
	json_object_object_add(o, "findings", k->findings);
	k->findings = NULL;
	return json_print(o, code);
}

static enum tool_exit print_result(struct check *k, const char *path,
				   const struct check_result *r)
{
	const enum tool_exit code = r->errors ? TOOL_DAMAGED : TOOL_DONE;

	if (k->json)
		return print_json(k, path, r, code);
	print_summary(r);
	return tool_finish_output(code);
}

/* A lost copy is damage, though the other one serves. */
static void report_header(struct check *k, const struct header *h,
			  struct check_result *r)
{
	static const char *const names[2] = { "first", "second" };
	char line[64];

	for (int i = 0; i < 2; i++) {
		if (h->copy_ok[i])
			continue;
		snprintf(line, sizeof(line), "header: the %s copy is damaged",
			 names[i]);
		report(k, line);
		r->errors++;
	}
}

static enum tool_exit check_opened(struct check *k, struct tool_container *t)
{
	const struct check_options options = {
		.data = k->data,
		.report = report,
		.report_arg = k,
		.progress = isatty(STDERR_FILENO) ? progress : NULL,
	};
	struct check_result r = { 0 };
	int err;

	if (k->json)
		k->findings = json_object_new_array();
	err = check_container(t->c, &t->header, &t->keys, &options, &r);
	if (!err)
		report_header(k, &t->header, &r);
	clear_progress(k);
	if (err)
		return tool_fail_errno(TOOL_AT_VOLUME, t->path, err);
	return print_result(k, t->path, &r);
}

static enum tool_exit check_unlocked(struct check *k, const char *path)
{
	const struct password_request request = {
		.what = path,
		.kind = PASSWORD_OLD,
		.prefix = "",
	};
	struct tool_container t;
	enum tool_exit code;

	code = tool_open_container(&t, path, CONTAINER_READ_ONLY,
				   TOOL_WAIT_SECONDS);
	if (code != TOOL_DONE)
		return code;
	t.quiet = true;
	code = tool_start_cipher(CHECK_THREADS);
	if (code == TOOL_DONE)
		code = tool_unlock(&t, &k->password, &request, CHECK_THREADS,
				   NULL);
	if (code == TOOL_DONE)
		code = check_opened(k, &t);
	json_object_put(k->findings);
	tool_close(&t);
	return code;
}

static enum tool_exit check_run(void *state, char **args)
{
	const struct password_request request = { .prefix = "" };
	struct check *k = state;
	enum tool_exit code;

	if (k->repair || k->dry_run)
		return tool_fail(TOOL_UNSUPPORTED, NULL,
				 "--%s: this version finds damage, but cannot "
				 "repair it",
				 k->repair ? "repair" : "dry-run");
	code = password_source_check(&k->password, &request);
	return code == TOOL_DONE ? check_unlocked(k, args[0]) : code;
}

static const char *const check_text[] = {
	"Read and verify every structure of a container: all tree nodes are "
	"authentic and well-formed, and every block belongs to exactly one "
	"owner or is free.  With --data, every block of data too.  Nothing is "
	"written, and the container must not be mounted.",
	"Each damage is one line on stdout, with a path where there is one; a "
	"summary follows.  The exit status is 0 if nothing was found, and 4 "
	"otherwise.",
	NULL,
};

static const char *const check_examples[] = {
	"tusk check ~/vault.tusk",
	"tusk check --data --json --password-file pw vault.tusk",
	NULL,
};

const struct tool_command check_command = {
	.name = "check",
	.args = "CONTAINER",
	.min_args = 1,
	.max_args = 1,
	.summary = "verify every structure of a container",
	.text = check_text,
	.examples = check_examples,
	.options = check_options,
	.state_bytes = sizeof(struct check),
	.run = check_run,
};
