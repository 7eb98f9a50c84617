/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The emulated disk: its log, its faults and the disks that crashes leave.
 * What is in it is an emuimage.
 */
#include "tests/support/emudev.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/emuimage.h"

#define SECTOR_BYTES 512u
#define SECTORS_PER_BLOCK (BLOCK_BYTES / SECTOR_BYTES)

struct event {
	enum emudev_event_type type;
	block_t block;
	uint64_t nr;
	struct emublock *data;
};

struct log {
	bool running;
	struct event *event;
	uint64_t nr, space;
	struct emuimage base; /* before the first event */
	/* Up to a flush, remembered for the next crash image. */
	struct emuimage durable;
	uint64_t durable_events;
};

struct fault {
	uint64_t nth, nr_calls; /* 0 calls: none */
	int err;
};

struct emudev {
	struct container c;
	pthread_mutex_t lock;
	/* All under lock. */
	bool open;
	bool off;
	uint64_t events_left; /* until the power is cut */
	uint64_t host_limit;
	struct emuimage image;
	struct log log;
	struct fault fault[EMUDEV_OP_NR];
	uint64_t nr_calls[EMUDEV_OP_NR];
};

static struct emudev *of(struct container *c)
{
	return (struct emudev *)c;
}

static void lock(const struct emudev *d)
{
	pthread_mutex_lock((pthread_mutex_t *)&d->lock);
}

static void unlock(const struct emudev *d)
{
	pthread_mutex_unlock((pthread_mutex_t *)&d->lock);
}

static void *must(void *p)
{
	if (!p) {
		fputs("emulated disk: no memory\n", stderr);
		abort();
	}
	return p;
}

/* The log */

static void log_clear(struct log *l)
{
	for (uint64_t i = 0; i < l->nr; i++)
		emublock_put(l->event[i].data);
	l->nr = 0;
	emuimage_destroy(&l->base);
	emuimage_destroy(&l->durable);
	l->durable_events = 0;
}

static void log_restart(struct log *l, const struct emuimage *now)
{
	log_clear(l);
	emuimage_clone(&l->base, now);
	emuimage_clone(&l->durable, now);
}

static void log_add(struct log *l, struct event e)
{
	if (!l->running)
		return;
	if (l->nr == l->space) {
		l->space = l->space ? 2 * l->space : 256;
		l->event =
			must(realloc(l->event, l->space * sizeof(*l->event)));
	}
	emublock_get(e.data);
	l->event[l->nr++] = e;
}

static void apply(struct emuimage *i, const struct event *e)
{
	if (e->type == EMUDEV_GROW)
		emuimage_grow(i, e->nr);
	else if (e->type == EMUDEV_WRITE)
		emuimage_set(i, e->block, e->data);
}

/* Bring l->durable to the last flush among the first @nr events. */
static void log_seek(struct log *l, uint64_t nr)
{
	if (l->durable_events > nr) {
		emuimage_destroy(&l->durable);
		emuimage_clone(&l->durable, &l->base);
		l->durable_events = 0;
	}

	for (uint64_t i = l->durable_events; i < nr; i++) {
		if (l->event[i].type != EMUDEV_FLUSH)
			continue;
		while (l->durable_events <= i)
			apply(&l->durable, &l->event[l->durable_events++]);
	}
}

/* What a crash leaves */

/* splitmix64: small, and any seed will do. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* How likely things are, of 16. */
struct odds {
	uint64_t state;
	unsigned int keep, tear, spoil;
};

static bool happens(struct odds *o, unsigned int of_16)
{
	return draw(&o->state) % 16 < of_16;
}

/*
 * With even odds alone, all of many writes would hardly ever be there but one,
 * or the other way round; yet these are what hurts.
 */
static struct odds odds_of(enum emudev_policy policy, uint64_t seed)
{
	static const unsigned int keep[] = { 1, 4, 8, 12, 15 };
	static const unsigned int tear[] = { 0, 2, 8 };
	struct odds o = { .state = seed };

	o.keep = keep[draw(&o.state) % 5];
	o.tear = tear[draw(&o.state) % 3];
	o.spoil = policy == EMUDEV_REORDER_BAD ? 2 : 0;
	return o;
}

static struct emublock *torn(struct odds *o, const struct emublock *was,
			     const struct emublock *is)
{
	uint64_t pieces = draw(&o->state);
	struct emublock *b = emublock_new(was ? was->bytes : NULL);

	for (unsigned int i = 0; i < SECTORS_PER_BLOCK; i++)
		if (pieces >> i & 1)
			memcpy(b->bytes + i * SECTOR_BYTES,
			       is->bytes + i * SECTOR_BYTES, SECTOR_BYTES);
	return b;
}

