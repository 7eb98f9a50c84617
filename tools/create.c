/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk create: a new container, or nothing.  All that can be refused is
 * refused before the password is asked for; the file comes into being last,
 * and goes again if anything fails or Ctrl-C is pressed.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/container.h"
#include "fs/header.h"
#include "fs/volume.h"
#include "stats/utf8.h"
#include "tools/commands.h"
#include "tools/cost.h"
#include "tools/unlock.h"

/* Cipher handles: the new file system is written by one thread. */
#define CREATE_THREADS 1

struct on_off {
	bool given, on;
};

struct create {
	/* Set by options. */
	const struct scheme *scheme;
	uint32_t sector_bytes;
	struct on_off integrity;
	struct option_number size;
	const char *label;
	bool overwrite;
	bool no_recovery_key;
	const char *recovery_key_file;
	const char *header;
	struct password_source password;
	struct cost_choice cost;

	/* Set on the way. */
	const char *path;
	enum container_create_mode mode;
};

static enum tool_exit set_scheme(void *field, const struct tool_option *o,
				 const char *value)
{
	const struct scheme *found = scheme_by_name(value);
	char names[512] = "";
	size_t len = 0;

	if (found) {
		*(const struct scheme **)field = found;
		return TOOL_DONE;
	}
	for (size_t i = 0; scheme_at(i) && len < sizeof(names); i++)
		len += snprintf(names + len, sizeof(names) - len, "%s%s",
				i ? ", " : "", scheme_at(i)->name);
	return tool_fail(TOOL_USAGE, NULL, "--scheme: '%s' is not one of %s",
			 value, names);
}

static enum tool_exit set_sector_size(void *field, const struct tool_option *o,
				      const char *value)
{
	if (strcmp(value, "512") != 0 && strcmp(value, "4096") != 0)
		return tool_fail(TOOL_USAGE, NULL,
				 "--sector-size: '%s' is neither 512 nor 4096",
				 value);
	*(uint32_t *)field = *value == '5' ? 512 : 4096;
	return TOOL_DONE;
}

static enum tool_exit set_integrity(void *field, const struct tool_option *o,
				    const char *value)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return tool_fail(TOOL_USAGE, NULL,
				 "--integrity: '%s' is neither 'on' nor 'off'",
				 value);
	*(struct on_off *)field = (struct on_off){ true, value[1] == 'n' };
	return TOOL_DONE;
}

/* Later versions show it in menus and messages, so it must be plain text. */
static enum tool_exit set_label(void *field, const struct tool_option *o,
				const char *value)
{
	char clean[LABEL_BYTES_MAX + 1];

	if (strlen(value) > LABEL_BYTES_MAX)
		return tool_fail(TOOL_USAGE, NULL,
				 "--label is longer than %d bytes",
				 LABEL_BYTES_MAX);
	utf8_clean(clean, sizeof(clean), sizeof(clean), value);
	if (strcmp(clean, value) != 0)
		return tool_fail(TOOL_USAGE, NULL,
				 "--label has control characters or is not "
				 "UTF-8");
	*(const char **)field = value;
	return TOOL_DONE;
}

static enum tool_exit set_size(void *field, const struct tool_option *o,
			       const char *value)
{
	const uint64_t least = (uint64_t)CONTAINER_BLOCKS_MIN * BLOCK_BYTES;
	struct option_number *size = field;
	const enum tool_exit code = option_size(field, o, value);

	if (code == TOOL_DONE && size->value < least)
		return tool_fail(TOOL_USAGE, NULL,
				 "--size: '%s' is under 32M, the smallest "
				 "container",
				 value);
	return code;
}

