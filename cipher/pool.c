/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cipher/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "cipher/library.h"
#include "cipher/secret.h"

struct pool {
	/* Constant. */
	unsigned int nr;

	/* Ranks below every other lock: nothing is taken under it. */
	pthread_mutex_t lock;
	pthread_cond_t returned;
	/* Under lock.  Last in, first out: the warmest key schedule goes on. */
	struct handle *free;
	unsigned int nr_free;
	struct handle handles[];
};

static int open_cipher(gcry_cipher_hd_t *hd, const struct pool_cipher *c)
{
	gcry_error_t err;

	/* Secure: the key schedule is as secret as the key. */
	err = gcry_cipher_open(hd, c->algo, c->mode, GCRY_CIPHER_SECURE);
	if (err) {
		*hd = NULL;
		return library_error(err);
	}
	return library_error(gcry_cipher_setkey(*hd, c->key, c->key_len));
}

static int open_handle(struct handle *h, const struct pool_cipher *data,
		       const struct pool_cipher *second)
{
	int err = open_cipher(&h->data, data);

	if (!err && second)
		err = open_cipher(&h->second, second);
	return err;
}

static void close_handle(struct handle *h)
{
	/* The library wipes what it frees, and takes NULL. */
	gcry_cipher_close(h->data);
	gcry_cipher_close(h->second);
}

int pool_new(struct pool **out, unsigned int nr, const struct pool_cipher *data,
	     const struct pool_cipher *second)
{
	struct pool *p;
	int err;

	*out = NULL;
	if (!nr)
		return -EINVAL;
	p = calloc(1, sizeof(*p) + nr * sizeof(p->handles[0]));
	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->returned, NULL);

	for (; p->nr < nr; p->nr++) {
		err = open_handle(&p->handles[p->nr], data, second);
		if (err)
			goto free_pool;
		pool_put(p, &p->handles[p->nr]);
	}
	*out = p;
	return 0;

free_pool:
	/* The one that failed may be half open. */
	close_handle(&p->handles[p->nr]);
	pool_free(p);
	return err;
}

int pool_new_aes256(struct pool **out, unsigned int nr, int mode,
		    const struct secret *key)
{
	const struct pool_cipher aes = {
		.algo = GCRY_CIPHER_AES256,
		.mode = mode,
		.key = key->bytes,
		.key_len = key->len,
	};

	*out = NULL;
	if (key->len != 32)
		return -EINVAL;
	return pool_new(out, nr, &aes, NULL);
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	assert(p->nr_free == p->nr);
	for (unsigned int i = 0; i < p->nr; i++)
		close_handle(&p->handles[i]);
	pthread_cond_destroy(&p->returned);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct handle *pool_get(struct pool *p)
{
	struct handle *h;

	pthread_mutex_lock(&p->lock);
	while (!p->free)
		pthread_cond_wait(&p->returned, &p->lock);
	h = p->free;
	p->free = h->next_free;
	p->nr_free--;
	pthread_mutex_unlock(&p->lock);
	return h;
}

void pool_put(struct pool *p, struct handle *h)
{
	pthread_mutex_lock(&p->lock);
	h->next_free = p->free;
	p->free = h;
	p->nr_free++;
	pthread_cond_signal(&p->returned);
	pthread_mutex_unlock(&p->lock);
}
