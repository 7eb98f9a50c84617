/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk info: what is in clear in a container.  Asks for no password, changes
 * nothing, and works while the container is mounted; given the folder it is
 * mounted on, the daemon tells which container that is.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/container_lock.h"
#include "fs/control.h"
#include "tools/commands.h"
#include "tools/hardware.h"
#include "tools/json.h"
#include "tools/mounts.h"
#include "tools/slots.h"
#include "tools/units.h"
#include "tools/unlock.h"

struct info {
	bool json;

	const char *dir;	   /* NULL: a container was named */
	struct control_info mount; /* if @dir */
	struct tool_container opened;
	uint64_t size_bytes;
	uint64_t allocated_bytes; /* on the host; devices: the size */
	bool in_use;
	int holder; /* 0: unknown */
	struct hardware hardware;
};

static const struct tool_option info_options[] = {
	{ "json", 0, NULL, offsetof(struct info, json), option_flag,
	  "Print one JSON object." },
	{ 0 },
};

/*
 * The exclusive lock, held for a moment, is the only way to see shared holders
 * too (a read-only mount).  Whoever comes in that moment waits: it sees the
 * flock without the lock on byte 0.
 */
static void find_user(struct info *i, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return;
	i->in_use = lock_take(fd, LOCK_EXCLUSIVE, 0, &i->holder) == -EBUSY;
	close(fd);
}

static void find_sizes(struct info *i, const char *path)
{
	struct container *c = i->opened.c;
	struct stat st;

	i->size_bytes = container_nr_blocks(c) * BLOCK_BYTES;
	i->allocated_bytes = i->size_bytes;
	if (!c->is_device && stat(path, &st) == 0)
		i->allocated_bytes = (uint64_t)st.st_blocks * 512;
}

static const struct header_key *active_key(const struct header *h)
{
	for (int i = 0; i < HEADER_KEYS; i++)
		if (h->key[i].state == HEADER_KEY_ACTIVE)
			return &h->key[i];
	return NULL;
}

static const char *scheme_name(const struct header_key *key)
{
	const struct scheme *s = key ? scheme_by_id(key->scheme) : NULL;

	return s ? s->name : "unknown";
}

static const char *copies_text(const struct header *h)
{
	if (h->copy_ok[0] && h->copy_ok[1])
		return "both good";
	return h->copy_ok[0] ? "the second is damaged" : "the first is damaged";
}

static void print_row(const char *name, const char *value)
{
	char line[8192];

	snprintf(line, sizeof(line), "%-18s %s", name, value);
	tool_print_line(line);
}

static void print_sizes(const struct info *i)
{
	char size[UNITS_TEXT_BYTES], allocated[UNITS_TEXT_BYTES], row[192];

	units_format_size(i->size_bytes, size);
	units_format_size(i->allocated_bytes, allocated);
	snprintf(row, sizeof(row), "%s (%" PRIu64 " bytes), %s on the host",
		 size, i->size_bytes, allocated);
	print_row("Size", row);
}

static void print_user(const struct info *i)
{
	char row[64];

	if (!i->in_use)
		snprintf(row, sizeof(row), "no");
	else if (!i->holder)
		snprintf(row, sizeof(row), "yes, by an unknown process");
	else
		snprintf(row, sizeof(row), "yes, by process %d", i->holder);
	print_row("In use", row);
}

static void print_slots(const struct header *h)
{
	char name[32], text[SLOT_TEXT_BYTES];

	for (unsigned int i = 0; i < HEADER_SLOTS; i++) {
		if (h->slot[i].kind == KEYSLOT_EMPTY)
			continue;
		snprintf(name, sizeof(name), "Key slot %u", i);
		slot_text(&h->slot[i], text);
		print_row(name, text);
	}
}

static void print_hardware(const struct hardware *hw)
{
	char names[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < hw->nr && len < sizeof(names); i++)
		len += snprintf(names + len, sizeof(names) - len, "%s%s",
				i ? " " : "", hw->name[i]);
	print_row("AES instructions", hw->aes ? "used" : "not used");
	print_row("Processor", *names ? names : "unknown");
}

