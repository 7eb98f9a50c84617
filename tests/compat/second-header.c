/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * "Header", "Key slots", "Key table", "Key derivation", "Superblock" and
 * "Pointers".
 */
#include "tests/compat/second.h"

#include <stdlib.h>
#include <string.h>

const uint8_t *header;
const uint8_t *uuid;
unsigned int node_log2;
static uint8_t master[64];

static struct keys rows[16];

static bool whole_header(const uint8_t *h)
{
	static const uint8_t magic[8] = "\x89TUSKFS\n";
	uint8_t *copy, sum[32];
	bool ok;

	if (memcmp(h, magic, 8) != 0)
		return false;
	want(u32(h + 8) == 0, "format version", u32(h + 8));
	copy = get_memory(AREA);
	memcpy(copy, h, AREA);
	memset(copy + 192, 0, 32);
	sha256(copy, AREA, sum);
	ok = !memcmp(sum, h + 192, 32);
	free(copy);
	return ok;
}

void choose_header(void)
{
	const uint8_t *a = block_at(0, 64), *b = block_at(4096, 64);
	bool a_ok = whole_header(a), b_ok = whole_header(b);
	size_t label;

	want(a_ok || b_ok, "both headers are damaged", 0);
	header = a_ok && (!b_ok || u64(a + 56) >= u64(b + 56)) ? a : b;
	want(u32(header + 12) == AREA, "size of the area", u32(header + 12));
	want(!u64(header + 24) && !u64(header + 32), "features", 0);
	label = strnlen((const char *)header + 64, 64);
	want(label < 64 && zero(header + 64 + label, 64 - label), "label", 0);
	node_log2 = header[128];
	want(node_log2 >= 14 && node_log2 <= 16, "node size", node_log2);
	want(zero(header + 129, 63) && zero(header + 256, 256), "zeros", 0);
	uuid = header + 40;
}

static bool try_slot(unsigned int index, const uint8_t *secret, size_t len)
{
	const uint8_t *s = header + 65536 + 4096 * index;
	unsigned long cost[4] = { 32, u32(s + 8), u32(s + 12), u32(s + 16) };
	struct nonce n = { u64(s + 24), u32(s + 20) };
	uint8_t key[32], aad[74], *end;

	want(zero(s + 6, 2), "zeros in slot", index);
	if (u16(s + 2) != 1 || !cost[1] || !cost[3] || cost[3] > 16 ||
	    cost[2] < 8 * cost[3] || cost[2] > 4194304)
		return false;
	argon2id(secret, len, s + 32, cost, key);

	end = put_bytes(aad, uuid, 16);
	end = put(end, 0, 4);
	end = put(end, index, 4);
	end = put_bytes(end, s, 4);	  /* kind, KDF */
	end = put_bytes(end, s + 8, 12);  /* t, m, p */
	end = put_bytes(end, s + 32, 32); /* salt */
	end = put_bytes(end, s + 4, 2);	  /* key id */
	want(end - aad == 74, "AAD of a slot", index);
	return unseal(key, n, aad, 74, s + 64, 64, master, s + 128);
}

void unlock(const uint8_t *secret, size_t len)
{
	for (unsigned int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < 16; i++) {
			uint16_t kind = u16(header + 65536 + 4096 * i);

			if (kind >= 1 && kind <= 4 && (kind != 1) == pass &&
			    try_slot(i, secret, len))
				return;
		}
	die("no slot opens");
}

/* The keys of a row's id, or for the header itself if @row is NULL. */
static void derive(const uint8_t *from, const char *label, const uint8_t *row,
		   size_t len, uint8_t *out)
{
	uint8_t salt[32], info[64], *end;

	sha256(uuid, 16, salt);
	end = put(info, strlen(label), 1);
	end = put_bytes(end, label, strlen(label));
	end = put(end, 0, 4);
	end = put(end, row ? u16(row) : 0, 2);
	end = put(end, row ? u16(row + 4) : 0, 2);
	end = put(end, row ? u32(row + 8) : 0, 4);
	end = put(end, len, 4);
	hkdf(from, 64, salt, info, (size_t)(end - info), out, len);
}

void check_mac(void)
{
	uint8_t *copy = get_memory(AREA), key[32], mac[32];

	memcpy(copy, header, AREA);
	memset(copy + 192, 0, 64);
	derive(master, "header-mac", NULL, 32, key);
	hmac(key, 32, copy, AREA, mac);
	want(!memcmp(mac, header + 224, 32), "MAC of the header", 0);
	free(copy);
}

