/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <criterion/criterion.h>
#include <errno.h>

#include "cipher/cbc.h"
#include "cipher/scheme.h"
#include "cipher/seal_raw.h"
#include "support.h"

#define K1                                 \
	"01000000000000000000000000000000" \
	"00000000000000000000000000000000"
#define K0                                 \
	"00000000000000000000000000000000" \
	"00000000000000000000000000000000"
#define ONE "01000000000000000000000000000000"
#define TWO "02000000000000000000000000000000"
#define THREE "03000000000000000000000000000000"
#define FOUR "04000000000000000000000000000000"

/* clang-format off */
/* RFC 8452, appendices C.2 and C.3. */
static const struct siv_vector {
	const char *key;
	struct nonce nonce;
	const char *aad, *plain, *result;	/* result: sealed || tag */
} siv_vectors[] = {
	{ K1, { 3, 0 }, "", "0100000000000000",
	  "c2ef328e5c71c83b843122130f7364b761e0b97427e3df28" },
	{ K1, { 3, 0 }, "", "010000000000000000000000",
	  "9aab2aeb3faa0a34aea8e2b18ca50da9ae6559e48fd10f6e5c9ca17e" },
	{ K1, { 3, 0 }, "", ONE,
	  "85a01b63025ba19b7fd3ddfc033b3e76"
	  "c9eac6fa700942702e90862383c6c366" },
	{ K1, { 3, 0 }, "", ONE TWO,
	  "4a6a9db4c8c6549201b9edb53006cba8"
	  "21ec9cf850948a7c86c68ac7539d027f"
	  "e819e63abcd020b006a976397632eb5d" },
	{ K1, { 3, 0 }, "", ONE TWO THREE,
	  "c00d121893a9fa603f48ccc1ca3c57ce"
	  "7499245ea0046db16c53c7c66fe717e3"
	  "9cf6c748837b61f6ee3adcee17534ed5"
	  "790bc96880a99ba804bd12c0e6a22cc4" },
	{ K1, { 3, 0 }, "", ONE TWO THREE FOUR,
	  "c2d5160a1f8683834910acdafc41fbb1"
	  "632d4a353e8b905ec9a5499ac34f96c7"
	  "e1049eb080883891a4db8caaa1f99dd0"
	  "04d80487540735234e3744512c6f90ce"
	  "112864c269fc0d9d88c61fa47e39aa08" },
	{ K1, { 3, 0 }, "01", "0200000000000000",
	  "1de22967237a813291213f267e3b452f02d01ae33e4ec854" },
	{ K1, { 3, 0 }, "01", "020000000000000000000000",
	  "163d6f9cc1b346cd453a2e4cc1a4a19ae800941ccdc57cc8413c277f" },
	{ K1, { 3, 0 }, "01", TWO,
	  "c91545823cc24f17dbb0e9e807d5ec17"
	  "b292d28ff61189e8e49f3875ef91aff7" },
	{ K1, { 3, 0 }, "01", TWO THREE,
	  "07dad364bfc2b9da89116d7bef6daaaf"
	  "6f255510aa654f920ac81b94e8bad365"
	  "aea1bad12702e1965604374aab96dbbc" },
	{ K1, { 3, 0 }, "010000000000000000000000", "02000000",
	  "22b3f4cd1835e517741dfddccfa07fa4661b74cf" },
	/* The counter of the cipher wraps within these two. */
	{ K0, { 0, 0 }, "",
	  "000000000000000000000000000000004db923dc793ee6497c76dcc03a98e108",
	  "f3f80f2cf0cb2dd9c5984fcda908456c"
	  "c537703b5ba70324a6793a7bf218d3ea"
	  "ffffffff000000000000000000000000" },
	{ K0, { 0, 0 }, "",
	  "eb3640277c7ffd1303c7a542d02d3e4c0000000000000000",
	  "18ce4f0b8cb4d0cac65fea8f79257b20"
	  "888e53e72299e56dffffffff00000000"
	  "0000000000000000" },
};
/* clang-format on */

TestSuite(seal, .init = start_cipher);
TestSuite(hint, .init = start_cipher);

static struct seal_key *new_key_of(const struct secret *key)
{
	struct seal_key *k;

	cr_assert_eq(seal_key_new(&k, key, 2), 0);
	return k;
}

