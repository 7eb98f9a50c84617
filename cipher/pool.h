/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Library handles of one key, shared by many threads.  Private to cipher/.
 *
 * A libgcrypt handle serves one thread at a time, and opening one costs 2.6 us
 * and locked memory; so a key makes all of its handles at the start, and the
 * data path only takes one and puts it back.  It never allocates and cannot
 * fail for want of memory.  A thread that finds none free waits for one.
 */
#ifndef CIPHER_POOL_H
#define CIPHER_POOL_H

#include <gcrypt.h>
#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"

/* Belongs to one thread between pool_get() and pool_put(). */
struct handle {
	gcry_cipher_hd_t data;
	gcry_cipher_hd_t second; /* NULL unless two were asked for */
	/* Under the pool's lock. */
	struct handle *next_free;
};

/* What a handle is opened with. */
struct pool_cipher {
	int algo;	    /* GCRY_CIPHER_* */
	int mode;	    /* GCRY_CIPHER_MODE_* */
	const uint8_t *key; /* borrowed until pool_new() returns */
	size_t key_len;	    /* bytes */
};

struct pool;
struct secret;

/*
 * @second  NULL if one library handle is enough
 * @nr      handles, 1 or more
 *
 * Returns 0, -EINVAL (no handles), -ENOMEM, -ENOSYS, -EIO.
 */
must_check int pool_new(struct pool **out, unsigned int nr,
			const struct pool_cipher *data,
			const struct pool_cipher *second);

/* AES-256 in one mode; also -EINVAL if @key is not 32 bytes. */
must_check int pool_new_aes256(struct pool **out, unsigned int nr, int mode,
			       const struct secret *key);

/* All handles are back.  Harmless on NULL. */
void pool_free(struct pool *p);

/* May wait for another thread's pool_put(), never for anything else. */
struct handle *pool_get(struct pool *p);
void pool_put(struct pool *p, struct handle *h);

#endif
