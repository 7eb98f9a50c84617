/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the tests of the lower fs/ share: folders for container files, and an
 * emulated disk with headers and a superblock.
 */
#ifndef TESTS_UNIT_FS_SUPPORT_H
#define TESTS_UNIT_FS_SUPPORT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/header.h"
#include "fs/super.h"
#include "tests/support/emudev.h"

#define MIB (1024ull * 1024)
#define DISK_BYTES (32 * MIB)

static const struct kdf_cost cheap = { 1, 8, 1 };

/* A folder for one test. */
static inline void make_folder(char path[static 64])
{
	snprintf(path, 64, "/tmp/tusk-unit-XXXXXX");
	if (!mkdtemp(path))
		abort();
}

static inline void remove_folder(const char *path)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	if (system(command))
		abort();
}

static inline struct secret secret_text(const char *text)
{
	struct secret s;

	if (secret_copy(&s, text, strlen(text)))
		abort();
	return s;
}

static inline void start_nonces(struct nonce_source *src)
{
	enum secret_memory memory;

	if (cipher_init(0, &memory) || nonce_source_init(src))
		abort();
}

/* A container in memory, as create makes one (but for its trees). */
struct made {
	struct nonce_source src;
	struct header h;
	struct header_keys keys;
	struct emudev *d;
	struct container *c;
	struct super sb;
};

static inline struct header_params made_params(void)
{
	return (struct header_params){
		.label = "the label",
		.scheme = scheme_by_id(SCHEME_AES_256_XTS),
		.sector_bytes = 4096,
		.integrity = true,
		.cost = { 1, 8, 1 },
		.kind = KEYSLOT_PASSWORD,
	};
}

/* A superblock that is in bounds; its root points at nothing. */
static inline struct super made_super(uint64_t commit)
{
	return (struct super){
		.commit = commit,
		.root = {
			.block = FIXED_BLOCKS,
			.second = FIXED_BLOCKS + 4,
			.birth = commit,
			.nonce = { 7, 9 },
			.key_id = 1,
			.level = 0,
			.log2_bytes = 14,
			.tag = "a node's tag 16",
		},
		.nr_blocks = DISK_BYTES / BLOCK_BYTES,
		.header_sequence = 1,
		.clean = true,
	};
}

#define OLD_PASSWORD "the old password"
#define NEW_PASSWORD "the new password"

static inline void must_be_0(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %s\n", what, strerror(-err));
		abort();
	}
}
#define must(call) must_be_0(call, #call)

static inline void make_container(struct made *m)
{
	auto_secret struct secret old = SECRET_EMPTY;
	struct header_params p = made_params();

	memset(m, 0, sizeof(*m));
	start_nonces(&m->src);
	old = secret_text(OLD_PASSWORD);
	m->d = emudev_new(DISK_BYTES, 2 * DISK_BYTES);
	m->c = emudev_container(m->d);
	must(header_new(&m->h, &m->keys, &p, &old, &m->src, 1));
	must(header_write_copy(&m->h, &m->keys, m->c, 1));
	must(header_write_copy(&m->h, &m->keys, m->c, 0));
	m->sb = made_super(1);
	must(super_write(&m->sb, NULL, m->h.uuid, &m->keys, &m->src, m->c));
	must(container_flush(m->c));
	emudev_rebase(m->d);
}

static inline void destroy_container(struct made *m)
{
	header_keys_destroy(&m->keys);
	header_destroy(&m->h);
	container_close(m->c);
	emudev_free(m->d);
	nonce_source_destroy(&m->src);
}

/* Unlock @h with @password; the keys are not kept. */
static inline int try_password(const struct header *h, const char *password)
{
	auto_secret struct secret s = secret_text(password);
	struct header_keys keys;
	int err = header_unlock(h, &s, &keys, 1);

	header_keys_destroy(&keys);
	return err;
}

#endif
