/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Invariant I3 begins here.  A run of counters is taken and the place behind
 * it written down under one lock; a session ends before its counter would
 * wrap; and what was drawn is never given back, used or not.
 */
#include "cipher/nonce.h"

#include <assert.h>

#include "cipher/bytes.h"
#include "cipher/secret.h"

#define COUNTERS (UINT64_C(1) << 32) /* of one session */

/* 63 random bits.  0 is the session of test vectors, so never drawn. */
static int draw_random_session(uint64_t *session)
{
	int err;

	do {
		err = random_bytes(session, sizeof(*session));
		if (err)
			return err;
		*session &= INT64_MAX;
	} while (!*session);
	return 0;
}

static int begin_session_locked(struct nonce_source *src)
{
	uint64_t session;
	int err = src->draw_session(&session);

	/* After an error the old session's rest stays good for small runs. */
	if (err)
		return err;
	src->session = session;
	src->next = 0;
	return 0;
}

int nonce_source_init(struct nonce_source *src)
{
	int err;

	src->draw_session = draw_random_session;
	err = begin_session_locked(src);
	if (!err)
		pthread_mutex_init(&src->lock, NULL);
	return err;
}

void nonce_source_destroy(struct nonce_source *src)
{
	pthread_mutex_destroy(&src->lock);
}

int nonce_draw(struct nonce_source *src, uint64_t nr, struct nonce *first)
{
	int err = 0;

	assert(nr >= 1 && nr <= COUNTERS);

	pthread_mutex_lock(&src->lock);
	if (nr > COUNTERS - src->next)
		err = begin_session_locked(src);
	if (!err) {
		first->session = src->session;
		first->counter = (uint32_t)src->next;
		src->next += nr;
	}
	pthread_mutex_unlock(&src->lock);
	return err;
}

void nonce_encode(struct nonce n, uint8_t out[static NONCE_BYTES])
{
	put_le64(out, n.session);
	put_le32(out + 8, n.counter);
}
