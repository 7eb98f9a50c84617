/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The bytes of a header area.  FORMAT.md, "Header", "Key table", "Key slots".
 */
#ifndef FS_HEADER_FORMAT_H
#define FS_HEADER_FORMAT_H

#include <stdio.h>

#include "fs/header.h"

/*
 * Decode h->raw into the rest of *h.  The checksum comes first: it is of
 * accidents, so what differs from it is not looked at further.
 *
 * Returns 0; -ENOMSG: no magic; -EUCLEAN: checksum or bounds are wrong;
 * -EOPNOTSUPP: version, incompatible feature or scheme unknown (fields up to
 * the sequence are set).
 */
must_check int header_decode(struct header *h);

/* Encode the rest of *h into h->raw, and leave bytes we don't know alone. */
void header_encode(struct header *h);

/* The places of what protects the area, and the checksum made anew. */
void header_get_mac(const struct header *h, uint8_t mac[static HMAC_BYTES]);
void header_set_mac(struct header *h, const uint8_t mac[static HMAC_BYTES]);
void header_set_checksum(struct header *h);

/* The area as the MAC sees it: both fields zero.  Valid as long as h->raw. */
#define HEADER_MAC_PIECES 3
void header_mac_pieces(const struct header *h,
		       struct hmac_piece pieces[static HEADER_MAC_PIECES]);

/* Where slot @index lies in h->raw, HEADER_SLOT_BYTES long. */
uint8_t *header_raw_slot(const struct header *h, unsigned int index);

/* Is @label short enough, and harmless on a terminal? */
bool header_label_ok(const char *label);

/* For people; shows nothing that is secret. */
void header_to_text(const struct header *h, FILE *out);

#endif
