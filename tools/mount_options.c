/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One table of words.  A row sets flags, clears flags, sets a field, takes a
 * value, or does nothing.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "tools/command.h"
#include "tools/mount_options.h"
#include "tools/units.h"

#define CACHE_BYTES_MIN (1 << 20)
#define COMMIT_SECONDS_MAX 3600

struct word;

typedef enum tool_exit (*word_set)(struct mount_options *o,
				   const struct word *w, const char *value);

struct word {
	const char *name;
	word_set apply;		  /* NULL: ignored */
	unsigned long set, clear; /* MS_*, for flags() */
	size_t offset;		  /* of a bool, for yes() and no() */
	int value;		  /* for atime() */
	const char *arg;	  /* what help calls its value; NULL: none */
	bool may_have_value;	  /* ignored with or without one */
	const char *help;	  /* NULL: not worth a line */
};

static enum tool_exit refuse(const struct word *w, const char *value,
			     const char *want)
{
	return tool_fail(TOOL_USAGE, NULL, "-o %s: '%s' is not %s", w->name,
			 value, want);
}

static enum tool_exit flags(struct mount_options *o, const struct word *w,
			    const char *value)
{
	o->flags |= w->set;
	o->flags &= ~w->clear;
	return TOOL_DONE;
}

static enum tool_exit yes(struct mount_options *o, const struct word *w,
			  const char *value)
{
	*(bool *)((char *)o + w->offset) = true;
	return TOOL_DONE;
}

static enum tool_exit no(struct mount_options *o, const struct word *w,
			 const char *value)
{
	*(bool *)((char *)o + w->offset) = false;
	return TOOL_DONE;
}

static enum tool_exit atime(struct mount_options *o, const struct word *w,
			    const char *value)
{
	o->atime = w->value;
	return flags(o, w, value);
}

static enum tool_exit stats(struct mount_options *o, const struct word *w,
			    const char *value)
{
	static const char *const modes[] = {
		[FUSE_STATS_HIDDEN] = "hidden",
		[FUSE_STATS_LISTED] = "listed",
		[FUSE_STATS_OFF] = "off",
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(value, modes[i])) {
			o->stats = i;
			return TOOL_DONE;
		}
	}
	return refuse(w, value, "hidden, listed or off");
}

static enum tool_exit password_file(struct mount_options *o,
				    const struct word *w, const char *value)
{
	free(o->password_file);
	o->password_file = strdup(value);
	return o->password_file ? TOOL_DONE
				: tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
}

static enum tool_exit cache(struct mount_options *o, const struct word *w,
			    const char *value)
{
	if (units_parse_size(value, &o->cache_bytes))
		return refuse(w, value, "a size, like 64M");
	if (o->cache_bytes < CACHE_BYTES_MIN)
		return refuse(w, value, "enough; 1M is the least");
	return TOOL_DONE;
}

static enum tool_exit commit(struct mount_options *o, const struct word *w,
			     const char *value)
{
	uint64_t seconds;

	if (units_parse_number(value, COMMIT_SECONDS_MAX, &seconds) || !seconds)
		return refuse(w, value, "a number of seconds, 1 to 3600");
	o->commit_seconds = (unsigned int)seconds;
	return TOOL_DONE;
}

/* Ids are numbers; (uid_t)-1 means "none" to the kernel. */
static enum tool_exit id(struct mount_options *o, const struct word *w,
			 const char *value)
{
	uint64_t number;

	if (units_parse_number(value, UINT32_MAX - 1, &number))
		return refuse(w, value, "the number of a user or group");
	if (w->name[0] == 'u') {
		o->override.has_uid = true;
		o->override.uid = (uid_t)number;
	} else {
		o->override.has_gid = true;
		o->override.gid = (gid_t)number;
	}
	return TOOL_DONE;
}

