/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The parts of the Elephant construction, one by one, so that each can be held
 * against known intermediate values.  Private to cipher/ and its tests.
 */
#ifndef CIPHER_ELEPHANT_H
#define CIPHER_ELEPHANT_H

#include <gcrypt.h>
#include <stddef.h>
#include <stdint.h>

#include "cipher/defs.h"
#include "cipher/scheme.h"

#define ELEPHANT_KEY_BYTES 32 /* of a sector key */

/* The diffusers look eight words around, so a sector has 8 or more. */
#define ELEPHANT_SECTOR_MIN 32

/*
 * Ks = E(tweak) || E(tweak with the top bit of byte 15 set), by @ecb, a handle
 * in ECB mode.  Returns 0 or -EIO.
 */
must_check int elephant_sector_key(gcry_cipher_hd_t ecb,
				   const uint8_t tweak[static TWEAK_BYTES],
				   uint8_t ks[static ELEPHANT_KEY_BYTES]);

/* @out = @in XOR Ks, repeated.  @out is @in or apart. */
void elephant_xor(const uint8_t ks[static ELEPHANT_KEY_BYTES], size_t len,
		  const uint8_t *in, uint8_t *out);

/*
 * The diffusers, in place, at any alignment; @len is a multiple of 16 and at
 * least ELEPHANT_SECTOR_MIN.
 */
void elephant_a_encrypt(uint8_t *sector, size_t len);
void elephant_a_decrypt(uint8_t *sector, size_t len);
void elephant_b_encrypt(uint8_t *sector, size_t len);
void elephant_b_decrypt(uint8_t *sector, size_t len);

#endif
