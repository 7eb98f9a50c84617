/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cipher/library.h"

#include <errno.h>

int library_error(gcry_error_t err)
{
	switch (gcry_err_code(err)) {
	case GPG_ERR_NO_ERROR:
		return 0;
	case GPG_ERR_ENOMEM:
		return -ENOMEM;
	case GPG_ERR_CIPHER_ALGO:
	case GPG_ERR_DIGEST_ALGO:
	case GPG_ERR_INV_CIPHER_MODE:
	case GPG_ERR_NOT_SUPPORTED:
	case GPG_ERR_NOT_IMPLEMENTED:
	case GPG_ERR_NOT_OPERATIONAL:
	case GPG_ERR_FORBIDDEN:
	case GPG_ERR_WEAK_KEY: /* FIPS mode: XTS with two equal halves */
		return -ENOSYS;
	default:
		return -EIO;
	}
}
