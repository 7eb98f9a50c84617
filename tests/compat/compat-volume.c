/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Containers for the tests of this folder, through the library's front door:
 *
 *	compat-volume write CONTAINER PASSWORD-FILE	fill a new one
 *	compat-volume list CONTAINER PASSWORD-FILE	list, as second-reader does
 *	compat-volume touch CONTAINER PASSWORD-FILE	one more commit
 *	compat-volume check CONTAINER PASSWORD-FILE	all that check.h proves
 *	compat-volume golden CONTAINER PASSWORD-FILE SCHEME SECTOR INTEGRITY END
 *
 * `golden` makes a small container whose random filling is zeros instead, so
 * that it compresses well; END is "clean", or "crash": an orphan is left, and
 * the volume was not closed.
 */
#include <errno.h>
#include <gcrypt.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fs/check.h"
#include "fs/container.h"
#include "fs/header.h"
#include "fs/volume.h"

#define BLOCK 4096u
#define MIB (1024u * 1024u)

struct place {
	struct container *c;
	struct header h;
	struct header_keys keys;
	struct nonce_source nonces;
	struct volume *v;
};

static void die(int err, const char *what)
{
	fprintf(stderr, "compat-volume: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void must(int err, const char *what)
{
	if (err)
		die(err, what);
}

static void say(void *arg, const char *line)
{
	fprintf(stderr, "compat-volume: %s\n", line);
}

/* Each look at the clock is a second and a nanosecond later. */
static void clock_of_tests(struct timespec *ts)
{
	static _Atomic long looks;
	long n = ++looks;

	*ts = (struct timespec){ 1700000000 + n, n };
}

static struct secret read_password(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[4098];
	struct secret s;

	if (!f || !fgets(line, sizeof(line), f))
		die(-errno, path);
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	must(secret_copy(&s, line, strlen(line)), "password");
	return s;
}

static void open_place(struct place *p, const char *path, const char *pw,
		       bool write)
{
	auto_secret struct secret secret = read_password(pw);

	*p = (struct place){ 0 };
	must(container_open(&p->c, path,
			    write ? CONTAINER_READ_WRITE : CONTAINER_READ_ONLY,
			    5, NULL),
	     path);
	must(header_read(&p->h, p->c), "header");
	must(header_unlock(&p->h, &secret, &p->keys, 2), "unlock");
}

static void open_volume(struct place *p, bool write)
{
	const struct volume_options o = {
		.cache_bytes = MIB,
		.read_only = !write,
		.atime = VOLUME_NOATIME,
		.report = say,
		.now = clock_of_tests,
	};

	must(volume_open(&p->v, p->c, &p->h, &p->keys, &o), "open");
}

static void close_place(struct place *p)
{
	if (p->v)
		must(volume_close(p->v), "close");
	header_keys_destroy(&p->keys);
	header_destroy(&p->h);
	container_close(p->c);
}

/* ---- write */

static const struct volume_cred cred = { 1000, 100 };

/* Bytes that depend on file and place, so that a wrong block is seen. */
static void fill(uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		buf[i] = (uint8_t)(seed >> 56);
	}
}

static inum_t make(struct volume *v, inum_t dir, const char *name,
		   uint32_t mode)
{
	uint64_t rdev = S_ISCHR(mode) || S_ISBLK(mode) ? makedev(7, 300) : 0;
	struct attr a;

	must(volume_create(v, dir, name, mode, rdev, &cred, &a), name);
	return a.ino;
}

static void put(struct volume *v, inum_t ino, uint64_t offset, size_t len)
{
	uint8_t *buf = malloc(len);

	if (!buf)
		die(-ENOMEM, "put");
	fill(buf, len, ino * 1000003 + offset);
	must(volume_write(v, ino, offset, len, buf, 0), "write");
	free(buf);
}

static inum_t file(struct volume *v, inum_t dir, const char *name, size_t len)
{
	inum_t ino = make(v, dir, name, S_IFREG | 0640);

	if (len)
		put(v, ino, 0, len);
	return ino;
}

static void set_size(struct volume *v, inum_t ino, uint64_t size)
{
	struct attr a = { .size = size };

	must(volume_setattr(v, ino, VOLUME_SET_SIZE, &a, &a), "size");
}

static void set_xattr(struct volume *v, inum_t ino, const char *name,
		      size_t len)
{
	uint8_t *buf = malloc(len + 1);

	if (!buf)
		die(-ENOMEM, name);
	fill(buf, len, ino + len);
	must(volume_setxattr(v, ino, name, buf, len, 0), name);
	free(buf);
}

static void link_to(struct volume *v, inum_t dir, const char *name, size_t len)
{
	char target[SYMLINK_BYTES_MAX + 1] = { 0 };
	struct attr a;

	for (size_t i = 0; i < len; i++)
		target[i] = "abcdefghi/"[i % 10];
	must(volume_symlink(v, dir, name, target, &cred, &a), name);
}

/* Sizes around every border that the format has. */
static void write_sizes(struct volume *v, inum_t dir)
{
	static const size_t sizes[] = {
		0,
		1,
		511,
		512,
		BLOCK - 1,
		BLOCK,
		BLOCK + 1,
		63 * BLOCK,
		64 * BLOCK,
		64 * BLOCK + 1,
		65 * BLOCK + 17,
		200 * BLOCK,
	};
	char name[32];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		snprintf(name, sizeof(name), "size-%zu", sizes[i]);
		file(v, dir, name, sizes[i]);
	}
}

