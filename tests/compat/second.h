/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The second reader's parts.  What fails does not come back: die() and want()
 * say what is not as FORMAT.md has it, and end the program.
 */
#ifndef TESTS_COMPAT_SECOND_H
#define TESTS_COMPAT_SECOND_H

#include <gcrypt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK 4096u
#define AREA 262144u
#define REGION 8192u
#define GRANULE 256u

/* ---- second-crypto.c */

extern const uint8_t *image; /* the whole container, mapped */
extern uint64_t image_blocks;

void die(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));
/* die() unless @ok; @where is a number that helps to find it. */
void want(bool ok, const char *what, uint64_t where);
void library(gcry_error_t err);
void *get_memory(size_t len); /* zeros */

uint16_t u16(const uint8_t *p);
uint32_t u32(const uint8_t *p);
uint64_t u64(const uint8_t *p);
/* Both return where they ended. */
uint8_t *put(uint8_t *p, uint64_t v, unsigned int bytes);
uint8_t *put_bytes(uint8_t *p, const void *bytes, size_t len);
bool zero(const uint8_t *p, size_t len);
const uint8_t *block_at(uint64_t block, uint64_t nr);

struct nonce {
	uint64_t session;
	uint32_t counter;
};

void sha256(const void *p, size_t len, uint8_t out[static 32]);
void hmac(const uint8_t *key, size_t key_len, const uint8_t *p, size_t len,
	  uint8_t out[static 32]);
void hkdf(const uint8_t *ikm, size_t ikm_len, const uint8_t salt[static 32],
	  const uint8_t *info, size_t info_len, uint8_t *out, size_t len);
/* @cost is the length of the key, t, m and p. */
void argon2id(const uint8_t *secret, size_t len, const uint8_t *salt,
	      const unsigned long cost[static 4], uint8_t *out);
/* AES-256-GCM-SIV; false: not authentic. */
bool unseal(const uint8_t key[static 32], struct nonce n, const uint8_t *aad,
	    size_t aad_len, const uint8_t *in, size_t len, uint8_t *out,
	    const uint8_t tag[static 16]);
void gmac(const uint8_t key[static 32], struct nonce n, const uint8_t *p,
	  size_t len, uint8_t tag[static 16]);
/* Decrypt one sector; @key is all of the scheme's. */
void cbc(const uint8_t *key, size_t key_len, const uint8_t tweak[static 16],
	 const uint8_t *in, size_t len, uint8_t *out);
void xts(const uint8_t *key, size_t key_len, const uint8_t tweak[static 16],
	 const uint8_t *in, size_t len, uint8_t *out);
void elephant(const uint8_t *key, size_t key_len,
	      const uint8_t tweak[static 16], const uint8_t *in, size_t len,
	      uint8_t *out);

/* ---- second-header.c: in this order */

void choose_header(void);
void unlock(const uint8_t *secret, size_t len);
void check_mac(void);
void open_rows(void);
void open_super(void);

extern const uint8_t *header; /* the copy that counts */
extern const uint8_t *uuid;
extern unsigned int node_log2;
extern uint8_t super[4032]; /* opened */
extern uint64_t commit, nr_blocks;

struct keys {
	uint16_t id, scheme;
	bool integrity;
	uint32_t sector;
	size_t data_len;
	uint8_t data[64], tag[32], node[32], super[32], salvage[32];
};

const struct keys *keys_of(uint16_t id);

struct pointer {
	uint64_t block, second, birth;
	struct nonce n;
	uint16_t key_id;
	uint8_t level;
	const uint8_t *tag;
};

struct pointer get_pointer(const uint8_t *p);

/* ---- second-trees.c */

struct key {
	uint64_t inode, offset;
	uint8_t type;
	bool end; /* above all others */
};

bool below(struct key a, struct key b);

/* Call @item for each item of a tree, in order. */
typedef void item_fn(struct key k, const uint8_t *value, size_t len);
void walk_tree(const uint8_t *pointer, uint64_t tree, item_fn *item);

enum owner {
	FREE,
	FIXED,
	NODE,
	DATA,
	FREED
};
void own(uint64_t block, uint64_t nr, enum owner who);

/* Read the volume tree; then own() works. */
void open_volume(void);
extern uint8_t seed[32], root[72]; /* directory seed; ROOT of tree 256 */
/* All has an owner now: check bitmaps and summaries, and free the memory. */
void close_volume(void);

#endif