static void crash_write(struct emuimage *i, const struct event *e,
			struct odds *o)
{
	struct emublock *was, *mixed;

	/* Written behind an end that did not survive. */
	if (e->block >= i->nr_blocks)
		return;

	was = emuimage_at(i, e->block);
	if (happens(o, o->spoil)) {
		emuimage_set(i, e->block, &emublock_bad);
	} else if (happens(o, o->tear) && was != &emublock_bad) {
		mixed = torn(o, was, e->data);
		emuimage_set(i, e->block, mixed);
		emublock_put(mixed);
	} else if (happens(o, o->keep)) {
		emuimage_set(i, e->block, e->data);
	}
}

/* Apply to @i what was not yet flushed, as @policy has it. */
static void crash(struct emuimage *i, const struct event *e, uint64_t nr,
		  enum emudev_policy policy, uint64_t seed)
{
	struct odds o = odds_of(policy, seed);

	if (policy == EMUDEV_LOSE)
		return;
	for (uint64_t k = 0; k < nr; k++) {
		if (policy == EMUDEV_KEEP)
			apply(i, &e[k]);
		else if (e[k].type == EMUDEV_WRITE)
			crash_write(i, &e[k], &o);
		else if (happens(&o, o.keep))
			apply(i, &e[k]);
	}
}

static void image_after(struct emudev *d, uint64_t nr_events,
			enum emudev_policy policy, uint64_t seed,
			struct emuimage *out)
{
	struct log *l = &d->log;

	assert(l->running && nr_events <= l->nr);
	log_seek(l, nr_events);
	emuimage_clone(out, &l->durable);
	if (nr_events > l->durable_events)
		crash(out, l->event + l->durable_events,
		      nr_events - l->durable_events, policy, seed);
}

/* The container's functions */

/*
 * One call of @op begins: returns an injected error, or -EIO without power.
 */
static int begin_call(struct emudev *d, enum emudev_op op)
{
	struct fault *f = &d->fault[op];

	assert(d->open);
	if (d->off)
		return -EIO;
	d->nr_calls[op]++;
	if (f->nr_calls == 0)
		return 0;
	if (f->nth > 1) {
		f->nth--;
		return 0;
	}
	if (f->nr_calls != UINT64_MAX)
		f->nr_calls--;
	return f->err;
}

/* One event begins: is there still power for it? */
static bool has_power(struct emudev *d)
{
	if (d->off)
		return false;
	if (d->events_left == 0) {
		d->off = true;
		return false;
	}
	if (d->events_left != UINT64_MAX)
		d->events_left--;
	return true;
}

static int read_block(struct emudev *d, block_t block, uint8_t *out)
{
	const struct emublock *b = emuimage_at(&d->image, block);

	if (b == &emublock_bad)
		return -EIO;
	if (b)
		memcpy(out, b->bytes, BLOCK_BYTES);
	else
		memset(out, 0, BLOCK_BYTES);
	return 0;
}

static int dev_read(struct container *c, uint64_t offset, size_t len, void *buf)
{
	struct emudev *d = of(c);
	int err;

	lock(d);
	err = begin_call(d, EMUDEV_OP_READ);
	for (size_t at = 0; !err && at < len; at += BLOCK_BYTES)
		err = read_block(d, (offset + at) >> BLOCK_SHIFT,
				 (uint8_t *)buf + at);
	unlock(d);
	return err;
}

static int write_block(struct emudev *d, block_t block, const uint8_t *bytes)
{
	struct emublock *b;

	if (!has_power(d))
		return -EIO;
	b = emublock_new(bytes);
	emuimage_set(&d->image, block, b);
	log_add(&d->log, (struct event){ .type = EMUDEV_WRITE,
					 .block = block,
					 .data = b });
	emublock_put(b);
	return 0;
}

static int dev_write(struct container *c, uint64_t offset, size_t len,
		     const void *buf)
{
	struct emudev *d = of(c);
	int fault, err = 0;

	lock(d);
	fault = begin_call(d, EMUDEV_OP_WRITE);
	if (fault)
		len = len / 2 & ~(size_t)(BLOCK_BYTES - 1);
	for (size_t at = 0; !err && at < len; at += BLOCK_BYTES)
		err = write_block(d, (offset + at) >> BLOCK_SHIFT,
				  (const uint8_t *)buf + at);
	unlock(d);
	return fault ? fault : err;
}

