/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where nonces come from.  A nonce is (session, counter): a random 63-bit
 * session, drawn once per mount, and a 32-bit counter that rises by one for
 * each thing that is sealed or encrypted under it.  No (key, session, counter)
 * is ever handed out twice, whatever crashes, copies or restores happen to the
 * container (invariant I3), since no state has to survive.
 */
#ifndef CIPHER_NONCE_H
#define CIPHER_NONCE_H

#include <pthread.h>
#include <stdint.h>

#include "cipher/defs.h"

#define NONCE_BYTES 12

struct nonce {
	uint64_t session; /* top bit 0; 0 is kept for test vectors */
	uint32_t counter;
};

struct nonce_source {
	pthread_mutex_t lock;
	/* Under lock. */
	uint64_t session;
	uint64_t next; /* counter of the next draw; up to 2^32 */
	/* Constant; tests set it to reach the end of a session quickly. */
	int (*draw_session)(uint64_t *session);
};

/* Draw the first session.  Returns 0 or negative errno. */
must_check int nonce_source_init(struct nonce_source *src);
void nonce_source_destroy(struct nonce_source *src);

/*
 * Take @nr consecutive counters of one session.  A run never crosses 2^32: a
 * new session is drawn first.  Thread-safe.
 *
 * @nr  1 to 2^32
 * @first  session and first counter of the run
 *
 * Returns 0 or negative errno of the random generator.
 */
must_check int nonce_draw(struct nonce_source *src, uint64_t nr,
			  struct nonce *first);

/* The 12 bytes of a GCM nonce: session LE 8, counter LE 4. */
void nonce_encode(struct nonce n, uint8_t out[static NONCE_BYTES]);

#endif
