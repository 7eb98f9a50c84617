/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * run-vectors FILE...: hold the sector schemes against files of known answers.
 *
 * A file is lines of "name = value"; '#' starts a comment line and an empty
 * line ends a record (tests/data/vectors/ORIGIN.md has the fields).  Every
 * record is run in both directions, apart and in place, at an odd address; of
 * the fields that show what is in between (IV, sector key, diffusers), those
 * that are there are checked.
 *
 * Exit status: 0 all passed, 1 some failed, 2 a file is not of this format.
 */
#include <errno.h>
#include <gcrypt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cipher/cbc.h"
#include "cipher/elephant.h"
#include "cipher/scheme.h"
#include "cipher/secret.h"

enum {
	EXIT_PASSED = 0,
	EXIT_FAILED = 1,
	EXIT_BAD_FILE = 2
};

#define FIELDS_MAX 64

struct field {
	char *name;
	char *value;
};

struct record {
	const char *file;
	unsigned long line; /* of the first field */
	const char *id;
	size_t nr_fields;
	struct field fields[FIELDS_MAX];
	bool failed;
};

struct runner {
	unsigned long passed, failed;
	struct record record;
};

struct bytes {
	size_t len;
	uint8_t *b;
};

static void free_bytes(struct bytes *x)
{
	free(x->b);
}

#define auto_bytes auto_cleanup(free_bytes)

