/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk compare: what does this encryption cost, on this machine, with this
 * workload?
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cipher/scheme.h"
#include "tools/commands.h"
#include "tools/replay/contest.h"
#include "tools/replay/machine.h"
#include "tools/replay/plot.h"
#include "tools/replay/report.h"
#include "tools/replay/table.h"
#include "tools/unlock.h"

#define DIRS_MAX 8
#define ROUNDS_DEFAULT 3
#define COLUMNS_DEFAULT 80
#define COLUMNS_MIN 60
#define WITH_INTEGRITY "+integrity"
#define DEFAULT_SCHEME "aes-256-xts"

struct compare {
	struct run_options options;
	const char *schemes;
	struct option_number rounds;
	struct {
		const char *path[DIRS_MAX];
		size_t nr;
	} dirs;
	const char *json, *csv, *plot;

	struct plan plan;
	struct machine machine;
	struct contest contest;
};

static enum tool_exit add_dir(void *field, const struct tool_option *o,
			      const char *value)
{
	typeof(((struct compare *)0)->dirs) *const dirs = field;
	struct stat st;

	if (dirs->nr == DIRS_MAX)
		return tool_fail(TOOL_USAGE, NULL, "--%s: at most %d", o->name,
				 DIRS_MAX);
	if (stat(value, &st) || !S_ISDIR(st.st_mode))
		return tool_fail(TOOL_USAGE, value, "is not a folder");
	dirs->path[dirs->nr++] = value;
	return TOOL_DONE;
}

static enum tool_exit set_rounds(void *field, const struct tool_option *o,
				 const char *value)
{
	const struct option_number *n = field;
	const enum tool_exit code = option_count(field, o, value);

	if (code == TOOL_DONE && n->value > CONTEST_ROUNDS_MAX)
		return tool_fail(TOOL_USAGE, NULL, "--%s: at most %d", o->name,
				 CONTEST_ROUNDS_MAX);
	return code;
}

/* ---- who takes part ---- */

static struct contestant *add_row(struct compare *s, const char *dir)
{
	struct contest *c = &s->contest;
	struct contestant *grown;

	if (c->nr_rows == CONTEST_ROWS_MAX)
		return NULL;
	grown = reallocarray(c->row, c->nr_rows + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	c->row = grown;
	grown += c->nr_rows++;
	memset(grown, 0, sizeof(*grown));
	grown->dir = dir;
	return grown;
}

static bool add_scheme(struct compare *s, const char *dir, const char *scheme,
		       bool integrity)
{
	struct contestant *row;

	/* The base is always there; who names it gets it once. */
	for (size_t i = 0; i < s->contest.nr_rows; i++) {
		const struct contestant *r = &s->contest.row[i];

		if (r->dir == dir && r->scheme && !strcmp(r->scheme, scheme) &&
		    r->integrity == integrity)
			return true;
	}
	row = add_row(s, dir);
	if (!row)
		return false;
	row->scheme = scheme;
	row->integrity = integrity;
	snprintf(row->name, sizeof(row->name), "%s%s", scheme,
		 integrity ? WITH_INTEGRITY : "");
	return true;
}

static bool add_all_schemes(struct compare *s, const char *dir)
{
	bool ok = true;

	for (size_t i = 0; ok && scheme_at(i); i++)
		ok = add_scheme(s, dir, scheme_at(i)->name, false);
	return ok && add_scheme(s, dir, DEFAULT_SCHEME, true);
}

/* "aes-128-xts" or "aes-128-xts+integrity", @len bytes of it. */
static enum tool_exit add_named(struct compare *s, const char *dir,
				const char *word, size_t len)
{
	const size_t suffix = strlen(WITH_INTEGRITY);
	const struct scheme *found;
	bool integrity;
	char name[64];

	if (len >= sizeof(name))
		len = sizeof(name) - 1;
	memcpy(name, word, len);
	name[len] = '\0';
	integrity = len > suffix &&
		    !strcmp(name + len - suffix, WITH_INTEGRITY);
	if (integrity)
		name[len - suffix] = '\0';
	found = scheme_by_name(name);
	if (!found)
		return tool_fail(TOOL_USAGE, NULL,
				 "--schemes: '%s' is no scheme; 'tusk create "
				 "--help' lists them",
				 name);
	return add_scheme(s, dir, found->name, integrity)
		       ? TOOL_DONE
		       : tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
}

static enum tool_exit add_list(struct compare *s, const char *dir)
{
	const char *word = s->schemes;
	enum tool_exit code = TOOL_DONE;

	while (code == TOOL_DONE && *word) {
		const size_t len = strcspn(word, ",");

		if (len)
			code = add_named(s, dir, word, len);
		word += len;
		word += strspn(word, ",");
	}
	return code;
}

static enum tool_exit add_group(struct compare *s, const char *dir)
{
	struct contestant *host = add_row(s, dir);

	if (host)
		snprintf(host->name, sizeof(host->name), "host folder");
	if (!host || !add_scheme(s, dir, "none", false))
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	if (s->schemes)
		return add_list(s, dir);
	return add_all_schemes(s, dir)
		       ? TOOL_DONE
		       : tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
}

static enum tool_exit add_rows(struct compare *s)
{
	enum tool_exit code = TOOL_DONE;

