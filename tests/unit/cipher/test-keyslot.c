/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>

#include "cipher/keyslot.h"
#include "support.h"

static const struct keyslot_place here = {
	.uuid = "sixteen bytes .",
	.format_version = 1,
	.index = 3,
};

static struct nonce_source src;
static struct secret master, password;

static void start_slots(void)
{
	start_cipher();
	cr_assert_eq(nonce_source_init(&src), 0);
	master = secret_filled(MASTER_KEY_BYTES, 1);
	password = secret_filled(16, 2);
}

static void end_slots(void)
{
	secret_wipe(&master);
	secret_wipe(&password);
	nonce_source_destroy(&src);
}

TestSuite(keyslot, .init = start_slots, .fini = end_slots);

static struct keyslot password_slot(void)
{
	return (struct keyslot){
		.kind = KEYSLOT_PASSWORD,
		.kdf = KDF_ARGON2ID,
		.key_id = 1,
		.cost = { 1, 32, 4 },
	};
}

static struct keyslot external_slot(void)
{
	return (struct keyslot){
		.kind = KEYSLOT_EXTERNAL,
		.kdf = KDF_HKDF_SHA256,
		.key_id = 1,
	};
}

static void expect_wrapped(const struct keyslot *slot)
{
	auto_secret struct secret got = SECRET_EMPTY;

	cr_assert_eq(keyslot_unwrap(slot, &here, &password, &got), 0);
	cr_assert_eq(got.len, MASTER_KEY_BYTES);
	cr_assert_arr_eq(got.bytes, master.bytes, MASTER_KEY_BYTES);
}

static void expect_unwrap_error(const struct keyslot *slot,
				const struct keyslot_place *place,
				const struct secret *secret, int err)
{
	struct secret got;

	cr_assert_eq(keyslot_unwrap(slot, place, secret, &got), err);
	cr_assert_null(got.bytes);
}

Test(keyslot, every_kind_comes_back)
{
	static const uint16_t kinds[] = {
		KEYSLOT_PASSWORD,	   KEYSLOT_RECOVERY, KEYSLOT_KEY_FILE,
		KEYSLOT_PASSWORD_KEY_FILE, KEYSLOT_EXTERNAL,
	};
	struct keyslot slot = external_slot();

	cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master, &src), 0);
	expect_wrapped(&slot);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		slot = password_slot();
		slot.kind = kinds[i];
		cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master,
					  &src),
			     0);
		expect_wrapped(&slot);
	}
}

Test(keyslot, salt_and_nonce_are_new_each_time)
{
	struct keyslot a = external_slot(), b = external_slot();

	cr_assert_eq(keyslot_wrap(&a, &here, &password, &master, &src), 0);
	cr_assert_eq(keyslot_wrap(&b, &here, &password, &master, &src), 0);
	cr_assert(memcmp(a.salt, b.salt, KDF_SALT_BYTES));
	cr_assert_neq(a.nonce.counter, b.nonce.counter);
	cr_assert(memcmp(a.wrapped, b.wrapped, MASTER_KEY_BYTES));
}

Test(keyslot, wrong_secret_is_eacces)
{
	struct keyslot slot = password_slot();
	auto_secret struct secret wrong = secret_filled(16, 3);
	const struct secret empty = SECRET_EMPTY;

	cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master, &src), 0);
	expect_unwrap_error(&slot, &here, &wrong, -EACCES);
	expect_unwrap_error(&slot, &here, &empty, -EACCES);
	wrong.len = 15;
	expect_unwrap_error(&slot, &here, &wrong, -EACCES);
	wrong.len = 16;
	slot = external_slot();
	cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master, &src), 0);
	expect_unwrap_error(&slot, &here, &wrong, -EACCES);
	wrong.len = 15;
	expect_unwrap_error(&slot, &here, &wrong, -EACCES);
	wrong.len = 16;
}

