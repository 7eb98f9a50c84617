/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The two header copies: what the container is, its key slots and its key
 * table, and the keys that come from them.  FORMAT.md, "Header".
 */
#ifndef FS_HEADER_H
#define FS_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "cipher/keyslot.h"
#include "cipher/nonce.h"
#include "cipher/scheme.h"
#include "cipher/seal.h"
#include "cipher/secret.h"
#include "cipher/tag.h"
#include "fs/types.h"

struct container;

#define FORMAT_VERSION 0
#define HEADER_SLOTS 16
#define HEADER_KEYS 16
#define LABEL_BYTES_MAX 63

/*
 * Features this program knows; a header or superblock with another bit is not
 * mounted (incompat) or mounted read-only (ro_compat).
 */
#define FEATURES_RO_COMPAT 0ull
#define FEATURES_INCOMPAT 0ull

/*
 * Bound of passes * memory_kib over all slots that are tried for one secret:
 * some minutes on a slow machine, whatever a hostile header asks for.
 */
#define HEADER_KDF_SUM_KIB (1ull << 29)

/* Fixed places, in blocks. */
#define HEADER_A_BLOCK 0
#define HEADER_BLOCKS 64 /* 256 KiB */
#define RING_A_BLOCK 128 /* 512 KiB */
#define RING_SLOTS 64
#define HEADER_B_BLOCK 4096 /* 16 MiB */
#define RING_B_BLOCK (HEADER_B_BLOCK + RING_A_BLOCK)
#define FIXED_BLOCKS 256	  /* 1 MiB at 0 and at 16 MiB */
#define CONTAINER_BLOCKS_MIN 8192 /* 32 MiB */

struct header_key {
	uint16_t key_id;       /* 0: row unused */
	uint16_t state;	       /* enum header_key_state */
	uint16_t scheme;       /* enum scheme_id */
	uint32_t sector_bytes; /* 512 or 4096 */
	bool integrity;
	struct nonce nonce; /* of the sealed bytes */
	uint8_t sealed[64]; /* random, under the key-table key */
	uint8_t tag[SEAL_TAG_BYTES];
};

enum header_key_state {
	HEADER_KEY_UNUSED = 0,
	HEADER_KEY_ACTIVE = 1, /* new writes use it */
	HEADER_KEY_OLD = 2,    /* still read */
};

/* A header in memory, decoded and bounds-checked; not yet authenticated until
 * header_unlock() succeeded. */
struct header {
	uint32_t format_version;
	uint64_t compat, ro_compat, incompat; /* feature words */
	uint8_t uuid[UUID_BYTES];
	char label[LABEL_BYTES_MAX + 1];
	uint64_t sequence;
	unsigned int node_log2; /* 14 to 16 */
	struct keyslot slot[HEADER_SLOTS];
	struct header_key key[HEADER_KEYS];
	/* Raw area, as read, for the HMAC over unknown bytes as well. */
	uint8_t *raw;		   /* HEADER_BLOCKS blocks */
	bool copy_ok[2];	   /* which copies were readable */
	uint64_t copy_sequence[2]; /* of these; else 0 */
};

/*
 * Keys of one key id, ready for use (data also for SCHEME_NONE).  All
 * thread-safe.
 */
struct key_set {
	uint16_t key_id;
	const struct scheme *scheme;
	uint32_t sector_bytes;
	bool integrity;
	struct scheme_key *data;
	struct tag_key *tag; /* NULL if integrity is off */
	struct seal_key *node;
	struct seal_key *super;
	struct hint_key *salvage;
};

/* What unlocking yields. */
struct header_keys {
	struct secret master;
	struct key_set set[HEADER_KEYS];
	unsigned int nr_sets;
	unsigned int active; /* index of the one for new writes */
	unsigned int slot;   /* which slot opened */
};

struct header_params {
	const char *label; /* UTF-8, may be "" */
	const struct scheme *scheme;
	uint32_t sector_bytes;
	bool integrity;
	unsigned int node_log2; /* 0: the default, 14 */
	struct kdf_cost cost;	/* as header_set_slot() */
	enum keyslot_kind kind; /* of the first slot */
};

