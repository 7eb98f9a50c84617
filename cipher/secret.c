/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Locked memory, wiping, constant-time comparison, randomness, and the start
 * of libgcrypt.
 *
 * libgcrypt's pool is one mapping that is locked when it is made.  It never
 * grows: what does not fit is refused (-ENOMEM), since the library's overflow
 * pools are not locked.  Over RLIMIT_MEMLOCK the library still calls the pool
 * secure, so the answer of its initialisation is kept and reported.
 */
#include "cipher/secret.h"

#include <errno.h>
#include <gcrypt.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define LIBRARY_VERSION_MIN "1.10.0" /* GCM-SIV, Argon2id */

/* Enough for any unit test; cipher_init(0) takes it. */
#define POOL_BYTES_DEFAULT (1u << 20)

/*
 * Locked memory of a handle, measured with libgcrypt 1.10.1 on x86-64 and
 * rounded up: 1993 bytes for a mode with one AES key, 3048 for XTS.  Elephant
 * has two handles, the most that a scheme needs.
 */
#define HANDLE_BYTES 2048
#define HANDLE_DATA_BYTES (2 * HANDLE_BYTES)

/* Passwords, derived keys and MAC states that live at one time, generously. */
#define POOL_BYTES_BASE (128u << 10)

/* libgcrypt is one per process, and so is this. */
static struct {
	pthread_mutex_t lock;
	/* Under lock. */
	bool started;
	enum secret_memory memory;
} library = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Keep the pool out of core dumps, even of piped handlers that ignore the
 * limit.  The first allocation shows where it is; a failure is harmless, as
 * the process is undumpable too.
 */
static void hide_pool_from_dumps(size_t pool_bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *probe = gcry_malloc_secure(1);
	size_t into_page;

	if (!probe)
		return;
	into_page = (uintptr_t)probe & (page - 1);
	(void)madvise(probe - into_page, pool_bytes & ~(page - 1),
		      MADV_DONTDUMP);
	gcry_free(probe);
}

static void make_undumpable(void)
{
	const struct rlimit no_core = { 0, 0 };

	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)setrlimit(RLIMIT_CORE, &no_core);
}

static int start_library(size_t pool_bytes, enum secret_memory *memory)
{
	size_t bytes = pool_bytes ? pool_bytes : POOL_BYTES_DEFAULT;

	if (!gcry_check_version(LIBRARY_VERSION_MIN))
		return -ENOSYS;
	/* We report in our own words; the library would print. */
	gcry_control(GCRYCTL_DISABLE_SECMEM_WARN);
	*memory = SECRET_MEMORY_LOCKED;
	if (gcry_control(GCRYCTL_INIT_SECMEM, bytes, 0))
		*memory = SECRET_MEMORY_UNLOCKED;
	hide_pool_from_dumps(bytes);
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
	if (pool_bytes)
		make_undumpable();
	return 0;
}

int cipher_init(size_t pool_bytes, enum secret_memory *memory)
{
	int err = 0;

	pthread_mutex_lock(&library.lock);
	if (!library.started) {
		err = start_library(pool_bytes, &library.memory);
		library.started = !err;
	}
	*memory = library.memory;
	pthread_mutex_unlock(&library.lock);
	return err;
}

size_t cipher_pool_bytes(unsigned int nr_threads, unsigned int nr_keys)
{
	/* Data, tag, hint, three kinds of seal. */
	const size_t handles = HANDLE_DATA_BYTES + 5 * HANDLE_BYTES;

	return POOL_BYTES_BASE + handles * nr_threads * nr_keys;
}

int secret_new(struct secret *s, size_t len)
{
	*s = SECRET_EMPTY;
	if (!len)
		return 0;
	s->bytes = gcry_calloc_secure(1, len);
	if (!s->bytes)
		return -ENOMEM;
	s->len = len;
	return 0;
}

int secret_copy(struct secret *s, const void *bytes, size_t len)
{
	int err = secret_new(s, len);

	if (!err && len)
		memcpy(s->bytes, bytes, len);
	return err;
}

void secret_wipe(struct secret *s)
{
	if (!s->bytes)
		return;
	secret_wipe_bytes(s->bytes, s->len);
	gcry_free(s->bytes);
	*s = SECRET_EMPTY;
}

bool secret_equal(const void *a, const void *b, size_t len)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t differences = 0;

	/* Volatile, so that no compiler finds a reason to stop early. */
	for (size_t i = 0; i < len; i++)
		differences |= x[i] ^ y[i];
	return !differences;
}

void secret_wipe_bytes(void *bytes, size_t len)
{
	explicit_bzero(bytes, len);
}

int random_bytes(void *bytes, size_t len)
{
	uint8_t *at = bytes;

	while (len) {
		ssize_t got = getrandom(at, len, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		at += got;
		len -= (size_t)got;
	}
	return 0;
}
