/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A second reader of containers, written from fs/FORMAT.md and for that page's
 * sake: it includes nothing of fs/ or cipher/ and shares no line with them, so
 * whatever it needs to know stands in the page.
 *
 *	second-reader CONTAINER PASSWORD-FILE
 *
 * Lists the tree, a line for each name and each extended attribute, in the
 * form that compat-volume has too, with the SHA-256 of contents.  On the way it
 * checks all that the page promises of a container at rest: layout of nodes,
 * hints, cookies, counts, tags, and that each block has one owner.  What is
 * not so ends it, with a line that says what, and status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096u
#define AREA 262144u
#define REGION 8192u
#define GRANULE 256u

static const uint8_t *image; /* the whole container */
static uint64_t image_blocks;

static void die(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

static void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("second-reader: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void want(bool ok, const char *what, uint64_t where)
{
	if (!ok)
		die("%s (%" PRIu64 ")", what, where);
}

static void library(gcry_error_t err)
{
	if (err)
		die("libgcrypt: %s", gcry_strerror(err));
}

static void *get_memory(size_t len)
{
	void *p = calloc(1, len ? len : 1);

	if (!p)
		die("no memory");
	return p;
}

/* ---- "Conventions" */

static uint64_t get(const uint8_t *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

static uint16_t u16(const uint8_t *p)
{
	return (uint16_t)get(p, 2);
}

static uint32_t u32(const uint8_t *p)
{
	return (uint32_t)get(p, 4);
}

static uint64_t u64(const uint8_t *p)
{
	return get(p, 8);
}

static uint8_t *put(uint8_t *p, uint64_t v, unsigned int bytes)
{
	for (; bytes--; v >>= 8)
		*p++ = (uint8_t)v;
	return p;
}

static uint8_t *put_bytes(uint8_t *p, const void *bytes, size_t len)
{
	memcpy(p, bytes, len);
	return p + len;
}

static bool zero(const uint8_t *p, size_t len)
{
	while (len--)
		if (*p++)
			return false;
	return true;
}

static const uint8_t *block_at(uint64_t block, uint64_t nr)
{
	if (block >= image_blocks || nr > image_blocks - block)
		die("block %" PRIu64 " lies outside of the file", block);
	return image + block * BLOCK;
}

static void sha256(const void *p, size_t len, uint8_t out[static 32])
{
	gcry_md_hash_buffer(GCRY_MD_SHA256, out, p, len);
}

static void hmac(const uint8_t *key, size_t key_len, const uint8_t *p,
		 size_t len, uint8_t out[static 32])
{
	gcry_md_hd_t md;

	library(gcry_md_open(&md, GCRY_MD_SHA256, GCRY_MD_FLAG_HMAC));
	library(gcry_md_setkey(md, key, key_len));
	gcry_md_write(md, p, len);
	memcpy(out, gcry_md_read(md, GCRY_MD_SHA256), 32);
	gcry_md_close(md);
}

/* RFC 5869 */
static void hkdf(const uint8_t *ikm, size_t ikm_len,
		 const uint8_t salt[static 32], const uint8_t *info,
		 size_t info_len, uint8_t *out, size_t len)
{
	uint8_t prk[32], t[32], message[32 + 128 + 1];
	size_t t_len = 0;

	hmac(salt, 32, ikm, ikm_len, prk);
	for (uint8_t i = 1; len; i++) {
		uint8_t *end = put_bytes(message, t, t_len);
		size_t n = len < 32 ? len : 32;

		end = put_bytes(end, info, info_len);
		*end++ = i;
		hmac(prk, 32, message, (size_t)(end - message), t);
		t_len = 32;
		out = put_bytes(out, t, n);
		len -= n;
	}
}

static bool argon2id(const uint8_t *secret, size_t len, const uint8_t *salt,
		     const unsigned long cost[static 4], uint8_t *out)
{
	gcry_kdf_hd_t hd;

	library(gcry_kdf_open(&hd, GCRY_KDF_ARGON2, GCRY_KDF_ARGON2ID, cost, 4,
			      secret, len, salt, 32, NULL, 0, NULL, 0));
	library(gcry_kdf_compute(hd, NULL));
	library(gcry_kdf_final(hd, cost[0], out));
	gcry_kdf_close(hd);
	return true;
}

struct nonce {
	uint64_t session;
	uint32_t counter;
};

static void nonce_bytes(struct nonce n, uint8_t out[static 12])
{
	put(put(out, n.session, 8), n.counter, 4);
}

static bool unseal(const uint8_t key[static 32], struct nonce n,
		   const uint8_t *aad, size_t aad_len, const uint8_t *in,
		   size_t len, uint8_t *out, const uint8_t tag[static 16])
{
	gcry_cipher_hd_t hd;
	gcry_error_t err;
	uint8_t iv[12];

	nonce_bytes(n, iv);
	library(gcry_cipher_open(&hd, GCRY_CIPHER_AES256,
				 GCRY_CIPHER_MODE_GCM_SIV, 0));
	library(gcry_cipher_setkey(hd, key, 32));
	library(gcry_cipher_setiv(hd, iv, 12));
	library(gcry_cipher_authenticate(hd, aad, aad_len));
	library(gcry_cipher_set_decryption_tag(hd, (void *)tag, 16));
	err = gcry_cipher_decrypt(hd, out, len, in, len);
	gcry_cipher_close(hd);
	if (err && gcry_err_code(err) != GPG_ERR_CHECKSUM)
		library(err);
	return !err;
}

static void gmac(const uint8_t key[static 32], struct nonce n, const uint8_t *p,
		 size_t len, uint8_t tag[static 16])
{
	gcry_cipher_hd_t hd;
	uint8_t iv[12];

	nonce_bytes(n, iv);
	library(gcry_cipher_open(&hd, GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_GCM,
				 0));
	library(gcry_cipher_setkey(hd, key, 32));
	library(gcry_cipher_setiv(hd, iv, 12));
	library(gcry_cipher_authenticate(hd, p, len));
	library(gcry_cipher_gettag(hd, tag, 16));
	gcry_cipher_close(hd);
}

static int aes(size_t key_len)
{
	return key_len == 16 ? GCRY_CIPHER_AES128 : GCRY_CIPHER_AES256;
}

static void ecb(const uint8_t *key, size_t key_len, const uint8_t in[static 16],
		uint8_t out[static 16])
{
	gcry_cipher_hd_t hd;

	library(gcry_cipher_open(&hd, aes(key_len), GCRY_CIPHER_MODE_ECB, 0));
	library(gcry_cipher_setkey(hd, key, key_len));
	library(gcry_cipher_encrypt(hd, out, 16, in, 16));
	gcry_cipher_close(hd);
}

/* CBC whose IV is the encrypted tweak. */
static void cbc(const uint8_t *key, size_t key_len,
		const uint8_t tweak[static 16], const uint8_t *in, size_t len,
		uint8_t *out)
{
	gcry_cipher_hd_t hd;
	uint8_t iv[16];

	ecb(key, key_len, tweak, iv);
	library(gcry_cipher_open(&hd, aes(key_len), GCRY_CIPHER_MODE_CBC, 0));
	library(gcry_cipher_setkey(hd, key, key_len));
	library(gcry_cipher_setiv(hd, iv, 16));
	library(gcry_cipher_decrypt(hd, out, len, in, len));
	gcry_cipher_close(hd);
}

static void xts(const uint8_t *key, size_t key_len,
		const uint8_t tweak[static 16], const uint8_t *in, size_t len,
		uint8_t *out)
{
	gcry_cipher_hd_t hd;

	library(gcry_cipher_open(&hd, aes(key_len / 2), GCRY_CIPHER_MODE_XTS,
				 0));
	library(gcry_cipher_setkey(hd, key, key_len));
	library(gcry_cipher_setiv(hd, tweak, 16));
	library(gcry_cipher_decrypt(hd, out, len, in, len));
	gcry_cipher_close(hd);
}

static uint32_t rotate(uint32_t v, unsigned int by)
{
	return by ? v << by | v >> (32 - by) : v;
}

static void diffuse(uint32_t *d, size_t n, unsigned int rounds, size_t two,
		    size_t five, const unsigned int by[static 4])
{
	while (rounds--)
		for (size_t i = 0; i < n; i++)
			d[i] += d[(i + two) % n] ^
				rotate(d[(i + five) % n], by[i % 4]);
}

static void elephant(const uint8_t *key, size_t key_len,
		     const uint8_t tweak[static 16], const uint8_t *in,
		     size_t len, uint8_t *out)
{
	static const unsigned int ra[4] = { 9, 0, 13, 0 };
	static const unsigned int rb[4] = { 0, 10, 0, 25 };
	size_t half = key_len / 2, n = len / 4;
	uint8_t ks[32], second[16];
	uint32_t d[BLOCK / 4];

	cbc(key, half, tweak, in, len, out);
	for (size_t i = 0; i < n; i++)
		d[i] = u32(out + 4 * i);
	diffuse(d, n, 3, 2, 5, rb);
	diffuse(d, n, 5, n - 2, n - 5, ra);
	for (size_t i = 0; i < n; i++)
		put(out + 4 * i, d[i], 4);

	memcpy(second, tweak, 16);
	second[15] |= 0x80;
	ecb(key + half, half, tweak, ks);
	ecb(key + half, half, second, ks + 16);
	for (size_t i = 0; i < len; i++)
		out[i] ^= ks[i % 32];
}

/* ---- "Header", "Key slots", "Key table", "Key derivation" */

static const uint8_t *header; /* the copy that counts */
static const uint8_t *uuid;
static unsigned int node_log2;
static uint8_t master[64];

struct keys {
	uint16_t id, scheme;
	bool integrity;
	uint32_t sector;
	size_t data_len;
	uint8_t data[64], tag[32], node[32], super[32], salvage[32];
};

static struct keys rows[16];

static bool whole_header(const uint8_t *h)
{
	static const uint8_t magic[8] = "\x89TUSKFS\n";
	uint8_t *copy = get_memory(AREA), sum[32];
	bool ok;

	want(!memcmp(h, magic, 8), "no magic", 0);
	want(u32(h + 8) == 0, "format version", u32(h + 8));
	memcpy(copy, h, AREA);
	memset(copy + 192, 0, 32);
	sha256(copy, AREA, sum);
	ok = !memcmp(sum, h + 192, 32);
	free(copy);
	return ok;
}

static void choose_header(void)
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

static void unlock(const uint8_t *secret, size_t len)
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

static void check_mac(void)
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

static void open_rows(void)
{
	uint8_t key[32];

	derive(master, "key-table", NULL, 32, key);
	for (unsigned int i = 0; i < 16; i++)
		open_row(i, key);
}

static const struct keys *keys_of(uint16_t id)
{
	for (unsigned int i = 0; id && i < 16; i++)
		if (rows[i].id == id)
			return &rows[i];
	die("key id %u is not in the table", id);
}

/* ---- "Superblock", "Pointers" */

static uint8_t super[4032];
static uint64_t commit, nr_blocks;

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

static void open_super(void)
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
	want(zero(super + 336, 3696), "zeros", 0);
}

struct pointer {
	uint64_t block, second, birth;
	struct nonce n;
	uint16_t key_id;
	uint8_t level;
	const uint8_t *tag;
};

static struct pointer get_pointer(const uint8_t *p)
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

/* ---- who owns each block */

enum owner {
	FREE,
	FIXED,
	NODE,
	DATA,
	FREED
};

static uint8_t *owner;

static void own(uint64_t block, uint64_t nr, enum owner who)
{
	want(block < nr_blocks && nr <= nr_blocks - block, "outside", block);
	for (; nr--; block++) {
		want(owner[block] == FREE, "block with two owners", block);
		owner[block] = (uint8_t)who;
	}
}

/* ---- "Nodes" */

struct key {
	uint64_t inode, offset;
	uint8_t type;
	bool end; /* above all others */
};

static struct key get_key(const uint8_t *p)
{
	return (struct key){ u64(p), u64(p + 9), p[8], false };
}

static bool below(struct key a, struct key b)
{
	if (a.end || b.end)
		return !a.end;
	if (a.inode != b.inode)
		return a.inode < b.inode;
	if (a.type != b.type)
		return a.type < b.type;
	return a.offset < b.offset;
}

typedef void item_fn(struct key k, const uint8_t *value, size_t len);

static void check_hint(const struct pointer *p, const uint8_t *node)
{
	uint8_t tweak[16] = { 0 }, h[64];

	put(tweak, p->block, 8);
	cbc(keys_of(p->key_id)->salvage, 32, tweak, node, 64, h);
	want(!memcmp(h, p->tag, 16) && !memcmp(h + 16, "tusknode", 8) &&
		     u64(h + 24) == p->n.session &&
		     u32(h + 32) == p->n.counter && u16(h + 36) == p->key_id &&
		     h[38] == node_log2 && zero(h + 39, 25),
	     "hint", p->block);
}

static void check_head(const struct pointer *p, uint64_t tree,
		       const uint8_t *head, struct key low)
{
	want(!memcmp(head, uuid, 16) && u64(head + 16) == tree &&
		     u64(head + 24) == p->block && u64(head + 32) == p->birth &&
		     head[57] == p->level && zero(head + 60, 4),
	     "head of a node", p->block);
	want(!below(get_key(head + 40), low), "low key", p->block);
	want(p->birth && p->birth <= commit, "birth", p->block);
	want(!p->level || u16(head + 58), "internal node without children",
	     p->block);
}

static void walk(const uint8_t *pointer, unsigned int level, uint64_t tree,
		 struct key low, struct key high, item_fn *item)
{
	struct pointer p = get_pointer(pointer);
	size_t len = ((size_t)1 << node_log2) - 64, end;
	const uint8_t *node = block_at(p.block, (len + 64) / BLOCK);
	uint8_t aad[26], *n = get_memory(len), *at;
	struct key before;
	unsigned int nr;

	want(p.level == level, "level", p.block);
	own(p.block, (len + 64) / BLOCK, NODE);
	at = put_bytes(aad, uuid, 16);
	put(put(at, tree, 8), p.key_id, 2);
	want(unseal(keys_of(p.key_id)->node, p.n, aad, 26, node + 64, len, n,
		    p.tag),
	     "node is not authentic", p.block);
	check_hint(&p, node);
	check_head(&p, tree, n, low);

	nr = u16(n + 58);
	end = len;
	want(nr <= (len - 64) / 22, "number of items", p.block);
	before = get_key(n + 40);
	for (unsigned int i = 0; i < nr; i++) {
		const uint8_t *slot = n + 64 + 22 * i;
		struct key k = get_key(slot), next = high;
		size_t pos = u16(slot + 18), size = u16(slot + 20);

		want(!slot[17] && !below(k, before) && below(k, high) &&
			     (!i || below(before, k)),
		     "order of items", p.block);
		want(pos + size == end && pos >= 64 + 22 * (size_t)nr,
		     "layout of values", p.block);
		end = pos;
		before = k;
		if (!level) {
			item(k, n + pos, size);
			continue;
		}
		want(size == 56, "pointer's length", p.block);
		if (i + 1 < nr)
			next = get_key(slot + 22);
		walk(n + pos, level - 1, tree, k, next, item);
	}
	want(zero(n + 64 + 22 * nr, end - 64 - 22 * nr), "gap", p.block);
	free(n);
}

static void walk_tree(const uint8_t *root, uint64_t tree, item_fn *item)
{
	struct key low = { 0 }, high = { .end = true };

	walk(root, root[38], tree, low, high, item);
}

/* ---- "Volume tree" */

static uint8_t seed[32], root[72];
static bool have_info, have_root;
static uint64_t nr_regions, nr_summaries;
static uint8_t *summaries, *bitmaps;

static void freed_item(struct key k, const uint8_t *v, size_t len)
{
	want(k.inode == 256 && k.offset >> 24 <= commit, "FREED", k.offset);
	want(len && len % 20 == 0, "FREED", k.offset);
	for (; len; v += 20, len -= 20) {
		want(u64(v) && u32(v + 8), "FREED", k.offset);
		own(u64(v), u32(v + 8), FREED);
	}
}

static void volume_item(struct key k, const uint8_t *v, size_t len)
{
	switch (k.type) {
	case 1:
		want(!k.inode && !k.offset && len == 64 && zero(v + 32, 32),
		     "INFO", 0);
		memcpy(seed, v, 32);
		have_info = true;
		break;
	case 2:
		want(!k.inode && len == 16 && k.offset == nr_summaries &&
			     k.offset < nr_regions,
		     "SUMMARY", k.offset);
		memcpy(summaries + 16 * nr_summaries++, v, 16);
		break;
	case 3:
		want(!k.inode && len == 1024 && k.offset < nr_regions, "BITMAP",
		     k.offset);
		memcpy(bitmaps + 1024 * k.offset, v, 1024);
		break;
	case 4:
		freed_item(k, v, len);
		break;
	case 5:
		want(k.inode == 256 && !k.offset && len == 72, "ROOT", 0);
		memcpy(root, v, 72);
		have_root = true;
		break;
	default:
		die("item of type %u in the volume tree", k.type);
	}
}

static void open_volume(void)
{
	nr_regions = (nr_blocks + REGION - 1) / REGION;
	owner = get_memory(nr_blocks);
	summaries = get_memory(16 * nr_regions);
	bitmaps = get_memory(1024 * nr_regions);
	own(0, 256, FIXED);
	own(4096, 256, FIXED);
	walk_tree(super + 64, 1, volume_item);
	want(have_info && have_root && nr_summaries == nr_regions,
	     "volume tree is not complete", nr_summaries);
	want(u64(root + 56) >= 1024 && !(u64(root + 56) >> 63), "next inode",
	     u64(root + 56));
}

/* All that "Space" says of one region. */
static void check_region(uint64_t region)
{
	const uint8_t *s = summaries + 16 * region;
	uint32_t backed = u32(s), nodes = u32(s + 4);
	uint32_t nr_free = 0, run = 0, longest = 0;

	want(!(nodes & ~backed), "node granules without backing", region);
	for (uint32_t b = 0; b < REGION; b++) {
		uint64_t block = region * REGION + b;
		bool taken = bitmaps[1024 * region + b / 8] >> (b % 8) & 1;
		bool is_backed = backed >> (b / GRANULE) & 1;
		bool for_nodes = nodes >> (b / GRANULE) & 1;
		enum owner o = block < nr_blocks ? owner[block] : FREE;

		want(taken == (o != FREE), "bitmap", block);
		want(!taken || is_backed, "taken without backing", block);
		want(is_backed == (block < nr_blocks), "backing", block);
		want(o != NODE || for_nodes, "node among data", block);
		want((o != DATA && o != FIXED) || !for_nodes,
		     "data among nodes", block);
		run = taken || !is_backed || for_nodes ? 0 : run + 1;
		nr_free += run != 0;
		longest = run > longest ? run : longest;
	}
	want(u32(s + 8) == nr_free, "free", region);
	want(u32(s + 12) == longest, "longest", region);
}

/* ---- "File tree" */

struct item {
	struct key k;
	size_t len;
	uint8_t *v;
};

static struct item *items; /* of all the tree, in order */
static size_t nr_items, room_items;

static void file_item(struct key k, const uint8_t *v, size_t len)
{
	if (nr_items == room_items) {
		room_items = room_items ? room_items * 2 : 1024;
		items = realloc(items, room_items * sizeof(*items));
		if (!items)
			die("no memory");
	}
	items[nr_items] = (struct item){ k, len, get_memory(len) };
	memcpy(items[nr_items].v, v, len);
	nr_items++;
}

/* The first item of (inode, type) or what stands in its place. */
static size_t find(uint64_t inode, uint8_t type, uint64_t offset)
{
	struct key k = { inode, offset, type, false };
	size_t lo = 0, hi = nr_items;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (below(items[mid].k, k))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool is(size_t i, uint64_t inode, uint8_t type)
{
	return i < nr_items && items[i].k.inode == inode &&
	       items[i].k.type == type;
}

static const uint8_t *inode_item(uint64_t inode)
{
	size_t i = find(inode, 16, 0);

	if (!is(i, inode, 16))
		die("inode %" PRIu64 " is not there", inode);
	want(!items[i].k.offset && items[i].len == 144, "INODE", inode);
	return items[i].v;
}

static uint64_t name_hash(const uint8_t *name, size_t len)
{
	uint8_t mac[32];

	hmac(seed, 32, name, len, mac);
	return u64(mac);
}

static void print_quoted(const uint8_t *s, size_t len)
{
	for (; len--; s++)
		if (*s > ' ' && *s < 0x7f && *s != '\\')
			putchar(*s);
		else
			printf("\\x%02x", *s);
}

static void print_hash(const uint8_t hash[static 32])
{
	for (unsigned int i = 0; i < 32; i++)
		printf("%02x", hash[i]);
}

struct path {
	const struct path *up;
	const uint8_t *name;
	size_t len;
};

static void print_path(const struct path *p)
{
	if (p->up) {
		print_path(p->up);
		putchar('/');
	}
	print_quoted(p->name, p->len);
}

/* ---- "Data blocks" */

static void decrypt_block(const struct keys *k, struct nonce n,
			  const uint8_t *in, uint8_t *out)
{
	uint32_t unit = k->scheme == 1 || k->scheme == 2 ? k->sector : 1;

	for (uint32_t at = 0; at < BLOCK; at += k->sector) {
		uint8_t tweak[16];

		put(tweak, ((uint64_t)n.counter * BLOCK + at) / unit, 8);
		put(tweak + 8, n.session, 8);
		switch (k->scheme) {
		case 0:
			memcpy(out + at, in + at, k->sector);
			break;
		case 1:
		case 2:
			xts(k->data, k->data_len, tweak, in + at, k->sector,
			    out + at);
			break;
		case 3:
		case 4:
			cbc(k->data, k->data_len, tweak, in + at, k->sector,
			    out + at);
			break;
		default:
			elephant(k->data, k->data_len, tweak, in + at,
				 k->sector, out + at);
		}
	}
}

/* Logical block @nr of what @e maps; zeros where nothing was written. */
static void read_block(const struct item *e, uint64_t nr,
		       uint8_t out[static BLOCK])
{
	const uint8_t *v = e->v;
	uint64_t i = nr - e->k.offset;
	struct nonce n = { u64(v + 8), u32(v + 24) + (uint32_t)i };
	const struct keys *k = keys_of(u16(v + 32));
	const uint8_t *in = block_at(u64(v) + i, 1);
	uint8_t tag[16];

	memset(out, 0, BLOCK);
	if (u16(v + 34) & 2)
		return;
	if (k->integrity) {
		gmac(k->tag, n, in, BLOCK, tag);
		want(!memcmp(tag, v + 36 + 16 * i, 16), "tag of block",
		     u64(v) + i);
	}
	decrypt_block(k, n, in, out);
}

static uint64_t unwritten; /* blocks */

static void check_extent(const struct item *e)
{
	uint64_t nr = u32(e->v + 28);
	bool tagged = u16(e->v + 34) & 1, written = !(u16(e->v + 34) & 2);

	want(e->len >= 36 && nr && u16(e->v + 34) <= 2, "EXTENT", e->k.inode);
	want(tagged == (written && keys_of(u16(e->v + 32))->integrity), "tags",
	     e->k.inode);
	want(written || zero(e->v + 8, 8), "nonce", e->k.inode);
	want(written || zero(e->v + 24, 4), "nonce", e->k.inode);
	unwritten += written ? 0 : nr;
	want(e->len == 36 + (tagged ? 16 * nr : 0), "EXTENT", e->k.inode);
	want(!tagged || e->k.offset % 64 + nr <= 64, "window", e->k.inode);
	want(u32(e->v + 24) + nr <= UINT64_C(1) << 32, "counter", e->k.inode);
	want(u64(e->v + 16) && u64(e->v + 16) <= commit, "birth", e->k.inode);
	own(u64(e->v), nr, DATA);
}

/* The hash of a file's content; counts its blocks on the way. */
static void hash_file(uint64_t inode, uint64_t size, uint64_t blocks,
		      uint8_t hash[static 32])
{
	uint64_t nr = (size + BLOCK - 1) / BLOCK, mapped = 0, at = 0;
	uint8_t plain[BLOCK];
	gcry_md_hd_t md;

	library(gcry_md_open(&md, GCRY_MD_SHA256, 0));
	for (size_t i = find(inode, 20, 0); at < nr; at++) {
		size_t n = at + 1 < nr ? BLOCK : (size_t)(size - at * BLOCK);

		while (is(i, inode, 20) &&
		       at >= items[i].k.offset + u32(items[i].v + 28))
			i++;
		memset(plain, 0, BLOCK);
		if (is(i, inode, 20) && at >= items[i].k.offset)
			read_block(&items[i], at, plain);
		want(zero(plain + n, BLOCK - n), "past the end", inode);
		gcry_md_write(md, plain, n);
	}
	memcpy(hash, gcry_md_read(md, GCRY_MD_SHA256), 32);
	gcry_md_close(md);

	at = 0;
	for (size_t i = find(inode, 20, 0); is(i, inode, 20); i++) {
		want(items[i].k.offset >= at, "extents overlap", inode);
		at = items[i].k.offset + u32(items[i].v + 28);
		mapped += u32(items[i].v + 28);
		want(at <= nr || u16(items[i].v + 34) & 2,
		     "extent past the end", inode);
	}
	want(mapped == blocks, "number of blocks", inode);
}

static void print_target(uint64_t inode, uint64_t size)
{
	uint64_t chunk = 0, done = 0;

	for (size_t i = find(inode, 18, 0); is(i, inode, 18); i++, chunk++) {
		want(items[i].k.offset == chunk && items[i].len,
		     "chunk of a link", inode);
		done += items[i].len;
		want(items[i].len == 1024 || done == size, "chunk", inode);
		print_quoted(items[i].v, items[i].len);
	}
	want(done == size && size, "length of a link", inode);
}

/* The attribute whose first chunk is item @i; returns the item behind it. */
static size_t print_xattr(const struct path *path, size_t i)
{
	uint64_t inode = items[i].k.inode, offset = items[i].k.offset;
	const uint8_t *v = items[i].v;
	size_t name_len, len, head, done;
	uint8_t *value, hash[32];

	want(items[i].len > 8 && !(offset & 0xff), "XATTR", inode);
	len = u32(v);
	name_len = v[4];
	head = 8 + name_len;
	want(name_len && zero(v + 5, 3) && head <= items[i].len && len <= 65536,
	     "head of an attribute", inode);
	want(name_hash(v + 8, name_len) >> 17 == offset >> 16,
	     "hash of an attribute", inode);

	value = get_memory(len);
	done = items[i].len - head;
	want(done <= len, "attribute", inode);
	memcpy(value, v + head, done);
	for (i++; done < len; i++) {
		want(is(i, inode, 17) && items[i].k.offset == ++offset &&
			     items[i - 1].len == 1024 &&
			     items[i].len <= len - done,
		     "chunk of an attribute", inode);
		memcpy(value + done, items[i].v, items[i].len);
		done += items[i].len;
	}
	print_path(path);
	printf(" xattr ");
	print_quoted(v + 8, name_len);
	printf(" %zu ", len);
	sha256(value, len, hash);
	print_hash(hash);
	putchar('\n');
	free(value);
	return i;
}

static void print_time(const uint8_t *t)
{
	want(u32(t + 8) < 1000000000, "nanoseconds", u32(t + 8));
	printf(" %" PRId64 ".%09" PRIu32, (int64_t)u64(t), u32(t + 8));
}

static const char *type_name(unsigned int type)
{
	static const char *const names[16] = {
		[1] = "fifo", [2] = "char",  [4] = "folder",  [6] = "block",
		[8] = "file", [10] = "link", [12] = "socket",
	};

	want(type < 16 && names[type], "type of a file", type);
	return names[type];
}

static void print_inode(const struct path *path, uint64_t inode)
{
	const uint8_t *v = inode_item(inode);
	unsigned int type = u32(v) >> 12;
	uint8_t hash[32];

	want(!u64(v + 40) && !u64(v + 96) && zero(v + 120, 24), "INODE", inode);
	want(inode < u64(root + 56), "number not given out", inode);
	print_path(path);
	printf(" %s %04" PRIo32 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32
	       " %" PRIu64 " %" PRIu64 " %" PRIu64,
	       type_name(type), u32(v) & 07777, inode, u32(v + 4), u32(v + 8),
	       u32(v + 12), u64(v + 16), u64(v + 24), u64(v + 32));
	for (unsigned int i = 0; i < 4; i++)
		print_time(v + 48 + 12 * i);
	if (type == 8) {
		hash_file(inode, u64(v + 16), u64(v + 24), hash);
		putchar(' ');
		print_hash(hash);
	} else if (type == 10) {
		putchar(' ');
		print_target(inode, u64(v + 16));
	}
	putchar('\n');
	for (size_t i = find(inode, 17, 0); is(i, inode, 17);)
		i = print_xattr(path, i);
}

static void check_name(const struct item *e)
{
	uint64_t c = name_hash(e->v + 10, e->v[9]) >> 9;

	want(e->len > 10 && e->len == 10u + e->v[9] && e->v[9], "DIRENT",
	     e->k.inode);
	want(e->k.offset >> 8 == (c ? c : 1), "cookie", e->k.offset);
	want(!memchr(e->v + 10, 0, e->v[9]) && !memchr(e->v + 10, '/', e->v[9]),
	     "name", e->k.offset);
}

static void print_folder(const struct path *path, uint64_t inode,
			 unsigned int depth)
{
	uint64_t entries = 0, folders = 0;
	const uint8_t *v = inode_item(inode);

	want(depth < 100, "folders too deep", depth);
	print_inode(path, inode);
	for (size_t i = find(inode, 19, 0); is(i, inode, 19); i++) {
		const struct item *e = &items[i];
		struct path child = { path, e->v + 10, e->v[9] };
		const uint8_t *to = inode_item(u64(e->v));

		check_name(e);
		want(e->v[8] == u32(to) >> 12, "type in DIRENT", e->k.offset);
		entries++;
		if (e->v[8] != 4) {
			print_inode(&child, u64(e->v));
			continue;
		}
		folders++;
		want(u64(to + 104) == inode, "parent", u64(e->v));
		print_folder(&child, u64(e->v), depth + 1);
	}
	want(u64(v + 112) == entries, "number of names", inode);
	want(u32(v + 4) == 2 + folders, "links of a folder", inode);
}

/* Items of each type have an inode, and inodes as many names as they say. */
static void check_items(void)
{
	uint64_t inode = 0, names = 0, links = 0;

	for (size_t i = 0; i < nr_items; i++) {
		const struct item *e = &items[i];

		if (e->k.type == 21) {
			want(!e->k.inode && !e->len, "ORPHAN", e->k.offset);
			continue;
		}
		want(e->k.type >= 16 && e->k.type <= 20, "type", e->k.type);
		if (e->k.type == 16)
			inode = e->k.inode;
		want(e->k.inode == inode, "item without inode", e->k.inode);
		if (e->k.type == 20)
			check_extent(e);
		if (e->k.type == 19)
			names++;
		if (e->k.type == 16 && u32(e->v) >> 12 != 4)
			links += u32(e->v + 4);
		if (e->k.type == 16 && u32(e->v) >> 12 == 4 && u32(e->v + 4))
			links++;
	}
	/* The root has no name. */
	want(links == names + 1, "links are not as many as names", links);
	want(unwritten == u64(root + 64), "unwritten blocks", unwritten);
}

/* ---- the program */

static void open_image(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st))
		die("%s: %s", path, strerror(errno));
	image_blocks = (uint64_t)st.st_size / BLOCK;
	want(image_blocks >= 8192, "too small for a container", image_blocks);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		die("%s: %s", path, strerror(errno));
	image = p;
	close(fd);
}

/* Bytes before the first line feed, less one carriage return. */
static size_t read_password(const char *path, uint8_t out[static 4098])
{
	FILE *f = fopen(path, "r");
	const uint8_t *end;
	size_t len;

	if (!f)
		die("%s: %s", path, strerror(errno));
	len = fread(out, 1, 4098, f);
	fclose(f);
	end = memchr(out, '\n', len);
	if (end)
		len = (size_t)(end - out);
	if (end && len && out[len - 1] == '\r')
		len--;
	return len;
}

int main(int argc, char **argv)
{
	uint8_t password[4098];
	struct path top = { NULL, (const uint8_t *)".", 1 };
	size_t len;

	if (argc != 3) {
		fprintf(stderr, "usage: second-reader CONTAINER "
				"PASSWORD-FILE\n");
		return 2;
	}
	if (!gcry_check_version("1.10.0"))
		die("libgcrypt is too old");
	library(gcry_control(GCRYCTL_DISABLE_SECMEM, 0));
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);

	open_image(argv[1]);
	len = read_password(argv[2], password);
	choose_header();
	unlock(password, len);
	check_mac();
	open_rows();
	open_super();
	open_volume();
	walk_tree(root, 256, file_item);
	check_items();
	print_folder(&top, 1, 0);
	for (uint64_t r = 0; r < nr_regions; r++)
		check_region(r);

	for (size_t i = 0; i < nr_items; i++)
		free(items[i].v);
	free(items);
	free(owner);
	free(summaries);
	free(bitmaps);
	munmap((void *)(uintptr_t)image, image_blocks * BLOCK);
	return 0;
}
