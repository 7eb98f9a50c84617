/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * CBC whose IV is the encrypted tweak.  Private to cipher/: the plain scheme,
 * the last layer of Elephant, and the salvage hint.
 */
#ifndef CIPHER_CBC_H
#define CIPHER_CBC_H

#include <gcrypt.h>
#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"

#define CBC_BLOCK_BYTES 16

/* All of these take a handle in CBC mode and return 0 or -EIO. */

/* IV = E_K(tweak), the encryption direction also for a sector to decrypt. */
must_check int cbc_iv(gcry_cipher_hd_t hd,
		      const uint8_t tweak[static CBC_BLOCK_BYTES],
		      uint8_t iv[static CBC_BLOCK_BYTES]);

/* @len is a multiple of 16; @out is @in or apart. */
must_check int cbc_encrypt_iv(gcry_cipher_hd_t hd,
			      const uint8_t iv[static CBC_BLOCK_BYTES],
			      size_t len, const void *in, void *out);
must_check int cbc_decrypt_iv(gcry_cipher_hd_t hd,
			      const uint8_t iv[static CBC_BLOCK_BYTES],
			      size_t len, const void *in, void *out);

/* The two above after cbc_iv(). */
must_check int cbc_encrypt_tweak(gcry_cipher_hd_t hd,
				 const uint8_t tweak[static CBC_BLOCK_BYTES],
				 size_t len, const void *in, void *out);
must_check int cbc_decrypt_tweak(gcry_cipher_hd_t hd,
				 const uint8_t tweak[static CBC_BLOCK_BYTES],
				 size_t len, const void *in, void *out);

#endif
