/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Superblocks: the only blocks of a container that are overwritten while they
 * count, and so written twice, to rings of 64 slots far apart: after any torn
 * write there is the other copy, and after any loss the commit before.
 */
#include "fs/super.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fs/container.h"
#include "fs/format.h"

#define NR_BLOCKS_MAX (1ull << 50) /* 4 EiB; so that sums never wrap */

static_assert(sizeof(struct disk_super) == BLOCK_BYTES,
	      "FORMAT.md, Superblock");
static_assert(sizeof(((struct disk_super_body *)0)->log) ==
		      SUPER_LOG_EXTENTS * sizeof(struct disk_super_extent),
	      "FORMAT.md, Superblock");

static const block_t ring_block[2] = { RING_A_BLOCK, RING_B_BLOCK };

static unsigned int slot_of(uint64_t commit)
{
	return (unsigned int)(commit % RING_SLOTS);
}

/* The sealed part */

static void encode_body(const struct super *sb, struct disk_super_body *d)
{
	memset(d, 0, sizeof(*d));
	d->commit = le64_of(sb->commit);
	d->base = le64_of(sb->base);
	d->nr_blocks = le64_of(sb->nr_blocks);
	d->limit_blocks = le64_of(sb->limit_blocks);
	d->header_sequence = le64_of(sb->header_sequence);
	d->compat = le64_of(sb->compat);
	d->ro_compat = le64_of(sb->ro_compat);
	d->incompat = le64_of(sb->incompat);
	d->flags = le32_of(sb->clean ? SUPER_FLAG_CLEAN : 0);
	ptr_encode(&sb->root, &d->root);
	ptr_encode(&sb->root, &d->root_again);

	d->anchor_position = le64_of(sb->anchor.position);
	d->anchor_sequence = le64_of(sb->anchor.sequence);
	memcpy(d->anchor_chain, sb->anchor.chain, sizeof(d->anchor_chain));
	d->nr_log = le32_of(sb->nr_log);
	for (unsigned int i = 0; i < sb->nr_log; i++) {
		d->log[i].first = le64_of(sb->log[i].first);
		d->log[i].nr = le64_of(sb->log[i].nr);
	}
}

static int decode_body(const struct disk_super_body *d, struct super *sb)
{
	memset(sb, 0, sizeof(*sb));
	sb->commit = le64_get(d->commit);
	sb->base = le64_get(d->base);
	sb->nr_blocks = le64_get(d->nr_blocks);
	sb->limit_blocks = le64_get(d->limit_blocks);
	sb->header_sequence = le64_get(d->header_sequence);
	sb->compat = le64_get(d->compat);
	sb->ro_compat = le64_get(d->ro_compat);
	sb->incompat = le64_get(d->incompat);
	sb->clean = le32_get(d->flags) & SUPER_FLAG_CLEAN;

	sb->anchor.position = le64_get(d->anchor_position);
	sb->anchor.sequence = le64_get(d->anchor_sequence);
	memcpy(sb->anchor.chain, d->anchor_chain, sizeof(sb->anchor.chain));
	sb->nr_log = le32_get(d->nr_log);
	if (sb->nr_log > SUPER_LOG_EXTENTS)
		return -EUCLEAN;
	for (unsigned int i = 0; i < sb->nr_log; i++) {
		sb->log[i].first = le64_get(d->log[i].first);
		sb->log[i].nr = le64_get(d->log[i].nr);
	}
	return ptr_decode(&d->root, &sb->root);
}

/*
 * Is [first, first + nr) inside the container, and clear of headers and
 * rings?
 */
static bool in_free_range(const struct super *sb, block_t first, uint64_t nr)
{
	if (nr == 0 || first > sb->nr_blocks || nr > sb->nr_blocks - first)
		return false;
	if (first < FIXED_BLOCKS)
		return false;
	return first >= HEADER_B_BLOCK + FIXED_BLOCKS ||
	       first + nr <= HEADER_B_BLOCK;
}

static bool node_in_range(const struct super *sb, const struct ptr *p)
{
	uint64_t nr = 1ull << (p->log2_bytes - BLOCK_SHIFT);

	return in_free_range(sb, p->block, nr) &&
	       (p->second == 0 || in_free_range(sb, p->second, nr));
}

