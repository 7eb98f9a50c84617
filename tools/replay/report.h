/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a run came to, for people and for programs.  REPLAY.md says what each
 * number means.
 */
#ifndef TOOLS_REPLAY_REPORT_H
#define TOOLS_REPLAY_REPORT_H

#include <json-c/json.h>
#include <stdio.h>

#include "tools/replay/run.h"

#define REPORT_JSON_VERSION 1

/* @dir: as the user named it. */
void report_text(FILE *out, const struct run *r, const char *dir);

/* To be put by the caller. */
struct json_object *report_json(const struct run *r, const char *dir);

/* Write @o to the file @path ("-": stdout) and put it. */
enum tool_exit report_write_json(struct json_object *o, const char *path);

/* count, mean, percentiles and max of a histogram of nanoseconds */
struct json_object *report_histogram(const struct histogram *h);

/* Whether so few were late that the recorded times were kept: 1 %. */
bool report_is_faithful(const struct run_result *r);

/* How a run's errors are to be told: TOOL_DONE without any. */
enum tool_exit report_exit(const struct run_result *r);

#endif
