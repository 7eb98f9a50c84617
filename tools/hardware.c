/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libgcrypt's view of the processor.  The only file of tools/ that knows the
 * library: what it uses is no part of any scheme.
 */
#include <gcrypt.h>
#include <string.h>

#include "tools/hardware.h"

static const struct {
	const char *name;
	bool aes, carryless;
} instructions[] = {
	{ "intel-aesni", .aes = true },
	{ "intel-vaes-vpclmul", .aes = true, .carryless = true },
	{ "intel-pclmul", .carryless = true },
	{ "padlock-aes", .aes = true },
	{ "arm-aes", .aes = true },
	{ "arm-pmull", .carryless = true },
	{ "ppc-vcrypto", .aes = true, .carryless = true },
	{ "s390x-msa", .aes = true, .carryless = true },
};

static void note_instruction(struct hardware *h, const char *name)
{
	const size_t nr = sizeof(instructions) / sizeof(instructions[0]);

	for (size_t i = 0; i < nr; i++) {
		if (strcmp(instructions[i].name, name) != 0)
			continue;
		h->aes |= instructions[i].aes;
		h->carryless |= instructions[i].carryless;
	}
}

void hardware_get(struct hardware *h)
{
	char *rest, *name;

	memset(h, 0, sizeof(*h));
	/* "hwflist:intel-cpu:intel-aesni:...:\n" */
	h->list = gcry_get_config(0, "hwflist");
	if (!h->list)
		return;
	rest = h->list;
	strsep(&rest, ":");
	while ((name = strsep(&rest, ":\n"))) {
		if (!*name || h->nr == sizeof(h->name) / sizeof(h->name[0]))
			continue;
		h->name[h->nr++] = name;
		note_instruction(h, name);
	}
}

void hardware_free(struct hardware *h)
{
	gcry_free(h->list);
	memset(h, 0, sizeof(*h));
}

const char *hardware_warning(const struct hardware *h)
{
	if (!h->aes)
		return "the processor's AES instructions are missing or not "
		       "used: AES is slow, and other processes on this "
		       "machine may learn keys through its caches";
	if (!h->carryless)
		return "the processor's carry-less multiplication is missing "
		       "or not used: tags are slow, and other processes on "
		       "this machine may learn their key through its caches";
	return NULL;
}

const char *hardware_library_version(void)
{
	return gcry_check_version(NULL);
}