static struct seal_key *new_key(void)
{
	auto_secret struct secret key = secret_filled(SEAL_KEY_BYTES, 1);

	return new_key_of(&key);
}

static void expect_vector(const struct siv_vector *v)
{
	auto_secret struct secret key = secret_from_hex(v->key);
	struct seal_key *k = new_key_of(&key);
	uint8_t aad[64], plain[64], want[80], got[80], back[64];
	size_t aad_len = from_hex(v->aad, aad);
	size_t len = from_hex(v->plain, plain);

	from_hex(v->result, want);
	cr_assert_eq(seal_message_raw(k, v->nonce, aad, aad_len, plain, len,
				      got, got + len),
		     0);
	cr_assert_arr_eq(got, want, len + SEAL_TAG_BYTES, "%s", v->result);
	cr_assert_eq(seal_open(k, v->nonce, aad, aad_len, want, len, back,
			       want + len),
		     0);
	cr_assert_arr_eq(back, plain, len);
	seal_key_free(k);
}

Test(seal, tl1_rfc_8452)
{
	for (size_t i = 0; i < sizeof(siv_vectors) / sizeof(siv_vectors[0]);
	     i++)
		expect_vector(&siv_vectors[i]);
}

Test(seal, wrong_sizes_are_einval)
{
	auto_secret struct secret shorter = secret_filled(31, 1);
	auto_secret struct secret right = secret_filled(SEAL_KEY_BYTES, 1);
	struct seal_key *k;

	cr_assert_eq(seal_key_new(&k, &shorter, 1), -EINVAL);
	cr_assert_null(k);
	cr_assert_eq(seal_key_new(&k, &right, 0), -EINVAL);
	cr_assert_eq(seal_key_new(&k, &right, 10000), -ENOMEM);
	seal_key_free(NULL);
}

/* A message, sealed. */
struct sealed {
	struct nonce nonce;
	uint8_t aad[20], plain[100], out[100], tag[SEAL_TAG_BYTES];
};

static void seal_one(struct seal_key *k, struct nonce_source *src,
		     struct sealed *s, unsigned int seed)
{
	fill(s->aad, sizeof(s->aad), seed);
	fill(s->plain, sizeof(s->plain), seed + 1);
	cr_assert_eq(seal_message(k, src, s->aad, sizeof(s->aad), s->plain,
				  sizeof(s->plain), s->out, &s->nonce, s->tag),
		     0);
}

static int open_one(struct seal_key *k, const struct sealed *s, uint8_t *out)
{
	return seal_open(k, s->nonce, s->aad, sizeof(s->aad), s->out,
			 sizeof(s->out), out, s->tag);
}

/* Without a reset the library mixes a message with the one before. */
Test(seal, tl2_messages_under_one_handle_are_independent)
{
	struct seal_key *k = new_key();
	struct nonce_source src;
	struct sealed s[10];

	cr_assert_eq(nonce_source_init(&src), 0);
	for (unsigned int i = 0; i < 10; i++) {
		struct seal_key *fresh = new_key();
		uint8_t out[100], tag[SEAL_TAG_BYTES];

		seal_one(k, &src, &s[i], i);
		cr_assert_eq(s[i].nonce.counter, i);
		cr_assert_eq(seal_message_raw(fresh, s[i].nonce, s[i].aad,
					      sizeof(s[i].aad), s[i].plain,
					      sizeof(s[i].plain), out, tag),
			     0);
		cr_assert_arr_eq(s[i].out, out, sizeof(out));
		cr_assert_arr_eq(s[i].tag, tag, sizeof(tag));
		seal_key_free(fresh);
	}
	for (int i = 9; i >= 0; i--) {
		uint8_t back[100];

		cr_assert_eq(open_one(k, &s[i], back), 0);
		cr_assert_arr_eq(back, s[i].plain, sizeof(back));
	}
	nonce_source_destroy(&src);
	seal_key_free(k);
}

/* Flip a bit of @at, expect a refusal and zeros, and flip it back. */
static void expect_refused(struct seal_key *k, struct sealed *s, void *at)
{
	static const uint8_t zero[100];
	uint8_t *byte = at;
	uint8_t back[100];

	memset(back, 0xaa, sizeof(back));
	*byte ^= 4;
	cr_assert_eq(open_one(k, s, back), -EBADMSG);
	cr_assert_arr_eq(back, zero, sizeof(zero));
	*byte ^= 4;
	cr_assert_eq(open_one(k, s, back), 0, "after a refusal");
	cr_assert_arr_eq(back, s->plain, sizeof(back));
}

