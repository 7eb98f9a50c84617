/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The second worked example of FORMAT.md: a file system of one folder and one
 * file, in the container of the first example, made by the code of fs/ and
 * cipher/ from fixed inputs.
 *
 *	format-example FORMAT.md		compare with what the page shows
 *	format-example --update FORMAT.md	write it into the page
 *	format-example --write CONTAINER	put the blocks (without the header)
 *						into a file of 32 MiB
 *
 * What is shown was also opened again here, and run.py has the second reader
 * read the container.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cipher/kdf.h"
#include "fs/dir.h"
#include "fs/header.h"
#include "fs/item.h"
#include "fs/node.h"
#include "fs/super.h"

#define BEGIN "<!-- begin: made by tests/compat/format-example.c -->\n"
#define END "<!-- end -->\n"

#define COMMIT 2
#define FILE_LEAF 256
#define VOLUME_LEAF 260
#define OLD_NODES 264
#define DATA_BLOCK 512
#define NR_BLOCKS 8192
#define HELLO 1024 /* inode */
#define SECONDS 1700000000

static const char content[] = "Hello, world.\n";

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "format-example: %s: %s\n", what,
			strerror(-err));
		exit(1);
	}
}

/* ---- inputs */

static uint8_t uuid[UUID_BYTES], seed[32];
static struct key_set keys;
static struct header_keys all_keys;

/* Session 0 is kept for vectors; the first example took 0 to 2. */
static int session_of_vectors(uint64_t *session)
{
	*session = 0;
	return 0;
}

static struct nonce_source nonces = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.draw_session = session_of_vectors,
	.next = 3,
};

static struct secret derive(const struct secret *row, const char *label,
			    uint8_t len)
{
	/* Key id 1, scheme 2, sectors of 4096. */
	uint8_t info[64], salt[32], n = (uint8_t)strlen(label);
	const uint8_t tail[16] = { 0, 0,  0, 0, 1,   0, 2, 0,
				   0, 16, 0, 0, len, 0, 0, 0 };
	struct secret key;

	info[0] = n;
	memcpy(info + 1, label, n);
	memcpy(info + 1 + n, tail, sizeof(tail));
	hash_sha256(uuid, UUID_BYTES, salt);
	must(kdf_hkdf(row, salt, sizeof(salt), info, 1 + n + sizeof(tail), len,
		      &key),
	     label);
	return key;
}

static void make_keys(void)
{
	auto_secret struct secret row = SECRET_EMPTY;
	struct secret k[5];

	must(secret_new(&row, 64), "row");
	for (unsigned int i = 0; i < 64; i++)
		row.bytes[i] = (uint8_t)(0x80 + i);
	for (unsigned int i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(0x11 * i);
	for (unsigned int i = 0; i < 32; i++)
		seed[i] = (uint8_t)(0x40 + i);

	k[0] = derive(&row, "data", 64);
	k[1] = derive(&row, "tag", 32);
	k[2] = derive(&row, "node", 32);
	k[3] = derive(&row, "superblock", 32);
	k[4] = derive(&row, "salvage", 32);
	keys = (struct key_set){
		.key_id = 1,
		.scheme = scheme_by_id(SCHEME_AES_256_XTS),
		.sector_bytes = 4096,
		.integrity = true,
	};
	must(scheme_key_new(&keys.data, keys.scheme, 4096, &k[0], 1), "data");
	must(tag_key_new(&keys.tag, &k[1], 1), "tag");
	must(seal_key_new(&keys.node, &k[2], 1), "node");
	must(seal_key_new(&keys.super, &k[3], 1), "superblock");
	must(hint_key_new(&keys.salvage, &k[4], 1), "salvage");
	for (unsigned int i = 0; i < 5; i++)
		secret_wipe(&k[i]);
	all_keys.set[0] = keys;
	all_keys.nr_sets = 1;
}

static void free_keys(void)
{
	scheme_key_free(keys.data);
	tag_key_free(keys.tag);
	seal_key_free(keys.node);
	seal_key_free(keys.super);
	hint_key_free(keys.salvage);
}

/* ---- the text */

static char *text;
static FILE *out;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
}

