/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sealing of metadata: AES-256-GCM-SIV.  The nonce is drawn inside the sealing
 * call, so nobody can use one twice; where a running machine was duplicated,
 * SIV limits the harm of a repeated one.
 */
#ifndef CIPHER_SEAL_H
#define CIPHER_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "cipher/nonce.h"

struct secret;
struct seal_key;

#define SEAL_KEY_BYTES 32
#define SEAL_TAG_BYTES 16

/* As scheme_key_new(): handles for many threads.  @key is 32 bytes. */
must_check int seal_key_new(struct seal_key **out, const struct secret *key,
			    unsigned int nr_handles);
void seal_key_free(struct seal_key *k);

/*
 * Seal @len bytes (1 to 65536) of @in into @out, which must not overlap.
 *
 * @src    where the nonce is drawn
 * @nonce  the nonce used
 * @tag    the tag
 *
 * Returns 0, -EIO, or the error of the random generator; @out is undefined
 * after an error.  Thread-safe.
 */
must_check int seal_message(struct seal_key *k, struct nonce_source *src,
			    const void *aad, size_t aad_len, const void *in,
			    size_t len, void *out, struct nonce *nonce,
			    uint8_t tag[static SEAL_TAG_BYTES]);

/*
 * Open what seal_message() made.  Returns 0, -EBADMSG if it is not authentic
 * (@out is then all zero), or -EIO.  @out must not overlap @in.
 */
must_check int seal_open(struct seal_key *k, struct nonce nonce,
			 const void *aad, size_t aad_len, const void *in,
			 size_t len, void *out,
			 const uint8_t tag[static SEAL_TAG_BYTES]);

/*
 * The salvage hint in front of a node: HINT_BYTES bytes under AES-256-CBC with
 * IV = AES_K(tweak).  Never trusted, so not authenticated.
 */
#define HINT_BYTES 64
#define HINT_KEY_BYTES 32
struct hint_key;
must_check int hint_key_new(struct hint_key **out, const struct secret *key,
			    unsigned int nr_handles);
void hint_key_free(struct hint_key *k);
must_check int hint_encrypt(struct hint_key *k, const uint8_t tweak[static 16],
			    const void *in, void *out);
must_check int hint_decrypt(struct hint_key *k, const uint8_t tweak[static 16],
			    const void *in, void *out);

#endif
