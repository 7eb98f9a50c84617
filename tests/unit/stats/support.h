/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Snapshots to render: empty, ordinary, and one in which every number is as
 * large as it gets.  free() them.
 */
#ifndef TESTS_UNIT_STATS_SUPPORT_H
#define TESTS_UNIT_STATS_SUPPORT_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "stats/snapshot.h"

static inline struct stats_snapshot *new_snapshot(void)
{
	struct stats_snapshot *s = calloc(1, sizeof(*s));

	cr_assert_not_null(s);
	s->identity = (struct stats_identity){
		.version = "0.1.0",
		.uuid = "0f0e0d0c-0b0a-0908-0706-050403020100",
		.label = "photos",
		.scheme = "aes-256-xts",
		.sector_bytes = 4096,
		.integrity = 1,
		.epoch_id = UINT64_C(0xfedcba9876543210),
		.start_unix_seconds = 1767225600,
	};
	return s;
}

static inline void add_calls(struct stats_series *s, uint64_t n, uint64_t ns,
			     uint64_t bytes)
{
	histogram_add_n(&s->latency, ns, n);
	s->count = s->latency.count;
	s->bytes += n * bytes;
}

/* 1000 reads and writes of 128 KiB in 100 s, a tenth of it for the cipher. */
static inline struct stats_snapshot *ordinary(void)
{
	struct stats_snapshot *s = new_snapshot();

	s->uptime_ns = UINT64_C(100000000000);
	add_calls(&s->op[STATS_OP_read], 1000, 1000000, 131072);
	add_calls(&s->op[STATS_OP_write], 1000, 1000000, 131072);
	s->op[STATS_OP_write].errors = 3;
	add_calls(&s->timer[STATS_TIMER_decrypt], 1000, 100000, 131072);
	add_calls(&s->timer[STATS_TIMER_encrypt], 1000, 100000, 131072);
	add_calls(&s->timer[STATS_TIMER_tag_verify], 1000, 50000, 131072);
	add_calls(&s->timer[STATS_TIMER_container_flush], 1,
		  UINT64_C(5000000000), 0);
	s->counter[STATS_node_hits] = 999;
	s->counter[STATS_node_misses] = 1;
	return s;
}

static inline struct stats_snapshot *largest(void)
{
	static char label[300];
	struct stats_snapshot *s = new_snapshot();

	memset(label, 'W', sizeof(label) - 1);
	s->identity.label = label;
	s->identity.uuid = label;
	s->identity.version = label;
	s->identity.scheme = label;
	s->identity.sector_bytes = UINT32_MAX;
	s->identity.epoch_id = UINT64_MAX;
	s->identity.start_unix_seconds = UINT64_MAX;
	s->uptime_ns = UINT64_MAX;
	for (size_t i = 0; i < STATS_OP_NR; i++) {
		add_calls(&s->op[i], UINT64_MAX, UINT64_MAX, 0);
		s->op[i].errors = s->op[i].bytes = UINT64_MAX;
	}
	for (size_t i = 0; i < STATS_TIMER_NR; i++) {
		/* 1 ns for 2^64 bytes: the largest rate. */
		add_calls(&s->timer[i], 1, i % 2 ? 1 : UINT64_MAX, 0);
		s->timer[i].bytes = UINT64_MAX;
	}
	memset(s->counter, 0xff, sizeof(s->counter));
	memset(s->gauge, 0xff, sizeof(s->gauge));
	return s;
}

#endif
