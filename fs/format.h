/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Bytes on disk: integers, pointers, header and superblock.  FORMAT.md says
 * what they mean; format_tree.h has what lies inside nodes.
 *
 * Byte-array integers have alignment 1, so structs need no packing and no
 * unaligned access can happen; compilers turn the accessors into one load.
 */
#ifndef FS_FORMAT_H
#define FS_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	uint8_t b[2];
} le16;
typedef struct {
	uint8_t b[4];
} le32;
typedef struct {
	uint8_t b[8];
} le64;

static inline uint16_t le16_get(le16 v)
{
	return (uint16_t)(v.b[0] | v.b[1] << 8);
}

static inline uint32_t le32_get(le32 v)
{
	return (uint32_t)v.b[0] | (uint32_t)v.b[1] << 8 |
	       (uint32_t)v.b[2] << 16 | (uint32_t)v.b[3] << 24;
}

static inline uint64_t le64_get(le64 v)
{
	return (uint64_t)v.b[0] | (uint64_t)v.b[1] << 8 |
	       (uint64_t)v.b[2] << 16 | (uint64_t)v.b[3] << 24 |
	       (uint64_t)v.b[4] << 32 | (uint64_t)v.b[5] << 40 |
	       (uint64_t)v.b[6] << 48 | (uint64_t)v.b[7] << 56;
}

static inline le16 le16_of(uint16_t v)
{
	return (le16){ { (uint8_t)v, (uint8_t)(v >> 8) } };
}

static inline le32 le32_of(uint32_t v)
{
	return (le32){ { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
			 (uint8_t)(v >> 24) } };
}

static inline le64 le64_of(uint64_t v)
{
	return (le64){ { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
			 (uint8_t)(v >> 24), (uint8_t)(v >> 32),
			 (uint8_t)(v >> 40), (uint8_t)(v >> 48),
			 (uint8_t)(v >> 56) } };
}

/* Where a sealed node is, and what proves it.  FORMAT.md, "Pointers". */
struct disk_ptr {
	le64 block;   /* first block; 0: no node */
	le64 second;  /* a second copy of the same bytes; 0: none */
	le64 birth;   /* commit that wrote it */
	le64 session; /* with counter: the nonce, never used twice */
	le32 counter;
	le16 key_id;
	uint8_t level;	    /* 0: leaf */
	uint8_t log2_bytes; /* size of the node, 14 to 16 */
	uint8_t tag[16];    /* of the sealed payload */
};
static_assert(sizeof(struct disk_ptr) == 56, "FORMAT.md, Pointers");
static_assert(offsetof(struct disk_ptr, tag) == 40, "FORMAT.md, Pointers");

/*
 * The header's fixed part, the first 512 bytes of either copy's area.  Magic,
 * version, feature words and the places of checksum and MAC stay where they
 * are in all versions.  FORMAT.md, "Header".
 */
#define HEADER_MAGIC "\x89TUSKFS\n"
#define HEADER_AREA_BYTES (256u * 1024)
#define HEADER_KEY_TABLE 4096u /* offsets in the area */
#define HEADER_SLOT_TABLE 65536u
#define HEADER_SLOT_BYTES 4096u

struct disk_header {
	uint8_t magic[8];
	le32 format_version;
	le32 area_bytes; /* HEADER_AREA_BYTES */
	le64 compat;
	le64 ro_compat;
	le64 incompat;
	uint8_t uuid[16];
	le64 sequence;	   /* rises with every change */
	uint8_t label[64]; /* UTF-8, the rest and the last byte zero */
	uint8_t node_log2;
	uint8_t zero1[63];
	uint8_t checksum[32]; /* SHA-256 of the area, this field zero */
	uint8_t mac[32];      /* HMAC-SHA-256 of it, this and checksum zero */
	uint8_t zero2[256];
};
static_assert(sizeof(struct disk_header) == 512, "FORMAT.md, Header");
static_assert(offsetof(struct disk_header, checksum) == 192,
	      "FORMAT.md, Header");

/* A row of the key table.  FORMAT.md, "Key table". */
struct disk_key_row {
	le16 key_id; /* 0: unused, and all zero */
	le16 state;
	le16 scheme;
	uint8_t integrity; /* 0 or 1 */
	uint8_t zero1;
	le32 sector_bytes;
	le32 counter;
	le64 session;
	uint8_t sealed[64];
	uint8_t tag[16];
	uint8_t zero2[24];
};
static_assert(sizeof(struct disk_key_row) == 128, "FORMAT.md, Key table");

/*
 * The known beginning of a key slot; random bytes fill the rest of its 4 KiB,
 * and all of it but the kind while it is unused.  FORMAT.md, "Key slots".
 */
struct disk_keyslot {
	le16 kind; /* 0: unused */
	le16 kdf;
	le16 key_id;
	le16 zero1;
	le32 passes;
	le32 memory_kib;
	le32 lanes;
	le32 counter;
	le64 session;
	uint8_t salt[32];
	uint8_t wrapped[64];
	uint8_t tag[16];
};
static_assert(sizeof(struct disk_keyslot) == 144, "FORMAT.md, Key slots");

/*
 * A superblock: in front what is needed to open it, and authenticated with
 * it; then what is sealed.  FORMAT.md, "Superblock".
 */
#define SUPER_MAGIC "\x89TUSKSB\n"

struct disk_super_clear {
	uint8_t magic[8];
	uint8_t uuid[16];
	le32 slot;
	le16 key_id;
	le16 zero1;
	le64 session;
	le32 counter;
	le32 zero2;
};
static_assert(sizeof(struct disk_super_clear) == 48, "FORMAT.md, Superblock");

struct disk_super_extent {
	le64 first;
	le64 nr;
};

struct disk_super_body {
	le64 commit;
	le64 nr_blocks;
	le64 limit_blocks;
	le64 header_sequence;
	le64 compat;
	le64 ro_compat;
	le64 incompat;
	le32 flags;
	le32 nr_log;
	struct disk_ptr root;
	struct disk_ptr root_again;
	le64 anchor_position;
	le64 anchor_sequence;
	uint8_t anchor_chain[16];
	struct disk_super_extent log[8];
	le64 base;
	uint8_t zero[3688];
};
static_assert(sizeof(struct disk_super_body) == 4032, "FORMAT.md, Superblock");
static_assert(offsetof(struct disk_super_body, log) == 208,
	      "FORMAT.md, Superblock");
static_assert(offsetof(struct disk_super_body, base) == 336,
	      "FORMAT.md, Superblock");

#define SUPER_FLAG_CLEAN 1u

struct disk_super {
	struct disk_super_clear clear;
	uint8_t tag[16];
	uint8_t sealed[sizeof(struct disk_super_body)];
};
static_assert(sizeof(struct disk_super) == 4096, "FORMAT.md, Superblock");

#endif
