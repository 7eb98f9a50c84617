/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Random operations for anything that fsapi.h can drive.  What comes next is
 * chosen by looking at the reference model, so that most operations find
 * something to work on; an operation is plain data, can be printed, and be
 * done again on another file system.
 */
#ifndef TESTS_SUPPORT_WORKLOAD_H
#define TESTS_SUPPORT_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/support/fsapi.h"
#include "tests/support/refmodel.h"
#include "tests/support/rng.h"

/*
 * Kind, and its weight while the tree grows, while it stays about as it is,
 * while it shrinks, and while one folder gets very many names.
 */
#define OP_LIST(OP)                   \
	OP(CREATE, 120, 60, 10, 600)  \
	OP(MKDIR, 30, 15, 2, 4)       \
	OP(MKNOD, 10, 5, 1, 4)        \
	OP(SYMLINK, 20, 10, 2, 40)    \
	OP(LINK, 30, 25, 4, 60)       \
	OP(UNLINK, 15, 50, 200, 30)   \
	OP(RMDIR, 4, 15, 60, 1)       \
	OP(RENAME, 30, 80, 15, 60)    \
	OP(WRITE, 250, 150, 20, 10)   \
	OP(READ, 40, 60, 20, 4)       \
	OP(TRUNCATE, 15, 40, 60, 2)   \
	OP(SETATTR, 30, 40, 20, 10)   \
	OP(FALLOCATE, 30, 40, 20, 2)  \
	OP(LSEEK, 10, 30, 10, 2)      \
	OP(LOOKUP, 10, 20, 10, 30)    \
	OP(GETATTR, 5, 10, 5, 5)      \
	OP(READLINK, 5, 5, 2, 5)      \
	OP(READDIR, 4, 8, 6, 4)       \
	OP(SETXATTR, 25, 30, 5, 5)    \
	OP(GETXATTR, 5, 10, 5, 2)     \
	OP(LISTXATTR, 5, 10, 5, 2)    \
	OP(REMOVEXATTR, 3, 15, 20, 2) \
	OP(REAP, 10, 40, 100, 10)     \
	OP(FSYNC, 2, 3, 2, 1)         \
	OP(SYNC, 2, 3, 2, 1)

enum op_kind {
#define OP(name, grow, churn, shrink, folder) OP_##name,
	OP_LIST(OP)
#undef OP
	OP_NR
};

extern const char *const op_name[OP_NR];

/* Inode numbers are the model's until op_translate(). */
struct op {
	enum op_kind kind;
	inum_t ino, dir, new_dir;
	char name[NAME_BYTES_MAX + 2];
	char new_name[NAME_BYTES_MAX + 2];
	unsigned int flags;   /* of rename, write, setxattr */
	int mode;	      /* of fallocate; whence of lseek */
	uint64_t offset, len; /* len of readdir: names a call */
	uint64_t pattern;     /* what data, values and targets are made of */
	unsigned int what;    /* of setattr */
	struct attr set;      /* of setattr; mode and rdev of create */
	struct volume_cred cred;
};

struct workload_params {
	size_t max_inodes;   /* then the tree shrinks for a while */
	uint64_t max_blocks; /* of data; the same */
	size_t max_folder;   /* names made in a row in one folder */
	uint64_t max_offset; /* of writes and sizes, now and then */
	size_t max_write;
	size_t max_xattr;	  /* bytes of a value */
	unsigned int xattr_names; /* how many different ones */
	bool trusted_only;	  /* name space of xattrs */
	bool wrong_inodes;	  /* numbers that were never given out */
	bool no_zeros;		  /* write no zeros, which look like holes */
	bool odd_times;		  /* any 64-bit seconds */
};

extern const struct workload_params workload_default;

enum workload_phase {
	PHASE_GROW,
	PHASE_CHURN,
	PHASE_SHRINK,
	PHASE_FOLDER,
	PHASE_NR
};

struct workload {
	struct rng rng;
	const struct workload_params *params;
	enum workload_phase phase;
	unsigned int phase_left;
	inum_t folder;	     /* the one that fills */
	unsigned int serial; /* of its names */
};

void workload_init(struct workload *w, const struct workload_params *p,
		   uint64_t seed);
/* Choose what to do next; @m is as before it. */
void workload_next(struct workload *w, const struct refmodel *m, struct op *op);
void workload_phase(struct workload *w, enum workload_phase phase,
		    unsigned int nr_ops);

/* Numbers of the other file system by numbers of the model. */
struct inomap {
	inum_t *to;
	size_t nr;
};

void inomap_set(struct inomap *map, inum_t from, inum_t to);
/* A number that no file system has if @from is not in the map. */
inum_t inomap_get(const struct inomap *map, inum_t from);
void inomap_free(struct inomap *map);

struct op_dirent {
	char *name;
	inum_t ino;
	uint32_t mode;
};

struct op_result {
	int err;
	bool has_attr;
	struct attr attr;
	inum_t gone;
	uint64_t value; /* position, or length */
	uint8_t *data;	/* what was read: content, value, target */
	size_t nr_data;
	size_t nr_names; /* of a folder or of xattrs, sorted */
	struct op_dirent *names;
	const char *broken; /* the answer contradicts itself */
};

void op_translate(struct op *op, const struct inomap *map);
void op_apply(const struct op *op, const struct fsapi *fs, struct op_result *r);
void op_result_free(struct op_result *r);

/* The bytes that @op writes; free() them. */
uint8_t *op_data(const struct op *op);

enum op_compare_flags {
	OP_COMPARE_TIMES = 1 << 0, /* but atime */
	OP_COMPARE_ATIME = 1 << 3,
	OP_COMPARE_SPACE = 1 << 1, /* attr.blocks */
	OP_COMPARE_SEEK = 1 << 2,  /* positions of holes */
};

/*
 * Whether @b is the answer that @a, the model's, says is right.  If not, @why
 * gets a line.  @map is as before the operation.
 */
bool op_agrees(const struct op *op, const struct op_result *a,
	       const struct op_result *b, const struct inomap *map,
	       unsigned int flags, char *why, size_t size);
bool attr_agrees(const struct attr *a, const struct attr *b, unsigned int flags,
		 char *why, size_t size);

#define OP_TOUCHED_MAX 5
/*
 * Inodes, in the model's numbers, whose attributes @op may change, found in @m
 * as it is before @op.
 */
size_t op_touched(const struct op *op, const struct refmodel *m,
		  inum_t ino[static OP_TOUCHED_MAX]);

void op_print(const struct op *op, FILE *out);

#endif
