/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * splitmix64 of the place: about a gigabyte a second, and incompressible.
 */
#include <string.h>

#include "tools/replay/pattern.h"

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Of the aligned 8 bytes with number @index; the same on every machine. */
static void word_at(const struct pattern *p, uint32_t target, uint64_t index,
		    char out[static 8])
{
	const uint64_t base =
		mix(p->seed + target * UINT64_C(0x9e3779b97f4a7c15));
	const uint64_t w = mix(base + index * UINT64_C(0x9e3779b97f4a7c15));

	for (int i = 0; i < 8; i++)
		out[i] = (char)(w >> (8 * i));
}

/* The part of a word that lies at @offset: its length, at most @len. */
static size_t part_of_word(uint64_t offset, size_t len)
{
	const size_t room = 8 - (size_t)(offset % 8);

	return len < room ? len : room;
}

void pattern_make(const struct pattern *p, uint32_t target, uint64_t offset,
		  char *out, size_t len)
{
	while (len) {
		const size_t part = part_of_word(offset, len);
		char word[8];

		word_at(p, target, offset / 8, word);
		memcpy(out, word + offset % 8, part);
		out += part;
		offset += part;
		len -= part;
	}
}

size_t pattern_check(const struct pattern *p, uint32_t target, uint64_t offset,
		     const char *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		const size_t part = part_of_word(offset + done, len - done);
		const char *want;
		char word[8];

		word_at(p, target, (offset + done) / 8, word);
		want = word + (offset + done) % 8;
		for (size_t i = 0; i < part; i++)
			if (bytes[done + i] != want[i] &&
			    !(p->holes && !bytes[done + i]))
				return done + i;
		done += part;
	}
	return len;
}
