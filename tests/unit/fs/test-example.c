/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The worked example of FORMAT.md, made again from what that page says and
 * nothing else: every derivation, AAD and offset is written out here a second
 * time, with plain numbers.  What comes out must be what the page shows, and
 * must open with the code of fs/.
 */
#include <criterion/criterion.h>
#include <stdarg.h>

#include "cipher/kdf.h"
#include "fs/container.h"
#include "support.h"

#define AREA 262144
#define KEY_TABLE 4096
#define SLOTS 65536

/* Session 0 is kept for test vectors: this is one. */
static struct nonce_source vectors = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint8_t area[AREA];
static uint8_t uuid[16];
static struct secret master, row;

/* The text of the example, as it is made */

static char *text;
static size_t text_len;
static FILE *out;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
}

static void dump(const char *title, const uint8_t *bytes, size_t base,
		 size_t len)
{
	say("%s\n", title);
	for (size_t i = 0; i < len; i++) {
		if (i % 16 == 0)
			say("    %06zx ", base + i);
		say(" %02x", bytes[i]);
		if (i % 16 == 15 || i == len - 1)
			say("\n");
	}
	say("\n");
}

/* Little-endian integers, one byte at a time */

static uint8_t *put(uint8_t *at, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		*at++ = (uint8_t)(value >> 8 * i);
	return at;
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

/* "Key derivation" */
static struct secret derive(const struct secret *from, const char *label,
			    uint16_t key_id, uint16_t scheme, uint32_t sector,
			    uint32_t len)
{
	uint8_t salt[32], info[64], *end;
	struct secret key;

	hash_sha256(uuid, 16, salt);
	end = put(info, strlen(label), 1);
	end = put_bytes(end, label, strlen(label));
	end = put(end, 0, 4);
	end = put(end, key_id, 2);
	end = put(end, scheme, 2);
	end = put(end, sector, 4);
	end = put(end, len, 4);
	must(kdf_hkdf(from, salt, 32, info, (size_t)(end - info), len, &key));
	say("Derived key: ");
	dump(label, key.bytes, 0, key.len);
	return key;
}

static void seal_under(const struct secret *key, const void *aad,
		       size_t aad_len, const void *in, size_t len,
		       uint8_t *sealed, uint8_t *tag, struct nonce *n)
{
	struct seal_key *k;

	must(seal_key_new(&k, key, 1));
	must(seal_message(k, &vectors, aad, aad_len, in, len, sealed, n, tag));
	seal_key_free(k);
}

/* "Key slots": slot 0, a password, t = 1, m = 32, p = 2 */
static void make_slot(void)
{
	const struct kdf_cost cost = { 1, 32, 2 };
	auto_secret struct secret password = secret_text("tusk");
	auto_secret struct secret kek = SECRET_EMPTY;
	uint8_t aad[74], *slot = area + SLOTS, *end;
	struct nonce n;

	for (unsigned int i = 0; i < 32; i++)
		slot[32 + i] = (uint8_t)(0xa0 + i);
	must(kdf_argon2id(&password, slot + 32, &cost, 32, &kek));
	dump("Argon2id", kek.bytes, 0, 32);

	end = put_bytes(aad, uuid, 16);
	end = put(end, 0, 4);
	end = put(end, 0, 4);
	end = put(end, 1, 2);
	end = put(end, 1, 2);
	end = put(end, 1, 4);
	end = put(end, 32, 4);
	end = put(end, 2, 4);
	end = put_bytes(end, slot + 32, 32);
	end = put(end, 1, 2);
	cr_assert_eq(end - aad, 74);
	seal_under(&kek, aad, 74, master.bytes, 64, slot + 64, slot + 128, &n);

	put(slot + 0, 1, 2);
	put(slot + 2, 1, 2);
	put(slot + 4, 1, 2);
	put(slot + 8, 1, 4);
	put(slot + 12, 32, 4);
	put(slot + 16, 2, 4);
	put(slot + 20, n.counter, 4);
	put(slot + 24, n.session, 8);
}

/* "Key table": row 0, key id 1, aes-256-xts (2), 4096, integrity */
static void make_row(void)
{
	auto_secret struct secret key = SECRET_EMPTY;
	uint8_t aad[32], *at = area + KEY_TABLE, *end;
	struct nonce n;

	key = derive(&master, "key-table", 0, 0, 0, 32);
	end = put_bytes(aad, uuid, 16);
	end = put(end, 0, 4);
	end = put(end, 1, 2);
	end = put(end, 2, 2);
	end = put(end, 4096, 4);
	end = put(end, 1, 4);
	cr_assert_eq(end - aad, 32);
	seal_under(&key, aad, 32, row.bytes, 64, at + 24, at + 88, &n);

	put(at + 0, 1, 2);
	put(at + 2, 1, 2);
	put(at + 4, 2, 2);
	put(at + 6, 1, 1);
	put(at + 8, 4096, 4);
	put(at + 12, n.counter, 4);
	put(at + 16, n.session, 8);
}

/* "Header": the fixed part; MAC, then checksum */
static void make_header(void)
{
	auto_secret struct secret key = SECRET_EMPTY;
	const struct hmac_piece whole = { area, AREA };
	uint8_t mac[32], sum[32];

	put_bytes(area, "\x89TUSKFS\n", 8);
	put(area + 12, AREA, 4);
	put_bytes(area + 40, uuid, 16);
	put(area + 56, 1, 8);
	put_bytes(area + 64, "example", 7);
	put(area + 128, 14, 1);

	key = derive(&master, "header-mac", 0, 0, 0, 32);
	must(hmac_sha256(&key, &whole, 1, mac));
	put_bytes(area + 224, mac, 32);
	hash_sha256(area, AREA, sum);
	put_bytes(area + 192, sum, 32);
}

/* "Superblock": commit 1, its root at block 256 and again at 260 */
static void make_super(uint8_t block[static 4096])
{
	auto_secret struct secret key = SECRET_EMPTY;
	uint8_t body[4032] = { 0 };
	struct nonce n;

	put(body + 0, 1, 8);
	put(body + 8, 8192, 8);
	put(body + 24, 1, 8);
	put(body + 56, 1, 4);
	for (unsigned int copy = 0; copy < 2; copy++) {
		uint8_t *root = body + 64 + 56 * copy;

		put(root + 0, 256, 8);
		put(root + 8, 260, 8);
		put(root + 16, 1, 8);
		put(root + 32, 7, 4);
		put(root + 36, 1, 2);
		put(root + 39, 14, 1);
		memset(root + 40, 0x77, 16);
	}

	key = derive(&row, "superblock", 1, 2, 4096, 32);
	memset(block, 0, 4096);
	put_bytes(block, "\x89TUSKSB\n", 8);
	put_bytes(block + 8, uuid, 16);
	put(block + 24, 1, 4);
	put(block + 28, 1, 2);
	seal_under(&key, block, 32, body, 4032, block + 64, block + 48, &n);
	put(block + 32, n.session, 8);
	put(block + 40, n.counter, 4);
}

static void make_inputs(void)
{
	enum secret_memory memory;

	must(cipher_init(0, &memory));
	for (unsigned int i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(0x10 * i + i);
	must(secret_new(&master, 64));
	must(secret_new(&row, 64));
	for (unsigned int i = 0; i < 64; i++) {
		master.bytes[i] = (uint8_t)i;
		row.bytes[i] = (uint8_t)(0x80 + i);
	}
}

/* The other keys: only shown, since nothing here is sealed with them. */
static void show_other_keys(void)
{
	static const struct {
		const char *label;
		uint32_t len;
	} keys[] = {
		{ "data", 64 }, { "tag", 32 },	   { "node", 32 },
		{ "log", 32 },	{ "salvage", 32 },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct secret key =
			derive(&row, keys[i].label, 1, 2, 4096, keys[i].len);

		secret_wipe(&key);
	}
}

static void make_example(uint8_t super[static 4096])
{
	out = open_memstream(&text, &text_len);
	make_slot();
	make_row();
	make_header();
	make_super(super);
	show_other_keys();
	dump("Fixed part of the header", area, 0, 256);
	dump("Key table, row 0", area + KEY_TABLE, KEY_TABLE, 104);
	dump("Key slot 0", area + SLOTS, SLOTS, 144);
	dump("Superblock 1 in ring A, the first 96 bytes", super, 0x81000, 96);
	fclose(out);
}

static char *read_format(void)
{
	FILE *f = fopen(FORMAT_MD, "r");
	char *page = calloc(1, 1 << 20);

	cr_assert(f && page);
	cr_assert_gt(fread(page, 1, (1 << 20) - 1, f), 0);
	fclose(f);
	return page;
}

Test(example, is_what_the_page_shows)
{
	uint8_t super[4096];
	char *page = read_format();

	make_inputs();
	make_example(super);
	if (!strstr(page, text))
		fprintf(stderr, "FORMAT.md should have:\n\n%s", text);
	cr_assert(strstr(page, text));
	free(page);
	free(text);
}

Test(example, opens_as_any_container)
{
	auto_secret struct secret password = SECRET_EMPTY;
	struct emudev *d = emudev_new(DISK_BYTES, DISK_BYTES);
	struct container *c = emudev_container(d);
	unsigned int nr, unreadable;
	struct header_keys keys;
	uint8_t super[4096];
	struct super sb;
	struct header h;

	make_inputs();
	make_example(super);
	must(container_write(c, 4096, 64, area));
	must(container_write(c, 4224 + 1, 1, super));

	password = secret_text("tusk");
	cr_assert_eq(header_read(&h, c), 0);
	cr_assert_str_eq(h.label, "example");
	cr_assert_eq(header_unlock(&h, &password, &keys, 1), 0);
	cr_assert_arr_eq(keys.master.bytes, master.bytes, 64);
	must(super_read_all(&sb, 1, &nr, &unreadable, h.uuid, &keys, c));
	cr_assert_eq(nr, 1);
	cr_assert_eq(sb.commit, 1);
	cr_assert_eq(sb.root.second, 260);
	cr_assert(sb.clean);

	header_keys_destroy(&keys);
	header_destroy(&h);
	emudev_free(d);
	free(text);
}
