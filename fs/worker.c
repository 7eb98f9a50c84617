/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fs/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fs/attr.h"
#include "fs/commit.h"
#include "fs/orphan.h"
#include "fs/vol.h"

static bool idle(const struct worker *w)
{
	return !w->stop && !w->hurry && !w->nr_reap;
}

static bool is_due(const struct timespec *tick)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec != tick->tv_sec ? now.tv_sec > tick->tv_sec
					  : now.tv_nsec >= tick->tv_nsec;
}

/* Wait for work or the next tick; false: stop. */
static bool wait_for_work(struct worker *w, const struct timespec *tick,
			  inum_t *reap, bool *commit)
{
	bool go;
	int err = 0;

	pthread_mutex_lock(&w->lock);
	while (idle(w) && err != ETIMEDOUT)
		err = pthread_cond_clockwait(&w->wake, &w->lock,
					     CLOCK_MONOTONIC, tick);
	/* Also when there was no time to wait for all the reaping. */
	*commit = w->hurry || is_due(tick);
	w->hurry = false;
	*reap = w->nr_reap ? w->reap[--w->nr_reap] : 0;
	go = !w->stop;
	pthread_mutex_unlock(&w->lock);
	return go;
}

static struct timespec next_tick(const struct volume *v)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += v->o.commit_seconds;
	return t;
}

static void *work(void *arg)
{
	struct volume *v = arg;
	struct timespec tick = next_tick(v);
	inum_t reap;
	bool commit;
	int err;

	while (wait_for_work(&v->worker, &tick, &reap, &commit)) {
		/* Errors have made the volume read-only and were reported. */
		if (reap)
			err = orphan_finish(v, reap);
		if (commit) {
			err = attr_settle(v, ATTR_SETTLE_OLD);
			err = commit_sync(v, COMMIT_TIMER);
			tick = next_tick(v);
		}
		(void)err;
	}
	return NULL;
}

int worker_start(struct volume *v)
{
	struct worker *w = &v->worker;
	int err = pthread_create(&w->thread, NULL, work, v);

	w->running = !err;
	return -err;
}

void worker_stop(struct volume *v)
{
	struct worker *w = &v->worker;

	if (!w->running)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	w->running = false;
}

int worker_reap(struct volume *v, inum_t inum)
{
	struct worker *w = &v->worker;
	int err = 0;

	pthread_mutex_lock(&w->lock);
	if (w->nr_reap == w->room_reap) {
		size_t room = w->room_reap ? w->room_reap * 2 : 64;
		inum_t *more = reallocarray(w->reap, room, sizeof(*more));

		if (more) {
			w->reap = more;
			w->room_reap = room;
		} else {
			err = -ENOMEM;
		}
	}
	if (!err)
		w->reap[w->nr_reap++] = inum;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	return err;
}