static const struct tool_option create_options[] = {
	{ "scheme", 0, "SCHEME", offsetof(struct create, scheme), set_scheme,
	  "How data is encrypted: aes-256-xts (the default), aes-128-xts, "
	  "aes-128-cbc, aes-256-cbc, aes-128-cbc-elephant, "
	  "aes-256-cbc-elephant, or none (data in clear, to compare with; "
	  "names stay encrypted)." },
	{ "sector-size", 0, "BYTES", offsetof(struct create, sector_bytes),
	  set_sector_size,
	  "The cipher's data unit: 512 or 4096 (the default)." },
	{ "integrity", 0, "on|off", offsetof(struct create, integrity),
	  set_integrity,
	  "Keep an authentication tag for every block, so that changed data "
	  "is an error and never read (the default), or not." },
	{ "size", 0, "MAX", offsetof(struct create, size), set_size,
	  "Largest size the container may grow to, 32M or more (default: no "
	  "limit but the host's).  Nothing is allocated now." },
	{ "label", 0, "TEXT", offsetof(struct create, label), set_label,
	  "A name for people, up to 63 bytes.  It is not secret." },
	{ "overwrite", 0, NULL, offsetof(struct create, overwrite), option_flag,
	  "Take a block device although it holds something, which is "
	  "destroyed.  Files are never overwritten." },
	{ "no-recovery-key", 0, NULL, offsetof(struct create, no_recovery_key),
	  option_flag,
	  "Make no recovery key: without the password the data is lost." },
	{ "recovery-key-file", 0, "FILE",
	  offsetof(struct create, recovery_key_file), option_string,
	  "Not available in this version, and refused." },
	{ "header", 0, "FILE", offsetof(struct create, header), option_string,
	  "Not available in this version, and refused." },
	PASSWORD_OPTIONS(offsetof(struct create, password), "", "the password"),
	COST_OPTIONS(offsetof(struct create, cost)),
	{ 0 },
};

static const struct password_request request_of_new = {
	.kind = PASSWORD_NEW,
	.prefix = "",
};

static enum tool_exit check_options(const struct create *c)
{
	enum tool_exit code;

	if (c->recovery_key_file)
		return tool_fail(TOOL_UNSUPPORTED, NULL,
				 "--recovery-key-file: this version makes no "
				 "recovery keys; give --no-recovery-key");
	if (c->header)
		return tool_fail(TOOL_UNSUPPORTED, NULL,
				 "--header: this version keeps the header in "
				 "the container only");
	code = password_source_check(&c->password, &request_of_new);
	if (code == TOOL_DONE)
		code = cost_check(&c->cost);
	return code;
}

/* The path names something: only a device may be turned into a container. */
static enum tool_exit choose_existing(struct create *c, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return tool_fail_errno(TOOL_AT_CREATE, c->path, -EISDIR);
	if (!S_ISBLK(st->st_mode)) {
		if (c->overwrite)
			return tool_fail(TOOL_FAILED, c->path,
					 "exists already; --overwrite is for "
					 "devices only: remove it yourself");
		return tool_fail_errno(TOOL_AT_CREATE, c->path, -EEXIST);
	}
	if (c->size.given)
		return tool_fail(TOOL_USAGE, c->path,
				 "--size is for files; a device has the size "
				 "it has");
	c->mode = c->overwrite ? CONTAINER_OVERWRITE : CONTAINER_DEVICE;
	return TOOL_DONE;
}

static enum tool_exit check_parent(const struct create *c)
{
	char copy[PATH_MAX];
	const char *parent;

	if (snprintf(copy, sizeof(copy), "%s", c->path) >= (int)sizeof(copy))
		return tool_fail_errno(TOOL_AT_CREATE, c->path, -ENAMETOOLONG);
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	parent = dirname(copy);
	if (faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS))
		return tool_fail_errno(TOOL_AT_CREATE, c->path, -errno);
	return TOOL_DONE;
}

/*
 * What container_create() would find out too, but after the password was
 * asked for.
 */
static enum tool_exit choose_mode(struct create *c)
{
	const size_t len = strlen(c->path);
	struct stat st;

	if (stat(c->path, &st) == 0)
		return choose_existing(c, &st);
	/* A symbolic link to nothing is something. */
	if (lstat(c->path, &st) == 0)
		return tool_fail_errno(TOOL_AT_CREATE, c->path, -EEXIST);
	if (errno != ENOENT)
		return tool_fail_errno(TOOL_AT_CREATE, c->path, -errno);
	if (len && c->path[len - 1] == '/')
		return tool_fail_errno(TOOL_AT_CREATE, c->path, -EISDIR);
	c->mode = CONTAINER_NEW_FILE;
	return check_parent(c);
}

/* Returns 0 or negative errno; the container is durable or incomplete. */
static int write_container(const struct create *c, struct header *h,
			   const struct header_keys *keys,
			   struct nonce_source *src, struct container *to)
{
	const struct volume_format_params params = {
		.limit_blocks = c->size.value / BLOCK_BYTES,
		.uid = geteuid(),
		.gid = getegid(),
	};

	return volume_format(to, h, keys, src, &params);
}

/* Returns 0; -ERANGE (too small), -EINTR, or negative errno. */
static int fill_container(const struct create *c, struct header *h,
			  const struct header_keys *keys,
			  struct nonce_source *src, struct container *to)
{
	int err;

	/* Nothing has been written to a device yet. */
	if (container_nr_blocks(to) < CONTAINER_BLOCKS_MIN)
		return -ERANGE;
	err = write_container(c, h, keys, src, to);
	return !err && tool_signal_came() ? -EINTR : err;
}