static int validate_super(const struct super *sb)
{
	if (sb->commit == 0 || sb->base >= sb->commit ||
	    sb->header_sequence == 0)
		return -EUCLEAN;
	if (sb->nr_blocks < CONTAINER_BLOCKS_MIN ||
	    sb->nr_blocks > NR_BLOCKS_MAX || sb->limit_blocks > NR_BLOCKS_MAX)
		return -EUCLEAN;
	if (sb->root.block == 0 || sb->root.birth > sb->commit ||
	    !node_in_range(sb, &sb->root))
		return -EUCLEAN;

	for (unsigned int i = 0; i < sb->nr_log; i++)
		if (!in_free_range(sb, sb->log[i].first, sb->log[i].nr))
			return -EUCLEAN;
	return 0;
}

/* What has only one right form: second root, flags, unused bytes. */
static int validate_body(const struct disk_super_body *d)
{
	static const struct disk_super_body none;
	unsigned int nr_log = le32_get(d->nr_log);

	if (memcmp(&d->root, &d->root_again, sizeof(d->root)))
		return -EUCLEAN;
	if (le32_get(d->flags) & ~SUPER_FLAG_CLEAN)
		return -EUCLEAN;
	if (nr_log > SUPER_LOG_EXTENTS ||
	    memcmp(d->log + nr_log, none.log + nr_log,
		   (SUPER_LOG_EXTENTS - nr_log) * sizeof(d->log[0])))
		return -EUCLEAN;
	return memcmp(d->zero, none.zero, sizeof(d->zero)) ? -EUCLEAN : 0;
}

void super_to_text(const struct super *sb, FILE *out)
{
	fprintf(out,
		"superblock: commit %" PRIu64 "%s, root at block %" PRIu64
		" (again at %" PRIu64 ", level %u), %" PRIu64
		" blocks, limit %" PRIu64 ", header sequence %" PRIu64 "\n",
		sb->commit, sb->clean ? " (clean)" : "", sb->root.block,
		sb->root.second, sb->root.level, sb->nr_blocks,
		sb->limit_blocks, sb->header_sequence);
	fprintf(out,
		"features: compatible %" PRIx64
		", read-only compatible %" PRIx64 ", incompatible %" PRIx64
		"\n",
		sb->compat, sb->ro_compat, sb->incompat);
	for (unsigned int i = 0; i < sb->nr_log; i++)
		fprintf(out, "log: blocks %" PRIu64 " to %" PRIu64 "\n",
			sb->log[i].first, sb->log[i].first + sb->log[i].nr - 1);
}

/* Sealing and opening */

int super_seal(struct super *sb, const uint8_t uuid[static UUID_BYTES],
	       const struct header_keys *keys, struct nonce_source *src,
	       uint8_t out[static BLOCK_BYTES])
{
	const struct key_set *set = &keys->set[keys->active];
	struct disk_super *d = (struct disk_super *)out;
	struct disk_super_body body;
	int err;

	assert(sb->nr_log <= SUPER_LOG_EXTENTS);
	encode_body(sb, &body);

	/* The nonce is drawn in sealing: what it is goes in afterwards. */
	memset(&d->clear, 0, sizeof(d->clear));
	memcpy(d->clear.magic, SUPER_MAGIC, sizeof(d->clear.magic));
	memcpy(d->clear.uuid, uuid, sizeof(d->clear.uuid));
	d->clear.slot = le32_of(slot_of(sb->commit));
	d->clear.key_id = le16_of(set->key_id);
	err = seal_message(set->super, src, &d->clear,
			   offsetof(struct disk_super_clear, session), &body,
			   sizeof(body), d->sealed, &sb->nonce, sb->tag);
	if (err)
		return err;

	d->clear.session = le64_of(sb->nonce.session);
	d->clear.counter = le32_of(sb->nonce.counter);
	memcpy(d->tag, sb->tag, sizeof(d->tag));
	return 0;
}

static bool has_magic(const uint8_t in[static BLOCK_BYTES])
{
	return memcmp(in, SUPER_MAGIC, 8) == 0;
}

