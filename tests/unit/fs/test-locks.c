/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * At most one writer, by whatever path (I6).  Other processes are children
 * that open the container and say over a pipe how that went.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "fs/container.h"
#include "fs/container_lock.h"
#include "support.h"

static char folder[64], path[80], other[80];

static void start_vault(void)
{
	struct container *c;

	make_folder(folder);
	snprintf(path, sizeof(path), "%s/vault.tusk", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	cr_assert_eq(container_create(&c, path, CONTAINER_NEW_FILE, MIB), 0);
	container_close(c);
}

static void end_vault(void)
{
	remove_folder(folder);
}

TestSuite(locks, .init = start_vault, .fini = end_vault);

enum child_does {
	CHILD_HOLDS,
	CHILD_SERVES
};

/* A process that has the container open until it is killed. */
static pid_t start_holder(enum container_access access, enum child_does does)
{
	int ready[2], err;
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		struct container *c;

		err = container_open(&c, path, access, 0, NULL);
		if (!err && does == CHILD_SERVES)
			err = container_serve(c);
		if (write(ready[1], &err, sizeof(err)) != sizeof(err))
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(ready[0], &err, sizeof(err)), sizeof(err));
	cr_assert_eq(err, 0);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void kill_holder(pid_t pid)
{
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

static int try_open(const char *name, enum container_access access,
		    unsigned int wait_seconds, int *pid)
{
	struct container *c;
	int err = container_open(&c, name, access, wait_seconds, pid);

	container_close(c);
	return err;
}

/* The wait is an hour: what is served must be refused at once. */
#define NO_WAIT_EXPECTED 3600

Test(locks, served_container_is_busy_by_any_path)
{
	pid_t holder = start_holder(CONTAINER_READ_WRITE, CHILD_SERVES);
	char name[80];
	int pid = -1;

	cr_assert_eq(try_open(path, CONTAINER_READ_WRITE, NO_WAIT_EXPECTED,
			      &pid),
		     -EBUSY);
	cr_assert(pid == holder || pid == 0, "%d, not %d", pid, holder);
	cr_assert_eq(try_open(path, CONTAINER_READ_ONLY, NO_WAIT_EXPECTED,
			      NULL),
		     -EBUSY);

	cr_assert_eq(symlink(path, other), 0);
	cr_assert_eq(try_open(other, CONTAINER_READ_WRITE, NO_WAIT_EXPECTED,
			      &pid),
		     -EBUSY);
	snprintf(name, sizeof(name), "%s/hard", folder);
	cr_assert_eq(link(path, name), 0);
	cr_assert_eq(try_open(name, CONTAINER_READ_WRITE, NO_WAIT_EXPECTED,
			      &pid),
		     -EBUSY);
	kill_holder(holder);
}

Test(locks, holder_is_found)
{
	pid_t holder;
	int pid = -1;

	if (access("/proc/locks", R_OK))
		cr_skip_test("no /proc/locks here");
	holder = start_holder(CONTAINER_READ_WRITE, CHILD_SERVES);
	cr_assert_eq(try_open(path, CONTAINER_READ_WRITE, 0, &pid), -EBUSY);
	cr_assert_eq(pid, holder);
	kill_holder(holder);
	cr_assert_eq(try_open(path, CONTAINER_READ_WRITE, 0, &pid), 0);
	cr_assert_eq(pid, 0);
}

Test(locks, killed_process_leaves_no_lock)
{
	kill_holder(start_holder(CONTAINER_READ_WRITE, CHILD_SERVES));
	cr_assert_eq(try_open(path, CONTAINER_READ_WRITE, 0, NULL), 0);
}

Test(locks, readers_share_and_keep_writers_out)
{
	pid_t holder = start_holder(CONTAINER_READ_ONLY, CHILD_SERVES);
	struct container *c;

	cr_assert_eq(container_open(&c, path, CONTAINER_READ_ONLY, 0, NULL), 0);
	cr_assert_eq(container_serve(c), 0);
	cr_assert_eq(try_open(path, CONTAINER_READ_WRITE, NO_WAIT_EXPECTED,
			      NULL),
		     -EBUSY);
	container_close(c);
	kill_holder(holder);
	cr_assert_eq(try_open(path, CONTAINER_READ_WRITE, 0, NULL), 0);
}

Test(locks, info_needs_no_lock)
{
	pid_t holder = start_holder(CONTAINER_READ_WRITE, CHILD_SERVES);
	uint8_t buf[BLOCK_BYTES];
	struct container *c;

	cr_assert_eq(container_open(&c, path, CONTAINER_NO_LOCK, 0, NULL), 0);
	cr_assert(c->read_only);
	cr_assert_eq(container_read(c, 0, 1, buf), 0);
	container_close(c);
	kill_holder(holder);
}

/* An opener in a thread, so that it may be waiting when something happens. */
struct opener {
	pthread_t thread;
	int err;
};

static void *open_in_thread(void *arg)
{
	struct opener *o = arg;

	o->err = try_open(path, CONTAINER_READ_WRITE, NO_WAIT_EXPECTED, NULL);
	return NULL;
}

static void start_opener(struct opener *o)
{
	cr_assert_eq(pthread_create(&o->thread, NULL, open_in_thread, o), 0);
}

static int end_opener(struct opener *o)
{
	cr_assert_eq(pthread_join(o->thread, NULL), 0);
	return o->err;
}

Test(locks, opener_waits_for_a_daemon_that_is_ending)
{
	struct container *c;
	struct opener o;

	cr_assert_eq(container_open(&c, path, CONTAINER_READ_WRITE, 0, NULL),
		     0);
	cr_assert_eq(container_serve(c), 0);
	cr_assert_eq(try_open(path, CONTAINER_READ_WRITE, NO_WAIT_EXPECTED,
			      NULL),
		     -EBUSY);

	/* Its last flush would be here. */
	container_serve_end(c);
	start_opener(&o);
	container_close(c);
	cr_assert_eq(end_opener(&o), 0);
}

Test(locks, opener_gives_up_when_its_time_is_over)
{
	pid_t holder = start_holder(CONTAINER_READ_WRITE, CHILD_HOLDS);

	cr_assert_eq(try_open(path, CONTAINER_READ_WRITE, 0, NULL), -EBUSY);
	kill_holder(holder);
}

Test(locks, opener_gives_up_when_the_holder_begins_to_serve)
{
	struct container *c;
	struct opener o;

	cr_assert_eq(container_open(&c, path, CONTAINER_READ_WRITE, 0, NULL),
		     0);
	start_opener(&o);
	cr_assert_eq(container_serve(c), 0);
	cr_assert_eq(end_opener(&o), -EBUSY);
	container_close(c);
}

/* A classic fcntl lock would be gone here. */
Test(locks, survive_another_descriptor_of_the_file)
{
	struct container *c;

	cr_assert_eq(container_open(&c, path, CONTAINER_READ_WRITE, 0, NULL),
		     0);
	cr_assert_eq(container_serve(c), 0);
	close(open(path, O_RDWR));
	cr_assert_eq(try_open(path, CONTAINER_READ_WRITE, NO_WAIT_EXPECTED,
			      NULL),
		     -EBUSY);
	container_close(c);
}

Test(locks, only_one_serves)
{
	int a = open(path, O_RDWR), b = open(path, O_RDWR);

	cr_assert_eq(lock_serve(a, LOCK_EXCLUSIVE), 0);
	cr_assert_eq(lock_serve(b, LOCK_EXCLUSIVE), -EBUSY);
	cr_assert_eq(lock_serve(b, LOCK_SHARED), -EBUSY);
	lock_serve_end(a);
	cr_assert_eq(lock_serve(b, LOCK_EXCLUSIVE), 0);
	close(a);
	close(b);
}

Test(locks, new_container_is_ours_at_once)
{
	struct container *c;

	cr_assert_eq(container_create(&c, other, CONTAINER_NEW_FILE, MIB), 0);
	cr_assert_eq(try_open(other, CONTAINER_READ_WRITE, 0, NULL), -EBUSY);
	container_close(c);
}