/* Lines that repeat the one before are one star. */
static void dump(const char *title, const uint8_t *bytes, size_t base,
		 size_t len)
{
	bool star = false;

	say("\n%s\n", title);
	for (size_t i = 0; i < len; i += 16) {
		size_t n = len - i < 16 ? len - i : 16;

		if (i && i + 16 < len &&
		    !memcmp(bytes + i, bytes + i - 16, n)) {
			if (!star)
				say("    *\n");
			star = true;
			continue;
		}
		star = false;
		say("    %06zx ", base + i);
		for (size_t j = 0; j < n; j++)
			say(" %02x", bytes[i + j]);
		say("\n");
	}
}

/* ---- what is made, from the leaves up */

static uint8_t data[BLOCK_BYTES], data_tag[TAG_BYTES];
static struct nonce data_nonce;
static struct node *files, *volume;
static uint8_t files_image[16384], volume_image[16384];
static uint8_t super_image[BLOCK_BYTES];
static uint64_t cookie;

static void make_data(void)
{
	uint8_t plain[BLOCK_BYTES] = { 0 }, tweak[TWEAK_BYTES];

	memcpy(plain, content, sizeof(content) - 1);
	must(nonce_draw(&nonces, 1, &data_nonce), "nonce");
	scheme_tweak(keys.data, data_nonce.session,
		     (uint64_t)data_nonce.counter * BLOCK_BYTES, tweak);
	must(scheme_encrypt(keys.data, tweak, 1, plain, data), "encrypt");
	must(tag_compute(keys.tag, data_nonce, data, BLOCK_BYTES, data_tag),
	     "tag");
	dump("Tweak of the data block", tweak, 0, sizeof(tweak));
	dump("Data block 512, the first 32 of 4096 bytes", data, 0, 32);
	dump("Tag of the data block", data_tag, 0, sizeof(data_tag));
}

static void make_cookie(void)
{
	struct prf_key *prf;
	uint64_t v;

	must(prf_key_new(&prf, seed), "seed");
	v = prf_hash(prf, "hello", 5);
	prf_key_free(prf);
	assert(v >> 9);
	cookie = v >> 9 << 8;
	say("\nName `hello`: v = %016llx, c = %014llx, cookie = %016llx\n",
	    (unsigned long long)v, (unsigned long long)(v >> 9),
	    (unsigned long long)cookie);
}

static struct node *new_leaf(uint64_t tree, uint64_t block)
{
	struct node *n = node_new(NODE_LOG2_DEFAULT);

	if (!n)
		must(-ENOMEM, "node");
	node_reset(n, tree, 0);
	n->ptr.block = block;
	n->ptr.birth = COMMIT;
	return n;
}

/* Items come in order. */
static void add(struct node *n, struct key key, const void *value, size_t len)
{
	assert(!item_validate(n->tree, 0, &key, value, len));
	node_insert(n, n->nr, &key, value, len);
}

/* Seal @n, show it and open it again. */
static void seal(struct node *n, const char *name, uint8_t *image)
{
	const struct key low = KEY_MIN, high = KEY_MAX;
	struct node *again = new_leaf(n->tree, n->ptr.block);
	uint8_t *scratch = malloc(n->bytes);
	char title[128];

	if (!scratch)
		must(-ENOMEM, "scratch");
	must(node_seal(n, uuid, &keys, &nonces, scratch, image), "seal");
	snprintf(title, sizeof(title), "%s: payload, opened", name);
	dump(title, scratch, 0, n->bytes);
	snprintf(title, sizeof(title),
		 "%s: hint, and the first 64 bytes of the "
		 "sealed payload",
		 name);
	dump(title, image, 0, 128);
	snprintf(title, sizeof(title), "%s: tag", name);
	dump(title, n->ptr.tag, 0, sizeof(n->ptr.tag));

	must(node_open(again, &n->ptr, n->tree, &low, &high, uuid, &keys,
		       image),
	     "open");
	assert(!memcmp(again->buf, scratch, n->bytes));
	node_free(again);
	free(scratch);
}