static enum tool_exit fail_making(const struct create *c, int err)
{
	if (err == -EINTR)
		return tool_fail(TOOL_INTERRUPTED, c->path,
				 c->mode == CONTAINER_NEW_FILE
					 ? "interrupted; nothing was made"
					 : "interrupted; what the device held "
					   "is gone");
	return tool_fail_errno(TOOL_AT_CREATE, c->path, err);
}

/*
 * Signals wait for the end, which is near: some MiB are written.  So the file
 * is complete or removed, and no handler has to do that.
 */
static enum tool_exit make_container(const struct create *c, struct header *h,
				     const struct header_keys *keys,
				     struct nonce_source *src)
{
	struct container *to;
	int err;

	tool_hold_signals();
	err = container_create(&to, c->path, c->mode,
			       (uint64_t)CONTAINER_BLOCKS_MIN * BLOCK_BYTES);
	if (err)
		return fail_making(c, err);
	err = fill_container(c, h, keys, src, to);
	if (err && c->mode == CONTAINER_NEW_FILE)
		unlink(c->path);
	container_close(to);
	return err ? fail_making(c, err) : TOOL_DONE;
}

static enum tool_exit make_with_password(const struct create *c,
					 const struct secret *password,
					 struct nonce_source *src)
{
	struct header_params params = {
		.label = c->label ? c->label : "",
		.scheme = c->scheme,
		.sector_bytes = c->sector_bytes,
		.integrity = c->integrity.on,
		.kind = KEYSLOT_PASSWORD,
	};
	struct header_keys keys = { 0 };
	struct header h = { 0 };
	enum tool_exit code;
	int err;

	code = cost_measure(&c->cost, c->path, &params.cost);
	if (code != TOOL_DONE)
		return code;
	err = header_new(&h, &keys, &params, password, src, CREATE_THREADS);
	if (err)
		return tool_fail_errno(TOOL_AT_CREATE, c->path, err);
	code = make_container(c, &h, &keys, src);
	header_keys_destroy(&keys);
	header_destroy(&h);
	return code;
}

static enum tool_exit create(struct create *c)
{
	auto_secret struct secret password = SECRET_EMPTY;
	struct password_request request = request_of_new;
	struct nonce_source src;
	enum tool_exit code;
	int err;

	code = tool_start_cipher(CREATE_THREADS);
	if (code != TOOL_DONE)
		return code;
	request.what = c->path;
	code = password_read(&c->password, &request, &password);
	if (code != TOOL_DONE)
		return code;

	err = nonce_source_init(&src);
	if (err)
		return tool_fail_errno(TOOL_AT_CREATE, c->path, err);
	code = make_with_password(c, &password, &src);
	nonce_source_destroy(&src);
	return code;
}

static enum tool_exit create_run(void *state, char **args)
{
	struct create *c = state;
	enum tool_exit code;

	c->path = args[0];
	if (!c->scheme)
		c->scheme = scheme_by_id(SCHEME_AES_256_XTS);
	if (!c->sector_bytes)
		c->sector_bytes = 4096;
	if (!c->integrity.given)
		c->integrity.on = true;

	code = check_options(c);
	if (code == TOOL_DONE)
		code = choose_mode(c);
	if (code == TOOL_DONE)
		code = create(c);
	if (code == TOOL_DONE)
		cost_warn(&c->cost, c->path);
	return code;
}

static const char *const create_text[] = {
	"Make a new container: a file that grows as it is used, or a block "
	"device.  The file must not exist yet; it gets mode 0600 and 32 MiB at "
	"first.  The password is asked for twice.",
	"The first line of a password file or descriptor is the password: up "
	"to 4096 bytes before the line feed, whatever they are, less a "
	"carriage return at its end.",
	"Without a terminal a password file or descriptor must be given.  If "
	"anything fails, or Ctrl-C is pressed, no file stays.",
	NULL,
};

static const char *const create_examples[] = {
	"tusk create ~/vault.tusk",
	"tusk create --scheme aes-128-xts --label Photos /media/usb/vault.tusk",
	"tusk create --password-file ~/.vault-pw --no-recovery-key vault.tusk",
	NULL,
};

const struct tool_command create_command = {
	.name = "create",
	.args = "CONTAINER",
	.min_args = 1,
	.max_args = 1,
	.summary = "make a new container",
	.text = create_text,
	.examples = create_examples,
	.options = create_options,
	.state_bytes = sizeof(struct create),
	.run = create_run,
};