	if (!s->dirs.nr)
		s->dirs.path[s->dirs.nr++] = ".";
	for (size_t i = 0; i < s->dirs.nr && code == TOOL_DONE; i++)
		code = add_group(s, s->dirs.path[i]);
	return code;
}

/* ---- output ---- */

static unsigned int terminal_columns(void)
{
	struct winsize w;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || !w.ws_col)
		return COLUMNS_DEFAULT;
	return w.ws_col < COLUMNS_MIN ? COLUMNS_MIN : w.ws_col;
}

static enum tool_exit write_csv(const struct compare *s)
{
	FILE *out = fopen(s->csv, "we");
	int err = out ? table_csv(out, &s->contest) : -errno;

	if (out && fclose(out) && !err)
		err = -errno;
	return err ? tool_fail(TOOL_FAILED, s->csv, "%s", strerrordesc_np(-err))
		   : TOOL_DONE;
}

static enum tool_exit worse(enum tool_exit a, enum tool_exit b)
{
	return a == TOOL_DONE ? b : a;
}

/* Whatever fails, the rest is written: the measuring took long. */
static enum tool_exit output(const struct compare *s)
{
	const struct contest *c = &s->contest;
	enum tool_exit code = TOOL_DONE;

	if (!s->json || strcmp(s->json, "-") != 0)
		table_text(stdout, c, &s->machine, terminal_columns());
	if (s->json)
		code = worse(code, report_write_json(table_json(c, &s->machine),
						     s->json));
	if (s->csv)
		code = worse(code, write_csv(s));
	if (s->plot)
		code = worse(code, plot_write(c, &s->machine, s->plot));
	return tool_finish_output(code);
}

/* ---- the command ---- */

static enum tool_exit run_contest(struct compare *s)
{
	struct contest *c = &s->contest;
	enum tool_exit code;

	c->plan = &s->plan;
	c->options = &s->options;
	c->interrupt = run_catch_signals();
	c->nr_rounds = s->rounds.given ? (unsigned int)s->rounds.value
				       : ROUNDS_DEFAULT;
	c->show_progress = isatty(STDERR_FILENO);
	code = contest_run(c);
	if (!c->rounds_done)
		return code == TOOL_INTERRUPTED
			       ? tool_fail(code, NULL,
					   "interrupted before the first round "
					   "was done")
			       : code;
	return worse(code, output(s));
}

static enum tool_exit compare_run(void *state, char **args)
{
	struct compare *s = state;
	enum tool_exit code = add_rows(s);

	if (code == TOOL_DONE)
		code = plan_make(&s->plan, args, 1, &s->options.plan);
	if (code == TOOL_DONE)
		code = run_check(&s->plan, &s->options);
	/* For what it says about the processor. */
	if (code == TOOL_DONE)
		code = tool_start_cipher(1);
	if (code == TOOL_DONE) {
		machine_get(&s->machine);
		code = run_contest(s);
	}
	plan_destroy(&s->plan);
	free(s->contest.row);
	return code;
}

static const struct tool_option compare_options[] = {
	{ "schemes", 0, "A,B,...", offsetof(struct compare, schemes),
	  option_string,
	  "Which schemes, without integrity; with it as NAME+integrity.  "
	  "Default: all, and aes-256-xts+integrity.  'none' without integrity "
	  "and the folder itself always take part." },
	{ "rounds", 0, "N", offsetof(struct compare, rounds), set_rounds,
	  "How often each runs (default: 3)." },
	{ "dir", 0, "DIR", offsetof(struct compare, dirs), add_dir,
	  "Where containers are made (default: the current folder).  Given "
	  "again, the rows are repeated there, as a group of their own." },
	{ "json", 0, "FILE", offsetof(struct compare, json), option_string,
	  "Write all as JSON too; '-': to standard output, in place of the "
	  "text." },
	{ "csv", 0, "FILE", offsetof(struct compare, csv), option_string,
	  "Write each run's numbers as CSV too." },
	{ "plot", 0, "FILE.svg", offsetof(struct compare, plot), option_string,
	  "Draw the table too; needs gnuplot." },
	RUN_OPTIONS(offsetof(struct compare, options)),
	{ 0 },
};

static const char *const compare_text[] = {
	"Replay a trace on a throw-away container of each scheme and on the "
	"folder itself, in rounds, and print what each scheme costs: MB/s "
	"(min, max, average, burst), IOPS, access time, CPU time, and how "
	"much worse each is than no encryption and than the folder.",
	"Every run has a new container, filled and mounted anew, with caches "
	"dropped (root: the whole machine's; else of the files concerned).  "
	"The rounds are interleaved and their order rotates; a difference that "
	"is not larger than what the rounds differ among themselves is marked "
	"with ~.  All that was made is removed.  REPLAY.md says how to read "
	"it.",
	NULL,
};

static const char *const compare_examples[] = {
	"tusk compare mail.csv.gz",
	"tusk compare --schemes aes-128-xts,aes-256-xts --rounds 5 job.iolog",
	"tusk compare --dir ~ --dir /mnt/nvme --json all.json trace.blkparse",
	NULL,
};

const struct tool_command compare_command = {
	.name = "compare",
	.args = "TRACE",
	.min_args = 1,
	.max_args = 1,
	.summary = "what each scheme costs with the workload of a trace",
	.text = compare_text,
	.examples = compare_examples,
	.options = compare_options,
	.more_help = run_help,
	.state_bytes = sizeof(struct compare),
	.run = compare_run,
};