static void write_changed(struct volume *v, inum_t dir)
{
	inum_t ino = file(v, dir, "overwritten", 150 * BLOCK);

	must(volume_sync(v), "sync");
	put(v, ino, 10 * BLOCK, 3 * BLOCK);
	put(v, ino, 63 * BLOCK - 5, 100);
	put(v, ino, 100 * BLOCK + 1, BLOCK);

	ino = file(v, dir, "cut", 130 * BLOCK);
	set_size(v, ino, 70 * BLOCK + 1234);
	ino = file(v, dir, "cut-and-grown", 5 * BLOCK);
	set_size(v, ino, 2 * BLOCK + 1);
	set_size(v, ino, 9 * BLOCK + 1);
	ino = file(v, dir, "appended", 0);
	for (unsigned int i = 0; i < 80; i++)
		put(v, ino, i * 3000u, 3000);

	ino = make(v, dir, "sparse", S_IFREG | 0600);
	put(v, ino, 3 * BLOCK, 10);
	put(v, ino, 1000 * BLOCK + 7, 70 * BLOCK);
	set_size(v, ino, 5000 * BLOCK + 99);
	ino = file(v, dir, "punched", 100 * BLOCK);
	must(volume_fallocate(v, ino,
			      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      20 * BLOCK + 5, 50 * BLOCK),
	     "punch");
}

/* Blocks without content: at the end, beyond it, and with some written. */
static void write_reserved(struct volume *v, inum_t dir)
{
	inum_t ino = file(v, dir, "reserved", 3 * BLOCK + 5);

	must(volume_fallocate(v, ino, 0, 0, 140 * BLOCK), "reserve");
	put(v, ino, 70 * BLOCK + 1, 2 * BLOCK);
	put(v, ino, 10 * BLOCK, BLOCK);
	ino = file(v, dir, "reserved beyond", BLOCK + 1);
	must(volume_fallocate(v, ino, FALLOC_FL_KEEP_SIZE, 0, 100 * BLOCK),
	     "reserve");
	ino = file(v, dir, "zeroed", 20 * BLOCK);
	must(volume_fallocate(v, ino, FALLOC_FL_ZERO_RANGE, 5 * BLOCK - 3,
			      10 * BLOCK),
	     "zero");
}

static void write_names(struct volume *v, inum_t dir)
{
	char name[NAME_BYTES_MAX + 1];
	inum_t sub = make(v, dir, "many", S_IFDIR | 02775);
	inum_t ino = file(v, dir, "linked", 5);
	struct attr a;

	memset(name, 'n', NAME_BYTES_MAX);
	name[NAME_BYTES_MAX] = '\0';
	file(v, dir, name, 3);
	file(v, dir, "\x01\xff line\nfeed \\", 3);
	must(volume_link(v, ino, sub, "other name", &a), "link");
	for (unsigned int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "entry number %u", i);
		file(v, sub, name, i % 50 ? 0 : 100);
	}
	for (unsigned int i = 0; i < 600; i += 7) {
		snprintf(name, sizeof(name), "entry number %u", i);
		must(volume_unlink(v, sub, name, &ino), "unlink");
		volume_reap(v, ino);
	}
	must(volume_rename(v, sub, "entry number 1", dir, "moved", 0, &ino),
	     "rename");
	for (unsigned int i = 0; i < 12; i++)
		sub = make(v, sub, "deeper", S_IFDIR | 0700);
	file(v, sub, "at the bottom", 10);
}

static void write_others(struct volume *v, inum_t dir)
{
	inum_t ino = make(v, dir, "attributes", S_IFREG | 04755);

	make(v, dir, "fifo", S_IFIFO | 0600);
	make(v, dir, "socket", S_IFSOCK | 0777);
	make(v, dir, "char", S_IFCHR | 0666);
	make(v, dir, "block", S_IFBLK | 0660);
	link_to(v, dir, "short link", 5);
	link_to(v, dir, "full chunk", 1024);
	link_to(v, dir, "long link", SYMLINK_BYTES_MAX);

	set_xattr(v, ino, "user.empty", 0);
	set_xattr(v, ino, "user.small", 20);
	set_xattr(v, ino, "user.chunk", 1024 - 8 - 10);
	set_xattr(v, ino, "user.chunk and one", 1024 - 8 - 18 + 1);
	set_xattr(v, ino, "user.large", XATTR_BYTES_MAX);
	set_xattr(v, dir, "trusted.of a folder", 300);
	set_xattr(v, ino, "user.gone", 3000);
	must(volume_removexattr(v, ino, "user.gone"), "removexattr");
}

