/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk key: who can open a container.
 *
 * The old and the new password come from sources of their own; the same file
 * for both would "change" the password to itself without a word.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/super.h"
#include "tools/commands.h"
#include "tools/cost.h"
#include "tools/json.h"
#include "tools/slots.h"
#include "tools/unlock.h"

#define KEY_THREADS 1

struct key_change {
	struct password_source old, new;
	struct cost_choice cost;
	bool force;
};

static const struct tool_option key_change_options[] = {
	PASSWORD_OPTIONS(offsetof(struct key_change, old), "",
			 "the old password"),
	PASSWORD_OPTIONS(offsetof(struct key_change, new), "new-",
			 "the new password"),
	COST_OPTIONS(offsetof(struct key_change, cost)),
	{ "force", 0, NULL, offsetof(struct key_change, force), option_flag,
	  "Accept a new password that equals the old one (to change the cost "
	  "of guessing it)." },
	{ 0 },
};

static bool same_descriptor(const struct key_change *k)
{
	return k->old.fd.given && k->new.fd.given &&
	       k->old.fd.fd == k->new.fd.fd;
}

static struct password_request old_request(const struct key_change *k,
					   const char *path)
{
	return (struct password_request){
		.what = path,
		.kind = PASSWORD_OLD,
		.prefix = "",
		.more_follows = same_descriptor(k),
	};
}

static struct password_request new_request(const char *path)
{
	return (struct password_request){
		.what = path,
		.kind = PASSWORD_NEW,
		.prefix = "new-",
	};
}

static enum tool_exit check_sources(const struct key_change *k)
{
	const struct password_request old = old_request(k, NULL);
	const struct password_request new = new_request(NULL);
	enum tool_exit code;

	code = password_source_check(&k->old, &old);
	if (code == TOOL_DONE)
		code = password_source_check(&k->new, &new);
	if (code == TOOL_DONE)
		code = cost_check(&k->cost);
	if (code == TOOL_DONE && password_source_same_file(&k->old, &k->new))
		return tool_fail(TOOL_USAGE, NULL,
				 "the old and the new password come from the "
				 "same file; give another "
				 "--new-password-file");
	return code;
}

/* The new password, unless it is the old one. */
static enum tool_exit read_new(const struct key_change *k, const char *path,
			       const struct secret *old, struct secret *new)
{
	const struct password_request request = new_request(path);
	enum tool_exit code;

	code = password_read(&k->new, &request, new);
	if (code != TOOL_DONE || k->force)
		return code;
	if (old->len == new->len &&
	    secret_equal(old->bytes, new->bytes, old->len))
		return tool_fail(TOOL_USAGE, path,
				 "the new password equals the old one; "
				 "nothing was changed (--force accepts it)");
	return TOOL_DONE;
}

static enum tool_exit set_password(const struct key_change *k,
				   struct tool_container *t,
				   const struct secret *password)
{
	struct nonce_source src;
	struct kdf_cost cost;
	enum tool_exit code;
	int err;

	code = cost_measure(&k->cost, t->path, &cost);
	if (code != TOOL_DONE)
		return code;
	err = nonce_source_init(&src);
	if (err)
		return tool_fail_errno(TOOL_AT_CHANGE, t->path, err);
	err = header_set_slot(&t->header, &t->keys, t->keys.slot,
			      KEYSLOT_PASSWORD, password, &cost, &src);
	if (!err) {
		/* Both copies are written, and it is told, come what may. */
		tool_hold_signals();
		err = super_replace_header(&t->header, &t->keys, &src, t->c);
	}
	nonce_source_destroy(&src);
	return err ? tool_fail_errno(TOOL_AT_CHANGE, t->path, err) : TOOL_DONE;
}

static enum tool_exit change(const struct key_change *k,
			     struct tool_container *t)
{
	const struct password_request request = old_request(k, t->path);
	auto_secret struct secret old = SECRET_EMPTY;
	auto_secret struct secret new = SECRET_EMPTY;
	enum tool_exit code;

	code = tool_unlock(t, &k->old, &request, KEY_THREADS, &old);
	if (code != TOOL_DONE)
		return code;
	if (t->header.slot[t->keys.slot].kind != KEYSLOT_PASSWORD)
		return tool_fail(TOOL_UNSUPPORTED, t->path,
				 "what was given opens key slot %u, which is "
				 "not a password's",
				 t->keys.slot);
	code = read_new(k, t->path, &old, &new);
	if (code != TOOL_DONE)
		return code;
	return set_password(k, t, &new);
}

