/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Secrets have one life: they are made here, in memory that is locked, kept
 * out of core dumps and wiped when it is given back.  Nobody else wipes,
 * compares or draws random bytes.
 */
#ifndef CIPHER_SECRET_H
#define CIPHER_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"

enum secret_memory {
	SECRET_MEMORY_LOCKED,	/* never written to swap */
	SECRET_MEMORY_UNLOCKED, /* RLIMIT_MEMLOCK was too low: warn the user */
};

/*
 * Start libgcrypt with a pool of locked memory, once per process, after the
 * last fork (fork drops memory locks) and before any other call of cipher/.
 *
 * @pool_bytes  size of the pool; cipher_pool_bytes() tells what is needed
 * @memory      whether the pool is really locked
 *
 * Returns 0 or -ENOSYS if the library is too old.  A second call changes
 * nothing, reports the same and returns 0.  Also makes the process undumpable
 * (PR_SET_DUMPABLE 0, RLIMIT_CORE 0) unless @pool_bytes is 0 (tests).
 */
must_check int cipher_init(size_t pool_bytes, enum secret_memory *memory);

/* Pool needed by @nr_threads threads that use @nr_keys key ids at one time. */
size_t cipher_pool_bytes(unsigned int nr_threads, unsigned int nr_keys);

struct secret {
	size_t len;	/* bytes */
	uint8_t *bytes; /* in locked memory; NULL when empty */
};

#define SECRET_EMPTY ((struct secret){ 0, NULL })
#define auto_secret auto_cleanup(secret_wipe)

/* Zero-filled secret of @len bytes.  Returns 0 or -ENOMEM. */
must_check int secret_new(struct secret *s, size_t len);

/* A copy in locked memory of @len bytes at @bytes.  Returns 0 or -ENOMEM. */
must_check int secret_copy(struct secret *s, const void *bytes, size_t len);

/* Wipe, free and set to empty.  Harmless on an empty one. */
void secret_wipe(struct secret *s);

/* Constant-time comparison of @len bytes. */
must_check bool secret_equal(const void *a, const void *b, size_t len);

/* Wipe memory that is not a struct secret (stack copies). */
void secret_wipe_bytes(void *bytes, size_t len);

/*
 * Fill with bytes of the kernel's generator (getrandom), the only source of
 * randomness in the project.  Returns 0 or negative errno.
 */
must_check int random_bytes(void *bytes, size_t len);

#endif
