/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Header areas, between bytes and struct header: the only place that touches
 * disk_header, disk_key_row and disk_keyslot.
 *
 * Nothing here is authenticated yet when it is decoded, so everything that is
 * used before unlocking is bounded here.  (Costs of key slots are not: one
 * hostile slot shall not keep the others from opening; who tries them bounds
 * them.)
 */
#include "fs/header_format.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fs/format.h"

#define NODE_LOG2_MIN 14
#define NODE_LOG2_MAX 16

static_assert(HEADER_AREA_BYTES == HEADER_BLOCKS * BLOCK_BYTES,
	      "FORMAT.md, Container");
static_assert(HEADER_KEY_TABLE + HEADER_KEYS * sizeof(struct disk_key_row) <=
		      HEADER_SLOT_TABLE,
	      "FORMAT.md, Header");
static_assert(HEADER_SLOT_TABLE + HEADER_SLOTS * HEADER_SLOT_BYTES <=
		      HEADER_AREA_BYTES,
	      "FORMAT.md, Header");

static struct disk_header *raw_header(const struct header *h)
{
	return (struct disk_header *)h->raw;
}

static struct disk_key_row *raw_row(const struct header *h, unsigned int i)
{
	return (struct disk_key_row *)(h->raw + HEADER_KEY_TABLE) + i;
}

uint8_t *header_raw_slot(const struct header *h, unsigned int index)
{
	return h->raw + HEADER_SLOT_TABLE + index * HEADER_SLOT_BYTES;
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

/* What protects the area */

/* SHA-256 of the area with the checksum's field zero. */
static void compute_checksum(const struct header *h, uint8_t sum[static 32])
{
	struct disk_header *d = raw_header(h);
	uint8_t saved[32];

	memcpy(saved, d->checksum, sizeof(saved));
	memset(d->checksum, 0, sizeof(d->checksum));
	hash_sha256(h->raw, HEADER_AREA_BYTES, sum);
	memcpy(d->checksum, saved, sizeof(saved));
}

void header_set_checksum(struct header *h)
{
	uint8_t sum[32];

	compute_checksum(h, sum);
	memcpy(raw_header(h)->checksum, sum, sizeof(sum));
}

void header_get_mac(const struct header *h, uint8_t mac[static HMAC_BYTES])
{
	memcpy(mac, raw_header(h)->mac, HMAC_BYTES);
}

void header_set_mac(struct header *h, const uint8_t mac[static HMAC_BYTES])
{
	memcpy(raw_header(h)->mac, mac, HMAC_BYTES);
}

void header_mac_pieces(const struct header *h,
		       struct hmac_piece pieces[static HEADER_MAC_PIECES])
{
	static const uint8_t zeros[64];
	const size_t before = offsetof(struct disk_header, checksum);
	const size_t after = before + sizeof(zeros);

	static_assert(offsetof(struct disk_header, mac) ==
			      offsetof(struct disk_header, checksum) + 32,
		      "checksum and MAC lie side by side");

	pieces[0] = (struct hmac_piece){ h->raw, before };
	pieces[1] = (struct hmac_piece){ zeros, sizeof(zeros) };
	pieces[2] = (struct hmac_piece){ h->raw + after,
					 HEADER_AREA_BYTES - after };
}

/* The fixed part */

/* C0 and C1 control characters could command the terminal of who looks. */
bool header_label_ok(const char *label)
{
	const uint8_t *s = (const uint8_t *)label;
	size_t len = strnlen(label, LABEL_BYTES_MAX + 1);

	if (len > LABEL_BYTES_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < 0x20 || s[i] == 0x7f)
			return false;
		if (s[i] == 0xc2 && s[i + 1] >= 0x80 && s[i + 1] < 0xa0)
			return false;
	}
	return true;
}

static int decode_fixed(struct header *h)
{
	const struct disk_header *d = raw_header(h);

	h->format_version = le32_get(d->format_version);
	h->compat = le64_get(d->compat);
	h->ro_compat = le64_get(d->ro_compat);
	h->incompat = le64_get(d->incompat);
	memcpy(h->uuid, d->uuid, sizeof(h->uuid));
	h->sequence = le64_get(d->sequence);
	if (h->format_version != FORMAT_VERSION ||
	    h->incompat & ~FEATURES_INCOMPAT)
		return -EOPNOTSUPP;

	memcpy(h->label, d->label, sizeof(h->label));
	h->node_log2 = d->node_log2;
	return 0;
}

static int validate_fixed(const struct header *h)
{
	const struct disk_header *d = raw_header(h);
	size_t len = strnlen(h->label, sizeof(h->label));

	if (le32_get(d->area_bytes) != HEADER_AREA_BYTES)
		return -EUCLEAN;
	if (!is_zero(d->zero1, sizeof(d->zero1)) ||
	    !is_zero(d->zero2, sizeof(d->zero2)))
		return -EUCLEAN;
	if (!header_label_ok(h->label) ||
	    !is_zero(d->label + len, sizeof(d->label) - len))
		return -EUCLEAN;
	if (h->node_log2 < NODE_LOG2_MIN || h->node_log2 > NODE_LOG2_MAX)
		return -EUCLEAN;
	return h->sequence ? 0 : -EUCLEAN;
}

