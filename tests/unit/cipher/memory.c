/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The pool of locked memory.  Each case is a process of its own, since a
 * process starts libgcrypt once.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cipher/scheme.h"
#include "cipher/seal.h"
#include "cipher/tag.h"
#include "plain.h"
#include "support.h"

/* The flags of the mapping that holds @at ("rd wr mr lo dd ..."). */
static bool mapping_flags(const void *at, char *flags, size_t room)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool inside = false, found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		uintptr_t start, end;
		char colon;

		/* "Size: ..." and its like have no second number. */
		if (sscanf(line, "%lx-%lx%c", &start, &end, &colon) == 3)
			inside = (uintptr_t)at >= start && (uintptr_t)at < end;
		else if (inside && !strncmp(line, "VmFlags:", 8)) {
			snprintf(flags, room, "%s", line + 8);
			found = true;
		}
	}
	if (f)
		fclose(f);
	return found;
}

/* Sanitizers take the call of mlock() and do nothing. */
static bool mlock_is_real(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char flags[512] = "";
	bool real;

	if (page == MAP_FAILED)
		return false;
	real = mlock(page, 4096) ||
	       (mapping_flags(page, flags, sizeof(flags)) &&
		strstr(flags, " lo"));
	munmap(page, 4096);
	if (!real)
		puts("skipped: mlock() does nothing under this sanitizer");
	return real;
}

static void tl6_pool_is_really_locked(struct tally *t)
{
	struct secret s;
	enum secret_memory memory;
	char flags[512] = "";

	if (!mlock_is_real())
		return;
	CHECK(t, cipher_init(cipher_pool_bytes(4, 1), &memory) == 0);
	CHECK(t, secret_new(&s, 64) == 0);
	CHECK(t, mapping_flags(s.bytes, flags, sizeof(flags)));
	CHECK(t, !!strstr(flags, " lo") == (memory == SECRET_MEMORY_LOCKED));
	if (memory != SECRET_MEMORY_LOCKED)
		puts("the pool is not locked here: RLIMIT_MEMLOCK is too low");
	secret_wipe(&s);
}

static void tl7_pool_is_kept_out_of_dumps(struct tally *t)
{
	struct secret s;
	enum secret_memory memory;
	char flags[512] = "";
	struct rlimit core;

	CHECK(t, cipher_init(cipher_pool_bytes(4, 1), &memory) == 0);
	CHECK(t, secret_new(&s, 64) == 0);
	CHECK(t, mapping_flags(s.bytes, flags, sizeof(flags)));
	CHECK(t, strstr(flags, " dd"));
	CHECK(t, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	CHECK(t, getrlimit(RLIMIT_CORE, &core) == 0);
	CHECK(t, core.rlim_cur == 0 && core.rlim_max == 0);
	secret_wipe(&s);
}

static void pool_of_0_changes_no_limits(struct tally *t)
{
	const int before = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	enum secret_memory memory;

	CHECK(t, cipher_init(0, &memory) == 0);
	CHECK(t, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == before);
}

/* Over the limit the library works on and claims to be secure: we say it. */
static void tl6_unlocked_pool_is_reported(struct tally *t)
{
	struct rlimit little;
	enum secret_memory memory, again;
	struct secret s;

	if (!mlock_is_real())
		return;
	CHECK(t, getrlimit(RLIMIT_MEMLOCK, &little) == 0);
	little.rlim_cur = 0;
	CHECK(t, setrlimit(RLIMIT_MEMLOCK, &little) == 0);
	/* Root may lock as much as it likes. */
	if (!getuid())
		CHECK(t, setuid(65534) == 0);
	CHECK(t, cipher_init(1u << 20, &memory) == 0);
	CHECK(t, memory == SECRET_MEMORY_UNLOCKED);
	CHECK(t, cipher_init(1u << 20, &again) == 0);
	CHECK(t, again == SECRET_MEMORY_UNLOCKED);
	CHECK(t, secret_new(&s, 64) == 0);
	secret_wipe(&s);
}

/* All that a mount opens for one key id. */
static void open_key_id(struct tally *t, const struct scheme *scheme,
			unsigned int nr_threads)
{
	struct secret data = secret_filled(scheme->key_bytes, 1);
	struct secret other = secret_filled(32, 1);
	struct scheme_key *s;
	struct tag_key *tag;
	struct hint_key *hint;
	struct seal_key *seal;

	CHECK(t, scheme_key_new(&s, scheme, 4096, &data, nr_threads) == 0);
	CHECK(t, tag_key_new(&tag, &other, nr_threads) == 0);
	CHECK(t, hint_key_new(&hint, &other, nr_threads) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(t, seal_key_new(&seal, &other, nr_threads) == 0);
	secret_wipe(&data);
	secret_wipe(&other);
}

static void expect_suffices(struct tally *t, const struct scheme *scheme,
			    unsigned int nr_threads, unsigned int nr_keys)
{
	enum secret_memory memory;

	CHECK(t, cipher_init(cipher_pool_bytes(nr_threads, nr_keys), &memory) ==
			 0);
	for (unsigned int i = 0; i < nr_keys; i++)
		open_key_id(t, scheme, nr_threads);
	/* And a password is asked for on top. */
	for (int i = 0; i < 16; i++) {
		struct secret s;

		CHECK(t, secret_new(&s, 4096) == 0);
	}
}

/* Run @test in a child, which exits with its number of failures. */
static void in_child(struct tally *t, const char *name,
		     void (*test)(struct tally *t))
{
	struct tally child = { 0 };
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		test(&child);
		fflush(stdout);
		_exit(child.failed ? 1 : 0);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (status)
		printf("FAIL %s: status %d\n", name, status);
	if (status)
		t->failed++;
	else
		t->passed++;
}

static const struct scheme *size_scheme;
static unsigned int size_threads, size_keys;

static void run_size(struct tally *t)
{
	expect_suffices(t, size_scheme, size_threads, size_keys);
}

static void tl6_pool_bytes_suffice(struct tally *t)
{
	static const unsigned int threads[] = { 1, 4, 64, 256 };

	for (size_t i = 0; (size_scheme = scheme_at(i)); i++)
		for (size_t j = 0; j < 4; j++)
			for (size_keys = 1; size_keys <= 2; size_keys++) {
				size_threads = threads[j];
				in_child(t, size_scheme->name, run_size);
			}
}

int main(void)
{
	struct tally t = { 0 };

#define RUN(test) in_child(&t, #test, test)
	RUN(tl6_pool_is_really_locked);
	RUN(tl6_unlocked_pool_is_reported);
	RUN(tl7_pool_is_kept_out_of_dumps);
	RUN(pool_of_0_changes_no_limits);
#undef RUN
	tl6_pool_bytes_suffice(&t);
	return tally_end(&t);
}