static int do_write(char **args)
{
	struct place p;
	struct attr a = { .mtime = { -86400, 5 } };
	inum_t dir;

	open_place(&p, args[0], args[1], true);
	open_volume(&p, true);
	dir = make(p.v, VOLUME_ROOT, "sizes", S_IFDIR | 0755);
	write_sizes(p.v, dir);
	must(volume_sync(p.v), "sync");
	write_changed(p.v, make(p.v, VOLUME_ROOT, "changed", S_IFDIR | 0711));
	write_reserved(p.v, make(p.v, VOLUME_ROOT, "reserved", S_IFDIR | 0700));
	write_names(p.v, make(p.v, VOLUME_ROOT, "names", S_IFDIR | 0700));
	must(volume_sync(p.v), "sync");
	write_others(p.v, make(p.v, VOLUME_ROOT, "others", S_IFDIR | 01777));
	must(volume_setattr(p.v, dir, VOLUME_SET_MTIME, &a, &a), "times");
	make(p.v, dir, "empty folder", S_IFDIR | 0500);
	close_place(&p);
	return 0;
}

static int do_touch(char **args)
{
	struct place p;

	open_place(&p, args[0], args[1], true);
	open_volume(&p, true);
	file(p.v, VOLUME_ROOT, "touched", 3 * BLOCK);
	close_place(&p);
	return 0;
}

/* ---- golden */

static int do_golden(char **args)
{
	const struct volume_format_params fp = { .uid = 1000, .gid = 100 };
	struct header_params hp = {
		.label = "golden",
		.scheme = scheme_by_name(args[2]),
		.sector_bytes = (uint32_t)strtoul(args[3], NULL, 10),
		.integrity = !strcmp(args[4], "on"),
		.cost = { 1, 64, 1 },
		.kind = KEYSLOT_PASSWORD,
	};
	auto_secret struct secret secret = read_password(args[1]);
	struct place p = { 0 };
	inum_t dir, ino;

	if (!hp.scheme)
		die(-EINVAL, args[2]);
	must(nonce_source_init(&p.nonces), "nonces");
	must(container_create(&p.c, args[0], CONTAINER_NEW_FILE, 32 * MIB),
	     args[0]);
	must(header_new(&p.h, &p.keys, &hp, &secret, &p.nonces, 1), "header");
	memset(p.h.raw, 0, HEADER_BLOCKS * BLOCK);
	must(volume_format(p.c, &p.h, &p.keys, &p.nonces, &fp), "format");
	nonce_source_destroy(&p.nonces);

	open_volume(&p, true);
	dir = make(p.v, VOLUME_ROOT, "folder", S_IFDIR | 0755);
	file(p.v, dir, "file", 2 * BLOCK + 100);
	ino = make(p.v, dir, "sparse", S_IFREG | 0600);
	put(p.v, ino, 100 * BLOCK, 10);
	must(volume_fallocate(p.v, ino, FALLOC_FL_KEEP_SIZE, 99 * BLOCK,
			      5 * BLOCK),
	     "reserve");
	link_to(p.v, VOLUME_ROOT, "link", 2000);
	set_xattr(p.v, ino, "user.small", 20);
	set_xattr(p.v, ino, "user.two chunks", 1500);
	make(p.v, dir, "fifo", S_IFIFO | 0600);
	if (!strcmp(args[5], "crash")) {
		file(p.v, dir, "deleted", BLOCK);
		must(volume_unlink(p.v, dir, "deleted", &ino), "unlink");
		must(volume_sync(p.v), "sync");
		volume_abandon(p.v);
		p.v = NULL;
	}
	close_place(&p);
	return 0;
}

/* ---- list */

static void print_quoted(const char *s)
{
	for (; *s; s++)
		if (*s > ' ' && *s < 0x7f && *s != '\\')
			putchar(*s);
		else
			printf("\\x%02x", (unsigned char)*s);
}

static void print_hash(const uint8_t *hash)
{
	for (unsigned int i = 0; i < 32; i++)
		printf("%02x", hash[i]);
}

struct path {
	const struct path *up;
	const char *name;
};

static void print_path(const struct path *p)
{
	if (p->up) {
		print_path(p->up);
		putchar('/');
	}
	print_quoted(p->name);
}

