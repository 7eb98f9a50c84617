/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * All keys that come from the master key.  FORMAT.md, "Key derivation".
 */
#ifndef FS_HEADER_KEYS_H
#define FS_HEADER_KEYS_H

#include "fs/header.h"

/* MAC of h->raw, its own and the checksum's field taken as zero. */
must_check int header_mac(const struct header *h, const struct secret *master,
			  uint8_t mac[static HMAC_BYTES]);

/*
 * Draw 64 random bytes for a new row of the key table and seal them into *k,
 * whose other fields are set.
 */
must_check int header_row_new(const struct header *h, struct header_key *k,
			      const struct secret *master,
			      struct nonce_source *src);

/*
 * Open all rows of @h and make the keys: keys->master is set, the rest is
 * filled in.  Returns 0, -EBADMSG, -ENOMEM, -ENOSYS, -EIO; *keys then still
 * needs header_keys_destroy().
 */
must_check int header_keys_make(const struct header *h,
				struct header_keys *keys,
				unsigned int nr_handles);

#endif