/* The one line for a file that makes no sense. */
static void bad_file(const char *file, unsigned long line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

static void bad_file(const char *file, unsigned long line, const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "run-vectors: %s", file);
	if (line)
		fprintf(stderr, ":%lu", line);
	fputs(": ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_BAD_FILE);
}

static void *must_alloc(size_t len)
{
	void *p = malloc(len ? len : 1);

	if (!p)
		abort();
	return p;
}

static struct bytes new_bytes(size_t len)
{
	return (struct bytes){ len, must_alloc(len) };
}

/* Fields of a record. */

static const char *find_field(const struct record *r, const char *name)
{
	for (size_t i = 0; i < r->nr_fields; i++)
		if (!strcmp(r->fields[i].name, name))
			return r->fields[i].value;
	return NULL;
}

static const char *need_field(const struct record *r, const char *name)
{
	const char *value = find_field(r, name);

	if (!value)
		bad_file(r->file, r->line, "record has no field '%s'", name);
	return value;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static struct bytes need_hex(const struct record *r, const char *name)
{
	const char *hex = need_field(r, name);
	size_t len = strlen(hex) / 2;
	struct bytes x = new_bytes(len);

	for (size_t i = 0; i < len; i++) {
		int high = hex_digit(hex[2 * i]);
		int low = hex_digit(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			bad_file(r->file, r->line,
				 "field '%s' is not hexadecimal", name);
		x.b[i] = (uint8_t)(high << 4 | low);
	}
	if (hex[2 * len])
		bad_file(r->file, r->line,
			 "field '%s' has an odd number of digits", name);
	return x;
}

static struct bytes need_hex_of(const struct record *r, const char *name,
				size_t len)
{
	struct bytes x = need_hex(r, name);

	if (x.len != len)
		bad_file(r->file, r->line,
			 "field '%s' has %zu bytes instead of %zu", name, x.len,
			 len);
	return x;
}

static uint64_t need_number(const struct record *r, const char *name)
{
	const char *text = need_field(r, name);
	uint64_t number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (hex_digit(text[0]) < 0 || hex_digit(text[0]) > 9 || *end || errno)
		bad_file(r->file, r->line,
			 "field '%s' is not a number of 64 bits", name);
	return number;
}

/* What a record proves. */

static void fail(struct record *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void fail(struct record *r, const char *fmt, ...)
{
	va_list args;

	r->failed = true;
	printf("FAIL %s: ", r->id);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

static void expect(struct record *r, const char *what, int err,
		   const uint8_t *got, const uint8_t *want, size_t len)
{
	size_t at = 0;

	if (err) {
		fail(r, "%s: %s", what, strerror(-err));
		return;
	}
	while (at < len && got[at] == want[at])
		at++;
	if (at < len)
		fail(r, "%s: byte %zu is %02x instead of %02x", what, at,
		     got[at], want[at]);
}

/* The length of both sides, which the size fields must agree with. */
static size_t need_sector_bytes(const struct record *r, size_t len)
{
	static const char *const names[] = { "sector_size", "data_unit_bytes" };

	for (size_t i = 0; i < 2; i++)
		if (find_field(r, names[i]) && need_number(r, names[i]) != len)
			bad_file(r->file, r->line,
				 "field '%s' does not fit the data", names[i]);
	return len;
}

static void need_tweak(const struct record *r, const struct scheme_key *k,
		       size_t sector_bytes, uint8_t tweak[static TWEAK_BYTES])
{
	uint64_t offset;

	if (find_field(r, "tweak")) {
		auto_bytes struct bytes x =
			need_hex_of(r, "tweak", TWEAK_BYTES);

		memcpy(tweak, x.b, TWEAK_BYTES);
		return;
	}
	offset = need_number(r, "offset");
	if (offset % sector_bytes)
		bad_file(r->file, r->line,
			 "field 'offset' is not a multiple of the sector size");
	scheme_tweak(k, 0, offset, tweak);
}

typedef int (*scheme_fn)(struct scheme_key *k,
			 const uint8_t tweak[static TWEAK_BYTES], size_t nr,
			 const void *in, void *out);

static void run_direction(struct record *r, const char *what, scheme_fn fn,
			  struct scheme_key *k, const uint8_t *tweak,
			  const struct bytes *in, const struct bytes *want)
{
	/* One byte in front makes the address odd. */
	auto_bytes struct bytes apart = new_bytes(in->len);
	auto_bytes struct bytes place = new_bytes(in->len + 1);
	int err;

	err = fn(k, tweak, 1, in->b, apart.b);
	expect(r, what, err, apart.b, want->b, want->len);

	memcpy(place.b + 1, in->b, in->len);
	err = fn(k, tweak, 1, place.b + 1, place.b + 1);
	expect(r, what, err, place.b + 1, want->b, want->len);
}

/* Steps between the sides, if the record has them. */

static gcry_cipher_hd_t must_open(const struct bytes *key, int mode)
{
	int algo = key->len == 16 ? GCRY_CIPHER_AES128 : GCRY_CIPHER_AES256;
	gcry_cipher_hd_t hd;

	if (gcry_cipher_open(&hd, algo, mode, 0) ||
	    gcry_cipher_setkey(hd, key->b, key->len))
		abort();
	return hd;
}

static void expect_field(struct record *r, const char *name, int err,
			 const uint8_t *got, size_t len)
{
	if (find_field(r, name)) {
		auto_bytes struct bytes want = need_hex_of(r, name, len);

		expect(r, name, err, got, want.b, len);
	}
}

static void run_iv(struct record *r, const uint8_t *tweak)
{
	auto_bytes struct bytes key = need_hex(r, "key");
	gcry_cipher_hd_t hd = must_open(&key, GCRY_CIPHER_MODE_CBC);
	uint8_t iv[CBC_BLOCK_BYTES];
	int err = cbc_iv(hd, tweak, iv);

	expect_field(r, "iv_block", 0, tweak, TWEAK_BYTES);
	expect_field(r, "iv", err, iv, sizeof(iv));
	gcry_cipher_close(hd);
}

static void run_sector_key(struct record *r, const uint8_t *tweak)
{
	auto_bytes struct bytes key = need_hex(r, "tweak_key");
	gcry_cipher_hd_t hd = must_open(&key, GCRY_CIPHER_MODE_ECB);
	uint8_t ks[ELEPHANT_KEY_BYTES];
	int err = elephant_sector_key(hd, tweak, ks);

	expect_field(r, "sector_key_block", 0, tweak, TWEAK_BYTES);
	expect_field(r, "sector_key", err, ks, sizeof(ks));
	gcry_cipher_close(hd);
}

typedef void (*diffuser_fn)(uint8_t *sector, size_t len);

struct diffuser {
	diffuser_fn forth, back;
};

/* @a through @d gives @b, and the other way round; at an odd address. */
static void run_diffuser(struct record *r, const struct diffuser *d,
			 const struct bytes *a, const struct bytes *b)
{
	auto_bytes struct bytes buf = new_bytes(a->len + 1);

	if (a->len < ELEPHANT_SECTOR_MIN || a->len % CBC_BLOCK_BYTES)
		bad_file(r->file, r->line, "a diffuser takes no %zu bytes",
			 a->len);
	memcpy(buf.b + 1, a->b, a->len);
	d->forth(buf.b + 1, a->len);
	expect(r, "diffuser", 0, buf.b + 1, b->b, b->len);

	memcpy(buf.b + 1, b->b, b->len);
	d->back(buf.b + 1, b->len);
	expect(r, "inverse diffuser", 0, buf.b + 1, a->b, a->len);
}

static const struct diffuser a_encrypt = { elephant_a_encrypt,
					   elephant_a_decrypt };
static const struct diffuser a_decrypt = { elephant_a_decrypt,
					   elephant_a_encrypt };
static const struct diffuser b_encrypt = { elephant_b_encrypt,
					   elephant_b_decrypt };
static const struct diffuser b_decrypt = { elephant_b_decrypt,
					   elephant_b_encrypt };

static void run_elephant_steps(struct record *r, const struct bytes *plain)
{
	auto_bytes struct bytes buf = new_bytes(plain->len);
	auto_bytes struct bytes ks =
		need_hex_of(r, "sector_key", ELEPHANT_KEY_BYTES);
	auto_bytes struct bytes x =
		need_hex_of(r, "after_sector_key", plain->len);
	auto_bytes struct bytes a = need_hex_of(r, "after_a", plain->len);
	auto_bytes struct bytes b = need_hex_of(r, "after_b", plain->len);

	elephant_xor(ks.b, plain->len, plain->b, buf.b);
	expect(r, "after_sector_key", 0, buf.b, x.b, x.len);
	elephant_xor(ks.b, plain->len, buf.b, buf.b);
	expect(r, "XOR taken back", 0, buf.b, plain->b, plain->len);

	run_diffuser(r, &a_encrypt, &x, &a);
	run_diffuser(r, &b_encrypt, &a, &b);
}

/* A method is what a record is run through. */

struct method {
	const char *name;
	void (*run)(struct record *r, const struct method *m);
	const char *scheme;
	size_t key_len, tweak_key_len;
	const struct diffuser *diffuser;
};

/* Both parts of the key, one behind the other. */
static struct bytes need_key(const struct record *r, const struct method *m)
{
	auto_bytes struct bytes first = need_hex_of(r, "key", m->key_len);
	struct bytes key = new_bytes(m->key_len + m->tweak_key_len);

	memcpy(key.b, first.b, first.len);
	if (m->tweak_key_len) {
		auto_bytes struct bytes second =
			need_hex_of(r, "tweak_key", m->tweak_key_len);

		memcpy(key.b + m->key_len, second.b, second.len);
	}
	return key;
}

static struct scheme_key *need_scheme_key(const struct record *r,
					  const struct method *m,
					  size_t sector_bytes)
{
	auto_bytes struct bytes bytes = need_key(r, m);
	auto_secret struct secret key = SECRET_EMPTY;
	struct scheme_key *k;
	int err;

	if (sector_bytes > UINT32_MAX)
		bad_file(r->file, r->line, "the sector is too long");
	if (secret_copy(&key, bytes.b, bytes.len))
		abort();
	err = scheme_key_new(&k, scheme_by_name(m->scheme),
			     (uint32_t)sector_bytes, &key, 1);
	if (err == -EINVAL)
		bad_file(r->file, r->line, "%s has no sectors of %zu bytes",
			 m->name, sector_bytes);
	if (err)
		bad_file(r->file, r->line, "%s: %s", m->name, strerror(-err));
	return k;
}

static void run_steps(struct record *r, const struct method *m,
		      const uint8_t *tweak, const struct bytes *plain)
{
	if (strstr(m->scheme, "cbc"))
		run_iv(r, tweak);
	if (strstr(m->scheme, "elephant"))
		run_sector_key(r, tweak);
	if (find_field(r, "after_a"))
		run_elephant_steps(r, plain);
}

static void run_scheme(struct record *r, const struct method *m)
{
	auto_bytes struct bytes plain = need_hex(r, "plaintext");
	auto_bytes struct bytes sealed =
		need_hex_of(r, "ciphertext", plain.len);
	size_t len = need_sector_bytes(r, plain.len);
	struct scheme_key *k = need_scheme_key(r, m, len);
	uint8_t tweak[TWEAK_BYTES];

	need_tweak(r, k, len, tweak);
	run_direction(r, "encrypt", scheme_encrypt, k, tweak, &plain, &sealed);
	run_direction(r, "decrypt", scheme_decrypt, k, tweak, &sealed, &plain);
	run_steps(r, m, tweak, &plain);
	scheme_key_free(k);
}

static void run_raw_cbc(struct record *r, const struct method *m)
{
	auto_bytes struct bytes key = need_hex_of(r, "key", m->key_len);
	auto_bytes struct bytes iv = need_hex_of(r, "iv", CBC_BLOCK_BYTES);
	auto_bytes struct bytes plain = need_hex(r, "plaintext");
	auto_bytes struct bytes sealed =
		need_hex_of(r, "ciphertext", plain.len);
	auto_bytes struct bytes out = new_bytes(plain.len);
	gcry_cipher_hd_t hd;
	int err;

	if (!plain.len || plain.len % CBC_BLOCK_BYTES)
		bad_file(r->file, r->line, "CBC takes no %zu bytes", plain.len);
	hd = must_open(&key, GCRY_CIPHER_MODE_CBC);
	err = cbc_encrypt_iv(hd, iv.b, plain.len, plain.b, out.b);
	expect(r, "encrypt", err, out.b, sealed.b, sealed.len);
	err = cbc_decrypt_iv(hd, iv.b, sealed.len, sealed.b, out.b);
	expect(r, "decrypt", err, out.b, plain.b, plain.len);
	gcry_cipher_close(hd);
}

static void run_one_diffuser(struct record *r, const struct method *m)
{
	auto_bytes struct bytes in = need_hex(r, "input");
	auto_bytes struct bytes out = need_hex_of(r, "output", in.len);

	need_sector_bytes(r, in.len);
	run_diffuser(r, m->diffuser, &in, &out);
}

/* clang-format off */
static const struct method methods[] = {
	{ "aes-xts-128", run_scheme, "aes-128-xts", 16, 16 },
	{ "aes-xts-256", run_scheme, "aes-256-xts", 32, 32 },
	{ "aes-cbc-128", run_scheme, "aes-128-cbc", 16, 0 },
	{ "aes-cbc-256", run_scheme, "aes-256-cbc", 32, 0 },
	{ "aes-cbc-elephant-128", run_scheme, "aes-128-cbc-elephant", 16, 16 },
	{ "aes-cbc-elephant-256", run_scheme, "aes-256-cbc-elephant", 32, 32 },
	{ "aes-cbc-raw-128", run_raw_cbc, NULL, 16, 0 },
	{ "aes-cbc-raw-256", run_raw_cbc, NULL, 32, 0 },
	{ "diffuser-a-encrypt", run_one_diffuser, .diffuser = &a_encrypt },
	{ "diffuser-a-decrypt", run_one_diffuser, .diffuser = &a_decrypt },
	{ "diffuser-b-encrypt", run_one_diffuser, .diffuser = &b_encrypt },
	{ "diffuser-b-decrypt", run_one_diffuser, .diffuser = &b_decrypt },
};
/* clang-format on */

static const struct method *need_method(const struct record *r)
{
	const char *name = need_field(r, "method");

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	bad_file(r->file, r->line, "unknown method '%s'", name);
}

/* From lines to records. */

static void run_record(struct runner *run)
{
	struct record *r = &run->record;
	const struct method *m;

	if (!r->nr_fields)
		return;
	r->id = need_field(r, "id");
	m = need_method(r);
	m->run(r, m);
	if (r->failed)
		run->failed++;
	else
		run->passed++;
	for (size_t i = 0; i < r->nr_fields; i++)
		free(r->fields[i].name);
	*r = (struct record){ .file = r->file };
}

static void add_field(struct record *r, const char *line, unsigned long number)
{
	const char *equals = strstr(line, " = ");
	struct field *f;

	if (!equals || equals == line)
		bad_file(r->file, number, "not of the form 'name = value'");
	if (r->nr_fields == FIELDS_MAX)
		bad_file(r->file, number, "more than %d fields in a record",
			 FIELDS_MAX);
	if (!r->nr_fields)
		r->line = number;

	f = &r->fields[r->nr_fields];
	f->name = strdup(line);
	if (!f->name)
		abort();
	f->name[equals - line] = '\0';
	f->value = f->name + (equals - line) + 3;
	if (find_field(r, f->name))
		bad_file(r->file, number, "field '%s' stands twice", f->name);
	r->nr_fields++;
}

static void take_line(struct runner *run, char *line, size_t len,
		      unsigned long number)
{
	if (memchr(line, '\0', len))
		bad_file(run->record.file, number, "not a text file");
	line[strcspn(line, "\r\n")] = '\0';
	if (line[0] == '#')
		return;
	if (line[0])
		add_field(&run->record, line, number);
	else
		run_record(run);
}

static void run_file(struct runner *run, const char *name)
{
	const unsigned long before = run->passed + run->failed;
	unsigned long number = 0;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	FILE *f = fopen(name, "r");

	if (!f)
		bad_file(name, 0, "%s", strerror(errno));
	run->record = (struct record){ .file = name };
	errno = 0;
	while ((len = getline(&line, &room, f)) >= 0)
		take_line(run, line, (size_t)len, ++number);
	if (ferror(f))
		bad_file(name, 0, "%s", strerror(errno));
	run_record(run);
	if (run->passed + run->failed == before)
		bad_file(name, 0, "no records");
	free(line);
	fclose(f);
}

int main(int argc, char **argv)
{
	struct runner run = { 0 };
	enum secret_memory memory;

	if (argc < 2) {
		fputs("usage: run-vectors FILE...\n", stderr);
		return EXIT_BAD_FILE;
	}
	if (cipher_init(0, &memory)) {
		fputs("run-vectors: libgcrypt is too old\n", stderr);
		return EXIT_BAD_FILE;
	}
	for (int i = 1; i < argc; i++)
		run_file(&run, argv[i]);
	printf("%lu passed, %lu failed\n", run.passed, run.failed);
	return run.failed ? EXIT_FAILED : EXIT_PASSED;
}
