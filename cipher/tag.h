/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Authentication tag of a data block: GMAC (AES-256-GCM without plaintext)
 * over the ciphertext of the block, always 16 bytes, with the nonce under
 * which the block was encrypted.  Position and freshness are bound by the
 * sealed tree that holds the tag.
 */
#ifndef CIPHER_TAG_H
#define CIPHER_TAG_H

#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "cipher/nonce.h"

struct secret;
struct tag_key;

#define TAG_BYTES 16
#define TAG_KEY_BYTES 32

/*
 * As scheme_key_new(): handles for many threads.  @key is 32 bytes.  -ENOSYS in
 * FIPS mode, where libgcrypt allows no GMAC under a nonce of the caller's.
 */
must_check int tag_key_new(struct tag_key **out, const struct secret *key,
			   unsigned int nr_handles);
void tag_key_free(struct tag_key *k);

/* Tag of @len bytes at @buf.  Returns 0 or -EIO.  Thread-safe. */
must_check int tag_compute(struct tag_key *k, struct nonce nonce,
			   const void *buf, size_t len,
			   uint8_t tag[static TAG_BYTES]);

/* Returns 0, -EBADMSG if the tag is wrong, -EIO.  Constant time in the tag. */
must_check int tag_verify(struct tag_key *k, struct nonce nonce,
			  const void *buf, size_t len,
			  const uint8_t tag[static TAG_BYTES]);

#endif