static int dev_flush(struct container *c)
{
	struct emudev *d = of(c);
	int err;

	lock(d);
	err = begin_call(d, EMUDEV_OP_FLUSH);
	if (!err && !has_power(d))
		err = -EIO;
	if (!err)
		log_add(&d->log, (struct event){ .type = EMUDEV_FLUSH });
	unlock(d);
	return err;
}

static int grow(struct emudev *d, uint64_t size_bytes)
{
	if (size_bytes <= d->image.nr_blocks << BLOCK_SHIFT)
		return 0;
	if (size_bytes > d->host_limit)
		return -ENOSPC;
	if (!has_power(d))
		return -EIO;

	emuimage_grow(&d->image, size_bytes >> BLOCK_SHIFT);
	log_add(&d->log, (struct event){ .type = EMUDEV_GROW,
					 .nr = d->image.nr_blocks });
	container_grown(&d->c, size_bytes);
	return 0;
}

static int dev_back(struct container *c, uint64_t offset, uint64_t len)
{
	struct emudev *d = of(c);
	int err;

	lock(d);
	err = begin_call(d, EMUDEV_OP_BACK);
	if (!err)
		err = grow(d, offset + len);
	unlock(d);
	return err;
}

static int dev_host_free(struct container *c, uint64_t *bytes)
{
	struct emudev *d = of(c);
	uint64_t size;

	lock(d);
	size = d->image.nr_blocks << BLOCK_SHIFT;
	*bytes = d->host_limit > size ? d->host_limit - size : 0;
	unlock(d);
	return 0;
}

static void dev_close(struct container *c)
{
	struct emudev *d = of(c);

	lock(d);
	d->open = false;
	d->c.stats = NULL;
	unlock(d);
}

static const struct container_ops emudev_ops = {
	.read = dev_read,
	.write = dev_write,
	.flush = dev_flush,
	.back = dev_back,
	.host_free = dev_host_free,
	.close = dev_close,
};

struct container *emudev_container(struct emudev *d)
{
	d->open = true;
	d->c.read_only = false;
	return &d->c;
}

/* Making disks */

/* Takes over @image. */
static struct emudev *dev_of_image(struct emuimage image, uint64_t host_limit)
{
	struct emudev *d = must(calloc(1, sizeof(*d)));

	pthread_mutex_init(&d->lock, NULL);
	d->c.ops = &emudev_ops;
	d->c.size_bytes = image.nr_blocks << BLOCK_SHIFT;
	d->image = image;
	d->host_limit = host_limit;
	d->events_left = UINT64_MAX;
	d->log.running = true;
	log_restart(&d->log, &d->image);
	return d;
}

struct emudev *emudev_new(uint64_t size_bytes, uint64_t host_limit_bytes)
{
	struct emuimage image;

	assert(size_bytes % BLOCK_BYTES == 0);
	emuimage_init(&image, size_bytes >> BLOCK_SHIFT);
	return dev_of_image(image, host_limit_bytes);
}

