/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Pointers between their bytes on disk and their form in memory.  What a
 * pointer points at is checked by who knows the container's size; here only
 * what holds for any container.
 */
#include "fs/ptr.h"

#include <errno.h>
#include <string.h>

#define LEVEL_MAX 12
#define NODE_LOG2_MIN 14
#define NODE_LOG2_MAX 16

void ptr_encode(const struct ptr *p, struct disk_ptr *d)
{
	/* One form of "no node", so that decoding can insist on it. */
	memset(d, 0, sizeof(*d));
	if (p->block == 0)
		return;

	d->block = le64_of(p->block);
	d->second = le64_of(p->second);
	d->birth = le64_of(p->birth);
	d->session = le64_of(p->nonce.session);
	d->counter = le32_of(p->nonce.counter);
	d->key_id = le16_of(p->key_id);
	d->level = p->level;
	d->log2_bytes = p->log2_bytes;
	memcpy(d->tag, p->tag, sizeof(d->tag));
}

static int ptr_validate(const struct ptr *p)
{
	if (p->level > LEVEL_MAX)
		return -EUCLEAN;
	if (p->log2_bytes < NODE_LOG2_MIN || p->log2_bytes > NODE_LOG2_MAX)
		return -EUCLEAN;
	if (p->nonce.session >> 63 || p->key_id == 0)
		return -EUCLEAN;
	if (p->second == p->block)
		return -EUCLEAN;
	return 0;
}

int ptr_decode(const struct disk_ptr *d, struct ptr *p)
{
	static const struct disk_ptr none;

	memset(p, 0, sizeof(*p));
	if (le64_get(d->block) == 0)
		return memcmp(d, &none, sizeof(none)) ? -EUCLEAN : 0;

	p->block = le64_get(d->block);
	p->second = le64_get(d->second);
	p->birth = le64_get(d->birth);
	p->nonce.session = le64_get(d->session);
	p->nonce.counter = le32_get(d->counter);
	p->key_id = le16_get(d->key_id);
	p->level = d->level;
	p->log2_bytes = d->log2_bytes;
	memcpy(p->tag, d->tag, sizeof(p->tag));
	return ptr_validate(p);
}