static void add_inode(struct node *n, inum_t inum, uint32_t mode,
		      uint32_t nlink, uint64_t size)
{
	const struct timespec now = { SECONDS, 0 };
	const struct inode_item i = {
		.mode = mode,
		.nlink = nlink,
		.uid = 1000,
		.gid = 100,
		.size = size,
		.blocks = size ? 1 : 0,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.btime = now,
		.parent = VOLUME_ROOT,
		.entries = S_ISDIR(mode) ? 1 : 0,
	};
	struct disk_inode d;

	inode_item_encode(&i, &d);
	add(n, key_of(inum, ITEM_INODE, 0), &d, sizeof(d));
}

static void make_files(void)
{
	const struct extent e = {
		.block = DATA_BLOCK,
		.birth = COMMIT,
		.nonce = data_nonce,
		.nr = 1,
		.key_id = 1,
		.flags = EXTENT_TAGGED,
	};
	const struct disk_dirent entry = { le64_of(HELLO), DT_REG, 5 };
	uint8_t named[sizeof(entry) + 5];
	uint8_t item[EXTENT_ITEM_BYTES_MAX];

	memcpy(named, &entry, sizeof(entry));
	memcpy(named + sizeof(entry), "hello", 5);
	files = new_leaf(TREE_FILES, FILE_LEAF);
	add_inode(files, VOLUME_ROOT, S_IFDIR | 0700, 2, 0);
	add(files, key_of(VOLUME_ROOT, ITEM_DIRENT, cookie), named,
	    sizeof(named));
	add_inode(files, HELLO, S_IFREG | 0644, 1, sizeof(content) - 1);
	add(files, key_of(HELLO, ITEM_EXTENT, 0), item,
	    extent_encode(&e, data_tag, item));
	seal(files, "File tree, leaf at block 256", files_image);
}

static void set_bits(struct disk_bitmap *map, unsigned int first,
		     unsigned int nr)
{
	for (; nr--; first++)
		map->bits[first / 8] |= (uint8_t)(1 << first % 8);
}

static void make_volume(void)
{
	const struct disk_summary summary = {
		.backed = le32_of(UINT32_MAX),
		.nodes = le32_of(1u << FILE_LEAF / GRANULE_BLOCKS),
		.free = le32_of(NR_BLOCKS - 2 * FIXED_BLOCKS - GRANULE_BLOCKS -
				1),
		.longest = le32_of(NR_BLOCKS - HEADER_B_BLOCK - FIXED_BLOCKS),
	};
	/* The two nodes that commit 1 reached and this one does not. */
	const struct disk_freed freed = { le64_of(OLD_NODES), le32_of(8),
					  le64_of(1) };
	struct disk_root root = { .next_inum = le64_of(HELLO + 1) };
	struct disk_bitmap bitmap = { 0 };
	struct disk_info info = { 0 };

	set_bits(&bitmap, HEADER_A_BLOCK, FIXED_BLOCKS);
	set_bits(&bitmap, FILE_LEAF, 4);
	set_bits(&bitmap, VOLUME_LEAF, 4);
	set_bits(&bitmap, OLD_NODES, 8);
	set_bits(&bitmap, DATA_BLOCK, 1);
	set_bits(&bitmap, HEADER_B_BLOCK, FIXED_BLOCKS);
	memcpy(info.dir_seed, seed, sizeof(seed));
	ptr_encode(&files->ptr, &root.ptr);

	volume = new_leaf(TREE_VOLUME, VOLUME_LEAF);
	add(volume, key_of(0, ITEM_INFO, 0), &info, sizeof(info));
	add(volume, key_of(0, ITEM_SUMMARY, 0), &summary, sizeof(summary));
	add(volume, key_of(0, ITEM_BITMAP, 0), &bitmap, sizeof(bitmap));
	add(volume, key_of(TREE_FILES, ITEM_FREED, COMMIT << FREED_SEQ_BITS),
	    &freed, sizeof(freed));
	add(volume, key_of(TREE_FILES, ITEM_ROOT, 0), &root, sizeof(root));
	seal(volume, "Volume tree, leaf at block 260", volume_image);
}