int super_open(struct super *sb, const uint8_t uuid[static UUID_BYTES],
	       const struct header_keys *keys, unsigned int slot,
	       const uint8_t in[static BLOCK_BYTES])
{
	const struct disk_super *d = (const struct disk_super *)in;
	struct disk_super_body body;
	const struct key_set *set;
	struct nonce nonce;
	int err;

	if (!has_magic(in) || memcmp(d->clear.uuid, uuid, UUID_BYTES))
		return -ENOMSG;
	if (le32_get(d->clear.slot) != slot || le16_get(d->clear.zero1) ||
	    le32_get(d->clear.zero2))
		return -EUCLEAN;
	set = header_key_set(keys, le16_get(d->clear.key_id));
	nonce.session = le64_get(d->clear.session);
	nonce.counter = le32_get(d->clear.counter);
	if (!set || nonce.session >> 63)
		return -EBADMSG;

	err = seal_open(set->super, nonce, &d->clear,
			offsetof(struct disk_super_clear, session), d->sealed,
			sizeof(body), &body, d->tag);
	if (!err)
		err = validate_body(&body);
	if (!err)
		err = decode_body(&body, sb);
	if (!err)
		err = validate_super(sb);
	if (!err && slot_of(sb->commit) != slot)
		err = -EUCLEAN;
	if (err)
		return err;

	sb->nonce = nonce;
	memcpy(sb->tag, d->tag, sizeof(sb->tag));
	return 0;
}

/* Reading the rings */

/* The list of superblocks found so far: newest first, each commit once. */
struct found {
	struct super *list;
	unsigned int max, nr, unreadable;
};

static void add_found(struct found *f, const struct super *sb)
{
	unsigned int at = 0;

	while (at < f->nr && f->list[at].commit > sb->commit)
		at++;
	if (at == f->max || (at < f->nr && f->list[at].commit == sb->commit))
		return;

	if (f->nr == f->max)
		f->nr--;
	memmove(f->list + at + 1, f->list + at,
		(f->nr - at) * sizeof(*f->list));
	f->list[at] = *sb;
	f->nr++;
}

static void look_at_slot(struct found *f, const uint8_t *uuid,
			 const struct header_keys *keys, unsigned int slot,
			 const uint8_t in[static BLOCK_BYTES])
{
	struct super sb;
	int err = super_open(&sb, uuid, keys, slot, in);

	if (!err)
		add_found(f, &sb);
	else if (has_magic(in))
		f->unreadable++;
}

/*
 * A ring in one read; if that fails, slot by slot, so that one bad sector
 * hides one superblock only.
 */
static void read_ring(struct found *f, block_t ring, const uint8_t *uuid,
		      const struct header_keys *keys, struct container *c,
		      uint8_t *buf)
{
	bool whole = container_read(c, ring, RING_SLOTS, buf) == 0;

	for (unsigned int slot = 0; slot < RING_SLOTS; slot++) {
		uint8_t *in = buf + slot * BLOCK_BYTES;

		if (!whole && container_read(c, ring + slot, 1, in))
			f->unreadable++;
		else
			look_at_slot(f, uuid, keys, slot, in);
	}
}

int super_read_all(struct super *out, unsigned int max, unsigned int *nr,
		   unsigned int *unreadable,
		   const uint8_t uuid[static UUID_BYTES],
		   const struct header_keys *keys, struct container *c)
{
	struct found f = { .list = out, .max = max };
	uint8_t *buf = malloc(RING_SLOTS * BLOCK_BYTES);

	if (!buf)
		return -ENOMEM;
	for (unsigned int i = 0; i < 2; i++)
		read_ring(&f, ring_block[i], uuid, keys, c, buf);
	free(buf);
	*nr = f.nr;
	*unreadable = f.unreadable;
	return 0;
}

/* Writing */

/* What a slot of one ring says about who wrote it last. */
enum slot_owner {
	SLOT_OURS,    /* the very superblock we know */
	SLOT_FOREIGN, /* a commit of somebody else, since then */
	SLOT_OTHER,   /* older, damaged, or never written */
	SLOT_UNREADABLE,
};

static enum slot_owner look_who_wrote(const struct super *prev,
				      const uint8_t *uuid,
				      const struct header_keys *keys,
				      struct container *c, block_t ring)
{
	unsigned int slot = slot_of(prev->commit);
	uint8_t in[BLOCK_BYTES];
	struct super sb;