/* umask= is fmask= and dmask= at once. */
static enum tool_exit mask(struct mount_options *o, const struct word *w,
			   const char *value)
{
	unsigned long bits = 0;
	const char *p = value;

	for (; *p >= '0' && *p <= '7' && bits <= 0777; p++)
		bits = bits * 8 + (unsigned long)(*p - '0');
	if (*p || p == value || bits > 0777)
		return refuse(w, value, "a mask in octal, like 022");
	if (w->name[0] != 'd') {
		o->override.has_fmask = true;
		o->override.fmask = (mode_t)bits;
	}
	if (w->name[0] != 'f') {
		o->override.has_dmask = true;
		o->override.dmask = (mode_t)bits;
	}
	return TOOL_DONE;
}

static enum tool_exit later(struct mount_options *o, const struct word *w,
			    const char *value)
{
	return tool_fail(TOOL_USAGE, NULL,
			 "-o %s: this version of tusk does not have it yet",
			 w->name);
}

#define FIELD(name) offsetof(struct mount_options, name)
#define USER_FLAGS (MS_NOSUID | MS_NODEV)

static const struct word words[] = {
	{ "ro", flags, MS_RDONLY, .help = "Change nothing." },
	{ "rw", flags, 0, MS_RDONLY },
	{ "suid", flags, 0, MS_NOSUID },
	{ "nosuid", flags, MS_NOSUID },
	{ "dev", flags, 0, MS_NODEV },
	{ "nodev", flags, MS_NODEV },
	{ "exec", flags, 0, MS_NOEXEC },
	{ "noexec", flags, MS_NOEXEC },
	{ "sync", flags, MS_SYNCHRONOUS },
	{ "async", flags, 0, MS_SYNCHRONOUS },
	{ "dirsync", flags, MS_DIRSYNC },
	{ "relatime", atime, 0, MS_NOATIME | MS_STRICTATIME,
	  .value = VOLUME_RELATIME },
	{ "atime", atime, 0, MS_NOATIME | MS_STRICTATIME,
	  .value = VOLUME_RELATIME },
	{ "noatime", atime, MS_NOATIME, MS_STRICTATIME,
	  .value = VOLUME_NOATIME },
	{ "strictatime", atime, MS_STRICTATIME, MS_NOATIME,
	  .value = VOLUME_STRICTATIME },
	{ "nodiratime", flags, MS_NODIRATIME },
	{ "diratime", flags, 0, MS_NODIRATIME },
	/* What these allow or imply is as mount(8) has it. */
	{ "user", flags, USER_FLAGS | MS_NOEXEC, .may_have_value = true },
	{ "users", flags, USER_FLAGS | MS_NOEXEC },
	{ "owner", flags, USER_FLAGS },
	{ "group", flags, USER_FLAGS },
	{ "nouser" },
	{ "nousers" },
	{ "noowner" },
	{ "nogroup" },
	{ "defaults", flags, 0,
	  MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_SYNCHRONOUS },
	{ "auto" },
	{ "noauto" },
	{ "nofail" },
	{ "_netdev" },
	{ "norelatime" },
	{ "nostrictatime" },
	{ "lazytime" },
	{ "nolazytime" },
	{ "iversion" },
	{ "noiversion" },
	{ "mand" },
	{ "nomand" },
	{ "silent" },
	{ "loud" },
	{ "default_permissions" },
	{ "comment", .may_have_value = true },
	{ "uhelper", .may_have_value = true },
	{ "helper", .may_have_value = true },

	{ "allow_other", yes, .offset = FIELD(allow_other),
	  .help = "Let other users in, as far as permissions go." },
	{ "nonempty", yes, .offset = FIELD(nonempty),
	  .help = "Mount over a folder that is not empty." },
	{ "passwordfile", password_file, .arg = "FILE",
	  .help = "As --password-file; for fstab." },
	{ "stats", stats, .arg = "hidden|listed|off",
	  .help = "How /stats, /stats.json and /stats.prom show in the root "
		  "folder: can be read but are not listed (the default), "
		  "listed, or not there at all." },
	{ "cache", cache, .arg = "SIZE",
	  .help = "Memory for what is known of the tree; 128M by default." },
	{ "commit", commit, .arg = "SECONDS",
	  .help = "At most so long until changes are durable without fsync; "
		  "5 by default." },
	{ "writeback", no, .offset = FIELD(no_writeback) },
	{ "nowriteback", yes, .offset = FIELD(no_writeback),
	  .help = "Each write(2) goes to the daemon at once, instead of "
		  "being collected by the kernel." },
	{ "xattr", no, .offset = FIELD(no_xattr) },
	{ "noxattr", yes, .offset = FIELD(no_xattr),
	  .help = "No extended attributes: less traffic for many small "
		  "files." },
	{ "nosubtype", yes, .offset = FIELD(no_subtype),
	  .help = "The mount's type is \"fuse\", not \"fuse.tuskfs\"." },
	{ "uid", id, .arg = "N",
	  .help = "Show this user as the owner of everything." },
	{ "gid", id, .arg = "N",
	  .help = "Show this group as the group of everything." },
	{ "umask", mask, .arg = "OCTAL",
	  .help = "Show all permissions but these; fmask= is for all but "
		  "folders, dmask= for folders." },
	{ "fmask", mask, .arg = "OCTAL" },
	{ "dmask", mask, .arg = "OCTAL" },

	{ "keyfile", later, .arg = "FILE" },
	{ "header", later, .arg = "FILE" },
	{ "slowlog", later, .arg = "TIME" },
	{ "idle", later, .arg = "TIME" },
};

