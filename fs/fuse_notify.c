/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One thread with a queue of seeks, and a small set of written inodes that it
 * tells the kernel of once a second.  A set that is full forgets: then
 * st_blocks is as old as it would be without it, until the file is closed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fs/fuse_fs.h"
#include "fs/fuse_notify.h"

/* A hole that fills while we look moves the answer; not for ever. */
#define SEEK_TRIES 16

/* A power of two; inodes told of in a second. */
#define WRITTEN_MAX 4096

struct seek {
	struct seek *next;
	struct call call;
	inum_t ino;
	uint64_t offset;
	int whence;
};

struct notifier {
	struct fuse_fs *fs;
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* CLOCK_MONOTONIC */
	/* Under lock. */
	struct seek *first, **last;
	/* By the low bits of the number; a newer one pushes an older out. */
	inum_t written[WRITTEN_MAX];
	unsigned int nr_written;
	struct timespec due; /* when to tell of them */
	bool stop;
};

/* ---- seeking ---- */

/*
 * Have the kernel write its dirty pages of [from, to) ; 0: to the end.  An
 * error means that it holds none, or that the mount is ending.
 */
static void fetch_dirty(struct notifier *n, inum_t ino, uint64_t from,
			uint64_t to)
{
	fuse_lowlevel_notify_inval_inode(n->fs->session, ino, (off_t)from,
					 to ? (off_t)(to - from) : 0);
}

/*
 * The hole, or place past the end, from *from on that the answer rests on:
 * up to *to, 0 for no end.  Whether there is one.
 */
static bool doubtful(struct notifier *n, const struct seek *s, int err,
		     uint64_t answer, uint64_t *from, uint64_t *to)
{
	if (err && err != -ENXIO)
		return false;
	*to = 0;
	if (s->whence == SEEK_DATA) {
		*from = s->offset;
		if (err)
			return true;
		*to = answer;
		return answer > s->offset;
	}
	*from = err ? s->offset : answer;
	if (volume_lseek(n->fs->volume, s->ino, *from, SEEK_DATA, to))
		*to = 0;
	return true;
}

static int seek_once(struct notifier *n, const struct seek *s, uint64_t *out)
{
	return volume_lseek(n->fs->volume, s->ino, s->offset, s->whence, out);
}

static void answer_seek(struct notifier *n, const struct seek *s)
{
	uint64_t out = 0, from, to, before;
	int err, err_before;

	err = seek_once(n, s, &out);
	for (int i = 0; i < SEEK_TRIES; i++) {
		if (!doubtful(n, s, err, out, &from, &to))
			break;
		fetch_dirty(n, s->ino, from, to);
		before = out;
		err_before = err;
		err = seek_once(n, s, &out);
		if (err == err_before && (err || out == before))
			break;
	}
	if (err) {
		call_end(&s->call, err);
		return;
	}
	call_count(&s->call, 0, 0);
	fuse_reply_lseek(s->call.req, (off_t)out);
}

int notifier_seek(struct notifier *n, const struct call *c, inum_t ino,
		  uint64_t offset, int whence)
{
	struct seek *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct seek){
		.call = *c,
		.ino = ino,
		.offset = offset,
		.whence = whence,
	};
	pthread_mutex_lock(&n->lock);
	*n->last = s;
	n->last = &s->next;
	pthread_cond_signal(&n->changed);
	pthread_mutex_unlock(&n->lock);
	return 0;
}

/* ---- written inodes ---- */

void notifier_written(struct notifier *n, inum_t ino)
{
	inum_t *place = &n->written[ino % WRITTEN_MAX];

	pthread_mutex_lock(&n->lock);
	if (!n->nr_written) {
		clock_gettime(CLOCK_MONOTONIC, &n->due);
		n->due.tv_sec++;
		pthread_cond_signal(&n->changed);
	}
	n->nr_written += !*place;
	*place = ino;
	pthread_mutex_unlock(&n->lock);
}

static bool is_due(const struct notifier *n)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return n->nr_written &&
	       (now.tv_sec > n->due.tv_sec ||
		(now.tv_sec == n->due.tv_sec && now.tv_nsec >= n->due.tv_nsec));
}

/* Called and returns with the lock; gives it up over each notification. */
static void tell_written(struct notifier *n)
{
	for (size_t i = 0; i < WRITTEN_MAX && n->nr_written && !n->stop; i++) {
		inum_t ino = n->written[i];

		if (!ino)
			continue;
		n->written[i] = 0;
		n->nr_written--;
		pthread_mutex_unlock(&n->lock);
		/* Attributes only; an inode unknown by now is no matter. */
		fuse_lowlevel_notify_inval_inode(n->fs->session, ino, -1, 0);
		pthread_mutex_lock(&n->lock);
	}
	/* What was added behind our back waits for a second of its own. */
	clock_gettime(CLOCK_MONOTONIC, &n->due);
	n->due.tv_sec++;
}

/* ---- the thread ---- */

static struct seek *next_seek(struct notifier *n)
{
	struct seek *s = n->first;

	if (s) {
		n->first = s->next;
		if (!n->first)
			n->last = &n->first;
	}
	return s;
}

static void wait_change(struct notifier *n)
{
	if (n->nr_written)
		pthread_cond_timedwait(&n->changed, &n->lock, &n->due);
	else
		pthread_cond_wait(&n->changed, &n->lock);
}

static void *notifier_main(void *arg)
{
	struct notifier *n = arg;
	struct seek *s;

	pthread_mutex_lock(&n->lock);
	for (;;) {
		s = next_seek(n);
		if (s) {
			pthread_mutex_unlock(&n->lock);
			answer_seek(n, s);
			free(s);
			pthread_mutex_lock(&n->lock);
		} else if (n->stop) {
			break;
		} else if (is_due(n)) {
			tell_written(n);
		} else {
			wait_change(n);
		}
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

int notifier_new(struct notifier **out, struct fuse_fs *fs)
{
	struct notifier *n = calloc(1, sizeof(*n));
	pthread_condattr_t attr;
	int err;

	if (!n)
		return -ENOMEM;
	n->fs = fs;
	n->last = &n->first;
	pthread_mutex_init(&n->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->changed, &attr);
	pthread_condattr_destroy(&attr);
	err = pthread_create(&n->thread, NULL, notifier_main, n);
	if (err) {
		pthread_cond_destroy(&n->changed);
		pthread_mutex_destroy(&n->lock);
		free(n);
		return -err;
	}
	*out = n;
	return 0;
}

void notifier_free(struct notifier *n)
{
	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_signal(&n->changed);
	pthread_mutex_unlock(&n->lock);
	pthread_join(n->thread, NULL);
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->lock);
	free(n);
}
