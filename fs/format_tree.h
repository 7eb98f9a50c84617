/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Bytes on disk: nodes, and the items in them.  FORMAT.md, "Nodes", "Volume
 * tree" and "File tree", says what they mean.
 */
#ifndef FS_FORMAT_TREE_H
#define FS_FORMAT_TREE_H

#include <assert.h>

#include "fs/format.h"

#define TREE_VOLUME 1
#define TREE_FILES 256		/* snapshots will have higher numbers */

#define NODE_LOG2_DEFAULT 14
#define NODE_LEVEL_MAX 12

/*
 * The hint in front of a node, encrypted under the salvage key; only a scan
 * for lost nodes reads it, and trusts nothing in it.
 */
#define NODE_HINT_MAGIC 0x65646f6e6b737574ull	/* "tusknode" */
struct disk_hint {
	uint8_t tag[16];
	le64 magic;
	le64 session;
	le32 counter;
	le16 key_id;
	uint8_t log2_bytes;
	uint8_t zero[25];
};
static_assert(sizeof(struct disk_hint) == 64, "FORMAT.md, Nodes");

struct disk_key {
	le64 inum;
	uint8_t type;
	le64 offset;
};
static_assert(sizeof(struct disk_key) == 17, "FORMAT.md, Nodes");

/* Head of the sealed payload. */
struct disk_node {
	uint8_t uuid[16];
	le64 tree;
	le64 block;
	le64 birth;
	struct disk_key low;	/* no key below it belongs here */
	uint8_t level;
	le16 nr;		/* items */
	uint8_t zero[4];
};
static_assert(sizeof(struct disk_node) == 64, "FORMAT.md, Nodes");

/* nr of these follow, sorted by key; values grow down from the end. */
struct disk_item {
	struct disk_key key;
	uint8_t zero;
	le16 pos;		/* of the value, from the payload's start */
	le16 len;		/* of the value, bytes */
};
static_assert(sizeof(struct disk_item) == 22, "FORMAT.md, Nodes");

/* Item types; the order is that of the items of one inode. */
enum item_type {
	/* Volume tree. */
	ITEM_INFO = 1,		/* (0, ITEM_INFO, 0) */
	ITEM_SUMMARY = 2,	/* (0, ITEM_SUMMARY, region) */
	ITEM_BITMAP = 3,	/* (0, ITEM_BITMAP, region) */
	ITEM_FREED = 4,		/* (owner, ITEM_FREED, commit << 24 | seq) */
	ITEM_ROOT = 5,		/* (tree, ITEM_ROOT, 0) */
	/* File tree. */
	ITEM_INODE = 16,	/* (inode, ITEM_INODE, 0) */
	ITEM_XATTR = 17,	/* (inode, ITEM_XATTR, hash | disc | chunk) */
	ITEM_SYMLINK = 18,	/* (inode, ITEM_SYMLINK, chunk) */
	ITEM_DIRENT = 19,	/* (folder, ITEM_DIRENT, cookie) */
	ITEM_EXTENT = 20,	/* (inode, ITEM_EXTENT, logical block) */
	ITEM_ORPHAN = 21,	/* (0, ITEM_ORPHAN, inode) */
};

/* Numbers of the volume that are no one's else. */
struct disk_info {
	uint8_t dir_seed[32];	/* key of the name hash */
	uint8_t zero[32];
};
static_assert(sizeof(struct disk_info) == 64, "FORMAT.md, Volume tree");

#define REGION_BLOCKS 8192u	/* 32 MiB */
#define GRANULE_BLOCKS 256u	/* 1 MiB */
#define REGION_GRANULES 32u

struct disk_summary {
	le32 backed;		/* granules that the host has given space */
	le32 nodes;		/* granules kept for nodes */
	le32 free;		/* blocks free in backed data granules */
	le32 longest;		/* longest free run of blocks, outside node
				   granules */
};
static_assert(sizeof(struct disk_summary) == 16, "FORMAT.md, Volume tree");

/* Bit b of byte b / 8: block b of the region is allocated. */
struct disk_bitmap {
	uint8_t bits[REGION_BLOCKS / 8];
};
static_assert(sizeof(struct disk_bitmap) == 1024, "FORMAT.md, Volume tree");

/* ITEM_FREED is an array of these. */
struct disk_freed {
	le64 start;		/* block */
	le32 nr;		/* blocks */
	le64 birth;		/* commit that first reached it */
};
static_assert(sizeof(struct disk_freed) == 20, "FORMAT.md, Volume tree");
#define FREED_SEQ_BITS 24

struct disk_root {
	struct disk_ptr ptr;
	le64 next_inum;		/* never used before */
	le64 unwritten;		/* blocks mapped and never written */
};
static_assert(sizeof(struct disk_root) == 72, "FORMAT.md, Volume tree");

struct disk_time {
	le64 sec;		/* two's complement, since 1970 */
	le32 nsec;
};
static_assert(sizeof(struct disk_time) == 12, "FORMAT.md, File tree");

struct disk_inode {
	le32 mode;
	le32 nlink;
	le32 uid;
	le32 gid;
	le64 size;
	le64 blocks;		/* of 4096 bytes, mapped */
	le64 rdev;
	le64 flags;		/* none defined: zero */
	struct disk_time atime, mtime, ctime, btime;
	le64 generation;	/* zero */
	le64 parent;		/* folder it was last named in */
	le64 entries;		/* folders: names in it */
	uint8_t zero[24];
};
static_assert(sizeof(struct disk_inode) == 144, "FORMAT.md, File tree");

struct disk_dirent {
	le64 inum;
	uint8_t type;		/* DT_* of <dirent.h> */
	uint8_t name_len;
	uint8_t name[];
};
static_assert(sizeof(struct disk_dirent) == 10, "FORMAT.md, File tree");

/* First chunk of an attribute: this, the name, the value's beginning. */
struct disk_xattr {
	le32 value_len;		/* of all chunks */
	uint8_t name_len;
	uint8_t zero[3];
	uint8_t name[];
};
static_assert(sizeof(struct disk_xattr) == 8, "FORMAT.md, File tree");
#define XATTR_CHUNK_BYTES 1024u
#define SYMLINK_CHUNK_BYTES 1024u

enum extent_flags {
	EXTENT_TAGGED = 1 << 0,
	EXTENT_UNWRITTEN = 1 << 1,	/* reads as zeros */
};

struct disk_extent {
	le64 block;
	le64 session;
	le64 birth;
	le32 counter;		/* of the first block; each next is one more */
	le32 nr;		/* blocks */
	le16 key_id;
	le16 flags;
	uint8_t tags[];		/* EXTENT_TAGGED: nr * 16 bytes */
};
static_assert(sizeof(struct disk_extent) == 36, "FORMAT.md, File tree");

/* Tagged extents never cross a multiple of this many blocks. */
#define EXTENT_WINDOW_BLOCKS 64u

#endif
