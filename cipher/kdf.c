/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Argon2id by libgcrypt, and how much of it this machine does in a second.
 *
 * The library computes the lanes one after the other unless it is given
 * functions that run them; and it takes no passes at all, too little memory
 * and numbers of more than 32 bits without complaint.  So the bounds are
 * checked here, and each lane gets a thread.
 */
#include "cipher/kdf.h"

#include <errno.h>
#include <gcrypt.h>
#include <pthread.h>
#include <time.h>

#include "cipher/kdf_raw.h"
#include "cipher/library.h"

#define OUT_BYTES_MIN 4 /* Argon2's own */

int kdf_cost_check(const struct kdf_cost *c)
{
	if (c->passes < 1)
		return -ERANGE;
	if (c->lanes < 1 || c->lanes > KDF_LANES_MAX)
		return -ERANGE;
	if (c->memory_kib < 8 * c->lanes || c->memory_kib > KDF_MEMORY_KIB_MAX)
		return -ERANGE;
	return 0;
}

/*
 * The library hands out one job a lane, then waits for all of them, four times
 * a pass.  A thread's start costs nothing beside a quarter of a pass.
 */
struct lanes {
	size_t nr;
	struct lane {
		pthread_t thread;
		gcry_kdf_job_fn_t fn;
		void *arg;
	} lane[KDF_LANES_MAX];
};

static void *run_lane(void *arg)
{
	struct lane *l = arg;

	l->fn(l->arg);
	return NULL;
}

static int dispatch_lane(void *context, gcry_kdf_job_fn_t fn, void *arg)
{
	struct lanes *lanes = context;
	struct lane *l;

	if (lanes->nr < KDF_LANES_MAX) {
		l = &lanes->lane[lanes->nr];
		l->fn = fn;
		l->arg = arg;
		if (!pthread_create(&l->thread, NULL, run_lane, l)) {
			lanes->nr++;
			return 0;
		}
	}
	/* Lanes are independent: without a thread it takes longer, no more. */
	fn(arg);
	return 0;
}

static int wait_for_lanes(void *context)
{
	struct lanes *lanes = context;

	while (lanes->nr)
		pthread_join(lanes->lane[--lanes->nr].thread, NULL);
	return 0;
}

static int compute(gcry_kdf_hd_t kdf, size_t out_len, struct secret *out)
{
	struct lanes lanes = { 0 };
	const gcry_kdf_thread_ops_t ops = {
		.jobs_context = &lanes,
		.dispatch_job = dispatch_lane,
		.wait_all_jobs = wait_for_lanes,
	};
	gcry_error_t err;

	err = gcry_kdf_compute(kdf, &ops);
	if (err)
		return library_error(err);
	if (secret_new(out, out_len))
		return -ENOMEM;
	err = gcry_kdf_final(kdf, out_len, out->bytes);
	if (err)
		secret_wipe(out);
	return library_error(err);
}

int kdf_argon2id_raw(const struct argon2_input *in, const struct kdf_cost *cost,
		     size_t out_len, struct secret *out)
{
	const unsigned long param[] = {
		out_len,
		cost->passes,
		cost->memory_kib,
		cost->lanes,
	};
	gcry_kdf_hd_t kdf;
	gcry_error_t lib_err;
	int err;

	*out = SECRET_EMPTY;
	err = kdf_cost_check(cost);
	if (err)
		return err;
	if (!in->password_len || out_len < OUT_BYTES_MIN)
		return -EINVAL;

	lib_err = gcry_kdf_open(&kdf, GCRY_KDF_ARGON2, GCRY_KDF_ARGON2ID, param,
				sizeof(param) / sizeof(param[0]), in->password,
				in->password_len, in->salt, in->salt_len,
				in->key, in->key_len, in->ad, in->ad_len);
	if (lib_err)
		return library_error(lib_err);
	err = compute(kdf, out_len, out);
	gcry_kdf_close(kdf);
	return err;
}

int kdf_argon2id(const struct secret *password,
		 const uint8_t salt[static KDF_SALT_BYTES],
		 const struct kdf_cost *cost, size_t out_len,
		 struct secret *out)
{
	const struct argon2_input in = {
		.password = password->bytes,
		.password_len = password->len,
		.salt = salt,
		.salt_len = KDF_SALT_BYTES,
	};

	return kdf_argon2id_raw(&in, cost, out_len, out);
}

#define CALIBRATE_LANES 4
#define CALIBRATE_FIRST_KIB (16u << 10)
#define CALIBRATE_LEAST_KIB (8u << 10) /* less is no defence */

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* How long @c takes, 1 us at least. */
static int trial(const struct kdf_cost *c, uint64_t *us)
{
	static const uint8_t salt[KDF_SALT_BYTES] = "tuskfs trial";
	const struct argon2_input in = {
		.password = "trial",
		.password_len = 5,
		.salt = salt,
		.salt_len = sizeof(salt),
	};
	auto_secret struct secret out = SECRET_EMPTY;
	uint64_t start = now_us();
	int err = kdf_argon2id_raw(&in, c, 32, &out);

	*us = now_us() - start + 1;
	return err;
}

static uint64_t clamp(uint64_t v, uint64_t low, uint64_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* Time grows with memory * passes; @us is what one pass over @c took. */
static void extrapolate(struct kdf_cost *c, uint64_t us, uint64_t target_us,
			uint32_t memory_kib_max)
{
	const uint32_t least =
		(uint32_t)clamp(CALIBRATE_LEAST_KIB, 0, memory_kib_max);
	/* KiB fit 22 bits and microseconds of 32-bit ms 42: no overflow. */
	const uint64_t fit = target_us * c->memory_kib / us;
	uint64_t us_now;

	us_now = us * memory_kib_max / c->memory_kib;
	c->memory_kib =
		(uint32_t)clamp(fit & ~UINT64_C(1023), least, memory_kib_max);
	if (fit > memory_kib_max && us_now)
		c->passes = (uint32_t)clamp(target_us / us_now, 1, UINT32_MAX);
}

int kdf_calibrate(uint32_t ms, uint32_t memory_kib_max, struct kdf_cost *cost)
{
	const uint64_t target_us = (uint64_t)ms * 1000;
	struct kdf_cost c = {
		.passes = 1,
		.memory_kib =
			(uint32_t)clamp(CALIBRATE_FIRST_KIB, 0, memory_kib_max),
		.lanes = CALIBRATE_LANES,
	};
	uint64_t us;
	int err;

	if (memory_kib_max > KDF_MEMORY_KIB_MAX)
		return -ERANGE;
	/* Small trials flatter the machine: their memory is in its caches. */
	for (;;) {
		err = trial(&c, &us);
		if (err)
			return err;
		if (us >= target_us / 4 || c.memory_kib == memory_kib_max)
			break;
		c.memory_kib =
			(uint32_t)clamp(4ull * c.memory_kib, 0, memory_kib_max);
	}
	/* A busy moment makes a trial slow, hence the cost low: best of three. */
	for (int i = 0; i < 2 && us < target_us; i++) {
		uint64_t again;

		err = trial(&c, &again);
		if (err)
			return err;
		if (again < us)
			us = again;
	}
	extrapolate(&c, us, target_us, memory_kib_max);
	*cost = c;
	return 0;
}