static void print_mount(const struct info *i)
{
	const struct control_info *m = &i->mount;
	char row[128];

	print_row("Mounted on", i->dir);
	snprintf(row, sizeof(row), "%s, commit %" PRIu64 ", tusk %.31s",
		 m->flags & CONTROL_READ_ONLY ? "read-only" : "read-write",
		 m->commit, m->program);
	print_row("Mount", row);
}

static enum tool_exit print_text(const struct info *i)
{
	const struct header *h = &i->opened.header;
	const struct header_key *key = active_key(h);
	char uuid[37], row[128];

	uuid_format(h->uuid, uuid);
	print_row("Container", i->opened.path);
	print_row("UUID", uuid);
	print_row("Label", *h->label ? h->label : "-");
	snprintf(row, sizeof(row),
		 "version %" PRIu32 ", features 0x%" PRIx64 " 0x%" PRIx64
		 " 0x%" PRIx64,
		 h->format_version, h->compat, h->ro_compat, h->incompat);
	print_row("Format", row);
	snprintf(row, sizeof(row), "%s, sectors of %" PRIu32 " bytes",
		 scheme_name(key), key ? key->sector_bytes : 0);
	print_row("Scheme", row);
	print_row("Integrity", key && key->integrity ? "on" : "off");
	print_row("Header copies", copies_text(h));
	print_sizes(i);
	print_user(i);
	if (i->dir)
		print_mount(i);
	print_slots(h);
	print_hardware(&i->hardware);
	return tool_finish_output(TOOL_DONE);
}

static struct json_object *features_json(const struct header *h)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "compatible", h->compat);
	json_add_number(o, "read_only_compatible", h->ro_compat);
	json_add_number(o, "incompatible", h->incompat);
	return o;
}

static struct json_object *hardware_json(const struct hardware *hw)
{
	struct json_object *o = json_object_new_object();
	struct json_object *names = json_object_new_array();

	json_add_bool(o, "aes", hw->aes);
	json_add_bool(o, "carryless_multiplication", hw->carryless);
	for (size_t i = 0; i < hw->nr; i++)
		json_object_array_add(names, json_text(hw->name[i]));
	json_object_object_add(o, "features", names);
	return o;
}

static struct json_object *mount_json(const struct info *i)
{
	const struct control_info *m = &i->mount;
	struct json_object *o = json_object_new_object();

	json_add_text(o, "directory", i->dir);
	json_add_number(o, "pid", m->pid > 0 ? m->pid : 0);
	json_add_bool(o, "read_only", m->flags & CONTROL_READ_ONLY);
	json_add_number(o, "commit", m->commit);
	json_add_number(o, "since_unix_seconds", m->start_unix_seconds);
	json_add_text(o, "program_version", m->program);
	return o;
}

static enum tool_exit print_json(const struct info *i)
{
	const struct header *h = &i->opened.header;
	const struct header_key *key = active_key(h);
	struct json_object *o = json_object_new_object();
	struct json_object *copies = json_object_new_array();
	char uuid[37];

	uuid_format(h->uuid, uuid);
	json_add_number(o, "version", 1);
	json_add_text(o, "container", i->opened.path);
	json_add_text(o, "uuid", uuid);
	json_add_text(o, "label", h->label);
	json_add_number(o, "format_version", h->format_version);
	json_object_object_add(o, "features", features_json(h));
	json_add_text(o, "scheme", scheme_name(key));
	json_add_number(o, "sector_size", key ? key->sector_bytes : 0);
	json_add_bool(o, "integrity", key && key->integrity);
	for (int n = 0; n < 2; n++)
		json_object_array_add(copies,
				      json_object_new_boolean(h->copy_ok[n]));
	json_object_object_add(o, "header_copies_good", copies);
	json_add_bool(o, "device", i->opened.c->is_device);
	json_add_number(o, "size_bytes", i->size_bytes);
	json_add_number(o, "allocated_bytes", i->allocated_bytes);
	json_add_bool(o, "in_use", i->in_use);
	json_add_number(o, "holder_pid", i->holder > 0 ? i->holder : 0);
	json_object_object_add(o, "mount", i->dir ? mount_json(i) : NULL);
	json_object_object_add(o, "slots", slots_json(h));
	json_object_object_add(o, "processor", hardware_json(&i->hardware));
	return json_print(o, TOOL_DONE);
}

