/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A nodeid is 2^63 + serial number * 4096 + place in the table, so it is found
 * without a search and never used twice: the serial number lasts for 2^51
 * snapshots.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/fuse_virtual.h"

struct file {
	uint64_t nodeid;
	uint64_t count; /* the kernel's references */
	enum virtual_kind kind;
	pid_t process;
	uint64_t made_ns;
	struct virtual_attr attr;
	char *text;
};

struct virtual_files {
	struct virtual_params p; /* constant */

	/*
	 * Held for reading while a text is in use, over the reply too: that
	 * copies a few KiB into the kernel and never blocks.
	 */
	pthread_rwlock_t lock;
	/* Under lock. */
	struct file *file[VIRTUAL_LIVE_MAX];
	unsigned int place_hint; /* where to look for a free one */
	uint64_t serial;
};

static const char *const names[VIRTUAL_NR] = {
	[VIRTUAL_STATS] = "stats",
	[VIRTUAL_STATS_JSON] = "stats.json",
	[VIRTUAL_STATS_PROM] = "stats.prom",
};

enum virtual_kind virtual_kind(const char *name)
{
	for (int kind = 0; kind < VIRTUAL_NR; kind++) {
		if (!strcmp(name, names[kind]))
			return kind;
	}
	return VIRTUAL_NONE;
}

const char *virtual_name(enum virtual_kind kind)
{
	return names[kind];
}

uint64_t virtual_st_ino(enum virtual_kind kind)
{
	return 2 + (uint64_t)kind;
}

struct virtual_files *virtual_new(const struct virtual_params *p)
{
	struct virtual_files *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->p = *p;
	pthread_rwlock_init(&v->lock, NULL);
	return v;
}

static void free_file(struct file *f)
{
	if (!f)
		return;
	free(f->text);
	free(f);
}

void virtual_free(struct virtual_files *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < VIRTUAL_LIVE_MAX; i++)
		free_file(v->file[i]);
	pthread_rwlock_destroy(&v->lock);
	free(v);
}

/* The file with @nodeid, or NULL.  The lock is held. */
static struct file *find(struct virtual_files *v, uint64_t nodeid)
{
	struct file *f = v->file[nodeid % VIRTUAL_LIVE_MAX];

	return f && f->nodeid == nodeid ? f : NULL;
}

/* What the same process got a moment ago, or NULL. */
static struct file *find_recent(struct virtual_files *v, enum virtual_kind kind,
				pid_t process, uint64_t now)
{
	struct file *best = NULL;

	for (size_t i = 0; i < VIRTUAL_LIVE_MAX; i++) {
		struct file *f = v->file[i];

		if (f && f->kind == kind && f->process == process &&
		    now - f->made_ns < VIRTUAL_SAME_NS &&
		    (!best || f->made_ns > best->made_ns))
			best = f;
	}
	return best;
}

/* Give @f a place and a nodeid.  Returns 0 or -ENFILE. */
static int insert(struct virtual_files *v, struct file *f)
{
	for (unsigned int i = 0; i < VIRTUAL_LIVE_MAX; i++) {
		unsigned int place = (v->place_hint + i) % VIRTUAL_LIVE_MAX;

		if (v->file[place])
			continue;
		f->nodeid = VIRTUAL_FIRST_ID + v->serial++ * VIRTUAL_LIVE_MAX +
			    place;
		v->file[place] = f;
		v->place_hint = place + 1;
		return 0;
	}
	return -ENFILE;
}

static struct file *make_file(struct virtual_files *v, enum virtual_kind kind,
			      pid_t process)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->text = v->p.render(v->p.arg, kind);
	if (!f->text) {
		free(f);
		return NULL;
	}
	f->count = 1;
	f->kind = kind;
	f->process = process;
	f->made_ns = v->p.now();
	f->attr.st_ino = virtual_st_ino(kind);
	f->attr.size = strlen(f->text);
	clock_gettime(CLOCK_REALTIME, &f->attr.time);
	return f;
}

int virtual_lookup(struct virtual_files *v, enum virtual_kind kind,
		   pid_t thread, uint64_t *nodeid, struct virtual_attr *out)
{
	pid_t process = v->p.process_of(thread);
	struct file *f;
	int err;

	assert(kind >= 0 && kind < VIRTUAL_NR);
	pthread_rwlock_wrlock(&v->lock);
	f = find_recent(v, kind, process, v->p.now());
	if (f) {
		f->count++;
		*nodeid = f->nodeid;
		*out = f->attr;
	}
	pthread_rwlock_unlock(&v->lock);
	if (f)
		return 0;

	/* Milliseconds of work: not under the lock. */
	f = make_file(v, kind, process);
	if (!f)
		return -ENOMEM;
	pthread_rwlock_wrlock(&v->lock);
	err = insert(v, f);
	if (!err) {
		*nodeid = f->nodeid;
		*out = f->attr;
	}
	pthread_rwlock_unlock(&v->lock);
	if (err)
		free_file(f);
	return err;
}

int virtual_lookup_id(struct virtual_files *v, uint64_t nodeid,
		      struct virtual_attr *out)
{
	struct file *f;

	pthread_rwlock_wrlock(&v->lock);
	f = find(v, nodeid);
	if (f) {
		f->count++;
		*out = f->attr;
	}
	pthread_rwlock_unlock(&v->lock);
	return f ? 0 : -ESTALE;
}

void virtual_forget(struct virtual_files *v, uint64_t nodeid, uint64_t n)
{
	struct file *f;

	pthread_rwlock_wrlock(&v->lock);
	f = find(v, nodeid);
	if (f && f->count > n) {
		f->count -= n;
		f = NULL;
	} else if (f) {
		v->file[nodeid % VIRTUAL_LIVE_MAX] = NULL;
	}
	pthread_rwlock_unlock(&v->lock);
	free_file(f);
}

int virtual_getattr(struct virtual_files *v, uint64_t nodeid,
		    struct virtual_attr *out)
{
	struct file *f;

	pthread_rwlock_rdlock(&v->lock);
	f = find(v, nodeid);
	if (f)
		*out = f->attr;
	pthread_rwlock_unlock(&v->lock);
	return f ? 0 : -ESTALE;
}

int virtual_read(struct virtual_files *v, uint64_t nodeid, uint64_t offset,
		 size_t size,
		 void (*emit)(void *arg, const char *bytes, size_t len),
		 void *arg)
{
	struct file *f;

	pthread_rwlock_rdlock(&v->lock);
	f = find(v, nodeid);
	if (f) {
		uint64_t left = offset < f->attr.size ? f->attr.size - offset
						      : 0;

		emit(arg, left ? f->text + offset : f->text,
		     left < size ? (size_t)left : size);
	}
	pthread_rwlock_unlock(&v->lock);
	return f ? 0 : -ESTALE;
}
