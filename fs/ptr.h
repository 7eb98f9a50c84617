/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Pointers to nodes, in memory.
 */
#ifndef FS_PTR_H
#define FS_PTR_H

#include <stdbool.h>
#include <stdint.h>

#include "cipher/nonce.h"
#include "fs/format.h"
#include "fs/types.h"

struct ptr {
	block_t block; /* 0: no node */
	block_t second;
	uint64_t birth;
	struct nonce nonce;
	uint16_t key_id;
	uint8_t level;
	uint8_t log2_bytes;
	uint8_t tag[16];
};

void ptr_encode(const struct ptr *p, struct disk_ptr *d);

/*
 * Decode and check what can be checked without the container: level at most
 * 12, size 14 to 16, session's top bit.  Returns 0 or -EUCLEAN.
 */
must_check int ptr_decode(const struct disk_ptr *d, struct ptr *p);

#endif