static void make_super(void)
{
	struct super sb = {
		.commit = COMMIT,
		.nr_blocks = NR_BLOCKS,
		.header_sequence = 1,
		.clean = true,
		.root = volume->ptr,
	};
	struct super again;

	must(super_seal(&sb, uuid, &all_keys, &nonces, super_image), "super");
	must(super_open(&again, uuid, &all_keys, COMMIT, super_image), "super");
	dump("Superblock 2 in ring A, the first 96 bytes", super_image, 0x82000,
	     96);
}

static size_t make_text(void)
{
	size_t len;

	out = open_memstream(&text, &len);
	if (!out)
		must(-errno, "text");
	say("```");
	make_data();
	make_cookie();
	make_files();
	make_volume();
	make_super();
	say("```\n");
	fclose(out);
	return len;
}

/* ---- the page */

static char *read_page(const char *path)
{
	FILE *f = fopen(path, "r");
	char *page = calloc(1, 1 << 20);

	if (!f || !page)
		must(-errno, path);
	if (fread(page, 1, (1 << 20) - 1, f) == 0)
		must(-EIO, path);
	fclose(f);
	return page;
}

/* Where in @page the example is; NULL if the marks are missing. */
static char *find_example(char *page, size_t *len)
{
	char *begin = strstr(page, BEGIN), *end;

	if (!begin)
		return NULL;
	begin += strlen(BEGIN);
	end = strstr(begin, END);
	*len = end ? (size_t)(end - begin) : 0;
	return end ? begin : NULL;
}

static int compare(const char *path)
{
	char *page = read_page(path), *at;
	size_t len, want = strlen(text), same = 0;
	int line = 1;

	at = find_example(page, &len);
	while (at && same < len && same < want && at[same] == text[same])
		line += text[same++] == '\n';
	if (!at)
		fprintf(stderr, "%s has no marks for the example\n", path);
	else if (same < len || same < want)
		fprintf(stderr,
			"%s differs from what the code makes in line "
			"%d of the example; if that is meant, --update\n",
			path, line);
	line = !at || same < len || same < want;
	free(page);
	printf("%d passed, %d failed\n", !line, line);
	return line;
}

static int update(const char *path)
{
	char *page = read_page(path), *at;
	size_t len;
	FILE *f;

	at = find_example(page, &len);
	if (!at)
		must(-ENOENT, "marks in the page");
	f = fopen(path, "w");
	if (!f)
		must(-errno, path);
	fwrite(page, 1, (size_t)(at - page), f);
	fputs(text, f);
	fputs(at + len, f);
	must(fclose(f) ? -errno : 0, path);
	free(page);
	return 0;
}

static void write_at(FILE *f, uint64_t block, const void *bytes, size_t len)
{
	if (fseek(f, (long)(block * BLOCK_BYTES), SEEK_SET) ||
	    fwrite(bytes, 1, len, f) != len)
		must(-errno, "write");
}

static int write_blocks(const char *path)
{
	static const uint8_t zeros[BLOCK_BYTES];
	FILE *f = fopen(path, "w");

	if (!f)
		must(-errno, path);
	write_at(f, DATA_BLOCK, data, sizeof(data));
	write_at(f, FILE_LEAF, files_image, sizeof(files_image));
	write_at(f, VOLUME_LEAF, volume_image, sizeof(volume_image));
	write_at(f, RING_A_BLOCK + COMMIT, super_image, sizeof(super_image));
	write_at(f, RING_B_BLOCK + COMMIT, super_image, sizeof(super_image));
	write_at(f, NR_BLOCKS - 1, zeros, sizeof(zeros));
	must(fclose(f) ? -errno : 0, path);
	return 0;
}

int main(int argc, char **argv)
{
	enum secret_memory memory;
	int status = 2;

	must(cipher_init(0, &memory), "libgcrypt");
	make_keys();
	make_text();
	if (argc == 2)
		status = compare(argv[1]);
	else if (argc == 3 && !strcmp(argv[1], "--update"))
		status = update(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "--write"))
		status = write_blocks(argv[2]);
	else
		fprintf(stderr, "usage: format-example [--update|--write] "
				"FILE\n");
	node_free(files);
	node_free(volume);
	free_keys();
	free(text);
	return status;
}
