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
#include "tests/compat/second.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

	for (size_t i = 0; i < nr_items; i++)
		free(items[i].v);
	free(items);
	close_volume();
	munmap((void *)(uintptr_t)image, image_blocks * BLOCK);
	return 0;
}
