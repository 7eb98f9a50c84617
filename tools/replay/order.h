/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records nearly in the order of their times, put in order: within a window,
 * so that memory stays the same for any trace.  Equal times keep their order.
 */
#ifndef TOOLS_REPLAY_ORDER_H
#define TOOLS_REPLAY_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/replay/record.h"

#define ORDER_WINDOW 4096

struct order {
	size_t nr;
	uint64_t sequence;
	struct {
		struct trace_record rec;
		uint64_t sequence;
	} heap[ORDER_WINDOW];
};

static inline bool order_full(const struct order *o)
{
	return o->nr == ORDER_WINDOW;
}

/* Not when it is full. */
void order_put(struct order *o, const struct trace_record *rec);

/* The earliest; false if there is none. */
bool order_take(struct order *o, struct trace_record *rec);

#endif
