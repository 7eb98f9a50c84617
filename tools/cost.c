/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From "one second" to Argon2id's three numbers.
 */
#include <unistd.h>

#include "fs/header.h"
#include "tools/cost.h"
#include "tools/units.h"

#define MIB (UINT64_C(1) << 20)

#define TIME_MS_DEFAULT 1000
#define TIME_MS_MAX (60 * 1000)
#define TIME_MS_WEAK 500

#define MEMORY_MIN (8 * MIB)
#define MEMORY_MAX (UINT64_C(1024) * KDF_MEMORY_KIB_MAX)
#define MEMORY_DEFAULT_MAX (1024 * MIB)
#define MEMORY_WEAK (64 * MIB)

enum tool_exit cost_check(const struct cost_choice *choice)
{
	const struct option_number *time = &choice->time;
	const struct option_number *memory = &choice->memory;

	if (time->given && (!time->value || time->value > TIME_MS_MAX))
		return tool_fail(TOOL_USAGE, NULL,
				 "--kdf-time must be above 0 and at most %d "
				 "seconds",
				 TIME_MS_MAX / 1000);
	if (memory->given && memory->value < MEMORY_MIN)
		return tool_fail(TOOL_USAGE, NULL,
				 "--kdf-memory under 8M is no defence against "
				 "guessing; give 64M or more");
	if (memory->given && memory->value > MEMORY_MAX)
		return tool_fail(TOOL_USAGE, NULL,
				 "--kdf-memory above 4G is not possible");
	return TOOL_DONE;
}

static uint64_t default_memory_max(void)
{
	const uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
	const uint64_t quarter = pages * (uint64_t)sysconf(_SC_PAGESIZE) / 4;

	if (quarter < MEMORY_MIN)
		return MEMORY_MIN;
	return quarter < MEMORY_DEFAULT_MAX ? quarter : MEMORY_DEFAULT_MAX;
}

enum tool_exit cost_measure(const struct cost_choice *choice, const char *what,
			    struct kdf_cost *cost)
{
	const uint32_t ms = choice->time.given ? choice->time.value
					       : TIME_MS_DEFAULT;
	const uint32_t kib = (choice->memory.given ? choice->memory.value
						   : default_memory_max()) /
			     1024;
	const int err = kdf_calibrate(ms, kib, cost);

	if (err)
		return tool_fail_errno(TOOL_AT_ANY, what, err);
	/* A slow machine: calibration took less memory to keep the time. */
	if (choice->memory.given && cost->memory_kib < kib) {
		cost->memory_kib = kib;
		cost->passes = 1;
	}
	/* Later programs try all slots up to a sum; one may take it all. */
	if ((uint64_t)cost->passes * cost->memory_kib > HEADER_KDF_SUM_KIB)
		return tool_fail(TOOL_USAGE, what,
				 "--kdf-time is longer than a container may "
				 "ask for on this machine");
	return TOOL_DONE;
}

void cost_warn(const struct cost_choice *choice, const char *what)
{
	if (choice->memory.given && choice->memory.value < MEMORY_WEAK)
		tool_warn(what, "--kdf-memory under 64M makes guessing the "
				"password cheap");
	else if (choice->time.given && choice->time.value < TIME_MS_WEAK)
		tool_warn(what, "--kdf-time under 0.5 makes guessing the "
				"password cheap");
}
