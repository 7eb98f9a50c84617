/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sealing under a nonce that the caller chose: for known-answer tests only,
 * since seal_message() is what makes repeated nonces impossible.  Private to
 * cipher/ and its tests.
 */
#ifndef CIPHER_SEAL_RAW_H
#define CIPHER_SEAL_RAW_H

#include "cipher/seal.h"

must_check int seal_message_raw(struct seal_key *k, struct nonce nonce,
				const void *aad, size_t aad_len, const void *in,
				size_t len, void *out,
				uint8_t tag[static SEAL_TAG_BYTES]);

#endif
