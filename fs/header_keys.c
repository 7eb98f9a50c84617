/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One key, one purpose: each is derived with a label and with everything that
 * decides how it is used, so that no change of the header can make one key
 * serve two ways.
 *
 *	master key --+-- "header-mac"	the header's HMAC
 *		     +-- "key-table"	seals 64 random bytes for each key id
 *						|
 *	     +----------+---------+-------------+-----------+
 *	  "data"     "tag"     "node"     "superblock"  "salvage"
 *
 * The random bytes in between let a container change its keys while its master
 * key, and with it all key slots, stay.
 */
#include "fs/header_keys.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fs/format.h"
#include "fs/header_format.h"

#define ROW_SECRET_BYTES sizeof(((struct header_key *)0)->sealed)

/* What a key is for: the HKDF info, apart from the length. */
struct purpose {
	const char *label;
	uint16_t key_id;
	uint16_t scheme;
	uint32_t sector_bytes;
};

struct disk_info {
	le32 format_version;
	le16 key_id;
	le16 scheme;
	le32 sector_bytes;
	le32 key_bytes;
};
static_assert(sizeof(struct disk_info) == 16, "FORMAT.md, Key derivation");

/* Derive @len bytes from @from into @out, made here. */
static int derive(const struct header *h, const struct secret *from,
		  const struct purpose *p, size_t len, struct secret *out)
{
	uint8_t salt[32], info[1 + 31 + sizeof(struct disk_info)];
	size_t label_len = strlen(p->label);
	struct disk_info tail = {
		.format_version = le32_of(h->format_version),
		.key_id = le16_of(p->key_id),
		.scheme = le16_of(p->scheme),
		.sector_bytes = le32_of(p->sector_bytes),
		.key_bytes = le32_of((uint32_t)len),
	};

	assert(label_len <= 31);
	info[0] = (uint8_t)label_len;
	memcpy(info + 1, p->label, label_len);
	memcpy(info + 1 + label_len, &tail, sizeof(tail));

	hash_sha256(h->uuid, sizeof(h->uuid), salt);
	return kdf_hkdf(from, salt, sizeof(salt), info,
			1 + label_len + sizeof(tail), len, out);
}

int header_mac(const struct header *h, const struct secret *master,
	       uint8_t mac[static HMAC_BYTES])
{
	const struct purpose purpose = { .label = "header-mac" };
	auto_secret struct secret key = SECRET_EMPTY;
	struct hmac_piece pieces[HEADER_MAC_PIECES];
	int err;

	err = derive(h, master, &purpose, HMAC_BYTES, &key);
	if (err)
		return err;
	header_mac_pieces(h, pieces);
	return hmac_sha256(&key, pieces, HEADER_MAC_PIECES, mac);
}

/* Rows of the key table */

static int table_key(const struct header *h, const struct secret *master,
		     struct seal_key **out)
{
	const struct purpose purpose = { .label = "key-table" };
	auto_secret struct secret key = SECRET_EMPTY;
	int err;

	err = derive(h, master, &purpose, SEAL_KEY_BYTES, &key);
	return err ? err : seal_key_new(out, &key, 1);
}

/*
 * The state is left out: it changes from active to old while the sealed bytes
 * stay, and the header's MAC protects it.
 */
struct disk_row_aad {
	uint8_t uuid[UUID_BYTES];
	le32 format_version;
	le16 key_id;
	le16 scheme;
	le32 sector_bytes;
	le32 integrity;
};
static_assert(sizeof(struct disk_row_aad) == 32, "FORMAT.md, Key table");

static struct disk_row_aad row_aad(const struct header *h,
				   const struct header_key *k)
{
	struct disk_row_aad aad = {
		.format_version = le32_of(h->format_version),
		.key_id = le16_of(k->key_id),
		.scheme = le16_of(k->scheme),
		.sector_bytes = le32_of(k->sector_bytes),
		.integrity = le32_of(k->integrity),
	};

	memcpy(aad.uuid, h->uuid, sizeof(aad.uuid));
	return aad;
}

int header_row_new(const struct header *h, struct header_key *k,
		   const struct secret *master, struct nonce_source *src)
{
	struct disk_row_aad aad = row_aad(h, k);
	auto_secret struct secret row = SECRET_EMPTY;
	struct seal_key *table;
	int err;

	err = secret_new(&row, ROW_SECRET_BYTES);
	if (!err)
		err = random_bytes(row.bytes, row.len);
	if (!err)
		err = table_key(h, master, &table);
	if (err)
		return err;

	err = seal_message(table, src, &aad, sizeof(aad), row.bytes, row.len,
			   k->sealed, &k->nonce, k->tag);
	seal_key_free(table);
	return err;
}

