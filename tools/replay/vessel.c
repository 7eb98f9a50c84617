/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The program is started anew for each step: the daemon has to be a process of
 * its own, and its start is then the one that users have.  The password goes
 * through a pipe; what the steps say is shown only if they fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/mounts.h"
#include "tools/replay/span.h"
#include "tools/replay/vessel.h"

#define NS_PER_S UINT64_C(1000000000)
#define PASSWORD_FD 3
#define PASSWORD_FD_TEXT "3"

/* Words of /proc/PID/stat behind the name. */
enum {
	STAT_USER = 11,
	STAT_SYSTEM,
	STAT_REST, /* what follows, as one */
};

/* ---- starting ourselves ---- */

/* By its real path, so that it is called "tusk" in lists of processes. */
static void own_path(char out[static 4096])
{
	struct stat self, found;
	const ssize_t len = readlink("/proc/self/exe", out, 4095);

	out[len > 0 ? len : 0] = '\0';
	if (len <= 0 || stat("/proc/self/exe", &self) || stat(out, &found) ||
	    self.st_dev != found.st_dev || self.st_ino != found.st_ino)
		snprintf(out, 4096, "/proc/self/exe");
}

/* A pipe that holds @text, to be read; negative errno. */
static int pipe_with(const char *text)
{
	const size_t len = strlen(text);
	int fds[2], err = 0;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	/* Far less than what a pipe takes at once. */
	if (write(fds[1], text, len) != (ssize_t)len)
		err = -EIO;
	close(fds[1]);
	if (err)
		close(fds[0]);
	return err ? err : fds[0];
}

/* Read what was said to its end; the last part of much. */
static void read_said(int fd, char *said, size_t size)
{
	size_t len = 0;
	ssize_t got;

	while ((got = read(fd, said + len, size - 1 - len)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		len += (size_t)got;
		if (len > size / 2) {
			memmove(said, said + len / 2, len - len / 2);
			len -= len / 2;
		}
	}
	said[len] = '\0';
}

static int spawn(pid_t *pid, char *const argv[], int password, int said)
{
	posix_spawn_file_actions_t a;
	char path[4096];
	int err;

	own_path(path);
	posix_spawn_file_actions_init(&a);
	posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&a, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&a, said, 2);
	posix_spawn_file_actions_adddup2(&a, password, PASSWORD_FD);
	err = posix_spawn(pid, path, &a, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&a);
	return -err;
}

/*
 * Above the descriptors that the child gets, or adddup2() would find them
 * overwritten by one another.
 */
static int move_up(int fd)
{
	const int high = fcntl(fd, F_DUPFD_CLOEXEC, PASSWORD_FD + 1);
	const int err = -errno;

	close(fd);
	return high < 0 ? err : high;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return TOOL_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_FAILED;
}

/* Start it, read what it says, wait for its end; exit status or -errno. */
static int run_program(char *const argv[], int password, char *said,
		       size_t size)
{
	int fds[2], into, from, status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	into = move_up(fds[1]);
	from = move_up(fds[0]);
	status = into < 0 ? into : from < 0 ? from : 0;
	if (!status)
		status = spawn(&pid, argv, password, into);
	if (into >= 0)
		close(into);
	if (!status) {
		read_said(from, said, size);
		status = wait_for(pid);
	}
	if (from >= 0)
		close(from);
	return status;
}

/* Run tusk with @argv[1] and on; fails as the step does. */
static enum tool_exit run_tusk(const struct vessel *v, char *const argv[])
{
	char said[4096] = "", line[sizeof(v->password) + 2];
	int password, status;

	snprintf(line, sizeof(line), "%s\n", v->password);
	password = pipe_with(line);
	if (password >= 0)
		password = move_up(password);
	explicit_bzero(line, sizeof(line));
	if (password < 0)
		return tool_fail_errno(TOOL_AT_ANY, NULL, password);
	status = run_program(argv, password, said, sizeof(said));
	close(password);
	if (status < 0)
		return tool_fail_errno(TOOL_AT_ANY, NULL, status);
	if (status)
		fputs(said, stderr);
	return status;
}

/* ---- the steps ---- */