static void print_content(struct volume *v, const struct attr *a)
{
	uint8_t *buf = malloc(MIB), hash[32];
	gcry_md_hd_t md;
	uint64_t at = 0;
	size_t n = 1;

	if (!buf || gcry_md_open(&md, GCRY_MD_SHA256, 0))
		die(-ENOMEM, "content");
	for (; at < a->size; at += n) {
		must(volume_read(v, a->ino, at, MIB, buf, &n), "read");
		if (!n)
			die(-EUCLEAN, "a file ends too early");
		gcry_md_write(md, buf, n);
	}
	memcpy(hash, gcry_md_read(md, GCRY_MD_SHA256), 32);
	gcry_md_close(md);
	free(buf);
	putchar(' ');
	print_hash(hash);
}

static void print_xattrs(struct volume *v, const struct path *path, inum_t ino)
{
	uint8_t *value = malloc(XATTR_BYTES_MAX), hash[32];
	char *names = malloc(XATTR_BYTES_MAX);
	size_t len, size;

	if (!value || !names)
		die(-ENOMEM, "attributes");
	must(volume_listxattr(v, ino, names, XATTR_BYTES_MAX, &len), "list");
	for (const char *n = names; n < names + len; n += strlen(n) + 1) {
		must(volume_getxattr(v, ino, n, value, XATTR_BYTES_MAX, &size),
		     n);
		print_path(path);
		printf(" xattr ");
		print_quoted(n);
		printf(" %zu ", size);
		gcry_md_hash_buffer(GCRY_MD_SHA256, hash, value, size);
		print_hash(hash);
		putchar('\n');
	}
	free(names);
	free(value);
}

static void print_time(const struct timespec *t)
{
	printf(" %lld.%09ld", (long long)t->tv_sec, t->tv_nsec);
}

static void print_inode(struct volume *v, const struct path *path,
			const struct attr *a)
{
	static const char *const types[16] = {
		[1] = "fifo", [2] = "char",  [4] = "folder",  [6] = "block",
		[8] = "file", [10] = "link", [12] = "socket",
	};
	char target[SYMLINK_BYTES_MAX + 1];

	print_path(path);
	printf(" %s %04" PRIo32 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu32
	       " %" PRIu64 " %" PRIu64 " %" PRIu64,
	       types[a->mode >> 12 & 15], a->mode & 07777, a->ino, a->nlink,
	       a->uid, a->gid, a->size, a->blocks / 8, a->rdev);
	print_time(&a->atime);
	print_time(&a->mtime);
	print_time(&a->ctime);
	print_time(&a->btime);
	if (S_ISREG(a->mode)) {
		print_content(v, a);
	} else if (S_ISLNK(a->mode)) {
		must(volume_readlink(v, a->ino, target), "readlink");
		putchar(' ');
		print_quoted(target);
	}
	putchar('\n');
	print_xattrs(v, path, a->ino);
}

struct listing {
	struct volume *v;
	const struct path *path;
};

static void print_tree(struct volume *v, const struct path *path,
		       const struct attr *a);

static bool print_entry(void *arg, const struct volume_dirent *e)
{
	struct listing *l = arg;
	struct path path = { l->path, e->name };

	if (e->cookie >= 256)
		print_tree(l->v, &path, e->attr);
	return true;
}

static void print_tree(struct volume *v, const struct path *path,
		       const struct attr *a)
{
	struct listing l = { v, path };

	print_inode(v, path, a);
	if (S_ISDIR(a->mode))
		must(volume_readdir(v, a->ino, 0, VOLUME_READDIR_ATTR,
				    print_entry, &l),
		     "readdir");
}

static int do_list(char **args)
{
	const struct path top = { NULL, "." };
	struct place p;
	struct attr a;

	open_place(&p, args[0], args[1], false);
	open_volume(&p, false);
	must(volume_getattr(p.v, VOLUME_ROOT, &a), "root");
	print_tree(p.v, &top, &a);
	close_place(&p);
	return 0;
}

/* ---- check */

static int do_check(char **args)
{
	const struct check_options o = { .data = true, .report = say };
	struct check_result r;
	struct place p;

	open_place(&p, args[0], args[1], false);
	must(check_container(p.c, &p.h, &p.keys, &o, &r), "check");
	close_place(&p);
	return r.errors != 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int args;
		int (*run)(char **args);
	} commands[] = {
		{ "write", 2, do_write },   { "list", 2, do_list },
		{ "touch", 2, do_touch },   { "check", 2, do_check },
		{ "golden", 6, do_golden },
	};
	enum secret_memory memory;

	must(cipher_init(0, &memory), "libgcrypt");
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (argc > 1 && !strcmp(argv[1], commands[i].name) &&
		    argc == 2 + commands[i].args)
			return commands[i].run(argv + 2);
	fprintf(stderr, "usage: see the head of compat-volume.c\n");
	return 2;
}
