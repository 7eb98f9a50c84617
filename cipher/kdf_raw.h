/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Argon2id with all of its inputs, as the vectors of RFC 9106 have them.
 * Private to cipher/ and its tests.
 */
#ifndef CIPHER_KDF_RAW_H
#define CIPHER_KDF_RAW_H

#include "cipher/kdf.h"

struct argon2_input {
	const void *password, *salt, *key, *ad;
	size_t password_len, salt_len, key_len, ad_len;
};

/* As kdf_argon2id(); -EINVAL also for an @out_len under 4. */
must_check int kdf_argon2id_raw(const struct argon2_input *in,
				const struct kdf_cost *cost, size_t out_len,
				struct secret *out);

#endif