static int row_open(const struct header *h, const struct header_key *k,
		    struct seal_key *table, struct secret *row)
{
	struct disk_row_aad aad = row_aad(h, k);
	int err;

	err = secret_new(row, ROW_SECRET_BYTES);
	if (err)
		return err;
	return seal_open(table, k->nonce, &aad, sizeof(aad), k->sealed,
			 row->len, row->bytes, k->tag);
}

/* Keys of one id */

/* Where keys of one id come from. */
struct origin {
	const struct header *h;
	const struct header_key *k;
	const struct secret *row;
	unsigned int nr_handles;
};

static int derive_for(const struct origin *o, const char *label, size_t len,
		      struct secret *out)
{
	const struct purpose purpose = {
		.label = label,
		.key_id = o->k->key_id,
		.scheme = o->k->scheme,
		.sector_bytes = o->k->sector_bytes,
	};

	return derive(o->h, o->row, &purpose, len, out);
}

static int make_data(const struct origin *o, struct key_set *set)
{
	auto_secret struct secret key = SECRET_EMPTY;
	int err = 0;

	if (set->scheme->key_bytes)
		err = derive_for(o, "data", set->scheme->key_bytes, &key);
	if (err)
		return err;
	return scheme_key_new(&set->data, set->scheme, set->sector_bytes, &key,
			      o->nr_handles);
}

static int make_tag(const struct origin *o, struct key_set *set)
{
	auto_secret struct secret key = SECRET_EMPTY;
	int err;

	if (!set->integrity)
		return 0;
	err = derive_for(o, "tag", TAG_KEY_BYTES, &key);
	return err ? err : tag_key_new(&set->tag, &key, o->nr_handles);
}

static int make_seal(const struct origin *o, const char *label,
		     unsigned int nr_handles, struct seal_key **out)
{
	auto_secret struct secret key = SECRET_EMPTY;
	int err;

	err = derive_for(o, label, SEAL_KEY_BYTES, &key);
	return err ? err : seal_key_new(out, &key, nr_handles);
}

static int make_salvage(const struct origin *o, struct key_set *set)
{
	auto_secret struct secret key = SECRET_EMPTY;
	int err;

	err = derive_for(o, "salvage", HINT_KEY_BYTES, &key);
	return err ? err : hint_key_new(&set->salvage, &key, o->nr_handles);
}

static int make_set(const struct origin *o, struct key_set *set)
{
	int err;

	set->key_id = o->k->key_id;
	set->scheme = scheme_by_id(o->k->scheme);
	set->sector_bytes = o->k->sector_bytes;
	set->integrity = o->k->integrity;
	assert(set->scheme); /* header_decode() saw to it */

	err = make_data(o, set);
	if (!err)
		err = make_tag(o, set);
	if (!err)
		err = make_seal(o, "node", o->nr_handles, &set->node);
	/* One superblock is sealed at a time. */
	if (!err)
		err = make_seal(o, "superblock", 1, &set->super);
	if (!err)
		err = make_salvage(o, set);
	return err;
}

int header_keys_make(const struct header *h, struct header_keys *keys,
		     unsigned int nr_handles)
{
	struct seal_key *table;
	int err;

	err = table_key(h, &keys->master, &table);
	if (err)
		return err;

	for (unsigned int i = 0; !err && i < HEADER_KEYS; i++) {
		const struct header_key *k = &h->key[i];
		auto_secret struct secret row = SECRET_EMPTY;
		const struct origin origin = { h, k, &row, nr_handles };

		if (k->key_id == 0)
			continue;
		if (k->state == HEADER_KEY_ACTIVE)
			keys->active = keys->nr_sets;
		err = row_open(h, k, table, &row);
		if (!err)
			err = make_set(&origin, &keys->set[keys->nr_sets++]);
	}
	seal_key_free(table);
	return err;
}

static void destroy_set(struct key_set *set)
{
	scheme_key_free(set->data);
	tag_key_free(set->tag);
	seal_key_free(set->node);
	seal_key_free(set->super);
	hint_key_free(set->salvage);
}

void header_keys_destroy(struct header_keys *keys)
{
	for (unsigned int i = 0; i < keys->nr_sets; i++)
		destroy_set(&keys->set[i]);
	secret_wipe(&keys->master);
	memset(keys, 0, sizeof(*keys));
}

const struct key_set *header_key_set(const struct header_keys *keys,
				     uint16_t key_id)
{
	for (unsigned int i = 0; i < keys->nr_sets; i++)
		if (keys->set[i].key_id == key_id)
			return &keys->set[i];
	return NULL;
}