static void encode_fixed(struct header *h)
{
	struct disk_header *d = raw_header(h);

	memset(d, 0, sizeof(*d));
	memcpy(d->magic, HEADER_MAGIC, sizeof(d->magic));
	d->format_version = le32_of(h->format_version);
	d->area_bytes = le32_of(HEADER_AREA_BYTES);
	d->compat = le64_of(h->compat);
	d->ro_compat = le64_of(h->ro_compat);
	d->incompat = le64_of(h->incompat);
	memcpy(d->uuid, h->uuid, sizeof(d->uuid));
	d->sequence = le64_of(h->sequence);
	memcpy(d->label, h->label, strlen(h->label));
	d->node_log2 = (uint8_t)h->node_log2;
}

/* Rows of the key table */

static void decode_row(const struct disk_key_row *d, struct header_key *k)
{
	k->key_id = le16_get(d->key_id);
	k->state = le16_get(d->state);
	k->scheme = le16_get(d->scheme);
	k->sector_bytes = le32_get(d->sector_bytes);
	k->integrity = d->integrity;
	k->nonce.session = le64_get(d->session);
	k->nonce.counter = le32_get(d->counter);
	memcpy(k->sealed, d->sealed, sizeof(k->sealed));
	memcpy(k->tag, d->tag, sizeof(k->tag));
}

static int validate_row(const struct disk_key_row *d,
			const struct header_key *k)
{
	if (k->key_id == 0)
		return is_zero((const uint8_t *)d, sizeof(*d)) ? 0 : -EUCLEAN;

	if (k->state != HEADER_KEY_ACTIVE && k->state != HEADER_KEY_OLD)
		return -EUCLEAN;
	if (k->sector_bytes != 512 && k->sector_bytes != 4096)
		return -EUCLEAN;
	if (d->integrity > 1 || d->zero1 || k->nonce.session >> 63 ||
	    !is_zero(d->zero2, sizeof(d->zero2)))
		return -EUCLEAN;
	return scheme_by_id(k->scheme) ? 0 : -EOPNOTSUPP;
}

static void encode_row(const struct header_key *k, struct disk_key_row *d)
{
	memset(d, 0, sizeof(*d));
	if (k->key_id == 0)
		return;

	d->key_id = le16_of(k->key_id);
	d->state = le16_of(k->state);
	d->scheme = le16_of(k->scheme);
	d->integrity = k->integrity;
	d->sector_bytes = le32_of(k->sector_bytes);
	d->counter = le32_of(k->nonce.counter);
	d->session = le64_of(k->nonce.session);
	memcpy(d->sealed, k->sealed, sizeof(d->sealed));
	memcpy(d->tag, k->tag, sizeof(d->tag));
}

/* Each id once, and exactly one for new writes. */
static int validate_table(const struct header *h)
{
	unsigned int nr_active = 0;

	for (unsigned int i = 0; i < HEADER_KEYS; i++) {
		const struct header_key *k = &h->key[i];

		if (k->key_id && k->state == HEADER_KEY_ACTIVE)
			nr_active++;
		for (unsigned int j = 0; k->key_id && j < i; j++)
			if (h->key[j].key_id == k->key_id)
				return -EUCLEAN;
	}
	return nr_active == 1 ? 0 : -EUCLEAN;
}

static int decode_table(struct header *h)
{
	for (unsigned int i = 0; i < HEADER_KEYS; i++) {
		const struct disk_key_row *d = raw_row(h, i);
		int err;

		decode_row(d, &h->key[i]);
		err = validate_row(d, &h->key[i]);
		if (err)
			return err;
	}
	return validate_table(h);
}

/* Key slots */

static bool slot_kind_known(unsigned int kind)
{
	return (kind >= KEYSLOT_PASSWORD &&
		kind <= KEYSLOT_PASSWORD_KEY_FILE) ||
	       kind == KEYSLOT_EXTERNAL;
}

static void decode_slot(const struct disk_keyslot *d, struct keyslot *s)
{
	memset(s, 0, sizeof(*s));
	s->kind = le16_get(d->kind);
	/* An unused one is random; of later kinds only the kind is known. */
	if (!slot_kind_known(s->kind))
		return;

	s->kdf = le16_get(d->kdf);
	s->key_id = le16_get(d->key_id);
	s->cost.passes = le32_get(d->passes);
	s->cost.memory_kib = le32_get(d->memory_kib);
	s->cost.lanes = le32_get(d->lanes);
	s->nonce.session = le64_get(d->session);
	s->nonce.counter = le32_get(d->counter);
	memcpy(s->salt, d->salt, sizeof(s->salt));
	memcpy(s->wrapped, d->wrapped, sizeof(s->wrapped));
	memcpy(s->tag, d->tag, sizeof(s->tag));
}

