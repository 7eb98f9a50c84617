/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "fs/hostfree.h"

#include <time.h>

#include "fs/container.h"

#define PATIENCE_NS 100000000L

static uint64_t ask(struct hostfree *h)
{
	uint64_t nr;

	if (h->c->is_device || container_host_free(h->c, &nr))
		return 0;
	return nr;
}

static void *answer(void *arg)
{
	struct hostfree *h = arg;

	pthread_mutex_lock(&h->lock);
	while (!h->stop) {
		uint64_t question = h->wanted, nr;

		if (h->done == question) {
			pthread_cond_wait(&h->asked, &h->lock);
			continue;
		}
		pthread_mutex_unlock(&h->lock);
		nr = ask(h);
		pthread_mutex_lock(&h->lock);
		h->nr_blocks = nr;
		h->done = question;
		pthread_cond_broadcast(&h->answered);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

void hostfree_init(struct hostfree *h, struct container *c)
{
	*h = (struct hostfree){ .c = c };
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->asked, NULL);
	pthread_cond_init(&h->answered, NULL);
}

int hostfree_start(struct hostfree *h)
{
	int err;

	/* There is always a last answer. */
	h->nr_blocks = ask(h);
	err = pthread_create(&h->thread, NULL, answer, h);
	h->running = !err;
	return -err;
}

void hostfree_destroy(struct hostfree *h)
{
	if (h->running) {
		pthread_mutex_lock(&h->lock);
		h->stop = true;
		pthread_cond_signal(&h->asked);
		pthread_mutex_unlock(&h->lock);
		pthread_join(h->thread, NULL);
	}
	pthread_cond_destroy(&h->answered);
	pthread_cond_destroy(&h->asked);
	pthread_mutex_destroy(&h->lock);
}

uint64_t hostfree_blocks(struct hostfree *h)
{
	struct timespec until;
	uint64_t question, nr;
	int err = 0;

	if (!h->running)
		return ask(h);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PATIENCE_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	pthread_mutex_lock(&h->lock);
	/* One that is under way may have been asked before what we know of. */
	question = ++h->wanted;
	pthread_cond_signal(&h->asked);
	while (h->done < question && !err)
		err = pthread_cond_clockwait(&h->answered, &h->lock,
					     CLOCK_MONOTONIC, &until);
	nr = h->nr_blocks;
	pthread_mutex_unlock(&h->lock);
	return nr;
}
