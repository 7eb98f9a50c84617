/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk list: what is mounted, as a table or as JSON.  A daemon that is dead or
 * hangs is shown as that, and holds up nobody.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/header.h"
#include "tools/commands.h"
#include "tools/json.h"
#include "tools/mounts.h"

struct list {
	bool json;
};

struct row {
	const struct mount_entry *entry;
	struct control_info info;
	bool answered;
	const char *state;
};

/* Returns whether it is one of ours. */
static bool ask(struct row *r)
{
	const struct mount_entry *e = r->entry;
	int err;

	if (!e->ours && strcmp(e->type, "fuse") != 0)
		return false;
	err = mounts_ask(e, &r->info);
	r->answered = !err;
	if (!err)
		r->state = r->info.flags & CONTROL_READ_ONLY || e->read_only
				   ? "read-only"
				   : "read-write";
	else if (err == -ENOTCONN)
		r->state = "dead";
	else if (err == -ETIMEDOUT)
		r->state = "does not answer";
	else
		r->state = "may not be asked";
	return e->ours || !err;
}

static const char *container_of(const struct row *r)
{
	return r->answered ? r->info.container : r->entry->source;
}

static void pid_text(const struct row *r, char out[static 16])
{
	if (r->answered)
		snprintf(out, 16, "%d", r->info.pid);
	else
		snprintf(out, 16, "-");
}

static size_t wider(size_t width, const char *text)
{
	const size_t len = strlen(text);

	return len > width ? len : width;
}

static void print_line(size_t wide, size_t dir_wide, const char *container,
		       const char *dir, const char *pid, const char *scheme,
		       const char *state)
{
	char *line;

	if (asprintf(&line, "%-*s  %-*s  %7s  %-20s  %s", (int)wide, container,
		     (int)dir_wide, dir, pid, scheme, state) < 0)
		return;
	tool_print_line(line);
	free(line);
}

static enum tool_exit print_table(const struct row *rows, size_t nr)
{
	size_t wide = strlen("CONTAINER"), dir_wide = strlen("FOLDER");
	char pid[16];

	if (!nr)
		return TOOL_DONE;
	for (size_t i = 0; i < nr; i++) {
		wide = wider(wide, container_of(&rows[i]));
		dir_wide = wider(dir_wide, rows[i].entry->dir);
	}
	print_line(wide, dir_wide, "CONTAINER", "FOLDER", "PROCESS", "SCHEME",
		   "STATE");
	for (size_t i = 0; i < nr; i++) {
		const struct row *r = &rows[i];

		pid_text(r, pid);
		print_line(wide, dir_wide, container_of(r), r->entry->dir, pid,
			   r->answered ? r->info.scheme : "-", r->state);
	}
	return tool_finish_output(TOOL_DONE);
}

static struct json_object *row_json(const struct row *r)
{
	struct json_object *o = json_object_new_object();
	char uuid[37];

	json_add_text(o, "directory", r->entry->dir);
	json_add_text(o, "source", r->entry->source);
	json_add_text(o, "state", r->state);
	json_add_bool(o, "answers", r->answered);
	json_add_number(o, "user_id", r->entry->user);
	if (!r->answered)
		return o;
	uuid_format(r->info.uuid, uuid);
	json_add_text(o, "container", r->info.container);
	json_add_text(o, "uuid", uuid);
	json_add_text(o, "label", r->info.label);
	json_add_text(o, "scheme", r->info.scheme);
	json_add_number(o, "sector_size", r->info.sector_bytes);
	json_add_bool(o, "read_only", r->info.flags & CONTROL_READ_ONLY);
	json_add_number(o, "pid", r->info.pid > 0 ? r->info.pid : 0);
	json_add_number(o, "commit", r->info.commit);
	json_add_number(o, "since_unix_seconds", r->info.start_unix_seconds);
	json_add_text(o, "program_version", r->info.program);
	return o;
}

static enum tool_exit print_json(const struct row *rows, size_t nr)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();

	json_add_number(o, "version", 1);
	for (size_t i = 0; i < nr; i++)
		json_object_array_add(list, row_json(&rows[i]));
	json_object_object_add(o, "mounts", list);
	return json_print(o, TOOL_DONE);
}

static enum tool_exit list_run(void *state, char **args)
{
	const struct list *l = state;
	enum tool_exit code;
	struct mounts m;
	struct row *rows;
	size_t nr = 0;

	if (mounts_read(&m))
		return tool_fail(TOOL_FAILED, "/proc/self/mountinfo",
				 "can't be read; is /proc mounted?");
	rows = calloc(m.nr + 1, sizeof(*rows));
	if (!rows) {
		mounts_destroy(&m);
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	}
	for (size_t i = 0; i < m.nr; i++) {
		rows[nr].entry = &m.entry[i];
		nr += ask(&rows[nr]);
	}
	code = l->json ? print_json(rows, nr) : print_table(rows, nr);
	free(rows);
	mounts_destroy(&m);
	return code;
}

static const struct tool_option list_options[] = {
	{ "json", 0, NULL, offsetof(struct list, json), option_flag,
	  "Print one JSON object." },
	{ 0 },
};

static const char *const list_text[] = {
	"List the mounts of tuskfs in this mount name space: container, "
	"folder, daemon, scheme, and whether it can be written to. Prints "
	"nothing if there is none.",
	"A dead mount is one whose daemon died; 'tusk umount' clears it away.",
	NULL,
};

static const char *const list_examples[] = {
	"tusk list",
	"tusk list --json | jq -r '.mounts[].directory'",
	NULL,
};

const struct tool_command list_command = {
	.name = "list",
	.args = "",
	.min_args = 0,
	.max_args = 0,
	.summary = "list what is mounted",
	.text = list_text,
	.examples = list_examples,
	.options = list_options,
	.state_bytes = sizeof(struct list),
	.run = list_run,
};
