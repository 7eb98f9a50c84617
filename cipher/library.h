/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libgcrypt's errors as ours.  Private to cipher/.
 */
#ifndef CIPHER_LIBRARY_H
#define CIPHER_LIBRARY_H

#include <gcrypt.h>

/*
 * 0, -ENOMEM (the pool of locked memory is too small), -ENOSYS (not in this
 * build of the library, or forbidden in FIPS mode), else -EIO.
 */
int library_error(gcry_error_t err);

#endif
