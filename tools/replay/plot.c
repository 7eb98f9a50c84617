/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Bars from the left, names beside them, the range of the rounds as a line on
 * each.  No background, and colours of middling brightness: it stands on a page
 * that is white or black.  The same numbers give the same bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/replay/format.h"
#include "tools/replay/plot.h"

#define BAR_PIXELS 34
#define FRAME_PIXELS 130
#define INK "#808080"
#define PLAIN "#b4b9c0"
#define RANGE "#6b7075"
#define ENCRYPTED "#3b82c4"
#define TAGGED "#d97706"

/* Into a double-quoted gnuplot string: nothing in it may end or escape it. */
static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;

		fputc(c < ' ' || c == '"' || c == '\\' || c == '`' ? '?' : c,
		      out);
	}
}

static const char *colour_of(const struct contestant *row)
{
	if (!row->scheme || (!strcmp(row->scheme, "none") && !row->integrity))
		return PLAIN;
	return row->integrity ? TAGGED : ENCRYPTED;
}

/* "12.3  (-8.1 %)" is what a reader wants to see at a bar's end. */
static void put_label(FILE *out, const struct contest *c,
		      const struct contestant *row)
{
	const struct contestant *base = contest_base(c, row);
	char text[FORMAT_BYTES];
	int64_t hit;

	format_mb(contest_spread(row, SAMPLE_average).median, text);
	fprintf(out, " %s MB/s", text);
	if (base == row || !contest_hit(row, base, SAMPLE_average, &hit))
		return;
	format_milli(-hit, text);
	fprintf(out, " (%s%s%s %%)",
		row->nr_samples > 1 &&
				contest_in_noise(row, base, SAMPLE_average)
			? "~"
			: "",
		hit < 0 ? "+" : "", text);
}

static void put_head(FILE *out, const struct contest *c,
		     const struct machine *m)
{
	const size_t nr = c->nr_rows;

	fprintf(out,
		"set terminal svg size 860,%zu dynamic font "
		"\"sans-serif,14\"\n",
		nr * BAR_PIXELS + FRAME_PIXELS);
	fputs("set encoding utf8\n"
	      "set border 1 linecolor rgb \"" INK "\"\n"
	      "set tics textcolor rgb \"" INK "\" nomirror\n"
	      "set grid xtics linecolor rgb \"" INK "\" linewidth 0.3\n"
	      "unset key\n"
	      "set style fill solid 1.0 noborder\n"
	      "set boxwidth 0.62\n"
	      "set tmargin 4\n",
	      out);
	fputs("set title \"", out);
	put_text(out, m->cpu);
	fprintf(out,
		"\\n%" PRIu64 " operations, median of %u rounds; in "
		"brackets against none\" noenhanced textcolor rgb \"" INK
		"\"\n",
		c->plan->totals.records, c->rounds_done);
	fputs("set xlabel \"MB/s, more is better\" textcolor rgb \"" INK "\"\n",
	      out);
}

static void put_names(FILE *out, const struct contest *c)
{
	fputs("set ytics scale 0 (", out);
	for (size_t i = 0; i < c->nr_rows; i++) {
		fprintf(out, "%s\"", i ? ", " : "");
		put_text(out, c->row[i].name);
		if (i && strcmp(c->row[i].dir, c->row[0].dir) != 0) {
			fputs(", ", out);
			put_text(out, c->row[i].dir);
		}
		fprintf(out, "\" %zu", c->nr_rows - 1 - i);
	}
	fputs(") noenhanced\n", out);
}

static void put_bars(FILE *out, const struct contest *c)
{
	uint64_t most = 1;

	for (size_t i = 0; i < c->nr_rows; i++) {
		const struct contestant *row = &c->row[i];
		const struct spread s = contest_spread(row, SAMPLE_average);
		const size_t y = c->nr_rows - 1 - i;

		most = s.max > most ? s.max : most;
		fprintf(out,
			"set object rectangle from 0,%zu-0.31 to %" PRIu64
			"/1e6,%zu+0.31 fillcolor rgb \"%s\" fillstyle solid "
			"noborder\n",
			y, s.median, y, colour_of(row));
		fprintf(out,
			"set arrow from %" PRIu64 "/1e6,%zu to %" PRIu64
			"/1e6,%zu heads size screen 0.004,90 fixed "
			"linecolor rgb \"" RANGE "\" front\n",
			s.min, y, s.max, y);
		fputs("set label \"", out);
		put_label(out, c, row);
		fprintf(out,
			"\" at %" PRIu64
			"/1e6,%zu left offset 0.6,0 noenhanced "
			"textcolor rgb \"" INK "\" front\n",
			s.max, y);
	}
	/* Room for the text at the end of the longest. */
	fprintf(out, "set xrange [0:%" PRIu64 "*1.45/1e6]\n", most);
	fprintf(out, "set yrange [-0.6:%zu-0.4]\nplot NaN notitle\n",
		c->nr_rows);
}

static int start_gnuplot(int in, int to, pid_t *pid)
{
	char *const argv[] = { (char *)"gnuplot", NULL };
	posix_spawn_file_actions_t a;
	int err;

	posix_spawn_file_actions_init(&a);
	posix_spawn_file_actions_adddup2(&a, in, 0);
	posix_spawn_file_actions_adddup2(&a, to, 1);
	err = posix_spawnp(pid, "gnuplot", &a, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&a);
	return -err;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

/* The commands, in a file without a name: gnuplot reads it as its input. */
static FILE *write_commands(const struct contest *c, const struct machine *m)
{
	FILE *commands = tmpfile();

	if (!commands)
		return NULL;
	put_head(commands, c, m);
	put_names(commands, c);
	put_bars(commands, c);
	if (fflush(commands) || lseek(fileno(commands), 0, SEEK_SET) < 0) {
		fclose(commands);
		return NULL;
	}
	return commands;
}

static enum tool_exit fail_plot(const char *path, int err)
{
	if (err == -ENOENT)
		return tool_fail(TOOL_FAILED, path,
				 "not drawn: gnuplot is not installed (package "
				 "gnuplot-nox)");
	return tool_fail(TOOL_FAILED, path, "not drawn: %s",
			 strerrordesc_np(-err));
}

enum tool_exit plot_write(const struct contest *c, const struct machine *m,
			  const char *path)
{
	FILE *const commands = write_commands(c, m);
	pid_t pid = -1;
	int to, err;

	if (!commands)
		return fail_plot(path, -EIO);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	err = to < 0 ? -errno : start_gnuplot(fileno(commands), to, &pid);
	if (!err)
		err = wait_for(pid);
	else if (to >= 0)
		unlink(path);
	if (to >= 0)
		close(to);
	fclose(commands);
	return err ? fail_plot(path, err) : TOOL_DONE;
}