	if (container_read(c, ring + slot, 1, in))
		return SLOT_UNREADABLE;
	if (super_open(&sb, uuid, keys, slot, in))
		return SLOT_OTHER;
	if (sb.commit != prev->commit)
		return sb.commit > prev->commit ? SLOT_FOREIGN : SLOT_OTHER;
	return sb.nonce.session == prev->nonce.session &&
			       sb.nonce.counter == prev->nonce.counter &&
			       memcmp(sb.tag, prev->tag, sizeof(sb.tag)) == 0
		       ? SLOT_OURS
		       : SLOT_FOREIGN;
}

/*
 * Is the superblock we know still the last one?  One ring is enough to say
 * yes: the other may have missed a write in a crash.  Any newer one says no.
 */
static int check_prev(const struct super *prev, const uint8_t *uuid,
		      const struct header_keys *keys, struct container *c)
{
	enum slot_owner a, b;

	a = look_who_wrote(prev, uuid, keys, c, RING_A_BLOCK);
	b = look_who_wrote(prev, uuid, keys, c, RING_B_BLOCK);
	if (a == SLOT_FOREIGN || b == SLOT_FOREIGN)
		return -ESTALE;
	if (a == SLOT_OURS || b == SLOT_OURS)
		return 0;
	return a == SLOT_UNREADABLE && b == SLOT_UNREADABLE ? -EIO : -ESTALE;
}

/* Would @sb overwrite its own commit, or a later one? */
static int check_target(const struct super *sb, const uint8_t *uuid,
			const struct header_keys *keys, struct container *c)
{
	unsigned int slot = slot_of(sb->commit);
	uint8_t in[BLOCK_BYTES];
	struct super old;

	for (unsigned int i = 0; i < 2; i++) {
		if (container_read(c, ring_block[i] + slot, 1, in))
			continue;
		if (super_open(&old, uuid, keys, slot, in) == 0 &&
		    old.commit >= sb->commit)
			return -ESTALE;
	}
	return 0;
}

int super_write(struct super *sb, const struct super *prev,
		const uint8_t uuid[static UUID_BYTES],
		const struct header_keys *keys, struct nonce_source *src,
		struct container *c)
{
	unsigned int slot = slot_of(sb->commit);
	uint8_t out[BLOCK_BYTES];
	int err = 0;

	assert(sb->commit > (prev ? prev->commit : 0));
	if (prev)
		err = check_prev(prev, uuid, keys, c);
	if (!err && prev)
		err = check_target(sb, uuid, keys, c);
	if (!err)
		err = super_seal(sb, uuid, keys, src, out);

	for (unsigned int i = 0; !err && i < 2; i++)
		err = container_write(c, ring_block[i] + slot, 1, out);
	return err;
}

/* Changing the header */

/* The copy that is damaged, or else older: the one to write first. */
static unsigned int older_copy(const struct header *h)
{
	if (h->copy_ok[0] != h->copy_ok[1])
		return h->copy_ok[0];
	return h->copy_sequence[0] >= h->copy_sequence[1];
}

static int write_and_flush_copy(struct header *h,
				const struct header_keys *keys,
				struct container *c, unsigned int copy)
{
	int err = header_write_copy(h, keys, c, copy);

	return err ? err : container_flush(c);
}

/*
 * At each instant one copy is whole, and a superblock never names a sequence
 * that is not yet durable; once it names the new one, a copy of the old is
 * known to be old.
 */
int super_replace_header(struct header *h, const struct header_keys *keys,
			 struct nonce_source *src, struct container *c)
{
	unsigned int nr, unreadable, first = older_copy(h);
	struct super prev, next;
	int err;

	err = super_read_all(&prev, 1, &nr, &unreadable, h->uuid, keys, c);
	if (err)
		return err;
	if (nr == 0)
		return -EUCLEAN;

	/* Also above that of a header that was put back to an older one. */
	if (h->sequence < prev.header_sequence)
		h->sequence = prev.header_sequence;
	h->sequence++;
	err = write_and_flush_copy(h, keys, c, first);
	if (err)
		return err;

	next = prev;
	next.commit++;
	next.header_sequence = h->sequence;
	err = super_write(&next, &prev, h->uuid, keys, src, c);
	if (!err)
		err = container_flush(c);
	if (err)
		return err;

	return write_and_flush_copy(h, keys, c, !first);
}
