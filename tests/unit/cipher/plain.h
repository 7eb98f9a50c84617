/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The least a plain test program needs: it counts, says what failed and where,
 * and ends with "N passed, M failed".
 */
#ifndef TESTS_UNIT_CIPHER_PLAIN_H
#define TESTS_UNIT_CIPHER_PLAIN_H

#include <stdbool.h>
#include <stdio.h>

struct tally {
	unsigned long passed, failed;
};

static inline void check_at(struct tally *t, bool ok, const char *file,
			    int line, const char *what)
{
	if (ok) {
		t->passed++;
		return;
	}
	t->failed++;
	printf("FAIL %s:%d: %s\n", file, line, what);
}

#define CHECK(t, condition) \
	check_at(t, condition, __FILE__, __LINE__, #condition)

/* The program's exit status. */
static inline int tally_end(const struct tally *t)
{
	printf("%lu passed, %lu failed\n", t->passed, t->failed);
	return t->failed ? 1 : 0;
}

#endif