static int validate_slot(const struct disk_keyslot *d, const struct keyslot *s)
{
	if (!slot_kind_known(s->kind))
		return 0;
	if (le16_get(d->zero1) || s->nonce.session >> 63 || s->key_id == 0)
		return -EUCLEAN;
	return 0;
}

static void encode_slot(const struct keyslot *s, struct disk_keyslot *d)
{
	d->kind = le16_of(s->kind);
	if (!slot_kind_known(s->kind))
		return;

	d->kdf = le16_of(s->kdf);
	d->key_id = le16_of(s->key_id);
	d->zero1 = le16_of(0);
	d->passes = le32_of(s->cost.passes);
	d->memory_kib = le32_of(s->cost.memory_kib);
	d->lanes = le32_of(s->cost.lanes);
	d->counter = le32_of(s->nonce.counter);
	d->session = le64_of(s->nonce.session);
	memcpy(d->salt, s->salt, sizeof(d->salt));
	memcpy(d->wrapped, s->wrapped, sizeof(d->wrapped));
	memcpy(d->tag, s->tag, sizeof(d->tag));
}

static int decode_slots(struct header *h)
{
	for (unsigned int i = 0; i < HEADER_SLOTS; i++) {
		const struct disk_keyslot *d =
			(const struct disk_keyslot *)header_raw_slot(h, i);
		int err;

		decode_slot(d, &h->slot[i]);
		err = validate_slot(d, &h->slot[i]);
		if (err)
			return err;
	}
	return 0;
}

/* The whole */

int header_decode(struct header *h)
{
	const struct disk_header *d = raw_header(h);
	uint8_t sum[32];
	int err;

	if (memcmp(d->magic, HEADER_MAGIC, sizeof(d->magic)))
		return -ENOMSG;
	compute_checksum(h, sum);
	if (memcmp(d->checksum, sum, sizeof(sum)))
		return -EUCLEAN;

	err = decode_fixed(h);
	if (!err)
		err = validate_fixed(h);
	if (!err)
		err = decode_table(h);
	if (!err)
		err = decode_slots(h);
	return err;
}

void header_encode(struct header *h)
{
	encode_fixed(h);
	for (unsigned int i = 0; i < HEADER_KEYS; i++)
		encode_row(&h->key[i], raw_row(h, i));
	for (unsigned int i = 0; i < HEADER_SLOTS; i++)
		encode_slot(&h->slot[i],
			    (struct disk_keyslot *)header_raw_slot(h, i));
}

static const char *slot_kind_name(unsigned int kind)
{
	static const char *const names[] = {
		[KEYSLOT_PASSWORD] = "password",
		[KEYSLOT_RECOVERY] = "recovery key",
		[KEYSLOT_KEY_FILE] = "key file",
		[KEYSLOT_PASSWORD_KEY_FILE] = "password and key file",
		[KEYSLOT_TPM2] = "TPM2",
		[KEYSLOT_FIDO2] = "FIDO2",
		[KEYSLOT_PKCS11] = "PKCS#11",
		[KEYSLOT_EXTERNAL] = "external secret",
	};

	if (kind >= sizeof(names) / sizeof(*names) || !names[kind])
		return "unknown";
	return names[kind];
}

void header_to_text(const struct header *h, FILE *out)
{
	char uuid[37];

	uuid_format(h->uuid, uuid);
	fprintf(out,
		"header: version %" PRIu32 ", sequence %" PRIu64
		", uuid %s, label \"%s\", nodes of %u bytes\n",
		h->format_version, h->sequence, uuid, h->label,
		1u << h->node_log2);
	fprintf(out,
		"features: compatible %" PRIx64
		", read-only compatible %" PRIx64 ", incompatible %" PRIx64
		"\n",
		h->compat, h->ro_compat, h->incompat);

	for (unsigned int i = 0; i < HEADER_KEYS; i++) {
		const struct header_key *k = &h->key[i];
		const struct scheme *scheme = scheme_by_id(k->scheme);

		if (k->key_id == 0)
			continue;
		fprintf(out,
			"key %u: %s, %s, sectors of %" PRIu32
			" bytes, integrity %s\n",
			k->key_id,
			k->state == HEADER_KEY_ACTIVE ? "active" : "old",
			scheme ? scheme->name : "unknown scheme",
			k->sector_bytes, k->integrity ? "on" : "off");
	}
	for (unsigned int i = 0; i < HEADER_SLOTS; i++) {
		const struct keyslot *s = &h->slot[i];

		if (s->kind == KEYSLOT_EMPTY)
			continue;
		fprintf(out,
			"slot %u: %s, passes %" PRIu32 ", memory %" PRIu32
			" KiB, lanes %" PRIu32 "\n",
			i, slot_kind_name(s->kind), s->cost.passes,
			s->cost.memory_kib, s->cost.lanes);
	}
}