/* Each field is either the key's salt, sealed, or authenticated. */
Test(keyslot, every_changed_field_is_eacces)
{
	const struct keyslot good = ({
		struct keyslot s = password_slot();

		cr_assert_eq(keyslot_wrap(&s, &here, &password, &master, &src),
			     0);
		s;
	});
	struct keyslot s;

	/* clang-format off */
#define EXPECT_CHANGE(change) do {					\
	s = good;							\
	change;								\
	expect_unwrap_error(&s, &here, &password, -EACCES);		\
} while (0)
	EXPECT_CHANGE(s.kind = KEYSLOT_RECOVERY);
	EXPECT_CHANGE(s.key_id ^= 1);
	EXPECT_CHANGE(s.cost.passes++);
	EXPECT_CHANGE(s.cost.memory_kib += 16);
	EXPECT_CHANGE(s.cost.memory_kib += 1);	/* Argon2 rounds it off */
	EXPECT_CHANGE(s.cost.lanes--);
	EXPECT_CHANGE(s.salt[31] ^= 1);
	EXPECT_CHANGE(s.nonce.session ^= 1);
	EXPECT_CHANGE(s.nonce.counter ^= 1);
	EXPECT_CHANGE(s.wrapped[63] ^= 1);
	EXPECT_CHANGE(s.tag[15] ^= 1);
#undef EXPECT_CHANGE
	/* clang-format on */
	expect_wrapped(&good);
}

Test(keyslot, moved_to_another_place_is_eacces)
{
	struct keyslot slot = external_slot();
	struct keyslot_place there;

	cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master, &src), 0);
	there = here;
	there.uuid[15] ^= 1;
	expect_unwrap_error(&slot, &there, &password, -EACCES);
	there = here;
	there.format_version++;
	expect_unwrap_error(&slot, &there, &password, -EACCES);
	there = here;
	there.index++;
	expect_unwrap_error(&slot, &there, &password, -EACCES);
}

Test(keyslot, cost_out_of_bounds_is_erange)
{
	struct keyslot slot = password_slot();

	slot.cost.passes = 0;
	cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master, &src),
		     -ERANGE);
	expect_unwrap_error(&slot, &here, &password, -ERANGE);
	slot = external_slot();
	slot.cost.lanes = 1; /* HKDF has no cost */
	cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master, &src),
		     -ERANGE);
	expect_unwrap_error(&slot, &here, &password, -ERANGE);
}

Test(keyslot, later_kinds_are_eopnotsupp)
{
	static const uint16_t later[] = {
		KEYSLOT_TPM2, KEYSLOT_FIDO2, KEYSLOT_PKCS11, 9, UINT16_MAX,
	};
	struct keyslot slot = password_slot();

	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		slot.kind = later[i];
		expect_unwrap_error(&slot, &here, &password, -EOPNOTSUPP);
		cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master,
					  &src),
			     -EINVAL);
	}
	slot = password_slot();
	slot.kdf = 3;
	expect_unwrap_error(&slot, &here, &password, -EOPNOTSUPP);
	slot.kdf = 0;
	expect_unwrap_error(&slot, &here, &password, -EOPNOTSUPP);
}

/* A password is never a matter for HKDF, not even if the header says so. */
Test(keyslot, hkdf_is_only_for_secrets_we_made)
{
	struct keyslot slot = external_slot();
	auto_secret struct secret shorter = secret_filled(15, 1);

	cr_assert_eq(keyslot_wrap(&slot, &here, &shorter, &master, &src),
		     -EINVAL);
	slot.kind = KEYSLOT_PASSWORD;
	cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master, &src),
		     -EINVAL);
	expect_unwrap_error(&slot, &here, &password, -EOPNOTSUPP);
}

Test(keyslot, callers_mistakes_are_einval)
{
	auto_secret struct secret half = secret_filled(32, 1);
	const struct secret empty = SECRET_EMPTY;
	struct keyslot slot = password_slot();

	cr_assert_eq(keyslot_wrap(&slot, &here, &empty, &master, &src),
		     -EINVAL);
	cr_assert_eq(keyslot_wrap(&slot, &here, &password, &half, &src),
		     -EINVAL);
	slot.kind = KEYSLOT_EMPTY;
	cr_assert_eq(keyslot_wrap(&slot, &here, &password, &master, &src),
		     -EINVAL);
	expect_unwrap_error(&slot, &here, &password, -EINVAL);
}
