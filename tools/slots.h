/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Key slots as people and scripts see them: what is in clear in the header.
 */
#ifndef TOOLS_SLOTS_H
#define TOOLS_SLOTS_H

#include <stddef.h>
#include <stdint.h>

struct header;
struct json_object;
struct keyslot;

/* "password", "recovery-key"...; "unknown" for numbers of later versions. */
const char *slot_kind_name(uint16_t kind);

#define SLOT_TEXT_BYTES 160

/* "password, Argon2id, 256 MiB, 4 passes, 4 lanes". */
void slot_text(const struct keyslot *slot, char out[static SLOT_TEXT_BYTES]);

/* An array of objects, one for each slot in use; the caller puts it. */
struct json_object *slots_json(const struct header *h);

#endif