static size_t data_key_bytes(unsigned int scheme)
{
	static const uint8_t bytes[] = { 0, 32, 64, 16, 32, 32, 64 };

	want(scheme < sizeof(bytes), "unknown scheme", scheme);
	return bytes[scheme];
}

static void open_row(unsigned int index, const uint8_t table_key[static 32])
{
	const uint8_t *r = header + 4096 + 128 * index;
	struct nonce n = { u64(r + 16), u32(r + 12) };
	struct keys *k = &rows[index];
	uint8_t aad[32], *end, secret[64];

	if (!u16(r)) {
		want(zero(r, 128), "unused row is not zero", index);
		return;
	}
	want(!r[7] && zero(r + 104, 24) && r[6] <= 1, "row", index);
	end = put_bytes(aad, uuid, 16);
	end = put(end, 0, 4);
	end = put(end, u16(r), 2);
	end = put(end, u16(r + 4), 2);
	end = put(end, u32(r + 8), 4);
	put(end, r[6], 4);
	want(unseal(table_key, n, aad, 32, r + 24, 64, secret, r + 88),
	     "row does not open", index);

	k->id = u16(r);
	k->scheme = u16(r + 4);
	k->integrity = r[6];
	k->sector = u32(r + 8);
	want(k->sector == 512 || k->sector == 4096, "sector", k->sector);
	k->data_len = data_key_bytes(k->scheme);
	if (k->data_len)
		derive(secret, "data", r, k->data_len, k->data);
	derive(secret, "tag", r, 32, k->tag);
	derive(secret, "node", r, 32, k->node);
	derive(secret, "superblock", r, 32, k->super);
	derive(secret, "salvage", r, 32, k->salvage);
}

void open_rows(void)
{
	uint8_t key[32];

	derive(master, "key-table", NULL, 32, key);
	for (unsigned int i = 0; i < 16; i++)
		open_row(i, key);
}

const struct keys *keys_of(uint16_t id)
{
	for (unsigned int i = 0; id && i < 16; i++)
		if (rows[i].id == id)
			return &rows[i];
	die("key id %u is not in the table", id);
}

/* ---- "Superblock", "Pointers" */

uint8_t super[4032];
uint64_t commit, nr_blocks;

/* Opens slot @slot at @s if that is newer than what was found before. */
static void try_super(const uint8_t *s, unsigned int slot)
{
	static const uint8_t magic[8] = "\x89TUSKSB\n";
	struct nonce n = { u64(s + 32), u32(s + 40) };
	uint8_t body[4032];

	if (memcmp(s, magic, 8) || memcmp(s + 8, uuid, 16))
		return;
	want(u32(s + 24) == slot && !u16(s + 30) && !u32(s + 44),
	     "superblock's clear part", slot);
	if (!unseal(keys_of(u16(s + 28))->super, n, s, 32, s + 64, 4032, body,
		    s + 48))
		return;
	if (u64(body) <= commit)
		return;
	memcpy(super, body, 4032);
	commit = u64(body);
	want(commit % 64 == slot, "commit in the wrong slot", commit);
}

void open_super(void)
{
	unsigned int nr_log;

	for (unsigned int i = 0; i < 64; i++) {
		try_super(block_at(128 + i, 1), i);
		try_super(block_at(4224 + i, 1), i);
	}
	want(commit, "no superblock", 0);
	nr_blocks = u64(super + 8);
	want(nr_blocks >= 8192 && nr_blocks <= image_blocks &&
		     nr_blocks % GRANULE == 0,
	     "backed size", nr_blocks);
	want(u64(super + 24) >= 1 && u64(super + 24) <= u64(header + 56),
	     "sequence of the header", u64(super + 24));
	want(!u64(super + 40) && !u64(super + 48), "features", 0);
	want(u32(super + 56) <= 1, "flags", u32(super + 56));
	nr_log = u32(super + 60);
	want(nr_log <= 8, "log", nr_log);
	want(!memcmp(super + 64, super + 120, 56), "root twice", 0);
	want(zero(super + 208 + 16 * nr_log, 16 * (8 - nr_log)), "log", 0);
	want(u64(super + 336) < u64(super), "base", u64(super + 336));
	want(zero(super + 344, 3688), "zeros", 0);
}

struct pointer get_pointer(const uint8_t *p)
{
	struct pointer r = { u64(p),	  u64(p + 8),
			     u64(p + 16), { u64(p + 24), u32(p + 32) },
			     u16(p + 36), p[38],
			     p + 40 };

	want(r.block && r.block != r.second, "pointer", r.block);
	want(!(r.n.session >> 63) && r.level <= 12, "pointer", r.block);
	want(p[39] == node_log2, "node size in pointer", r.block);
	return r;
}
