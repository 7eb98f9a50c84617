/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/testvol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/lockstep.h"

#define MIB (UINT64_C(1) << 20)
#define DISK_BYTES ((uint64_t)CONTAINER_BLOCKS_MIN * BLOCK_BYTES)
#define NR_HANDLES 4 /* of each key: as many threads encrypt at once */

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-err));
	abort();
}

static size_t nr_schemes(void)
{
	size_t nr = 0;

	while (scheme_at(nr))
		nr++;
	return nr;
}

void testvol_shape_random(struct testvol_shape *s, struct rng *r)
{
	static const size_t caches[] = { 64 << 10, 64 << 10, 256 << 10, 0 };
	static const unsigned int items[] = { 4, 5, 6, 8, 0 };

	*s = (struct testvol_shape){
		.scheme = scheme_at(rng_below(r, nr_schemes())),
		.sector_bytes = rng_one_in(r, 2) ? 512 : 4096,
		.integrity = !rng_one_in(r, 3),
		.host_bytes = 1024 * MIB,
		.cache_bytes = caches[rng_below(r, 4)],
		.max_node_items = items[rng_below(r, 5)],
		.atime = VOLUME_NOATIME,
	};
}

void testvol_shape_print(const struct testvol_shape *s, char *out, size_t size)
{
	snprintf(out, size,
		 "%s, sectors of %u, integrity %s, limit %" PRIu64
		 " blocks, host %" PRIu64 " MiB, cache %zu KiB, %u items",
		 s->scheme->name, s->sector_bytes, s->integrity ? "on" : "off",
		 s->limit_blocks, s->host_bytes / MIB, s->cache_bytes >> 10,
		 s->max_node_items);
}

void testvol_make(struct testvol *t, const struct testvol_shape *s)
{
	struct header_params p = {
		.label = "test",
		.scheme = s->scheme,
		.sector_bytes = s->sector_bytes,
		.integrity = s->integrity,
		.cost = { 1, 8, 1 },
		.kind = KEYSLOT_PASSWORD,
	};
	struct volume_format_params f = { .limit_blocks = s->limit_blocks };
	auto_secret struct secret password = SECRET_EMPTY;
	enum secret_memory memory;
	struct container *c;

	memset(t, 0, sizeof(*t));
	t->shape = *s;
	must(cipher_init(0, &memory), "cipher_init");
	must(nonce_source_init(&t->src), "nonce_source_init");
	must(secret_copy(&password, "password", 8), "secret_copy");
	must(header_new(&t->h, &t->keys, &p, &password, &t->src, NR_HANDLES),
	     "header_new");
	t->d = emudev_new(DISK_BYTES, s->host_bytes);
	c = emudev_container(t->d);
	must(volume_format(c, &t->h, &t->keys, &t->src, &f), "volume_format");
	container_close(c);
	emudev_rebase(t->d);
}

void testvol_destroy(struct testvol *t)
{
	testvol_abandon(t);
	header_keys_destroy(&t->keys);
	header_destroy(&t->h);
	nonce_source_destroy(&t->src);
	emudev_free(t->d);
	memset(t, 0, sizeof(*t));
}

static void print_line(void *arg, const char *line)
{
	fprintf(stderr, "  %s: %s\n", (const char *)arg, line);
}

int testvol_open_image(const struct testvol *t, struct emudev *d,
		       struct volume **out)
{
	const struct volume_options o = {
		.cache_bytes = t->shape.cache_bytes,
		.commit_seconds = t->shape.commit_seconds,
		.atime = t->shape.atime,
		.max_node_items = t->shape.max_node_items,
		.report = t->quiet ? NULL : print_line,
		.report_arg = (void *)"volume",
		.now = testclock_now,
	};

	return volume_open(out, emudev_container(d), &t->h, &t->keys, &o);
}

int testvol_open(struct testvol *t)
{
	int err = testvol_open_image(t, t->d, &t->v);

	if (err) {
		fprintf(stderr, "opening: %s\n", strerror(-err));
		t->v = NULL;
	}
	return err;
}

int testvol_close(struct testvol *t)
{
	int err = volume_close(t->v);

	t->v = NULL;
	if (err)
		fprintf(stderr, "closing: %s\n", strerror(-err));
	return err;
}

void testvol_abandon(struct testvol *t)
{
	if (t->v)
		volume_abandon(t->v);
	t->v = NULL;
}

bool testvol_check(const struct testvol *t, struct emudev *d,
		   struct check_result *r)
{
	const struct check_options o = {
		.data = true,
		.report = print_line,
		.report_arg = (void *)"check",
	};
	int err;

	err = check_container(emudev_container(d), &t->h, &t->keys, &o, r);
	if (err)
		fprintf(stderr, "check: %s\n", strerror(-err));
	else if (r->errors)
		fprintf(stderr, "check: %" PRIu64 " findings\n", r->errors);
	return !err && !r->errors;
}
