/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a comparison was made on: numbers without it can't be judged.
 */
#ifndef TOOLS_REPLAY_MACHINE_H
#define TOOLS_REPLAY_MACHINE_H

#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>

#define MACHINE_TEXT 512

struct machine {
	char cpu[MACHINE_TEXT];	     /* "AMD Ryzen 9 7950X"; "unknown" */
	char features[MACHINE_TEXT]; /* that libgcrypt uses, with blanks */
	char kernel[MACHINE_TEXT];   /* "Linux 6.1.0 x86_64" */
	const char *libgcrypt;	     /* version; static */
	long cpus;		     /* that are online */
	uint64_t memory_bytes;
};

/* libgcrypt must have been started. */
void machine_get(struct machine *m);

/* Type of the file system that @dir is on, "ext4", into @out. */
void machine_file_system(const char *dir, char out[static MACHINE_TEXT]);

void machine_text(FILE *out, const struct machine *m);
struct json_object *machine_json(const struct machine *m);

#endif
