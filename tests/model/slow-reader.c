/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/model/slow-reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/refdata.h"
#include "tests/support/treesnap.h"

void slow_reader_start(struct slow_reader *r, const struct refmodel *m,
		       inum_t dir)
{
	slow_reader_stop(r);
	r->dir = dir;
	r->cookie = 0;
	r->nr = refmodel_nr_entries(m, dir);
	r->names = xmalloc(r->nr * sizeof(*r->names));
	for (size_t i = 0; i < r->nr; i++) {
		struct slow_name *n = &r->names[i];

		n->name = strdup(refmodel_entry(m, dir, i, &n->ino));
		n->stayed = true;
	}
}

void slow_reader_stop(struct slow_reader *r)
{
	for (size_t i = 0; i < r->nr; i++)
		free(r->names[i].name);
	free(r->names);
	memset(r, 0, sizeof(*r));
}

/*
 * A name that went and came again between two calls looks as if it had stayed,
 * but an operation either removes a name or makes one; what exchanges two, or
 * replaces one, changes its inode.
 */
void slow_reader_watch(struct slow_reader *r, const struct refmodel *m)
{
	size_t at = 0, nr = 0;

	if (!r->dir)
		return;
	if (!refmodel_exists(m, r->dir)) {
		slow_reader_stop(r);
		return;
	}
	nr = refmodel_nr_entries(m, r->dir);
	for (size_t i = 0; i < r->nr; i++) {
		struct slow_name *n = &r->names[i];
		inum_t ino = 0;

		while (at < nr &&
		       strcmp(refmodel_entry(m, r->dir, at, &ino), n->name) < 0)
			at++;
		if (at == nr ||
		    strcmp(refmodel_entry(m, r->dir, at, &ino), n->name) ||
		    ino != n->ino)
			n->stayed = false;
	}
}

static int by_name(const void *key, const void *n)
{
	return strcmp(key, ((const struct slow_name *)n)->name);
}

struct fetch {
	struct slow_reader *r;
	size_t left;
	bool ended;
};

static bool fetch_one(void *arg, const struct volume_dirent *e)
{
	struct fetch *f = arg;
	struct slow_name *n = NULL;

	if (f->r->nr)
		n = bsearch(e->name, f->r->names, f->r->nr,
			    sizeof(*f->r->names), by_name);
	if (n)
		n->seen++;
	f->r->cookie = e->cookie;
	f->ended = false;
	return --f->left > 0;
}

static bool met_all(const struct slow_reader *r)
{
	char quoted[300];

	for (size_t i = 0; i < r->nr; i++) {
		const struct slow_name *n = &r->names[i];

		if (!n->stayed || n->seen == 1)
			continue;
		fprintf(stderr,
			"a slow reader of folder %llu met '%s', which stayed, "
			"%u times\n",
			(unsigned long long)r->dir,
			snap_quote(n->name, quoted, sizeof(quoted)), n->seen);
		return false;
	}
	return true;
}

bool slow_reader_fetch(struct slow_reader *r, const struct fsapi *fs,
		       inum_t fs_dir, size_t nr)
{
	struct fetch f = { r, nr, true };
	bool ok;
	int err;

	err = fs->ops->readdir(fs->fs, fs_dir, r->cookie, 0, fetch_one, &f);
	if (err) {
		fprintf(stderr, "a slow reader got %s\n", strerror(-err));
		return false;
	}
	if (!f.ended)
		return true;
	ok = met_all(r);
	slow_reader_stop(r);
	return ok;
}