/*
 * A new header in memory with one slot for @secret and one key, and its keys.
 * Nothing is written.  Returns 0; -EINVAL for a label that is too long or has
 * control characters, a wrong sector or node size, or as header_set_slot();
 * -ERANGE, -ENOMEM, -EIO.  After an error both are empty.
 */
must_check int header_new(struct header *h, struct header_keys *keys,
			  const struct header_params *p,
			  const struct secret *secret, struct nonce_source *src,
			  unsigned int nr_handles);

/*
 * Read and decode the newer of the two copies that is intact.  Returns 0;
 * -ENOMSG: no magic in either copy, not a container; -EOPNOTSUPP: a version or
 * incompatible feature we do not know (h->format_version and features are
 * set) or a scheme we do not know; -EUCLEAN: it is a container, but both
 * copies are damaged; -ENOMEM; -EIO.  After an error only header_destroy()
 * may be called besides looking at the fields named.
 */
must_check int header_read(struct header *h, struct container *c);

/*
 * Try @secret on all slots, password slots first, and, when one opens, verify
 * the HMAC and make the keys.
 *
 * Returns 0; -EACCES: no slot opens; -EBADMSG: a slot opens but the header is
 * not authentic: damage; -ERANGE: no slot opens, and some were not tried since
 * their costs are out of bounds, each or together; -ENOMEM; -EIO.  *keys is
 * empty after an error.
 */
must_check int header_unlock(const struct header *h,
			     const struct secret *secret,
			     struct header_keys *keys, unsigned int nr_handles);

/* The same for slots whose kind k has the bit 1 << k in @kinds. */
#define HEADER_ALL_KINDS UINT32_MAX
must_check int header_unlock_kinds(const struct header *h, uint32_t kinds,
				   const struct secret *secret,
				   struct header_keys *keys,
				   unsigned int nr_handles);

/*
 * Replace what opens slot @index by @secret and @cost; in memory.  The master
 * key stays.  Sequence, HMAC and checksum are renewed by
 * super_replace_header(), which also writes it.
 *
 * @cost  of Argon2id; all zero: HKDF, which only KEYSLOT_EXTERNAL may have
 *
 * Returns 0; -EINVAL: empty kind or index, or a secret too short for HKDF
 * (16 bytes); -ERANGE: cost out of bounds, by itself or with the other slots
 * together; -ENOMEM; -EIO.  The slot is as before after an error.
 */
must_check int header_set_slot(struct header *h, const struct header_keys *keys,
			       unsigned int index, enum keyslot_kind kind,
			       const struct secret *secret,
			       const struct kdf_cost *cost,
			       struct nonce_source *src);

/* Make slot @index unused and its bytes random; in memory. */
must_check int header_clear_slot(struct header *h, unsigned int index);

/*
 * Write the header to one copy (0: A, 1: B), without a flush.  The order of a
 * change (older copy, flush, superblock, flush, other copy, flush) is that of
 * super_replace_header(); a new container writes B, A, flush.
 */
must_check int header_write_copy(struct header *h,
				 const struct header_keys *keys,
				 struct container *c, unsigned int copy);

/* Were both copies readable, and of the same sequence? */
bool header_copies_agree(const struct header *h);

/*
 * Write @h, unchanged, to the copies that were damaged or older when it was
 * read, and flush.  Only after unlocking: it would spread a forged copy.
 * Returns 0 or negative errno.
 */
must_check int header_repair(struct header *h, const struct header_keys *keys,
			     struct container *c);

void header_destroy(struct header *h);
void header_keys_destroy(struct header_keys *keys);

/* The set with @key_id, or NULL. */
const struct key_set *header_key_set(const struct header_keys *keys,
				     uint16_t key_id);

/* Canonical text of a UUID, 36 characters and NUL. */
void uuid_format(const uint8_t uuid[static UUID_BYTES], char out[static 37]);

#endif