#define NR_WORDS (sizeof(words) / sizeof(words[0]))

/* Name spaces of options that are other programs' business. */
static bool is_foreign(const char *name)
{
	return !strncmp(name, "x-", 2) || !strncmp(name, "X-", 2);
}

static const struct word *find(const char *name)
{
	for (size_t i = 0; i < NR_WORDS; i++) {
		if (!strcmp(words[i].name, name))
			return &words[i];
	}
	return NULL;
}

static enum tool_exit apply_word(struct mount_options *o, char *name)
{
	char *value = strchr(name, '=');
	const struct word *w;

	if (value)
		*value++ = '\0';
	if (!*name && !value)
		return TOOL_DONE;
	if (is_foreign(name))
		return TOOL_DONE;
	w = find(name);
	if (!w)
		return tool_fail(TOOL_USAGE, NULL,
				 "unknown mount option '%s'; see 'tusk mount "
				 "--help'",
				 name);
	if (w->arg && (!value || !*value))
		return tool_fail(TOOL_USAGE, NULL, "-o %s needs a value: %s=%s",
				 name, name, w->arg);
	if (value && !w->arg && !w->may_have_value)
		return tool_fail(TOOL_USAGE, NULL, "-o %s takes no value",
				 name);
	return w->apply ? w->apply(o, w, value) : TOOL_DONE;
}

/* Copy the next word to @out, without its escapes.  Returns what follows it. */
static const char *next_word(const char *text, char *out)
{
	for (; *text && *text != ','; text++) {
		if (*text == '\\' && text[1])
			text++;
		*out++ = *text;
	}
	*out = '\0';
	return *text ? text + 1 : text;
}

enum tool_exit mount_options_parse(struct mount_options *o, const char *text)
{
	enum tool_exit code = TOOL_DONE;
	char *word = malloc(strlen(text) + 1);

	if (!word)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	while (*text && code == TOOL_DONE) {
		text = next_word(text, word);
		code = apply_word(o, word);
	}
	free(word);
	return code;
}

void mount_options_destroy(struct mount_options *o)
{
	free(o->password_file);
	o->password_file = NULL;
}

void mount_options_help(FILE *out)
{
	for (size_t i = 0; i < NR_WORDS; i++) {
		const struct word *w = &words[i];
		int column;

		if (!w->help)
			continue;
		column = fprintf(out, "  %s%s%s", w->name, w->arg ? "=" : "",
				 w->arg ? w->arg : "");
		if (column >= 28) {
			fputc('\n', out);
			column = 0;
		}
		command_wrap(out, w->help, 28, (unsigned int)column);
	}
}