static int random_password(char out[static 64])
{
	unsigned char bytes[24];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

static enum tool_exit fail_make(const char *dir)
{
	return tool_fail(TOOL_FAILED, dir, "can't make a folder to work in: %s",
			 strerrordesc_np(errno));
}

enum tool_exit vessel_make_folder(struct vessel *v, const char *dir)
{
	char *absolute = realpath(dir, NULL), *folder = NULL;

	*v = (struct vessel){ 0 };
	if (!absolute)
		return fail_make(dir);
	if (asprintf(&folder, "%s/tusk-compare-XXXXXX", absolute) < 0)
		folder = NULL;
	free(absolute);
	if (!folder || !mkdtemp(folder)) {
		free(folder);
		return fail_make(dir);
	}
	v->folder = folder;
	if (asprintf(&v->container, "%s/c.tusk", folder) < 0)
		v->container = NULL;
	if (asprintf(&v->point, "%s/mnt", folder) < 0)
		v->point = NULL;
	if (!v->container || !v->point)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);
	if (random_password(v->password))
		return tool_fail(TOOL_FAILED, NULL, "no random numbers");
	return TOOL_DONE;
}

enum tool_exit vessel_create(struct vessel *v, const char *scheme,
			     bool integrity)
{
	/* The password is random: stretching it would only take time. */
	const char *const argv[] = {
		"tusk",
		"create",
		"--no-recovery-key",
		"--kdf-time",
		"0.01",
		"--kdf-memory",
		"16M",
		"--password-fd",
		PASSWORD_FD_TEXT,
		"--scheme",
		scheme,
		"--integrity",
		integrity ? "on" : "off",
		v->container,
		NULL,
	};

	if (mkdir(v->point, 0700))
		return fail_make(v->point);
	return run_tusk(v, (char *const *)argv);
}

static void find_daemon(struct vessel *v)
{
	const struct mount_entry *e;
	struct control_info info;
	struct mounts m;

	v->daemon = 0;
	if (!mounts_read(&m)) {
		e = mounts_find(&m, v->point);
		if (e && !mounts_ask(e, &info))
			v->daemon = info.pid;
	}
	mounts_destroy(&m);
}

enum tool_exit vessel_mount(struct vessel *v)
{
	const char *const argv[] = {
		"tusk",
		"mount",
		"--password-fd",
		PASSWORD_FD_TEXT,
		v->container,
		v->point,
		NULL,
	};
	const enum tool_exit code = run_tusk(v, (char *const *)argv);

	if (code != TOOL_DONE)
		return code;
	v->mounted = true;
	find_daemon(v);
	return TOOL_DONE;
}

enum tool_exit vessel_unmount(struct vessel *v)
{
	const char *const argv[] = { "tusk", "umount", v->point, NULL };
	const enum tool_exit code = run_tusk(v, (char *const *)argv);

	if (code == TOOL_DONE)
		v->mounted = false;
	return code;
}

/* Fields 14 and 15 of /proc/PID/stat, behind a name that may hold anything. */
static uint64_t parse_ticks(const char *rest)
{
	const struct span text = { rest, strcspn(rest, "\n") };
	struct span word[STAT_REST + 1];
	uint64_t user, system;

	if (span_words(text, word, STAT_REST + 1) <= STAT_SYSTEM ||
	    span_number(word[STAT_USER], &user) ||
	    span_number(word[STAT_SYSTEM], &system))
		return 0;
	return user + system;
}

uint64_t vessel_cpu_ns(const struct vessel *v)
{
	const long tick = sysconf(_SC_CLK_TCK);
	char path[48], line[1024];
	const char *rest = NULL;
	FILE *in;

	if (!v->daemon || tick <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)v->daemon);
	in = fopen(path, "re");
	if (in && fgets(line, sizeof(line), in))
		rest = strrchr(line, ')');
	if (in)
		fclose(in);
	return rest ? parse_ticks(rest + 1) * (NS_PER_S / (uint64_t)tick) : 0;
}

/* Only what was made here, by name. */
static enum tool_exit remove_files(const struct vessel *v)
{
	if (v->container && unlink(v->container) && errno != ENOENT)
		return tool_fail(TOOL_FAILED, v->container,
				 "could not be removed: %s",
				 strerrordesc_np(errno));
	if (v->point && rmdir(v->point) && errno != ENOENT)
		return tool_fail(TOOL_FAILED, v->point,
				 "could not be removed: %s",
				 strerrordesc_np(errno));
	if (v->folder && rmdir(v->folder))
		return tool_fail(TOOL_FAILED, v->folder,
				 "could not be removed: %s",
				 strerrordesc_np(errno));
	return TOOL_DONE;
}

enum tool_exit vessel_destroy(struct vessel *v)
{
	enum tool_exit code = TOOL_DONE;

	if (v->mounted)
		code = vessel_unmount(v);
	/* A container that is still mounted is better left than torn away. */
	if (code == TOOL_DONE)
		code = remove_files(v);
	explicit_bzero(v->password, sizeof(v->password));
	free(v->folder);
	free(v->container);
	free(v->point);
	*v = (struct vessel){ 0 };
	return code;
}