void emudev_free(struct emudev *d)
{
	if (!d)
		return;
	log_clear(&d->log);
	free(d->log.event);
	emuimage_destroy(&d->image);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

struct emudev *emudev_clone(const struct emudev *d)
{
	struct emuimage image;

	lock(d);
	emuimage_clone(&image, &d->image);
	unlock(d);
	return dev_of_image(image, d->host_limit);
}

struct emudev *emudev_image_at(struct emudev *d, uint64_t nr_events,
			       enum emudev_policy policy, uint64_t seed)
{
	struct emuimage image;

	lock(d);
	image_after(d, nr_events, policy, seed, &image);
	unlock(d);
	return dev_of_image(image, d->host_limit);
}

/* The log, from outside */

uint64_t emudev_nr_events(const struct emudev *d)
{
	uint64_t nr;

	lock(d);
	nr = d->log.nr;
	unlock(d);
	return nr;
}

struct emudev_event emudev_event_at(const struct emudev *d, uint64_t index)
{
	struct emudev_event out;
	const struct event *e;

	lock(d);
	assert(index < d->log.nr);
	e = &d->log.event[index];
	out = (struct emudev_event){
		.type = e->type,
		.block = e->block,
		.nr = e->nr,
		.data = e->data ? e->data->bytes : NULL,
	};
	unlock(d);
	return out;
}

static void rebase(struct emudev *d)
{
	if (d->log.running)
		log_restart(&d->log, &d->image);
}

void emudev_rebase(struct emudev *d)
{
	lock(d);
	rebase(d);
	unlock(d);
}

void emudev_stop_log(struct emudev *d)
{
	lock(d);
	d->log.running = false;
	log_clear(&d->log);
	unlock(d);
}

void emudev_start_log(struct emudev *d)
{
	lock(d);
	d->log.running = true;
	rebase(d);
	unlock(d);
}

/* Power and faults */

void emudev_cut_after(struct emudev *d, uint64_t nr_events)
{
	lock(d);
	d->events_left = nr_events;
	unlock(d);
}

bool emudev_is_off(const struct emudev *d)
{
	bool off;

	lock(d);
	off = d->off;
	unlock(d);
	return off;
}

void emudev_power_on(struct emudev *d, enum emudev_policy policy, uint64_t seed)
{
	struct emuimage image;

	lock(d);
	image_after(d, d->log.nr, policy, seed, &image);
	emuimage_destroy(&d->image);
	d->image = image;
	d->c.size_bytes = image.nr_blocks << BLOCK_SHIFT;
	d->off = false;
	d->events_left = UINT64_MAX;
	memset(d->fault, 0, sizeof(d->fault));
	rebase(d);
	unlock(d);
}

void emudev_fail(struct emudev *d, enum emudev_op op, uint64_t nth,
		 uint64_t nr_calls, int err)
{
	assert(nth >= 1 && err < 0);
	lock(d);
	d->fault[op] = (struct fault){ nth, nr_calls, err };
	unlock(d);
}

uint64_t emudev_nr_calls(const struct emudev *d, enum emudev_op op)
{
	uint64_t nr;

	lock(d);
	nr = d->nr_calls[op];
	unlock(d);
	return nr;
}

void emudev_set_host_limit(struct emudev *d, uint64_t bytes)
{
	lock(d);
	d->host_limit = bytes;
	unlock(d);
}

void emudev_spoil(struct emudev *d, block_t block)
{
	lock(d);
	emuimage_set(&d->image, block, &emublock_bad);
	rebase(d);
	unlock(d);
}

/* Looking and tampering */

void emudev_peek(const struct emudev *d, block_t block,
		 uint8_t out[static BLOCK_BYTES])
{
	lock(d);
	if (read_block((struct emudev *)d, block, out))
		memset(out, 0, BLOCK_BYTES);
	unlock(d);
}

void emudev_poke(struct emudev *d, block_t block, size_t offset,
		 const void *bytes, size_t len)
{
	struct emublock *b = emublock_new(NULL);

	assert(offset <= BLOCK_BYTES && len <= BLOCK_BYTES - offset);
	emudev_peek(d, block, b->bytes);
	memcpy(b->bytes + offset, bytes, len);
	lock(d);
	emuimage_set(&d->image, block, b);
	rebase(d);
	unlock(d);
	emublock_put(b);
}

void emudev_flip_bit(struct emudev *d, block_t block, size_t bit)
{
	uint8_t bytes[BLOCK_BYTES];

	assert(bit < BLOCK_BYTES * 8);
	emudev_peek(d, block, bytes);
	bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	emudev_poke(d, block, bit / 8, bytes + bit / 8, 1);
}

static bool same_block(const struct emublock *a, const struct emublock *b)
{
	static const uint8_t zeros[BLOCK_BYTES];

	if (a == b)
		return true;
	if (a == &emublock_bad || b == &emublock_bad)
		return false;
	return memcmp(a ? a->bytes : zeros, b ? b->bytes : zeros,
		      BLOCK_BYTES) == 0;
}

bool emudev_equal(const struct emudev *a, const struct emudev *b)
{
	if (a->image.nr_blocks != b->image.nr_blocks)
		return false;
	for (block_t i = 0; i < a->image.nr_blocks; i++)
		if (!same_block(emuimage_at(&a->image, i),
				emuimage_at(&b->image, i)))
			return false;
	return true;
}

static int save_to(const struct emudev *d, int fd)
{
	uint64_t nr = d->image.nr_blocks;

	if (ftruncate(fd, (off_t)(nr << BLOCK_SHIFT)))
		return -errno;
	for (block_t i = 0; i < nr; i++) {
		const struct emublock *b = emuimage_at(&d->image, i);

		if (!b)
			continue;
		if (pwrite(fd, b->bytes, BLOCK_BYTES,
			   (off_t)(i << BLOCK_SHIFT)) != BLOCK_BYTES)
			return -EIO;
	}
	return 0;
}

int emudev_save(const struct emudev *d, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = save_to(d, fd);
	close(fd);
	return err;
}
