/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the commands' JSON has in common.  Numbers are exact; text is UTF-8
 * whatever bytes a path has.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <json-c/json.h>
#include <stdint.h>

#include "tools/tool.h"

void json_add_number(struct json_object *o, const char *key, uint64_t number);
void json_add_bool(struct json_object *o, const char *key, json_bool value);
/* Bytes that are not UTF-8, and control characters, become '?'. */
void json_add_text(struct json_object *o, const char *key, const char *text);

/* A string object made by the rule of json_add_text(). */
struct json_object *json_text(const char *text);

/*
 * Print @o on stdout, put it, and finish: @code, or TOOL_FAILED if it could not
 * be written.
 */
enum tool_exit json_print(struct json_object *o, enum tool_exit code);

#endif