static enum tool_exit info_container(struct info *i, const char *path)
{
	enum tool_exit code;
	const char *warning;

	code = tool_open_container(&i->opened, path, CONTAINER_NO_LOCK, 0);
	if (code != TOOL_DONE)
		return code;
	if (i->dir &&
	    memcmp(i->mount.uuid, i->opened.header.uuid, UUID_BYTES) != 0) {
		tool_close(&i->opened);
		return tool_fail(TOOL_NO_CONTAINER, path,
				 "no longer the container that is mounted on "
				 "%s: it was moved or replaced",
				 i->dir);
	}
	find_user(i, path);
	find_sizes(i, path);
	hardware_get(&i->hardware);

	code = i->json ? print_json(i) : print_text(i);
	warning = hardware_warning(&i->hardware);
	if (warning && code == TOOL_DONE)
		tool_warn(NULL, "%s", warning);
	hardware_free(&i->hardware);
	tool_close(&i->opened);
	return code;
}

/* What it means that the daemon behind a folder told nothing. */
static enum tool_exit fail_asking(const char *dir, int err)
{
	switch (err) {
	case -ENOTCONN:
		return tool_fail(TOOL_MOUNT_POINT, dir,
				 "a mount whose daemon is gone; 'tusk umount' "
				 "clears it");
	case -ETIMEDOUT:
		return tool_fail(TOOL_FAILED, dir,
				 "its daemon does not answer");
	case -EACCES:
		return tool_fail(TOOL_FAILED, dir,
				 "mounted by another user, whom you have to "
				 "ask");
	default:
		return tool_fail(TOOL_NO_CONTAINER, dir,
				 "a folder, and no container is mounted on it");
	}
}

/*
 * If something is mounted at @path, ask its daemon; *path becomes the
 * container's.  @path itself is not touched, as its daemon may hang.
 */
static enum tool_exit ask_daemon(struct info *i, const struct mounts *m,
				 const char **path)
{
	char *resolved = mounts_resolve(*path);
	const struct mount_entry *e = resolved ? mounts_find(m, resolved)
					       : NULL;
	const int err = e ? mounts_ask(e, &i->mount) : 0;

	free(resolved);
	if (err)
		return fail_asking(*path, err);
	if (!e)
		return TOOL_DONE;
	i->mount.container[sizeof(i->mount.container) - 1] = '\0';
	i->dir = *path;
	*path = i->mount.container;
	return TOOL_DONE;
}

static enum tool_exit find_container(struct info *i, const char **path)
{
	enum tool_exit code = TOOL_DONE;
	struct mounts mounts;
	struct stat st;

	/* Without /proc there is no way from a folder to its daemon. */
	if (mounts_read(&mounts) == 0)
		code = ask_daemon(i, &mounts, path);
	mounts_destroy(&mounts);
	if (code == TOOL_DONE && !i->dir && stat(*path, &st) == 0 &&
	    S_ISDIR(st.st_mode))
		return fail_asking(*path, -ENOTTY);
	return code;
}

static enum tool_exit info_run(void *state, char **args)
{
	const char *path = args[0];
	struct info *i = state;
	enum tool_exit code;

	code = tool_start_cipher(1);
	if (code == TOOL_DONE)
		code = find_container(i, &path);
	return code == TOOL_DONE ? info_container(i, path) : code;
}

static const char *const info_text[] = {
	"Print what a container shows without its password: format, UUID, "
	"label, scheme, key slots and what a guess at their passwords costs, "
	"size, who uses it; and which of this processor's instructions the "
	"ciphers use.",
	"Given the folder a container is mounted on, print the same and what "
	"its daemon tells about the mount.",
	"Nothing here is authenticated before the password is given: who can "
	"write to the container can change what is shown.",
	NULL,
};

static const char *const info_examples[] = {
	"tusk info ~/vault.tusk",
	"tusk info ~/Private",
	"tusk info --json ~/vault.tusk | jq -r .uuid",
	NULL,
};

const struct tool_command info_command = {
	.name = "info",
	.args = "CONTAINER|DIR",
	.min_args = 1,
	.max_args = 1,
	.summary = "show what a container tells without its password",
	.text = info_text,
	.examples = info_examples,
	.options = info_options,
	.state_bytes = sizeof(struct info),
	.run = info_run,
};
