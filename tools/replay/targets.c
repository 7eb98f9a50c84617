/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Open addressing over an array of names; names are never removed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/replay/targets.h"

/* FNV-1a: a trace that makes names collide only slows its own reading. */
static size_t hash(struct span s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (unsigned char)s.at[i]) * UINT64_C(0x100000001b3);
	return (size_t)h;
}

/* The slot that has @name, or the free one where it belongs. */
static uint32_t *find(const struct targets *t, struct span name)
{
	size_t i = hash(name) & (t->nr_slots - 1);

	while (t->slot[i] && !span_is(name, t->name[t->slot[i] - 1]))
		i = (i + 1) & (t->nr_slots - 1);
	return &t->slot[i];
}

/* Keep the slots at most half full. */
static int grow(struct targets *t)
{
	const size_t nr = t->nr_slots ? t->nr_slots * 2 : 64;
	uint32_t *const slot = calloc(nr, sizeof(*slot));
	char **const name = reallocarray(t->name, nr / 2, sizeof(*name));

	if (name)
		t->name = name;
	if (!slot || !name) {
		free(slot);
		return -ENOMEM;
	}
	free(t->slot);
	t->slot = slot;
	t->nr_slots = nr;
	for (uint32_t i = 0; i < t->nr; i++) {
		const struct span s = { t->name[i], strlen(t->name[i]) };

		*find(t, s) = i + 1;
	}
	return 0;
}

void targets_destroy(struct targets *t)
{
	for (uint32_t i = 0; i < t->nr; i++)
		free(t->name[i]);
	free(t->name);
	free(t->slot);
	memset(t, 0, sizeof(*t));
}

int targets_get(struct targets *t, struct span name, uint32_t *id)
{
	uint32_t *slot;
	int err;

	if (t->nr >= t->nr_slots / 2) {
		err = grow(t);
		if (err)
			return err;
	}
	slot = find(t, name);
	if (!*slot) {
		if (t->nr == TARGETS_MAX)
			return -E2BIG;
		t->name[t->nr] = strndup(name.at, name.len);
		if (!t->name[t->nr])
			return -ENOMEM;
		*slot = ++t->nr;
	}
	*id = *slot - 1;
	return 0;
}
