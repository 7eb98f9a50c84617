/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * json-c aborts nothing when memory runs out, it returns NULL and loses the
 * member; commands are short-lived and small, so that is left to it.
 */
#include <stdio.h>

#include "stats/utf8.h"
#include "tools/json.h"

void json_add_number(struct json_object *o, const char *key, uint64_t number)
{
	json_object_object_add(o, key, json_object_new_uint64(number));
}

void json_add_bool(struct json_object *o, const char *key, json_bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

struct json_object *json_text(const char *text)
{
	char clean[8192];

	return json_object_new_string(
		utf8_clean(clean, sizeof(clean), sizeof(clean), text));
}

void json_add_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_text(text));
}

enum tool_exit json_print(struct json_object *o, enum tool_exit code)
{
	const int flags = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
			  JSON_C_TO_STRING_NOSLASHESCAPE;

	puts(json_object_to_json_string_ext(o, flags));
	json_object_put(o);
	return tool_finish_output(code);
}
