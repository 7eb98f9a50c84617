/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Recording.  Each thread gets a slot at its first call and gives it back at
 * its end, with the numbers in it, for the next new thread to go on with:
 * nothing is lost, and there are never more slots than threads were alive at
 * once.  Beyond SLOTS_MAX of them, or without memory, threads share one slot
 * and pay for locked instructions.
 *
 * No lock anywhere: the list of slots only grows, and taking a free one is a
 * compare and exchange.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "stats/slot.h"
#include "stats/stats.h"

/* Together 300 MiB of address space; the touched pages are far less. */
enum {
	SLOTS_MAX = 256
};

static struct stats_slot *slot_map(void)
{
	struct stats_slot *slot;

	slot = mmap(NULL, sizeof(*slot), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (slot == MAP_FAILED)
		return NULL;
	/* A huge page for each would undo that only touched pages exist. */
	(void)madvise(slot, sizeof(*slot), MADV_NOHUGEPAGE);
	return slot;
}

static void slot_push(struct stats *s, struct stats_slot *slot)
{
	slot->next = atomic_load_explicit(&s->slots, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(
		&s->slots, &slot->next, slot, memory_order_release,
		memory_order_relaxed))
		;
}

/* Take over the slot of a thread that ended; NULL if there is none. */
static struct stats_slot *slot_reuse(struct stats *s)
{
	struct stats_slot *slot;

	slot = atomic_load_explicit(&s->slots, memory_order_acquire);
	for (; slot; slot = slot->next) {
		bool taken = false;

		/* Pairs with slot_release(): we go on where it stopped. */
		if (atomic_compare_exchange_strong_explicit(
			    &slot->taken, &taken, true, memory_order_acquire,
			    memory_order_relaxed))
			return slot;
	}
	return NULL;
}

static struct stats_slot *slot_add(struct stats *s)
{
	struct stats_slot *slot = NULL;

	if (atomic_fetch_add(&s->nr_slots, 1) < SLOTS_MAX)
		slot = slot_map();
	if (!slot) {
		atomic_fetch_sub(&s->nr_slots, 1);
		return NULL;
	}
	atomic_init(&slot->taken, true);
	slot_push(s, slot);
	return slot;
}

/* Runs at the end of each thread that has a slot. */
static void slot_release(void *arg)
{
	struct stats_slot *slot = arg;

	if (!slot->shared)
		atomic_store_explicit(&slot->taken, false,
				      memory_order_release);
}

/* The first call of a thread; keeps errno, as all recording calls do. */
static struct stats_slot *slot_acquire(struct stats *s)
{
	struct stats_slot *slot;
	int saved_errno = errno;

	slot = slot_reuse(s);
	if (!slot)
		slot = slot_add(s);
	if (!slot)
		slot = s->shared;
	if (pthread_setspecific(s->key, slot)) {
		/* Not remembered, so not released either: don't keep it. */
		slot_release(slot);
		slot = s->shared;
	}
	errno = saved_errno;
	return slot;
}

static inline struct stats_slot *slot_of_thread(struct stats *s)
{
	struct stats_slot *slot = pthread_getspecific(s->key);

	return slot ? slot : slot_acquire(s);
}

/* Stops at 2^64 - 1 instead of starting again from 0: numbers only grow. */
static inline void add(const struct stats_slot *slot, _Atomic uint64_t *to,
		       uint64_t n)
{
	uint64_t old = atomic_load_explicit(to, memory_order_relaxed);
	uint64_t sum;

	do {
		if (__builtin_add_overflow(old, n, &sum))
			sum = UINT64_MAX;
		if (!slot->shared) {
			atomic_store_explicit(to, sum, memory_order_release);
			return;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		to, &old, sum, memory_order_release, memory_order_relaxed));
}

static inline void raise_to(const struct stats_slot *slot, _Atomic uint64_t *to,
			    uint64_t value)
{
	uint64_t old = atomic_load_explicit(to, memory_order_relaxed);

	while (value > old) {
		if (!slot->shared) {
			atomic_store_explicit(to, value, memory_order_release);
			return;
		}
		if (atomic_compare_exchange_weak_explicit(to, &old, value,
							  memory_order_release,
							  memory_order_relaxed))
			return;
	}
}

/* In the order that slot.h asks for. */
static inline void record(struct stats *s, size_t series, uint64_t ns,
			  uint64_t bytes, uint64_t errors)
{
	struct stats_slot *slot = slot_of_thread(s);
	struct stats_slot_series *to = &slot->series[series];

	raise_to(slot, &to->max, ns);
	raise_to(slot, &to->min_inverted, ~ns);
	add(slot, &to->bucket[histogram_index(ns)], 1);
	add(slot, &to->sum, ns);
	if (bytes)
		add(slot, &to->bytes, bytes);
	if (errors)
		add(slot, &to->errors, errors);
}

struct stats *stats_new(void)
{
	struct stats *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->start_ns = stats_now();
	s->shared = slot_map();
	if (!s->shared)
		goto free_stats;
	if (pthread_key_create(&s->key, slot_release))
		goto unmap_shared;

	s->shared->shared = true;
	atomic_init(&s->shared->taken, true);
	slot_push(s, s->shared);
	return s;

unmap_shared:
	munmap(s->shared, sizeof(*s->shared));
free_stats:
	free(s);
	return NULL;
}

void stats_free(struct stats *s)
{
	struct stats_slot *slot, *next;

	if (!s)
		return;
	pthread_key_delete(s->key);
	for (slot = atomic_load(&s->slots); slot; slot = next) {
		next = slot->next;
		munmap(slot, sizeof(*slot));
	}
	free(s);
}

uint64_t stats_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void stats_op(struct stats *s, enum stats_op op, uint64_t ns, int error,
	      uint64_t bytes)
{
	assert(op < STATS_OP_NR);
	if (s)
		record(s, op, ns, bytes, error != 0);
}

void stats_time(struct stats *s, enum stats_timer t, uint64_t ns,
		uint64_t bytes)
{
	assert(t < STATS_TIMER_NR);
	if (s)
		record(s, (size_t)STATS_OP_NR + t, ns, bytes, 0);
}

void stats_count(struct stats *s, enum stats_counter c, uint64_t n)
{
	struct stats_slot *slot;

	assert(c < STATS_COUNTER_NR);
	if (!s)
		return;
	slot = slot_of_thread(s);
	add(slot, &slot->counter[c], n);
}