static enum tool_exit key_change_run(void *state, char **args)
{
	const struct key_change *k = state;
	struct tool_container t;
	enum tool_exit code;

	code = check_sources(k);
	if (code != TOOL_DONE)
		return code;
	code = tool_open_container(&t, args[0], CONTAINER_READ_WRITE,
				   TOOL_WAIT_SECONDS);
	if (code != TOOL_DONE)
		return code;
	code = tool_start_cipher(KEY_THREADS);
	if (code == TOOL_DONE)
		code = change(k, &t);
	tool_close(&t);
	if (code != TOOL_DONE)
		return code;
	cost_warn(&k->cost, args[0]);
	tool_note(args[0], "changed; who kept a copy of this container or its "
			   "header (a backup, a snapshot) can still open that "
			   "with the old password, and with it what is "
			   "written from now on: only re-encryption ends that");
	return TOOL_DONE;
}

static const char *const key_change_text[] = {
	"Replace a password by a new one.  The data is not rewritten, and the "
	"container must not be mounted.  The old and the new password come "
	"from sources of their own; without any, the terminal, where the new "
	"one is asked for twice.  One descriptor given for both is two lines: "
	"the old password, then the new one.",
	"The same file for both is refused, and so is a new password that "
	"equals the old one.  The cost of guessing is measured anew.",
	"The keys of the data stay: whoever has the old password and an old "
	"copy of the header (in a backup, a snapshot, or left on an SSD) can "
	"still read the container.  Only re-encryption ends that.",
	NULL,
};

static const char *const key_change_examples[] = {
	"tusk key change ~/vault.tusk",
	"tusk key change --password-file old --new-password-file new "
	"vault.tusk",
	NULL,
};

const struct tool_command key_change_command = {
	.name = "key change",
	.args = "CONTAINER",
	.min_args = 1,
	.max_args = 1,
	.summary = "change the password",
	.text = key_change_text,
	.examples = key_change_examples,
	.options = key_change_options,
	.state_bytes = sizeof(struct key_change),
	.run = key_change_run,
};

struct key_list {
	bool json;
};

static const struct tool_option key_list_options[] = {
	{ "json", 0, NULL, offsetof(struct key_list, json), option_flag,
	  "Print one JSON object." },
	{ 0 },
};

static enum tool_exit print_slots(const struct header *h)
{
	char text[SLOT_TEXT_BYTES], line[SLOT_TEXT_BYTES + 8];

	for (unsigned int i = 0; i < HEADER_SLOTS; i++) {
		if (h->slot[i].kind == KEYSLOT_EMPTY)
			continue;
		slot_text(&h->slot[i], text);
		snprintf(line, sizeof(line), "%2u  %s", i, text);
		tool_print_line(line);
	}
	return tool_finish_output(TOOL_DONE);
}

static enum tool_exit print_slots_json(const struct tool_container *t)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "version", 1);
	json_add_text(o, "container", t->path);
	json_object_object_add(o, "slots", slots_json(&t->header));
	return json_print(o, TOOL_DONE);
}

static enum tool_exit key_list_run(void *state, char **args)
{
	const struct key_list *k = state;
	struct tool_container t;
	enum tool_exit code;

	code = tool_start_cipher(KEY_THREADS);
	if (code == TOOL_DONE)
		code = tool_open_container(&t, args[0], CONTAINER_NO_LOCK, 0);
	if (code != TOOL_DONE)
		return code;
	code = k->json ? print_slots_json(&t) : print_slots(&t.header);
	tool_close(&t);
	return code;
}

static const char *const key_list_text[] = {
	"List the key slots in use: index, kind, and what a guess costs.  No "
	"password is needed, and the container may be mounted.",
	NULL,
};

const struct tool_command key_list_command = {
	.name = "key list",
	.args = "CONTAINER",
	.min_args = 1,
	.max_args = 1,
	.summary = "list the key slots",
	.text = key_list_text,
	.options = key_list_options,
	.state_bytes = sizeof(struct key_list),
	.run = key_list_run,
};
