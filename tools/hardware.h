/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which of the processor's cipher instructions libgcrypt uses.  Without them
 * AES and GMAC come from tables in memory, which is slow, and which processes
 * that share a cache can watch (so `info` and `bench cipher` say it).
 */
#ifndef TOOLS_HARDWARE_H
#define TOOLS_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>

struct hardware {
	char *list;	      /* owns the names; NULL: unknown */
	const char *name[64]; /* as libgcrypt has them, "intel-aesni" */
	size_t nr;
	bool aes;	/* AES rounds */
	bool carryless; /* carry-less multiplication, for GMAC */
};

/* Ask the library, which must have been started. */
void hardware_get(struct hardware *h);
void hardware_free(struct hardware *h);
#define auto_hardware auto_cleanup(hardware_free)

/* For messages; NULL if both are used. */
const char *hardware_warning(const struct hardware *h);

/* Version of libgcrypt; static. */
const char *hardware_library_version(void);

#endif