Test(seal, tl2_what_is_not_authentic_is_ebadmsg_and_zeroed)
{
	struct seal_key *k = new_key();
	struct nonce_source src;
	struct sealed s;

	cr_assert_eq(nonce_source_init(&src), 0);
	seal_one(k, &src, &s, 1);
	for (size_t i = 0; i < sizeof(s.out); i++)
		expect_refused(k, &s, &s.out[i]);
	for (size_t i = 0; i < sizeof(s.aad); i++)
		expect_refused(k, &s, &s.aad[i]);
	for (size_t i = 0; i < sizeof(s.tag); i++)
		expect_refused(k, &s, &s.tag[i]);
	expect_refused(k, &s, &s.nonce.session);
	expect_refused(k, &s, &s.nonce.counter);
	nonce_source_destroy(&src);
	seal_key_free(k);
}

Test(seal, takes_1_to_65536_bytes_and_no_aad)
{
	static uint8_t plain[65536], out[65536], back[65536];
	static const size_t lens[] = { 1, 15, 16, 17, 4096, 16384, 65536 };
	struct seal_key *k = new_key();
	struct nonce_source src;

	fill(plain, sizeof(plain), 1);
	cr_assert_eq(nonce_source_init(&src), 0);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint8_t tag[SEAL_TAG_BYTES];
		struct nonce n;

		cr_assert_eq(seal_message(k, &src, NULL, 0, plain, lens[i], out,
					  &n, tag),
			     0);
		cr_assert_eq(seal_open(k, n, NULL, 0, out, lens[i], back, tag),
			     0);
		cr_assert_arr_eq(back, plain, lens[i]);
	}
	nonce_source_destroy(&src);
	seal_key_free(k);
}

static int no_session(uint64_t *session)
{
	return -EAGAIN;
}

Test(seal, error_of_the_nonce_source_comes_back)
{
	struct seal_key *k = new_key();
	struct nonce_source src;
	uint8_t out[1], tag[SEAL_TAG_BYTES];
	struct nonce n;

	cr_assert_eq(nonce_source_init(&src), 0);
	src.draw_session = no_session;
	src.next = UINT64_C(1) << 32;
	cr_assert_eq(seal_message(k, &src, NULL, 0, "x", 1, out, &n, tag),
		     -EAGAIN);
	nonce_source_destroy(&src);
	seal_key_free(k);
}

/* The hint is a sector of 64 bytes of aes-256-cbc. */
Test(hint, equals_the_cbc_scheme)
{
	auto_secret struct secret key = secret_filled(HINT_KEY_BYTES, 3);
	const struct scheme *cbc = scheme_by_name("aes-256-cbc");
	uint8_t tweak[TWEAK_BYTES], plain[HINT_BYTES];
	uint8_t a[HINT_BYTES], b[HINT_BYTES];
	struct scheme_key *s;
	struct hint_key *k;

	fill(tweak, sizeof(tweak), 1);
	fill(plain, sizeof(plain), 2);
	cr_assert_eq(hint_key_new(&k, &key, 1), 0);
	cr_assert_eq(scheme_key_new(&s, cbc, HINT_BYTES, &key, 1), 0);
	cr_assert_eq(hint_encrypt(k, tweak, plain, a), 0);
	cr_assert_eq(scheme_encrypt(s, tweak, 1, plain, b), 0);
	cr_assert_arr_eq(a, b, HINT_BYTES);
	cr_assert_eq(hint_decrypt(k, tweak, a, a), 0);
	cr_assert_arr_eq(a, plain, HINT_BYTES);
	scheme_key_free(s);
	hint_key_free(k);
}

Test(hint, wrong_sizes_are_einval)
{
	auto_secret struct secret shorter = secret_filled(16, 1);
	auto_secret struct secret right = secret_filled(HINT_KEY_BYTES, 1);
	struct hint_key *k;

	cr_assert_eq(hint_key_new(&k, &shorter, 1), -EINVAL);
	cr_assert_null(k);
	cr_assert_eq(hint_key_new(&k, &right, 0), -EINVAL);
	cr_assert_eq(hint_key_new(&k, &right, 10000), -ENOMEM);
	hint_key_free(NULL);
}
