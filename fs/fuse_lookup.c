/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Open addressing with linear probing, in shards so that threads that answer
 * different inodes seldom meet.  Removal shifts the following entries back
 * instead of leaving a mark: a table that lives for months must not fill up
 * with marks.
 *
 * Counts are 64 bit: a program that walks a tree for weeks with the kernel's
 * caches under pressure goes beyond 2^32.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "fs/fuse_lookup.h"

enum {
	SHARD_BITS = 4,
	SHARDS = 1 << SHARD_BITS,
	FIRST_BITS = 8,
};

struct entry {
	inum_t ino;	/* 0: empty */
	uint64_t count; /* never 0 unless empty */
};

struct shard {
	pthread_mutex_t lock;
	/* Under lock. */
	struct entry *entry;
	unsigned int bits; /* log2 of the number of entries */
	size_t used;
};

struct lookup_table {
	struct shard shard[SHARDS];
};

/* Fibonacci hashing: inode numbers come in runs. */
static uint64_t hash(inum_t ino)
{
	return ino * UINT64_C(0x9e3779b97f4a7c15);
}

static struct shard *shard_of(struct lookup_table *t, inum_t ino)
{
	return &t->shard[hash(ino) >> (64 - SHARD_BITS)];
}

/* The place where the search for @ino starts. */
static size_t home(const struct shard *s, inum_t ino)
{
	return (hash(ino) << SHARD_BITS) >> (64 - s->bits);
}

static size_t mask(const struct shard *s)
{
	return ((size_t)1 << s->bits) - 1;
}

/* The entry of @ino, or the empty one where it belongs. */
static struct entry *find(struct shard *s, inum_t ino)
{
	size_t i = home(s, ino);

	while (s->entry[i].ino && s->entry[i].ino != ino)
		i = (i + 1) & mask(s);
	return &s->entry[i];
}

/* Twice the size; the old entries stay if there is no memory. */
static int grow(struct shard *s)
{
	struct shard bigger = { .bits = s->bits + 1 };

	bigger.entry = calloc((size_t)1 << bigger.bits, sizeof(*bigger.entry));
	if (!bigger.entry)
		return -ENOMEM;
	for (size_t i = 0; i <= mask(s); i++) {
		if (s->entry[i].ino)
			*find(&bigger, s->entry[i].ino) = s->entry[i];
	}
	free(s->entry);
	s->entry = bigger.entry;
	s->bits = bigger.bits;
	return 0;
}

/*
 * Empty place @hole and move back what stands after it, up to the next empty
 * place, wherever a search from its home would now end at the hole.
 */
static void remove_at(struct shard *s, size_t hole)
{
	size_t i = hole;

	for (;;) {
		size_t want;

		i = (i + 1) & mask(s);
		if (!s->entry[i].ino)
			break;
		want = home(s, s->entry[i].ino);
		if (((i - want) & mask(s)) >= ((i - hole) & mask(s))) {
			s->entry[hole] = s->entry[i];
			hole = i;
		}
	}
	s->entry[hole] = (struct entry){ 0 };
	s->used--;
}

struct lookup_table *lookup_new(void)
{
	struct lookup_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard *s = &t->shard[i];

		pthread_mutex_init(&s->lock, NULL);
		s->bits = FIRST_BITS;
		s->entry = calloc((size_t)1 << FIRST_BITS, sizeof(*s->entry));
		if (!s->entry) {
			lookup_free(t);
			return NULL;
		}
	}
	return t;
}

void lookup_free(struct lookup_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < SHARDS; i++) {
		if (!t->shard[i].bits)
			break;
		free(t->shard[i].entry);
		pthread_mutex_destroy(&t->shard[i].lock);
	}
	free(t);
}

int lookup_get(struct lookup_table *t, inum_t ino)
{
	struct shard *s = shard_of(t, ino);
	struct entry *e;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	e = find(s, ino);
	if (!e->ino && s->used >= mask(s) / 4 * 3) {
		err = grow(s);
		if (!err)
			e = find(s, ino);
	}
	if (!err) {
		s->used += !e->ino;
		e->ino = ino;
		e->count++;
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

uint64_t lookup_put(struct lookup_table *t, inum_t ino, uint64_t n)
{
	struct shard *s = shard_of(t, ino);
	uint64_t left = 0;
	struct entry *e;

	pthread_mutex_lock(&s->lock);
	e = find(s, ino);
	if (e->ino) {
		if (e->count > n)
			left = e->count -= n;
		else
			remove_at(s, (size_t)(e - s->entry));
	}
	pthread_mutex_unlock(&s->lock);
	return left;
}

bool lookup_held(struct lookup_table *t, inum_t ino)
{
	struct shard *s = shard_of(t, ino);
	bool held;

	pthread_mutex_lock(&s->lock);
	held = find(s, ino)->ino;
	pthread_mutex_unlock(&s->lock);
	return held;
}

uint64_t lookup_nr(struct lookup_table *t)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&t->shard[i].lock);
		nr += t->shard[i].used;
		pthread_mutex_unlock(&t->shard[i].lock);
	}
	return nr;
}
