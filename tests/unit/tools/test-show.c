/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is said of key slots, their cost, and the processor. */
#include <criterion/criterion.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "fs/header.h"
#include "tools/cost.h"
#include "tools/hardware.h"
#include "tools/slots.h"

#define MIB (1ull << 20)

static char last_line[8192];
static int nr_lines;

static void keep_line(int priority, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
	nr_lines++;
}

static void start(void)
{
	enum secret_memory memory;

	cr_assert_eq(cipher_init(0, &memory), 0);
	tool_set_sink(keep_line);
	nr_lines = 0;
	*last_line = '\0';
}

TestSuite(show, .init = start);

static struct cost_choice choice(unsigned long long ms,
				 unsigned long long bytes)
{
	return (struct cost_choice){
		.time = { ms != 0, ms },
		.memory = { bytes != 0, bytes },
	};
}

Test(show, k03_costs_out_of_bounds_are_refused)
{
	const struct cost_choice good[] = {
		choice(0, 0),
		choice(1, 8 * MIB),
		choice(60000, 4096 * MIB),
	};
	const struct cost_choice bad[] = {
		choice(60001, 0),	   choice(0, 8 * MIB - 1),
		choice(0, 4096 * MIB + 1), { .time = { true, 0 } },
		{ .memory = { true, 0 } },
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect_eq(cost_check(&good[i]), TOOL_DONE, "%zu", i);
	cr_expect_eq(nr_lines, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(cost_check(&bad[i]), TOOL_USAGE, "%zu", i);
	cr_expect_eq(nr_lines, sizeof(bad) / sizeof(bad[0]));
}

Test(show, k03_weak_costs_warn_once)
{
	const struct cost_choice weak[] = {
		choice(499, 0),
		choice(0, 64 * MIB - 1),
		choice(1, 8 * MIB),
	};
	const struct cost_choice strong[] = {
		choice(0, 0),
		choice(500, 0),
		choice(0, 64 * MIB),
	};

	for (size_t i = 0; i < sizeof(weak) / sizeof(weak[0]); i++) {
		nr_lines = 0;
		cost_warn(&weak[i], "c.tusk");
		cr_expect_eq(nr_lines, 1, "%zu", i);
		cr_expect_not_null(strstr(last_line, "--kdf-"));
	}
	nr_lines = 0;
	for (size_t i = 0; i < sizeof(strong) / sizeof(strong[0]); i++)
		cost_warn(&strong[i], "c.tusk");
	cr_expect_eq(nr_lines, 0);
}

Test(show, memory_that_was_asked_for_is_taken_exactly)
{
	/* A millisecond is too little for it. */
	const struct cost_choice c = choice(1, 64 * MIB);
	struct kdf_cost cost;

	cr_assert_eq(cost_measure(&c, "c.tusk", &cost), TOOL_DONE);
	cr_expect_eq(cost.memory_kib, 65536);
	cr_expect_eq(cost.passes, 1);
	cr_expect_eq(kdf_cost_check(&cost), 0);
}

Test(show, slots_in_words)
{
	const struct keyslot password = {
		.kind = KEYSLOT_PASSWORD,
		.kdf = KDF_ARGON2ID,
		.cost = { 3, 65536, 4 },
	};
	const struct keyslot external = {
		.kind = KEYSLOT_EXTERNAL,
		.kdf = KDF_HKDF_SHA256,
	};
	const struct keyslot later = { .kind = 999, .kdf = 999 };
	char text[SLOT_TEXT_BYTES];

	slot_text(&password, text);
	cr_expect_str_eq(text, "password, argon2id, memory 64 MiB, passes 3, "
			       "lanes 4");
	slot_text(&external, text);
	cr_expect_str_eq(text, "external-secret, hkdf-sha-256");
	slot_text(&later, text);
	cr_expect_str_eq(text, "unknown, unknown");
}

Test(show, every_kind_of_slot_has_a_name)
{
	for (uint16_t kind = KEYSLOT_EMPTY; kind <= KEYSLOT_EXTERNAL; kind++) {
		cr_expect_not_null(slot_kind_name(kind));
		cr_expect_str_neq(slot_kind_name(kind), "unknown");
	}
	cr_expect_str_eq(slot_kind_name(KEYSLOT_EXTERNAL + 1), "unknown");
	cr_expect_str_eq(slot_kind_name(UINT16_MAX), "unknown");
}

Test(show, slots_in_json_leave_out_empty_ones)
{
	struct header h = { 0 };
	struct json_object *array, *slot;

	h.slot[0].kind = KEYSLOT_PASSWORD;
	h.slot[15] = (struct keyslot){
		.kind = KEYSLOT_RECOVERY,
		.kdf = KDF_ARGON2ID,
		.cost = { 1, UINT32_MAX, 16 },
	};
	array = slots_json(&h);
	cr_assert_eq(json_object_array_length(array), 2);
	slot = json_object_array_get_idx(array, 1);
	cr_expect_eq(
		json_object_get_uint64(json_object_object_get(slot, "index")),
		15);
	cr_expect_eq(json_object_get_uint64(
			     json_object_object_get(slot, "memory_kib")),
		     UINT32_MAX);
	json_object_put(array);
}

Test(show, tc4_missing_instructions_warn)
{
	const struct hardware none = { 0 };
	const struct hardware no_clmul = { .aes = true };
	const struct hardware both = { .aes = true, .carryless = true };

	cr_expect_not_null(strstr(hardware_warning(&none), "AES"));
	cr_expect_not_null(strstr(hardware_warning(&no_clmul), "carry-less"));
	cr_expect_null(hardware_warning(&both));
}

Test(show, tc4_the_library_tells_what_it_uses)
{
	struct hardware h;

	hardware_get(&h);
	cr_expect_not_null(h.list);
	for (size_t i = 0; i < h.nr; i++) {
		cr_expect_gt(strlen(h.name[i]), 0);
		cr_expect_null(strpbrk(h.name[i], ":\n"));
	}
	hardware_free(&h);
	cr_expect_null(h.list);
	cr_expect_geq(strlen(hardware_library_version()), 5);
}
